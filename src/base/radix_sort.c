#include "base/radix_sort.h"

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
