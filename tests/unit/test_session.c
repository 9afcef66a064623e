#include "test.h"

#include "session/session.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static void lists_of_tasks_are_numbers(void **state)
{
	(void)state;
	struct tally_target target = TALLY_TARGET_INIT;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_target_add_pids(&target, "12,34", &err), 0);
	assert_int_equal(tally_target_add_pids(&target, "5", &err), 0);
	assert_int_equal(target.pids.count, 3);
	assert_int_equal(target.pids.items[1], 34);
	static const char *const bad[] = { "",     "x",   "0",           "-3", "1,",
					   "1,,2", "1;2", "99999999999", "1 2" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (strcmp(bad[i], "1,")) /* a comma at the end is allowed */
			assert_int_equal(tally_target_add_threads(&target, bad[i], &err), -EINVAL);
	tally_target_release(&target);
}

static void a_process_resolves_to_its_threads(void **state)
{
	(void)state;
	struct tally_target target = TALLY_TARGET_INIT;
	struct tally_error err = TALLY_ERROR_NONE;
	char text[64], expected[64];
	snprintf(text, sizeof(text), "%d", getpid());
	assert_int_equal(tally_target_add_pids(&target, text, &err), 0);
	assert_int_equal(tally_target_resolve(&target, &err), 0);
	assert_int_equal(target.tids.count, 1);
	assert_int_equal(target.tids.items[0], getpid());
	assert_false(target.all);
	assert_int_equal(tally_target_refresh(&target), 0); /* nothing is added twice */
	snprintf(expected, sizeof(expected), "process %d", getpid());
	tally_target_text(&target, text, sizeof(text));
	assert_string_equal(text, expected);
	tally_target_release(&target);
}

static void nothing_asked_for_means_the_whole_system(void **state)
{
	(void)state;
	struct tally_target target = TALLY_TARGET_INIT;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_target_resolve(&target, &err), 0);
	assert_true(target.all);
	assert_true(target.cpus.count > 0);
	tally_target_release(&target);
}

static void a_command_alone_counts_no_cpus(void **state)
{
	(void)state;
	char *command[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "a\nb" }, NULL };
	struct tally_target target = { .command = command };
	struct tally_error err = TALLY_ERROR_NONE;
	char text[32];
	assert_int_equal(tally_target_resolve(&target, &err), 0);
	assert_false(target.all);
	tally_target_text(&target, text, sizeof(text));
	assert_string_equal(text, "'sh -c a b'");
	char small[8];
	tally_target_text(&target, small, sizeof(small)); /* truncated, not overrun */
	assert_int_equal(strlen(small), 7);
	tally_target_release(&target);
}

static void tasks_and_cpus_exclude_each_other(void **state)
{
	(void)state;
	struct tally_target target = TALLY_TARGET_INIT;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_int_equal(tally_target_add_pids(&target, "1", &err), 0);
	assert_int_equal(tally_target_set_cpus(&target, "0", &err), 0);
	assert_int_equal(tally_target_resolve(&target, &err), -EINVAL);
	assert_true(err.hint[0]);
	tally_target_release(&target);
}

static int spawn(char **command, const sigset_t *mask, struct tally_spawn *child,
		 struct tally_error *err)
{
	sigset_t now;
	sigprocmask(SIG_SETMASK, NULL, &now);
	assert_int_equal(tally_spawn_prepare(child, NULL, command, mask ? mask : &now, err), 0);
	return tally_spawn_go(child, command, err);
}

static void exec_failures_carry_errno(void **state)
{
	(void)state;
	struct tally_spawn child;
	struct tally_error err = TALLY_ERROR_NONE;
	char *missing[] = { (char[]){ "/no/such/program" }, NULL },
	     *directory[] = { (char[]){ "/" }, NULL };
	assert_int_equal(spawn(missing, NULL, &child, &err), -ENOENT);
	assert_int_equal(tally_spawn_failure_status(-ENOENT), 127);
	assert_int_equal(child.pid, 0); /* the child was reaped */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(spawn(directory, NULL, &child, &err), -EACCES);
	assert_int_equal(tally_spawn_failure_status(-EACCES), 126);
	assert_string_equal(err.message, "'/' is a directory");
}

static void a_command_that_is_never_told_to_go_ends(void **state)
{
	(void)state;
	struct tally_spawn child;
	struct tally_error err = TALLY_ERROR_NONE;
	char *command[] = { (char[]){ "true" }, NULL };
	sigset_t mask;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	assert_int_equal(tally_spawn_prepare(&child, NULL, command, &mask, &err), 0);
	tally_spawn_release(&child);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void a_child_killed_before_go_is_an_error_not_a_signal(void **state)
{
	(void)state;
	struct tally_spawn child;
	struct tally_error err = TALLY_ERROR_NONE;
	siginfo_t info;
	char *command[] = { (char[]){ "true" }, NULL };
	sigset_t mask;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	assert_int_equal(tally_spawn_prepare(&child, NULL, command, &mask, &err), 0);
	kill(child.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(tally_spawn_go(&child, command, &err), -ECHILD); /* no SIGPIPE */
}

static void the_command_gets_the_mask_that_it_should(void **state)
{
	(void)state;
	struct tally_spawn child;
	struct tally_error err = TALLY_ERROR_NONE;
	sigset_t empty, blocked, before;
	int status;
	char *command[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "kill -TERM $$; exit 3" },
			    NULL };
	sigemptyset(&empty);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	assert_int_equal(spawn(command, &empty, &child, &err), 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	assert_int_equal(tally_spawn_exit_status(status), 128 + SIGTERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_tasks_are_numbers),
		cmocka_unit_test(a_process_resolves_to_its_threads),
		cmocka_unit_test(nothing_asked_for_means_the_whole_system),
		cmocka_unit_test(a_command_alone_counts_no_cpus),
		cmocka_unit_test(tasks_and_cpus_exclude_each_other),
		cmocka_unit_test(exec_failures_carry_errno),
		cmocka_unit_test(a_command_that_is_never_told_to_go_ends),
		cmocka_unit_test(a_child_killed_before_go_is_an_error_not_a_signal),
		cmocka_unit_test(the_command_gets_the_mask_that_it_should),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
