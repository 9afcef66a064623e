/* Sorts by a 64-bit key in linear time.  Equal keys keep their order. */
#ifndef TALLY_BASE_RADIX_SORT_H
#define TALLY_BASE_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

struct tally_radix_item {
	uint64_t key;
	uint32_t index; /* position of the item that is sorted */
};

/* Sorts `keys` with the help of `spare`, which has the same size.  The result is in one of the two
 * arrays, which is returned. */
struct tally_radix_item *tally_radix_sort(struct tally_radix_item *keys,
					  struct tally_radix_item *spare, size_t count);

#endif
