/* Rewrites samples before they are written to the recording.
 *
 * A copy of the user's stack becomes the call chain that it holds.  A chain with user registers
 * beside it gets the innermost callers that the kernel's walk by frame pointers skipped.
 *
 * Fields before the chain and fields behind the copy keep their bytes and their order.  So the
 * written attribute is the opened one without REGS_USER and STACK_USER (perf_event_open(2), the
 * layout of PERF_RECORD_SAMPLE).
 *
 * Some samples wait for the next pass.
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
#include "recorder/recorder_stacks.h"

#include "task/jit.h"
#include "task/user_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_BYTES_MAX = 65528 };

struct output {
	uint8_t *start, *at;
	bool full;
};

static void put(struct output *output, const void *bytes, size_t size)
{
	if (output->full || size > RECORD_BYTES_MAX - (size_t)(output->at - output->start)) {
		output->full = true;
		return;
	}
	memcpy(output->at, bytes, size);
	output->at += size;
}

static void put_word(struct output *output, uint64_t word)
{
	put(output, &word, sizeof(word));
}

/* Copies the sample's bytes before its chain: the record's header and the fields before the
 * chain's length. */
static void put_before_chain(struct output *output, const struct tally_sample *sample,
			     const void *bytes)
{
	put(output, bytes, (size_t)((const uint8_t *)sample->chain - 8 - (const uint8_t *)bytes));
}

/* Copies the fields behind the chain, without the user registers and the stack. */
static void put_behind_chain(struct output *output, const struct tally_sample *sample,
			     const void *bytes, size_t size)
{
	const uint8_t *chain_end = (const uint8_t *)(sample->chain + sample->chain_length);
	put(output, chain_end, (size_t)(sample->regs_user_start - chain_end));
	put(output, sample->stack_user_end,
	    (size_t)((const uint8_t *)bytes + size - sample->stack_user_end));
}

/* Writes a chain: the kernel's part of the sample's own, then `users` user frames. */
static void put_unwound(struct output *output, const struct tally_sample *sample,
			const uint64_t *user, size_t users)
{
	size_t words = tally_user_stack_kernel_words(sample);
	put_word(output, words + (users ? users + 1 : 0));
	put(output, sample->chain, words * 8);
	if (!users)
		return;
	put_word(output, TALLY_CONTEXT_USER);
	put(output, user, users * 8);
}

/* True if the kernel copied less than the event asked for.  It stops at the end of a signal
 * handler's own stack, or at a page that was never touched (behind a large array, in the stacks of
 * Ada's tasks).  Reading the task's memory from outside goes on behind such pages. */
static bool has_copy_ended(const struct tally_sample *sample)
{
	return sample->stack_dynamic_size < sample->stack_size;
}

/* ---- samples that wait --------------------------------------------------- */

enum {
	HELD_MAX = 128, /* samples, of up to 64 KiB each */
	WAIT_MS = 500,  /* from the sample's time to the latest pass's */
	REWRITTEN_BYTES_MAX = 1 << 16,
};

static void release_held(struct tally_recorder_held *held)
{
	free(held->bytes);
	free(held->addresses);
	*held = (struct tally_recorder_held){ 0 };
}

/* True if a sample may be held. */
static bool can_hold(const struct tally_recorder_stacks *stacks, const struct tally_sample *sample)
{
	return stacks->outer && stacks->holds.is_open && stacks->holds.count < HELD_MAX &&
	       sample->time > stacks->holds.last_pass_ns;
}

