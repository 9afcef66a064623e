/* Outer frames that a stack's copy did not reach.
 *
 * The kernel sets aside a copy's full size in the ring for each sample, so that copies that reach the outermost frame
 * of every stack fill any ring within milliseconds: 20,000 stacks of clang a second are 1.2 GB.  But most of what
 * they'd hold is the same from sample to sample: the outer frames of a deep stack stay for long.  So a copy holds the
 * inner part alone, and where it ends too early the rest is taken from the task's memory, read from outside once
 * in a pass over the rings.
 *
 * That memory is younger than the sample, and the task ran on meanwhile.  What shows that it is the sample's, too, is
 * a snapshot that is older than the sample: a return address that stands in the same slot before and after stood
 * there in between.  (It could have been taken away and come back: by a call of the same function from the same
 * place at the same depth, where something else was called for the moment of the sample, with a frame of the
 * same address and depth in the copy leading to it.  Nothing is known that would do that; the recorder counts these
 * stacks apart all the same.)
 *
 *     snapshot ──── samples … ──── heads noted ─ snapshot ──── samples … ──── heads noted ─ snapshot
 *     (before)                                   (after; before of the next)
 *
 * A snapshot that begins behind the noting is younger than all samples of the pass.  It is made at a task's first stack
 * of the pass that was cut, and serves for the others.  How its words make frames is found by unwinding the
 * sample's copy and the snapshot in one piece.  The outer frames are kept: a stack whose last frame (sp and
 * address) is among them needs no further unwinding, only that each return address beyond is found where
 * x86-64 has it, right below its frame's sp, in both snapshots.  Frames of which that is not so (those that a signal
 * interrupted, and all of arm64) never pass, and their stacks stay cut.
 */
#include "session/record_outer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	TASKS = 128,             /* at a time; a task that finds its place taken gets it */
	SNAPSHOTS = 3,           /* this pass's and two before: samples taken while a snapshot was made need the older */
	FIRST_BYTES = 64 << 10,  /* of a stack beyond the copy */
	MAX_BYTES = 512 << 10,
	BELOW_BYTES = 8 << 10,   /* of the copied part: where the next samples' copies may end */
	ABOVE_BYTES = 256,       /* above the outermost frame */
	WALKS_MAX = 16,          /* unwound with a snapshot, of a task in a pass */
	WORD = 8,
};

struct snapshot {
	uint64_t time_ns; /* when it was complete */
	uint64_t base;
	size_t size, capacity;
	uint8_t *bytes;
};

