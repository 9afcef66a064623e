#include "base/ranges.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct tally_range *x = a, *y = b;
	return (x->first > y->first) - (x->first < y->first);
}

void tally_ranges_join(struct tally_ranges *ranges)
{
	size_t kept = 0;
	if (ranges->count)
		qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare);
	for (size_t i = 0; i < ranges->count; i++) {
		struct tally_range next = ranges->items[i],
				   *last = &ranges->items[kept ? kept - 1 : 0];
		if (!kept || (next.first > last->last && next.first - last->last > 1))
			ranges->items[kept++] = next;
		else if (next.last > last->last)
			last->last = next.last;
	}
	ranges->count = kept;
}

bool tally_ranges_have(const struct tally_ranges *ranges, uint64_t number)
{
	size_t low = 0, high = ranges->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges->items[middle].last < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ranges->count && ranges->items[low].first <= number;
}
