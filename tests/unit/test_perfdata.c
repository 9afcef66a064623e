#include "test.h"

#include "perfdata_fixture.h"
#include "perfdata_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

/* Returns the bytes of a recording made by the fixture. */
static struct tally_buffer recording(bool pipe, int level, unsigned samples, bool big_writes)
{
	struct tally_buffer out = { 0 };
	int fd = memfd_create("recording", 0);
	assert_true(fd >= 0);
	fixture_record(fd, pipe, level, samples, big_writes);
	off_t size = lseek(fd, 0, SEEK_END);
	char *room = tally_buffer_room(&out, (size_t)size);
	assert_non_null(room);
	assert_int_equal(pread(fd, room, (size_t)size, 0), size);
	out.length = (size_t)size;
	close(fd);
	return out;
}

static struct tally_perfdata *open_bytes(const void *bytes, size_t size)
{
	struct tally_perfdata *data;
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_perfdata_open_memory(bytes, size, &data, &err) < 0)
		fail_msg("%s", err.message);
	return data;
}

static void assert_undamaged(const struct tally_perfdata *data)
{
	const struct tally_error *damage = tally_perfdata_damage(data);
	if (damage)
		fail_msg("%s", damage->message);
}

/* SPEC G3: the reader returns what was written, in any container. */
static void every_container_gives_the_same_records(void **state)
{
	(void)state;
	struct tally_buffer wanted = { 0 };
	fixture_records(&wanted, 30000);
	for (unsigned variant = 0; variant < 8; variant++) {
		struct tally_buffer bytes =
			recording(variant & 1, variant & 2 ? 1 : 0, 30000, variant & 4);
		struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
		struct tally_raw_record raw;
		size_t at = 0;
		assert_int_equal(tally_perfdata_is_pipe(data), variant & 1);
		while (tally_perfdata_next(data, &raw, NULL) == 1) {
			struct tally_record_header header;
			memcpy(&header, raw.bytes, sizeof(header));
			if (header.type >= TALLY_RECORD_USER_START &&
			    header.type != TALLY_RECORD_FINISHED_ROUND)
				continue;
			assert_true(at + raw.size <= wanted.length);
			assert_memory_equal(raw.bytes, wanted.bytes + at, raw.size);
			at += raw.size;
		}
		assert_int_equal(at, wanted.length);
		assert_undamaged(data);
		tally_perfdata_close(data);
		tally_buffer_release(&bytes);
	}
	tally_buffer_release(&wanted);
}

static void assert_events(const struct tally_perfdata *data)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	assert_int_equal(count, 2);
	assert_string_equal(events[0].name, "clock-of-mine");
	assert_string_equal(events[1].name, "faults-of-mine");
	assert_int_equal(events[1].attr.config, TALLY_SW_PAGE_FAULTS);
	assert_int_equal(events[1].attr.sample_type, FIXTURE_SAMPLE_TYPE);
	assert_int_equal(events[1].id_count, 2);
	assert_int_equal(events[1].ids[1], 22);
}

static void features_come_back(void **state)
{
	(void)state;
	for (int pipe = 0; pipe < 2; pipe++) {
		struct tally_buffer bytes = recording(pipe, 1, 500, true);
		struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
		const char *format;
		size_t count, length;
		perfdata_walk(data, false);
		assert_undamaged(data);
		assert_events(data);
		assert_string_equal(tally_perfdata_feature_text(data, TALLY_FEATURE_HOSTNAME),
				    "fixture-host");
		assert_string_equal(tally_perfdata_feature_text(data, TALLY_FEATURE_CPUID),
				    "OursCPU,1,2,3");
		assert_null(tally_perfdata_feature_text(data, TALLY_FEATURE_NUMA_TOPOLOGY));
		const struct tally_recorded_build_id *build_ids = tally_perfdata_build_ids(data,
											   &count);
		assert_int_equal(count, 1);
		assert_string_equal(build_ids->filename, "/bin/fixture");
		assert_int_equal(build_ids->size, 20);
		assert_int_equal(build_ids->bytes[1], 0xad);
		assert_int_equal(build_ids->misc, TALLY_MISC_USER);
		assert_int_equal(build_ids->pid, UINT32_MAX);
		assert_true(tally_perfdata_tracepoint_format(data, 4242, &format, &length));
		assert_int_equal(length, sizeof(fixture_format) - 1);
		assert_memory_equal(format, fixture_format, length);
		assert_false(tally_perfdata_tracepoint_format(data, 4243, &format, &length));
		struct tally_feature_bytes own = tally_perfdata_feature(data, TALLY_FEATURE_TALLY);
		assert_int_equal(own.size, pipe ? 0 : 11); /* perf can't read it in a pipe */
		tally_perfdata_close(data);
		tally_buffer_release(&bytes);
	}
}

