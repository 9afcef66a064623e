/* Outer frames that a stack's copy did not reach.
 *
 * The kernel sets aside a copy's full size in the ring for each sample, so that copies that reach
 * the outermost frame of every stack fill any ring within milliseconds: 20,000 stacks of clang a
 * second are 1.2 GB.  But most of what they'd hold is the same from sample to sample: the outer
 * frames of a deep stack stay for long.  So a copy holds the inner part alone, and where it ends
 * too early the rest is taken from the task's memory, read from outside once in a pass over the
 * rings.
 *
 * That memory is younger than the sample, and the task ran on meanwhile.  A snapshot that is older
 * than the sample shows whether it is the sample's, too: a return address that stands in the same
 * slot before and after stood there in between.  (A call of the same function from the same place at
 * the same depth could take it away and bring it back.  The recorder counts completed stacks apart.)
 *
 *     snapshot ──── samples … ──── heads noted ─ snapshot ──── samples … ──── heads noted ─ snapshot
 *     (before)                                   (after; before of the next)
 *
 * Where the program returned and called again, the snapshots differ.  One of them is enough where
 * the stack stood, at its time, as it did at the sample's:
 *
 * - The outermost KiB of the copy hold frames with their data.  A snapshot that has the same bytes
 *   there agrees with the sample.  But memory keeps what calls leave behind: a task that has returned
 *   to an outer frame and calls something else there has the old bytes inside of it.  So the task's
 *   next sample must agree with the snapshot, too.
 * - A handler on a stack of its own: the copy holds the handler's stack alone, and the signal's frame
 *   in it, where the interrupted function's registers are saved.  While the handler runs, the
 *   interrupted stack does not change.  A snapshot of it agrees with the samples that have the same
 *   signal's frame.  The samples next to the snapshot on both sides must agree.
 * - The copies of samples whose stack is whole are kept, too, as snapshots, where the task's stacks
 *   were cut lately.  What they hold stood.
 *
 * A sample that the snapshot behind it may complete waits for the task's next one (record_held.c).
 * What agrees may still not tell one call from another; compare() finds out, and then nothing is
 * completed.  Where both snapshots count and a slot holds two return addresses, the call in front of
 * each tells which of them called the function inside.
 *
 * A snapshot that begins behind the noting is younger than all samples of the pass.  It is made at
 * a task's first stack of the pass that was cut, and serves for the others.  How its words make
 * frames is found by unwinding the sample's copy and the snapshot in one piece.  The outer frames
 * are kept: a stack whose last frame (sp and address) is among them needs no further unwinding,
 * only that each return address beyond is found where x86-64 has it, right below its frame's sp, in
 * both snapshots.  Frames of which that is not so (those that a signal interrupted, and all of
 * arm64) never pass, and their stacks stay cut.
 */
#include "recorder/record_outer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TASKS = 128,             /* at a time; a task that finds its place taken gets it */
	/* this pass's and two before: samples taken while a snapshot was made need the older */
	SNAPSHOTS = 3,
	FIRST_BYTES = 64 << 10,  /* of a stack beyond the copy */
	MAX_BYTES = 512 << 10,
	BELOW_BYTES = 8 << 10,   /* of the copied part: where the next samples' copies may end */
	SPAN_MAX = MAX_BYTES - BELOW_BYTES,
	ABOVE_BYTES = 256,       /* above the outermost frame */
	WALKS_MAX = 16,          /* unwound with a snapshot, of a task in a pass */
	COMPARED_MAX = 128,
	WORD = 8,
	/* a signal's frame: 304 of ucontext with its registers and mask, 128 of siginfo */
	SIGNAL_BYTES = 304 + 128,
};

#define SAMPLED_NS_MIN 500000u     /* between two copies that are kept */
#define SAMPLED_FOR_NS 2000000000u /* after a stack that was cut */

struct snapshot {
	uint64_t time_ns; /* when it was complete */
	uint64_t base;
	size_t size, capacity;
	uint8_t *bytes;
	bool is_sampled; /* a sample's copy */
	/* The task's last sample before it, and its first one after it; 0: none was seen. */
	uint64_t older_ns, younger_ns;
	bool agrees_before, agrees_after; /* with these */
	bool is_compared;
	bool has_signal;  /* of the pass's first sample in a handler on a stack of its own: */
	uint8_t signal[SIGNAL_BYTES];
};

