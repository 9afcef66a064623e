/* Outer frames that a stack's copy did not reach.
 *
 * The kernel reserves a copy's full size in the ring for each sample.  So copies that reach the
 * outermost frame of every stack fill any ring within milliseconds: 20,000 stacks of clang a second
 * are 1.2 GB.  Most of these bytes are the same from sample to sample, since the outer frames of a
 * deep stack stay for long.  So a copy holds only the inner part.  If it ends before the outermost
 * frame, the recorder reads the rest from the task's memory, once in a pass over the rings: a
 * snapshot.
 *
 * A snapshot is younger than the sample, and the task ran on in the meantime.  A second snapshot,
 * older than the sample, shows which return addresses are the sample's: one that is in the same
 * slot in both was there in between.  (A call of the same function from the same place at the same
 * depth could have removed it and put it back.  The recorder counts completed stacks separately.)
 *
 *    snapshot ──── samples … ──── heads noted ─ snapshot ──── samples … ──── heads noted ─ snapshot
 *    (before)                                   (after; before of the next)
 *
 * If the program returned and called again, the snapshots differ.  Then one of them is enough if
 * the stack was the same when it was made as when the sample was taken.  Three things show this:
 *
 * - The outermost KiB of the copy hold frames with their data.  A snapshot with the same bytes
 *   there agrees with the sample.  This proves little by itself: a return does not erase the
 *   callee's frame.  If the task has returned to an outer frame and called another function, the
 *   old bytes may still be there.  So the task's next sample must agree with the snapshot as well.
 * - A signal handler may run on its own stack.  Then the copy holds only the handler's stack, with
 *   the signal frame, where the kernel saved the interrupted function's registers.  While the
 *   handler runs, the interrupted stack does not change.  A snapshot of that stack agrees with the
 *   samples that have the same signal frame.  The nearest samples before and after the snapshot
 *   must both agree with it.
 * - Go code and the C code that it calls, or that calls it, are on two stacks (go_switch.c).  The
 *   copy holds one of them, and the other one does not change during the call.  Here two words that
 *   the switch left, and the C function that was called, take the part of the signal frame.
 * - If the task's stacks were cut lately, copies of whole stacks are kept as snapshots.  All frames
 *   in such a copy were in use when it was made, so agreement with the sample is enough.
 *
 * If the snapshot after a sample may complete it, the sample waits for the task's next one
 * (recorder_stacks.c).  Different calls may look alike even so.  compare() detects this.  Then
 * agreement with such a snapshot completes nothing, and if it is frequent, the task's stacks stay
 * cut.  If both snapshots are used and a slot holds a different return address in each, the call
 * instructions before these addresses show which of them called the inner function.
 *
 * A snapshot that is read after the rings' heads were noted is younger than all samples of the
 * pass.  The first cut stack of a task in a pass makes it, and the task's other stacks use it.
 * Unwinding the sample's copy and the snapshot as one piece finds the frames.  The outer frames are
 * kept.  If the last frame (sp and address) of a later stack is among them, that stack is not
 * unwound further.  Its return addresses need only be in their slots in both snapshots.  On x86-64
 * the slot is directly below the frame's sp.  Other frames (those that a signal interrupted, and
 * all on arm64) have no such slot: they never pass this test, and their stacks stay cut.
 */
#include "recorder/recorder_outer.h"

#include <stdlib.h>
#include <string.h>

enum {
	TASKS = 128,             /* slots by tid; a task replaces the one that has its slot */
	/* this pass's and the two before: a sample taken while a snapshot was read needs the one
	 * before that */
	SNAPSHOTS = 3,
	FIRST_BYTES = 64 << 10,  /* read beyond the copy while the stack's end is unknown */
	MAX_BYTES = 512 << 10,   /* of a snapshot */
	BELOW_BYTES = 8 << 10,   /* read of the copied part: the next copies may end there */
	BELOW_MAX = 40 << 10,    /* the same, if the copy's last frames are large */
	SPAN_MAX = MAX_BYTES - BELOW_MAX,
	ABOVE_BYTES = 256,       /* read above the outermost frame's sp */
	WALKS_MAX = 16,          /* stacks of a task that are unwound with a snapshot in a pass */
	COMPARED_MAX = 128,      /* results of compare() before older ones count half */
	WORD = 8,
	ENOUGH_FRAMES = 2,       /* whose bytes tell one call from another */
	/* of a signal frame: 304 of ucontext with its registers and mask, 128 of siginfo */
	SIGNAL_BYTES = 304 + 128,
};

