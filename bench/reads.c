/* The costs of reading counters: libtally's ways beside read(2) and PAPI.  docs/performance.md,
 * Reading counters.
 *
 *     bench_reads [ROUNDS]
 *
 * The user page's protocol is measured on pages in memory: the processor's clock takes the place
 * of a hardware counter, so it needs none.  libtally, read(2) and PAPI read software events of the
 * kernel.  Prints the median of ROUNDS rounds in ns, by number of events. */
#include "library/user_counters.h"
#include "library/user_page.h"
#include "tally/counter.h"
#include "tally/group.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_PAPI
#include <papi.h>
#endif

enum { EVENTS_MAX = 8, READS = 20000, SYSTEM_READS = 1000, ROUNDS_MAX = 1001 };

static const unsigned sizes[] = { 1, 2, 4, 8 };

static unsigned rounds = 15;
static volatile uint64_t sink;

static uint64_t wall_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Returns the median ns of one of `count` repetitions, or −1 if the thing can't be read. */
static double measure(unsigned count, int (*run)(void *argument), void *argument)
{
	double ns[ROUNDS_MAX];
	if (run(argument) < 0)
		return -1;
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t start = wall_ns();
		for (unsigned n = 0; n < count; n++)
			run(argument);
		ns[i] = (double)(wall_ns() - start) / count;
	}
	qsort(ns, rounds, sizeof(*ns), ascending);
	return ns[rounds / 2];
}

static void row(const char *what, const double *ns)
{
	printf("| %s |", what);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (ns[i] < 0)
			printf(" – |");
		else
			printf(" %.1f |", ns[i]);
	putchar('\n');
	fflush(stdout);
}

/* --- pages in memory ------------------------------------------------------ */

struct injected {
	struct tally_user_page pages[EVENTS_MAX], *all[EVENTS_MAX];
	unsigned count;
};

static uint64_t clock_as_counter(void *context, uint32_t number)
{
	(void)number;
	return tally_user_clock(context);
}

static const struct tally_user_counters cpu = { TALLY_USER_IS_COUNTER, clock_as_counter,
						tally_user_clock, NULL };

static int read_clock(void *argument)
{
	(void)argument;
	sink = tally_user_clock(NULL);
	return 0;
}

static int read_values(void *argument)
{
	struct injected *injected = argument;
	uint64_t values[EVENTS_MAX];
	if (!tally_pages_read(injected->all, injected->count, &cpu, values, NULL))
		return -1;
	sink = values[injected->count - 1];
	return 0;
}

static int read_times(void *argument)
{
	struct injected *injected = argument;
	struct tally_page_times times;
	uint64_t values[EVENTS_MAX];
	if (!tally_pages_read(injected->all, injected->count, &cpu, values, &times))
		return -1;
	sink = values[injected->count - 1] + times.running_ns;
	return 0;
}

static void bench_pages(void)
{
	struct injected injected = { .count = 0 };
	double plain[4], values[4], times[4];
	for (unsigned i = 0; i < EVENTS_MAX; i++) {
		injected.all[i] = &injected.pages[i];
		injected.pages[i] = (struct tally_user_page){
			.index = 1 + i,
			.pmc_width = 48,
			.capabilities = TALLY_CAP_BIT0_IS_DEPRECATED | TALLY_CAP_USER_RDPMC |
					TALLY_CAP_USER_TIME,
			.time_shift = 10,
			.time_mult = 410,
		};
	}
	for (unsigned i = 0; i < 4; i++) {
		injected.count = sizes[i];
		plain[i] = sizes[i] * measure(READS, read_clock, NULL);
		values[i] = measure(READS, read_values, &injected);
		times[i] = measure(READS, read_times, &injected);
	}
	row("the counters alone (loop and instruction)", plain);
	row("user pages: values", values);
	row("user pages: values and times", times);
}

/* --- the kernel's events -------------------------------------------------- */

struct files {
	int fds[EVENTS_MAX];
	unsigned count;
};

static const char *const names[EVENTS_MAX] = { "page-faults:u",      "task-clock:u",
					       "context-switches:u", "cpu-migrations:u",
					       "minor-faults:u",     "major-faults:u",
					       "alignment-faults:u", "emulation-faults:u" };

