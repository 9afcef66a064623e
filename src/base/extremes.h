/* The larger and smaller of two numbers, which one comes first, and how much is left.  Prefer these
 * to a `?:` of one's own.  Signed numbers that may be negative need the functions for i64.
 *
 * Those of doubles replace fmax(3) and fmin(3), for which libm would have to be loaded at each
 * start.  Neither argument may be NaN. */
#ifndef TALLY_BASE_EXTREMES_H
#define TALLY_BASE_EXTREMES_H

#include <stdint.h>

static inline double tally_max_double(double a, double b)
{
	return a > b ? a : b;
}

static inline double tally_min_double(double a, double b)
{
	return a < b ? a : b;
}

static inline uint64_t tally_max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t tally_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline int64_t tally_max_i64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static inline int64_t tally_min_i64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns a − b, or 0 if b is larger. */
static inline uint64_t tally_saturating_sub_u64(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Return −1 if a comes before b, 0 if they are equal, 1 otherwise: for qsort(3).  The largest comes
 * first with tally_compare_…(b, a). */

static inline int tally_compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static inline int tally_compare_i64(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static inline int tally_compare_double(double a, double b)
{
	return (a > b) - (a < b);
}

#endif
