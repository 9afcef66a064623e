/* libtally's counters, using only the public header and the shared library. */
#include "test.h"

#include <tally/counter.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tally_counter *open_or_skip(const char *event)
{
	char error[512] = "";
	struct tally_counter *counter = tally_counter_open(event, error, sizeof(error));
	if (!counter && (errno == EACCES || errno == EPERM || errno == ENOSYS)) {
		print_message("# %s\n", error);
		skip();
	}
	if (!counter)
		fail_msg("%s: %s", event, error);
	return counter;
}

static struct tally_count read_count(struct tally_counter *counter)
{
	struct tally_count count;
	assert_int_equal(tally_counter_read(counter, &count), 0);
	return count;
}

/* Writes to untouched pages: one fault for each, unless the kernel provides several at once. */
static void fault(size_t pages)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, pages * page_size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, pages * page_size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		((volatile char *)memory)[i * page_size] = 1;
	munmap(memory, pages * page_size);
}

static void counts_from_the_open_on(void **state)
{
	(void)state;
	fault(1000);
	struct tally_counter *counter = open_or_skip("page-faults:u");
	struct tally_count before = read_count(counter);
	assert_true(before.value < 1000);
	fault(500);
	struct tally_count after = read_count(counter);
	assert_in_range(after.value - before.value, 500, 600);
	assert_true(after.enabled_ns > before.enabled_ns);
	tally_counter_close(counter);
}

static void a_count_that_ran_all_the_time_is_not_scaled(void **state)
{
	(void)state;
	struct tally_counter *counter = open_or_skip("page-faults:u");
	fault(100);
	struct tally_count count = read_count(counter);
	assert_true(count.running_ns == count.enabled_ns);
	assert_true(count.value == count.raw);
	tally_counter_close(counter);
}

static void clocks_never_fall(void **state)
{
	(void)state;
	struct tally_counter *counter = open_or_skip("task-clock:u");
	uint64_t last = 0;
	for (int i = 0; i < 1000; i++) {
		struct tally_count count = read_count(counter);
		assert_true(count.value >= last);
		last = count.value;
	}
	assert_true(last > 0);
	tally_counter_close(counter);
}

/* B3 */
static void reset_zeroes_the_value_not_the_times(void **state)
{
	(void)state;
	struct tally_counter *counter = open_or_skip("page-faults:u");
	fault(500);
	struct tally_count before = read_count(counter);
	assert_int_equal(tally_counter_reset(counter), 0);
	struct tally_count after = read_count(counter);
	assert_true(before.value >= 500);
	assert_true(after.value < 100);
	assert_true(after.enabled_ns >= before.enabled_ns);
	tally_counter_close(counter);
}

/* B3 */
static void disabled_keeps_its_value_and_enabled_goes_on(void **state)
{
	(void)state;
	struct tally_counter *counter = open_or_skip("page-faults:u");
	fault(100);
	assert_int_equal(tally_counter_disable(counter), 0);
	struct tally_count disabled = read_count(counter);
	assert_true(disabled.value >= 100);
	fault(500);
	struct tally_count later = read_count(counter);
	assert_true(later.value == disabled.value);
	assert_true(later.enabled_ns == disabled.enabled_ns);

	assert_int_equal(tally_counter_enable(counter), 0);
	assert_true(read_count(counter).value >= disabled.value);
	fault(200);
	assert_in_range(read_count(counter).value - disabled.value, 200, 300);
	tally_counter_close(counter);
}

