/* Truncated stacks are completed with frames that are certain, and never wrongly
 * (recorder/recorder_outer.c).  The size of the copies follows the need
 * (recorder/recorder_copies.c). */
#include "test.h"

#include "recorder/recorder_events.h"
#include "recorder/recorder_outer.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <string.h>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

enum {
	PASSES = __has_feature(address_sanitizer) ? 1000 : 3000, /* a sanitized one takes nine times as long */
	/* in the task's stack, 64 bytes each: rbp at 16, then the return address */
	FRAMES = 40,
	FRAME_BYTES = 64,
	COPIED = 3,       /* frames in a copy: too little to tell one call from another */
	COPIED_WELL = 24, /* enough for that */
	REGISTER_COUNT = 20,
};

static const uint64_t STACK = 0x7fff0000, CODE = 0x400000, CODE_BYTES = 0x10000000;

/* A task whose functions have frame pointers but no rules. */
struct task {
	struct tally_tasks tasks;
	struct tally_objects objects;
	struct tally_attr attr;
	uint64_t memory[FRAMES * FRAME_BYTES / 8];
	uint64_t next_address; /* makes each return address unique */
	uint64_t time, random;
	int refusal;           /* error of reading its memory: -errno */
	unsigned copied;       /* frames in a copy */
	unsigned reads;
	bool runs_on;          /* the task runs while its memory is read */
};

static uint64_t random_below(struct task *task, uint64_t limit)
{
	task->random = task->random * 6364136223846793005u + 1442695040888963407u;
	return (task->random >> 33) % limit;
}

static void return_elsewhere(struct task *task, unsigned frame)
{
	task->memory[frame * FRAME_BYTES / 8 + 3] = task->next_address += 16;
}

static void start(struct task *task)
{
	struct tally_record map = { .header = { .type = TALLY_RECORD_MMAP2 } };
	*task = (struct task){ .next_address = CODE, .time = 1000, .random = 1,
				.copied = COPIED };
	task->attr = (struct tally_attr){ .size = sizeof(task->attr),
					  .sample_regs_user = TALLY_UNWIND_REGS_MASK };
	map.mmap = (struct tally_record_mmap){ .pid = 42,
					       .tid = 42,
					       .start = CODE,
					       .length = CODE_BYTES,
					       .protection = 5,
					       .filename = "//anon" };
	assert_int_equal(tally_tasks_record(&task->tasks, &map), 0);
	for (unsigned i = 0; i < FRAMES; i++) {
		task->memory[i * FRAME_BYTES / 8 + 2] = STACK + (i + 1) * FRAME_BYTES + 16;
		return_elsewhere(task, i);
	}
	task->memory[(FRAMES - 1) * FRAME_BYTES / 8 + 3] = 0; /* the outermost frame returns to 0 */
}

static void end(struct task *task)
{
	tally_objects_release(&task->objects);
	tally_tasks_release(&task->tasks);
}

/* Lets a frame call another function, which replaces all frames inside of it. */
static void call_anew(struct task *task, unsigned frame)
{
	for (unsigned i = 0; i <= frame; i++)
		return_elsewhere(task, i);
}

/* Changes a frame, an outer one more rarely. */
static void run(struct task *task)
{
	unsigned frame = (unsigned)random_below(task, FRAMES - 1);
	if (random_below(task, FRAMES) > frame || !random_below(task, 20))
		return_elsewhere(task, frame);
	task->time++;
}

static long read_memory(void *context, uint32_t tid, uint64_t address, void *out, size_t size)
{
	struct task *task = context;
	task->reads++;
	assert_int_equal(tid, 43);
	if (task->refusal)
		return task->refusal;
	uint64_t offset = address - STACK;
	if (offset >= sizeof(task->memory))
		return -EFAULT;
	if (size > sizeof(task->memory) - offset)
		size = sizeof(task->memory) - offset;
	/* When an outer frame has called another function, the inner frames' old bytes are still in
	 * memory. */
	bool is_calling = task->copied == COPIED_WELL && task->runs_on && !random_below(task, 3);
	unsigned frame = (unsigned)random_below(task, FRAMES - 1);
	if (is_calling)
		return_elsewhere(task, frame);
	memcpy(out, (const uint8_t *)task->memory + offset, size);
	if (is_calling)
		call_anew(task, frame);
	else if (task->runs_on && task->copied == COPIED && !random_below(task, 3))
		run(task);
	return (long)size;
}

