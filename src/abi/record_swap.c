/* Converts records to this machine's byte order.  record_decode.c has the same layouts. */
#include "abi/byte_swap.h"

uint64_t tally_branch_flags_mirror(uint64_t flags)
{
	/* The fields of struct perf_branch_entry in order: mispred predicted in_tx abort cycles
	 * type spec new_type priv. */
	static const uint8_t widths[] = { 1, 1, 1, 1, 16, 4, 2, 4, 3, 31 };
	uint64_t out = 0;
	unsigned at = 0;
	for (unsigned i = 0; i < sizeof(widths); i++) {
		out |= (flags >> (64 - at - widths[i]) & (((uint64_t)1 << widths[i]) - 1)) << at;
		at += widths[i];
	}
	return out;
}

static void swap_words(struct tally_swapper *swapper, uint64_t count)
{
	while (count-- && swapper->at < swapper->end)
		tally_swap_u64(swapper);
}

static void swap_read_values(struct tally_swapper *swapper, uint64_t format)
{
	unsigned times = !!(format & TALLY_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & TALLY_FORMAT_TOTAL_TIME_RUNNING);
	unsigned others = !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
	if (!(format & TALLY_FORMAT_GROUP)) {
		swap_words(swapper, 1 + times + others);
		return;
	}
	uint64_t count = tally_swap_u64(swapper);
	swap_words(swapper, times);
	for (uint64_t i = 0; i < count && swapper->at < swapper->end; i++)
		swap_words(swapper, 1 + others);
}

static void swap_regs(struct tally_swapper *swapper, uint64_t mask)
{
	if (tally_swap_u64(swapper))
		swap_words(swapper, (uint64_t)__builtin_popcountll(mask));
}

static void swap_raw(struct tally_swapper *swapper)
{
	uint32_t size = tally_swap_u32(swapper);
	size_t odd = (4 + (size_t)size) & 7;
	tally_swap_skip(swapper, size);
	tally_swap_skip(swapper, odd ? 8 - odd : 0);
}

static void swap_branches(struct tally_swapper *swapper, const struct tally_attr *attr)
{
	/* PERF_SAMPLE_BRANCH_HW_INDEX, _COUNTERS */
	const uint64_t hw_index = 1ull << 17, counters = 1ull << 19;
	uint64_t count = tally_swap_u64(swapper);
	if (attr->branch_sample_type & hw_index)
		tally_swap_u64(swapper);
	for (uint64_t i = 0; i < count && swapper->at < swapper->end; i++) {
		swap_words(swapper, 2);
		uint8_t *at = swapper->at;
		uint64_t flags = tally_swap_u64(swapper);
		flags = tally_branch_flags_mirror(flags);
		if (swapper->at == at + sizeof(flags))
			__builtin_memcpy(at, &flags, sizeof(flags));
	}
	if (attr->branch_sample_type & counters)
		swap_words(swapper, count);
}

static void swap_stack(struct tally_swapper *swapper)
{
	uint64_t size = tally_swap_u64(swapper);
	if (!size)
		return;
	swap_words(swapper, size / 8);
	tally_swap_u64(swapper);
}

static void swap_sample(struct tally_swapper *swapper, const struct tally_attr *attr)
{
	uint64_t type = attr->sample_type;
	const uint64_t ends[] = { TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT,
				  TALLY_SAMPLE_DATA_SRC, TALLY_SAMPLE_TRANSACTION };
	const struct { uint64_t bits; const char *fields;
	} starts[] = {
		{ TALLY_SAMPLE_IDENTIFIER, "8" }, { TALLY_SAMPLE_IP, "8" },
		{ TALLY_SAMPLE_TID, "44" },       { TALLY_SAMPLE_TIME, "8" },
		{ TALLY_SAMPLE_ADDR, "8" },       { TALLY_SAMPLE_ID, "8" },
		{ TALLY_SAMPLE_STREAM_ID, "8" },  { TALLY_SAMPLE_CPU, "44" },
		{ TALLY_SAMPLE_PERIOD, "8" },
	};
	for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (type & starts[i].bits)
			tally_swap_fields(swapper, starts[i].fields);
	if (type & TALLY_SAMPLE_READ)
		swap_read_values(swapper, attr->read_format);
	if (type & TALLY_SAMPLE_CALLCHAIN)
		swap_words(swapper, tally_swap_u64(swapper));
	if (type & TALLY_SAMPLE_RAW)
		swap_raw(swapper);
	if (type & TALLY_SAMPLE_BRANCH_STACK)
		swap_branches(swapper, attr);
	if (type & TALLY_SAMPLE_REGS_USER)
		swap_regs(swapper, attr->sample_regs_user);
	if (type & TALLY_SAMPLE_STACK_USER)
		swap_stack(swapper);
	for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (type & ends[i])
			tally_swap_u64(swapper);
	if (type & TALLY_SAMPLE_REGS_INTR)
		swap_regs(swapper, attr->sample_regs_intr);
	swap_words(swapper,
		   (uint64_t)__builtin_popcountll(
			   type & (TALLY_SAMPLE_PHYS_ADDR | TALLY_SAMPLE_CGROUP |
				   TALLY_SAMPLE_DATA_PAGE_SIZE | TALLY_SAMPLE_CODE_PAGE_SIZE)));
	if (type & TALLY_SAMPLE_AUX)
		tally_swap_u64(swapper);
}