static void records_know_their_event(void **state)
{
	(void)state;
	struct tally_buffer bytes = recording(false, 1, 100, true);
	struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
	struct tally_raw_record raw;
	unsigned of_event[2] = { 0 };
	size_t count;
	while (tally_perfdata_next(data, &raw, NULL) == 1) {
		struct tally_record_header header;
		memcpy(&header, raw.bytes, sizeof(header));
		if (header.type == TALLY_RECORD_SAMPLE)
			of_event[raw.event - tally_perfdata_events(data, &count)]++;
	}
	assert_int_equal(of_event[0], 50);
	assert_int_equal(of_event[1], 50);
	tally_perfdata_close(data);
	tally_buffer_release(&bytes);
}

static void samples_come_in_order_of_time(void **state)
{
	(void)state;
	for (unsigned variant = 0; variant < 3; variant++) {
		struct tally_buffer bytes = recording(variant == 2, (int)variant, 12345, true);
		struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
		struct perfdata_walk walk = perfdata_walk(data, true);
		assert_int_equal(walk.samples, 12345);
		assert_int_equal(walk.backwards, 0);
		assert_int_equal(walk.undecodable, 0);
		tally_perfdata_close(data);
		data = open_bytes(bytes.bytes, bytes.length);
		assert_true(perfdata_walk(data, false).backwards > 0);
		tally_perfdata_close(data);
		tally_buffer_release(&bytes);
	}
}

/* Writes `records` as a plain recording of the fixture's events, with another sample_type. */
static struct tally_buffer recording_of(const struct tally_buffer *records, uint64_t sample_type,
					int level)
{
	struct tally_recorded_event events[2];
	struct tally_perfdata_options options = { .compression_level = level };
	struct tally_perfdata_writer *writer;
	struct tally_buffer out = { 0 };
	int fd = memfd_create("recording", 0);
	fixture_events(events);
	events[0].attr.sample_type = events[1].attr.sample_type = sample_type;
	assert_int_equal(tally_perfdata_writer_new(fd, events, 2, &options, &writer, NULL), 0);
	assert_int_equal(tally_perfdata_write(writer, records->bytes, records->length, NULL), 0);
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	tally_perfdata_writer_free(writer);
	off_t size = lseek(fd, 0, SEEK_END);
	char *room = tally_buffer_room(&out, (size_t)size);
	assert_int_equal(pread(fd, room, (size_t)size, 0), size);
	out.length = (size_t)size;
	close(fd);
	return out;
}

/* Writes types and times in order: "s5 m5 …". */
static void ordered_text(const struct tally_buffer *bytes, char *text, size_t size)
{
	struct tally_perfdata *data = open_bytes(bytes->bytes, bytes->length);
	struct tally_order *order;
	struct tally_raw_record raw;
	size_t at = 0;
	assert_int_equal(tally_order_new(data, &order, NULL), 0);
	*text = '\0';
	while (tally_order_next(order, &raw, NULL) == 1) {
		struct tally_record record;
		assert_int_equal(
			tally_record_decode(&raw.event->attr, raw.bytes, raw.size, &record), 0);
		bool is_sample = record.header.type == TALLY_RECORD_SAMPLE;
		at += (size_t)snprintf(text + at, size - at, "%c%llu.%llx ", is_sample ? 's' : 'm',
				       (unsigned long long)(is_sample ? record.sample.time
								      : record.sample_id.time),
				       (unsigned long long)(is_sample ? record.sample.ip : 0));
	}
	tally_order_free(order);
	tally_perfdata_close(data);
}