static uint64_t now(void *context)
{
	return ++((struct task *)context)->time;
}

struct taken {
	uint64_t time, registers[REGISTER_COUNT], copy[COPIED_WELL * FRAME_BYTES / 8];
	uint64_t truth[FRAMES]; /* addresses of all frames */
};

static void take(struct task *task, struct taken *taken)
{
	*taken = (struct taken){ .time = ++task->time };
	taken->registers[6] = STACK + 16; /* in the kernel's order: … BP SP IP */
	taken->registers[7] = STACK;
	taken->registers[8] = taken->truth[0] = CODE;
	memcpy(taken->copy, task->memory, task->copied * FRAME_BYTES);
	for (unsigned i = 1; i < FRAMES; i++)
		taken->truth[i] = task->memory[(i - 1) * FRAME_BYTES / 8 + 3];
}

static enum tally_recorder_outer_result try_to(struct tally_recorder_outer *outer,
					       struct task *task, const struct taken *taken,
					       struct tally_recorder_frames *frames, bool is_again)
{
	struct tally_sample sample = { .pid = 42,
				       .tid = 43,
				       .time = taken->time,
				       .stack = taken->copy,
				       .stack_size = task->copied * FRAME_BYTES,
				       .stack_dynamic_size = task->copied * FRAME_BYTES };
	sample.regs_user.abi = 2;
	sample.regs_user.words = taken->registers;
	sample.regs_user.count = REGISTER_COUNT;
	enum tally_unwind_end end;
	const struct tally_user_stack_walk walk = { .stack_pointers = frames->stack_pointers,
						    .extent = &frames->extent };
	frames->count = tally_user_stack_walk(&task->tasks, &task->objects, &task->attr, &sample,
					      &walk, frames->addresses, TALLY_USER_FRAMES_MAX,
					      &end);
	assert_int_equal(frames->count, task->copied + 1);
	enum tally_recorder_outer_result result = tally_recorder_outer_complete(
		outer, &task->tasks, &task->objects, &task->attr, &sample, frames, is_again);
	assert_int_equal(frames->count,
			 result == TALLY_RECORDER_OUTER_COMPLETED ? FRAMES : task->copied + 1);
	assert_memory_equal(frames->addresses, taken->truth, frames->count * sizeof(*taken->truth));
	return result;
}

static enum tally_recorder_outer_result complete(struct tally_recorder_outer *outer,
						 struct task *task, const struct taken *taken,
						 struct tally_recorder_frames *frames)
{
	return try_to(outer, task, taken, frames, false);
}

static void what_stands_there_before_and_after_is_the_sample_s(void **state)
{
	static struct tally_recorder_frames frames;
	struct task task;
	struct taken taken, older;
	(void)state;
	start(&task);
	struct tally_recorder_outer *outer = tally_recorder_outer_new(read_memory, now, &task);
	assert_non_null(outer);
	take(&task, &taken);
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &taken, &frames), TALLY_RECORDER_OUTER_NEW);
	older = taken;
	take(&task, &taken);
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &taken, &frames), TALLY_RECORDER_OUTER_COMPLETED);
	/* older than the first reading */
	assert_int_equal(complete(outer, &task, &older, &frames), TALLY_RECORDER_OUTER_NEW);
	assert_int_equal(task.reads, 2); /* one reading in each pass */

	take(&task, &taken);
	/* changed after the sample: the memory no longer shows its stack */
	return_elsewhere(&task, 20);
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &taken, &frames), TALLY_RECORDER_OUTER_UNCERTAIN);
	return_elsewhere(&task, 30);
	take(&task, &taken); /* the frame was different before it */
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &taken, &frames), TALLY_RECORDER_OUTER_UNCERTAIN);
	take(&task, &taken);
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &taken, &frames), TALLY_RECORDER_OUTER_COMPLETED);

	task.refusal = -EPERM;
	take(&task, &taken);
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &taken, &frames), TALLY_RECORDER_OUTER_UNCERTAIN);
	tally_recorder_outer_free(outer);
	end(&task);
}