#define SAMPLED_NS_MIN 500000u     /* least time between two copies that are kept */
#define SAMPLED_FOR_NS 2000000000u /* time after a cut stack in which copies are kept */

struct snapshot {
	uint64_t time_ns; /* when it had been read */
	uint64_t base;    /* address of the first byte */
	size_t size, capacity;
	uint8_t *bytes;
	bool is_sampled; /* a sample's copy */
	/* times of the task's last sample before it and of the first one after it; 0: none seen */
	uint64_t older_ns, younger_ns;
	bool agrees_before, agrees_after; /* the snapshot agrees with these samples */
	bool is_compared; /* compare() has counted it */
	/* the mark (mark_of()) of the pass's last sample whose walk left for another stack */
	size_t mark_bytes; /* 0: none */
	uint64_t mark_ns;  /* that sample's time */
	uint64_t called;   /* of that sample's frames */
	uint8_t mark[SIGNAL_BYTES];
};

struct outer_task {
	uint32_t pid, tid;
	uint64_t pass; /* of the newest snapshot */
	unsigned newest;
	uint64_t walked_pass; /* in which `walks` stacks were unwound with a snapshot */
	unsigned walks;
	struct snapshot snapshots[SNAPSHOTS];
	struct snapshot sampled[2]; /* the copies of the last two whole stacks */
	unsigned same, different; /* recent results of compare() */
	uint64_t halved_ns;       /* time of the sample at which they were halved last */
	uint64_t cut_ns; /* time of the last sample whose stack was cut */
	uint64_t top;  /* end of the stack; 0: unknown */
	size_t span;   /* bytes to read beyond the copy while `top` is unknown */
	/* from a copy's last frame to the outermost; count 0: none known */
	struct tally_recorder_frames outer;
	bool is_outer_cut; /* `outer` is incomplete: the walk had no room for more */
	bool is_too_long;  /* the stack has more than the MAX_BYTES that are read */
};

struct tally_recorder_outer {
	long (*read)(void *context, uint32_t tid, uint64_t address, void *out, size_t size);
	uint64_t (*now_ns)(void *context);
	void *context;
	uint64_t pass;
	struct outer_task *tasks[TASKS];
	uint8_t *joined; /* a copy, then the snapshot's bytes beyond it */
	size_t joined_capacity;
};

struct tally_recorder_outer *tally_recorder_outer_new(
	long (*read)(void *context, uint32_t tid, uint64_t address, void *out, size_t size),
	uint64_t (*now_ns)(void *context), void *context)
{
	struct tally_recorder_outer *outer = calloc(1, sizeof(*outer));
	if (outer)
		*outer = (struct tally_recorder_outer){
			.read = read, .now_ns = now_ns, .context = context, .pass = 1
		};
	return outer;
}

static void forget_snapshots(struct outer_task *task)
{
	for (unsigned i = 0; i < SNAPSHOTS; i++) {
		free(task->snapshots[i].bytes);
		task->snapshots[i] = (struct snapshot){ 0 };
	}
	for (unsigned i = 0; i < 2; i++) {
		free(task->sampled[i].bytes);
		task->sampled[i] = (struct snapshot){ 0 };
	}
}

void tally_recorder_outer_free(struct tally_recorder_outer *outer)
{
	for (unsigned i = 0; outer && i < TASKS; i++) {
		if (outer->tasks[i])
			forget_snapshots(outer->tasks[i]);
		free(outer->tasks[i]);
	}
	if (outer)
		free(outer->joined);
	free(outer);
}

void tally_recorder_outer_pass(struct tally_recorder_outer *outer)
{
	outer->pass++;
}

/* Returns the task's entry, made anew if another task has its slot; NULL if memory runs out. */
static struct outer_task *task_of(struct tally_recorder_outer *outer, uint32_t pid, uint32_t tid)
{
	struct outer_task **place = &outer->tasks[tid % TASKS];
	if (!*place)
		*place = calloc(1, sizeof(**place));
	struct outer_task *task = *place;
	if (!task || (task->pid == pid && task->tid == tid))
		return task;
	forget_snapshots(task);
	task->pid = pid;
	task->tid = tid;
	task->pass = task->top = task->cut_ns = 0;
	task->same = task->different = 0;
	task->halved_ns = 0;
	task->span = FIRST_BYTES;
	task->is_too_long = false;
	task->outer.count = 0;
	return task;
}