static void a_map_comes_before_samples_of_its_time(void **state)
{
	(void)state;
	char text[512];
	for (int level = 0; level < 2; level++) {
		struct tally_buffer records = { 0 };
		fixture_put_sample(&records, 11, 1, 7);
		fixture_put_sample(&records, 11, 2, 7);
		fixture_put_mmap(&records, 7);
		fixture_put_sample(&records, 21, 3, 5);
		fixture_put_round(&records);
		/* without a time: given in its place, since nothing was released yet */
		fixture_put_mmap(&records, 0);
		fixture_put_sample(&records, 11, 4, 9);
		/* later than the end of the round: still in order */
		fixture_put_sample(&records, 21, 5, 6);
		fixture_put_round(&records);
		fixture_put_sample(&records, 11, 6, 8);
		struct tally_buffer bytes = recording_of(&records, FIXTURE_SAMPLE_TYPE, level);
		ordered_text(&bytes, text, sizeof(text));
		assert_string_equal(text, "m0.0 s5.3 s6.5 m7.0 s7.1 s7.2 s8.6 s9.4 ");
		tally_buffer_release(&bytes);
		tally_buffer_release(&records);
	}
}

static void without_rounds_all_is_in_order(void **state)
{
	(void)state;
	char text[512];
	struct tally_buffer records = { 0 };
	for (unsigned i = 8; i > 0; i--)
		fixture_put_sample(&records, 11, i, i);
	struct tally_buffer bytes = recording_of(&records, FIXTURE_SAMPLE_TYPE, 0);
	ordered_text(&bytes, text, sizeof(text));
	assert_string_equal(text, "s1.1 s2.2 s3.3 s4.4 s5.5 s6.6 s7.7 s8.8 ");
	tally_buffer_release(&bytes);
	tally_buffer_release(&records);
}

static void without_times_the_file_is_the_order(void **state)
{
	(void)state;
	char text[512];
	struct tally_buffer records = { 0 };
	for (uint64_t i = 3; i > 0; i--) {
		fixture_put(&records, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, &i, sizeof(i));
		fixture_put_round(&records);
	}
	struct tally_buffer bytes = recording_of(&records, TALLY_SAMPLE_IP, 0);
	ordered_text(&bytes, text, sizeof(text));
	assert_string_equal(text, "s0.3 s0.2 s0.1 ");
	tally_buffer_release(&bytes);
	tally_buffer_release(&records);
}

static void records_that_do_not_compress_are_written_plain(void **state)
{
	(void)state;
	struct tally_buffer records = { 0 };
	uint64_t noise = 88172645463325252ull, words[8000];
	for (unsigned i = 0; i < 40; i++) {
		for (unsigned j = 0; j < 8000; j++) {
			noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
			words[j] = noise;
		}
		fixture_put(&records, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, sizeof(words));
	}
	struct tally_buffer bytes = recording_of(&records, TALLY_SAMPLE_IP, 3);
	assert_true(bytes.length < records.length + 1000);
	struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
	assert_int_equal(perfdata_walk(data, false).samples, 40);
	assert_undamaged(data);
	tally_perfdata_close(data);
	tally_buffer_release(&bytes);
	tally_buffer_release(&records);
}

