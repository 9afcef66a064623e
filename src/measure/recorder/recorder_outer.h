/* Finds the outer frames of stacks that are longer than their copies.  recorder_outer.c explains
 * how. */
#ifndef TALLY_RECORDER_OUTER_H
#define TALLY_RECORDER_OUTER_H

#include "task/user_stack.h"

struct tally_recorder_outer;

/* The frames of a stack within its copy, leaf first. */
struct tally_recorder_frames {
	uint64_t addresses[TALLY_USER_FRAMES_MAX];
	uint64_t stack_pointers[TALLY_USER_FRAMES_MAX];
	size_t count;
	struct tally_unwind_extent extent; /* of the walk that found them */
	/* start of the C function that Go called last, where the walk left for another stack; 0:
	 * unknown */
	uint64_t called;
};

/* Returns NULL if memory runs out.  `read` reads a task's memory from `address` on, like
 * process_vm_readv(2) with one piece.  It returns the number of bytes read, possibly fewer than
 * `size`, or -errno.  `now_ns` returns the time of the samples' clock. */
struct tally_recorder_outer *tally_recorder_outer_new(
	long (*read)(void *context, uint32_t tid, uint64_t address, void *out, size_t size),
	uint64_t (*now_ns)(void *context), void *context);
void tally_recorder_outer_free(struct tally_recorder_outer *outer); /* accepts NULL */

/* Begins a pass over the rings.  Call it when the rings' heads have been noted: memory that is read
 * from then on is younger than all samples of the pass. */
void tally_recorder_outer_pass(struct tally_recorder_outer *outer);

enum tally_recorder_outer_result {
	TALLY_RECORDER_OUTER_COMPLETED,
	TALLY_RECORDER_OUTER_UNCERTAIN, /* the outer frames are not certain: none were appended */
	/* uncertain, because there is no snapshot of the task from before the sample */
	TALLY_RECORDER_OUTER_NEW,
	/* uncertain, but the task's next sample may make them certain */
	TALLY_RECORDER_OUTER_WAITS,
	/* the stack has more frames than TALLY_USER_FRAMES_MAX, or more bytes than are read */
	TALLY_RECORDER_OUTER_FULL,
};

/* Appends the frames beyond the copy to `frames` if they are certain.  `is_again`: an earlier call
 * had this sample, and this one tries it with the samples and snapshots that came since. */
enum tally_recorder_outer_result tally_recorder_outer_complete(
	struct tally_recorder_outer *outer, const struct tally_tasks *tasks,
	struct tally_objects *objects, const struct tally_attr *attr,
	const struct tally_sample *sample, struct tally_recorder_frames *frames, bool is_again);

/* Takes a sample whose copy holds the whole stack.  Keeps the copy as a snapshot if the task's
 * stacks were cut lately.  Returns true if it was kept: then the task's earlier samples may be
 * completed. */
bool tally_recorder_outer_add_chain(struct tally_recorder_outer *outer,
				    const struct tally_sample *sample,
				    const struct tally_recorder_frames *frames);

#endif
