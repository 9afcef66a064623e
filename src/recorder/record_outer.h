/* The outer part of stacks that are longer than their copies: record_outer.c. */
#ifndef TALLY_SESSION_RECORD_OUTER_H
#define TALLY_SESSION_RECORD_OUTER_H

#include "task/user_stack.h"

struct tally_record_outer;

/* The frames of a stack within its copy, leaf first. */
struct tally_record_frames {
	uint64_t addresses[TALLY_USER_FRAMES_MAX];
	uint64_t stack_pointers[TALLY_USER_FRAMES_MAX];
	size_t count;
};

/* Returns NULL without memory.  `read` works like process_vm_readv(2) for one piece: it returns the
 * bytes read from `address` of a task on, possibly fewer than `size`, or -errno.  `now_ns` is the
 * samples' clock. */
struct tally_record_outer *tally_record_outer_new(long (*read)(void *context, uint32_t tid,
							       uint64_t address, void *out,
							       size_t size),
						  uint64_t (*now_ns)(void *context), void *context);
void tally_record_outer_free(struct tally_record_outer *outer); /* accepts NULL */

/* Begins a pass over the rings, whose heads were just noted: what is read of a stack from now on is
 * younger than all samples of the pass. */
void tally_record_outer_pass(struct tally_record_outer *outer);

enum tally_record_outer_result {
	TALLY_RECORD_OUTER_COMPLETED,
	TALLY_RECORD_OUTER_UNCERTAIN, /* the stack stays as it is */
	TALLY_RECORD_OUTER_NEW, /* the same, because nothing of its task had been read before */
	TALLY_RECORD_OUTER_WAITS, /* the same, but the task's next sample may tell */
	/* more than TALLY_USER_FRAMES_MAX frames, or more bytes than are read of a stack */
	TALLY_RECORD_OUTER_FULL,
};

/* Appends the frames beyond the copy if they are certain.  `is_again`: tries a sample of an earlier
 * call once more, with what was seen since. */
enum tally_record_outer_result tally_record_outer_complete(struct tally_record_outer *outer,
							   const struct tally_tasks *tasks,
							   struct tally_objects *objects,
							   const struct tally_attr *attr,
							   const struct tally_sample *sample,
							   struct tally_record_frames *frames,
							   bool is_again);

/* A sample whose copy has the whole stack: kept where its task has stacks that are cut.  Returns
 * true where it tells more of the sample before it. */
bool tally_record_outer_see(struct tally_record_outer *outer, const struct tally_sample *sample,
			    const struct tally_record_frames *frames);

#endif
