/* Samples that wait for the next pass.
 *
 * If a stack is longer than its copy, its outer frames come from the task's memory.  A younger
 * sample of the task may be needed to show that they are the sample's (recorder_outer.c).  So the
 * sample is held: its bytes as they were in the ring, and the frames that its copy has.  It is
 * written, with the outer frames if they are certain by then,
 *
 * - when a whole stack of its task is seen, or
 * - at the end of the next pass, or
 * - if only the task's next sample can make the frames certain, at the end of the pass that reads
 *   that sample, or after WAIT_MS.
 *
 * Readers sort records by rounds: at the end of a round they release all records that are not
 * younger than the latest record of the round before (perfdata/order.c).  So a sample is held only
 * if it is younger than all records of the pass before.  And no round ends while a sample is held
 * that an earlier pass read.
 */
#include "recorder/recorder_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	HELD_MAX = 128, /* samples, of up to 64 KiB each */
	WAIT_MS = 500,  /* from the sample's time to the latest pass's */
	RECORD_BYTES_MAX = 1 << 16,
};

static void release(struct tally_recorder_held *held)
{
	free(held->bytes);
	free(held->addresses);
	*held = (struct tally_recorder_held){ 0 };
}

bool tally_recorder_can_hold(const struct tally_recorder *recorder,
			     const struct tally_sample *sample)
{
	return recorder->outer && recorder->holds.is_open && recorder->holds.count < HELD_MAX &&
	       sample->time > recorder->holds.last_pass_ns;
}

int tally_recorder_hold(struct tally_recorder *recorder, const struct tally_recorder_source *source,
			const void *bytes, size_t size, const struct tally_sample *sample)
{
	struct tally_recorder_holds *holds = &recorder->holds;
	const struct tally_recorder_frames *frames = &recorder->frames;
	struct tally_recorder_held held = { .source = source,
					    .size = size,
					    .tid = sample->tid,
					    .time_ns = sample->time,
					    .frames = frames->count,
					    .pass = holds->pass };
	size_t words = frames->count * sizeof(*held.addresses);
	if (!holds->items)
		holds->items = calloc(HELD_MAX, sizeof(*holds->items));
	held.bytes = malloc(size);
	held.addresses = malloc(2 * words);
	if (!holds->items || !held.bytes || !held.addresses) {
		release(&held);
		return -ENOMEM;
	}
	held.stack_pointers = held.addresses + frames->count;
	memcpy(held.bytes, bytes, size);
	memcpy(held.addresses, frames->addresses, words);
	memcpy(held.stack_pointers, frames->stack_pointers, words);
	holds->items[holds->count++] = held;
	return 0;
}

void tally_recorder_held_news(struct tally_recorder *recorder, const struct tally_sample *sample)
{
	recorder->holds.news_tid = sample->tid;
	recorder->holds.news_ns = sample->time;
}

/* Writes the sample and releases it, unless it stays held. */
static int write_one(struct tally_recorder *recorder, struct tally_recorder_held *held,
		     bool can_wait, struct tally_error *err)
{
	_Alignas(8) uint8_t rewritten[RECORD_BYTES_MAX];
	long written = tally_recorder_rewrite_held(recorder, held, can_wait, rewritten);
	if (!written)
		return 0;
	release(held);
	return tally_recorder_put_sample(recorder, rewritten, written, err);
}

/* Removes released samples from the list. */
static void close_gaps(struct tally_recorder_holds *holds)
{
	size_t kept = 0;
	for (size_t i = 0; i < holds->count; i++)
		if (holds->items[i].bytes)
			holds->items[kept++] = holds->items[i];
	holds->count = kept;
}

int tally_recorder_write_told(struct tally_recorder *recorder, struct tally_error *err)
{
	struct tally_recorder_holds *holds = &recorder->holds;
	uint32_t tid = holds->news_tid;
	int result = 0;
	holds->news_tid = 0;
	for (size_t i = 0; tid && i < holds->count && !result; i++)
		if (holds->items[i].tid == tid && holds->items[i].time_ns < holds->news_ns)
			result = write_one(recorder, &holds->items[i], false, err);
	close_gaps(holds);
	return result;
}

int tally_recorder_write_held(struct tally_recorder *recorder, bool all, struct tally_error *err)
{
	struct tally_recorder_holds *holds = &recorder->holds;
	int result = 0;
	for (size_t i = 0; i < holds->count && !result; i++) {
		struct tally_recorder_held *held = &holds->items[i];
		bool can_wait = !all && held->time_ns + WAIT_MS * 1000000ull > holds->last_pass_ns;
		if (all || held->pass != holds->pass)
			result = write_one(recorder, held, can_wait, err);
	}
	close_gaps(holds);
	return result;
}

bool tally_recorder_holds_on(const struct tally_recorder *recorder)
{
	const struct tally_recorder_holds *holds = &recorder->holds;
	return holds->count && holds->items[0].pass != holds->pass;
}

void tally_recorder_holds_release(struct tally_recorder_holds *holds)
{
	for (size_t i = 0; i < holds->count; i++)
		release(&holds->items[i]);
	free(holds->items);
	*holds = (struct tally_recorder_holds){ 0 };
}