/* Holds a sample, with its frames in stacks->frames.  Returns 0 or -ENOMEM. */
static int hold(struct tally_recorder_stacks *stacks, const struct tally_recorder_source *source,
		const void *bytes, size_t size, const struct tally_sample *sample)
{
	struct tally_recorder_holds *holds = &stacks->holds;
	const struct tally_recorder_frames *frames = &stacks->frames;
	struct tally_recorder_held held = { .source = source,
					    .size = size,
					    .tid = sample->tid,
					    .time_ns = sample->time,
					    .frames = frames->count,
					    .extent = frames->extent,
					    .called = frames->called,
					    .pass = holds->pass };
	size_t words = frames->count * sizeof(*held.addresses);
	if (!holds->items)
		holds->items = calloc(HELD_MAX, sizeof(*holds->items));
	held.bytes = malloc(size);
	held.addresses = malloc(2 * words);
	if (!holds->items || !held.bytes || !held.addresses) {
		release_held(&held);
		return -ENOMEM;
	}
	held.stack_pointers = held.addresses + frames->count;
	memcpy(held.bytes, bytes, size);
	memcpy(held.addresses, frames->addresses, words);
	memcpy(held.stack_pointers, frames->stack_pointers, words);
	holds->items[holds->count++] = held;
	return 0;
}

/* Notes that a whole stack of the sample's thread was seen. */
static void note_news(struct tally_recorder_stacks *stacks, const struct tally_sample *sample)
{
	stacks->holds.news_tid = sample->tid;
	stacks->holds.news_ns = sample->time;
}

/* ---- unwinding ----------------------------------------------------------- */

static enum tally_recorder_outer_result complete(struct tally_recorder_stacks *stacks,
						 const struct tally_attr *attr,
						 const struct tally_sample *sample,
						 struct tally_recorder_frames *frames,
						 bool is_again)
{
	if (!stacks->outer)
		return TALLY_RECORDER_OUTER_UNCERTAIN;
	return tally_recorder_outer_complete(stacks->outer, &stacks->tasks->known,
					     &stacks->tasks->objects, attr, sample, frames,
					     is_again);
}

/* Counts a stack whose copy was too short.  Returns its fate, for tally_recorder_copies_note(). */
static enum tally_recorder_stack_fate fate_of(struct tally_recorder_stacks *stacks,
					      const struct tally_sample *sample,
					      enum tally_recorder_outer_result result)
{
	bool has_ended = has_copy_ended(sample);
	stacks->session->status.stacks_completed += result == TALLY_RECORDER_OUTER_COMPLETED;
	stacks->session->status.stacks_cut += result != TALLY_RECORDER_OUTER_COMPLETED;
	stacks->session->status.stacks_ended += result != TALLY_RECORDER_OUTER_COMPLETED &&
						has_ended;
	if (result == TALLY_RECORDER_OUTER_COMPLETED || has_ended)
		return TALLY_RECORDER_STACK_WHOLE; /* a larger copy would not have helped */
	if (result == TALLY_RECORDER_OUTER_NEW)
		return TALLY_RECORDER_STACK_NEW;
	return TALLY_RECORDER_STACK_CUT;
}

/* Goes on by the kernel's chain from where the walk left for another stack.  Returns false, and
 * leaves the frames as they are, if that chain doesn't lead on. */
static bool cross(struct tally_recorder_stacks *stacks, const struct tally_attr *attr,
		  const struct tally_sample *sample, struct tally_recorder_frames *frames,
		  size_t limit)
{
	size_t room = limit - frames->count;
	size_t outer = tally_user_stack_cross(&stacks->tasks->known, &stacks->tasks->objects, attr,
					      sample, frames->addresses, frames->count, room);
	frames->count += outer < room ? outer : room;
	return outer;
}

/* Go that C called: the Go functions outside are in the copy, even if the C functions between them
 * could not be read.  Replaces the frames.  Returns false, and leaves no frames changed, if they
 * don't reach the start of the goroutine. */
