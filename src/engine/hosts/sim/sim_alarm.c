/* The machine's next event: alarms in the order of their times.  Alarms with the same time keep the
 * order in which they were set.
 *
 * Most alarms are in a heap with four children per node.  Its entries hold the keys, so sifting
 * reads no alarm, and only writes where each went.  An alarm that rings is usually set again.  So
 * the root is left empty while an alarm rings, and the next alarm that is set starts there: one
 * sift instead of two.
 *
 * There are as many ticks as CPUs, and each is set one period after it rang, later than all the
 * others.  They have a sorted list of their own, where setting one takes a single look at the last
 * tick. */
#include "sim/sim_state.h"

#include <stdlib.h>

enum { CHILDREN = 4, HEAP_FIRST_SIZE = 64 };

static bool earlier(const struct sim_heap_entry *a, const struct sim_heap_entry *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void place(struct sim_alarms *alarms, size_t slot, struct sim_heap_entry entry)
{
	alarms->heap[slot] = entry;
	entry.alarm->slot = slot;
}

static void sift_up(struct sim_alarms *alarms, size_t slot, struct sim_heap_entry entry)
{
	while (slot > 0) {
		size_t parent = (slot - 1) / CHILDREN;
		if (!earlier(&entry, &alarms->heap[parent]))
			break;
		place(alarms, slot, alarms->heap[parent]);
		slot = parent;
	}
	place(alarms, slot, entry);
}

static void sift_down(struct sim_alarms *alarms, size_t slot, struct sim_heap_entry entry)
{
	for (;;) {
		size_t child = CHILDREN * slot + 1, first = child, end = child + CHILDREN;
		if (child >= alarms->used)
			break;
		for (end = end < alarms->used ? end : alarms->used; ++child < end;)
			if (earlier(&alarms->heap[child], &alarms->heap[first]))
				first = child;
		if (!earlier(&alarms->heap[first], &entry))
			break;
		place(alarms, slot, alarms->heap[first]);
		slot = first;
	}
	place(alarms, slot, entry);
}

/* Removes the entry in `slot`, which may be the unused one. */
static void close_gap(struct sim_alarms *alarms, size_t slot)
{
	struct sim_heap_entry last = alarms->heap[--alarms->used];
	if (slot == alarms->used)
		return;
	if (slot > 0 && earlier(&last, &alarms->heap[(slot - 1) / CHILDREN]))
		sift_up(alarms, slot, last);
	else
		sift_down(alarms, slot, last);
}

static void fill_root(struct sim_alarms *alarms)
{
	if (alarms->root_is_empty)
		close_gap(alarms, 0);
	alarms->root_is_empty = false;
}

static void heap_add(struct sim_alarms *alarms, struct sim_alarm *alarm)
{
	struct sim_heap_entry entry = { alarm->at, alarm->order, alarm };
	if (alarms->root_is_empty) {
		alarms->root_is_empty = false;
		sift_down(alarms, 0, entry);
		return;
	}
	if (alarms->used == alarms->size) {
		size_t size = alarms->size ? 2 * alarms->size : HEAP_FIRST_SIZE;
		struct sim_heap_entry *heap = realloc(alarms->heap, size * sizeof(*heap));
		if (!heap)
			/* the simulation can't go on, and can't report an error from here */
			abort();
		alarms->heap = heap;
		alarms->size = size;
	}
	sift_up(alarms, alarms->used++, entry);
}

static void heap_remove(struct sim_alarms *alarms, struct sim_alarm *alarm)
{
	fill_root(alarms); /* first, since it moves alarms */
	close_gap(alarms, alarm->slot);
}

static void ticks_add(struct sim_alarms *alarms, struct sim_alarm *alarm)
{
	struct sim_alarm *before = alarms->last_tick;
	while (before && before->at > alarm->at)
		before = before->previous;
	alarm->previous = before;
	alarm->next = before ? before->next : alarms->first_tick;
	if (before)
		before->next = alarm;
	else
		alarms->first_tick = alarm;
	if (alarm->next)
		alarm->next->previous = alarm;
	else
		alarms->last_tick = alarm;
	alarm->slot = 0;
}

static void ticks_remove(struct sim_alarms *alarms, struct sim_alarm *alarm)
{
	*(alarm->previous ? &alarm->previous->next : &alarms->first_tick) = alarm->next;
	*(alarm->next ? &alarm->next->previous : &alarms->last_tick) = alarm->previous;
}

static void unset(struct sim_alarms *alarms, struct sim_alarm *alarm)
{
	if (alarm->slot == SIM_NO_SLOT)
		return;
	if (alarm->is_tick)
		ticks_remove(alarms, alarm);
	else
		heap_remove(alarms, alarm);
	alarm->slot = SIM_NO_SLOT;
}

void sim_alarm_init(struct sim_alarm *alarm,
		    void (*ring)(struct sim_machine *machine, struct sim_alarm *alarm))
{
	*alarm = (struct sim_alarm){ .slot = SIM_NO_SLOT, .ring = ring };
}

void sim_alarms_set(struct sim_alarms *alarms, struct sim_alarm *alarm, uint64_t at)
{
	if (alarm->slot != SIM_NO_SLOT && alarm->at == at)
		return;
	bool moves = alarm->slot != SIM_NO_SLOT && !alarm->is_tick && !alarms->root_is_empty &&
		     at != SIM_NEVER;
	if (!moves)
		unset(alarms, alarm);
	if (at == SIM_NEVER)
		return;
	bool later = at > alarm->at;
	alarm->at = at;
	alarm->order = alarms->order++;
	struct sim_heap_entry entry = { at, alarm->order, alarm };
	if (moves && later)
		sift_down(alarms, alarm->slot, entry);
	else if (moves)
		sift_up(alarms, alarm->slot, entry);
	else if (alarm->is_tick)
		ticks_add(alarms, alarm);
	else
		heap_add(alarms, alarm);
}

struct sim_alarm *sim_alarms_first(struct sim_alarms *alarms)
{
	fill_root(alarms);
	struct sim_alarm *tick = alarms->first_tick;
	if (!alarms->used)
		return tick;
	const struct sim_heap_entry *other = &alarms->heap[0];
	if (tick && earlier(&(struct sim_heap_entry){ tick->at, tick->order, tick }, other))
		return tick;
	return other->alarm;
}

struct sim_alarm *sim_alarms_take(struct sim_alarms *alarms)
{
	struct sim_alarm *alarm = sim_alarms_first(alarms);
	if (!alarm)
		return NULL;
	if (alarm->is_tick)
		ticks_remove(alarms, alarm);
	else
		alarms->root_is_empty = true;
	alarm->slot = SIM_NO_SLOT;
	return alarm;
}

void sim_alarms_release(struct sim_alarms *alarms)
{
	free(alarms->heap);
	*alarms = (struct sim_alarms){ 0 };
}
