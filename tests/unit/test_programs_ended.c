/* A recording of many short programs.  While it is read, memory follows the living programs, and
 * the result is the same as if no program were forgotten. */
#include "test.h"

#include "profile_fixture.h"

enum {
	PROGRAMS = 6000,
	KEPT_MAX = 1500, /* the most tasks kept: ended and living ones */
	SHELL = 0x50000000, SERVER, FIRST,
	PROGRAM_START = 0x20000, LIBRARY_START = 0x30000, SERVER_START = 0x40000, SIZE = 0x1000,
};

struct storm {
	struct profile_fixture fixture;
	uint64_t samples;
	bool no_times; /* EXIT records have no times */
};

static void put_task(struct storm *storm, uint32_t type, uint32_t pid, uint32_t tid,
		     uint32_t parent)
{
	uint64_t time = ++storm->fixture.time_ns,
		 told = storm->no_times && type == TALLY_RECORD_EXIT ? 0 : time;
	const uint64_t words[] = { fixture_ids_of(pid, parent),
				   fixture_ids_of(tid, parent),
				   time,
				   fixture_ids_of(pid, tid),
				   told,
				   0,
				   1 };
	fixture_put_words(&storm->fixture, type, 0, words, 7);
}

static void put_comm(struct storm *storm, uint32_t pid, const char *comm)
{
	uint64_t words[7] = { fixture_ids_of(pid, pid), 0, 0, fixture_ids_of(pid, pid),
			      ++storm->fixture.time_ns, 0, 1 };
	strncpy((char *)&words[1], comm, 15);
	fixture_put_words(&storm->fixture, TALLY_RECORD_COMM, TALLY_MISC_COMM_EXEC, words, 7);
}

static void put_map(struct storm *storm, uint32_t pid, uint64_t start, const char *path)
{
	uint64_t words[10] = {
		fixture_ids_of(pid, pid), start, SIZE, 0, 0, 0, fixture_ids_of(pid, pid),
		++storm->fixture.time_ns, 0,     1
	};
	strncpy((char *)&words[4], path, 15);
	fixture_put_words(&storm->fixture, TALLY_RECORD_MMAP, TALLY_MISC_USER, words, 10);
}

static void put_sample(struct storm *storm, uint32_t pid, uint32_t tid, uint64_t address)
{
	const uint64_t words[] = { 1,
				   address,
				   fixture_ids_of(pid, tid),
				   ++storm->fixture.time_ns,
				   0,
				   1,
				   2,
				   TALLY_CONTEXT_USER,
				   address };
	fixture_put_words(&storm->fixture, TALLY_RECORD_SAMPLE, TALLY_MISC_USER, words, 9);
	storm->samples++;
}

/* Makes the recording.  A server's leader ends at the start, its thread at the end.  Every program
 * in between starts, is sampled, ends, and is sampled once more. */
static void make(struct storm *storm)
{
	const uint32_t thread = SERVER + 0x10000000;
	put_task(storm, TALLY_RECORD_FORK, SERVER, SERVER, 1);
	put_comm(storm, SERVER, "server");
	put_map(storm, SERVER, SERVER_START, "/bin/server");
	put_task(storm, TALLY_RECORD_FORK, SERVER, thread, SERVER);
	put_task(storm, TALLY_RECORD_EXIT, SERVER, SERVER, 1);
	put_task(storm, TALLY_RECORD_FORK, SHELL, SHELL, 1);
	put_comm(storm, SHELL, "shell");
	put_map(storm, SHELL, LIBRARY_START, "/lib/library");
	for (uint32_t pid = FIRST; pid < FIRST + PROGRAMS; pid++) {
		put_task(storm, TALLY_RECORD_FORK, pid, pid, SHELL);
		put_sample(storm, pid, pid, LIBRARY_START + 0x10);
		put_comm(storm, pid, "program");
		put_map(storm, pid, PROGRAM_START, "/bin/program");
		put_sample(storm, pid, pid, PROGRAM_START + 0x10);
		put_task(storm, TALLY_RECORD_EXIT, pid, pid, SHELL);
		put_sample(storm, pid, pid, PROGRAM_START + 0x20);
		put_sample(storm, SERVER, thread, SERVER_START + 0x10);
	}
	fixture_finish(&storm->fixture, 0, 0);
}

static struct tally_profile *read_storm(const struct storm *storm, bool names_alone)
{
	struct tally_profile_options options = { .only_places = names_alone,
						 .merge_threads = names_alone };
	struct tally_recording *recording;
	struct tally_profile *profile;
	uint64_t samples, period;
	assert_int_equal(tally_recording_open_memory(storm->fixture.bytes, storm->fixture.size,
						     &recording, NULL),
			 0);
	assert_int_equal(tally_profile_new(recording, &options, &profile, NULL), 0);
	tally_profile_totals(profile, 0, &samples, &period);
	assert_int_equal(samples, storm->samples);
	/* Each address is in the mapping that held it: one of the shell's, two of the program's,
	 * one of the server's. */
	assert_int_equal(profile->places.places.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_not_equal(profile->places.places.items[i].file, TALLY_FILE_NONE);
	return profile;
}

static size_t mappings_of(const struct tally_tasks *tasks)
{
	size_t count = 0;
	for (size_t i = 0; i < tasks->processes.count; i++) {
		const struct tally_mappings *mappings = &tasks->processes.items[i].mappings;
		const struct tally_mapping *mapping = NULL;
		while ((mapping = tally_mappings_behind(mappings, mapping ? mapping->end : 0)))
			count++;
	}
	return count;
}

static void maps_are_those_of_the_living_and_the_last(void **state)
{
	struct storm storm = { 0 };
	(void)state;
	make(&storm);
	struct tally_profile *profile = read_storm(&storm, false);
	const struct tally_tasks *tasks = &profile->recording->tasks;
	assert_in_range(tasks->processes.count, 2, KEPT_MAX);
	assert_in_range(tasks->processes.capacity, 2, 2 * KEPT_MAX);
	assert_in_range(mappings_of(tasks), 2, 2 * KEPT_MAX);
	assert_true(tasks->threads.count >= PROGRAMS); /* rows refer to threads by number */
	fixture_release(&storm.fixture, profile);
}

static void for_names_alone_nothing_is_kept_of_who_has_ended(void **state)
{
	struct storm storm = { 0 };
	(void)state;
	make(&storm);
	struct tally_profile *profile = read_storm(&storm, true);
	const struct tally_tasks *tasks = &profile->recording->tasks;
	assert_in_range(tasks->processes.capacity, 2, 2 * KEPT_MAX);
	assert_in_range(tasks->threads.capacity, 2, 2 * KEPT_MAX);
	assert_in_range(tasks->thread_index.capacity, 2, 4 * KEPT_MAX);
	assert_int_equal(profile->merged_threads.count, 0);
	assert_int_equal(profile->classes.count, 1);
	assert_int_equal(profile->rows.rows.count, 4);
	fixture_release(&storm.fixture, profile);
}

/* It may be read before samples that were taken earlier. */
static void an_end_without_a_time_ends_nothing(void **state)
{
	struct storm storm = { .no_times = true };
	(void)state;
	make(&storm);
	struct tally_profile *profile = read_storm(&storm, false);
	assert_int_equal(profile->recording->tasks.processes.count, PROGRAMS + 2);
	fixture_release(&storm.fixture, profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_are_those_of_the_living_and_the_last),
		cmocka_unit_test(for_names_alone_nothing_is_kept_of_who_has_ended),
		cmocka_unit_test(an_end_without_a_time_ends_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