/* perf's compression: one zstd stream, divided anywhere, with records of odd sizes. */
static void a_stream_over_many_compressed_records_is_read(void **state)
{
	(void)state;
	struct tally_buffer records = { 0 }, packed = { 0 }, stream = { 0 };
	fixture_records(&records, 3000);
	char *room = tally_buffer_room(&stream, ZSTD_compressBound(records.length));
	stream.length = ZSTD_compress(room, ZSTD_compressBound(records.length), records.bytes,
				      records.length, 1);
	assert_false(ZSTD_isError(stream.length));
	for (size_t at = 0, part; at < stream.length; at += part) {
		part = stream.length - at < 777 ? stream.length - at : 777;
		bool is_new = at / 777 % 2;
		uint64_t meant = part;
		size_t padding = is_new ? -part & 7 : 0;
		struct tally_buffer body = { 0 };
		tally_buffer_append(&body, &meant, is_new ? 8 : 0);
		tally_buffer_append(&body, stream.bytes + at, part);
		tally_buffer_append(&body, "\1\2\3\4\5\6\7", padding);
		fixture_put(&packed, is_new ? TALLY_RECORD_COMPRESSED2 : TALLY_RECORD_COMPRESSED, 0,
			    body.bytes, body.length);
		tally_buffer_release(&body);
		fixture_put_round(&packed);
	}
	struct tally_buffer bytes = recording_of(&packed, FIXTURE_SAMPLE_TYPE, 0);
	struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
	assert_int_equal(perfdata_walk(data, false).samples, 3000);
	assert_undamaged(data);
	tally_perfdata_close(data);
	tally_buffer_release(&bytes);
	tally_buffer_release(&records);
	tally_buffer_release(&packed);
	tally_buffer_release(&stream);
}

/* A few bytes that unpack to gigabytes are an error, not a hang. */
static void a_bomb_is_damage(void **state)
{
	(void)state;
	const size_t size = (size_t)256 << 20;
	uint64_t *plain = malloc(size);
	struct tally_record_header header = { TALLY_RECORD_FINISHED_ROUND, 0, 8 };
	uint8_t *packed = malloc(65536);
	for (size_t i = 0; i < size / 8; i++)
		memcpy(&plain[i], &header, sizeof(header));
	size_t length = ZSTD_compress(packed, 60000, plain, size, 1);
	assert_false(ZSTD_isError(length));
	struct tally_buffer records = { 0 };
	fixture_put(&records, TALLY_RECORD_COMPRESSED, 0, packed, length);
	struct tally_buffer bytes = recording_of(&records, FIXTURE_SAMPLE_TYPE, 0);
	struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
	struct perfdata_walk walk = perfdata_walk(data, false);
	assert_in_range(walk.records, 1, size / 8 - 1);
	assert_non_null(tally_perfdata_damage(data));
	tally_perfdata_close(data);
	tally_buffer_release(&bytes);
	tally_buffer_release(&records);
	free(plain);
	free(packed);
}

static void auxtrace_payload_is_skipped(void **state)
{
	(void)state;
	struct tally_buffer records = { 0 };
	fixture_put_sample(&records, 11, 1, 1);
	uint64_t auxtrace[5] = { 64 };
	fixture_put(&records, TALLY_RECORD_AUXTRACE, 0, auxtrace, sizeof(auxtrace));
	/* a payload of 64 bytes */
	fixture_put(&records, TALLY_RECORD_FINISHED_ROUND, 0, (uint64_t[7]){ 0 }, 56);
	fixture_put_sample(&records, 11, 2, 2);
	struct tally_buffer bytes = recording_of(&records, FIXTURE_SAMPLE_TYPE, 0);
	struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
	struct perfdata_walk walk = perfdata_walk(data, false);
	assert_int_equal(walk.samples, 2);
	assert_int_equal(walk.records, 3);
	assert_undamaged(data);
	tally_perfdata_close(data);
	tally_buffer_release(&bytes);
	tally_buffer_release(&records);
}

/* Returns the data's offset from a file's header. */
static uint64_t data_offset(const struct tally_buffer *bytes)
{
	uint64_t offset;
	memcpy(&offset, bytes->bytes + 40, sizeof(offset));
	return offset;
}