/* B9 */
static void what_a_child_does_is_counted(void **state)
{
	(void)state;
	struct tally_counter *counter = open_or_skip("page-faults:u");
	pid_t child = fork();
	if (!child) {
		fault(3000);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_in_range(read_count(counter).value, 3000, 4000);
	tally_counter_close(counter);
}

static void *fault_in_thread(void *argument)
{
	(void)argument;
	fault(2000);
	return NULL;
}

/* B9 */
static void what_a_thread_does_is_counted(void **state)
{
	(void)state;
	struct tally_counter *counter = open_or_skip("page-faults:u");
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, fault_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_in_range(read_count(counter).value, 2000, 3000);
	tally_counter_close(counter);
}

/* B9: others are older than the counter */
static void what_others_do_is_not_counted(void **state)
{
	(void)state;
	int go[2];
	assert_int_equal(pipe(go), 0);
	pid_t child = fork();
	if (!child) {
		char byte;
		_exit(read(go[0], &byte, 1) == 1 ? (fault(3000), 0) : 1);
	}
	struct tally_counter *counter = open_or_skip("page-faults:u");
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_in_range(read_count(counter).value, 0, 1000);
	tally_counter_close(counter);
	close(go[0]);
	close(go[1]);
}

static void the_name_is_the_event_s(void **state)
{
	(void)state;
	struct tally_counter *counter = open_or_skip("faults:u");
	assert_string_equal(tally_counter_name(counter), "faults:u");
	tally_counter_close(counter);
}

static void an_unknown_event_is_named_with_its_nearest(void **state)
{
	(void)state;
	char error[512] = "";
	errno = 0;
	assert_null(tally_counter_open("page-fautls", error, sizeof(error)));
	assert_int_not_equal(errno, 0);
	assert_non_null(strstr(error, "page-fautls"));
	assert_non_null(strstr(error, "page-faults"));
	assert_true(strlen(error) > 20);
}

static void an_error_fits_what_room_there_is(void **state)
{
	(void)state;
	char error[8] = "1234567";
	assert_null(tally_counter_open("no-such-event", error, 4));
	assert_int_equal(strlen(error), 3);
	assert_memory_equal(error + 4, "567", 4);
	assert_null(tally_counter_open("no-such-event", error, 0));
	assert_null(tally_counter_open("no-such-event", NULL, 0));
}

static void a_counter_counts_one_event(void **state)
{
	(void)state;
	char error[512] = "";
	assert_null(tally_counter_open("task-clock,page-faults", error, sizeof(error)));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error, "a counter counts one"));
	assert_null(tally_counter_open("", error, sizeof(error)));
	assert_true(error[0]);
}

static void closing_null_is_fine(void **state)
{
	(void)state;
	tally_counter_close(NULL);
}