struct outer_task {
	uint32_t pid, tid;
	uint64_t pass; /* of the newest snapshot */
	unsigned newest;
	uint64_t walked_pass; /* in which `walks` stacks were unwound with a snapshot */
	unsigned walks;
	struct snapshot snapshots[SNAPSHOTS];
	struct snapshot sampled[2]; /* the copies of the last two whole stacks */
	unsigned same, different; /* of late: what compare() found */
	uint64_t cut_ns; /* the time of the last sample that was cut */
	uint64_t top;  /* where the stack ends, 0: not known */
	size_t span;   /* bytes to read beyond the copy where it isn't */
	struct tally_record_frames outer; /* to the outermost; count 0: none known */
	bool is_outer_cut; /* there was room for no more of them */
	bool is_too_long;  /* the stack: more than MAX_BYTES are not read */
};

struct tally_record_outer {
	long (*read)(void *context, uint32_t tid, uint64_t address, void *out, size_t size);
	uint64_t (*now_ns)(void *context);
	void *context;
	uint64_t pass;
	struct outer_task *tasks[TASKS];
	uint8_t *joined; /* a copy and what a snapshot has beyond it */
	size_t joined_capacity;
};

struct tally_record_outer *tally_record_outer_new(long (*read)(void *context, uint32_t tid,
							       uint64_t address, void *out,
							       size_t size),
						  uint64_t (*now_ns)(void *context), void *context)
{
	struct tally_record_outer *outer = calloc(1, sizeof(*outer));
	if (outer)
		*outer = (struct tally_record_outer){
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

void tally_record_outer_free(struct tally_record_outer *outer)
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

void tally_record_outer_pass(struct tally_record_outer *outer)
{
	outer->pass++;
}

static struct outer_task *task_of(struct tally_record_outer *outer, uint32_t pid, uint32_t tid)
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
	task->span = FIRST_BYTES;
	task->is_too_long = false;
	task->outer.count = 0;
	return task;
}

/* NULL where another task has its place. */
static struct outer_task *known_task(const struct tally_record_outer *outer,
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

/* A stack's size is guessed at first, and mostly too high. */
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

static void read_snapshot(struct tally_record_outer *outer, struct outer_task *task,
			  struct snapshot *snapshot, uint64_t base, uint64_t boundary)
{
	bool has_top = task->top > boundary && task->top - base <= MAX_BYTES;
	uint64_t top = has_top ? task->top : boundary + task->span;
	size_t size = (size_t)(top - base);
	snapshot->size = 0;
	snapshot->older_ns = snapshot->younger_ns = 0;
	snapshot->agrees_before = snapshot->agrees_after = false;
	snapshot->is_compared = snapshot->has_signal = false;
	if (size > MAX_BYTES || !reserve(&snapshot->bytes, &snapshot->capacity, size))
		return;
	long got = outer->read(outer->context, task->tid, base, snapshot->bytes, size);
	snapshot->time_ns = outer->now_ns(outer->context);
	snapshot->base = base;
	snapshot->size = got > 0 ? (size_t)got : 0;
	shrink(snapshot);
}

/* The pass's snapshot, which holds the stack from `boundary` on; NULL where it can't be read. */
static struct snapshot *snapshot_now(struct tally_record_outer *outer, struct outer_task *task,
				     uint64_t sp, uint64_t boundary)
{
	uint64_t base = boundary - sp > BELOW_BYTES ? boundary - BELOW_BYTES : sp;
	if (task->pass != outer->pass) {
		task->newest = (task->newest + 1) % SNAPSHOTS;
		task->pass = outer->pass;
		read_snapshot(outer, task, &task->snapshots[task->newest], base, boundary);
	}
	struct snapshot *snapshot = &task->snapshots[task->newest];
	/* once more, with what it lacks: as young as needed */
	if (snapshot->size && snapshot->base > boundary)
		read_snapshot(outer, task, snapshot, base, boundary);
	return snapshot->size ? snapshot : NULL;
}

/* The snapshot that is next to a time, before it or after it; NULL where there is none. */
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

/* A signal's handler may have a stack of its own, of which alone the copy is.  The last frame is
 * what was interrupted, on another stack then. */
static bool is_interrupted_apart(const struct tally_sample *sample,
				 const struct tally_record_frames *frames)
{
	uint64_t last = frames->stack_pointers[frames->count - 1] - frames->stack_pointers[0];
	return last >= sample->stack_dynamic_size;
}

static struct tally_unwind_memory whole_of(const struct snapshot *snapshot)
{
	return (struct tally_unwind_memory){ snapshot->bytes, snapshot->size, snapshot->base };
}

/* Unwinds copy and snapshot in one piece, and keeps the frames from the copy's last one on. */
static void learn_outer(struct tally_record_outer *outer, struct outer_task *task,
			const struct snapshot *snapshot, const struct tally_tasks *tasks,
			struct tally_objects *objects, const struct tally_attr *attr,
			const struct tally_sample *sample, const struct tally_record_frames *frames)
{
	size_t copied = sample->stack_dynamic_size, known = frames->count - 1;
	bool is_apart = is_interrupted_apart(sample, frames);
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
	memcpy(outer->joined, sample->stack, copied);
	if (!is_apart)
		memcpy(outer->joined + copied, snapshot->bytes + (boundary - snapshot->base),
		       end_address - boundary);
	struct tally_record_frames *all = &task->outer;
	const struct tally_user_stack_walk walk = {
		.stack = outer->joined,
		.stack_size = copied + (size_t)(end_address - boundary),
		.other = is_apart ? whole_of(snapshot) : nothing,
		.stack_pointers = all->stack_pointers
	};
	size_t count = tally_user_stack_walk(tasks, objects, attr, sample, &walk, all->addresses,
					     TALLY_USER_FRAMES_MAX, &end);
	if (end == TALLY_UNWIND_TRUNCATED && task->top <= snapshot->base + snapshot->size) {
		task->top = 0; /* what was taken for the end was none */
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

/* Does a snapshot hold what the outer end of the copy does, with two frames at least?  Then the
 * frames there are the same. */
static bool is_of_copy(const struct snapshot *snapshot, const struct tally_sample *sample,
		       const struct tally_record_frames *frames)
{
	enum { ENOUGH_BYTES = 1024, ENOUGH_FRAMES = 2 };
	uint64_t start = frames->stack_pointers[0], end = start + sample->stack_dynamic_size,
		 from = start;
	if (end - from > BELOW_BYTES)
		from = end - BELOW_BYTES;
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

/* The frame of the signal whose handler was sampled: what it interrupted is saved there.  NULL
 * where the copy lacks a part of it. */
static const uint8_t *signal_of(const struct tally_sample *sample,
				const struct tally_record_frames *frames)
{
	if (frames->count < 2)
		return NULL;
	uint64_t offset = frames->stack_pointers[frames->count - 2] - frames->stack_pointers[0];
	bool is_copied = offset <= sample->stack_dynamic_size &&
			 sample->stack_dynamic_size - offset >= SIGNAL_BYTES;
	return is_copied ? (const uint8_t *)sample->stack + offset : NULL;
}

static void note_signal(struct snapshot *snapshot, const struct tally_sample *sample,
			const struct tally_record_frames *frames)
{
	const uint8_t *signal = signal_of(sample, frames);
	if (!signal || snapshot->has_signal)
		return;
	memcpy(snapshot->signal, signal, SIGNAL_BYTES);
	snapshot->has_signal = true;
}

static bool agrees(const struct snapshot *snapshot, const struct tally_sample *sample,
		   const struct tally_record_frames *frames)
{
	if (!snapshot || !is_interrupted_apart(sample, frames))
		return snapshot && is_of_copy(snapshot, sample, frames);
	const uint8_t *signal = signal_of(sample, frames);
	return signal && snapshot->has_signal && !memcmp(snapshot->signal, signal, SIGNAL_BYTES);
}

/* Tells a snapshot of the pass what the sample next to it says. */
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

/* Do the samples next to the snapshot agree with it, as far as that is needed?  An older one says
 * nothing more of bytes that a younger one has; of what a handler interrupted it does. */
static bool agreed(const struct snapshot *snapshot)
{
	return snapshot->agrees_after && (snapshot->agrees_before || !snapshot->has_signal);
}

/* Were the frames that agree with a sample in use at the snapshot's time, rather than left behind by
 * calls that had returned?  A sample's were. */
static bool stood(const struct outer_task *task, const struct snapshot *snapshot)
{
	return snapshot->is_sampled || (agreed(snapshot) && !task->different);
}

/* Where the last frame of a cut stack stands among the outer ones; their number when it doesn't. */
static size_t find_last(const struct tally_record_frames *outer,
			const struct tally_record_frames *frames)
{
	uint64_t sp = frames->stack_pointers[frames->count - 1],
		 address = frames->addresses[frames->count - 1];
	size_t at = 0;
	while (at < outer->count &&
	       (outer->stack_pointers[at] != sp || outer->addresses[at] != address))
		at++;
	return at;
}

/* What a completion has to go by. */
struct evidence {
	const struct tally_tasks *tasks;
	struct tally_objects *objects;
	uint32_t pid;
	const struct snapshot *before, *after;
};

static uint64_t word_at(const struct snapshot *snapshot, uint64_t address)
{
	uint64_t offset = address - snapshot->base, word = 0;
	if (offset <= snapshot->size && snapshot->size - offset >= WORD)
		memcpy(&word, snapshot->bytes + offset, WORD);
	return word;
}

/* The return address in a slot at the time of the sample; 0: not certain.  `inner` is an address in
 * the function that returns there.  Where another one stands there by now, the call in front of
 * each tells which of them called that function. */
static uint64_t certain_word(const struct evidence *evidence, uint64_t slot, uint64_t expected,
			     uint64_t inner)
{
	uint64_t before = word_at(evidence->before, slot), after = word_at(evidence->after, slot);
	if (before == after)
		return before == expected ? expected : 0;
	bool is_before = before && tally_user_stack_is_call_of(evidence->tasks, evidence->objects,
							       evidence->pid, before, inner);
	bool is_after = after && tally_user_stack_is_call_of(evidence->tasks, evidence->objects,
							     evidence->pid, after, inner);
	uint64_t word = is_before ? before : after;
	bool is_one = is_before != is_after;
	/* The frames outside were found by the rules of the expected address: in the same function
	 * they are the same. */
	bool is_expected = word == expected ||
			   tally_user_stack_is_same_function(evidence->tasks, evidence->objects,
							     evidence->pid, word, expected);
	return is_one && is_expected ? word : 0;
}

/* Appends the task's outer frames, where they are certain, from behind the one that is the copy's
 * last: as many as there is room for. */
static bool append_certain(struct tally_record_frames *frames, const struct outer_task *task,
			   size_t last, const struct evidence *evidence)
{
	const struct tally_record_frames *outer = &task->outer;
	size_t count = frames->count, end = outer->count;
	if (end - last - 1 > TALLY_USER_FRAMES_MAX - count)
		end = last + 1 + TALLY_USER_FRAMES_MAX - count;
	else if (task->is_outer_cut && end - last - 1 < TALLY_USER_FRAMES_MAX - count)
		return false; /* there was room for less, from another frame on */
	for (size_t i = last + 1; i < end; i++, count++) {
		uint64_t slot = outer->stack_pointers[i] - WORD;
		uint64_t word = certain_word(evidence, slot, outer->addresses[i],
					     frames->addresses[count - 1]);
		if (!word)
			return false; /* frames->count is as it was */
		frames->addresses[count] = word;
		frames->stack_pointers[count] = outer->stack_pointers[i];
	}
	frames->count = count;
	return true;
}

/* learn_outer(), which widens the pass's snapshot until the stack's end is in it. */
static void learn_widely(struct tally_record_outer *outer, struct outer_task *task,
			 struct snapshot *snapshot, const struct tally_tasks *tasks,
			 struct tally_objects *objects, const struct tally_attr *attr,
			 const struct tally_sample *sample,
			 const struct tally_record_frames *frames, uint64_t boundary)
{
	size_t span = 0;
	do {
		if (span) {
			uint64_t base = snapshot->base;
			read_snapshot(outer, task, snapshot, base, boundary);
			if (!snapshot->size)
				return;
			if (is_interrupted_apart(sample, frames))
				note_signal(snapshot, sample, frames);
			note_neighbour(snapshot, sample->time, agrees(snapshot, sample, frames));
		}
		span = task->span;
		learn_outer(outer, task, snapshot, tasks, objects, attr, sample, frames);
	} while (task->span > span && snapshot == &task->snapshots[task->newest] &&
		 task->pass == outer->pass);
}

/* What agrees with a sample may not tell one call from another: a signal's frame does not where
 * several functions call one that its handler interrupts, with equal registers.  It shows in
 * snapshots that agree with the same samples, and differ in who returns where. */
static void compare(struct outer_task *task, struct snapshot *snapshot,
		    const struct tally_sample *sample, const struct tally_record_frames *frames)
{
	const struct tally_record_frames *outer = &task->outer;
	struct snapshot *older = snapshot_beside(task, snapshot->time_ns - 1, false);
	if (snapshot->is_compared || snapshot->is_sampled || !older || older->is_sampled ||
	    !agreed(snapshot) || !agreed(older) || !agrees(older, sample, frames) ||
	    outer->count < 2)
		return;
	bool is_same = true;
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

/* What the frames are now. */
static enum tally_record_outer_result completed(const struct outer_task *task,
						const struct tally_record_frames *frames)
{
	const struct tally_record_frames *outer = &task->outer;
	bool is_outermost = !task->is_outer_cut && frames->stack_pointers[frames->count - 1] ==
							   outer->stack_pointers[outer->count - 1];
	return is_outermost ? TALLY_RECORD_OUTER_COMPLETED : TALLY_RECORD_OUTER_FULL;
}

enum tally_record_outer_result tally_record_outer_complete(struct tally_record_outer *outer,
							   const struct tally_tasks *tasks,
							   struct tally_objects *objects,
							   const struct tally_attr *attr,
							   const struct tally_sample *sample,
							   struct tally_record_frames *frames,
							   bool is_again)
{
	struct outer_task *task =
		is_again ? known_task(outer, sample) : task_of(outer, sample->pid, sample->tid);
	if (!task || !frames->count)
		return TALLY_RECORD_OUTER_UNCERTAIN;
	bool is_apart = is_interrupted_apart(sample, frames);
	uint64_t sp = frames->stack_pointers[0], boundary = sp + sample->stack_dynamic_size;
	if (is_apart)
		sp = boundary = frames->stack_pointers[frames->count - 1];
	if (task->walked_pass != outer->pass) {
		task->walked_pass = outer->pass;
		task->walks = 0;
		task->is_too_long = false;
	}
	task->cut_ns = sample->time > task->cut_ns ? sample->time : task->cut_ns;
	struct snapshot *now = is_again ? NULL : snapshot_now(outer, task, sp, boundary);
	if (now && is_apart)
		note_signal(now, sample, frames);
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
	enum tally_record_outer_result result = TALLY_RECORD_OUTER_UNCERTAIN;
	if (task->is_too_long)
		return TALLY_RECORD_OUTER_FULL;
	if (is_after && !after->is_sampled && !after->younger_ns)
		result = TALLY_RECORD_OUTER_WAITS;
	else if (after && !before)
		result = TALLY_RECORD_OUTER_NEW;
	if (stood_before && !stood_after)
		after = before;
	else if (stood_after && !stood_before)
		before = after;
	/* Where they differ so often, they do in between as well. */
	if (!before || !after || task->different * 5 > task->same + task->different)
		return result;
	const struct evidence evidence = { tasks, objects, sample->pid, before, after };
	size_t last = find_last(&task->outer, frames);
	if (last < task->outer.count && append_certain(frames, task, last, &evidence))
		return completed(task, frames);
	/* The younger snapshot first; the older where calls that came since have written over the
	 * sample's. */
	for (unsigned i = 0; i < 2 && task->walks++ < WALKS_MAX; i++) {
		struct snapshot *snapshot = i ? before : after;
		if (i && before == after)
			break;
		learn_widely(outer, task, snapshot, tasks, objects, attr, sample, frames, boundary);
		if (task->outer.count && !find_last(&task->outer, frames) &&
		    append_certain(frames, task, 0, &evidence))
			return completed(task, frames);
	}
	return result;
}

bool tally_record_outer_see(struct tally_record_outer *outer, const struct tally_sample *sample,
			    const struct tally_record_frames *frames)
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
	if (is_interrupted_apart(sample, frames) ||
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
