/* Regions of libtally, using only the public header and the shared library.  Tests that need another
 * environment, or the end of a process, run this program again: test_regions CHILD. */
#include "test.h"

#include <tally/region.h>

#include "library/histogram.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- allocations, counted --------------------------------------------------- */

static unsigned long allocations;

static void *(*real_of(const char *name))(size_t)
{
	void *(*function)(size_t);
	*(void **)&function = dlsym(RTLD_NEXT, name);
	return function;
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define COUNTS_ALLOCATIONS 1
void *malloc(size_t size)
{
	static void *(*real)(size_t);
	if (!real)
		real = real_of("malloc");
	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	return real(size);
}
#else
#define COUNTS_ALLOCATIONS 0
#endif

/* ---- help -------------------------------------------------------------------- */

static volatile unsigned long sink;

static void burn(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sink += i;
}

static struct tally_region_figures figures_of(const char *region, const char *event)
{
	struct tally_region_figures figures;
	assert_int_equal(tally_region_read(region, event, &figures, sizeof(figures)), 0);
	return figures;
}

/* Runs this program as CHILD with a setting, and returns what it writes to descriptor 2.  The exit
 * status must be `status`. */
static char *run_child(const char *child, const char *setting, int status)
{
	static char text[1 << 16];
	int ends[2], result = 0;
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char *copy = strdup(setting);
		for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
			putenv(word);
		dup2(ends[1], 2);
		close(ends[0]);
		close(ends[1]);
		execl("/proc/self/exe", "test_regions", child, NULL);
		_exit(99);
	}
	close(ends[1]);
	size_t length = 0;
	for (ssize_t got; (got = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0;)
		length += (size_t)got;
	close(ends[0]);
	text[length] = '\0';
	assert_int_equal(waitpid(pid, &result, 0), pid);
	if (!WIFEXITED(result) || WEXITSTATUS(result) != status)
		print_message("# %s: status %#x: %s\n", child, (unsigned)result, text);
	assert_true(WIFEXITED(result) && WEXITSTATUS(result) == status);
	return text;
}

static unsigned occurrences(const char *text, const char *word)
{
	unsigned count = 0;
	for (; (text = strstr(text, word)); text += strlen(word))
		count++;
	return count;
}

/* ---- in this process ---------------------------------------------------------- */

static void nothing_is_there_before_the_first_region(void **state)
{
	struct tally_region_figures figures;
	const struct tally_region_options bad = { 0 };
	const struct tally_region_options wall = { sizeof(wall), .events = "cpu-time" };
	(void)state;
	assert_null(tally_region_name(0));
	assert_null(tally_region_event(0));
	assert_string_equal(tally_region_missing(), "");
	assert_int_equal(tally_region_read("x", NULL, &figures, sizeof(figures)), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(tally_region_report(2, "table"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(tally_region_configure(&bad), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(tally_region_configure(&wall), 0);
	tally_region_begin("first");
	tally_region_end("first");
	assert_int_equal(tally_region_configure(&wall), -1);
	assert_int_equal(errno, EBUSY);
	assert_string_equal(tally_region_event(0), "wall");
	assert_string_equal(tally_region_event(1), "cpu-time");
	assert_null(tally_region_event(2));
	assert_int_equal(tally_region_read("first", "cycles", &figures, sizeof(figures)), -1);
	assert_int_equal(tally_region_read("first", NULL, &figures, 8), -1);
	assert_int_equal(errno, EINVAL);
}

static void self_is_total_without_the_regions_inside(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		TALLY_REGION("outer");
		burn(20000);
		for (unsigned n = 0; n < 3; n++) {
			TALLY_REGION("inner");
			burn(20000);
		}
	}
	for (unsigned i = 0; i < 2; i++) {
		const char *event = tally_region_event(i);
		struct tally_region_figures outer = figures_of("outer", event);
		struct tally_region_figures inner = figures_of("inner", event);
		assert_int_equal(outer.calls, 10);
		assert_int_equal(inner.calls, 30);
		assert_int_equal(outer.open, 0);
		assert_int_equal(inner.total, inner.self);
		assert_int_equal(outer.total, outer.self + inner.total);
		assert_true(outer.mean * 10 - (double)outer.total < 1e-3);
		assert_true(outer.p50 <= outer.p99 && outer.p99 <= outer.max);
		assert_true(outer.max <= outer.total && outer.max >= outer.total / 10);
		assert_true(outer.sigma >= 0 && outer.sigma < (double)outer.max);
	}
}

static void recurse(unsigned depth)
{
	TALLY_REGION("recursive");
	burn(1000);
	if (depth)
		recurse(depth - 1);
}

static void recursion_counts_time_once(void **state)
{
	(void)state;
	tally_region_begin("around");
	recurse(9);
	tally_region_end("around");
	struct tally_region_figures around = figures_of("around", NULL);
	struct tally_region_figures inner = figures_of("recursive", NULL);
	assert_int_equal(inner.calls, 10);
	assert_int_equal(inner.recursive, 9);
	assert_int_equal(inner.measured, 1);
	assert_int_equal(inner.total, inner.max);
	assert_int_equal(inner.total, inner.self);
	assert_true(inner.total < around.total);
}

static void depth_has_a_limit(void **state)
{
	enum { DEPTH = 600, LIMIT = 512 };
	(void)state;
	for (unsigned i = 0; i < DEPTH; i++)
		tally_region_begin("deep");
	for (unsigned i = 0; i < DEPTH; i++)
		tally_region_end("deep");
	struct tally_region_figures deep = figures_of("deep", NULL);
	assert_int_equal(deep.calls, LIMIT);
	assert_int_equal(deep.open, 0);
	assert_int_equal(deep.measured, 1);
	tally_region_begin("after");
	tally_region_end("after");
	assert_int_equal(figures_of("after", NULL).measured, 1);
}

static void names_are_compared_by_text(void **state)
{
	char name[16] = "buffer 1";
	(void)state;
	tally_region_begin(name);
	name[7] = '2';
	tally_region_begin(name);
	tally_region_end("buffer 2");
	tally_region_end("buffer 1");
	strcpy(name, "buffer 1");
	tally_region_begin(name);
	tally_region_end(NULL);
	assert_int_equal(figures_of("buffer 1", NULL).calls, 2);
	assert_int_equal(figures_of("buffer 2", NULL).calls, 1);
}

static void mistaken_ends_leave_the_rest_right(void **state)
{
	(void)state;
	tally_region_end("never begun");
	tally_region_begin("a");
	tally_region_begin("b");
	tally_region_end("never begun");
	assert_int_equal(figures_of("b", NULL).open, 1);
	tally_region_end("a"); /* b is left open */
	assert_int_equal(figures_of("a", NULL).measured, 1);
	assert_int_equal(figures_of("b", NULL).calls, 0);
	assert_int_equal(figures_of("b", NULL).open, 0);
	tally_region_end("b");
	assert_int_equal(figures_of("b", NULL).calls, 0);
	errno = 77;
	tally_region_end(NULL);
	assert_int_equal(errno, 77);
}

enum { THREADS = 8, ROUNDS = 500 };

static void *use_regions(void *argument)
{
	const char *const names[] = { "t0", "t1", "t2", "t3" };
	for (unsigned i = 0; i < ROUNDS; i++) {
		TALLY_REGION("thread");
		tally_region_begin(names[i % 4]);
		tally_region_end(names[i % 4]);
	}
	tally_region_begin("left open");
	return argument;
}

static void threads_are_summed_up_when_they_have_ended(void **state)
{
	pthread_t threads[THREADS];
	(void)state;
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, use_regions, NULL), 0);
		for (unsigned i = 0; i < 20 && tally_region_name(0); i++) { /* meanwhile */
			struct tally_region_figures figures;
			if (tally_region_read("thread", NULL, &figures, sizeof(figures)))
				continue;
			assert_true(figures.self <= figures.total);
			assert_true(figures.max <= figures.total);
		}
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	}
	assert_int_equal(figures_of("thread", NULL).calls, 2 * THREADS * ROUNDS);
	assert_int_equal(figures_of("t3", NULL).measured, 2 * THREADS * ROUNDS / 4);
	assert_int_equal(figures_of("left open", NULL).open, 0);
	assert_int_equal(figures_of("left open", NULL).calls, 0);
	struct tally_region_figures all = figures_of("thread", NULL);
	struct tally_region_figures parts = figures_of("t0", NULL);
	uint64_t inside = parts.total;
	for (unsigned i = 1; i < 4; i++)
		inside += figures_of((const char *[]){ "t1", "t2", "t3" }[i - 1], NULL).total;
	assert_int_equal(all.total, all.self + inside);
}

static void nothing_is_allocated_after_the_first_use(void **state)
{
	(void)state;
	if (!COUNTS_ALLOCATIONS) {
		print_message("# a sanitizer has malloc\n");
		skip();
	}
	char name[16] = "reused";
	for (unsigned i = 0; i < 2000; i++) {
		unsigned long before = allocations;
		tally_region_begin("reused");
		tally_region_begin(name);
		tally_region_end(name);
		tally_region_end("reused");
		tally_region_end("no such region");
		if (i)
			assert_int_equal(allocations, before);
		else
			assert_true(allocations > before); /* the name: so they are counted */
	}
}

static volatile sig_atomic_t handled;

static void handle(int signal_number)
{
	(void)signal_number;
	handled++;
	tally_region_begin("handler");
	tally_region_end("handler");
}

static void signal_handlers_may_use_regions(void **state)
{
	const struct itimerspec often = { { 0, 500000 }, { 0, 500000 } };
	timer_t timer;
	(void)state;
	tally_region_begin("handler");
	tally_region_end("handler");
	signal(SIGALRM, handle);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	unsigned calls = 0;
	while (handled < 200 && calls++ < 10000000) {
		TALLY_REGION("interrupted");
	}
	timer_delete(timer);
	assert_int_equal(figures_of("interrupted", NULL).calls, calls);
	assert_int_equal(figures_of("interrupted", NULL).open, 0);
	assert_int_equal(figures_of("handler", NULL).open, 0);
}

static void a_child_begins_empty(void **state)
{
	int status;
	(void)state;
	tally_region_begin("parent");
	pid_t pid = fork();
	if (!pid) {
		struct tally_region_figures outer;
		tally_region_begin("outer");
		tally_region_end("outer");
		tally_region_end("parent"); /* begun before the fork */
		if (tally_region_read("outer", NULL, &outer, sizeof(outer)) || outer.calls != 1)
			_exit(1);
		if (tally_region_read("parent", NULL, &outer, sizeof(outer)) || outer.calls)
			_exit(2);
		_exit(0);
	}
	tally_region_end("parent");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(figures_of("parent", NULL).calls, 1);
	assert_int_equal(figures_of("outer", NULL).calls, 10);
}

static void names_have_a_limit(void **state)
{
	char name[32];
	(void)state;
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 300; i++) {
			snprintf(name, sizeof(name), "many %u", i);
			tally_region_begin(name);
			tally_region_end(name);
		}
	assert_int_equal(figures_of("many 3", NULL).calls, 2);
	struct tally_region_figures others = figures_of("(other regions)", NULL);
	assert_true(others.calls > 100 && others.calls < 600 && others.calls % 2 == 0);
	assert_string_equal(tally_region_name(255), "(other regions)");
	assert_null(tally_region_name(256));
	tally_region_begin("many 299");
	tally_region_end("many 298"); /* not that one */
	assert_int_equal(figures_of("(other regions)", NULL).open, 1);
	tally_region_end("many 299");
	assert_int_equal(figures_of("(other regions)", NULL).open, 0);
}

