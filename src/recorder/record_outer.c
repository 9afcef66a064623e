/* Outer frames that a stack's copy did not reach.
 *
 * The kernel sets aside a copy's full size in the ring for each sample, so that copies that reach
 * the outermost frame of every stack fill any ring within milliseconds: 20,000 stacks of clang a
 * second are 1.2 GB.  But most of what they'd hold is the same from sample to sample: the outer
 * frames of a deep stack stay for long.  So a copy holds the inner part alone, and where it ends
 * too early the rest is taken from the task's memory, read from outside once in a pass over the
 * rings.
 *
 * That memory is younger than the sample, and the task ran on meanwhile.  What shows that it is the
 * sample's, too, is a snapshot that is older than the sample: a return address that stands in the
 * same slot before and after stood there in between.  (It could have been taken away and come back:
 * by a call of the same function from the same place at the same depth, where something else was
 * called for the moment of the sample, with a frame of the same address and depth in the copy
 * leading to it.  Nothing is known that would do that; the recorder counts these stacks apart all
 * the same.)
 *
 *     snapshot ──── samples … ──── heads noted ─ snapshot ──── samples … ──── heads noted ─ snapshot
 *     (before)                                   (after; before of the next)
 *
 * Where the program did return and call again, the snapshots differ.  Then the outermost KiB of the
 * copy, whose frames hold data, too, tell which of them is of the sample's calls: one that is the
 * same there, while the other isn't, is enough.  Else, where a slot holds two return addresses, the
 * call in front of each tells which of them called the function inside.
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
static struct snapshot *snapshot_now(struct tally_record_outer *outer, struct outer_task *task,
				     uint64_t sp, uint64_t boundary)
{
	uint64_t base = boundary - sp > BELOW_BYTES ? boundary - BELOW_BYTES : sp;
	if (task->pass != outer->pass) {
		task->newest = (task->newest + 1) % SNAPSHOTS;
		task->pass = outer->pass;
		task->walks = 0;
		read_snapshot(outer, task, &task->snapshots[task->newest], base, boundary);
	}
	struct snapshot *snapshot = &task->snapshots[task->newest];
	/* once more, with what it lacks: as young as needed */
	if (snapshot->size && snapshot->base > boundary)
		read_snapshot(outer, task, snapshot, base, boundary);
	return snapshot->size ? snapshot : NULL;
}

/* The youngest that is older than the sample. */
static struct snapshot *snapshot_before(struct outer_task *task, uint64_t time_ns)
{
	for (unsigned back = 1; back < SNAPSHOTS; back++) {
		struct snapshot *snapshot =
			&task->snapshots[(task->newest + SNAPSHOTS - back) % SNAPSHOTS];
		if (snapshot->size && snapshot->time_ns <= time_ns)
			return snapshot;
	}
	return NULL;
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
	if (is_apart)
		end_address = boundary; /* the copy is whole */
	if ((end_address <= boundary && !is_apart) ||
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
		task->span = task->span < MAX_BYTES / 2 ? 2 * task->span : task->span;
	}
	if (end != TALLY_UNWIND_COMPLETE || count <= known)
		return;
	task->top = all->stack_pointers[count - 1] + ABOVE_BYTES;
	all->count = count - known;
	memmove(all->addresses, all->addresses + known, all->count * sizeof(*all->addresses));
	memmove(all->stack_pointers, all->stack_pointers + known,
		all->count * sizeof(*all->stack_pointers));
}

/* Does a snapshot hold what the outer end of the copy does?  Then the frames there are the same,
 * and nothing outside of them has returned in between.  Where that tells one snapshot from the
 * other, the one is enough. */
static bool is_of_copy(const struct snapshot *snapshot, const struct tally_sample *sample,
		       const struct tally_record_frames *frames)
{
	enum { ENOUGH_BYTES = 1024 };
	uint64_t start = frames->stack_pointers[0], end = start + sample->stack_dynamic_size,
		 from = start;
	if (end - from > BELOW_BYTES)
		from = end - BELOW_BYTES;
	if (snapshot->base > from)
		from = snapshot->base;
	uint64_t offset = from - snapshot->base;
	if (from >= end || end - from < ENOUGH_BYTES || offset > snapshot->size ||
	    snapshot->size - offset < end - from)
		return false;
	return !memcmp((const uint8_t *)sample->stack + (from - start), snapshot->bytes + offset,
		       end - from);
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

static bool append_certain(struct tally_record_frames *frames,
			   const struct tally_record_frames *outer, size_t last,
			   const struct evidence *evidence)
{
	size_t count = frames->count, more = outer->count - last - 1;
	if (more > TALLY_USER_FRAMES_MAX - count)
		return false;
	for (size_t i = last + 1; i < outer->count; i++, count++) {
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

enum tally_record_outer_result tally_record_outer_complete(struct tally_record_outer *outer,
							   const struct tally_tasks *tasks,
							   struct tally_objects *objects,
							   const struct tally_attr *attr,
							   const struct tally_sample *sample,
							   struct tally_record_frames *frames)
{
	uint64_t sp = frames->stack_pointers[0], boundary = sp + sample->stack_dynamic_size;
	if (frames->count && is_interrupted_apart(sample, frames))
		sp = boundary = frames->stack_pointers[frames->count - 1];
	struct outer_task *task = frames->count ? task_of(outer, sample->pid, sample->tid) : NULL;
	struct snapshot *after = task ? snapshot_now(outer, task, sp, boundary) : NULL;
	struct snapshot *before = after ? snapshot_before(task, sample->time) : NULL;
	if (!before)
		return after ? TALLY_RECORD_OUTER_NEW : TALLY_RECORD_OUTER_UNCERTAIN;
	bool is_before = is_of_copy(before, sample, frames),
	     is_after = is_of_copy(after, sample, frames);
	if (is_before && !is_after)
		after = before;
	else if (is_after && !is_before)
		before = after;
	const struct evidence evidence = { tasks, objects, sample->pid, before, after };
	size_t last = find_last(&task->outer, frames);
	if (last < task->outer.count && append_certain(frames, &task->outer, last, &evidence))
		return TALLY_RECORD_OUTER_COMPLETED;
	/* The younger snapshot first; the older where calls that came since have written over the
	 * sample's. */
	for (unsigned i = 0; i < 2 && task->walks++ < WALKS_MAX; i++) {
		const struct snapshot *snapshot = i ? before : after;
		if (i && (before == after || !is_before))
			break;
		learn_outer(outer, task, snapshot, tasks, objects, attr, sample, frames);
		if (task->outer.count && !find_last(&task->outer, frames) &&
		    append_certain(frames, &task->outer, 0, &evidence))
			return TALLY_RECORD_OUTER_COMPLETED;
	}
	return TALLY_RECORD_OUTER_UNCERTAIN;
}
