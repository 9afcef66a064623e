/* The functions behind the vector's macros, and a radix sort.  Large vectors get huge pages. */
#include "base/vector.h"

#include "base/huge.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

int tally_vector_reserve_(void **items, size_t *capacity, size_t need, size_t item_bytes)
{
	size_t wanted = *capacity ? *capacity : 16;
	while (wanted < need) {
		if (wanted > SIZE_MAX / 2)
			return -ENOMEM;
		wanted *= 2;
	}
	size_t total;
	if (__builtin_mul_overflow(wanted, item_bytes, &total))
		return -ENOMEM;
	void *grown = tally_huge_grow(*items, *capacity * item_bytes, total);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*capacity = wanted;
	return 0;
}

void tally_vector_release_(void **items)
{
	free(*items);
	*items = NULL;
}

/* Sorts by one byte of the key after another, and skips bytes that are equal in all keys. */
struct tally_radix_item *tally_radix_sort(struct tally_radix_item *keys,
					  struct tally_radix_item *spare, size_t count)
{
	for (unsigned shift = 0; count > 1 && shift < 64; shift += 8) {
		size_t places[257] = { 0 };
		for (size_t i = 0; i < count; i++)
			places[(keys[i].key >> shift & 0xff) + 1]++;
		if (places[(keys[0].key >> shift & 0xff) + 1] == count)
			continue;
		for (size_t digit = 1; digit < 256; digit++)
			places[digit] += places[digit - 1];
		for (size_t i = 0; i < count; i++)
			spare[places[keys[i].key >> shift & 0xff]++] = keys[i];
		struct tally_radix_item *sorted = spare;
		spare = keys;
		keys = sorted;
	}
	return keys;
}
