/* A recorder's memory of tasks: ended tasks are forgotten, but not too early, and their successors
 * with the same number are not. */
#include "task/jit.h"
#include "task/task.h"
#include "test.h"

#include <string.h>

struct fixture {
	struct tally_tasks tasks;
	struct tally_endings endings;
};

static void tell(struct fixture *fixture, const struct tally_record *record)
{
	assert_int_equal(tally_tasks_record(&fixture->tasks, record), 0);
	assert_int_equal(tally_endings_record(&fixture->endings, record), 0);
}

static void task_record(struct fixture *fixture, uint32_t type, uint32_t pid, uint32_t tid,
			uint32_t parent)
{
	struct tally_record record = { .header.type = type };
	record.task.pid = pid;
	record.task.tid = tid;
	record.task.parent_pid = record.task.parent_tid = parent;
	tell(fixture, &record);
}

static void comm(struct fixture *fixture, uint32_t pid, uint32_t tid, const char *name)
{
	struct tally_record record = { .header.type = TALLY_RECORD_COMM };
	record.comm.pid = pid;
	record.comm.tid = tid;
	record.comm.comm = name;
	tell(fixture, &record);
}

static void map(struct fixture *fixture, uint32_t pid)
{
	struct tally_record record = { .header.type = TALLY_RECORD_MMAP };
	record.mmap.pid = record.mmap.tid = pid;
	record.mmap.start = 0x1000;
	record.mmap.length = 0x1000;
	record.mmap.filename = "/bin/some";
	tell(fixture, &record);
}

static void start(struct fixture *fixture, uint32_t pid, const char *name)
{
	task_record(fixture, TALLY_RECORD_FORK, pid, pid, 1);
	comm(fixture, pid, pid, name);
	map(fixture, pid);
}

static bool is_mapped(const struct fixture *fixture, uint32_t pid)
{
	return tally_tasks_find(&fixture->tasks, pid, false, 0x1800);
}

static bool is_called(const struct fixture *fixture, uint32_t pid, uint32_t tid, const char *name)
{
	char buffer[16];
	return !strcmp(tally_tasks_comm(&fixture->tasks, pid, tid, buffer), name);
}

static void release(struct fixture *fixture)
{
	tally_endings_release(&fixture->endings);
	tally_tasks_release(&fixture->tasks);
}

static void what_ended_is_known_for_another_pass(void **state)
{
	struct fixture fixture = { 0 };
	(void)state;
	start(&fixture, 7, "seven");
	start(&fixture, 8, "eight");
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 1);
	tally_endings_pass(&fixture.endings, &fixture.tasks);
	assert_true(is_mapped(&fixture, 7) && is_called(&fixture, 7, 7, "seven"));
	tally_endings_pass(&fixture.endings, &fixture.tasks);
	assert_false(is_mapped(&fixture, 7));
	assert_true(is_called(&fixture, 7, 7, ":7"));
	assert_true(is_mapped(&fixture, 8) && is_called(&fixture, 8, 8, "eight"));
	release(&fixture);
}

/* Makes enough passes that ended tasks are forgotten. */
static void pass_thrice(struct fixture *fixture)
{
	for (int i = 0; i < 3; i++)
		tally_endings_pass(&fixture->endings, &fixture->tasks);
}

static void who_has_the_number_now_stays(void **state)
{
	struct fixture fixture = { 0 };
	(void)state;
	start(&fixture, 7, "old");
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 1);
	start(&fixture, 7, "new");
	pass_thrice(&fixture);
	assert_true(is_mapped(&fixture, 7) && is_called(&fixture, 7, 7, "new"));
	release(&fixture);
}

static void maps_stay_while_a_thread_lives(void **state)
{
	struct fixture fixture = { 0 };
	(void)state;
	start(&fixture, 7, "leader");
	task_record(&fixture, TALLY_RECORD_FORK, 7, 9, 7);
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 7);
	pass_thrice(&fixture);
	assert_true(is_mapped(&fixture, 7) && is_called(&fixture, 7, 9, "leader"));
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 9, 7);
	pass_thrice(&fixture);
	assert_false(is_mapped(&fixture, 7));
	release(&fixture);
}

static void memory_is_that_of_the_living(void **state)
{
	struct fixture fixture = { 0 };
	(void)state;
	for (uint32_t i = 0; i < 200000; i++) {
		start(&fixture, 100 + i, "short");
		task_record(&fixture, TALLY_RECORD_FORK, 100 + i, 1000000 + i, 100 + i);
		task_record(&fixture, TALLY_RECORD_EXIT, 100 + i, 1000000 + i, 100 + i);
		task_record(&fixture, TALLY_RECORD_EXIT, 100 + i, 100 + i, 1);
		if (i % 100 == 0)
			tally_endings_pass(&fixture.endings, &fixture.tasks);
	}
	assert_true(fixture.tasks.threads.capacity < 2000);
	assert_true(fixture.tasks.processes.capacity < 2000);
	assert_true(fixture.tasks.thread_index.capacity < 4000 &&
		    fixture.tasks.process_index.capacity < 4000);
	assert_true(fixture.endings.queue.capacity < 4000 &&
		    fixture.endings.pending.capacity < 4000);
	assert_true(fixture.endings.living.capacity < 4000);
	release(&fixture);
}

