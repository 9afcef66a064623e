/* Compares ordering with its oracle on random recordings: seekable and piped, plain and compressed,
 * mapped and read, with and without rounds, with the same and with different places for the events'
 * times, with misaligned records. */
#include "test.h"

#include "base/buffer.h"
#include "order_oracle.h"
#include "perfdata/perfdata.h"
#include "perfdata/perfdata_internal.h"
#include "random.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TYPE \
	(TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | \
	 TALLY_SAMPLE_CPU)

enum { IDS = 3, CPUS_MAX = 9 };

struct kind {
	const char *name;
	bool pipe, rounds, agree; /* `agree`: all events have the same sample_type */
	int level;
	unsigned cpus;
	unsigned passes, in_pass; /* `in_pass`: records that a CPU writes between two drains */
	unsigned filler;          /* words that make a sample larger */
	bool disorder;            /* times that no ring would contain */
	bool odd;                 /* record sizes that leave later records misaligned */
	bool dummy;               /* the second event has no samples and another sample_type */
};

static void put(struct tally_buffer *out, uint32_t type, const void *body, size_t size)
{
	struct tally_record_header header = { type, TALLY_MISC_USER,
					      (uint16_t)(sizeof(header) + size) };
	tally_buffer_append(out, &header, sizeof(header));
	tally_buffer_append(out, body, size);
}

/* Adds a sample, or now and then another record, of a CPU at a time. */
static void put_record(struct tally_buffer *out, const struct kind *kind, unsigned cpu,
		       uint64_t time, uint64_t *random)
{
	uint64_t words[64] = { 0 }, dice = next_random(random);
	unsigned count = 0, event = dice >> 8 & 1,
		 filler = kind->filler ? (unsigned)(dice >> 16) % kind->filler : 0;
	uint64_t id = 10 * (event + 1) + cpu % IDS;
	if (dice % 16 == 0) /* without a time: given out at once */
		time = dice & 16 ? 0 : UINT64_MAX;
	if (dice % 16 < 4 || (kind->dummy && event)) { /* THROTTLE with its trailer */
		words[count++] = time, words[count++] = id, words[count++] = dice;
		words[count++] = 7, words[count++] = time, words[count++] = cpu;
		if (!kind->agree && event)
			words[count++] = 0; /* STREAM_ID, which comes before CPU */
		words[count++] = dice % 64 == 1 ? 99 : id;
		put(out, TALLY_RECORD_THROTTLE, words, 8 * count);
		return;
	}
	words[count++] = dice % 64 == 5 ? 99 : id; /* sometimes an id that no event has */
	words[count++] = dice, words[count++] = 7;
	words[count++] = time;
	if (!kind->agree && event)
		words[count++] = 5;
	words[count++] = cpu;
	put(out, TALLY_RECORD_SAMPLE, words, 8 * (count + filler));
	if (kind->odd && dice % 32 == 7)
		put(out, TALLY_RECORD_TIME_CONV, words, 8 + dice % 8);
	if (dice % 512 == 9)
		put(out, TALLY_RECORD_ID_INDEX, words, 16);
}

static void put_passes(struct tally_buffer *out, const struct kind *kind, uint64_t *random)
{
	uint64_t clocks[CPUS_MAX], now = 1000;
	for (unsigned cpu = 0; cpu < kind->cpus; cpu++)
		clocks[cpu] = now + next_random(random) % 8;
	for (unsigned pass = 0; pass < kind->passes; pass++) {
		for (unsigned cpu = 0; cpu < kind->cpus; cpu++) {
			now += kind->in_pass;
			while (clocks[cpu] < now) {
				uint64_t time = clocks[cpu] += next_random(random) % 3;
				if (kind->disorder && !(next_random(random) % 3))
					time = 1000 + next_random(random) % (now - 999);
				put_record(out, kind, cpu, time, random);
			}
		}
		if (kind->rounds)
			put(out, TALLY_RECORD_FINISHED_ROUND, NULL, 0);
	}
}

