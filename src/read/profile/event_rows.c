/* Sorts rows and classes by event with a counting sort. */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t event_of(const struct tally_profile *profile, size_t row)
{
	return profile->classes.items[profile->rows.rows.items[row].class].event;
}

static uint32_t events_of(const struct tally_profile *profile)
{
	uint32_t count = 0;
	for (size_t i = 0; i < profile->classes.count; i++)
		if (profile->classes.items[i].event >= count)
			count = profile->classes.items[i].event + 1;
	return count;
}

/* Makes starts of numbers: starts[i + 1] are the items of i.  Then they are the start of i + 1, and
 * putting an item of i moves starts[i]. */
static void add_up(size_t *starts, size_t count)
{
	for (size_t i = 1; i <= count; i++)
		starts[i] += starts[i - 1];
}

/* After all items were put, each start is that of the next event. */
static void move_back(size_t *starts, size_t count)
{
	for (size_t i = count; i > 0; i--)
		starts[i] = starts[i - 1];
	starts[0] = 0;
}

static void count_merged(const struct tally_profile *profile, struct tally_event_rows *index)
{
	for (size_t i = 0; i < profile->merged_threads.capacity; i++) {
		const struct tally_map_slot *slot = &profile->merged_threads.slots[i];
		if (slot->used && slot->key >> 32 < index->events)
			index->merged_threads[slot->key >> 32]++;
	}
}

int tally_event_rows_make(const struct tally_profile *profile, struct tally_event_rows *index)
{
	size_t rows = profile->rows.rows.count, classes = profile->classes.count;
	index->events = events_of(profile);
	index->rows = calloc(rows + 1, sizeof(*index->rows));
	index->classes = calloc(classes + 1, sizeof(*index->classes));
	index->positions = calloc(classes + 1, sizeof(*index->positions));
	index->row_starts = calloc(index->events + 1, sizeof(*index->row_starts));
	index->class_starts = calloc(index->events + 1, sizeof(*index->class_starts));
	index->merged_threads = calloc(index->events + 1, sizeof(*index->merged_threads));
	if (!index->rows || !index->classes || !index->positions || !index->row_starts ||
	    !index->class_starts || !index->merged_threads)
		return -ENOMEM;
	for (size_t i = 0; i < rows; i++)
		index->row_starts[event_of(profile, i) + 1]++;
	for (size_t i = 0; i < classes; i++)
		index->class_starts[profile->classes.items[i].event + 1]++;
	add_up(index->row_starts, index->events);
	add_up(index->class_starts, index->events);
	for (size_t i = 0; i < rows; i++)
		index->rows[index->row_starts[event_of(profile, i)]++] = (uint32_t)i;
	for (size_t i = 0; i < classes; i++)
		index->classes[index->class_starts[profile->classes.items[i].event]++] = (uint32_t)i;
	move_back(index->row_starts, index->events);
	move_back(index->class_starts, index->events);
	for (uint32_t event = 0; event < index->events; event++)
		for (size_t i = index->class_starts[event]; i < index->class_starts[event + 1]; i++)
			index->positions[index->classes[i]] =
				(uint32_t)(i - index->class_starts[event]);
	count_merged(profile, index);
	return 0;
}

struct tally_numbers tally_event_rows(const struct tally_event_rows *index, uint32_t event)
{
	if (event >= index->events)
		return (struct tally_numbers){ 0 };
	return (struct tally_numbers){ index->rows + index->row_starts[event],
				       index->row_starts[event + 1] - index->row_starts[event] };
}

struct tally_numbers tally_event_classes(const struct tally_event_rows *index, uint32_t event)
{
	if (event >= index->events)
		return (struct tally_numbers){ 0 };
	return (struct tally_numbers){ index->classes + index->class_starts[event],
				       index->class_starts[event + 1] -
					       index->class_starts[event] };
}

void tally_event_rows_release(struct tally_event_rows *index)
{
	free(index->rows);
	free(index->classes);
	free(index->positions);
	free(index->row_starts);
	free(index->class_starts);
	free(index->merged_threads);
	*index = (struct tally_event_rows){ 0 };
}