/* complete() compares each stack with the truth at its time. */
static void a_task_that_runs_on_is_never_completed_wrongly(void **state)
{
	static struct tally_recorder_frames frames;
	struct task task;
	struct taken taken[20];
	unsigned results[TALLY_RECORDER_OUTER_FULL + 1] = { 0 };
	(void)state;
	start(&task);
	task.runs_on = true;
	struct tally_recorder_outer *outer = tally_recorder_outer_new(read_memory, now, &task);
	assert_non_null(outer);
	for (int pass = 0; pass < PASSES; pass++) {
		unsigned count = 1 + (unsigned)random_below(&task, 20);
		for (unsigned i = 0; i < count; i++) {
			if (!random_below(&task, 4))
				run(&task);
			take(&task, &taken[i]);
		}
		tally_recorder_outer_pass(outer);
		for (unsigned i = 0; i < count; i++)
			results[complete(outer, &task, &taken[i], &frames)]++;
	}
	assert_true(results[TALLY_RECORDER_OUTER_COMPLETED] > PASSES / 3 &&
		    results[TALLY_RECORDER_OUTER_UNCERTAIN] > PASSES / 3);
	tally_recorder_outer_free(outer);
	end(&task);
}

static void a_look_between_two_samples_of_one_call_tells_of_both(void **state)
{
	static struct tally_recorder_frames frames;
	struct task task;
	struct taken first, second, last;
	(void)state;
	start(&task);
	task.copied = COPIED_WELL;
	struct tally_recorder_outer *outer = tally_recorder_outer_new(read_memory, now, &task);
	assert_non_null(outer);
	take(&task, &first);
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &first, &frames), TALLY_RECORDER_OUTER_WAITS);
	assert_int_equal(try_to(outer, &task, &first, &frames, true), TALLY_RECORDER_OUTER_WAITS);
	take(&task, &second);
	take(&task, &last);
	call_anew(&task, 30); /* seen by the second look alone */
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &second, &frames), TALLY_RECORDER_OUTER_COMPLETED);
	assert_int_equal(complete(outer, &task, &last, &frames), TALLY_RECORDER_OUTER_COMPLETED);
	assert_int_equal(try_to(outer, &task, &first, &frames, true),
			 TALLY_RECORDER_OUTER_COMPLETED);

	call_anew(&task, 30);
	take(&task, &first);
	return_elsewhere(&task, 30); /* the inner frames' bytes are left behind */
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &first, &frames), TALLY_RECORDER_OUTER_WAITS);
	call_anew(&task, 30);
	take(&task, &second);
	tally_recorder_outer_pass(outer);
	complete(outer, &task, &second, &frames);
	assert_int_equal(try_to(outer, &task, &first, &frames, true),
			 TALLY_RECORDER_OUTER_UNCERTAIN);
	tally_recorder_outer_free(outer);
	end(&task);
}

/* The kernel copies nothing while the task first touches its stack's page. */
static void a_sample_without_a_copy_is_no_handler_with_its_own_stack(void **state)
{
	static struct tally_recorder_frames frames;
	struct task task;
	struct taken taken;
	(void)state;
	start(&task);
	task.copied = 0;
	struct tally_recorder_outer *outer = tally_recorder_outer_new(read_memory, now, &task);
	assert_non_null(outer);
	take(&task, &taken);
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &taken, &frames), TALLY_RECORDER_OUTER_NEW);
	const struct tally_sample whole = { .pid = 42, .tid = 43, .time = task.time + 1000000 };
	assert_false(tally_recorder_outer_add_chain(outer, &whole, &frames));
	take(&task, &taken);
	tally_recorder_outer_pass(outer);
	assert_int_equal(complete(outer, &task, &taken, &frames), TALLY_RECORDER_OUTER_COMPLETED);
	tally_recorder_outer_free(outer);
	end(&task);
}