/* ---- the histogram -------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static uint64_t next_random(void)
{
	static uint64_t random = 88172645463325252u; /* xorshift64 */
	random ^= random << 13;
	random ^= random >> 7;
	return random ^= random << 17;
}

static uint64_t draw(unsigned distribution)
{
	double unit = (double)(next_random() >> 11) / 9007199254740992.0 + 1e-16;
	switch (distribution) {
	case 0:
		return next_random() % 100; /* small */
	case 1:
		return (uint64_t)(-log(unit) * 5e4); /* exponential */
	case 2:
		return (uint64_t)(1000 / pow(unit, 1.2)); /* Pareto: heavy tail */
	case 3:
		return next_random() % 10 ? 900 + next_random() % 50 : 9000000; /* two modes */
	case 4:
		return next_random(); /* all 64 bits */
	default:
		return 123456789; /* constant */
	}
}

static void percentiles_are_near_the_exact_ones(void **state)
{
	enum { VALUES = 20000, DISTRIBUTIONS = 6 };
	static uint64_t values[VALUES];
	(void)state;
	for (unsigned distribution = 0; distribution < DISTRIBUTIONS; distribution++) {
		uint64_t counts[TALLY_HISTOGRAM_BUCKETS] = { 0 };
		for (unsigned i = 0; i < VALUES; i++) {
			values[i] = draw(distribution);
			unsigned bucket = tally_histogram_bucket(values[i]);
			assert_true(bucket < TALLY_HISTOGRAM_BUCKETS);
			counts[bucket]++;
		}
		qsort(values, VALUES, sizeof(*values), ascending);
		for (unsigned percent = 1; percent <= 100; percent++) {
			uint64_t exact = values[(VALUES * percent + 99) / 100 - 1];
			uint64_t found = tally_histogram_percentile(counts, percent);
			uint64_t off = found > exact ? found - exact : exact - found;
			assert_true(off <= exact / 64);
		}
	}
	uint64_t none[TALLY_HISTOGRAM_BUCKETS] = { 0 };
	assert_int_equal(tally_histogram_percentile(none, 50), 0);
	assert_int_equal(tally_histogram_bucket(UINT64_MAX), TALLY_HISTOGRAM_BUCKETS - 1);
}