static void damage_is_named_and_what_is_before_it_is_used(void **state)
{
	(void)state;
	struct tally_buffer records = { 0 };
	fixture_put_sample(&records, 11, 1, 1);
	fixture_put_sample(&records, 11, 2, 2);
	size_t at = records.length;
	fixture_put_sample(&records, 11, 3, 3);
	struct tally_buffer bytes = recording_of(&records, FIXTURE_SAMPLE_TYPE, 0);
	size_t offset = data_offset(&bytes) + at;
	memset(bytes.bytes + offset, 0, 8);
	for (int ordered = 0; ordered < 2; ordered++) {
		struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
		char expected[64];
		assert_int_equal(perfdata_walk(data, ordered).samples, 2);
		const struct tally_error *damage = tally_perfdata_damage(data);
		assert_non_null(damage);
		snprintf(expected, sizeof(expected), "damaged at offset %zu:", offset);
		assert_non_null(strstr(damage->message, expected));
		assert_int_equal(damage->position, offset);
		tally_perfdata_close(data);
	}
	tally_buffer_release(&bytes);
	tally_buffer_release(&records);
}

/* perf writes the bits of its sections first; tally does not. */
static void an_unfinished_file_is_read_to_its_end(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		int level = way % 2;
		struct tally_buffer bytes = recording(false, level, 5000, true);
		uint64_t offset = data_offset(&bytes), size;
		memcpy(&size, bytes.bytes + 48, sizeof(size));
		memset(bytes.bytes + 48, 0, 8);  /* data.size */
		if (way < 2)
			memset(bytes.bytes + 72, 0, 32); /* features */
		struct tally_perfdata *data = open_bytes(bytes.bytes, offset + size);
		assert_true(tally_perfdata_is_unfinished(data));
		assert_int_equal(perfdata_walk(data, true).samples, 5000);
		assert_non_null(strstr(tally_perfdata_damage(data)->message, "did not finish"));
		tally_perfdata_close(data);
		data = open_bytes(bytes.bytes, offset + size - 20);
		assert_in_range(perfdata_walk(data, true).samples, level ? 1 : 4999, 4999);
		assert_non_null(tally_perfdata_damage(data));
		tally_perfdata_close(data);
		tally_buffer_release(&bytes);
	}
}

static void put_build_id(struct tally_buffer *out, uint16_t misc, uint8_t size, size_t length)
{
	uint8_t body[4 + 24 + 8] = { 0xff, 0xff, 0xff, 0xff };
	for (size_t i = 0; i < length; i++)
		body[4 + i] = (uint8_t)(0x80 + i);
	body[24] = size;
	memcpy(body + 28, "a/file", 7);
	fixture_put(out, TALLY_RECORD_HEADER_BUILD_ID, misc, body, sizeof(body));
}

static void build_ids_without_a_size_lose_their_zeros(void **state)
{
	(void)state;
	static const struct { uint16_t misc; uint8_t size, length, expected;
	} cases[] = {
		{ 0, 0, 20, 20 },
		{ 0, 0, 16, 16 },
		{ 0, 0, 8, 8 },
		{ 0, 0, 19, 20 },
		{ 0, 0, 0, 0 },
		{ TALLY_MISC_BUILD_ID_SIZE, 16, 16, 16 },
		{ TALLY_MISC_BUILD_ID_SIZE, 20, 16, 20 },
	};
	const size_t count = sizeof(cases) / sizeof(cases[0]);
	struct tally_buffer records = { 0 };
	size_t known;
	for (size_t i = 0; i < count; i++)
		put_build_id(&records, cases[i].misc, cases[i].size, cases[i].length);
	struct tally_buffer bytes = recording_of(&records, FIXTURE_SAMPLE_TYPE, 0);
	struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
	perfdata_walk(data, false);
	const struct tally_recorded_build_id *ids = tally_perfdata_build_ids(data, &known);
	assert_int_equal(known, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ids[i].size, cases[i].expected);
	assert_undamaged(data);
	tally_perfdata_close(data);
	tally_buffer_release(&bytes);
	tally_buffer_release(&records);
}