/* Returns the sample's task, or NULL if it has no entry. */
static struct outer_task *known_task(const struct tally_recorder_outer *outer,
				     const struct tally_sample *sample)
{
	struct outer_task *task = outer->tasks[sample->tid % TASKS];
	return task && task->pid == sample->pid && task->tid == sample->tid ? task : NULL;
}

/* ---- snapshots ----------------------------------------------------------- */

static bool reserve(uint8_t **bytes, size_t *capacity, size_t size)
{
	if (size <= *capacity)
		return true;
	uint8_t *larger = realloc(*bytes, size);
	if (!larger)
		return false;
	*bytes = larger;
	*capacity = size;
	return true;
}

/* Frees unused memory: the first guess of a stack's size is mostly too high. */
static void shrink(struct snapshot *snapshot)
{
	uint8_t *smaller = snapshot->size && snapshot->size < snapshot->capacity / 2 ?
				   realloc(snapshot->bytes, snapshot->size) :
				   NULL;
	if (!smaller)
		return;
	snapshot->bytes = smaller;
	snapshot->capacity = snapshot->size;
}

/* Reads the task's memory from `base` to the stack's end, or as far beyond `boundary` as
 * task->span says.  Sets snapshot->size to 0 on failure. */
static void read_snapshot(struct tally_recorder_outer *outer, struct outer_task *task,
			  struct snapshot *snapshot, uint64_t base, uint64_t boundary)
{
	bool has_top = task->top > boundary && task->top - base <= MAX_BYTES;
	uint64_t top = has_top ? task->top : boundary + task->span;
	size_t size = (size_t)(top - base);
	snapshot->size = 0;
	snapshot->older_ns = snapshot->younger_ns = 0;
	snapshot->agrees_before = snapshot->agrees_after = false;
	snapshot->is_compared = false;
	snapshot->mark_bytes = 0;
	if (size > MAX_BYTES || !reserve(&snapshot->bytes, &snapshot->capacity, size))
		return;
	long got = outer->read(outer->context, task->tid, base, snapshot->bytes, size);
	snapshot->time_ns = outer->now_ns(outer->context);
	snapshot->base = base;
	snapshot->size = got > 0 ? (size_t)got : 0;
	shrink(snapshot);
}

/* Returns how many bytes of the copy's outer end to compare with snapshots: the last frames must be
 * among them.  (Those of R's interpreter have 11 KB each.) */
static uint64_t compared_bytes(const struct tally_sample *sample,
			       const struct tally_recorder_frames *frames)
{
	uint64_t end = frames->stack_pointers[0] + sample->stack_dynamic_size, frame, bytes;
	if (frames->count <= ENOUGH_FRAMES)
		return BELOW_BYTES;
	frame = frames->stack_pointers[frames->count - ENOUGH_FRAMES] - WORD;
	bytes = frame < end ? end - frame : 0;
	return bytes > BELOW_BYTES && bytes <= BELOW_MAX ? bytes : BELOW_BYTES;
}

/* Returns the pass's snapshot, which holds the stack from `boundary` on; NULL if it can't be
 * read. */
static struct snapshot *snapshot_now(struct tally_recorder_outer *outer, struct outer_task *task,
				     uint64_t sp, uint64_t boundary, uint64_t below)
{
	uint64_t base = boundary - sp > below ? boundary - below : sp;
	if (task->pass != outer->pass) {
		task->newest = (task->newest + 1) % SNAPSHOTS;
		task->pass = outer->pass;
		read_snapshot(outer, task, &task->snapshots[task->newest], base, boundary);
	}
	struct snapshot *snapshot = &task->snapshots[task->newest];
	/* It lacks a part that this stack needs.  Read it again: a later snapshot of the same pass
	 * is younger than all its samples as well. */
	if (snapshot->size && snapshot->base > (below > BELOW_BYTES ? base : boundary))
		read_snapshot(outer, task, snapshot, base, boundary);
	return snapshot->size ? snapshot : NULL;
}

