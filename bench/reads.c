/* The costs of reading counters: libtally's ways beside read(2) and PAPI.  docs/performance.md,
 * Reading counters.
 *
 *     bench_reads [ROUNDS]
 *
 * No hardware counters are needed.  For the user page's way, libtally's functions get pages in
 * memory, and the processor's clock takes the place of a counter.  For read(2), libtally and PAPI
 * read software events of the kernel.  Prints the median of ROUNDS rounds in ns, by number of
 * events.  Each round measures every way once, so that what else runs slows all of them. */
#include "library/user_page.h"

static inline uint64_t clock_as_counter(void *context, uint32_t number);

#define TALLY_USER_COUNTER clock_as_counter
/* NOLINTNEXTLINE(bugprone-suspicious-include): the functions under test, with that counter */
#include "library/counter.c"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef WITH_PAPI
#include <papi.h>
#endif

enum { EVENTS_MAX = 8, READS = 2000, ROUNDS_MAX = 1001 };

static volatile uint64_t sink;

static inline uint64_t clock_as_counter(void *context, uint32_t number)
{
	(void)number;
	return tally_user_clock(context);
}

/* --- pages in memory ------------------------------------------------------ */

struct injected {
	struct tally_user_page pages[EVENTS_MAX];
	struct tally_counter counter;
	struct tally_group group;
	uint64_t words[HEAD_WORDS + EVENTS_MAX];
	unsigned count;
};

static void read_clocks(void *argument)
{
	const struct injected *injected = argument;
	for (unsigned i = 0; i < injected->count; i++)
		sink = tally_user_clock(NULL);
}

static void read_page_values(void *argument)
{
	struct injected *injected = argument;
	uint64_t values[EVENTS_MAX];
	if (injected->count == 1)
		tally_counter_value(&injected->counter, values);
	else
		tally_group_values(&injected->group, values, EVENTS_MAX);
	sink = values[0];
}

static void read_page_counts(void *argument)
{
	struct injected *injected = argument;
	struct tally_count counts[EVENTS_MAX];
	if (injected->count == 1)
		tally_counter_read(&injected->counter, counts);
	else
		tally_group_read(&injected->group, counts, EVENTS_MAX);
	sink = counts[0].value;
}

static void inject(struct injected *injected, unsigned count)
{
	struct tally_page_reader reader = { .count = count,
					    .thread = pthread_self(),
					    .process = tally_page_reader_this_process() };
	*injected = (struct injected){ .count = count };
	for (unsigned i = 0; i < EVENTS_MAX; i++) {
		reader.pages[i] = &injected->pages[i];
		injected->pages[i] = (struct tally_user_page){
			.index = 1 + i,
			.pmc_width = 48,
			.capabilities = TALLY_CAP_BIT0_IS_DEPRECATED | TALLY_CAP_USER_RDPMC |
					TALLY_CAP_USER_TIME,
			.time_shift = 10,
			.time_mult = 410,
		};
	}
	injected->counter = (struct tally_counter){ .pages = reader, .handle = -1 };
	injected->group = (struct tally_group){ .pages = reader,
						.words = injected->words,
						.size = count };
}

/* --- the kernel's events -------------------------------------------------- */

/* The same events for all ways, all started by their leader: a member of a group that runs already
 * would not count, and cost nothing, until the thread is switched in again. */