static void swap_trailer(struct tally_swapper *swapper, uint64_t type)
{
	tally_swap_fields(swapper, type & TALLY_SAMPLE_TID ? "44" : "");
	swap_words(swapper,
		   (uint64_t)__builtin_popcountll(
			   type & (TALLY_SAMPLE_TIME | TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID)));
	tally_swap_fields(swapper, type & TALLY_SAMPLE_CPU ? "44" : "");
	tally_swap_fields(swapper, type & TALLY_SAMPLE_IDENTIFIER ? "8" : "");
}

/* The fields before a string, code, or other bytes without order. */
static const char *fields_of(const struct tally_record_header *header)
{
	switch (header->type) {
	case TALLY_RECORD_MMAP: return "44888";
	case TALLY_RECORD_LOST: return "88";
	case TALLY_RECORD_COMM: return "44";
	case TALLY_RECORD_FORK:
	case TALLY_RECORD_EXIT: return "44448";
	case TALLY_RECORD_THROTTLE:
	case TALLY_RECORD_UNTHROTTLE: return "888";
	case TALLY_RECORD_READ: return "448*";
	case TALLY_RECORD_AUX: return "888";
	case TALLY_RECORD_ITRACE_START: return "44";
	case TALLY_RECORD_LOST_SAMPLES: return "8";
	case TALLY_RECORD_SWITCH_CPU_WIDE: return "44";
	case TALLY_RECORD_NAMESPACES: return "448*";
	case TALLY_RECORD_KSYMBOL: return "8422";
	case TALLY_RECORD_BPF_EVENT: return "224";
	case TALLY_RECORD_CGROUP: return "8";
	case TALLY_RECORD_TEXT_POKE: return "822";
	case TALLY_RECORD_AUX_OUTPUT_HW_ID: return "8";
	case TALLY_RECORD_CALLCHAIN_DEFERRED: return "8*";
	default: return "";
	}
}

void tally_record_swap(const struct tally_attr *attr, void *record)
{
	enum { BUILD_ID_BYTES = 24 };
	struct tally_record_header header;
	__builtin_memcpy(&header, record, sizeof(header));
	struct tally_swapper swapper = { (uint8_t *)record + sizeof(header),
					 (uint8_t *)record + header.size };
	if (header.type == TALLY_RECORD_SAMPLE) {
		swap_sample(&swapper, attr);
		return;
	}
	size_t trailer = tally_sample_id_size(attr);
	swapper.end = (uint8_t *)record + tally_record_true_size(&header, record, trailer);
	if (trailer && (size_t)(swapper.end - swapper.at) >= trailer) {
		swapper.end -= trailer;
		struct tally_swapper behind = { swapper.end, swapper.end + trailer };
		swap_trailer(&behind, attr->sample_type);
	}
	if (header.type != TALLY_RECORD_MMAP2) {
		tally_swap_fields(&swapper, fields_of(&header));
		return;
	}
	tally_swap_fields(&swapper, "44888");
	if (header.misc & TALLY_MISC_MMAP_BUILD_ID)
		tally_swap_skip(&swapper, BUILD_ID_BYTES);
	else
		tally_swap_fields(&swapper, "4488");
	if (!tally_mmap2_is_early(swapper.at, (size_t)(swapper.end - swapper.at)))
		tally_swap_fields(&swapper, "44");
}
