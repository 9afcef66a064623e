/* The cost of a region: begin and end around nothing, in one thread and in several, beside the parts
 * that they are made of.  docs/performance.md, Regions.
 *
 *     bench_regions [ROUNDS]
 *
 * Prints medians of ROUNDS rounds in ns.  TALLY_EVENTS chooses the events, as for any program. */
#include "tally/group.h"
#include "tally/region.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAIRS = 200, RUNS_MAX = 4, ROUNDS_MAX = 1001, THREADS = 2, EVENTS_MAX = 16 };

static unsigned rounds = 15;
static volatile uint64_t sink;
static struct tally_group *group; /* the events of the regions; NULL: none, or several groups */

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

/* Measures several things in turns, each for less than a time slice of the scheduler, so that a busy
 * machine disturbs few rounds, and all things alike.  Stores the median
 * ns of each. */
static void measure(void (*const *runs)(void), unsigned count, double *medians)
{
	static __thread double ns[RUNS_MAX][ROUNDS_MAX];
	for (unsigned i = 0; i < rounds; i++)
		for (unsigned r = 0; r < count; r++) {
			runs[r]();
			uint64_t start = wall_ns();
			for (unsigned n = 0; n < PAIRS; n++)
				runs[r]();
			ns[r][i] = (double)(wall_ns() - start) / PAIRS;
		}
	for (unsigned r = 0; r < count; r++) {
		qsort(ns[r], rounds, sizeof(double), ascending);
		medians[r] = ns[r][rounds / 2];
	}
}

static void two_clocks(void)
{
	sink = wall_ns();
	sink = wall_ns();
}

static void one_pair(void)
{
	tally_region_begin("one");
	tally_region_end("one");
}

static void nested_pair(void)
{
	tally_region_begin("outer");
	tally_region_begin("one");
	tally_region_end("one");
	tally_region_end("outer");
}

static void two_reads(void)
{
	struct tally_count counts[EVENTS_MAX];
	tally_group_read(group, counts, EVENTS_MAX);
	tally_group_read(group, counts, EVENTS_MAX);
}

static void *measure_one(void *result)
{
	measure((void (*const[])(void)){ one_pair }, 1, result);
	return NULL;
}

/* Opens the events of the regions once more, as one group. */
static void open_group(void)
{
	char names[600] = "";
	for (size_t i = 1; tally_region_event(i); i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 *names ? "," : "", tally_region_event(i));
	group = tally_group_open(names, NULL, 0);
}

int main(int argc, char **argv)
{
	void (*const runs[])(void) = { two_clocks, one_pair, nested_pair, two_reads };
	pthread_t threads[THREADS];
	double ns[RUNS_MAX], own[THREADS];
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_regions [ROUNDS]\n");
		return 2;
	}
	one_pair();
	open_group();
	measure(runs, group ? 4 : 3, ns);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, measure_one, &own[i]))
			return 1;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("| ns of a region with");
	for (size_t i = 0; tally_region_event(i); i++)
		printf("%s %s", i ? "," : "", tally_region_event(i));
	printf(" | |\n|---|---|\n");
	printf("| two readings of the clock alone | %.1f |\n", ns[0]);
	if (group)
		printf("| two readings of the events alone | %.1f |\n", ns[3]);
	printf("| begin and end | %.1f |\n", ns[1]);
	printf("| … of two regions, one inside the other | %.1f |\n", ns[2]);
	printf("| begin and end, in %d threads at once | %.1f |\n", THREADS, own[0]);
	tally_group_close(group);
	return 0;
}
