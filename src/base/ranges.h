/* A set of 64-bit numbers as ranges, which are added in any order, sorted and joined once, and then
 * searched.
 *
 *     tally_vector_push(&ranges, (struct tally_range){ 4, 7 });
 *     tally_ranges_join(&ranges);
 *     if (tally_ranges_have(&ranges, 5)) ...
 *     tally_vector_release(&ranges);
 *
 * May be searched by several threads at once.
 */
#ifndef TALLY_BASE_RANGES_H
#define TALLY_BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both ends belong to it. */
struct tally_range {
	uint64_t first, last;
};

struct tally_ranges {
	/* once joined in order, with numbers between them that are in none */
	struct tally_range *items;
	size_t count, capacity;
};

/* Sorts, and makes one of ranges that overlap or follow upon one another. */
void tally_ranges_join(struct tally_ranges *ranges);

/* Whether one of the ranges, which are joined, has the number. */
bool tally_ranges_have(const struct tally_ranges *ranges, uint64_t number);

/* The same of what was asked for: where there is no range, any number will do. */
static inline bool tally_ranges_pass(const struct tally_ranges *ranges, uint64_t number)
{
	return !ranges->count || tally_ranges_have(ranges, number);
}

#endif
