/* Gives records in time order, without holding or sorting the whole recording.
 *
 * A recorder drains its rings one after the other; each ring is in order, the file is not.  After a
 * pass over all rings it writes FINISHED_ROUND.  Everything that was in a ring when one pass ended
 * has been written when the next pass ends.  So at the end of a round, all records up to the latest
 * time of the round *before* are complete, and can be given.  At most two rounds are held.
 *
 * Nothing is allocated per record.  The file is walked to the round's end; only times are read.  It
 * is cut into stretches: bytes whose records follow each other in time order, as those of one ring
 * do.  A stretch that goes on where the last one ended (in another block) belongs to the same run.
 * Runs lie in a heap, by the time of their next record.  To give a record is to take the next one
 * of the run on top; the record behind it then decides where in the heap the run moves.  Bytes stay
 * where they are, in the mapping or in blocks that the stretches hold; only records that the reader
 * had to copy are copied.  A recording without rounds is held to its end, as stretches.  So is a
 * recording of several files, which are read one after the other.
 *
 * Records of equal time and kind are given in the file's order: stretches are numbered in that
 * order, and the number is part of their key in the heap.
 *
 * Records without a time (or with time 0, which perf synthesizes for the mappings of tasks that ran
 * before) and the tools' own records are given at once, in the file's order.  There is one
 * exception.  Events without sample_id_all, which kernels before 2.6.37 lack, have times only in
 * their samples.  Their other records lie in a ring among the samples and take the time of the next
 * record: given at once, a COMM would rename the samples before it.  Records before the first time
 * are given at once even then, because recorders begin with descriptions of the running tasks.
 */
#include "perfdata/perfdata.h"

#include "base/input_limits.h"
#include "base/vector.h"
#include "perfdata/perfdata_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX, LOOKED_AHEAD_MAX = 64 /* records */ };

#define IS_SAMPLE (1ull << 63) /* in a rank: samples after side-band records of equal time */

struct stretch {
	const uint8_t *at, *end;
	struct tally_block *block; /* held by the stretch; NULL: the bytes stay valid */
	/* unpacked: of the COMPRESSED record; otherwise address + file_offset is the offset in the
	 * file */
	uint64_t file_offset;
	uint64_t number;           /* position in the file's order */
	bool unpacked;
	uint32_t next; /* next stretch of the same run, or in the free list; NONE at the end */
};

/* A run's next record. */
struct head {
	uint64_t time;
	uint64_t rank; /* IS_SAMPLE | the number of its stretch */
	uint32_t stretch;
};

struct tally_order {
	struct tally_perfdata *data;
	struct { struct stretch *items; size_t count, capacity; } stretches;
	uint32_t free;
	uint64_t numbered;
	/* runs whose records may be given now or in a later round */
	struct { struct head *items; size_t count, capacity; } heap;
	/* runs of the round that is being read */
	struct { struct head *items; size_t count, capacity; } fresh;
	uint32_t open;      /* the stretch that is being walked, or NONE */
	uint64_t last_time; /* time of the last record of `open` */
	bool last_is_sample;
	bool is_given; /* the top of the heap was given; its run must move on before the next */
	uint64_t limit;     /* time: records up to it may be given */
	/* latest times: of all rounds so far, of all except the last */
	uint64_t latest, latest_before;
	struct tally_block *copies; /* copies of records that the reader gave as copies */
	size_t copied;              /* bytes used in `copies` */
	bool at_end;
	/* bytes in blocks that the round that is being read takes, and their limit; a file in memory
	 * takes none */
	uint64_t held, held_max;
};

/* ---- the heap ------------------------------------------------------------ */

static inline bool is_before(uint64_t time, uint64_t rank, const struct head *other)
{
	return time < other->time || (time == other->time && rank < other->rank);
}

/* Puts a run at the top of the heap or further down.  The head is passed as single values: a struct
 * would be stored in halves and loaded whole, which stalls the CPU. */
