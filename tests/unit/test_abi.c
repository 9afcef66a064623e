#include "random.h"
#include "test.h"

#include "abi/abi.h"

#include <errno.h>

static struct tally_attr sampling_attr(uint64_t sample_type)
{
	return (struct tally_attr){ .type = TALLY_TYPE_SOFTWARE, .sample_type = sample_type,
				    .flags = TALLY_ATTR_SAMPLE_ID_ALL };
}

static size_t put(uint64_t *words, uint32_t type, uint16_t misc, size_t count)
{
	struct tally_record_header header = { type, misc, (uint16_t)(8 * count) };
	memcpy(words, &header, sizeof(header));
	return 8 * count;
}

/* SPEC C2: the fields in record order. */
static void sample_fields_are_in_order(void **state)
{
	(void)state;
	struct tally_attr attr = sampling_attr(
		TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
		TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_RAW);
	uint64_t words[] = { 0,
			     77,
			     0x1234,
			     5ull << 32 | 4,
			     999,
			     3,
			     1000,
			     2,
			     TALLY_CONTEXT_USER,
			     0x1234,
			     /* RAW: u32 size 12, 12 bytes */ 0xaaaaaaaa0000000cull,
			     0xbbbbbbbbccccccccull };
	size_t size = put(words, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, 12);
	struct tally_record record;
	assert_int_equal(tally_record_decode(&attr, words, size, &record), 0);
	assert_int_equal(record.sample.id, 77);
	assert_int_equal(record.sample.ip, 0x1234);
	assert_int_equal(record.sample.pid, 4);
	assert_int_equal(record.sample.tid, 5);
	assert_int_equal(record.sample.cpu, 3);
	assert_int_equal(record.sample.period, 1000);
	assert_int_equal(record.sample.chain_length, 2);
	assert_int_equal(record.sample.chain[1], 0x1234);
	assert_int_equal(record.sample.raw_size, 12);
	uint64_t id;
	assert_true(tally_record_id(&attr, words, size, &id));
	assert_int_equal(id, 77);
}

/* linux/perf_event.h puts AUX before WEIGHT, but the kernel writes it last. */
/* An MMAP2 record whose misc says that it has a build-id, with these bytes in its place. */
static void decode_mapping(uint64_t flags, const uint8_t identity[24], struct tally_record *record)
{
	const struct tally_attr attr = { .flags = flags };
	uint64_t words[12] = { 0 };
	words[1] = 7 | 7ull << 32;
	words[2] = 0x400000;
	words[3] = 0x1000;
	memcpy(&words[5], identity, 24);
	words[8] = 5; /* protection, flags */
	memcpy(&words[9], "/bin/x", 7);
	size_t size = put(words, TALLY_RECORD_MMAP2, TALLY_MISC_MMAP_BUILD_ID, 10);
	assert_int_equal(tally_record_decode(&attr, words, size, record), 0);
	assert_string_equal(record->mmap.filename, "/bin/x");
}

