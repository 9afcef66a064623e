/* The figures of regions, between measuring (region.c) and reporting (region_report.c). */
#ifndef TALLY_LIBRARY_REGION_INTERNAL_H
#define TALLY_LIBRARY_REGION_INTERNAL_H

#include "tally/region.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	TALLY_REGION_EVENTS_MAX = 8,
	TALLY_REGION_FIGURES_MAX = 1 + TALLY_REGION_EVENTS_MAX, /* the time is number 0 */
	/* A histogram's buckets: one for each number below 16, then 16 for each power of two. */
	TALLY_REGION_BUCKETS = 16 + 60 * 16
};

/* What the calls of a region added up to. */
struct tally_region_sum {
	uint64_t measured, scaled;
	double total, self;
	double mean, squares; /* Welford: the mean, and the sum of squares of distances from it */
	double max;
	uint32_t buckets[TALLY_REGION_BUCKETS];
};

struct tally_region_sums {
	char *name;
	uint64_t hash;
	uint64_t calls;
	unsigned active; /* calls on this thread that have not ended */
	unsigned count;  /* of `sums` */
	struct tally_region_sum sums[];
};

/* All regions, merged over the threads. */
struct tally_regions {
	struct tally_region_sums **items; /* in the order of their first use; malloc'd */
	size_t count;
	const char *events[TALLY_REGION_FIGURES_MAX];
	unsigned event_count; /* with the time */
	uint64_t mismatches, dropped, threads;
	const char *reason; /* why events are missing; NULL */
	bool is_subtracted;
};

/* Returns the bucket of a value, and the value in the middle of a bucket. */
unsigned tally_region_bucket(uint64_t value);
double tally_region_bucket_value(unsigned bucket);
/* Adds one call's value. */
void tally_region_sum_add(struct tally_region_sum *sum, double value);
/* Adds the calls of another thread. */
void tally_region_sum_merge(struct tally_region_sum *sum, const struct tally_region_sum *other);
/* Computes what is shown. */
void tally_region_figure_of(const struct tally_region_sum *sum, struct tally_region_figure *figure);

/* Merges the figures of all threads.  Returns 0 or -ENOMEM; the caller releases them in either
 * case. */
int tally_regions_gather(struct tally_regions *regions);
void tally_regions_release(struct tally_regions *regions);

/* Writes the figures.  Returns 0 or -errno. */
int tally_regions_write(const struct tally_regions *regions, int fd, bool as_json);

#endif