/* Returns the nearest snapshot before a time, or after it; NULL if there is none. */
static struct snapshot *snapshot_beside(struct outer_task *task, uint64_t time_ns, bool is_after)
{
	struct snapshot *nearest = NULL;
	for (unsigned i = 0; i < SNAPSHOTS + 2; i++) {
		struct snapshot *snapshot = i < SNAPSHOTS ? &task->snapshots[i] :
							    &task->sampled[i - SNAPSHOTS];
		bool fits = is_after ? snapshot->time_ns > time_ns : snapshot->time_ns <= time_ns;
		bool is_nearer = !nearest || (snapshot->time_ns > nearest->time_ns) != is_after;
		if (snapshot->size && fits && is_nearer)
			nearest = snapshot;
	}
	return nearest;
}

/* ---- frames -------------------------------------------------------------- */

/* True if the walk left the copied stack for another one, which the copy does not hold: that of a
 * function that a signal handler on its own stack interrupted, or of a goroutine or its thread.  The
 * kernel copies nothing, of any stack, where the task first touches the page that its stack pointer
 * is in. */
static bool is_apart_of(const struct tally_sample *sample,
			const struct tally_recorder_frames *frames)
{
	return sample->stack_dynamic_size && frames->extent.reached - frames->stack_pointers[0] >=
						     sample->stack_dynamic_size;
}

static struct tally_unwind_memory whole_of(const struct snapshot *snapshot)
{
	return (struct tally_unwind_memory){ snapshot->bytes, snapshot->size, snapshot->base };
}

/* Unwinds the copy and the snapshot as one piece.  Keeps the frames from the copy's last one on in
 * task->outer; its count is 0 if the walk failed.  Sets task->top, or raises task->span if the
 * snapshot was too short. */
static void learn_outer(struct tally_recorder_outer *outer, struct outer_task *task,
			const struct snapshot *snapshot, const struct tally_tasks *tasks,
			struct tally_objects *objects, const struct tally_attr *attr,
			const struct tally_sample *sample,
			const struct tally_recorder_frames *frames)
{
	size_t copied = sample->stack_dynamic_size, known = frames->count - 1;
	bool is_apart = is_apart_of(sample, frames);
	uint64_t boundary = frames->stack_pointers[0] + copied,
		 end_address = snapshot->base + snapshot->size;
	const struct tally_unwind_memory nothing = { 0 };
	enum tally_unwind_end end;
	task->outer.count = 0;
	task->is_too_long = false;
	if (is_apart)
		end_address = boundary; /* the copy is whole */
	if ((!is_apart && (end_address <= boundary || snapshot->base > boundary)) ||
	    !reserve(&outer->joined, &outer->joined_capacity,
		     copied + (size_t)(end_address - boundary)))
		return;
	if (copied)
		memcpy(outer->joined, sample->stack, copied);
	if (!is_apart)
		memcpy(outer->joined + copied, snapshot->bytes + (boundary - snapshot->base),
		       end_address - boundary);
	struct tally_recorder_frames *all = &task->outer;
	const struct tally_user_stack_walk walk = {
		.stack = outer->joined,
		.stack_size = copied + (size_t)(end_address - boundary),
		.other = is_apart ? whole_of(snapshot) : nothing,
		.stack_pointers = all->stack_pointers
	};
	size_t count = tally_user_stack_walk(tasks, objects, attr, sample, &walk, all->addresses,
					     TALLY_USER_FRAMES_MAX, &end);
	/* The stack goes on behind the supposed end; or that is farther away than snapshots reach, as
	 * when the task was sampled at the beginning of a deep recursion, or on another stack. */
	bool is_useless = task->top <= snapshot->base + snapshot->size ||
			  task->top - snapshot->base > MAX_BYTES;
	if (end == TALLY_UNWIND_TRUNCATED && is_useless) {
		task->top = 0;
		task->is_too_long = task->span == SPAN_MAX;
		task->span = task->span < SPAN_MAX / 2 ? 2 * task->span : SPAN_MAX;
	}
	task->is_outer_cut = end == TALLY_UNWIND_LIMIT;
	if ((end != TALLY_UNWIND_COMPLETE && !task->is_outer_cut) || count <= known)
		return;
	if (!task->is_outer_cut)
		task->top = all->stack_pointers[count - 1] + ABOVE_BYTES;
	all->count = count - known;
	memmove(all->addresses, all->addresses + known, all->count * sizeof(*all->addresses));
	memmove(all->stack_pointers, all->stack_pointers + known,
		all->count * sizeof(*all->stack_pointers));
}

