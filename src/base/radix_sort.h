/* Sorting by a 64-bit key in linear time, equal keys in the order in which they came. */
#ifndef TALLY_BASE_RADIX_SORT_H
#define TALLY_BASE_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

struct tally_sort_key {
	uint64_t key;
	uint32_t index; /* of what is sorted */
};

/* Sorts `keys` with the help of `spare`, as large; the result is in one of the two: which, is
 * returned. */
struct tally_sort_key *tally_radix_sort(struct tally_sort_key *keys, struct tally_sort_key *spare,
					size_t count);

#endif