static int count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;
	assert_non_null(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* B11 */
static void thousands_of_cycles_leak_no_descriptor(void **state)
{
	(void)state;
	tally_counter_close(open_or_skip("task-clock:u"));
	int before = count_descriptors();
	for (int i = 0; i < 10000; i++) {
		struct tally_counter *counter = tally_counter_open("task-clock:u", NULL, 0);
		assert_non_null(counter);
		tally_counter_close(counter);
	}
	for (int i = 0; i < 100; i++)
		assert_null(tally_counter_open("no-such-event", NULL, 0));
	assert_int_equal(count_descriptors(), before);
}

/* A1: the descriptor is closed on exec. */
static void the_descriptor_is_closed_at_exec(void **state)
{
	(void)state;
	struct tally_counter *counter = open_or_skip("task-clock:u");
	int status = system("ls -l /proc/self/fd | grep -q perf_event");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	tally_counter_close(counter);
}

/* --- counters of one thread ------------------------------------------------ */

static struct tally_counter *open_own(const char *event)
{
	const struct tally_counter_options own = { sizeof(own), .this_thread_only = true };
	tally_counter_close(open_or_skip(event));
	struct tally_counter *counter = tally_counter_open_with(event, &own, NULL, 0);
	assert_non_null(counter);
	return counter;
}

static void a_counter_of_one_thread_leaves_out_what_it_starts(void **state)
{
	pthread_t thread;
	(void)state;
	struct tally_counter *counter = open_own("page-faults:u");
	assert_int_equal(pthread_create(&thread, NULL, fault_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_in_range(read_count(counter).value, 0, 1000);
	fault(500);
	assert_in_range(read_count(counter).value, 500, 1500);
	tally_counter_close(counter);
}

static void the_value_alone_is_the_same(void **state)
{
	(void)state;
	struct tally_counter *counter = open_own("page-faults:u");
	uint64_t value;
	fault(300);
	assert_int_equal(tally_counter_disable(counter), 0);
	assert_int_equal(tally_counter_value(counter, &value), 0);
	assert_true(value >= 300);
	assert_int_equal(value, read_count(counter).value);
	tally_counter_close(counter);
}

static void the_way_of_reading_has_its_reason(void **state)
{
	double ns = 0;
	(void)state;
	struct tally_counter *counter = open_or_skip("task-clock:u");
	assert_string_equal(
		tally_counter_read_way(counter, &ns),
		"read(2): the threads and processes that the thread starts are counted, "
		"too");
	print_message("# read(2): %.0f ns\n", ns);
	assert_true(ns > 10 && ns < 1e6);
	tally_counter_close(counter);
	counter = open_own("task-clock:u");
	assert_string_equal(tally_counter_read_way(counter, NULL),
			    "read(2): the kernel counts this event itself, not a hardware counter");
	tally_counter_close(counter);
}

static void a_forked_child_reads_the_counter_of_its_parent(void **state)
{
	int status;
	(void)state;
	struct tally_counter *counter = open_own("page-faults:u");
	fault(700);
	pid_t child = fork();
	if (!child) {
		struct tally_count count;
		uint64_t value = 0;
		bool is_good = !tally_counter_read(counter, &count) && count.value >= 700 &&
			       !tally_counter_value(counter, &value) && value >= 700;
		tally_counter_close(counter);
		_exit(!is_good);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	tally_counter_close(counter);
}

static void options_tell_their_size(void **state)
{
	char error[256] = "";
	struct {
		struct tally_counter_options options;
		uint64_t more; /* of a later version */
	} later = { { sizeof(later), .this_thread_only = true }, 0 };
	(void)state;
	tally_counter_close(open_or_skip("task-clock:u"));
	struct tally_counter *counter = tally_counter_open_with("task-clock:u", &later.options,
								error, sizeof(error));
	assert_non_null(counter);
	tally_counter_close(counter);
	later.more = 1;
	assert_null(tally_counter_open_with("task-clock:u", &later.options, error, sizeof(error)));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error, "does not know"));
	later.options.size = 0;
	assert_null(tally_counter_open_with("task-clock:u", &later.options, error, sizeof(error)));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error, "no size"));
	/* of an earlier version: what it does not have is 0 */
	later.options.size = sizeof(size_t);
	counter = tally_counter_open_with("task-clock:u", &later.options, error, sizeof(error));
	assert_non_null(counter);
	assert_non_null(strstr(tally_counter_read_way(counter, NULL), "starts are counted"));
	tally_counter_close(counter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_from_the_open_on),
		cmocka_unit_test(a_count_that_ran_all_the_time_is_not_scaled),
		cmocka_unit_test(clocks_never_fall),
		cmocka_unit_test(reset_zeroes_the_value_not_the_times),
		cmocka_unit_test(disabled_keeps_its_value_and_enabled_goes_on),
		cmocka_unit_test(what_a_child_does_is_counted),
		cmocka_unit_test(what_a_thread_does_is_counted),
		cmocka_unit_test(what_others_do_is_not_counted),
		cmocka_unit_test(the_name_is_the_event_s),
		cmocka_unit_test(an_unknown_event_is_named_with_its_nearest),
		cmocka_unit_test(an_error_fits_what_room_there_is),
		cmocka_unit_test(a_counter_counts_one_event),
		cmocka_unit_test(closing_null_is_fine),
		cmocka_unit_test(thousands_of_cycles_leak_no_descriptor),
		cmocka_unit_test(the_descriptor_is_closed_at_exec),
		cmocka_unit_test(a_counter_of_one_thread_leaves_out_what_it_starts),
		cmocka_unit_test(the_value_alone_is_the_same),
		cmocka_unit_test(the_way_of_reading_has_its_reason),
		cmocka_unit_test(a_forked_child_reads_the_counter_of_its_parent),
		cmocka_unit_test(options_tell_their_size),
	};
	return cmocka_run_group_tests_name("counter", tests, NULL, NULL);
}