/* True if the snapshot has the same bytes as the outer end of the copy, with at least two frames in
 * them.  Then the frames there are the same. */
static bool is_of_copy(const struct snapshot *snapshot, const struct tally_sample *sample,
		       const struct tally_recorder_frames *frames)
{
	enum { ENOUGH_BYTES = 1024 };
	uint64_t start = frames->stack_pointers[0], end = start + sample->stack_dynamic_size,
		 from = start, compared = compared_bytes(sample, frames);
	if (end - from > compared)
		from = end - compared;
	if (snapshot->base > from)
		from = snapshot->base;
	uint64_t offset = from - snapshot->base;
	if (from >= end || end - from < ENOUGH_BYTES || offset > snapshot->size ||
	    snapshot->size - offset < end - from || frames->count <= ENOUGH_FRAMES ||
	    frames->stack_pointers[frames->count - ENOUGH_FRAMES] - WORD < from)
		return false;
	return !memcmp((const uint8_t *)sample->stack + (from - start), snapshot->bytes + offset,
		       end - from);
}

/* Returns the bytes of the copy that mark the stay on this stack: the signal frame under the sampled
 * handler, where the kernel saved the interrupted registers, or what the switch to Go's other stack
 * left.  Sets *size; returns NULL if the copy lacks a part of them. */
static const uint8_t *mark_of(const struct tally_sample *sample,
			      const struct tally_recorder_frames *frames, size_t *size)
{
	if (frames->count < 2)
		return NULL;
	bool is_go = frames->extent.switched_at;
	uint64_t at = is_go ? frames->extent.switched_at :
			      frames->stack_pointers[frames->count - 2],
		 offset = at - frames->stack_pointers[0];
	*size = is_go ? TALLY_UNWIND_SWITCH_BYTES : SIGNAL_BYTES;
	bool is_copied = offset <= sample->stack_dynamic_size &&
			 sample->stack_dynamic_size - offset >= *size;
	return is_copied ? (const uint8_t *)sample->stack + offset : NULL;
}

static void note_mark(struct snapshot *snapshot, const struct tally_sample *sample,
		      const struct tally_recorder_frames *frames)
{
	size_t size;
	const uint8_t *mark = mark_of(sample, frames, &size);
	if (!mark || (snapshot->mark_bytes && sample->time < snapshot->mark_ns))
		return;
	memcpy(snapshot->mark, mark, size);
	snapshot->mark_ns = sample->time;
	snapshot->mark_bytes = size;
	snapshot->called = frames->called;
}

/* True if the snapshot agrees with the sample: it has the copy's outer bytes, or the sample's
 * mark.  False for NULL. */
static bool agrees(const struct snapshot *snapshot, const struct tally_sample *sample,
		   const struct tally_recorder_frames *frames)
{
	if (!snapshot || !is_apart_of(sample, frames))
		return snapshot && is_of_copy(snapshot, sample, frames);
	size_t size;
	const uint8_t *mark = mark_of(sample, frames, &size);
	return mark && snapshot->mark_bytes == size && snapshot->called == frames->called &&
	       !memcmp(snapshot->mark, mark, size);
}

/* Notes in a snapshot that was read whether a sample agrees with it, if no other sample seen so far
 * is nearer on that side.  Copies of samples need no neighbours. */
static void note_neighbour(struct snapshot *snapshot, uint64_t time_ns, bool does_agree)
{
	if (!snapshot || snapshot->is_sampled)
		return;
	if (time_ns <= snapshot->time_ns && time_ns >= snapshot->older_ns) {
		snapshot->older_ns = time_ns;
		snapshot->agrees_before = does_agree;
	} else if (time_ns > snapshot->time_ns &&
		   (!snapshot->younger_ns || time_ns <= snapshot->younger_ns)) {
		snapshot->younger_ns = time_ns;
		snapshot->agrees_after = does_agree;
	}
}

/* True if enough of the samples next to the snapshot agree with it.  For the bytes of a copy the
 * younger one is enough: an older one proves nothing more.  For a mark both are needed. */
static bool agreed(const struct snapshot *snapshot)
{
	return snapshot->agrees_after && (snapshot->agrees_before || !snapshot->mark_bytes);
}