/* From simpleperf: the upper half of their size is in the place of `misc`. */
static void records_of_more_than_64_kib_are_passed_over(void **state)
{
	(void)state;
	struct tally_buffer records = { 0 };
	const size_t inside = 2 * 65536 + 24 - 8;
	fixture_put_sample(&records, 11, 1, 1);
	struct tally_record_header header = { 32769, 2, 24 };
	tally_buffer_append(&records, &header, sizeof(header));
	for (size_t i = 0; i < inside; i += 8)
		tally_buffer_append(&records, &(uint64_t){ TALLY_RECORD_SAMPLE }, 8);
	fixture_put_sample(&records, 11, 2, 2);
	/* The writer refuses records that are too large for their headers.  So it gets two samples,
	 * and the records go directly into the file. */
	struct tally_buffer few = { 0 };
	fixture_put_sample(&few, 11, 1, 1);
	struct tally_buffer bytes = recording_of(&few, FIXTURE_SAMPLE_TYPE, 0);
	uint64_t offset = data_offset(&bytes), size = records.length, none[4] = { 0 };
	bytes.length = offset;
	tally_buffer_append(&bytes, records.bytes, records.length);
	memcpy(bytes.bytes + 48, &size, sizeof(size));
	memcpy(bytes.bytes + 72, none, sizeof(none)); /* features */
	struct tally_perfdata *data = open_bytes(bytes.bytes, bytes.length);
	assert_int_equal(perfdata_walk(data, false).samples, 2);
	assert_undamaged(data);
	tally_perfdata_close(data);
	tally_buffer_release(&bytes);
	tally_buffer_release(&few);
	tally_buffer_release(&records);
}

/* Reads a copy that ends at the end of its memory, so that a sanitizer sees one byte too many. */
static void read_hurt(const void *bytes, size_t size, bool ordered)
{
	struct tally_perfdata *data;
	uint8_t *exact = malloc(size ? size : 1);
	memcpy(exact, bytes, size);
	if (tally_perfdata_open_memory(exact, size, &data, NULL) == 0) {
		perfdata_walk(data, ordered);
		tally_perfdata_close(data);
	}
	free(exact);
}

static void no_truncation_and_no_flipped_bit_hurts(void **state)
{
	(void)state;
	uint64_t noise = 0x9e3779b97f4a7c15ull;
	for (unsigned variant = 0; variant < 3; variant++) {
		struct tally_buffer bytes = recording(variant == 2, (int)variant, 300, true);
		for (unsigned i = 0; i < 1000; i++) {
			noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
			size_t at = noise % bytes.length;
			read_hurt(bytes.bytes, at, i & 1);
			/* Half of the flips are in the first 1 KiB: header, attributes, first
			 * records. */
			at = i & 2 ? at : at % 1024;
			bytes.bytes[at] ^= 1 << (noise >> 40) % 8;
			read_hurt(bytes.bytes, bytes.length, i & 1);
			bytes.bytes[at] ^= 1 << (noise >> 40) % 8;
		}
		tally_buffer_release(&bytes);
	}
}

static void what_is_no_recording_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *reason;
	} cases[] = {
		{ "", 0, "the input is empty" },
		{ "PERFILE2", 8, "only the first 8 bytes of one" },
		{ "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0", 16, "it is an ELF file" },
		{ "\37\213\10\0", 4, "it is damaged: it can't be unpacked" },
		{ "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20", 16, "does not begin with PERFILE2" },
		{ "#!/bin/sh\necho hello\n", 21, "it is text" },
		{ "2ELIFREP\0\0\0\0\0\0\0\150", 16, "damaged at offset 8" },
		{ "PERFFILE\150\0\0\0\0\0\0\0", 16, "damaged at offset 8" },
		{ "PERFFILE\0\0\0\0\0\0\0\150", 16, "damaged at offset 8" },
		{ "PERFILE2\150\0\0\0\0\0\0\0", 16, "damaged at offset 8" },
	};
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_perfdata *data;
		struct tally_error err = TALLY_ERROR_NONE;
		assert_true(tally_perfdata_open_memory(cases[i].bytes, cases[i].size, &data, &err) <
			    0);
		assert_null(data);
		assert_non_null(strstr(err.message, cases[i].reason));
	}
	struct tally_perfdata *data;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_perfdata_open("/nonexistent/x.data", &data, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nonexistent/x.data"));
	assert_true(err.hint[0]);
}