/* ---- at exit, in processes of their own ------------------------------------------ */

static void report_comes_at_exit_and_only_then(void **state)
{
	(void)state;
	char *text = run_child("report", "TALLY_REPORT=table TALLY_EVENTS=wall", 7);
	assert_int_equal(occurrences(text, "Regions of test_regions"), 1);
	assert_non_null(strstr(text, "\nwork: 3 calls\n"));
	assert_non_null(strstr(text, "open: 0 calls; 1 still open, without figures\n"));
	assert_non_null(strstr(text, "ends without a begin: 1; the first was 'unknown'\n"));
	assert_string_equal(run_child("report", "TALLY_EVENTS=wall", 7), "");
	assert_string_equal(run_child("none", "TALLY_REPORT=table", 0), "");
	assert_string_equal(run_child("exit", "TALLY_REPORT=table", 3), "");
	assert_string_equal(run_child("closed", "TALLY_REPORT=table", 0), "");
	text = run_child("report", "TALLY_REPORT=tables", 7);
	assert_non_null(strstr(text, "libtally: TALLY_REPORT is none of"));
	text = run_child("report", "TALLY_REPORT=json:/nowhere/at/all", 7);
	assert_non_null(strstr(text, "libtally: the report was not written: /nowhere/at/all"));
}