/* Returns a writer for a recording of two events.  The events must live as long as the writer. */
static struct tally_perfdata_writer *new_writer(int fd, const struct kind *kind,
						struct tally_recorded_event events[2])
{
	static const uint64_t ids[2][IDS] = { { 10, 11, 12 }, { 20, 21, 22 } };
	struct tally_perfdata_options options = { .pipe = kind->pipe,
						  .compression_level = kind->level };
	struct tally_perfdata_writer *writer;
	for (unsigned i = 0; i < 2; i++)
		events[i] = (struct tally_recorded_event){
			.attr = { .type = TALLY_TYPE_SOFTWARE,
				  .sample_period = 1,
				  .flags = TALLY_ATTR_SAMPLE_ID_ALL,
				  .config = TALLY_SW_CPU_CLOCK,
				  .sample_type = TYPE },
			.name = i ? "second" : "first",
			.ids = ids[i],
			.id_count = IDS,
		};
	if (kind->dummy) {
		events[1].attr.config = TALLY_SW_DUMMY;
		events[1].attr.sample_type &= ~(uint64_t)TALLY_SAMPLE_IP;
	} else if (!kind->agree) {
		events[1].attr.sample_type |= TALLY_SAMPLE_STREAM_ID;
	}
	assert_int_equal(tally_perfdata_writer_new(fd, events, 2, &options, &writer, NULL), 0);
	return writer;
}

/* Writes the recording to `path`. */
static void write_recording(const char *path, const struct kind *kind, uint64_t *random)
{
	struct tally_buffer records = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	put_passes(&records, kind, random);
	struct tally_recorded_event events[2];
	struct tally_perfdata_writer *writer = new_writer(fd, kind, events);
	/* Writes in pieces, so that COMPRESSED records end anywhere. */
	for (size_t at = 0, end = 0; at < records.length; at = end) {
		size_t limit = at + next_random(random) % (256 << 10);
		do {
			struct tally_record_header header;
			memcpy(&header, records.bytes + end, sizeof(header));
			end += header.size;
		} while (end < limit && end < records.length);
		assert_int_equal(tally_perfdata_write(writer, records.bytes + at, end - at, NULL),
				 0);
		if (kind->level && next_random(random) % 2)
			assert_int_equal(tally_perfdata_flush(writer, NULL), 0);
	}
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	tally_perfdata_writer_free(writer);
	tally_buffer_release(&records);
	close(fd);
}

static struct tally_perfdata *open_path(const char *path)
{
	struct tally_perfdata *data;
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_perfdata_open(path, &data, &err) < 0)
		fail_msg("%s", err.message);
	return data;
}

/* Compares both readers.  Returns how many records they gave. */
static size_t compare(const char *name, struct tally_perfdata *data,
		      struct tally_perfdata *oracle_data)
{
	struct order_oracle oracle = { .data = oracle_data };
	struct tally_order *order;
	struct tally_raw_record given, wanted;
	size_t count = 0, unused;
	assert_int_equal(tally_order_new(data, &order, NULL), 0);
	for (;; count++) {
		int result = tally_order_next(order, &given, NULL),
		    expected = order_oracle_next(&oracle, &wanted);
		if (result != expected)
			fail_msg("%s: record %zu: %d instead of %d", name, count, result, expected);
		if (result <= 0)
			break;
		const struct tally_recorded_event *events = tally_perfdata_events(data, &unused);
		const struct tally_recorded_event *wanted_events = tally_perfdata_events(
			oracle_data, &unused);
		if (given.size != wanted.size || given.file_offset != wanted.file_offset ||
		    memcmp(given.bytes, wanted.bytes, given.size) || (uintptr_t)given.bytes % 8 ||
		    given.event - events != wanted.event - wanted_events)
			fail_msg(
				"%s: record %zu is another: of %zu bytes at %llu, not of %zu at "
				"%llu",
				name, count, given.size, (unsigned long long)given.file_offset,
				wanted.size, (unsigned long long)wanted.file_offset);
	}
	tally_order_free(order);
	order_oracle_release(&oracle);
	tally_perfdata_close(data);
	tally_perfdata_close(oracle_data);
	return count;
}