/* Kernels have used eight sizes so far.  The tail of a later one is ignored. */
static void attributes_of_any_size_are_read(void **state)
{
	static const uint32_t sizes[] = { 0, 64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 200 };
	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct tally_buffer file = { 0 };
		uint64_t attr[25], ids[2] = { 0, 0 }, room = sizes[i] ? sizes[i] : 64,
				   sample = room + 16 + 104;
		uint64_t header[13] = {
			0x32454c4946524550ull, 104, room + 16, 104, room + 16, sample, 56
		};
		memset(attr, 0x5a, sizeof(attr));
		memcpy(attr, (uint32_t[]){ TALLY_TYPE_HARDWARE, sizes[i] }, 8);
		attr[1] = TALLY_HW_INSTRUCTIONS;
		attr[3] = FIXTURE_SAMPLE_TYPE;
		tally_buffer_append(&file, header, sizeof(header));
		tally_buffer_append(&file, attr, room);
		tally_buffer_append(&file, ids, sizeof(ids));
		fixture_put_sample(&file, 1, 2, 3);
		struct tally_perfdata *data = open_bytes(file.bytes, file.length);
		size_t count;
		const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
		assert_int_equal(count, 1);
		assert_string_equal(events->name, "instructions:k"); /* as 0x5a5a… means */
		assert_int_equal(events->attr.size, room < 136 ? room : 136);
		assert_int_equal(events->attr.config3, room < 136 ? 0 : 0x5a5a5a5a5a5a5a5aull);
		assert_int_equal(events->attr.branch_sample_type,
				 room < 80 ? 0 : 0x5a5a5a5a5a5a5a5aull);
		assert_int_equal(perfdata_walk(data, true).samples, 1);
		assert_undamaged(data);
		tally_perfdata_close(data);
		tally_buffer_release(&file);
	}
}

/* A limit on the file's size simulates a full disk. */
static void a_full_disk_keeps_what_was_written(void **state)
{
	(void)state;
	for (int level = 0; level < 2; level++) {
		struct tally_recorded_event events[2];
		struct tally_perfdata_options options = { .compression_level = level };
		struct tally_perfdata_writer *writer;
		struct tally_buffer records = { 0 };
		struct tally_error err = TALLY_ERROR_NONE;
		struct rlimit before, limit;
		int fd = memfd_create("full", 0);
		fixture_events(events);
		fixture_records(&records, 50000 + (unsigned)level * 100000);
		signal(SIGXFSZ, SIG_IGN);
		getrlimit(RLIMIT_FSIZE, &before);
		limit = before;
		limit.rlim_cur = 200001;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
		assert_int_equal(tally_perfdata_writer_new(fd, events, 2, &options, &writer, NULL),
				 0);
		fixture_features(writer, events);
		int result = 0;
		for (unsigned i = 0; i < 4 && !result; i++)
			result = tally_perfdata_write(writer, records.bytes, records.length, &err);
		if (!result)
			result = tally_perfdata_finish(writer, &err);
		assert_int_equal(result, -EFBIG);
		assert_int_equal(tally_perfdata_write(writer, records.bytes, records.length, &err),
				 -EFBIG);
		assert_true(err.hint[0]);
		assert_int_equal(tally_perfdata_finish(writer, &err), -EFBIG);
		tally_perfdata_writer_free(writer);
		setrlimit(RLIMIT_FSIZE, &before);
		off_t size = lseek(fd, 0, SEEK_END);
		void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
		struct tally_perfdata *data = open_bytes(bytes, (size_t)size);
		struct perfdata_walk walk = perfdata_walk(data, true);
		assert_true(walk.samples > 1000);
		assert_undamaged(data);
		assert_events(data); /* a feature section has their names */
		assert_string_equal(tally_perfdata_feature_text(data, TALLY_FEATURE_HOSTNAME),
				    "fixture-host");
		tally_perfdata_close(data);
		munmap(bytes, (size_t)size);
		close(fd);
		tally_buffer_release(&records);
	}
}

