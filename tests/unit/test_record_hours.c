/* The memory of a recorder after hours: tens of thousands of ended programs take no more than a few
 * do, and tasks whose EXIT record was lost take none. */
#include "object_fixture.h"
#include "recorder/recorder_state.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROGRAMS = 20000, A_PASS = 40, KEPT_MAX = 17500, NOBODY = 1 << 30 };
static const uint64_t MINUTE_NS = 61000000000;

static void tell(struct tally_recorder *recorder, const struct tally_record *record)
{
	assert_int_equal(tally_recorder_take_task(&recorder->tasks, record, NULL), 0);
}

static void task(struct tally_recorder *recorder, uint32_t type, uint32_t pid, uint32_t tid)
{
	struct tally_record record = { .header.type = type };
	record.task.pid = record.task.parent_pid = pid;
	record.task.tid = tid;
	if (type == TALLY_RECORD_FORK && pid == tid)
		record.task.parent_pid = record.task.parent_tid = 1;
	tell(recorder, &record);
}

static void map(struct tally_recorder *recorder, uint32_t pid, const char *path)
{
	struct tally_record record = { .header.type = TALLY_RECORD_MMAP2 };
	record.mmap = (struct tally_record_mmap){ .pid = pid,
						  .tid = pid,
						  .start = 0x1000,
						  .length = 0x1000,
						  .protection = 5,
						  .filename = path };
	tell(recorder, &record);
}

static void pass(struct tally_recorder *recorder)
{
	assert_int_equal(tally_recorder_drain(recorder, false, NULL), 0);
}

static void run_programs(struct tally_recorder *recorder)
{
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/nowhere/%u", i);
		task(recorder, TALLY_RECORD_FORK, NOBODY + i, NOBODY + i);
		map(recorder, NOBODY + i, path);
		task(recorder, TALLY_RECORD_EXIT, NOBODY + i, NOBODY + i);
		if (i % A_PASS == 0)
			pass(recorder);
	}
	pass(recorder);
	pass(recorder);
}

static bool contains(const struct tally_buffer *bytes, const char *text)
{
	return memmem(bytes->bytes, bytes->length, text, strlen(text) + 1) != NULL;
}

static void of_many_programs_no_more_is_kept_than_of_some(void **state)
{
	struct tally_recorder recorder = { .tasks.objects.is_live = true };
	(void)state;
	tally_recorder_init(&recorder);
	run_programs(&recorder);
	assert_in_range(recorder.tasks.known.files.count, KEPT_MAX / 2, KEPT_MAX);
	assert_in_range(recorder.tasks.known.strings.count, 1, KEPT_MAX);
	assert_in_range(recorder.tasks.known.file_index.count, 1, KEPT_MAX);
	assert_in_range(recorder.tasks.objects.entries.count, 0, KEPT_MAX);
	assert_int_equal(recorder.tasks.known.processes.count, 0);
	assert_int_equal(recorder.tasks.known.threads.count, 0);
	tally_recorder_tasks_release(&recorder.tasks);
}

static void build_ids_of_what_was_forgotten_are_in_the_list(void **state)
{
	struct tally_recorder recorder = { .tasks.objects.is_live = true };
	struct tally_buffer bytes = { 0 };
	char gone[128], stays[128];
	tally_recorder_init(&recorder);
	assert_true(run(*state, "cp /bin/true gone; cp /bin/true stays"));
	snprintf(gone, sizeof(gone), "%s/gone", (const char *)*state);
	snprintf(stays, sizeof(stays), "%s/stays", (const char *)*state);
	task(&recorder, TALLY_RECORD_FORK, NOBODY - 1, NOBODY - 1);
	map(&recorder, NOBODY - 1, gone);
	task(&recorder, TALLY_RECORD_EXIT, NOBODY - 1, NOBODY - 1);
	map(&recorder, NOBODY - 2, stays);
	run_programs(&recorder);
	assert_int_equal(recorder.tasks.forgotten.ids.count, 1);
	assert_int_equal(tally_recorder_build_ids(&recorder.tasks, &bytes, NULL), 0);
	assert_true(contains(&bytes, gone));
	assert_true(contains(&bytes, stays));
	tally_buffer_release(&bytes);
	tally_recorder_tasks_release(&recorder.tasks);
}

static pid_t child_that_is_gone(void)
{
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static bool is_known(const struct tally_recorder *recorder, uint32_t pid, uint32_t tid)
{
	const struct tally_map *threads = &recorder->tasks.known.thread_index;
	return tally_map_get(threads, (uint64_t)pid << 32 | tid) != NULL;
}

static void who_ended_untold_is_found_within_a_minute(void **state)
{
	struct tally_recorder recorder = { .tasks.objects.is_live = true };
	uint32_t self = (uint32_t)getpid(), gone = (uint32_t)child_that_is_gone(), idle = 0;
	(void)state;
	tally_recorder_init(&recorder);
	task(&recorder, TALLY_RECORD_FORK, self, self);
	/* a record claims that this task is a thread of ours; it has ended, and never was one */
	task(&recorder, TALLY_RECORD_FORK, self, gone);
	task(&recorder, TALLY_RECORD_FORK, gone, gone);
	task(&recorder, TALLY_RECORD_FORK, idle, idle);
	map(&recorder, self, "/nowhere/self");
	map(&recorder, gone, "/nowhere/gone");
	assert_int_equal(tally_recorder_end_gone(&recorder.tasks, 1, NULL), 0);
	assert_int_equal(tally_recorder_end_gone(&recorder.tasks, MINUTE_NS, NULL), 0);
	assert_true(is_known(&recorder, gone, gone)); /* its samples may still be unread */
	tally_endings_pass(&recorder.tasks.endings, &recorder.tasks.known);
	tally_endings_pass(&recorder.tasks.endings, &recorder.tasks.known);
	assert_true(is_known(&recorder, self, self) && is_known(&recorder, idle, idle));
	assert_false(is_known(&recorder, self, gone) || is_known(&recorder, gone, gone));
	assert_non_null(tally_tasks_find(&recorder.tasks.known, self, false, 0x1800));
	assert_null(tally_tasks_find(&recorder.tasks.known, gone, false, 0x1800));
	tally_recorder_tasks_release(&recorder.tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_many_programs_no_more_is_kept_than_of_some),
		cmocka_unit_test_setup_teardown(build_ids_of_what_was_forgotten_are_in_the_list,
						make_directory, remove_directory),
		cmocka_unit_test(who_ended_untold_is_found_within_a_minute),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
