/* Strings describe the fixed layouts, and an interpreter at the top of the file follows them.  The
 * layout of a sample depends on its event, so code swaps it.  In order: fields, attributes,
 * records. */
#include "abi/abi.h"

/* The deepest nesting in a recording: the capabilities of a PMU within those of all PMUs. */
enum { NESTING_MAX = 4 };

static void *take(struct tally_swapper *swapper, uint64_t bytes)
{
	if ((uint64_t)(swapper->end - swapper->at) < bytes) {
		swapper->at = swapper->end;
		return NULL;
	}
	void *field = swapper->at;
	swapper->at += bytes;
	return field;
}

uint16_t tally_swap_u16(struct tally_swapper *swapper)
{
	void *field = take(swapper, sizeof(uint16_t));
	uint16_t value = 0;
	if (!field)
		return 0;
	__builtin_memcpy(&value, field, sizeof(value));
	value = __builtin_bswap16(value);
	__builtin_memcpy(field, &value, sizeof(value));
	return value;
}

uint32_t tally_swap_u32(struct tally_swapper *swapper)
{
	void *field = take(swapper, sizeof(uint32_t));
	uint32_t value = 0;
	if (!field)
		return 0;
	__builtin_memcpy(&value, field, sizeof(value));
	value = __builtin_bswap32(value);
	__builtin_memcpy(field, &value, sizeof(value));
	return value;
}

uint64_t tally_swap_u64(struct tally_swapper *swapper)
{
	void *field = take(swapper, sizeof(uint64_t));
	uint64_t value = 0;
	if (!field)
		return 0;
	__builtin_memcpy(&value, field, sizeof(value));
	value = __builtin_bswap64(value);
	__builtin_memcpy(field, &value, sizeof(value));
	return value;
}

void tally_swap_skip(struct tally_swapper *swapper, uint64_t bytes)
{
	take(swapper, bytes);
}

static void swap_one(struct tally_swapper *swapper, char field)
{
	if (field == '2')
		tally_swap_u16(swapper);
	else if (field == '4')
		tally_swap_u32(swapper);
	else if (field == '8')
		tally_swap_u64(swapper);
	else if (field == 's')
		tally_swap_skip(swapper, tally_swap_u32(swapper));
}

/* Returns the position behind the brace that closes the one before `fields`. */
static const char *behind_braces(const char *fields)
{
	unsigned depth = 1;
	for (; *fields && depth; fields++) {
		depth += *fields == '{';
		depth -= *fields == '}';
	}
	return fields;
}

void tally_swap_fields(struct tally_swapper *swapper, const char *fields)
{
	struct { const char *start; uint32_t left; } loops[NESTING_MAX];
	unsigned depth = 0;
	while (*fields && swapper->at < swapper->end) {
		if (*fields == '{') {
			uint32_t count = tally_swap_u32(swapper);
			if (!count) {
				fields = behind_braces(fields + 1);
				continue;
			}
			loops[depth].start = ++fields;
			loops[depth++].left = count;
		} else if (*fields == '}') {
			bool again = --loops[depth - 1].left;
			fields = again ? loops[depth - 1].start : fields + 1;
			depth -= !again;
		} else if (*fields == '*') {
			swap_one(swapper, fields[-1]);
		} else {
			swap_one(swapper, *fields++);
		}
	}
}

/* ---- attributes ---------------------------------------------------------- */

static uint64_t mirror(uint64_t bits)
{
	uint64_t out = 0;
	for (unsigned i = 0; i < 64; i++)
		out |= (bits >> i & 1) << (63 - i);
	return out;
}

/* A field of several bits keeps the order of its own bits. */
static uint64_t mirror_flags(uint64_t flags)
{
	uint64_t out = mirror(flags),
		 precise = (out & TALLY_ATTR_PRECISE_IP) >> TALLY_ATTR_PRECISE_IP_SHIFT;
	precise = precise >> 1 | (precise & 1) << 1;
	return (out & ~TALLY_ATTR_PRECISE_IP) | precise << TALLY_ATTR_PRECISE_IP_SHIFT;
}

void tally_attr_swap(void *attr, size_t size)
{
	enum { FLAGS_END = 48 };
	struct tally_swapper swapper = { attr, (uint8_t *)attr + size };
	tally_swap_fields(&swapper, "44888"
				    "88"
				    "44888"
				    "8"
				    "448"
				    "42244"
				    "88");
	_Static_assert(offsetof(struct tally_attr, flags) + sizeof(uint64_t) == FLAGS_END, "flags");
	if (size < FLAGS_END)
		return;
	uint64_t flags;
	uint8_t *at = (uint8_t *)attr + offsetof(struct tally_attr, flags);
	__builtin_memcpy(&flags, at, sizeof(flags));
	flags = mirror_flags(flags);
	__builtin_memcpy(at, &flags, sizeof(flags));
}

/* Converts records to this machine's byte order.  record_decode.c has the same layouts. */

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
	if (odd)
		tally_swap_skip(swapper, 8 - odd);
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
	const struct {
		uint64_t bits;
		const char *fields;
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
	case TALLY_RECORD_MMAP:
		return "44888";
	case TALLY_RECORD_LOST:
		return "88";
	case TALLY_RECORD_COMM:
		return "44";
	case TALLY_RECORD_FORK:
	case TALLY_RECORD_EXIT:
		return "44448";
	case TALLY_RECORD_THROTTLE:
	case TALLY_RECORD_UNTHROTTLE:
		return "888";
	case TALLY_RECORD_READ:
		return "448*";
	case TALLY_RECORD_AUX:
		return "888";
	case TALLY_RECORD_ITRACE_START:
		return "44";
	case TALLY_RECORD_LOST_SAMPLES:
		return "8";
	case TALLY_RECORD_SWITCH_CPU_WIDE:
		return "44";
	case TALLY_RECORD_NAMESPACES:
		return "448*";
	case TALLY_RECORD_KSYMBOL:
		return "8422";
	case TALLY_RECORD_BPF_EVENT:
		return "224";
	case TALLY_RECORD_CGROUP:
		return "8";
	case TALLY_RECORD_TEXT_POKE:
		return "822";
	case TALLY_RECORD_AUX_OUTPUT_HW_ID:
		return "8";
	case TALLY_RECORD_CALLCHAIN_DEFERRED:
		return "8*";
	default:
		return "";
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