static void an_end_that_is_told_twice_counts_once(void **state)
{
	struct fixture fixture = { 0 };
	(void)state;
	start(&fixture, 7, "seven");
	task_record(&fixture, TALLY_RECORD_FORK, 7, 17, 7);
	task_record(&fixture, TALLY_RECORD_FORK, 7, 18, 7);
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 17, 7);
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 17, 7);
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 18, 7);
	tally_endings_pass(&fixture.endings, &fixture.tasks);
	tally_endings_pass(&fixture.endings, &fixture.tasks);
	assert_true(is_mapped(&fixture, 7));
	release(&fixture);
}

static void the_last_thread_is_waited_for_as_the_leader_was(void **state)
{
	struct fixture fixture = { 0 };
	(void)state;
	start(&fixture, 7, "leader");
	task_record(&fixture, TALLY_RECORD_FORK, 7, 9, 7);
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 7);
	tally_endings_pass(&fixture.endings, &fixture.tasks);
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 9, 7);
	tally_endings_pass(&fixture.endings, &fixture.tasks);
	assert_true(is_mapped(&fixture, 7));
	tally_endings_pass(&fixture.endings, &fixture.tasks);
	assert_false(is_mapped(&fixture, 7));
	release(&fixture);
}

/* Tasks that ran before the recording may have no FORK record. */
static void threads_that_nobody_told_of_do_not_end_a_process(void **state)
{
	struct fixture fixture = { 0 };
	(void)state;
	comm(&fixture, 7, 7, "seven");
	comm(&fixture, 7, 8, "eight");
	map(&fixture, 7);
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 8, 7);
	pass_thrice(&fixture);
	assert_true(is_mapped(&fixture, 7));
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 7);
	pass_thrice(&fixture);
	assert_false(is_mapped(&fixture, 7));
	release(&fixture);
}

static void a_thread_that_executes_a_program_is_the_leader_then(void **state)
{
	struct fixture fixture = { 0 };
	struct tally_record exec = { .header = { .type = TALLY_RECORD_COMM,
						 .misc = TALLY_MISC_COMM_EXEC } };
	(void)state;
	exec.comm.pid = exec.comm.tid = 7;
	exec.comm.comm = "other";
	start(&fixture, 7, "seven");
	task_record(&fixture, TALLY_RECORD_FORK, 7, 9, 7);
	/* the leader; thread 9 now has the number 7 */
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 7);
	tell(&fixture, &exec);
	pass_thrice(&fixture);
	assert_true(is_mapped(&fixture, 7));
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 7);
	pass_thrice(&fixture);
	assert_false(is_mapped(&fixture, 7));
	release(&fixture);
}

static void who_has_indices_of_threads_keeps_them(void **state)
{
	struct fixture fixture = { .endings.keeps_threads = true };
	(void)state;
	start(&fixture, 7, "seven");
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 1);
	pass_thrice(&fixture);
	assert_true(!is_mapped(&fixture, 7) && is_called(&fixture, 7, 7, "seven"));
	release(&fixture);
}

static void the_maps_of_code_that_was_made_stay(void **state)
{
	struct fixture fixture = { 0 };
	(void)state;
	start(&fixture, 7, "maker");
	assert_int_equal(tally_tasks_use_jits(&fixture.tasks), 0);
	assert_non_null(tally_map_put(&fixture.tasks.jits->of_process, 7, NULL));
	task_record(&fixture, TALLY_RECORD_EXIT, 7, 7, 1);
	pass_thrice(&fixture);
	assert_true(is_mapped(&fixture, 7));
	release(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ended_is_known_for_another_pass),
		cmocka_unit_test(who_has_the_number_now_stays),
		cmocka_unit_test(maps_stay_while_a_thread_lives),
		cmocka_unit_test(an_end_that_is_told_twice_counts_once),
		cmocka_unit_test(memory_is_that_of_the_living),
		cmocka_unit_test(the_last_thread_is_waited_for_as_the_leader_was),
		cmocka_unit_test(threads_that_nobody_told_of_do_not_end_a_process),
		cmocka_unit_test(a_thread_that_executes_a_program_is_the_leader_then),
		cmocka_unit_test(who_has_indices_of_threads_keeps_them),
		cmocka_unit_test(the_maps_of_code_that_was_made_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