/* try_to() holds each stack against the truth of its moment. */
static void what_was_left_behind_completes_nothing(void **state)
{
	static struct tally_recorder_frames frames;
	struct task task;
	struct taken taken[20], held[20];
	unsigned results[TALLY_RECORDER_OUTER_FULL + 1] = { 0 }, count = 0, held_count = 0,
						     later = 0;
	(void)state;
	start(&task);
	task.runs_on = true;
	task.copied = COPIED_WELL;
	struct tally_recorder_outer *outer = tally_recorder_outer_new(read_memory, now, &task);
	assert_non_null(outer);
	for (int pass = 0; pass < PASSES; pass++) {
		count = 1 + (unsigned)random_below(&task, 20);
		for (unsigned i = 0; i < count; i++) {
			if (!random_below(&task, 8))
				call_anew(&task, (unsigned)random_below(&task, FRAMES - 1));
			take(&task, &taken[i]);
		}
		tally_recorder_outer_pass(outer);
		unsigned waiting = 0;
		struct taken waits[20];
		for (unsigned i = 0; i < count; i++) {
			enum tally_recorder_outer_result result = complete(outer, &task, &taken[i],
									   &frames);
			results[result]++;
			if (result != TALLY_RECORDER_OUTER_COMPLETED)
				waits[waiting++] = taken[i];
		}
		for (unsigned i = 0; i < held_count; i++)
			later += try_to(outer, &task, &held[i], &frames, true) ==
				 TALLY_RECORDER_OUTER_COMPLETED;
		memcpy(held, waits, waiting * sizeof(*waits));
		held_count = waiting;
	}
	assert_true(results[TALLY_RECORDER_OUTER_COMPLETED] > PASSES / 3 && later > PASSES / 3);
	tally_recorder_outer_free(outer);
	end(&task);
}

/* ---- how much is copied -------------------------------------------------- */

struct switches {
	struct tally_provider provider;
	bool is_on[TALLY_RECORDER_COPY_SIZES];
};

static int switch_event(struct tally_provider *provider, int handle, enum tally_ioctl request,
			void *argument, int whole_group)
{
	struct switches *switches = (struct switches *)provider;
	(void)argument;
	(void)whole_group;
	switches->is_on[handle] = request == TALLY_IOCTL_ENABLE;
	return 0;
}

static void note(struct tally_recorder_events *events, unsigned times,
		 enum tally_recorder_stack_fate fate, uint64_t needed)
{
	const struct tally_sample sample = {
		.stack_size = events->copies.sizes[events->copies.now]
	};
	for (unsigned i = 0; i < times; i++)
		tally_recorder_copies_note(&events->copies, &sample, fate, needed);
	assert_int_equal(tally_recorder_copies_adapt(events, NULL), 0);
}