/* True if the frames that agree with a sample were in use when the snapshot was made, rather than
 * left behind by calls that had returned.  The frames of a sample's copy always were. */
static bool stood(const struct outer_task *task, const struct snapshot *snapshot)
{
	return snapshot->is_sampled || (agreed(snapshot) && !task->different);
}

/* Returns the index of a cut stack's last frame among the outer frames; their number if it is not
 * among them. */
static size_t find_last(const struct tally_recorder_frames *outer,
			const struct tally_recorder_frames *frames)
{
	uint64_t sp = frames->stack_pointers[frames->count - 1],
		 address = frames->addresses[frames->count - 1];
	size_t at = 0;
	while (at < outer->count &&
	       (outer->stack_pointers[at] != sp || outer->addresses[at] != address))
		at++;
	return at;
}

/* The input of certain_word(): the process's code, the sample, and two snapshots, which may be the same. */
struct evidence {
	const struct tally_tasks *tasks;
	struct tally_objects *objects;
	const struct tally_sample *sample;
	uint64_t sp; /* address of the copy's first byte */
	const struct snapshot *before, *after;
};

/* Returns the word at an address of the sample's copy; 0 if the copy does not hold it. */
static uint64_t copied_word(const struct evidence *evidence, uint64_t address)
{
	uint64_t offset = address - evidence->sp, size = evidence->sample->stack_dynamic_size,
		 word = 0;
	if (offset <= size && size - offset >= WORD)
		memcpy(&word, (const uint8_t *)evidence->sample->stack + offset, WORD);
	return word;
}

/* Returns the word at an address; 0 if the snapshot does not hold it. */
static uint64_t word_at(const struct snapshot *snapshot, uint64_t address)
{
	uint64_t offset = address - snapshot->base, word = 0;
	if (offset <= snapshot->size && snapshot->size - offset >= WORD)
		memcpy(&word, snapshot->bytes + offset, WORD);
	return word;
}

/* Returns the return address that was in a slot at the time of the sample; 0 if that is not
 * certain.  `expected` is the address that the outer frames have there, `inner` an address in the
 * function that returns there.  If the snapshots have different addresses, takes the one that
 * follows a call of that function. */
static uint64_t certain_word(const struct evidence *evidence, uint64_t slot, uint64_t expected,
			     uint64_t inner)
{
	if (copied_word(evidence, slot)) /* the walk came back to the copied stack */
		return copied_word(evidence, slot) == expected ? expected : 0;
	uint64_t before = word_at(evidence->before, slot), after = word_at(evidence->after, slot);
	if (before == after)
		return before == expected ? expected : 0;
	bool is_before = before &&
			 tally_user_stack_is_call_of(evidence->tasks, evidence->objects,
						     evidence->sample->pid, before, inner);
	bool is_after = after && tally_user_stack_is_call_of(evidence->tasks, evidence->objects,
							     evidence->sample->pid, after, inner);
	uint64_t word = is_before ? before : after;
	bool is_one = is_before != is_after;
	/* The frames further out were found by the rules of the expected address.  The rules of
	 * another address give the same frames only if it is in the same function. */
	bool is_expected = word == expected ||
			   tally_user_stack_is_same_function(evidence->tasks, evidence->objects,
							     evidence->sample->pid, word, expected);
	return is_one && is_expected ? word : 0;
}

/* Appends the outer frames behind index `last`, which is the copy's last frame, as many as there is
 * room for.  Returns false if one of them is not certain: then `frames` keeps its count. */
static bool append_certain(struct tally_recorder_frames *frames, const struct outer_task *task,
			   size_t last, const struct evidence *evidence)
{
	const struct tally_recorder_frames *outer = &task->outer;
	size_t count = frames->count, end = outer->count;
	if (end - last - 1 > TALLY_USER_FRAMES_MAX - count)
		end = last + 1 + TALLY_USER_FRAMES_MAX - count;
	else if (task->is_outer_cut && end - last - 1 < TALLY_USER_FRAMES_MAX - count)
		return false; /* that walk had more inner frames, so less room */
	for (size_t i = last + 1; i < end; i++, count++) {
		uint64_t slot = outer->stack_pointers[i] - WORD;
		uint64_t word = certain_word(evidence, slot, outer->addresses[i],
					     frames->addresses[count - 1]);
		if (!word)
			return false;
		frames->addresses[count] = word;
		frames->stack_pointers[count] = outer->stack_pointers[i];
	}
	frames->count = count;
	return true;
}