/* While any event on the machine has attr.build_id, the kernel sets that bit for all events. */
static void a_build_id_is_known_by_its_form(void **state)
{
	struct tally_record record;
	(void)state;
	const uint8_t build_id[24] = { 20, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
				       13, 14, 15, 16, 17, 18, 19, 20 };
	decode_mapping(TALLY_ATTR_BUILD_ID, build_id, &record);
	assert_int_equal(record.mmap.build_id_size, 20);
	assert_false(record.mmap.has_inode);
	decode_mapping(0, build_id, &record); /* a tool has added it */
	assert_int_equal(record.mmap.build_id_size, 20);
	const uint8_t short_id[24] = { 8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	decode_mapping(TALLY_ATTR_BUILD_ID, short_id, &record);
	assert_int_equal(record.mmap.build_id_size, 8);
	for (unsigned major = 0; major < 512; major++) {
		const uint32_t device[6] = { major, 1, 10969501, 0, 3645321418u, 0 };
		decode_mapping(0, (const uint8_t *)device, &record);
		/* a device 16 or 20 with such an inode looks like a build-id */
		if (major == 16 || major == 20)
			continue;
		assert_true(record.mmap.has_inode);
		assert_int_equal(record.mmap.major, major);
		assert_int_equal(record.mmap.inode, 10969501);
	}
}

static void aux_is_a_samples_last_field(void **state)
{
	(void)state;
	struct tally_attr attr = sampling_attr(TALLY_SAMPLE_AUX | TALLY_SAMPLE_WEIGHT |
					       TALLY_SAMPLE_DATA_SRC | TALLY_SAMPLE_TRANSACTION |
					       TALLY_SAMPLE_CODE_PAGE_SIZE);
	uint64_t words[] = { 0, 7, 8, 9, 4096, 16, 10, 11 };
	struct tally_record record;
	size_t size = put(words, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, 8);
	assert_int_equal(tally_record_decode(&attr, words, size, &record), 0);
	assert_int_equal(record.sample.weight, 7);
	assert_int_equal(record.sample.data_src, 8);
	assert_int_equal(record.sample.transaction, 9);
	assert_int_equal(record.sample.code_page_size, 4096);
	assert_int_equal(record.sample.aux_size, 16);
	assert_memory_equal(record.sample.aux, &words[6], 16);
}

static void what_tracing_hardware_tells_is_read(void **state)
{
	(void)state;
	struct tally_attr attr = sampling_attr(TALLY_SAMPLE_CPU);
	uint64_t start[] = { 0, 5ull << 32 | 4, 3 }, lost[] = { 0, 77, 3 };
	struct tally_record record;
	size_t size = put(start, TALLY_RECORD_ITRACE_START, 0, 3);
	assert_int_equal(tally_record_decode(&attr, start, size, &record), 0);
	assert_int_equal(record.itrace_start.pid, 4);
	assert_int_equal(record.itrace_start.tid, 5);
	assert_int_equal(record.sample_id.cpu, 3);
	size = put(lost, TALLY_RECORD_LOST_SAMPLES, 0, 3);
	assert_int_equal(tally_record_decode(&attr, lost, size, &record), 0);
	assert_int_equal(record.lost.lost, 77);
	assert_int_equal(record.sample_id.cpu, 3);
}

static void no_field_reaches_past_its_record(void **state)
{
	(void)state;
	struct tally_attr attr = sampling_attr(TALLY_SAMPLE_IP | TALLY_SAMPLE_CALLCHAIN);
	uint64_t words[] = { 0, 0x1234, UINT64_MAX / 8 + 2, 1 };
	struct tally_record record;
	size_t size = put(words, TALLY_RECORD_SAMPLE, 0, 4);
	assert_int_equal(tally_record_decode(&attr, words, size, &record), -EBADMSG);
	for (size_t short_by = 1; short_by < size; short_by++)
		assert_int_equal(tally_record_decode(&attr, words, size - short_by, &record),
				 -EBADMSG);
	words[2] = 1;
	assert_int_equal(tally_record_decode(&attr, words, size, &record), 0);
	put(words, 4000, 0, 4);
	assert_int_equal(tally_record_decode(&attr, words, size, &record), -ENOTSUP);
}

/* Runs both decoders on one record.  Returns 1 if it is valid. */
static unsigned decode_both_ways(const struct tally_sample_layout *layout,
				 const struct tally_attr *attr, const uint64_t *words, size_t size)
{
	struct tally_record quick, slow;
	memset(&quick, 0, sizeof(quick)); /* the comparison includes padding */
	memset(&slow, 0, sizeof(slow));
	/* left over from the last sample */
	memset(&quick.sample.read, 0xaa, sizeof(quick.sample.read));
	int result = tally_record_decode(attr, words, size, &slow);
	assert_int_equal(tally_sample_decode(layout, words, size, &quick), result);
	if (!result)
		assert_memory_equal(&quick, &slow, sizeof(quick));
	return !result;
}

static void samples_without_a_period_have_their_attributes(void **state)
{
	struct tally_attr attr = sampling_attr(TALLY_SAMPLE_IP | TALLY_SAMPLE_PERIOD);
	const struct { uint64_t period, flags, expected; bool is_kept; } cases[] = {
		{ 1000, 0, 1000, false }, { 1, 0, 7, true }, { 4000, TALLY_ATTR_FREQ, 7, true },
	};
	const struct tally_record_header header = { TALLY_RECORD_SAMPLE, 0, 24 };
	uint64_t words[3] = { 0, 0x1000, 7 };
	(void)state;
	memcpy(words, &header, sizeof(header));
	attr.config = TALLY_SW_PAGE_FAULTS; /* an event whose hits have weights */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_attr honest = attr;
		struct tally_record record;
		honest.sample_period = cases[i].period;
		honest.flags |= cases[i].flags;
		tally_attr_honour_period(&honest);
		assert_int_equal(!!(honest.sample_type & TALLY_SAMPLE_PERIOD), cases[i].is_kept);
		assert_int_equal(tally_record_decode(&honest, words, sizeof(words), &record), 0);
		assert_int_equal(record.sample.period, cases[i].expected);
	}
	struct tally_attr clock = attr;
	clock.config = TALLY_SW_TASK_CLOCK;
	clock.sample_period = 1000;
	tally_attr_honour_period(&clock);
	assert_true(clock.sample_type & TALLY_SAMPLE_PERIOD);
	attr.sample_type &= ~TALLY_SAMPLE_PERIOD;
	attr.flags |= TALLY_ATTR_FREQ;
	attr.sample_period = 4000;
	assert_int_equal(tally_attr_period(&attr), 1);
}