struct outer_task {
	uint32_t pid, tid;
	uint64_t pass; /* of the newest snapshot */
	unsigned newest, walks;
	struct snapshot snapshots[SNAPSHOTS];
	uint64_t top;  /* where the stack ends, 0: not known */
	size_t span;   /* bytes to read beyond the copy where it isn't */
	struct tally_record_frames outer; /* to the outermost; count 0: none known */
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

struct tally_record_outer *tally_record_outer_new(long (*read)(void *context, uint32_t tid, uint64_t address,
							       void *out, size_t size),
						  uint64_t (*now_ns)(void *context), void *context)
{
	struct tally_record_outer *outer = calloc(1, sizeof(*outer));
	if (outer)
		*outer = (struct tally_record_outer){ .read = read, .now_ns = now_ns, .context = context, .pass = 1 };
	return outer;
}

void tally_record_outer_free(struct tally_record_outer *outer)
{
	for (unsigned i = 0; outer && i < TASKS; i++) {
		for (unsigned s = 0; outer->tasks[i] && s < SNAPSHOTS; s++)
			free(outer->tasks[i]->snapshots[s].bytes);
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
	for (unsigned i = 0; i < SNAPSHOTS; i++) {
		free(task->snapshots[i].bytes);
		task->snapshots[i] = (struct snapshot){ 0 };
	}
	task->pid = pid;
	task->tid = tid;
	task->pass = task->top = 0;
	task->span = FIRST_BYTES;
	task->outer.count = 0;
	return task;
}

/* ---- snapshots ------------------------------------------------------------------------------------------- */

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

static void read_snapshot(struct tally_record_outer *outer, struct outer_task *task, struct snapshot *snapshot,
			  uint64_t base, uint64_t boundary)
{
	uint64_t top = task->top > boundary ? task->top : boundary + task->span;
	size_t size = (size_t)(top - base);
	snapshot->size = 0;
	if (size > MAX_BYTES || !reserve(&snapshot->bytes, &snapshot->capacity, size))
		return;
	long got = outer->read(outer->context, task->tid, base, snapshot->bytes, size);
	snapshot->time_ns = outer->now_ns(outer->context);
	snapshot->base = base;
	snapshot->size = got > 0 ? (size_t)got : 0;
	shrink(snapshot);
}

/* The pass's snapshot, which holds the stack from `boundary` on; NULL where it can't be read. */
static struct snapshot *snapshot_now(struct tally_record_outer *outer, struct outer_task *task, uint64_t sp,
				     uint64_t boundary)
{
	uint64_t base = boundary - sp > BELOW_BYTES ? boundary - BELOW_BYTES : sp;
	if (task->pass != outer->pass) {
		task->newest = (task->newest + 1) % SNAPSHOTS;
		task->pass = outer->pass;
		task->walks = 0;
		read_snapshot(outer, task, &task->snapshots[task->newest], base, boundary);
	}
	struct snapshot *snapshot = &task->snapshots[task->newest];
	if (snapshot->size && snapshot->base > boundary) /* once more, with what it lacks: as young as needed */
		read_snapshot(outer, task, snapshot, base, boundary);
	return snapshot->size ? snapshot : NULL;
}

/* The youngest that is older than the sample. */
static struct snapshot *snapshot_before(struct outer_task *task, uint64_t time_ns)
{
	for (unsigned back = 1; back < SNAPSHOTS; back++) {
		struct snapshot *snapshot = &task->snapshots[(task->newest + SNAPSHOTS - back) % SNAPSHOTS];
		if (snapshot->size && snapshot->time_ns <= time_ns)
			return snapshot;
	}
	return NULL;
}

static bool holds(const struct snapshot *snapshot, uint64_t address, uint64_t value)
{
	uint64_t offset = address - snapshot->base, word;
	if (offset > snapshot->size || snapshot->size - offset < WORD)
		return false;
	memcpy(&word, snapshot->bytes + offset, WORD);
	return word == value;
}

/* ---- frames ---------------------------------------------------------------------------------------------- */

/* Unwinds copy and snapshot in one piece, and keeps the frames from the copy's last one on. */
static void learn_outer(struct tally_record_outer *outer, struct outer_task *task, const struct snapshot *snapshot,
			const struct tally_tasks *tasks, struct tally_objects *objects, const struct tally_attr *attr,
			const struct tally_sample *sample, const struct tally_record_frames *frames)
{
	size_t copied = sample->stack_dynamic_size, known = frames->count - 1;
	uint64_t boundary = frames->stack_pointers[0] + copied, end_address = snapshot->base + snapshot->size;
	enum tally_unwind_end end;
	task->outer.count = 0;
	if (end_address <= boundary ||
	    !reserve(&outer->joined, &outer->joined_capacity, copied + (size_t)(end_address - boundary)))
		return;
	memcpy(outer->joined, sample->stack, copied);
	memcpy(outer->joined + copied, snapshot->bytes + (boundary - snapshot->base), end_address - boundary);
	struct tally_record_frames *all = &task->outer;
	const struct tally_user_stack_walk walk = { .stack = outer->joined,
						    .stack_size = copied + (size_t)(end_address - boundary),
						    .stack_pointers = all->stack_pointers };
	size_t count = tally_user_stack_walk(tasks, objects, attr, sample, &walk, all->addresses,
					     TALLY_USER_FRAMES_MAX, &end);
	if (end == TALLY_UNWIND_TRUNCATED && task->top <= end_address) {
		task->top = 0; /* what was taken for the end was none */
		task->span = task->span < MAX_BYTES / 2 ? 2 * task->span : task->span;
	}
	if (end != TALLY_UNWIND_COMPLETE || count <= known)
		return;
	task->top = all->stack_pointers[count - 1] + ABOVE_BYTES;
	all->count = count - known;
	memmove(all->addresses, all->addresses + known, all->count * sizeof(*all->addresses));
	memmove(all->stack_pointers, all->stack_pointers + known, all->count * sizeof(*all->stack_pointers));
}

/* Where the last frame of a cut stack stands among the outer ones; their number when it doesn't. */
static size_t find_last(const struct tally_record_frames *outer, const struct tally_record_frames *frames)
{
	uint64_t sp = frames->stack_pointers[frames->count - 1], address = frames->addresses[frames->count - 1];
	size_t at = 0;
	while (at < outer->count && (outer->stack_pointers[at] != sp || outer->addresses[at] != address))
		at++;
	return at;
}

static bool append_certain(struct tally_record_frames *frames, const struct tally_record_frames *outer, size_t last,
			   const struct snapshot *before, const struct snapshot *after)
{
	size_t more = outer->count - last - 1;
	if (more > TALLY_USER_FRAMES_MAX - frames->count)
		return false;
	for (size_t i = last + 1; i < outer->count; i++) {
		uint64_t slot = outer->stack_pointers[i] - WORD;
		if (!holds(after, slot, outer->addresses[i]) || !holds(before, slot, outer->addresses[i]))
			return false;
	}
	memcpy(frames->addresses + frames->count, outer->addresses + last + 1, more * sizeof(*frames->addresses));
	memcpy(frames->stack_pointers + frames->count, outer->stack_pointers + last + 1,
	       more * sizeof(*frames->stack_pointers));
	frames->count += more;
	return true;
}

enum tally_record_outer_result tally_record_outer_complete(struct tally_record_outer *outer,
							   const struct tally_tasks *tasks,
							   struct tally_objects *objects,
							   const struct tally_attr *attr,
							   const struct tally_sample *sample,
							   struct tally_record_frames *frames)
{
	uint64_t sp = frames->stack_pointers[0], boundary = sp + sample->stack_dynamic_size;
	struct outer_task *task = frames->count ? task_of(outer, sample->pid, sample->tid) : NULL;
	struct snapshot *after = task ? snapshot_now(outer, task, sp, boundary) : NULL;
	struct snapshot *before = after ? snapshot_before(task, sample->time) : NULL;
	if (!before)
		return after ? TALLY_RECORD_OUTER_NEW : TALLY_RECORD_OUTER_UNCERTAIN;
	size_t last = find_last(&task->outer, frames);
	if (last < task->outer.count && append_certain(frames, &task->outer, last, before, after))
		return TALLY_RECORD_OUTER_COMPLETED;
	if (task->walks++ >= WALKS_MAX)
		return TALLY_RECORD_OUTER_UNCERTAIN;
	learn_outer(outer, task, after, tasks, objects, attr, sample, frames);
	bool is_certain = task->outer.count && find_last(&task->outer, frames) == 0 &&
			  append_certain(frames, &task->outer, 0, before, after);
	return is_certain ? TALLY_RECORD_OUTER_COMPLETED : TALLY_RECORD_OUTER_UNCERTAIN;
}