/* Returns a reader of a FIFO that a child writes. */
static struct tally_perfdata *open_fifo(const char *path, const char *bytes, size_t size)
{
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	if (fork() == 0) {
		int fd = open(path, O_WRONLY);
		for (ssize_t wrote = 0; size && wrote >= 0; bytes += wrote, size -= (size_t)wrote)
			wrote = write(fd, bytes, size);
		_exit(0);
	}
	return open_path(path);
}

/* Compares reading from the file, from memory, and from a descriptor that can't seek. */
static void compare_all_ways(const struct kind *kind, uint64_t *random)
{
	char path[] = "/tmp/tally-order-XXXXXX";
	struct tally_perfdata *data, *oracle;
	struct stat status;
	close(mkstemp(path));
	write_recording(path, kind, random);
	size_t count = compare(kind->name, open_path(path), open_path(path));
	int fd = open(path, O_RDONLY);
	assert_int_equal(fstat(fd, &status), 0);
	char *bytes = malloc((size_t)status.st_size);
	assert_int_equal(read(fd, bytes, (size_t)status.st_size), status.st_size);
	close(fd);
	unlink(path);
	assert_true(count > kind->passes * kind->cpus);
	assert_int_equal(tally_perfdata_open_memory(bytes, (size_t)status.st_size, &data, NULL), 0);
	assert_int_equal(tally_perfdata_open_memory(bytes, (size_t)status.st_size, &oracle, NULL),
			 0);
	assert_int_equal(compare(kind->name, data, oracle), count);
	data = open_fifo(path, bytes, (size_t)status.st_size);
	oracle = open_fifo(path, bytes, (size_t)status.st_size);
	assert_int_equal(compare(kind->name, data, oracle), count);
	assert_true(wait(NULL) > 0 && wait(NULL) > 0);
	unlink(path);
	free(bytes);
}

static void it_is_that_of_a_sort(void **state)
{
	static const struct kind kinds[] = {
		{ .name = "a CPU",
		  .rounds = true,
		  .agree = true,
		  .cpus = 1,
		  .passes = 20,
		  .in_pass = 300 },
		{ .name = "CPUs",
		  .rounds = true,
		  .agree = true,
		  .cpus = 4,
		  .passes = 30,
		  .in_pass = 300 },
		{ .name = "small rounds",
		  .rounds = true,
		  .agree = true,
		  .cpus = 3,
		  .passes = 400,
		  .in_pass = 5 },
		{ .name = "other times", .rounds = true, .cpus = 5, .passes = 20, .in_pass = 200 },
		{ .name = "a dummy",
		  .rounds = true,
		  .agree = true,
		  .cpus = 3,
		  .passes = 20,
		  .in_pass = 200,
		  .dummy = true },
		{ .name = "no rounds", .agree = true, .cpus = 3, .passes = 20, .in_pass = 300 },
		{ .name = "disorder",
		  .rounds = true,
		  .agree = true,
		  .cpus = 2,
		  .passes = 15,
		  .in_pass = 300,
		  .disorder = true },
		{ .name = "disorder, no rounds",
		  .cpus = 2,
		  .passes = 8,
		  .in_pass = 300,
		  .disorder = true },
		{ .name = "misaligned",
		  .rounds = true,
		  .cpus = 3,
		  .passes = 20,
		  .in_pass = 300,
		  .odd = true },
		{ .name = "compressed",
		  .rounds = true,
		  .agree = true,
		  .level = 1,
		  .cpus = 4,
		  .passes = 30,
		  .in_pass = 300 },
		{ .name = "compressed, misaligned",
		  .rounds = true,
		  .level = 1,
		  .cpus = 3,
		  .passes = 20,
		  .in_pass = 300,
		  .odd = true },
		{ .name = "pipe",
		  .pipe = true,
		  .rounds = true,
		  .agree = true,
		  .cpus = 4,
		  .passes = 30,
		  .in_pass = 300 },
		{ .name = "pipe, misaligned",
		  .pipe = true,
		  .rounds = true,
		  .cpus = 2,
		  .passes = 20,
		  .in_pass = 300,
		  .odd = true },
		{ .name = "large",
		  .rounds = true,
		  .agree = true,
		  .cpus = 4,
		  .passes = 12,
		  .in_pass = 250,
		  .filler = 50 },
		{ .name = "large, compressed",
		  .rounds = true,
		  .level = 1,
		  .cpus = 9,
		  .passes = 8,
		  .in_pass = 120,
		  .filler = 50 },
		{ .name = "large, misaligned",
		  .rounds = true,
		  .cpus = 2,
		  .passes = 8,
		  .in_pass = 800,
		  .filler = 50,
		  .odd = true },
	};
	uint64_t random = 88172645463325252ull;
	(void)state;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (unsigned times = 0; times < 3; times++)
			compare_all_ways(&kinds[i], &random);
}

