/* The outer part of stacks whose copy ended before they did: record_outer.c. */
#ifndef TALLY_SESSION_RECORD_OUTER_H
#define TALLY_SESSION_RECORD_OUTER_H

#include "task/user_stack.h"

struct tally_record_outer;

/* A stack as far as its copy went: leaf first. */
struct tally_record_frames {
	uint64_t addresses[TALLY_USER_FRAMES_MAX];
	uint64_t stack_pointers[TALLY_USER_FRAMES_MAX];
	size_t count;
};

/* NULL without memory.  `read` is process_vm_readv(2) for one piece: bytes that were read from
 * `address` of a task on, which may be fewer, or -errno.  `now` is the clock of the samples. */
struct tally_record_outer *tally_record_outer_new(long (*read)(void *context, uint32_t tid,
							       uint64_t address, void *out,
							       size_t size),
						  uint64_t (*now_ns)(void *context), void *context);
void tally_record_outer_free(struct tally_record_outer *outer); /* NULL is fine */

/* A pass over the rings begins: their heads are noted, so that what is read of a stack from now on
 * is younger than all samples of the pass. */
void tally_record_outer_pass(struct tally_record_outer *outer);

enum tally_record_outer_result {
	TALLY_RECORD_OUTER_COMPLETED,
	TALLY_RECORD_OUTER_UNCERTAIN, /* the stack stays as it is */
	TALLY_RECORD_OUTER_NEW,       /* likewise, for nothing had been read of its task before */
};

/* Adds the frames beyond the copy, where they are certain. */
enum tally_record_outer_result tally_record_outer_complete(struct tally_record_outer *outer,
							   const struct tally_tasks *tasks,
							   struct tally_objects *objects,
							   const struct tally_attr *attr,
							   const struct tally_sample *sample,
							   struct tally_record_frames *frames);

#endif