static int open_files(struct files *files, unsigned count)
{
	static const uint64_t configs[EVENTS_MAX] = {
		PERF_COUNT_SW_PAGE_FAULTS,      PERF_COUNT_SW_TASK_CLOCK,
		PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS,
		PERF_COUNT_SW_PAGE_FAULTS_MIN,  PERF_COUNT_SW_PAGE_FAULTS_MAJ,
		PERF_COUNT_SW_ALIGNMENT_FAULTS, PERF_COUNT_SW_EMULATION_FAULTS
	};
	for (files->count = 0; files->count < count; files->count++) {
		struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
						.size = sizeof(attr),
						.config = configs[files->count],
						.exclude_kernel = 1,
						.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
							       PERF_FORMAT_TOTAL_TIME_RUNNING };
		if (count > 1)
			attr.read_format |= PERF_FORMAT_GROUP;
		int leader = files->count ? files->fds[0] : -1;
		files->fds[files->count] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader,
							0);
		if (files->fds[files->count] < 0)
			return -1;
	}
	return 0;
}

static int read_file(void *argument)
{
	const struct files *files = argument;
	uint64_t words[3 + EVENTS_MAX];
	return read(files->fds[0], words, sizeof(words)) > 0 ? 0 : -1;
}

static int read_counter(void *argument)
{
	struct tally_count count;
	return tally_counter_read(argument, &count);
}

static int read_group(void *argument)
{
	struct tally_count counts[EVENTS_MAX];
	return tally_group_read(argument, counts, EVENTS_MAX) < 0 ? -1 : 0;
}

static double bench_libtally(unsigned count)
{
	const struct tally_counter_options own = { sizeof(own), .this_thread_only = true };
	char list[400] = "";
	double ns = -1;
	if (count == 1) {
		struct tally_counter *counter = tally_counter_open_with(names[0], &own, NULL, 0);
		if (counter)
			ns = measure(SYSTEM_READS, read_counter, counter);
		tally_counter_close(counter);
		return ns;
	}
	for (unsigned i = 0; i < count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? "," : "",
			 names[i]);
	struct tally_group *group = tally_group_open(list, NULL, 0);
	if (group)
		ns = measure(SYSTEM_READS, read_group, group);
	tally_group_close(group);
	return ns;
}

#ifdef WITH_PAPI
static int read_papi(void *argument)
{
	long long values[EVENTS_MAX];
	return PAPI_read(*(int *)argument, values) == PAPI_OK ? 0 : -1;
}

static double bench_papi(unsigned count)
{
	static const char *const papi_names[EVENTS_MAX] = {
		"perf::PAGE-FAULTS",    "perf::TASK-CLOCK",     "perf::CONTEXT-SWITCHES",
		"perf::CPU-MIGRATIONS", "perf::MINOR-FAULTS",   "perf::MAJOR-FAULTS",
		"perf::CPU-CLOCK",      "perf::CGROUP-SWITCHES"
	};
	int set = PAPI_NULL;
	double ns = -1;
	if (PAPI_create_eventset(&set) != PAPI_OK)
		return -1;
	for (unsigned i = 0; i < count; i++)
		if (PAPI_add_named_event(set, papi_names[i]) != PAPI_OK)
			return -1;
	if (PAPI_start(set) != PAPI_OK)
		return -1;
	ns = measure(SYSTEM_READS, read_papi, &set);
	long long values[EVENTS_MAX];
	PAPI_stop(set, values);
	PAPI_cleanup_eventset(set);
	PAPI_destroy_eventset(&set);
	return ns;
}
#endif

static void bench_kernel(void)
{
	double plain[4], ours[4];
	for (unsigned i = 0; i < 4; i++) {
		struct files files = { .count = 0 };
		plain[i] = -1;
		if (!open_files(&files, sizes[i]))
			plain[i] = measure(SYSTEM_READS, read_file, &files);
		while (files.count)
			close(files.fds[--files.count]);
		ours[i] = bench_libtally(sizes[i]);
	}
	row("read(2)", plain);
	row("libtally, software events", ours);
#ifdef WITH_PAPI
	double papi[4];
	const PAPI_component_info_t *component = NULL;
	if (PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT)
		component = PAPI_get_component_info(0);
	if (!component || component->disabled) {
		printf("PAPI: not measured: %s\n",
		       component ? component->disabled_reason : "it does not start");
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		papi[i] = bench_papi(sizes[i]);
	row("PAPI, software events", papi);
#else
	printf("PAPI: not measured, libpapi-dev is not installed\n");
#endif
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_reads [ROUNDS]\n");
		return 2;
	}
	printf("| ns of a read, by number of events | 1 | 2 | 4 | 8 |\n|---|---|---|---|---|\n");
	bench_pages();
	bench_kernel();
	return 0;
}