static void add_event(struct tally_perfdata *data, uint64_t config, uint64_t sample_type)
{
	const struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
					 .config = config,
					 .sample_type = sample_type,
					 .flags = TALLY_ATTR_SAMPLE_ID_ALL };
	uint64_t id = 100 + data->event_count;
	assert_int_equal(tally_perfdata_add_event(data, &attr, sizeof(attr), &id, 1), 0);
}

/* Tests whether times are found without looking up the event.  They are not if a dummy event comes
 * first, or if its trailer differs. */
static void a_dummy_s_samples_keep_no_times_from_agreeing(void **state)
{
	const uint64_t type = TYPE, without_ip = TYPE & ~(uint64_t)TALLY_SAMPLE_IP,
		       other = TYPE | TALLY_SAMPLE_STREAM_ID;
	const struct { struct { uint64_t config, type; } events[3]; bool agree;
	} cases[] = {
		{ { { TALLY_SW_CPU_CLOCK, type },
		    { TALLY_SW_DUMMY, without_ip },
		    { TALLY_SW_DUMMY, type } },
		  true },
		{ { { TALLY_SW_CPU_CLOCK, type },
		    { TALLY_SW_DUMMY, without_ip },
		    { TALLY_SW_CPU_CLOCK, type } },
		  true },
		{ { { TALLY_SW_CPU_CLOCK, type },
		    { TALLY_SW_DUMMY, without_ip },
		    { TALLY_SW_CPU_CLOCK, without_ip } },
		  false },
		{ { { TALLY_SW_CPU_CLOCK, type },
		    { TALLY_SW_DUMMY, other },
		    { TALLY_SW_CPU_CLOCK, type } },
		  false },
		{ { { TALLY_SW_DUMMY, without_ip },
		    { TALLY_SW_CPU_CLOCK, type },
		    { TALLY_SW_CPU_CLOCK, type } },
		  false },
		{ { { TALLY_SW_DUMMY, type },
		    { TALLY_SW_CPU_CLOCK, type },
		    { TALLY_SW_DUMMY, without_ip } },
		  true },
	};
	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tally_perfdata data = { 0 };
		for (unsigned event = 0; event < 3; event++)
			add_event(&data, cases[i].events[event].config,
				  cases[i].events[event].type);
		assert_int_equal(data.times_agree, cases[i].agree);
		tally_map_release(&data.event_by_id);
		tally_arena_release(&data.arena);
	}
}

/* The kernel never writes samples of a dummy event.  In a file that has some, their times are read
 * where the first event's times are; each is given once, and the other samples keep their order. */
