/* perf_event's attributes as data: perf_event_open(2), include/uapi/linux/perf_event.h of Linux 6.18.
 *
 * Own definitions, so that the same code serves engine, tool and foreign recordings on any host; layout.c
 * asserts them against the system's header.  Freestanding.  The kernel's bit-fields are one word of flags here.
 */
#ifndef TALLY_ABI_ATTR_H
#define TALLY_ABI_ATTR_H

#include <stdint.h>

enum tally_type { /* attr.type */
	TALLY_TYPE_HARDWARE,
	TALLY_TYPE_SOFTWARE,
	TALLY_TYPE_TRACEPOINT,
	TALLY_TYPE_HW_CACHE,
	TALLY_TYPE_RAW,
	TALLY_TYPE_BREAKPOINT,
	TALLY_TYPE_MAX /* types at or above are PMUs registered at run time */
};

enum tally_hw { /* attr.config for TYPE_HARDWARE */
	TALLY_HW_CPU_CYCLES,
	TALLY_HW_INSTRUCTIONS,
	TALLY_HW_CACHE_REFERENCES,
	TALLY_HW_CACHE_MISSES,
	TALLY_HW_BRANCH_INSTRUCTIONS,
	TALLY_HW_BRANCH_MISSES,
	TALLY_HW_BUS_CYCLES,
	TALLY_HW_STALLED_CYCLES_FRONTEND,
	TALLY_HW_STALLED_CYCLES_BACKEND,
	TALLY_HW_REF_CPU_CYCLES,
	TALLY_HW_MAX
};

enum tally_sw { /* attr.config for TYPE_SOFTWARE */
	TALLY_SW_CPU_CLOCK,
	TALLY_SW_TASK_CLOCK,
	TALLY_SW_PAGE_FAULTS,
	TALLY_SW_CONTEXT_SWITCHES,
	TALLY_SW_CPU_MIGRATIONS,
	TALLY_SW_PAGE_FAULTS_MIN,
	TALLY_SW_PAGE_FAULTS_MAJ,
	TALLY_SW_ALIGNMENT_FAULTS,
	TALLY_SW_EMULATION_FAULTS,
	TALLY_SW_DUMMY,
	TALLY_SW_BPF_OUTPUT,
	TALLY_SW_CGROUP_SWITCHES,
	TALLY_SW_MAX
};

/* attr.config for TYPE_HW_CACHE: cache | operation << 8 | result << 16. */
enum tally_cache { TALLY_CACHE_L1D, TALLY_CACHE_L1I, TALLY_CACHE_LL, TALLY_CACHE_DTLB, TALLY_CACHE_ITLB,
		   TALLY_CACHE_BPU, TALLY_CACHE_NODE, TALLY_CACHE_MAX };
enum tally_cache_op { TALLY_CACHE_OP_READ, TALLY_CACHE_OP_WRITE, TALLY_CACHE_OP_PREFETCH, TALLY_CACHE_OP_MAX };
enum tally_cache_result { TALLY_CACHE_RESULT_ACCESS, TALLY_CACHE_RESULT_MISS, TALLY_CACHE_RESULT_MAX };

/* attr.sample_type */
#define TALLY_SAMPLE_IP (1ull << 0)
#define TALLY_SAMPLE_TID (1ull << 1)
#define TALLY_SAMPLE_TIME (1ull << 2)
#define TALLY_SAMPLE_ADDR (1ull << 3)
#define TALLY_SAMPLE_READ (1ull << 4)
#define TALLY_SAMPLE_CALLCHAIN (1ull << 5)
#define TALLY_SAMPLE_ID (1ull << 6)
#define TALLY_SAMPLE_CPU (1ull << 7)
#define TALLY_SAMPLE_PERIOD (1ull << 8)
#define TALLY_SAMPLE_STREAM_ID (1ull << 9)
#define TALLY_SAMPLE_RAW (1ull << 10)
#define TALLY_SAMPLE_BRANCH_STACK (1ull << 11)
#define TALLY_SAMPLE_REGS_USER (1ull << 12)
#define TALLY_SAMPLE_STACK_USER (1ull << 13)
#define TALLY_SAMPLE_WEIGHT (1ull << 14)
#define TALLY_SAMPLE_DATA_SRC (1ull << 15)
#define TALLY_SAMPLE_IDENTIFIER (1ull << 16)
#define TALLY_SAMPLE_TRANSACTION (1ull << 17)
#define TALLY_SAMPLE_REGS_INTR (1ull << 18)
#define TALLY_SAMPLE_PHYS_ADDR (1ull << 19)
#define TALLY_SAMPLE_AUX (1ull << 20)
#define TALLY_SAMPLE_CGROUP (1ull << 21)
#define TALLY_SAMPLE_DATA_PAGE_SIZE (1ull << 22)
#define TALLY_SAMPLE_CODE_PAGE_SIZE (1ull << 23)
#define TALLY_SAMPLE_WEIGHT_STRUCT (1ull << 24)
#define TALLY_SAMPLE_MAX (1ull << 25)

/* attr.read_format */
#define TALLY_FORMAT_TOTAL_TIME_ENABLED (1ull << 0)
#define TALLY_FORMAT_TOTAL_TIME_RUNNING (1ull << 1)
#define TALLY_FORMAT_ID (1ull << 2)
#define TALLY_FORMAT_GROUP (1ull << 3)
#define TALLY_FORMAT_LOST (1ull << 4)
#define TALLY_FORMAT_MAX (1ull << 5)