static void children_print_only_their_own(void **state)
{
	(void)state;
	char *text = run_child("fork", "TALLY_REPORT=table TALLY_EVENTS=wall", 0);
	assert_int_equal(occurrences(text, "Regions of"), 2);
	assert_int_equal(occurrences(text, "\nof parent: 1 call\n"), 1);
	assert_int_equal(occurrences(text, "\nof child: 1 call\n"), 1);
	assert_int_equal(occurrences(text, "), 1 thread:\n"), 2);
	text = run_child("idle fork", "TALLY_REPORT=table TALLY_EVENTS=wall", 0);
	assert_int_equal(occurrences(text, "Regions of"), 1);
	assert_null(strstr(text, "libtally:"));
}

static void a_closed_pipe_does_not_change_the_exit_status(void **state)
{
	(void)state;
	run_child("pipe", "TALLY_REPORT=table TALLY_EVENTS=wall", 5);
}

static void refused_events_leave_wall_time_and_a_reason(void **state)
{
	(void)state;
	char *text = run_child("report", "TALLY_REPORT=table TALLY_EVENTS=no-such-event", 7);
	assert_non_null(strstr(text, "\n  wall "));
	assert_non_null(strstr(text, "Not counted: no-such-event: there is no event"));
	assert_null(strstr(text, "\n  no-such-event"));
	text = run_child("report", "TALLY_REPORT=table TALLY_EVENTS=context-switches:u", 7);
	assert_non_null(
		strstr(text, "Not counted: context-switches:u: it occurs only in the kernel"));
	assert_null(strstr(text, "\n  context-switches"));
}

static void an_ordinary_user_gets_no_false_zeros(void **state)
{
	(void)state;
	if (geteuid()) {
		print_message("# needs root, to give rights up\n");
		skip();
	}
	char *text = run_child("ordinary", "TALLY_REPORT=table", 0);
	const char *missing = strstr(text, "\nNot counted: ");
	/* with all rights, or without perf events, neither has ":u" */
	if (!strstr(text, "\n  page-faults:u"))
		skip();
	assert_non_null(missing);
	assert_non_null(strstr(missing, "context-switches"));
	assert_non_null(strstr(missing, "cpu-migrations"));
	assert_null(strstr(text, "\n  context-switches"));
	assert_null(strstr(text, "\n  cpu-migrations"));
	assert_non_null(strstr(text, "\n  task-clock:u"));
}

