/* Sums of weights that end at a limit.
 *
 * Each weight is added to the sum of all weights of its event before any view uses it.  The part
 * that no longer fits is cut off there.  So every partial sum of a view (a row, a call tree, a
 * thread) stays below the limit as well, and views can add without looking. */
#ifndef TALLY_BASE_WEIGHT_SUM_H
#define TALLY_BASE_WEIGHT_SUM_H

#include <stdint.h>

/* How views say that a sum ended there. */
#define TALLY_SATURATED_TEXT "shares are not exact: the weights add up to more than 2^64 - 1"

struct tally_weight_sum {
	uint64_t sum;
	uint64_t cut; /* number of weights that did not fit completely; 0: the sum is exact */
};

/* Adds a weight to a sum that ends at `limit`.  Returns what of the weight fits. */
static inline uint64_t tally_weight_sum_add(struct tally_weight_sum *sum, uint64_t weight,
					    uint64_t limit)
{
	uint64_t room = limit - sum->sum;
	if (__builtin_expect(weight > room, 0)) {
		sum->cut++;
		weight = room;
	}
	sum->sum += weight;
	return weight;
}

/* Adds numbers that have no such sum: the result is at most UINT64_MAX. */
static inline uint64_t tally_sum_capped(uint64_t a, uint64_t b)
{
	uint64_t sum;
	if (__builtin_add_overflow(a, b, &sum))
		return UINT64_MAX;
	return sum;
}

/* Multiplies numbers: the result is at most UINT64_MAX. */
static inline uint64_t tally_product_capped(uint64_t a, uint64_t b)
{
	uint64_t product;
	if (__builtin_mul_overflow(a, b, &product))
		return UINT64_MAX;
	return product;
}

/* Converts to an integer, without a fraction.  Numbers below 0 and NaN become 0, too large ones
 * UINT64_MAX: in C the conversion of these is undefined. */
static inline uint64_t tally_whole_number(double number)
{
	if (!(number > 0))
		return 0;
	if (number >= 0x1p64)
		return UINT64_MAX;
	return (uint64_t)number;
}

#endif