/* attr.flags: the kernel's bit-fields, first bit first (little-endian order of bits). */
#define TALLY_ATTR_DISABLED (1ull << 0)
#define TALLY_ATTR_INHERIT (1ull << 1)
#define TALLY_ATTR_PINNED (1ull << 2)
#define TALLY_ATTR_EXCLUSIVE (1ull << 3)
#define TALLY_ATTR_EXCLUDE_USER (1ull << 4)
#define TALLY_ATTR_EXCLUDE_KERNEL (1ull << 5)
#define TALLY_ATTR_EXCLUDE_HV (1ull << 6)
#define TALLY_ATTR_EXCLUDE_IDLE (1ull << 7)
#define TALLY_ATTR_MMAP (1ull << 8)
#define TALLY_ATTR_COMM (1ull << 9)
#define TALLY_ATTR_FREQ (1ull << 10)
#define TALLY_ATTR_INHERIT_STAT (1ull << 11)
#define TALLY_ATTR_ENABLE_ON_EXEC (1ull << 12)
#define TALLY_ATTR_TASK (1ull << 13)
#define TALLY_ATTR_WATERMARK (1ull << 14)
#define TALLY_ATTR_PRECISE_IP_SHIFT 15 /* two bits, 0..3 */
#define TALLY_ATTR_PRECISE_IP (3ull << TALLY_ATTR_PRECISE_IP_SHIFT)
#define TALLY_ATTR_MMAP_DATA (1ull << 17)
#define TALLY_ATTR_SAMPLE_ID_ALL (1ull << 18)
#define TALLY_ATTR_EXCLUDE_HOST (1ull << 19)
#define TALLY_ATTR_EXCLUDE_GUEST (1ull << 20)
#define TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL (1ull << 21)
#define TALLY_ATTR_EXCLUDE_CALLCHAIN_USER (1ull << 22)
#define TALLY_ATTR_MMAP2 (1ull << 23)
#define TALLY_ATTR_COMM_EXEC (1ull << 24)
#define TALLY_ATTR_USE_CLOCKID (1ull << 25)
#define TALLY_ATTR_CONTEXT_SWITCH (1ull << 26)
#define TALLY_ATTR_WRITE_BACKWARD (1ull << 27)
#define TALLY_ATTR_NAMESPACES (1ull << 28)
#define TALLY_ATTR_KSYMBOL (1ull << 29)
#define TALLY_ATTR_BPF_EVENT (1ull << 30)
#define TALLY_ATTR_AUX_OUTPUT (1ull << 31)
#define TALLY_ATTR_CGROUP (1ull << 32)
#define TALLY_ATTR_TEXT_POKE (1ull << 33)
#define TALLY_ATTR_BUILD_ID (1ull << 34)
#define TALLY_ATTR_INHERIT_THREAD (1ull << 35)
#define TALLY_ATTR_REMOVE_ON_EXEC (1ull << 36)
#define TALLY_ATTR_SIGTRAP (1ull << 37)
#define TALLY_ATTR_DEFER_CALLCHAIN (1ull << 38)
#define TALLY_ATTR_DEFER_OUTPUT (1ull << 39)

struct tally_attr {
	uint32_t type; /* enum tally_type, or a PMU's number */
	uint32_t size; /* bytes of this struct that are meant */
	uint64_t config;
	uint64_t sample_period; /* or sample_freq (Hz) with ATTR_FREQ */
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t flags;
	uint32_t wakeup_events; /* or wakeup_watermark (bytes) with ATTR_WATERMARK */
	uint32_t bp_type;
	uint64_t config1; /* or bp_addr, kprobe_func, uprobe_path */
	uint64_t config2; /* or bp_len, kprobe_addr, probe_offset */
	uint64_t branch_sample_type;
	uint64_t sample_regs_user;
	uint32_t sample_stack_user; /* bytes */
	int32_t clockid;
	uint64_t sample_regs_intr;
	uint32_t aux_watermark;
	uint16_t sample_max_stack;
	uint16_t reserved_2;
	uint32_t aux_sample_size;
	uint32_t aux_action;
	uint64_t sig_data;
	uint64_t config3;
};

/* Sizes that kernels have used: an attr in a file may have any of these, or a later one. */
#define TALLY_ATTR_SIZE_VER0 64u
#define TALLY_ATTR_SIZE_VER1 72u
#define TALLY_ATTR_SIZE_VER2 80u
#define TALLY_ATTR_SIZE_VER3 96u
#define TALLY_ATTR_SIZE_VER4 104u
#define TALLY_ATTR_SIZE_VER5 112u
#define TALLY_ATTR_SIZE_VER6 120u
#define TALLY_ATTR_SIZE_VER7 128u
#define TALLY_ATTR_SIZE_VER8 136u

/* Breakpoints, attr.bp_type: linux/hw_breakpoint.h */
#define TALLY_BREAKPOINT_R 1u
#define TALLY_BREAKPOINT_W 2u
#define TALLY_BREAKPOINT_X 4u

/* perf_event_open flags */
#define TALLY_FLAG_FD_NO_GROUP (1ul << 0)
#define TALLY_FLAG_FD_OUTPUT (1ul << 1)
#define TALLY_FLAG_PID_CGROUP (1ul << 2)
#define TALLY_FLAG_FD_CLOEXEC (1ul << 3)

static inline unsigned tally_attr_precise(const struct tally_attr *attr)
{
	return (attr->flags & TALLY_ATTR_PRECISE_IP) >> TALLY_ATTR_PRECISE_IP_SHIFT;
}

/* The smallest known size that holds every non-zero field: what a recording is written with, since perf 6.1
 * refuses more than 128 bytes. */
uint32_t tally_attr_size_needed(const struct tally_attr *attr);

#endif
