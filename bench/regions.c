/* The cost of a region: begin and end around nothing, in one thread and in several, beside the parts
 * that they are made of.  docs/performance.md, Regions.
 *
 *     bench_regions [ROUNDS]
 *
 * Prints medians of ROUNDS rounds in ns.  TALLY_EVENTS chooses the events, as for any program. */
#include "tally/region.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIRS = 10000, ROUNDS_MAX = 1001, THREADS = 2 };

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

static double measure(void (*run)(void))
{
	double ns[ROUNDS_MAX];
	run();
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t start = wall_ns();
		for (unsigned n = 0; n < PAIRS; n++)
			run();
		ns[i] = (double)(wall_ns() - start) / PAIRS;
	}
	qsort(ns, rounds, sizeof(*ns), ascending);
	return ns[rounds / 2];
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

static void *measure_one(void *result)
{
	*(double *)result = measure(one_pair);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	double ns[THREADS] = { 0 };
	if (argc > 1)
		rounds = (unsigned)strtoul(argv[1], NULL, 10);
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_regions [ROUNDS]\n");
		return 2;
	}
	double clocks = measure(two_clocks), one = measure(one_pair), nested = measure(nested_pair);
	for (unsigned i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, measure_one, &ns[i]))
			return 1;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("| region | ns |\n|---|---|\n");
	printf("| two readings of the clock alone | %.1f |\n", clocks);
	printf("| begin and end | %.1f |\n", one);
	printf("| … one region inside another, both | %.1f |\n", nested);
	printf("| … in each of %d threads at once | %.1f |\n", THREADS, ns[0]);
	printf("Events:");
	for (size_t i = 0; tally_region_event(i); i++)
		printf(" %s", tally_region_event(i));
	putchar('\n');
	return 0;
}
