/* libtally's groups, rings and recordings, using only the public headers and the shared library. */
#include "test.h"

#include <tally/data.h>
#include <tally/group.h>
#include <tally/ring.h>

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static void burn(unsigned rounds)
{
	for (volatile unsigned i = 0; i < rounds; i++)
		;
}

/* True if the kernel refuses, because of perf_event_paranoid or a container. */
static bool refused(const void *opened, const char *error)
{
	if (opened || (errno != EACCES && errno != EPERM && errno != ENOSYS))
		return false;
	print_message("# not to be had here: %s\n", error);
	return true;
}

/* ---- groups -------------------------------------------------------------- */

static void group_counts_in_the_order_of_the_expression(void **state)
{
	char error[256] = "";
	struct tally_count counts[3] = { { 0 } };
	struct tally_group *group = tally_group_open(
		"page-faults:u,task-clock:u,context-switches:u", error, sizeof(error));
	(void)state;
	if (refused(group, error))
		skip();
	assert_non_null(group);
	assert_int_equal(tally_group_size(group), 3);
	assert_string_equal(tally_group_name(group, 1), "task-clock:u");
	assert_null(tally_group_name(group, 3));
	assert_int_equal(tally_group_read(group, counts, 1), 3);
	uint64_t faults = counts[0].value;
	assert_int_equal(counts[1].enabled_ns, 0); /* there was room for only one */
	enum { PAGES = 64 };
	long page = sysconf(_SC_PAGESIZE);
	char *memory = aligned_alloc((size_t)page, (size_t)page * PAGES);
	assert_non_null(memory);
	for (int i = 0; i < PAGES; i++)
		((volatile char *)memory)[i * page] = 1;
	assert_int_equal(tally_group_read(group, counts, 3), 3);
	assert_true(counts[0].value >= faults);
	assert_true(counts[1].value > 0);
	assert_int_equal(counts[0].enabled_ns, counts[1].enabled_ns);
	uint64_t values[2] = { 0, 1 };
	assert_int_equal(tally_group_values(group, values, 1), 3);
	assert_true(values[0] >= counts[0].value && values[1] == 1);
	double ns = 0;
	assert_memory_equal(tally_group_read_way(group, &ns), "read(2): ", 9);
	assert_true(ns > 10 && ns < 1e6);
	free(memory);
	tally_group_close(group);
}

static void group_stops_and_starts_over_as_one(void **state)
{
	char error[256] = "";
	struct tally_count before[2], after[2];
	struct tally_group *group = tally_group_open("task-clock:u,page-faults:u", error,
						     sizeof(error));
	(void)state;
	if (refused(group, error))
		skip();
	assert_non_null(group);
	assert_int_equal(tally_group_disable(group), 0);
	assert_int_equal(tally_group_read(group, before, 2), 2);
	burn(1000000);
	assert_int_equal(tally_group_read(group, after, 2), 2);
	assert_int_equal(before[0].raw, after[0].raw);
	assert_int_equal(tally_group_reset(group), 0);
	assert_int_equal(tally_group_read(group, after, 2), 2);
	assert_int_equal(after[0].raw, 0);
	assert_int_equal(tally_group_enable(group), 0);
	burn(1000000);
	assert_int_equal(tally_group_read(group, after, 2), 2);
	assert_true(after[0].raw > 0);
	tally_group_close(group);
}

static void group_that_cannot_be_says_why(void **state)
{
	char error[256] = "";
	(void)state;
	assert_null(tally_group_open("page-faults,no-such-event", error, sizeof(error)));
	assert_non_null(strstr(error, "no-such-event"));
	assert_int_equal(errno, ENOENT);
	assert_null(tally_group_open("", error, sizeof(error)));
	assert_null(tally_group_open("page-faults,", NULL, 0));
	tally_group_close(NULL);
}

/* ---- rings --------------------------------------------------------------- */

static void ring_gives_samples_of_this_thread(void **state)
{
	char error[256] = "";
	struct tally_event_ring_options options = { .size = sizeof(options), .period = 200000 };
	struct tally_event_ring *ring = tally_event_ring_open("task-clock:u", &options, error,
							      sizeof(error));
	(void)state;
	if (refused(ring, error))
		skip();
	assert_non_null(ring);
	burn(20000000);
	assert_int_equal(tally_event_ring_disable(ring), 0);
	const struct tally_record_header *header;
	struct tally_record record;
	unsigned samples = 0;
	uint64_t last = 0;
	while ((header = tally_event_ring_next(ring))) {
		assert_int_equal(tally_event_ring_decode(ring, header, &record), 0);
		if (header->type != TALLY_RECORD_SAMPLE)
			continue;
		assert_int_equal(record.sample.tid, gettid());
		assert_int_equal(record.sample.pid, getpid());
		assert_true(record.sample.time > last);
		assert_int_equal(record.sample.type, tally_event_ring_attr(ring)->sample_type);
		last = record.sample.time;
		samples++;
	}
	assert_true(samples > 10);
	assert_int_equal(tally_event_ring_wait(ring, 0), 0);
	tally_event_ring_close(ring);
}

static void ring_tells_what_found_no_room(void **state)
{
	char error[256] = "";
	struct tally_event_ring_options options = { .size = sizeof(options),
						    .period = 1,
						    .pages = 1 };
	struct tally_event_ring *ring = tally_event_ring_open("page-faults:u", &options, error,
							      sizeof(error));
	(void)state;
	if (refused(ring, error))
		skip();
	assert_non_null(ring);
	enum { PAGES = 1000 };
	long page = sysconf(_SC_PAGESIZE);
	unsigned seen = 0;
	for (int round = 0; round < 2; round++) {
		char *memory = aligned_alloc((size_t)page, (size_t)page * PAGES);
		assert_non_null(memory);
		for (int i = 0; i < PAGES; i++)
			((volatile char *)memory)[i * page] = 1;
		free(memory);
		const struct tally_record_header *header;
		while ((header = tally_event_ring_next(ring)))
			seen += header->type == TALLY_RECORD_SAMPLE;
	}
	assert_true(seen > 0);
	assert_true(tally_event_ring_lost(ring) > 0);
	tally_event_ring_close(ring);
}

