/* A set of 64-bit numbers as ranges, which are added in any order, sorted and joined once, and then
 * searched.
 *
 *     tally_vector_push(&ranges, (struct tally_range){ 4, 7 });
 *     tally_ranges_join(&ranges);
 *     if (tally_ranges_have(&ranges, 5)) ...
 *     tally_vector_release(&ranges);
 *
 * Several threads may search it at once. */
#ifndef TALLY_BASE_RANGES_H
#define TALLY_BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Includes both ends. */
struct tally_range {
	uint64_t first, last;
};

struct tally_ranges {
	/* after joining: in order, and neither touching nor overlapping */
	struct tally_range *items;
	size_t count, capacity;
};

/* Sorts the ranges, and joins those that overlap or are adjacent. */
void tally_ranges_join(struct tally_ranges *ranges);

/* Returns true if one of the (joined) ranges has the number. */
bool tally_ranges_have(const struct tally_ranges *ranges, uint64_t number);

/* For a choice of the user: without any range, every number passes. */
static inline bool tally_ranges_pass(const struct tally_ranges *ranges, uint64_t number)
{
	return !ranges->count || tally_ranges_have(ranges, number);
}

#endif