static bool skip_c(struct tally_recorder_stacks *stacks, const struct tally_attr *attr,
		   const struct tally_sample *sample, struct tally_recorder_frames *frames)
{
	const struct tally_user_stack_walk walk = { .stack_pointers = frames->stack_pointers,
						    .skips_c = true };
	size_t count = frames->count;
	enum tally_unwind_end end;
	if (!frames->extent.is_in_go)
		return false;
	frames->count = tally_user_stack_walk(&stacks->tasks->known, &stacks->tasks->objects, attr,
					      sample, &walk, frames->addresses,
					      TALLY_USER_FRAMES_MAX, &end);
	if (end == TALLY_UNWIND_COMPLETE)
		return true;
	frames->count = count < frames->count ? count : frames->count;
	return false;
}

/* Counts a stack whose copy was too short.  Returns TALLY_MISC_STACK_* for its record; 0: its
 * frames are complete. */
static uint16_t count_short(struct tally_recorder_stacks *stacks, const struct tally_attr *attr,
			    const struct tally_sample *sample, struct tally_recorder_frames *frames,
			    enum tally_recorder_outer_result result)
{
	if (frames->extent.switched_at && result != TALLY_RECORDER_OUTER_COMPLETED) {
		bool is_whole = skip_c(stacks, attr, sample, frames);
		tally_recorder_copies_note(stacks->copies, sample, TALLY_RECORDER_STACK_WHOLE,
					   UINT64_MAX);
		stacks->session->status.stacks_lost += !is_whole;
		return is_whole ? 0 : TALLY_MISC_STACK_LOST;
	}
	if (result == TALLY_RECORDER_OUTER_FULL) {
		stacks->session->status.stacks_deep++;
		tally_recorder_copies_note(stacks->copies, sample, TALLY_RECORDER_STACK_WHOLE,
					   UINT64_MAX);
		return TALLY_MISC_STACK_CUT;
	}
	tally_recorder_copies_note(stacks->copies, sample, fate_of(stacks, sample, result),
				   UINT64_MAX);
	if (result == TALLY_RECORDER_OUTER_COMPLETED)
		return 0;
	if (has_copy_ended(sample))
		return TALLY_MISC_STACK_CUT | TALLY_MISC_STACK_ENDED;
	return TALLY_MISC_STACK_CUT;
}

/* Unwinds the sample's stack into `frames`.  Returns 0 if they reach the start of the thread, or if
 * there are none; else TALLY_MISC_STACK_* for the record.  Sets *is_uncertain if `can_wait` and the
 * outer frames may be known later: then the caller counts the stack. */
static uint16_t unwind(struct tally_recorder_stacks *stacks, const struct tally_attr *attr,
		       const struct tally_sample *sample, struct tally_recorder_frames *frames,
		       bool can_wait, bool *is_uncertain)
{
	/* Threads may share an entry: another thread's chain gives no wrong frames, but saves no
	 * work. */
	struct tally_unwind_chain **chain = &stacks->chains[sample->tid % TALLY_RECORDER_CHAINS];
	if (!*chain)
		*chain = tally_unwind_chain_new(); /* optional */
	const struct tally_user_stack_walk walk = { .stack_pointers = frames->stack_pointers,
						    .extent = &frames->extent,
						    .chain = *chain };
	const uint16_t asked = stacks->session->options.max_stack;
	size_t limit = asked && asked < TALLY_USER_FRAMES_MAX ? asked : TALLY_USER_FRAMES_MAX;
	enum tally_unwind_end end;
	frames->count = tally_user_stack_walk(&stacks->tasks->known, &stacks->tasks->objects, attr,
					      sample, &walk, frames->addresses, limit, &end);
	if (!frames->count)
		return 0;
	stacks->session->status.stacks++;
	stacks->session->status.stacks_deep += end == TALLY_UNWIND_LIMIT && !asked;
	frames->called = 0;
	if (end == TALLY_UNWIND_TRUNCATED && frames->extent.switched_at &&
	    cross(stacks, attr, sample, frames, limit))
		return frames->count < limit ? 0 : TALLY_MISC_STACK_CUT;
	if (frames->extent.switched_at && !frames->extent.is_in_go && frames->count > 1)
		frames->called = tally_user_stack_function(
			&stacks->tasks->known, &stacks->tasks->objects, sample->pid,
			frames->addresses[frames->count - 2] - (frames->count > 2));
	if (end == TALLY_UNWIND_TRUNCATED) {
		enum tally_recorder_outer_result result = complete(stacks, attr, sample, frames,
								   false);
		*is_uncertain = can_wait && result != TALLY_RECORDER_OUTER_COMPLETED &&
				result != TALLY_RECORDER_OUTER_FULL;
		return *is_uncertain ? 0 : count_short(stacks, attr, sample, frames, result);
	}
	tally_recorder_copies_note(stacks->copies, sample, TALLY_RECORDER_STACK_WHOLE,
				   frames->stack_pointers[frames->count - 1] -
					   frames->stack_pointers[0]);
	if (end == TALLY_UNWIND_COMPLETE) {
		if (stacks->outer && tally_recorder_outer_add_chain(stacks->outer, sample, frames))
			note_news(stacks, sample);
		return 0;
	}
	if (end == TALLY_UNWIND_SWITCHED && cross(stacks, attr, sample, frames, limit))
		return frames->count < limit ? 0 : TALLY_MISC_STACK_CUT;
	stacks->session->status.stacks_lost += end != TALLY_UNWIND_LIMIT;
	return end == TALLY_UNWIND_LIMIT ? TALLY_MISC_STACK_CUT : TALLY_MISC_STACK_LOST;
}

