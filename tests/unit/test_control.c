/* Control from outside, and cgroups, which share its options. */
#include "test.h"

#include "event/event.h"
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect(struct tally_control *control, enum tally_control_verb verb,
		   const char *argument)
{
	struct tally_control_command command;
	assert_int_equal(tally_control_next(control, &command), 1);
	assert_int_equal(command.verb, verb);
	assert_string_equal(command.argument, argument);
}

static void lines_on_a_descriptor_are_commands(void **state)
{
	(void)state;
	struct tally_control control = TALLY_CONTROL_INIT;
	struct tally_control_command command;
	char spec[64], answer[8] = "";
	int orders[2], answers[2];
	assert_int_equal(pipe(orders), 0);
	assert_int_equal(pipe(answers), 0);
	snprintf(spec, sizeof(spec), "fd:%d,%d", orders[0], answers[1]);
	assert_int_equal(tally_control_open(&control, spec, NULL), 0);
	assert_int_equal(tally_control_next(&control, &command), 0);
	static const char text[] =
		"enable\ndisable cycles:u \nping\0\nsnapshot\r\nstop\n\n\nevlist -v\nstop now\n"
		"enab";
	assert_int_equal(write(orders[1], text, sizeof(text) - 1), sizeof(text) - 1);
	expect(&control, TALLY_CONTROL_ENABLE, "");
	expect(&control, TALLY_CONTROL_DISABLE, "cycles:u");
	expect(&control, TALLY_CONTROL_PING, "");
	expect(&control, TALLY_CONTROL_SNAPSHOT, "");
	expect(&control, TALLY_CONTROL_STOP, "");
	expect(&control, TALLY_CONTROL_EVLIST, "-v");
	expect(&control, TALLY_CONTROL_UNKNOWN, "stop now");
	/* the command is not complete yet */
	assert_int_equal(tally_control_next(&control, &command), 0);
	assert_int_equal(write(orders[1], "le\n", 3), 3);
	expect(&control, TALLY_CONTROL_ENABLE, "");
	const struct tally_control_command unknown = { TALLY_CONTROL_UNKNOWN, "stop now" },
					   ping = { TALLY_CONTROL_PING, "" };
	tally_control_acknowledge(&control, &unknown);
	struct pollfd answered = { .fd = answers[0], .events = POLLIN };
	assert_int_equal(poll(&answered, 1, 0), 0);
	tally_control_acknowledge(&control, &ping);
	assert_int_equal(read(answers[0], answer, sizeof(answer)), 5);
	assert_memory_equal(answer, "ack\n", 5);
	close(orders[1]);
	assert_int_equal(tally_control_next(&control, &command), 0);
	/* the writer has closed it, so it must not be polled again */
	assert_int_equal(control.fd, -1);
	close(answers[0]);
	signal(SIGPIPE, SIG_DFL);
	tally_control_acknowledge(&control, &ping); /* must not kill the process by SIGPIPE */
	assert_int_equal(control.ack_fd, -1);
	tally_control_release(&control);
	close(orders[0]);
	close(answers[1]);
}

static void a_line_without_end_is_no_overflow(void **state)
{
	(void)state;
	struct tally_control control = TALLY_CONTROL_INIT;
	struct tally_control_command command;
	char spec[64], junk[1000];
	int orders[2];
	memset(junk, 'x', sizeof(junk));
	assert_int_equal(pipe(orders), 0);
	snprintf(spec, sizeof(spec), "fd:%d", orders[0]);
	assert_int_equal(tally_control_open(&control, spec, NULL), 0);
	assert_int_equal(write(orders[1], junk, sizeof(junk)), sizeof(junk));
	assert_int_equal(tally_control_next(&control, &command), 0);
	assert_int_equal(write(orders[1], "\nping\n", 6), 6);
	assert_int_equal(tally_control_next(&control, &command), 1);
	assert_int_equal(command.verb, TALLY_CONTROL_UNKNOWN);
	expect(&control, TALLY_CONTROL_PING, "");
	tally_control_release(&control);
	close(orders[0]);
	close(orders[1]);
}