static void copies_grow_when_stacks_are_cut_and_shrink_when_they_are_far_too_large(void **state)
{
	static const struct tally_provider_ops ops = { .name = "switches", .ioctl = switch_event };
	static struct tally_recorder_session session;
	static struct tally_recorder_events events;
	static const struct tally_event event = { .group = TALLY_EVENT_NO_GROUP };
	struct tally_recorder_source sources[2] = { { .event = &event, .unwinds = true } };
	struct tally_recorder_handle handles[TALLY_RECORDER_COPY_SIZES];
	struct switches switches = { .provider = { &ops } };
	const uint64_t small = 1000;
	(void)state;
	session = (struct tally_recorder_session){ .provider = &switches.provider };
	events = (struct tally_recorder_events){
		.session = &session, .sources = sources, .source_count = 2, .unwinds = true
	};
	sources[0].attr.flags = TALLY_ATTR_FREQ;
	sources[0].attr.sample_period = 999;
	tally_recorder_copies_init(&events, 8 << 20); /* few samples: only the largest copy size */
	assert_false(tally_recorder_has_copies(&events, &sources[0]));
	assert_int_equal(sources[0].attr.sample_stack_user, 63 << 10);

	sources[0].attr.sample_period = 20000;
	tally_recorder_copies_init(&events, 4 << 20);
	assert_true(tally_recorder_has_copies(&events, &sources[0]));
	assert_int_equal(events.copies.count, TALLY_RECORDER_COPY_SIZES);
	assert_int_equal(sources[0].attr.sample_stack_user, 16 << 10);
	for (int i = 0; i < TALLY_RECORDER_COPY_SIZES; i++)
		handles[i] = (struct tally_recorder_handle){ .handle = i,
							     .copy_bytes = events.copies.sizes[i] };
	events.handles.items = handles;
	events.handles.count = TALLY_RECORDER_COPY_SIZES;
	assert_int_equal(tally_recorder_enable(&events, true, NULL), 0);
	assert_true(switches.is_on[0] && !switches.is_on[1] && !switches.is_on[2] &&
		    !switches.is_on[3]);

	note(&events, 900, TALLY_RECORDER_STACK_WHOLE, small);
	note(&events, 9, TALLY_RECORDER_STACK_CUT, UINT64_MAX); /* less than one in a hundred */
	assert_true(switches.is_on[0]);
	note(&events, 1, TALLY_RECORDER_STACK_CUT, UINT64_MAX);
	assert_true(!switches.is_on[0] && switches.is_on[1]);
	/* the tasks are too short-lived to be completed */
	note(&events, 1000, TALLY_RECORDER_STACK_NEW, UINT64_MAX);
	assert_true(!switches.is_on[1] && switches.is_on[2]);
	note(&events, 8000, TALLY_RECORDER_STACK_WHOLE, 40 << 10); /* this size is needed */
	assert_true(switches.is_on[2]);
	for (int i = 0; i < 50; i++) /* for a long time, a smaller size would have been enough */
		note(&events, events.copies.now == 2 ? 10000 : 0, TALLY_RECORDER_STACK_WHOLE,
		     small);
	assert_true(!switches.is_on[2] && switches.is_on[1]);
	note(&events, 100, TALLY_RECORDER_STACK_CUT, UINT64_MAX);
	assert_true(switches.is_on[2]);
	session.status.lost += 140;
	note(&events, 570, TALLY_RECORDER_STACK_WHOLE, 40 << 10);
	assert_true(switches.is_on[2]); /* less than one in five */
	session.status.lost += 3;
	note(&events, 0, TALLY_RECORDER_STACK_WHOLE, small);
	assert_true(!switches.is_on[2] && switches.is_on[1]);
	note(&events, 100, TALLY_RECORDER_STACK_CUT, UINT64_MAX);
	assert_true(switches.is_on[1]); /* a truncated sample is better than a lost one */
	assert_int_equal(tally_recorder_enable(&events, false, NULL), 0);
	assert_true(!switches.is_on[0] && !switches.is_on[1] && !switches.is_on[2] &&
		    !switches.is_on[3]);

	session.options.stack_bytes = 8 << 10; /* a size that the user chose */
	tally_recorder_copies_init(&events, 4 << 20);
	assert_false(tally_recorder_has_copies(&events, &sources[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_stands_there_before_and_after_is_the_sample_s),
		cmocka_unit_test(a_task_that_runs_on_is_never_completed_wrongly),
		cmocka_unit_test(a_look_between_two_samples_of_one_call_tells_of_both),
		cmocka_unit_test(a_sample_without_a_copy_is_no_handler_with_its_own_stack),
		cmocka_unit_test(what_was_left_behind_completes_nothing),
		cmocka_unit_test(
			copies_grow_when_stacks_are_cut_and_shrink_when_they_are_far_too_large),
	};
	return cmocka_run_group_tests_name("record_outer", tests, NULL, NULL);
}