/* Writes the sample with these frames into `output`. */
static void put_stack(struct tally_recorder_stacks *stacks, struct tally_record *record,
		      struct output *output)
{
	const struct tally_sample *sample = &record->sample;
	uint64_t *user = stacks->frames.addresses;
	size_t users = stacks->frames.count;
	/* The stack can't be unwound (a 32-bit program): the leaf's address is still known.  A
	 * sample without registers has no callers: the process provider takes one where a program or
	 * thread begins, for the time before it could look. */
	bool in_user = (record->header.misc & TALLY_MISC_CPUMODE_MASK) == TALLY_MISC_USER;
	if (!users && in_user) {
		user[users++] = sample->ip;
		if (sample->regs_user.abi)
			record->header.misc |= TALLY_MISC_STACK_LOST;
	}
	put_unwound(output, sample, user, users);
}

static bool is_as_last(const struct tally_recorder_mended *last, uint64_t space,
		       const struct tally_sample *sample)
{
	return last->space == space && last->pid == sample->pid &&
	       last->words == sample->chain_length &&
	       last->stack_size == sample->stack_dynamic_size &&
	       !memcmp(last->registers, sample->regs_user.words, sizeof(last->registers)) &&
	       !memcmp(last->chain, sample->chain, last->words * sizeof(*last->chain)) &&
	       !memcmp(last->stack, sample->stack, last->stack_size);
}

/* Calls tally_user_stack_mend(), or returns its last result if the last sample was the same.
 * Returns NULL when there is nothing to mend. */
static const struct tally_user_stack_inner *mend(struct tally_recorder_stacks *stacks,
						 const struct tally_attr *attr,
						 const struct tally_sample *sample)
{
	struct tally_recorder_mended *last = &stacks->mended;
	uint64_t space = tally_tasks_generation(&stacks->tasks->known, sample->pid);
	bool fits = space && sample->stack && sample->regs_user.words &&
		    sample->chain_length <= TALLY_RECORDER_MENDED_WORDS &&
		    sample->stack_dynamic_size <= sizeof(last->stack);
	if (fits && is_as_last(last, space, sample))
		return last->is_mended ? &last->inner : NULL;
	last->is_mended = tally_user_stack_mend(&stacks->tasks->known, &stacks->tasks->objects,
						attr, sample, &last->inner);
	last->space = fits ? space : 0;
	if (fits) {
		last->pid = sample->pid;
		last->words = sample->chain_length;
		last->stack_size = sample->stack_dynamic_size;
		memcpy(last->registers, sample->regs_user.words, sizeof(last->registers));
		memcpy(last->chain, sample->chain, last->words * sizeof(*last->chain));
		memcpy(last->stack, sample->stack, last->stack_size);
	}
	return last->is_mended ? &last->inner : NULL;
}

