/* Sorts the ranges, then sweeps over their starts with a stack of open ranges.  Each start and each
 * end adds an item to the list. */
#include "symbol/symbol_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static inline bool is_before(const struct tally_nested_range *a, const struct tally_nested_range *b)
{
	return a->start < b->start || (a->start == b->start && a->end > b->end);
}

static void merge(const struct tally_nested_range *from, size_t middle, size_t count,
		  struct tally_nested_range *to)
{
	size_t left = 0, right = middle;
	for (size_t i = 0; i < count; i++) {
		bool take_right = left == middle ||
				  (right < count && is_before(&from[right], &from[left]));
		to[i] = from[take_right ? right++ : left++];
	}
}

/* Sorts by start, larger ranges first, and is stable.  Compilers write ranges almost sorted; ranges
 * already in order are not moved. */
static int sort(struct tally_nested *nested)
{
	enum { RUN = 16 };
	struct tally_nested_range *ranges = nested->ranges.items;
	size_t count = nested->ranges.count;
	for (size_t begin = 0; begin < count; begin += RUN) {
		size_t end = count;
		if (begin + RUN < count)
			end = begin + RUN;
		for (size_t i = begin + 1; i < end; i++) {
			struct tally_nested_range range = ranges[i];
			size_t at = i;
			for (; at > begin && is_before(&range, &ranges[at - 1]); at--)
				ranges[at] = ranges[at - 1];
			ranges[at] = range;
		}
	}
	if (tally_vector_reserve(&nested->working, count + 1) < 0)
		return -ENOMEM;
	struct tally_nested_range *working = nested->working.items;
	for (size_t run = RUN; run < count; run *= 2)
		for (size_t begin = 0; count - begin > run; ) {
			size_t length = 2 * run;
			if (length > count - begin)
				length = count - begin;
			if (is_before(&ranges[begin + run], &ranges[begin + run - 1])) {
				memcpy(working, ranges + begin, length * sizeof(*ranges));
				merge(working, run, length, ranges + begin);
			}
			begin += length;
		}
	return 0;
}

static int emit(struct tally_nested *nested, uint64_t start, uint32_t id)
{
	size_t count = nested->items.count;
	if (count && nested->items.items[count - 1].start == start) {
		nested->items.items[count - 1].id = id;
		return 0;
	}
	if (count && nested->items.items[count - 1].id == id)
		return 0;
	return tally_vector_push(&nested->items, (struct tally_nested_item){ start, id });
}

/* Closes the ranges that end at or before an address, innermost first. */
static int close_until(struct tally_nested *nested, uint64_t address)
{
	struct tally_nested_range *open = nested->working.items;
	while (nested->working.count && open[nested->working.count - 1].end <= address) {
		uint64_t end = open[nested->working.count - 1].end;
		while (nested->working.count && open[nested->working.count - 1].end <= end)
			nested->working.count--;
		uint32_t around = TALLY_NESTED_NONE;
		if (nested->working.count)
			around = open[nested->working.count - 1].id;
		if (emit(nested, end, around) < 0)
			return -ENOMEM;
	}
	return 0;
}

int tally_nested_flatten(struct tally_nested *nested)
{
	nested->items.count = 0;
	nested->working.count = 0;
	if (sort(nested) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < nested->ranges.count; i++) {
		const struct tally_nested_range *range = &nested->ranges.items[i];
		if (close_until(nested, range->start) < 0 ||
		    emit(nested, range->start, range->id) < 0)
			return -ENOMEM;
		/* has room for all ranges */
		nested->working.items[nested->working.count++] = *range;
	}
	return close_until(nested, UINT64_MAX);
}

void tally_nested_release(struct tally_nested *nested)
{
	tally_vector_release(&nested->ranges);
	tally_vector_release(&nested->items);
	tally_vector_release(&nested->working);
}