/* Tests every plain sample_type, on records with correct lengths, chains and raw data, and on
 * random ones. */
static void plain_samples_are_decoded_alike(void **state)
{
	enum { WORDS = 40, TIMES = 60 };
	static const uint64_t fields[] = {
		TALLY_SAMPLE_IDENTIFIER, TALLY_SAMPLE_IP,   TALLY_SAMPLE_TID,
		TALLY_SAMPLE_TIME,       TALLY_SAMPLE_ADDR, TALLY_SAMPLE_ID,
		TALLY_SAMPLE_STREAM_ID,  TALLY_SAMPLE_CPU,  TALLY_SAMPLE_PERIOD,
		TALLY_SAMPLE_CALLCHAIN,  TALLY_SAMPLE_RAW,
	};
	enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };
	uint64_t random = 88172645463325252ull;
	(void)state;
	for (unsigned set = 0; set < 1u << FIELDS; set++) {
		struct tally_attr attr = sampling_attr(0);
		struct tally_sample_layout layout;
		unsigned fixed = 1, sound = 0, cut = 0;
		attr.sample_period = 12345;
		for (unsigned i = 0; i < FIELDS; i++)
			attr.sample_type |= set >> i & 1 ? fields[i] : 0;
		fixed += (unsigned)__builtin_popcount(set & ((1u << (FIELDS - 2)) - 1));
		tally_sample_layout_init(&layout, &attr);
		assert_true(layout.is_plain);
		for (unsigned i = 0; i < TIMES; i++) {
			uint64_t words[WORDS], chain = next_random(&random) % 12;
			for (unsigned k = 0; k < WORDS; k++)
				words[k] = next_random(&random);
			bool has_chain = attr.sample_type & TALLY_SAMPLE_CALLCHAIN;
			if (has_chain && i % 4)
				words[fixed] = chain;
			if (i % 4)
				/* here is the size of RAW */
				words[fixed + (has_chain ? 1 + chain : 0)] %= 70;
			struct tally_record_header header = {
				TALLY_RECORD_SAMPLE, (uint16_t)i,
				(uint16_t)(i % 3 ? 8 * WORDS : random % (8 * WORDS))
			};
			memcpy(words, &header, sizeof(header));
			size_t size = i % 5 ? 8 * WORDS : random % (8 * WORDS);
			unsigned passed = decode_both_ways(&layout, &attr, words, size);
			sound += passed;
			cut += !passed;
		}
		assert_true(sound > 0 && cut > 0);
		attr.sample_type |= TALLY_SAMPLE_STACK_USER;
		tally_sample_layout_init(&layout, &attr);
		assert_false(layout.is_plain);
	}
}

static void trailer_is_read_as_it_was_written(void **state)
{
	(void)state;
	struct tally_attr attr = sampling_attr(TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_TID |
					       TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU);
	uint64_t words[8] = { 0, 2ull << 32 | 1 };
	memcpy(&words[2], "comm", 5);
	size_t size = put(words, TALLY_RECORD_COMM, TALLY_MISC_COMM_EXEC, 7);
	struct tally_sample_id id = { .pid = 1, .tid = 2, .time = 12345, .id = 9, .cpu = 1 };
	assert_int_equal(tally_sample_id_size(&attr), 32);
	tally_sample_id_encode(&attr, &id, &words[3]);
	struct tally_record record;
	assert_int_equal(tally_record_decode(&attr, words, size, &record), 0);
	assert_string_equal(record.comm.comm, "comm");
	assert_true(record.sample_id.present);
	assert_int_equal(record.sample_id.time, 12345);
	assert_int_equal(record.sample_id.cpu, 1);
	assert_int_equal(record.sample_id.id, 9);
	uint64_t seen;
	assert_true(tally_record_id(&attr, words, size, &seen));
	assert_int_equal(seen, 9);
}

static void group_values_have_a_stride(void **state)
{
	(void)state;
	uint64_t words[] = { 2, 100, 50, 7, 1, 8, 2 };
	struct tally_read_values values;
	uint64_t format = TALLY_FORMAT_GROUP | TALLY_FORMAT_ID | TALLY_FORMAT_TOTAL_TIME_ENABLED |
			  TALLY_FORMAT_TOTAL_TIME_RUNNING;
	assert_int_equal(tally_read_values_parse(format, words, sizeof(words), &values), 56);
	assert_int_equal(values.count, 2);
	assert_int_equal(values.stride, 2);
	assert_int_equal(values.values[values.stride], 8);
	assert_int_equal(values.time_running, 50);
	assert_int_equal(tally_read_values_parse(format, words, sizeof(words) - 8, &values),
			 -EBADMSG);
}