/* Calls learn_outer().  If the snapshot is this pass's newest one, reads it again with a larger
 * span until it holds the stack's end. */
static void learn_widely(struct tally_recorder_outer *outer, struct outer_task *task,
			 struct snapshot *snapshot, const struct tally_tasks *tasks,
			 struct tally_objects *objects, const struct tally_attr *attr,
			 const struct tally_sample *sample,
			 const struct tally_recorder_frames *frames, uint64_t boundary)
{
	size_t span = 0;
	do {
		if (span) {
			uint64_t base = snapshot->base;
			read_snapshot(outer, task, snapshot, base, boundary);
			if (!snapshot->size)
				return;
			if (is_apart_of(sample, frames))
				note_mark(snapshot, sample, frames);
			note_neighbour(snapshot, sample->time, agrees(snapshot, sample, frames));
		}
		span = task->span;
		learn_outer(outer, task, snapshot, tasks, objects, attr, sample, frames);
	} while (task->span > span && snapshot == &task->snapshots[task->newest] &&
		 task->pass == outer->pass);
}

/* Counts whether two snapshots that agree with one sample have the same outer return addresses.
 *
 * If they differ, then agreement does not identify a call.  For instance, several functions call
 * one that a signal interrupts, with equal registers: then the signal frames are equal, too. */
static void compare(struct outer_task *task, struct snapshot *snapshot,
		    const struct tally_sample *sample, const struct tally_recorder_frames *frames)
{
	const struct tally_recorder_frames *outer = &task->outer;
	struct snapshot *older = snapshot_beside(task, snapshot->time_ns - 1, false);
	if (snapshot->is_compared || snapshot->is_sampled || !older || older->is_sampled ||
	    !agreed(snapshot) || !agreed(older) || !agrees(older, sample, frames) ||
	    outer->count < 2 || find_last(outer, frames) == outer->count)
		return; /* or the outer frames known are those of another stack */
	bool is_same = true;
	uint64_t innermost = outer->stack_pointers[1] - WORD;
	/* Go's calls of C may be short: then one of the snapshots was made between two of them. */
	if (frames->extent.switched_at && word_at(snapshot, innermost) != word_at(older, innermost))
		return;
	for (size_t i = 1; i < outer->count && is_same; i++)
		is_same = word_at(snapshot, outer->stack_pointers[i] - WORD) ==
			  word_at(older, outer->stack_pointers[i] - WORD);
	snapshot->is_compared = true;
	task->same += is_same;
	task->different += !is_same;
	if (task->same + task->different >= COMPARED_MAX) {
		task->same /= 2;
		task->different /= 2;
	}
}

/* True if snapshots that agree with one sample differ so often that the stack may have been another
 * one between two equal snapshots. */
static bool differ_often(const struct outer_task *task)
{
	enum { FEW = 2 };
	return task->different > FEW && task->different * 5 > task->same + task->different;
}

/* Lets older results of compare() count less: a program may begin with other work. */
static void age_results(struct outer_task *task, uint64_t now_ns)
{
	const uint64_t age_ns = 250000000;
	if (now_ns < task->halved_ns + age_ns)
		return;
	task->halved_ns = now_ns;
	task->same /= 2;
	task->different /= 2;
}

/* Returns COMPLETED if the appended frames reach the outermost one, else FULL. */
static enum tally_recorder_outer_result completed(const struct outer_task *task,
						  const struct tally_recorder_frames *frames)
{
	const struct tally_recorder_frames *outer = &task->outer;
	bool is_outermost = !task->is_outer_cut && frames->stack_pointers[frames->count - 1] ==
							   outer->stack_pointers[outer->count - 1];
	return is_outermost ? TALLY_RECORDER_OUTER_COMPLETED : TALLY_RECORDER_OUTER_FULL;
}