struct gates {
	int tid[2], go[2]; /* pipes */
};

static void *worker(void *context)
{
	const struct gates *gates = context;
	pid_t tid = gettid();
	char byte;
	if (write(gates->tid[1], &tid, sizeof(tid)) == sizeof(tid) &&
	    read(gates->go[0], &byte, 1) == 1)
		burn(10000000);
	return NULL;
}

static void ring_of_another_thread_ends_with_it(void **state)
{
	char error[256] = "";
	struct tally_event_ring_options options = { .size = sizeof(options),
						    .pid = 1 << 22,
						    .frequency = 4000 };
	(void)state;
	assert_null(tally_event_ring_open("task-clock:u", &options, error, sizeof(error)));
	options.period = 5;
	assert_null(tally_event_ring_open("task-clock:u", &options, error, sizeof(error)));
	assert_int_equal(errno, EINVAL);
	options = (struct tally_event_ring_options){ .size = sizeof(options), .pages = 3 };
	assert_null(tally_event_ring_open("task-clock:u", &options, error, sizeof(error)));
	assert_non_null(strstr(error, "power of two"));
	tally_event_ring_close(NULL);

	struct gates gates;
	pthread_t thread;
	pid_t tid = 0;
	assert_int_equal(pipe(gates.tid) | pipe(gates.go), 0);
	assert_int_equal(pthread_create(&thread, NULL, worker, &gates), 0);
	assert_int_equal(read(gates.tid[0], &tid, sizeof(tid)), sizeof(tid));
	options = (struct tally_event_ring_options){ .size = sizeof(options),
						     .pid = tid,
						     .frequency = 4000 };
	struct tally_event_ring *ring = tally_event_ring_open("task-clock:u", &options, error,
							      sizeof(error));
	bool none = refused(ring, error);
	assert_int_equal(write(gates.go[1], "x", 1), 1);
	if (ring) {
		unsigned samples = 0;
		int result;
		while ((result = tally_event_ring_wait(ring, 10000)) > 0) {
			const struct tally_record_header *header;
			while ((header = tally_event_ring_next(ring)))
				samples += header->type == TALLY_RECORD_SAMPLE;
		}
		assert_int_equal(result, -1);
		assert_int_equal(errno, EPIPE);
		assert_true(samples > 0);
		tally_event_ring_close(ring);
	}
	pthread_join(thread, NULL);
	for (int end = 0; end < 2; end++) {
		close(gates.tid[end]);
		close(gates.go[end]);
	}
	assert_true(ring || none);
	if (none)
		skip();
}

/* ---- recordings ---------------------------------------------------------- */

static void recording_gives_samples_and_records(void **state)
{
	char error[256] = "";
	const struct tally_data_sample *sample;
	const struct tally_record *record;
	const char *path = getenv("RECORDING");
	unsigned samples = 0, again = 0, records = 0;
	(void)state;
	assert_non_null(path);
	struct tally_data *data = tally_data_open(path, error, sizeof(error));
	assert_non_null(data);
	uint64_t last = 0;
	while (tally_data_next(data, &sample, error, sizeof(error)) > 0) {
		assert_true(sample->frame_count > 0);
		assert_true(sample->event[0] && sample->comm[0]);
		assert_true(sample->time >= last);
		assert_int_equal(sample->record->sample.pid, sample->pid);
		assert_false(sample->frames[sample->frame_count - 1].inlined);
		for (size_t i = 0; i < sample->frame_count; i++)
			assert_true(sample->frames[i].object[0] != '\0');
		last = sample->time;
		samples++;
	}
	assert_null(tally_data_damage(data));
	tally_data_close(data);
	assert_true(samples > 0);

	data = tally_data_open(path, error, sizeof(error));
	assert_non_null(data);
	while (tally_data_next_record(data, &record, error, sizeof(error)) > 0) {
		again += record->header.type == TALLY_RECORD_SAMPLE;
		records++;
	}
	tally_data_close(data);
	assert_int_equal(samples, again);
	assert_true(records > samples);
}

static void recording_that_is_none_says_so(void **state)
{
	char error[256] = "";
	(void)state;
	assert_null(tally_data_open("/nowhere/tally.data", error, sizeof(error)));
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(error, "/nowhere/tally.data"));
	assert_null(tally_data_open("/etc/passwd", error, sizeof(error)));
	assert_true(error[0] != '\0');
	assert_null(tally_data_open("/dev/null", NULL, 0));
	tally_data_close(NULL);
}

static void types_have_names(void **state)
{
	(void)state;
	assert_string_equal(tally_record_type_name(TALLY_RECORD_SAMPLE), "SAMPLE");
	assert_null(tally_record_type_name(60));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(group_counts_in_the_order_of_the_expression),
		cmocka_unit_test(group_stops_and_starts_over_as_one),
		cmocka_unit_test(group_that_cannot_be_says_why),
		cmocka_unit_test(ring_gives_samples_of_this_thread),
		cmocka_unit_test(ring_tells_what_found_no_room),
		cmocka_unit_test(ring_of_another_thread_ends_with_it),
		cmocka_unit_test(recording_gives_samples_and_records),
		cmocka_unit_test(recording_that_is_none_says_so),
		cmocka_unit_test(types_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
