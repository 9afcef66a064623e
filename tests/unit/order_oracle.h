/* Puts records in order of time with a merge sort of each round.  order.c worked this way before it
 * merged the file's own runs.
 *
 * Each record becomes an entry with a copy.  A round's entries are sorted (stably, by time,
 * side-band first) and merged with the entries left over from the round before.  Then the entries
 * up to the latest time of all rounds except the last are given out. */
#ifndef TALLY_TEST_ORDER_ORACLE_H
#define TALLY_TEST_ORDER_ORACLE_H

#include "base/arena.h"
#include "base/vector.h"
#include "perfdata/perfdata.h"

#include <errno.h>
#include <string.h>

struct entry {
	uint64_t time;
	const void *bytes;
	uint64_t file_offset;
	uint32_t event; /* an index, since the events may move */
	uint16_t size;
	bool is_sample;
};

struct entries {
	struct entry *items;
	size_t count, capacity;
};

struct order_oracle {
	struct tally_perfdata *data;
	struct entries held;    /* left over from earlier rounds, sorted */
	struct entries fresh;   /* the current round, unsorted */
	struct entries scratch; /* for merging */
	/* in `held`: the next to give, and the end of those that may be given */
	size_t given, released;
	/* latest times: of all rounds, and of all except the last */
	uint64_t latest, latest_before;
	struct tally_arena arena; /* copies of all records */
	bool at_end;
};

static bool entry_before(const struct entry *a, const struct entry *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	return a->is_sample < b->is_sample;
}

/* Merges a[0..n) with b[0..m) into out.  Of equal entries, those of `a` come first. */
static void merge(struct entry *out, const struct entry *a, size_t n, const struct entry *b,
		  size_t m)
{
	while (n && m) {
		if (entry_before(b, a))
			*out++ = *b++, m--;
		else
			*out++ = *a++, n--;
	}
	if (n)
		memcpy(out, a, n * sizeof(*a));
	else if (m)
		memcpy(out, b, m * sizeof(*b));
}

static size_t run_length(const struct entry *items, size_t count)
{
	size_t length = 1;
	while (length < count && !entry_before(&items[length], &items[length - 1]))
		length++;
	return length;
}

/* Makes one pass: merges neighbouring runs of `from` into `to`.  Returns the number of runs
 * left. */
static size_t merge_runs(struct entry *to, const struct entry *from, size_t count)
{
	size_t runs = 0;
	for (size_t at = 0; at < count; runs++) {
		size_t first = run_length(from + at, count - at);
		size_t rest = count - at - first;
		size_t second = rest ? run_length(from + at + first, rest) : 0;
		merge(to + at, from + at, first, from + at + first, second);
		at += first + second;
	}
	return runs;
}

static void swap(struct entries *a, struct entries *b)
{
	struct entries kept = *a;
	*a = *b;
	*b = kept;
}

static int sort_fresh(struct order_oracle *order)
{
	struct entries *fresh = &order->fresh, *scratch = &order->scratch;
	if (fresh->count < 2 || run_length(fresh->items, fresh->count) == fresh->count)
		return 0;
	if (tally_vector_reserve(scratch, fresh->count) < 0)
		return -ENOMEM;
	size_t runs;
	do {
		runs = merge_runs(scratch->items, fresh->items, fresh->count);
		scratch->count = fresh->count;
		swap(fresh, scratch);
	} while (runs > 1);
	return 0;
}