/* Writes a chain by frame pointers, with the callers that they skip. */
static void mend_chain(struct tally_recorder_stacks *stacks, const struct tally_attr *attr,
		       struct tally_record *record, struct output *output)
{
	const struct tally_sample *sample = &record->sample;
	const struct tally_user_stack_inner *inner = mend(stacks, attr, sample);
	if (!inner) {
		put_word(output, sample->chain_length);
		put(output, sample->chain, sample->chain_length * 8);
		return;
	}
	if (inner->is_cut)
		record->header.misc |= TALLY_MISC_STACK_LOST;
	put_word(output, inner->at + inner->count + sample->chain_length - inner->resume);
	put(output, sample->chain, inner->at * 8);
	put(output, inner->frames, inner->count * 8);
	put(output, sample->chain + inner->resume, (sample->chain_length - inner->resume) * 8);
}

/* Writes the rest of the record behind its chain, and its header.  Returns the record's size, or
 * -EBADMSG if it became too large. */
static long finish(struct output *output, struct tally_record *record, const void *bytes)
{
	put_behind_chain(output, &record->sample, bytes, record->header.size);
	if (output->full)
		return -EBADMSG;
	size_t written = (size_t)(output->at - output->start);
	record->header.size = (uint16_t)written;
	memcpy(output->start, &record->header, sizeof(record->header));
	return (long)written;
}

long tally_recorder_rewrite_sample(struct tally_recorder_stacks *stacks,
				   const struct tally_recorder_source *source, const void *bytes,
				   size_t size, void *out)
{
	struct tally_record record;
	int result = tally_record_decode(&source->attr, bytes, size, &record);
	const struct tally_sample *sample = &record.sample;
	if (result < 0)
		return result;
	struct output output = { .start = out, .at = out };
	if (stacks->tasks->objects.live_jits)
		tally_live_jits_look(stacks->tasks->objects.live_jits, &stacks->tasks->known,
				     sample->pid);
	put_before_chain(&output, sample, bytes);
	if (!source->unwinds) {
		mend_chain(stacks, &source->attr, &record, &output);
		return finish(&output, &record, bytes);
	}
	bool is_uncertain = false;
	record.header.misc |= unwind(stacks, &source->attr, sample, &stacks->frames,
				     can_hold(stacks, sample), &is_uncertain);
	if (is_uncertain && !hold(stacks, source, bytes, record.header.size, sample))
		return 0;
	if (is_uncertain)
		record.header.misc |= count_short(stacks, &source->attr, sample, &stacks->frames,
						  TALLY_RECORDER_OUTER_UNCERTAIN);
	put_stack(stacks, &record, &output);
	return finish(&output, &record, bytes);
}

/* Does the same as tally_recorder_rewrite_sample() for a held sample.  Returns 0 if it stays
 * held. */
static long rewrite_held(struct tally_recorder_stacks *stacks,
			 const struct tally_recorder_held *held, bool can_wait, void *out)
{
	struct tally_record record;
	int result = tally_record_decode(&held->source->attr, held->bytes, held->size, &record);
	const struct tally_sample *sample = &record.sample;
	if (result < 0)
		return result;
	struct tally_recorder_frames *frames = &stacks->frames;
	frames->count = held->frames;
	frames->extent = held->extent;
	frames->called = held->called;
	memcpy(frames->addresses, held->addresses, held->frames * sizeof(*held->addresses));
	memcpy(frames->stack_pointers, held->stack_pointers,
	       held->frames * sizeof(*held->stack_pointers));
	enum tally_recorder_outer_result done = complete(stacks, &held->source->attr, sample,
							 frames, true);
	if (done == TALLY_RECORDER_OUTER_WAITS && can_wait)
		return 0;
	record.header.misc |= count_short(stacks, &held->source->attr, sample, frames, done);
	struct output output = { .start = out, .at = out };
	put_before_chain(&output, sample, held->bytes);
	put_stack(stacks, &record, &output);
	return finish(&output, &record, held->bytes);
}