static void a_reader_that_left_is_an_error(void **state)
{
	(void)state;
	struct tally_recorded_event events[2];
	struct tally_perfdata_options options = { .pipe = true };
	struct tally_perfdata_writer *writer;
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer records = { 0 };
	int ends[2];
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	fixture_events(events);
	fixture_records(&records, 10);
	assert_int_equal(tally_perfdata_writer_new(ends[1], events, 2, &options, &writer, NULL), 0);
	close(ends[0]);
	assert_int_equal(tally_perfdata_write(writer, records.bytes, records.length, &err), 0);
	assert_int_equal(tally_perfdata_flush(writer, &err), -EPIPE);
	assert_int_equal(tally_perfdata_finish(writer, &err), -EPIPE);
	tally_perfdata_writer_free(writer);
	close(ends[1]);
	tally_buffer_release(&records);
}

static void a_file_can_not_be_written_to_a_pipe(void **state)
{
	(void)state;
	struct tally_recorded_event events[2];
	struct tally_perfdata_options options = { 0 };
	struct tally_perfdata_writer *writer;
	struct tally_error err = TALLY_ERROR_NONE;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	fixture_events(events);
	assert_int_equal(tally_perfdata_writer_new(ends[1], events, 2, &options, &writer, &err),
			 -ESPIPE);
	assert_true(err.hint[0]);
	close(ends[0]);
	close(ends[1]);
}

/* Standard input: a recording in pipe form is streamed, a file is read whole. */
static void standard_input_takes_both_forms(void **state)
{
	(void)state;
	int kept = dup(STDIN_FILENO);
	for (int as_pipe = 0; as_pipe < 2; as_pipe++) {
		struct tally_buffer bytes = recording(as_pipe, 1, 400, true);
		struct tally_perfdata *data;
		struct tally_error err = TALLY_ERROR_NONE;
		int ends[2];
		assert_int_equal(pipe(ends), 0);
		fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
		assert_int_equal(write(ends[1], bytes.bytes, bytes.length), bytes.length);
		close(ends[1]);
		dup2(ends[0], STDIN_FILENO);
		close(ends[0]);
		if (tally_perfdata_open("-", &data, &err) < 0)
			fail_msg("%s", err.message);
		assert_int_equal(perfdata_walk(data, true).samples, 400);
		assert_undamaged(data);
		assert_events(data);
		tally_perfdata_close(data);
		tally_buffer_release(&bytes);
	}
	dup2(kept, STDIN_FILENO);
	close(kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_container_gives_the_same_records),
		cmocka_unit_test(features_come_back),
		cmocka_unit_test(records_know_their_event),
		cmocka_unit_test(samples_come_in_order_of_time),
		cmocka_unit_test(a_map_comes_before_samples_of_its_time),
		cmocka_unit_test(without_rounds_all_is_in_order),
		cmocka_unit_test(without_times_the_file_is_the_order),
		cmocka_unit_test(records_that_do_not_compress_are_written_plain),
		cmocka_unit_test(a_stream_over_many_compressed_records_is_read),
		cmocka_unit_test(a_bomb_is_damage),
		cmocka_unit_test(auxtrace_payload_is_skipped),
		cmocka_unit_test(damage_is_named_and_what_is_before_it_is_used),
		cmocka_unit_test(an_unfinished_file_is_read_to_its_end),
		cmocka_unit_test(build_ids_without_a_size_lose_their_zeros),
		cmocka_unit_test(records_of_more_than_64_kib_are_passed_over),
		cmocka_unit_test(no_truncation_and_no_flipped_bit_hurts),
		cmocka_unit_test(what_is_no_recording_is_refused_with_a_reason),
		cmocka_unit_test(attributes_of_any_size_are_read),
		cmocka_unit_test(a_full_disk_keeps_what_was_written),
		cmocka_unit_test(a_reader_that_left_is_an_error),
		cmocka_unit_test(a_file_can_not_be_written_to_a_pipe),
		cmocka_unit_test(standard_input_takes_both_forms),
	};
	return cmocka_run_group_tests_name("perfdata", tests, NULL, NULL);
}