static void senders_of_a_fifo_come_and_go(void **state)
{
	(void)state;
	char folder[] = "/tmp/tally-control-XXXXXX", path[64], spec[80];
	struct tally_control control = TALLY_CONTROL_INIT;
	struct tally_control_command command;
	struct tally_error err = TALLY_ERROR_NONE;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/orders", folder);
	snprintf(spec, sizeof(spec), "fifo:%s", path);
	assert_int_equal(tally_control_open(&control, spec, &err), -ENOENT);
	assert_non_null(strstr(err.hint, "mkfifo"));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(tally_control_open(&control, spec, NULL), 0);
	for (int i = 0; i < 2; i++) {
		int fd = open(path, O_WRONLY);
		assert_true(fd >= 0);
		assert_int_equal(write(fd, "ping\n", 5), 5);
		close(fd);
		expect(&control, TALLY_CONTROL_PING, "");
		assert_int_equal(tally_control_next(&control, &command), 0);
		assert_true(control.fd >= 0);
	}
	tally_control_release(&control);
	unlink(path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_int_equal(tally_control_open(&control, spec, &err), -EINVAL);
	assert_non_null(strstr(err.message, "not a FIFO"));
	unlink(path);
	rmdir(folder);
}

static void what_is_no_place_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "",      "fifo",        "fifo:",   "fifo:,a",
					   "fd:",   "fd:x",        "fd:0,",   "fd:-1",
					   "fd:1x", "file:/tmp/x", "fd:99999" };
	struct tally_control control = TALLY_CONTROL_INIT;
	struct tally_error err = TALLY_ERROR_NONE;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(tally_control_open(&control, bad[i], &err) < 0);
}

static void cgroups_go_to_events_in_turn(void **state)
{
	(void)state;
	struct tally_event items[3] = { 0 };
	struct tally_event_list list = { .items = items, .count = 0 };
	struct tally_arena arena = TALLY_ARENA_INIT;
	size_t turns = 0;
	assert_int_equal(tally_event_assign_cgroups(&list, "a", &arena, &turns, NULL), -EINVAL);
	list.count = 2;
	assert_int_equal(tally_event_assign_cgroups(&list, "a", &arena, &turns, NULL), 0);
	assert_string_equal(items[0].cgroup, "a"); /* one group for all events */
	assert_string_equal(items[1].cgroup, "a");
	list.count = 3;
	turns = 0;
	memset(items, 0, sizeof(items));
	assert_int_equal(tally_event_assign_cgroups(&list, ",b/c", &arena, &turns, NULL), 0);
	assert_null(items[0].cgroup);
	assert_string_equal(items[1].cgroup, "b/c");
	assert_null(items[2].cgroup);
	assert_int_equal(tally_event_assign_cgroups(&list, "d", &arena, &turns, NULL), 0);
	assert_string_equal(items[2].cgroup, "d");
	assert_null(items[0].cgroup);
	assert_int_equal(tally_event_assign_cgroups(&list, "e", &arena, &turns, NULL), -EINVAL);
	tally_arena_release(&arena);
}

static void version_1_of_cgroups_has_the_controller_where_it_is_mounted(void **state)
{
	(void)state;
	char folder[] = "/tmp/tally-cgroup-XXXXXX", path[96], mounts[512];
	struct tally_error err = TALLY_ERROR_NONE;
	struct stat found, expected;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a b", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/a b/mine", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(
		mounts, sizeof(mounts),
		"cgroup2 %s/v2 cgroup2 rw 0 0\ncgroup %s/cpu cgroup rw,cpu 0 0\n"
		"cgroup %s/a\\040b cgroup rw,perf_event 0 0\n",
		folder, folder, folder);
	int fd = tally_cgroup_open_among(mounts, "mine", &err);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &found), 0);
	assert_int_equal(stat(path, &expected), 0);
	assert_int_equal(found.st_ino, expected.st_ino);
	close(fd);
	assert_int_equal(tally_cgroup_open_among(mounts, "yours", &err), -ENOENT);
	assert_non_null(strstr(err.message, "yours"));
	assert_int_equal(tally_cgroup_open_among("proc /proc proc rw 0 0\n", "mine", &err),
			 -ENOENT);
	assert_non_null(strstr(err.hint, "mount"));
	rmdir(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_on_a_descriptor_are_commands),
		cmocka_unit_test(a_line_without_end_is_no_overflow),
		cmocka_unit_test(senders_of_a_fifo_come_and_go),
		cmocka_unit_test(what_is_no_place_is_refused),
		cmocka_unit_test(cgroups_go_to_events_in_turn),
		cmocka_unit_test(version_1_of_cgroups_has_the_controller_where_it_is_mounted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