enum tally_recorder_outer_result tally_recorder_outer_complete(
	struct tally_recorder_outer *outer, const struct tally_tasks *tasks,
	struct tally_objects *objects, const struct tally_attr *attr,
	const struct tally_sample *sample, struct tally_recorder_frames *frames, bool is_again)
{
	struct outer_task *task =
		is_again ? known_task(outer, sample) : task_of(outer, sample->pid, sample->tid);
	if (!task || !frames->count)
		return TALLY_RECORDER_OUTER_UNCERTAIN;
	bool is_apart = is_apart_of(sample, frames);
	uint64_t sp = frames->stack_pointers[0], boundary = sp + sample->stack_dynamic_size;
	if (is_apart)
		sp = boundary = frames->extent.reached;
	if (task->walked_pass != outer->pass) {
		task->walked_pass = outer->pass;
		task->walks = 0;
		task->is_too_long = false;
	}
	age_results(task, sample->time);
	task->cut_ns = sample->time > task->cut_ns ? sample->time : task->cut_ns;
	struct snapshot *now = is_again ? NULL : snapshot_now(outer, task, sp, boundary,
							 compared_bytes(sample, frames));
	if (now && is_apart)
		note_mark(now, sample, frames);
	if (now && !task->top && task->walks++ < WALKS_MAX)
		learn_widely(outer, task, now, tasks, objects, attr, sample, frames, boundary);
	struct snapshot *before = snapshot_beside(task, sample->time, false),
			*after = snapshot_beside(task, sample->time, true);
	bool is_before = agrees(before, sample, frames), is_after = agrees(after, sample, frames);
	note_neighbour(before, sample->time, is_before);
	note_neighbour(after, sample->time, is_after);
	if (is_before)
		compare(task, before, sample, frames);
	bool stood_before = is_before && stood(task, before),
	     stood_after = is_after && stood(task, after);
	enum tally_recorder_outer_result result = TALLY_RECORDER_OUTER_UNCERTAIN;
	if (task->is_too_long)
		return TALLY_RECORDER_OUTER_FULL;
	if (is_after && !after->is_sampled && !after->younger_ns)
		result = TALLY_RECORDER_OUTER_WAITS;
	else if (after && !before)
		result = TALLY_RECORDER_OUTER_NEW;
	if (stood_before && !stood_after)
		after = before;
	else if (stood_after && !stood_before)
		before = after;
	if (!before || !after || differ_often(task))
		return result;
	const struct evidence evidence = { tasks, objects, sample, frames->stack_pointers[0],
					   before, after };
	size_t last = find_last(&task->outer, frames);
	if (last < task->outer.count && append_certain(frames, task, last, &evidence))
		return completed(task, frames);
	/* Try the younger snapshot first.  The older one helps if later calls have overwritten the
	 * sample's frames in the younger. */
	for (unsigned i = 0; i < 2 && task->walks++ < WALKS_MAX; i++) {
		struct snapshot *snapshot = i ? before : after;
		if (i && before == after)
			break;
		learn_widely(outer, task, snapshot, tasks, objects, attr, sample, frames, boundary);
		if (task->outer.count && !find_last(&task->outer, frames) &&
		    append_certain(frames, task, 0, &evidence))
			return completed(task, frames);
	}
	return task->is_too_long ? TALLY_RECORDER_OUTER_FULL : result;
}

bool tally_recorder_outer_add_chain(struct tally_recorder_outer *outer,
				    const struct tally_sample *sample,
				    const struct tally_recorder_frames *frames)
{
	struct outer_task *task = known_task(outer, sample);
	if (!task || !frames->count || sample->time > task->cut_ns + SAMPLED_FOR_NS)
		return false;
	uint64_t sp = frames->stack_pointers[0],
		 end = frames->stack_pointers[frames->count - 1] + ABOVE_BYTES;
	for (unsigned i = 0; i < SNAPSHOTS; i++)
		note_neighbour(&task->snapshots[i], sample->time, false);
	bool is_first_younger = task->sampled[0].time_ns > task->sampled[1].time_ns;
	struct snapshot *older = &task->sampled[is_first_younger],
			*younger = &task->sampled[!is_first_younger];
	if (end - sp > sample->stack_dynamic_size)
		end = sp + sample->stack_dynamic_size;
	if (!sample->stack_dynamic_size || is_apart_of(sample, frames) ||
	    sample->time < younger->time_ns + SAMPLED_NS_MIN ||
	    !reserve(&older->bytes, &older->capacity, (size_t)(end - sp)))
		return false;
	older->time_ns = sample->time;
	older->base = sp;
	older->size = (size_t)(end - sp);
	older->is_sampled = true;
	memcpy(older->bytes, sample->stack, older->size);
	task->top = frames->stack_pointers[frames->count - 1] + ABOVE_BYTES;
	return true;
}