/* ---- writing ------------------------------------------------------------- */

/* Writes the sample and releases it, unless it stays held. */
static int write_one(struct tally_recorder_stacks *stacks, struct tally_recorder_held *held,
		     bool can_wait, struct tally_error *err)
{
	_Alignas(8) uint8_t rewritten[REWRITTEN_BYTES_MAX];
	long written = rewrite_held(stacks, held, can_wait, rewritten);
	if (!written)
		return 0;
	release_held(held);
	return tally_recorder_put_sample(stacks->output, rewritten, written, err);
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

/* Writes the older samples of a thread after one of its whole stacks came. */
static int write_news(struct tally_recorder_stacks *stacks, struct tally_error *err)
{
	struct tally_recorder_holds *holds = &stacks->holds;
	uint32_t tid = holds->news_tid;
	int result = 0;
	holds->news_tid = 0;
	for (size_t i = 0; tid && i < holds->count && !result; i++)
		if (holds->items[i].tid == tid && holds->items[i].time_ns < holds->news_ns)
			result = write_one(stacks, &holds->items[i], false, err);
	close_gaps(holds);
	return result;
}

int tally_recorder_write_held(struct tally_recorder_stacks *stacks, bool all,
			      struct tally_error *err)
{
	struct tally_recorder_holds *holds = &stacks->holds;
	int result = 0;
	for (size_t i = 0; i < holds->count && !result; i++) {
		struct tally_recorder_held *held = &holds->items[i];
		bool can_wait = !all && held->time_ns + WAIT_MS * 1000000ull > holds->last_pass_ns;
		if (all || held->pass != holds->pass)
			result = write_one(stacks, held, can_wait, err);
	}
	close_gaps(holds);
	return result;
}

bool tally_recorder_holds_on(const struct tally_recorder_stacks *stacks)
{
	const struct tally_recorder_holds *holds = &stacks->holds;
	return holds->count && holds->items[0].pass != holds->pass;
}

int tally_recorder_write_stack(struct tally_recorder_stacks *stacks,
			       const struct tally_recorder_source *source, const void *bytes,
			       size_t size, struct tally_error *err)
{
	_Alignas(8) uint8_t rewritten[REWRITTEN_BYTES_MAX];
	tally_recorder_count_sample(stacks->output, bytes);
	long written = tally_recorder_rewrite_sample(stacks, source, bytes, size, rewritten);
	int result = 0;
	if (written)
		result = tally_recorder_put_sample(stacks->output, rewritten, written, err);
	if (result || !stacks->holds.news_tid)
		return result;
	return write_news(stacks, err);
}

void tally_recorder_stacks_begin_pass(struct tally_recorder_stacks *stacks, bool last)
{
	if (stacks->outer)
		tally_recorder_outer_pass(stacks->outer);
	stacks->holds.is_open = !last && !stacks->session->options.take_sample;
	stacks->holds.pass++;
}

void tally_recorder_stacks_end_pass(struct tally_recorder_stacks *stacks, uint64_t now_ns)
{
	stacks->holds.is_open = false;
	stacks->holds.last_pass_ns = now_ns;
}

void tally_recorder_stacks_release(struct tally_recorder_stacks *stacks)
{
	for (size_t i = 0; i < stacks->holds.count; i++)
		release_held(&stacks->holds.items[i]);
	free(stacks->holds.items);
	tally_recorder_outer_free(stacks->outer);
	for (unsigned i = 0; i < TALLY_RECORDER_CHAINS; i++)
		tally_unwind_chain_free(stacks->chains[i]);
}