static void overhead_is_subtracted_when_asked_for(void **state)
{
	(void)state;
	run_child("overhead", "TALLY_EVENTS=cpu-time TALLY_OVERHEAD=subtract", 0);
	run_child("overhead", "TALLY_EVENTS=cpu-time TALLY_OVERHEAD=no", 1);
}

/* Exits with 0 if 1,000 empty regions cost a region around them nearly nothing. */
static int empty_regions_cost_nothing(void)
{
	enum { EMPTY = 1000 };
	uint64_t least = UINT64_MAX, pair = 0;
	for (unsigned turn = 0; turn < 20; turn++) {
		char name[16];
		snprintf(name, sizeof(name), "outer %u", turn);
		tally_region_begin("empty");
		tally_region_end("empty");
		tally_region_begin(name);
		for (unsigned i = 0; i < EMPTY; i++) {
			tally_region_begin("empty");
			tally_region_end("empty");
		}
		tally_region_end(name);
		struct tally_region_figures outer = figures_of(name, NULL);
		pair = outer.pair;
		if (outer.total < least)
			least = outer.total;
	}
	return least > EMPTY * pair / 2;
}

/* Exits with 0 if a file that the program has opened as descriptor 2 stays empty. */
static int other_files_get_no_report(void)
{
	char path[] = "/tmp/test_regions.XXXXXX";
	int status, fd = mkstemp(path);
	unlink(path);
	pid_t pid = fork();
	if (!pid) {
		tally_region_begin("work");
		tally_region_end("work");
		dup2(fd, 2);
		exit(0);
	}
	return waitpid(pid, &status, 0) != pid || status || lseek(fd, 0, SEEK_END);
}

static int run_as(const char *child)
{
	struct tally_region_figures figures;
	int ends[2];
	if (!strcmp(child, "none"))
		return 0;
	if (!strcmp(child, "overhead"))
		return empty_regions_cost_nothing();
	if (!strcmp(child, "ordinary") && (setgid(65534) || setuid(65534)))
		return 1;
	if (!strcmp(child, "closed"))
		return other_files_get_no_report();
	if (strstr(child, "fork")) {
		tally_region_begin("of parent");
		pid_t pid = fork();
		if (!pid) {
			tally_region_end("of parent");
			if (!strcmp(child, "fork")) {
				TALLY_REGION("of child");
			}
			exit(0);
		}
		waitpid(pid, NULL, 0);
		tally_region_end("of parent");
		return 0;
	}
	if (!strcmp(child, "pipe") && (pipe(ends) || dup2(ends[1], 2) < 0))
		return 1;
	for (unsigned i = 0; i < 3; i++) {
		TALLY_REGION("work");
		burn(1000);
	}
	if (!strcmp(child, "exit"))
		_exit(3);
	if (!strcmp(child, "pipe")) {
		close(ends[0]); /* without a reader */
		close(ends[1]);
		return 5;
	}
	if (!strcmp(child, "ordinary"))
		return tally_region_read("work", "page-faults", &figures, sizeof(figures)) < 0;
	tally_region_end("unknown");
	tally_region_begin("open");
	exit(7);
}

int main(int argc, char **argv)
{
	(void)real_of;
	if (argc > 1)
		return run_as(argv[1]);
	unsetenv("TALLY_REPORT");
	unsetenv("TALLY_EVENTS");
	unsetenv("TALLY_OVERHEAD");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_there_before_the_first_region),
		cmocka_unit_test(self_is_total_without_the_regions_inside),
		cmocka_unit_test(recursion_counts_time_once),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(names_are_compared_by_text),
		cmocka_unit_test(mistaken_ends_leave_the_rest_right),
		cmocka_unit_test(threads_are_summed_up_when_they_have_ended),
		cmocka_unit_test(nothing_is_allocated_after_the_first_use),
		cmocka_unit_test(signal_handlers_may_use_regions),
		cmocka_unit_test(a_child_begins_empty),
		cmocka_unit_test(names_have_a_limit),
		cmocka_unit_test(percentiles_are_near_the_exact_ones),
		cmocka_unit_test(report_comes_at_exit_and_only_then),
		cmocka_unit_test(children_print_only_their_own),
		cmocka_unit_test(a_closed_pipe_does_not_change_the_exit_status),
		cmocka_unit_test(refused_events_leave_wall_time_and_a_reason),
		cmocka_unit_test(an_ordinary_user_gets_no_false_zeros),
		cmocka_unit_test(overhead_is_subtracted_when_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