static void attr_is_written_no_larger_than_needed(void **state)
{
	(void)state;
	struct tally_attr attr = { .size = sizeof(attr) };
	assert_int_equal(tally_attr_size_needed(&attr), TALLY_ATTR_SIZE_VER0);
	attr.clockid = 1;
	assert_int_equal(tally_attr_size_needed(&attr), TALLY_ATTR_SIZE_VER3);
	attr.config3 = 1;
	assert_int_equal(tally_attr_size_needed(&attr), TALLY_ATTR_SIZE_VER8);
}

/* linux/perf_event.h declares these bit-fields once.  A compiler for big-endian machines begins at
 * the highest bit. */
static void bit_fields_of_the_other_order_are_mirrored(void **state)
{
	(void)state;
	struct tally_attr attr = { .type = 0x01000000, .size = __builtin_bswap32(sizeof(attr)),
				   .config = __builtin_bswap64(7), .sample_max_stack = 0x0100 };
	/* disabled (first), precise_ip 1 (15 and 16), mmap2 (23) */
	attr.flags = __builtin_bswap64(1ull << 63 | 1ull << 47 | 1ull << 40);
	tally_attr_swap(&attr, sizeof(attr));
	assert_int_equal(attr.type, 1);
	assert_int_equal(attr.size, sizeof(attr));
	assert_int_equal(attr.config, 7);
	assert_int_equal(attr.sample_max_stack, 1);
	assert_int_equal(attr.flags, TALLY_ATTR_DISABLED | TALLY_ATTR_MMAP2 |
					     1ull << TALLY_ATTR_PRECISE_IP_SHIFT);
	/* predicted, 5 cycles, type 3, spec 2, new_type 9, privilege 4 */
	uint64_t big = 1ull << 62 | 5ull << 44 | 3ull << 40 | 2ull << 38 | 9ull << 34 | 4ull << 31;
	assert_int_equal(tally_branch_flags_mirror(big),
			 1ull << 1 | 5ull << 4 | 3ull << 20 | 2ull << 24 | 9ull << 26 | 4ull << 30);
}

/* A record may have any content: swapping touches nothing beyond it. */
static void swapping_stays_in_the_record(void **state)
{
	(void)state;
	uint64_t noise = 0x2545f4914f6cdd1d, words[34];
	for (unsigned round = 0; round < 200000; round++) {
		struct tally_attr attr = { 0 };
		for (unsigned i = 0; i < 34; i++) {
			noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
			uint64_t small = noise % 40 << (noise & 1 ? 56 : 0);
			words[i] = noise % 3 ? small : noise;
		}
		attr.sample_type = noise % TALLY_SAMPLE_MAX;
		attr.read_format = noise >> 32 & 31;
		attr.sample_regs_user = attr.sample_regs_intr = noise >> 40;
		attr.flags = noise & 4 ? TALLY_ATTR_SAMPLE_ID_ALL : 0;
		struct tally_record_header header = { round % TALLY_RECORD_KERNEL_MAX,
						      (uint16_t)noise,
						      (uint16_t)(8 + round % 250) };
		memcpy(words, &header, sizeof(header));
		uint8_t before[sizeof(words)];
		memcpy(before, words, sizeof(words));
		tally_record_swap(&attr, words);
		assert_memory_equal((uint8_t *)words + header.size, before + header.size,
				    sizeof(words) - header.size);
		assert_memory_equal(words, before, sizeof(header));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_fields_are_in_order),
		cmocka_unit_test(a_build_id_is_known_by_its_form),
		cmocka_unit_test(aux_is_a_samples_last_field),
		cmocka_unit_test(what_tracing_hardware_tells_is_read),
		cmocka_unit_test(no_field_reaches_past_its_record),
		cmocka_unit_test(samples_without_a_period_have_their_attributes),
		cmocka_unit_test(plain_samples_are_decoded_alike),
		cmocka_unit_test(trailer_is_read_as_it_was_written),
		cmocka_unit_test(group_values_have_a_stride),
		cmocka_unit_test(attr_is_written_no_larger_than_needed),
		cmocka_unit_test(bit_fields_of_the_other_order_are_mirrored),
		cmocka_unit_test(swapping_stays_in_the_record),
	};
	return cmocka_run_group_tests_name("abi", tests, NULL, NULL);
}
