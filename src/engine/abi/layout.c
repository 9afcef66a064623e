/* Asserts at compile time that tally's own definitions match the system's linux/perf_event.h.
 * Compares only what the oldest supported header (6.1) has. */
#include "abi/abi.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/ioctl.h>

#define SAME_FIELD(field) \
	_Static_assert(offsetof(struct tally_attr, field) == \
			       offsetof(struct perf_event_attr, field), \
		       #field)
SAME_FIELD(type);
SAME_FIELD(size);
SAME_FIELD(config);
SAME_FIELD(sample_period);
SAME_FIELD(sample_type);
SAME_FIELD(read_format);
SAME_FIELD(wakeup_events);
SAME_FIELD(bp_type);
SAME_FIELD(config1);
SAME_FIELD(config2);
SAME_FIELD(branch_sample_type);
SAME_FIELD(sample_regs_user);
SAME_FIELD(sample_stack_user);
SAME_FIELD(clockid);
SAME_FIELD(sample_regs_intr);
SAME_FIELD(aux_watermark);
SAME_FIELD(sample_max_stack);
SAME_FIELD(aux_sample_size);
SAME_FIELD(sig_data);
_Static_assert(sizeof(struct tally_attr) == TALLY_ATTR_SIZE_VER8, "attr");

_Static_assert((int)TALLY_TYPE_BREAKPOINT == PERF_TYPE_BREAKPOINT, "type");
_Static_assert((int)TALLY_HW_MAX == PERF_COUNT_HW_MAX, "hw");
_Static_assert((int)TALLY_SW_MAX == PERF_COUNT_SW_MAX, "sw");
_Static_assert((int)TALLY_CACHE_NODE == PERF_COUNT_HW_CACHE_NODE, "cache");
_Static_assert(TALLY_SAMPLE_WEIGHT_STRUCT == PERF_SAMPLE_WEIGHT_STRUCT, "sample_type");
_Static_assert(TALLY_SAMPLE_IDENTIFIER == PERF_SAMPLE_IDENTIFIER, "sample_type");
_Static_assert(TALLY_BRANCH_PRIV_SAVE == PERF_SAMPLE_BRANCH_PRIV_SAVE, "branch_sample_type");
_Static_assert(TALLY_BRANCH_CALL_STACK == PERF_SAMPLE_BRANCH_CALL_STACK, "branch_sample_type");
_Static_assert(TALLY_FORMAT_LOST == PERF_FORMAT_LOST, "read_format");
_Static_assert(TALLY_ATTR_SIZE_VER7 == PERF_ATTR_SIZE_VER7, "size");
_Static_assert((int)TALLY_RECORD_AUX_OUTPUT_HW_ID == PERF_RECORD_AUX_OUTPUT_HW_ID, "record");
_Static_assert(TALLY_CONTEXT_USER == (uint64_t)PERF_CONTEXT_USER, "context");

#define SAME_REQUEST(name) _Static_assert(TALLY_IOC_##name == PERF_EVENT_IOC_##name, #name)
SAME_REQUEST(ENABLE);
SAME_REQUEST(DISABLE);
SAME_REQUEST(REFRESH);
SAME_REQUEST(RESET);
SAME_REQUEST(PERIOD);
SAME_REQUEST(SET_OUTPUT);
SAME_REQUEST(SET_FILTER);
SAME_REQUEST(ID);
SAME_REQUEST(SET_BPF);
SAME_REQUEST(PAUSE_OUTPUT);
SAME_REQUEST(QUERY_BPF);
SAME_REQUEST(MODIFY_ATTRIBUTES);

#define SAME_PAGE(field) \
	_Static_assert(offsetof(struct tally_user_page, field) == \
			       offsetof(struct perf_event_mmap_page, field), #field)
SAME_PAGE(lock);
SAME_PAGE(index);
SAME_PAGE(offset);
SAME_PAGE(time_enabled);
SAME_PAGE(capabilities);
SAME_PAGE(pmc_width);
SAME_PAGE(time_mult);
SAME_PAGE(time_zero);
SAME_PAGE(size);
SAME_PAGE(data_head);
SAME_PAGE(data_tail);
SAME_PAGE(data_offset);
SAME_PAGE(aux_head);
SAME_PAGE(aux_size);