static void samples_that_claim_to_be_a_dummy_s_disturb_no_others(void **state)
{
	static const uint64_t id_of[2] = { 10, 20 };
	static const struct {
		unsigned event;
		uint64_t time;
	} samples[] = { { 0, 30 }, { 1, 20 }, { 0, 10 }, { 1, 40 } };
	static const uint64_t wanted[] = { 10, 20, 30, 40 };
	const struct kind kind = { .dummy = true };
	char path[] = "/tmp/tally-order-XXXXXX";
	struct tally_buffer records = { 0 };
	struct tally_order *order;
	struct tally_raw_record given;
	uint64_t time;
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		/* IDENTIFIER, IP, TID, TIME, CPU.  Here a dummy's layout has no IP, so its time
		 * would be where CPU is. */
		const uint64_t words[] = { id_of[samples[i].event], 1, 2, samples[i].time,
					   100 - samples[i].time };
		put(&records, TALLY_RECORD_SAMPLE, words, sizeof(words));
	}
	int fd = mkstemp(path);
	struct tally_recorded_event events[2];
	struct tally_perfdata_writer *writer = new_writer(fd, &kind, events);
	assert_int_equal(tally_perfdata_write(writer, records.bytes, records.length, NULL), 0);
	assert_int_equal(tally_perfdata_finish(writer, NULL), 0);
	tally_perfdata_writer_free(writer);
	close(fd);
	struct tally_perfdata *data = open_path(path);
	assert_int_equal(tally_order_new(data, &order, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(tally_order_next(order, &given, NULL), 1);
		memcpy(&time, (const uint8_t *)given.bytes + 32, sizeof(time));
		assert_int_equal(time, wanted[i]);
	}
	assert_int_equal(tally_order_next(order, &given, NULL), 0);
	tally_order_free(order);
	tally_perfdata_close(data);
	unlink(path);
	tally_buffer_release(&records);
}

/* Large enough that a thread unpacks ahead; another build runs it under ThreadSanitizer. */
static void compressed_recordings_are_unpacked_ahead(void **state)
{
	static const struct kind kinds[] = {
		{ .name = "ahead",
		  .rounds = true,
		  .agree = true,
		  .level = 1,
		  .cpus = 4,
		  .passes = 40,
		  .in_pass = 600,
		  .filler = 20 },
		{ .name = "ahead, misaligned",
		  .rounds = true,
		  .level = 1,
		  .cpus = 2,
		  .passes = 40,
		  .in_pass = 1600,
		  .odd = true,
		  .filler = 8 },
		{ .name = "ahead, no rounds",
		  .agree = true,
		  .level = 1,
		  .cpus = 3,
		  .passes = 40,
		  .in_pass = 900 },
	};
	uint64_t random = 1234567;
	unsigned threads = 0;
	(void)state;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char path[] = "/tmp/tally-order-XXXXXX";
		struct stat status;
		close(mkstemp(path));
		write_recording(path, &kinds[i], &random);
		assert_int_equal(stat(path, &status), 0);
		assert_true(status.st_size > 3 << 19);
		struct tally_perfdata *oracle = open_path(path);
		oracle->unpacker.ahead_tried = true; /* no thread */
		assert_true(compare(kinds[i].name, open_path(path), oracle) > 100000);
		/* The reader is closed before the end. */
		struct tally_perfdata *data = open_path(path);
		struct tally_raw_record raw;
		for (unsigned k = 0; k < 1000; k++)
			assert_int_equal(tally_perfdata_next(data, &raw, NULL), 1);
		threads += data->unpacker.ahead != NULL;
		tally_perfdata_close(data);
		unlink(path);
	}
	if (!threads) {
		print_message("SKIP: there is one CPU\n");
		skip();
	}
}

/* A round with more than the blocks can hold: the rest comes from the mapping. */
static void a_round_of_many_megabytes_is_held(void **state)
{
	static const struct kind kind = { .name = "a round of many megabytes",
					  .agree = true,
					  .cpus = 8,
					  .passes = 8,
					  .in_pass = 250,
					  .filler = 55 };
	uint64_t random = 4711;
	(void)state;
	compare_all_ways(&kind, &random);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_that_of_a_sort),
		cmocka_unit_test(a_dummy_s_samples_keep_no_times_from_agreeing),
		cmocka_unit_test(samples_that_claim_to_be_a_dummy_s_disturb_no_others),
		cmocka_unit_test(compressed_recordings_are_unpacked_ahead),
		cmocka_unit_test(a_round_of_many_megabytes_is_held),
	};
	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
