/* A period of cycles or of cache misses says how much happened since the last sample, not how long
 * that took.  The distance between samples tells: for a task that stays on its CPU, the next sample
 * comes after about as long as the last one did.
 *
 * So a sample stands for the time since the previous sample of the same event, thread and CPU.  If
 * that is more than twice the median distance, the thread waited or did something else meanwhile;
 * then the sample stands for the median.  So does a sample without a previous one.
 */
#include "timeline/activity_spans.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>

struct gaps {
	TALLY_VECTOR(uint64_t) items;
	struct tally_map last; /* thread and CPU → time of the previous sample */
};

static bool is_open(const struct tally_ran *ran, uint32_t event)
{
	return ran->event == event && ran->start == ran->end;
}

static int by_length(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x > *y ? 1 : *x < *y ? -1 : 0;
}

/* Notes a sample and sets `gap` to its distance from the previous one; 0: there is none.  Returns 0
 * or -ENOMEM. */
static int step(struct gaps *gaps, const struct tally_ran *ran, uint64_t *gap)
{
	bool is_first = false;
	uint64_t *last = tally_map_put(&gaps->last, (uint64_t)ran->thread << 32 | ran->cpu,
				       &is_first);
	if (!last)
		return -ENOMEM;
	*gap = is_first || *last > ran->end ? 0 : ran->end - *last;
	*last = ran->end;
	return 0;
}

/* Sets `usual` to the median distance; 0 when no thread has two samples on one CPU.  Returns 0 or
 * -ENOMEM. */
static int find_usual(struct gaps *gaps, const struct tally_ran *ran, size_t count, uint32_t event,
		      uint64_t *usual)
{
	uint64_t gap;
	*usual = 0;
	gaps->items.count = 0;
	for (size_t i = 0; i < count; i++) {
		if (!is_open(&ran[i], event))
			continue;
		if (step(gaps, &ran[i], &gap) < 0 ||
		    (gap && tally_vector_push(&gaps->items, gap) < 0))
			return -ENOMEM;
	}
	if (!gaps->items.count)
		return 0;
	qsort(gaps->items.items, gaps->items.count, sizeof(*gaps->items.items), by_length);
	*usual = gaps->items.items[gaps->items.count / 2];
	return 0;
}

static int fill_event(struct tally_ran *ran, size_t count, uint32_t event)
{
	struct gaps gaps = { 0 };
	uint64_t usual, gap;
	int result = find_usual(&gaps, ran, count, event, &usual);
	tally_map_release(&gaps.last);
	gaps.last = (struct tally_map){ 0 };
	for (size_t i = 0; !result && usual && i < count; i++) {
		if (!is_open(&ran[i], event))
			continue;
		result = step(&gaps, &ran[i], &gap);
		uint64_t span = gap && gap / 2 <= usual ? gap : usual;
		ran[i].start = ran[i].end > span ? ran[i].end - span : 0;
	}
	tally_map_release(&gaps.last);
	tally_vector_release(&gaps.items);
	return result;
}

int tally_spans_fill(struct tally_ran *ran, size_t count)
{
	struct tally_map seen = { 0 };
	int result = 0;
	for (size_t i = 0; !result && i < count; i++) {
		bool is_new = false;
		if (ran[i].start != ran[i].end || ran[i].event == UINT32_MAX)
			continue;
		if (!tally_map_put(&seen, ran[i].event, &is_new))
			result = -ENOMEM;
		else if (is_new)
			result = fill_event(ran, count, ran[i].event);
	}
	tally_map_release(&seen);
	return result;
}