static const struct {
	const char *name, *papi_name;
	uint64_t config;
} events[EVENTS_MAX] = {
	{ "page-faults:u", "perf::PAGE-FAULTS", PERF_COUNT_SW_PAGE_FAULTS },
	{ "task-clock:u", "perf::TASK-CLOCK", PERF_COUNT_SW_TASK_CLOCK },
	{ "context-switches:u", "perf::CONTEXT-SWITCHES", PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cpu-migrations:u", "perf::CPU-MIGRATIONS", PERF_COUNT_SW_CPU_MIGRATIONS },
	{ "minor-faults:u", "perf::MINOR-FAULTS", PERF_COUNT_SW_PAGE_FAULTS_MIN },
	{ "major-faults:u", "perf::MAJOR-FAULTS", PERF_COUNT_SW_PAGE_FAULTS_MAJ },
	{ "alignment-faults:u", "perf::ALIGNMENT-FAULTS", PERF_COUNT_SW_ALIGNMENT_FAULTS },
	{ "emulation-faults:u", "perf::EMULATION-FAULTS", PERF_COUNT_SW_EMULATION_FAULTS },
};

struct opened {
	int fds[EVENTS_MAX];
	struct tally_counter *counter;
	struct tally_group *group;
	int papi_set;
};

static void read_file(void *argument)
{
	const struct opened *opened = argument;
	uint64_t words[3 + EVENTS_MAX];
	if (read(opened->fds[0], words, sizeof(words)) > 0)
		sink = words[0];
}

static void read_library(void *argument)
{
	const struct opened *opened = argument;
	struct tally_count counts[EVENTS_MAX];
	if (opened->counter)
		tally_counter_read(opened->counter, counts);
	else
		tally_group_read(opened->group, counts, EVENTS_MAX);
	sink = counts[0].value;
}

/* Returns false if the kernel refuses. */
static bool open_files(struct opened *opened, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
						.size = sizeof(attr),
						.config = events[i].config,
						.exclude_kernel = 1,
						.disabled = !i,
						.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
							       PERF_FORMAT_TOTAL_TIME_RUNNING };
		if (count > 1)
			attr.read_format |= PERF_FORMAT_GROUP;
		int leader = i ? opened->fds[0] : -1;
		opened->fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader,
					      PERF_FLAG_FD_CLOEXEC);
		if (opened->fds[i] < 0)
			return false;
	}
	return !ioctl(opened->fds[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

static bool open_library(struct opened *opened, unsigned count)
{
	const struct tally_counter_options own = { sizeof(own), .this_thread_only = true };
	char list[400] = "", error[256];
	for (unsigned i = 0; i < count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? "," : "",
			 events[i].name);
	if (count == 1)
		opened->counter = tally_counter_open_with(list, &own, error, sizeof(error));
	else
		opened->group = tally_group_open(list, error, sizeof(error));
	if (!opened->counter && !opened->group)
		fprintf(stderr, "bench_reads: %s\n", error);
	return opened->counter || opened->group;
}

#ifdef WITH_PAPI
static void read_papi(void *argument)
{
	const struct opened *opened = argument;
	long long values[EVENTS_MAX];
	if (PAPI_read(opened->papi_set, values) == PAPI_OK)
		sink = (uint64_t)values[0];
}

static bool open_papi(struct opened *opened, unsigned count)
{
	opened->papi_set = PAPI_NULL;
	if (PAPI_create_eventset(&opened->papi_set) != PAPI_OK)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (PAPI_add_named_event(opened->papi_set, events[i].papi_name) != PAPI_OK)
			return false;
	return PAPI_start(opened->papi_set) == PAPI_OK;
}

/* Returns why PAPI can't count here; NULL: it can. */
static const char *start_papi(void)
{
	if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
		return "it does not start";
	const PAPI_component_info_t *component = PAPI_get_component_info(0);
	if (!component)
		return "it has no component";
	return component->disabled ? component->disabled_reason : NULL;
}
#else
static void read_papi(void *argument)
{
	(void)argument;
}

static bool open_papi(struct opened *opened, unsigned count)
{
	(void)opened;
	(void)count;
	return false;
}

static const char *start_papi(void)
{
	return "libpapi-dev is not installed";
}
#endif

/* --- measuring ------------------------------------------------------------ */

enum way { CLOCKS, PAGE_VALUES, PAGE_COUNTS, FILE_READ, LIBRARY, PAPI, WAYS };

static const char *const titles[WAYS] = {
	"the counters' instructions alone",    "libtally, by page: values",
	"libtally, by page: values and times", "read(2), software events",
	"libtally, the same events",           "PAPI, the same events"
};

static double results[WAYS][EVENTS_MAX + 1]; /* ns; 0: not measured */

/* Measures all ways of reading `count` events. */
static void bench(unsigned count, unsigned rounds, bool has_papi)
{
	static struct injected injected;
	struct opened opened = { .counter = NULL };
	struct {
		void (*run)(void *argument);
		void *argument;
		bool is_open;
	} ways[WAYS] = {
		{ read_clocks, &injected, true },
		{ read_page_values, &injected, true },
		{ read_page_counts, &injected, true },
		{ read_file, &opened, open_files(&opened, count) },
		{ read_library, &opened, open_library(&opened, count) },
		{ read_papi, &opened, has_papi && open_papi(&opened, count) },
	};
	static uint64_t ns[WAYS][ROUNDS_MAX];
	inject(&injected, count);
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned way = 0; way < WAYS; way++) {
			if (!ways[way].is_open)
				continue;
			uint64_t start = now_ns();
			for (unsigned n = 0; n < READS; n++)
				ways[way].run(ways[way].argument);
			ns[way][round] = now_ns() - start;
		}
	for (unsigned way = 0; way < WAYS; way++) {
		if (!ways[way].is_open)
			continue;
		qsort(ns[way], rounds, sizeof(**ns), compare_ns);
		results[way][count] = (double)ns[way][rounds / 2] / READS;
	}
	tally_counter_close(opened.counter);
	tally_group_close(opened.group);
	for (unsigned i = 0; i < count; i++)
		close(opened.fds[i]);
}

static void print_row(const char *title, const double *values, int decimals)
{
	printf("| %s |", title);
	for (unsigned count = 1; count <= EVENTS_MAX; count++)
		printf(" %.*f |", decimals, values[count]);
	putchar('\n');
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 15;
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_reads [ROUNDS]\n");
		return 2;
	}
	double each[EVENTS_MAX + 1], ratio[EVENTS_MAX + 1];
	const char *no_papi = start_papi();
	for (unsigned count = 1; count <= EVENTS_MAX; count++) {
		bench(count, (unsigned)rounds, !no_papi);
		each[count] = results[PAGE_VALUES][count] / count;
		ratio[count] = 0;
		if (results[FILE_READ][count] > 0)
			ratio[count] = results[LIBRARY][count] / results[FILE_READ][count];
	}
	printf("| ns of a read, by number of events | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |\n"
	       "|---|---|---|---|---|---|---|---|---|\n");
	for (unsigned way = 0; way < WAYS; way++)
		if (way != PAPI || !no_papi)
			print_row(titles[way], results[way], 1);
	print_row("by page, values: ns of each event (goal: 12)", each, 1);
	print_row("libtally / read(2) (goal: 1.1)", ratio, 2);
	if (no_papi)
		printf("PAPI: not measured: %s\n", no_papi);
	return 0;
}