static size_t count_until(const struct entries *entries, uint64_t limit)
{
	size_t low = 0, high = entries->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (entries->items[middle].time <= limit)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Ends a round: adds its entries to `held` and releases those up to `limit`. */
static int end_round(struct order_oracle *order, uint64_t limit)
{
	struct entries *held = &order->held, *fresh = &order->fresh, *scratch = &order->scratch;
	size_t left = held->count - order->given, total = left + fresh->count;
	int result = sort_fresh(order);
	if (!result && total)
		result = tally_vector_reserve(scratch, total);
	if (result)
		return result;
	if (total)
		merge(scratch->items, left ? held->items + order->given : NULL, left, fresh->items,
		      fresh->count);
	scratch->count = total;
	swap(held, scratch);
	order->given = fresh->count = 0;
	order->released = count_until(held, limit);
	order->latest_before = order->latest;
	return 0;
}

static bool time_of_sample(const struct tally_attr *attr, const struct tally_raw_record *raw,
			   uint64_t *time)
{
	const uint64_t before = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID;
	size_t at = sizeof(struct tally_record_header) +
		    8 * (unsigned)__builtin_popcountll(attr->sample_type & before);
	if (at + sizeof(*time) > raw->size)
		return false;
	memcpy(time, (const uint8_t *)raw->bytes + at, sizeof(*time));
	return true;
}

static bool time_of_trailer(const struct tally_attr *attr, const struct tally_raw_record *raw,
			    uint64_t *time)
{
	size_t behind = tally_sample_id_size(attr) - (attr->sample_type & TALLY_SAMPLE_TID ? 8 : 0);
	if (!(attr->flags & TALLY_ATTR_SAMPLE_ID_ALL) ||
	    sizeof(struct tally_record_header) + behind > raw->size)
		return false;
	memcpy(time, (const uint8_t *)raw->bytes + raw->size - behind, sizeof(*time));
	return true;
}

/* Gets a record's time.  Returns false for records without a place in time. */
static bool time_of(const struct tally_raw_record *raw, uint32_t type, uint64_t *time)
{
	if (type >= TALLY_RECORD_USER_START || !raw->event ||
	    !(raw->event->attr.sample_type & TALLY_SAMPLE_TIME))
		return false;
	bool found = type == TALLY_RECORD_SAMPLE ? time_of_sample(&raw->event->attr, raw, time)
						 : time_of_trailer(&raw->event->attr, raw, time);
	return found && *time && *time != UINT64_MAX;
}

static int hold(struct order_oracle *order, const struct tally_raw_record *raw, uint32_t type,
		uint64_t time)
{
	size_t count;
	void *copy = tally_arena_alloc(&order->arena, raw->size);
	struct entry entry = {
		.time = time,
		.bytes = copy,
		.file_offset = raw->file_offset,
		.event = (uint32_t)(raw->event - tally_perfdata_events(order->data, &count)),
		.size = (uint16_t)raw->size,
		.is_sample = type == TALLY_RECORD_SAMPLE,
	};
	if (!copy)
		return -ENOMEM;
	memcpy(copy, raw->bytes, raw->size);
	if (time > order->latest)
		order->latest = time;
	return tally_vector_push(&order->fresh, entry);
}

static int give_held(struct order_oracle *order, struct tally_raw_record *record)
{
	size_t count;
	const struct entry *entry = &order->held.items[order->given++];
	*record = (struct tally_raw_record){
		.bytes = entry->bytes,
		.size = entry->size,
		.file_offset = entry->file_offset,
		.event = tally_perfdata_events(order->data, &count) + entry->event,
	};
	return 1;
}

static int order_oracle_next(struct order_oracle *order, struct tally_raw_record *record)
{
	struct tally_record_header header;
	uint64_t time;
	for (;;) {
		if (order->given < order->released)
			return give_held(order, record);
		if (order->at_end)
			return 0;
		int result = tally_perfdata_next(order->data, record, NULL);
		if (result < 0)
			return result;
		order->at_end = !result;
		if (result)
			memcpy(&header, record->bytes, sizeof(header));
		if (!result)
			result = end_round(order, UINT64_MAX);
		else if (header.type == TALLY_RECORD_FINISHED_ROUND)
			result = end_round(order, order->latest_before);
		else if (time_of(record, header.type, &time))
			result = hold(order, record, header.type, time);
		else
			return 1;
		if (result)
			return result;
	}
}

static void order_oracle_release(struct order_oracle *order)
{
	tally_vector_release(&order->held);
	tally_vector_release(&order->fresh);
	tally_vector_release(&order->scratch);
	tally_arena_release(&order->arena);
}

#endif
