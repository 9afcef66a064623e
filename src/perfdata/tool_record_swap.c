/* Converts tools' records (types from 64 on) of the other byte order to this machine's: perf's
 * tools/lib/perf/include/perf/event.h. */
#include "abi/byte_swap.h"
#include "perfdata/perfdata_reader.h"

#include <stddef.h>
#include <string.h>

static void swap_attr(struct tally_swapper *swapper)
{
	uint32_t size = 0;
	size_t left = (size_t)(swapper->end - swapper->at);
	if (left >= TALLY_ATTR_SIZE_VER0)
		memcpy(&size, swapper->at + offsetof(struct tally_attr, size), sizeof(size));
	size = size ? __builtin_bswap32(size) : TALLY_ATTR_SIZE_VER0;
	if (size > left)
		return; /* too short: readers will not accept it as an attribute */
	tally_attr_swap(swapper->at, size);
	tally_swap_skip(swapper, size);
	tally_swap_fields(swapper, "8*");
}

static void swap_cpu_map(struct tally_swapper *swapper)
{
	enum { LIST, MASK, RANGE };
	uint16_t type = tally_swap_u16(swapper);
	if (type == LIST) {
		tally_swap_fields(swapper, "22*");
	} else if (type == MASK) {
		tally_swap_u16(swapper);
		bool is_64 = tally_swap_u16(swapper) == 8;
		tally_swap_skip(swapper, is_64 ? 2 : 0); /* padding that aligns the words */
		tally_swap_fields(swapper, is_64 ? "8*" : "4*");
	} else if (type == RANGE) {
		tally_swap_skip(swapper, 2);
		tally_swap_fields(swapper, "22");
	}
}

static void swap_event_update(struct tally_swapper *swapper)
{
	enum { UNIT, SCALE, NAME, CPUS };
	uint64_t type = tally_swap_u64(swapper);
	tally_swap_u64(swapper);
	if (type == SCALE)
		tally_swap_u64(swapper);
	else if (type == CPUS)
		swap_cpu_map(swapper);
}

static void swap_thread_map(struct tally_swapper *swapper)
{
	enum { COMM_BYTES = 16 };
	tally_swap_u64(swapper);
	while (swapper->at < swapper->end) {
		tally_swap_u64(swapper);
		tally_swap_skip(swapper, COMM_BYTES);
	}
}

static void swap_auxtrace_error(struct tally_swapper *swapper)
{
	enum { MESSAGE_BYTES = 64 };
	tally_swap_fields(swapper, "44444488");
	tally_swap_skip(swapper, MESSAGE_BYTES);
	tally_swap_fields(swapper, "44");
}

static const char *fields_of(uint32_t type)
{
	switch (type) {
	case TALLY_RECORD_HEADER_EVENT_TYPE: return "8";
	case TALLY_RECORD_HEADER_TRACING_DATA: return "4";
	case TALLY_RECORD_HEADER_BUILD_ID: return "4";
	case TALLY_RECORD_ID_INDEX: return "8*";
	case TALLY_RECORD_AUXTRACE_INFO: return "448*";
	case TALLY_RECORD_AUXTRACE: return "8884444";
	case TALLY_RECORD_STAT_CONFIG: return "8*";
	case TALLY_RECORD_STAT: return "844888";
	case TALLY_RECORD_STAT_ROUND: return "88";
	case TALLY_RECORD_TIME_CONV: return "88888";
	case TALLY_RECORD_COMPRESSED2: return "8";
	default: return "";
	}
}

void tally_tool_record_swap(void *record, uint32_t cpu_count)
{
	struct tally_record_header header;
	memcpy(&header, record, sizeof(header));
	struct tally_swapper swapper = { (uint8_t *)record + sizeof(header),
					 (uint8_t *)record + header.size };
	if (header.type == TALLY_RECORD_HEADER_ATTR) {
		swap_attr(&swapper);
	} else if (header.type == TALLY_RECORD_CPU_MAP) {
		swap_cpu_map(&swapper);
	} else if (header.type == TALLY_RECORD_EVENT_UPDATE) {
		swap_event_update(&swapper);
	} else if (header.type == TALLY_RECORD_THREAD_MAP) {
		swap_thread_map(&swapper);
	} else if (header.type == TALLY_RECORD_AUXTRACE_ERROR) {
		swap_auxtrace_error(&swapper);
	} else if (header.type == TALLY_RECORD_HEADER_FEATURE) {
		uint64_t feature = tally_swap_u64(&swapper);
		if (feature < TALLY_FEATURE_MAX)
			tally_feature_swap((unsigned)feature, swapper.at,
					   (size_t)(swapper.end - swapper.at), cpu_count);
	} else {
		tally_swap_fields(&swapper, fields_of(header.type));
	}
}