static void sift_down(struct head *heap, size_t count, uint64_t time, uint64_t rank,
		      uint32_t stretch)
{
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		const struct head *right = &heap[child + 1];
		child += child + 1 < count && is_before(right->time, right->rank, &heap[child]);
		if (is_before(time, rank, &heap[child]))
			break;
		heap[at] = heap[child];
	}
	heap[at].time = time;
	heap[at].rank = rank;
	heap[at].stretch = stretch;
}

static int push_head(struct tally_order *order, const struct head *head)
{
	if (tally_vector_push(&order->heap, *head) < 0)
		return -ENOMEM;
	struct head *heap = order->heap.items;
	size_t at = order->heap.count - 1;
	for (; at && is_before(head->time, head->rank, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = *head;
	return 0;
}

/* ---- stretches ----------------------------------------------------------- */

static uint32_t new_stretch(struct tally_order *order, const struct stretch *stretch)
{
	uint32_t index = order->free;
	if (index != NONE) {
		order->free = order->stretches.items[index].next;
		order->stretches.items[index] = *stretch;
	} else {
		index = (uint32_t)order->stretches.count;
		if (order->stretches.count >= NONE ||
		    tally_vector_push(&order->stretches, *stretch) < 0)
			return NONE;
	}
	tally_block_hold(stretch->block);
	order->stretches.items[index].number = ++order->numbered;
	order->stretches.items[index].next = NONE;
	return index;
}

static void free_stretch(struct tally_order *order, uint32_t index)
{
	struct stretch *stretch = &order->stretches.items[index];
	tally_block_drop(&order->data->blocks, stretch->block);
	stretch->block = NULL;
	stretch->next = order->free;
	order->free = index;
}

static inline bool key_before(uint64_t time, bool is_sample, uint64_t other, bool other_is_sample)
{
	return time < other || (time == other && is_sample < other_is_sample);
}

/* Begins a stretch; its end is set later.  It joins the open run when its first record isn't
 * earlier than that run's last, otherwise it begins a new run. */
static int begin_stretch(struct tally_order *order, const struct stretch *stretch, uint64_t time,
			 bool is_sample)
{
	uint32_t before = order->open, index = new_stretch(order, stretch);
	if (index == NONE)
		return -ENOMEM;
	order->open = index;
	if (before != NONE &&
	    !key_before(time, is_sample, order->last_time, order->last_is_sample)) {
		order->stretches.items[before].next = index;
		return 0;
	}
	struct head head = { .time = time,
			     .stretch = index,
			     .rank = order->stretches.items[index].number |
				     (is_sample ? IS_SAMPLE : 0) };
	return tally_vector_push(&order->fresh, head);
}

/* ---- reading ------------------------------------------------------------- */

static const struct tally_field_places *places_of(const struct tally_order *order,
						  const uint8_t *bytes,
						  const struct tally_record_header *header)
{
	const struct tally_perfdata *data = order->data;
	if (data->times_agree)
		return data->time_places;
	return data->time_places +
	       (tally_perfdata_event_of(order->data, bytes, header) - data->events);
}

/* Returns false for records without a time. */
static inline bool time_of(const struct tally_field_places *places, const uint8_t *bytes,
			   const struct tally_record_header *header, uint64_t *time)
{
	return tally_field_of(places, bytes, header, time) && *time && *time != UINT64_MAX;
}

/* Gets the time in the body of a FORK or EXIT, which follows four numbers of tasks. */
static bool own_time(const uint8_t *at, const struct tally_record_header *header, uint64_t *time)
{
	const size_t offset = sizeof(*header) + 4 * sizeof(uint32_t);
	bool tells = header->type == TALLY_RECORD_FORK || header->type == TALLY_RECORD_EXIT;
	if (!tells || header->size < offset + sizeof(*time))
		return false;
	memcpy(time, at + offset, sizeof(*time));
	return *time && *time != UINT64_MAX;
}

/* Gets a time for a whole record whose event doesn't store one: from the record's body, otherwise
 * the time of the next record that has one.  Looks at LOOKED_AHEAD_MAX records at most; returns
 * false when none of those before `end` has a time. */
static bool borrowed_time(const struct tally_order *order, const uint8_t *at, const uint8_t *end,
			  uint64_t *time)
{
	struct tally_record_header header;
	for (unsigned looked_at = 0;
	     looked_at < LOOKED_AHEAD_MAX && (size_t)(end - at) >= sizeof(header); looked_at++) {
		memcpy(&header, at, sizeof(header));
		if (header.type >= TALLY_RECORD_USER_START || header.size < sizeof(header) ||
		    header.size > (size_t)(end - at) || (uintptr_t)at % 8)
			return false;
		if (own_time(at, &header, time) ||
		    time_of(places_of(order, at, &header), at, &header, time))
			return true;
		at += header.size;
	}
	return false;
}

/* True for a record without a time whose event stores times only in samples. */
static inline bool may_borrow(const struct tally_field_places *places,
			      const struct tally_record_header *header)
{
	return places->trailer_size_min == UINT32_MAX && header->type != TALLY_RECORD_SAMPLE;
}

/* Returns the stretch that would begin with the span's first record. */
static struct stretch stretch_of(const struct tally_span *span)
{
	struct stretch stretch = {
		.at = span->at,
		.block = span->block,
		.unpacked = span->unpacked,
		.file_offset = span->file_offset,
	};
	if (!span->unpacked)
		stretch.file_offset -= (uintptr_t)span->at;
	return stretch;
}

/* True if the open stretch ends where the span begins, with the same block and offsets. */
static bool continues(const struct tally_order *order, const struct stretch *next)
{
	if (order->open == NONE)
		return false;
	const struct stretch *open = &order->stretches.items[order->open];
	return open->end == next->at && open->block == next->block &&
	       open->unpacked == next->unpacked && open->file_offset == next->file_offset;
}

/* Walks through the span while its records have a time.  Returns where it stopped, or NULL without
 * memory. */
static const uint8_t *walk(struct tally_order *order, const struct tally_span *span)
{
	struct stretch next = stretch_of(span);
	struct tally_record_header header;
	bool is_open = continues(order, &next), agree = order->data->times_agree,
	     last_is_sample = order->last_is_sample;
	const struct tally_field_places *places = order->data->time_places;
	uint64_t time, last_time = order->last_time, latest = order->latest;
	const uint8_t *at = span->at;
	for (; (size_t)(span->end - at) >= sizeof(header); at += header.size) {
		memcpy(&header, at, sizeof(header));
		if (header.type >= TALLY_RECORD_USER_START || header.size < sizeof(header) ||
		    header.size > (size_t)(span->end - at) || (uintptr_t)at % 8)
			break;
		if (!agree)
			places = places_of(order, at, &header);
		bool is_sample = header.type == TALLY_RECORD_SAMPLE;
		if (!time_of(places, at, &header, &time)) {
			if (!latest || !may_borrow(places, &header))
				break;
			bool is_first = !is_open && order->open == NONE;
			if (!borrowed_time(order, at, span->end, &time))
				time = is_first ? latest + 1 : last_time + last_is_sample;
		}
		if (!is_open || key_before(time, is_sample, last_time, last_is_sample)) {
			if (is_open)
				order->stretches.items[order->open].end = at;
			order->last_time = last_time;
			order->last_is_sample = last_is_sample;
			next.at = at;
			if (begin_stretch(order, &next, time, is_sample) < 0)
				return NULL;
			is_open = true;
		}
		last_time = time;
		last_is_sample = is_sample;
		if (time > latest)
			latest = time;
	}
	if (at > span->at)
		order->stretches.items[order->open].end = at;
	order->last_time = last_time;
	order->last_is_sample = last_is_sample;
	order->latest = latest;
	return at;
}

/* Copies the span into a block that stays until the record was given. */
static int keep_copy(struct tally_order *order, struct tally_span *span)
{
	size_t size = (size_t)(span->end - span->at), room = (size + 7) & ~(size_t)7;
	if (!order->copies || order->copies->capacity - order->copied < room) {
		tally_block_drop(&order->data->blocks, order->copies);
		order->copies = tally_block_take(&order->data->blocks, TALLY_BLOCK_BYTES);
		order->copied = 0;
	}
	if (!order->copies)
		return -ENOMEM;
	uint8_t *copy = order->copies->bytes + order->copied;
	memcpy(copy, span->at, size);
	order->copied += room;
	*span = (struct tally_span){ .at = copy, .end = copy + size, .block = order->copies,
				     .unpacked = span->unpacked, .file_offset = span->file_offset };
	return 0;
}

/* Holds a record that the reader gave.  Returns 1, 0 when it has no time, or -ENOMEM. */
static int hold(struct tally_order *order, const struct tally_raw_record *raw)
{
	struct tally_record_header header;
	uint64_t time;
	bool is_copy;
	memcpy(&header, raw->bytes, sizeof(header));
	if (header.type >= TALLY_RECORD_USER_START || !raw->event)
		return 0;
	const struct tally_field_places *places = places_of(order, raw->bytes, &header);
	bool borrows = order->latest && may_borrow(places, &header);
	if (!borrows && !time_of(places, raw->bytes, &header, &time))
		return 0;
	struct tally_span span = tally_perfdata_last(order->data, raw, &is_copy);
	if (is_copy && keep_copy(order, &span) < 0)
		return -ENOMEM;
	if (walk(order, &span))
		return 1;
	return -ENOMEM;
}

/* Ends a round: adds its runs to those left from earlier rounds.  Records up to `limit` may be
 * given. */
static int end_round(struct tally_order *order, uint64_t limit)
{
	for (size_t i = 0; i < order->fresh.count; i++)
		if (push_head(order, &order->fresh.items[i]) < 0)
			return -ENOMEM;
	order->fresh.count = 0;
	order->open = NONE;
	order->limit = limit;
	order->latest_before = order->latest;
	order->held = 0;
	return 0;
}

/* Counts records that are held in a block.  Compressed ones may stand for thousands of times their
 * bytes. */
static int count_held(struct tally_order *order, const struct tally_block *block, size_t size,
		      struct tally_error *err)
{
	if (block)
		order->held += size;
	if (order->held <= order->held_max)
		return 0;
	return tally_input_refuse(err, TALLY_INPUT_HELD, order->held_max,
				  "the recording's records can't be put in order: those that must "
				  "be held are larger than");
}

/* Returns the block that the record given last is held in: the reader's, or that of a copy. */
static const struct tally_block *record_block(const struct tally_order *order,
					      const struct tally_raw_record *record)
{
	bool is_copy;
	struct tally_span span = tally_perfdata_last(order->data, record, &is_copy);
	if (is_copy)
		return order->copies;
	return span.block;
}

/* Reads to the round's end (returns 0) or to a record without a time (1).  Returns -errno on
 * failure. */
static int read_round(struct tally_order *order, struct tally_raw_record *record,
		      struct tally_error *err)
{
	struct tally_record_header header;
	for (;;) {
		struct tally_span span = tally_perfdata_span(order->data);
		int result;
		if (span.at) {
			const uint8_t *to = walk(order, &span);
			if (!to)
				return -ENOMEM;
			result = count_held(order, span.block, (size_t)(to - span.at), err);
			tally_perfdata_advance(order->data, &span, to);
			if (result < 0)
				return result;
		}
		result = tally_perfdata_next(order->data, record, err);
		if (result < 0)
			return result;
		order->at_end = !result;
		if (!result)
			return end_round(order, UINT64_MAX);
		memcpy(&header, record->bytes, sizeof(header));
		if (header.type == TALLY_RECORD_FINISHED_ROUND && !order->data->is_directory)
			return end_round(order, order->latest_before);
		result = hold(order, record);
		if (result < 0)
			return result;
		if (!result)
			return 1;
		if (count_held(order, record_block(order, record), record->size, err) < 0)
			return -EFBIG;
	}
}

/* ---- giving -------------------------------------------------------------- */

/* Moves the run whose record was given to where its next record belongs. */
static void move_on(struct tally_order *order)
{
	struct head *heap = order->heap.items;
	uint32_t index = heap[0].stretch;
	struct stretch *stretch = &order->stretches.items[index];
	struct tally_record_header header;
	/* Stays as it is when a pipe has meanwhile described an event whose records had no time. */
	uint64_t time = heap[0].time;
	memcpy(&header, stretch->at, sizeof(header));
	bool was_sample = header.type == TALLY_RECORD_SAMPLE;
	stretch->at += header.size;
	order->is_given = false;
	if (stretch->at == stretch->end) {
		uint32_t next = stretch->next;
		free_stretch(order, index);
		index = next;
		stretch = &order->stretches.items[index];
	}
	if (index == NONE) {
		const struct head last = heap[--order->heap.count];
		if (order->heap.count)
			sift_down(heap, order->heap.count, last.time, last.rank, last.stretch);
		return;
	}
	memcpy(&header, stretch->at, sizeof(header));
	const struct tally_field_places *places = places_of(order, stretch->at, &header);
	if (!time_of(places, stretch->at, &header, &time) && may_borrow(places, &header) &&
	    !borrowed_time(order, stretch->at, stretch->end, &time))
		time = heap[0].time + was_sample;
	sift_down(heap, order->heap.count, time,
		  stretch->number | (header.type == TALLY_RECORD_SAMPLE ? IS_SAMPLE : 0), index);
}

static int give(struct tally_order *order, struct tally_raw_record *record)
{
	const struct stretch *stretch = &order->stretches.items[order->heap.items[0].stretch];
	struct tally_record_header header;
	memcpy(&header, stretch->at, sizeof(header));
	*record = (struct tally_raw_record){
		.bytes = stretch->at,
		.size = header.size,
		.file_offset = stretch->file_offset +
			       (stretch->unpacked ? 0 : (uintptr_t)stretch->at),
		.event = tally_perfdata_event_of(order->data, stretch->at, &header),
	};
	order->is_given = true;
	return 1;
}

int tally_order_next(struct tally_order *order, struct tally_raw_record *record,
		     struct tally_error *err)
{
	if (order->is_given)
		move_on(order);
	for (;;) {
		if (order->heap.count && order->heap.items[0].time <= order->limit)
			return give(order, record);
		if (order->at_end)
			return 0;
		int result = read_round(order, record, err);
		if (result == -ENOMEM)
			return tally_error_set(err, -ENOMEM,
					       "no memory to put the recording in order");
		if (result)
			return result;
	}
}

bool tally_order_block(const struct tally_order *order, struct tally_block **block)
{
	if (!order->is_given)
		return false;
	*block = order->stretches.items[order->heap.items[0].stretch].block;
	return true;
}

void tally_order_drop(struct tally_order *order, struct tally_block *block)
{
	tally_block_drop(&order->data->blocks, block);
}

int tally_order_new(struct tally_perfdata *data, struct tally_order **out, struct tally_error *err)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return tally_error_set(err, -ENOMEM, "no memory to put the recording in order");
	(*out)->data = data;
	(*out)->held_max = tally_input_limit(TALLY_INPUT_HELD);
	(*out)->free = (*out)->open = NONE;
	return 0;
}

void tally_order_free(struct tally_order *order)
{
	if (!order)
		return;
	for (size_t i = 0; i < order->stretches.count; i++)
		tally_block_drop(&order->data->blocks, order->stretches.items[i].block);
	tally_block_drop(&order->data->blocks, order->copies);
	tally_vector_release(&order->stretches);
	tally_vector_release(&order->heap);
	tally_vector_release(&order->fresh);
	free(order);
}
