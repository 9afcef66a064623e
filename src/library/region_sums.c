/* Sums over the calls of a region: mean and spread by Welford's method, percentiles by a histogram
 * whose buckets are a sixteenth of a power of two wide.  (B. P. Welford, Note on a method for
 * calculating corrected sums of squares and products, Technometrics 4, 1962; merging: T. F. Chan et
 * al., 1979.) */
#include "library/region_internal.h"

#include <math.h>

unsigned tally_region_bucket(uint64_t value)
{
	if (value < 16)
		return (unsigned)value;
	unsigned power = 63 - (unsigned)__builtin_clzll(value);
	return 16 + (power - 4) * 16 + (unsigned)(value >> (power - 4) & 15);
}

double tally_region_bucket_value(unsigned bucket)
{
	if (bucket < 16)
		return bucket;
	unsigned power = (bucket - 16) / 16, part = (bucket - 16) % 16;
	double width = (double)((uint64_t)1 << power);
	return width * (16.0 + part + (power ? 0.5 : 0));
}

void tally_region_sum_add(struct tally_region_sum *sum, double value)
{
	double distance = value - sum->mean;
	sum->measured++;
	sum->total += value;
	sum->mean += distance / (double)sum->measured;
	sum->squares += distance * (value - sum->mean);
	if (value > sum->max)
		sum->max = value;
	uint32_t *bucket = &sum->buckets[tally_region_bucket((uint64_t)(value + 0.5))];
	if (*bucket < UINT32_MAX)
		++*bucket;
}

void tally_region_sum_merge(struct tally_region_sum *sum, const struct tally_region_sum *other)
{
	double ours = (double)sum->measured, theirs = (double)other->measured;
	double distance = other->mean - sum->mean;
	sum->scaled += other->scaled;
	sum->self += other->self;
	if (!other->measured)
		return;
	sum->measured += other->measured;
	sum->total += other->total;
	sum->mean += distance * theirs / (ours + theirs);
	sum->squares += other->squares + distance * distance * ours * theirs / (ours + theirs);
	if (other->max > sum->max)
		sum->max = other->max;
	for (unsigned i = 0; i < TALLY_REGION_BUCKETS; i++) {
		uint64_t both = (uint64_t)sum->buckets[i] + other->buckets[i];
		sum->buckets[i] = both < UINT32_MAX ? (uint32_t)both : UINT32_MAX;
	}
}

/* Returns the value that the share of all calls does not exceed. */
static double percentile(const struct tally_region_sum *sum, double share)
{
	uint64_t all = 0, below = 0;
	for (unsigned i = 0; i < TALLY_REGION_BUCKETS; i++)
		all += sum->buckets[i];
	double wanted = (double)all * share;
	for (unsigned i = 0; i < TALLY_REGION_BUCKETS; i++) {
		double value = tally_region_bucket_value(i);
		below += sum->buckets[i];
		if (below && (double)below >= wanted)
			return value < sum->max ? value : sum->max;
	}
	return 0;
}

void tally_region_figure_of(const struct tally_region_sum *sum, struct tally_region_figure *figure)
{
	figure->total = sum->total;
	figure->self = sum->self;
	figure->mean = sum->mean;
	figure->max = sum->max;
	figure->deviation = 0;
	if (sum->measured > 1 && sum->squares > 0)
		figure->deviation = sqrt(sum->squares / (double)(sum->measured - 1));
	figure->p50 = percentile(sum, 0.5);
	figure->p99 = percentile(sum, 0.99);
	figure->measured = sum->measured;
	figure->scaled = sum->scaled;
}
