/* A log-linear histogram of 64-bit values, of fixed size: 32 parts for each power of two, as in
 * HdrHistogram (G. Tene, hdrhistogram.org).
 *
 * Values below 64 have a bucket each.  Above, a bucket is at most 1/32 of its values wide, and its
 * middle stands for all of them: so a percentile is at most 1/64 from the exact one.  Pure. */
#ifndef TALLY_LIBRARY_HISTOGRAM_H
#define TALLY_LIBRARY_HISTOGRAM_H

#include <stdint.h>

enum {
	TALLY_HISTOGRAM_BITS = 5,
	TALLY_HISTOGRAM_PARTS = 1 << TALLY_HISTOGRAM_BITS,
	TALLY_HISTOGRAM_BUCKETS = (64 - TALLY_HISTOGRAM_BITS + 1) * TALLY_HISTOGRAM_PARTS
};

/* Returns the bucket of a value, below TALLY_HISTOGRAM_BUCKETS. */
static inline unsigned tally_histogram_bucket(uint64_t value)
{
	if (value < TALLY_HISTOGRAM_PARTS)
		return (unsigned)value;
	unsigned shift = 63 - (unsigned)__builtin_clzll(value) - TALLY_HISTOGRAM_BITS;
	return shift * TALLY_HISTOGRAM_PARTS + (unsigned)(value >> shift);
}

/* Returns the value in the middle of a bucket. */
static inline uint64_t tally_histogram_value(unsigned bucket)
{
	if (bucket < 2 * TALLY_HISTOGRAM_PARTS)
		return bucket;
	unsigned shift = bucket / TALLY_HISTOGRAM_PARTS - 1;
	uint64_t part = bucket % TALLY_HISTOGRAM_PARTS + TALLY_HISTOGRAM_PARTS;
	return (part << shift) + ((uint64_t)1 << shift) / 2;
}

/* Returns the value below which, or at which, `percent` % of the values are; 0 if there are none. */
static inline uint64_t tally_histogram_percentile(const uint64_t counts[TALLY_HISTOGRAM_BUCKETS],
						  unsigned percent)
{
	uint64_t all = 0, seen = 0;
	for (unsigned i = 0; i < TALLY_HISTOGRAM_BUCKETS; i++)
		all += counts[i];
	/* the rank, rounded up, without overflow */
	uint64_t rank = all / 100 * percent + (all % 100 * percent + 99) / 100;
	for (unsigned i = 0; i < TALLY_HISTOGRAM_BUCKETS; i++) {
		seen += counts[i];
		if (counts[i] && seen >= rank)
			return tally_histogram_value(i);
	}
	return 0;
}

#endif
