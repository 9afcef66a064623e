/* A sample's copied user stack → the addresses that returned into it, through the tasks' maps. */
#ifndef TALLY_TASK_USER_STACK_H
#define TALLY_TASK_USER_STACK_H

#include "task/objects.h"
#include "task/tasks.h"
#include "unwind/unwind.h"

/* Unwinds the REGS_USER and STACK_USER of a sample that `attr` wrote.  Leaf first, at most `limit` addresses;
 * their number, 0 when the sample has no user registers (a kernel thread). */
size_t tally_user_stack_unwind(const struct tally_tasks *tasks, struct tally_objects *objects,
			       const struct tally_attr *attr, const struct tally_sample *sample,
			       uint64_t *addresses, size_t limit, enum tally_unwind_end *end);

/* The same; `is_exact` (room for `limit`) is set where the address is not one that something returns to: of the leaf
 * and of what a signal interrupted.  `extent` may be NULL. */
size_t tally_user_stack_frames(const struct tally_tasks *tasks, struct tally_objects *objects,
			       const struct tally_attr *attr, const struct tally_sample *sample,
			       uint64_t *addresses, bool *is_exact, size_t limit, enum tally_unwind_end *end,
			       struct tally_unwind_extent *extent);

/* Why a copy was too short, and what would have been long enough. */
struct tally_user_stack_need {
	uint64_t bytes;  /* of stack; 0: no copy can have more (the kernel gave less than was asked for) */
	bool is_at_most; /* `bytes` suffice for certain; else for one frame more at least */
};

/* Of a stack that ended with TALLY_UNWIND_TRUNCATED.  `top` is where the thread's stack is known to end (what a whole
 * one of its reached), 0: not known; then the mapping's end is taken, where the recording tells of it. */
struct tally_user_stack_need tally_user_stack_needed(const struct tally_tasks *tasks,
						     const struct tally_objects *objects,
						     const struct tally_attr *attr,
						     const struct tally_sample *sample,
						     const struct tally_unwind_extent *extent, uint64_t top);

/* A call chain by frame pointers lacks a leaf's caller where calls leave the return address in a register (arm64), for the leaf
 * makes no frame.  Samples of `attr` that have this register alone, and no copy of the stack, are to tell of it. */
bool tally_user_stack_has_leaf_caller(enum tally_unwind_machine machine, const struct tally_attr *attr);
/* Of such a sample, where something returns to from its user code: what belongs behind the word of sample->chain whose number
 * is stored in *at.  0 where nothing is missing, by the code's rules. */
uint64_t tally_user_stack_leaf_caller(const struct tally_tasks *tasks, struct tally_objects *objects,
				      const struct tally_sample *sample, uint64_t *at);

/* The same with more to say. */
struct tally_user_stack_walk {
	const void *stack; /* NULL: the sample's copy; else what stands for it, from the same sp up */
	size_t stack_size;
	bool *is_exact;                     /* NULL, or room for `limit` */
	uint64_t *stack_pointers;           /* NULL, or room for `limit`: each frame's sp */
	struct tally_unwind_extent *extent; /* NULL, or filled in */
	struct tally_unwind_chain *chain;   /* NULL, or what remembers the thread's last stack */
};
size_t tally_user_stack_walk(const struct tally_tasks *tasks, struct tally_objects *objects,
			     const struct tally_attr *attr, const struct tally_sample *sample,
			     const struct tally_user_stack_walk *walk, uint64_t *addresses, size_t limit,
			     enum tally_unwind_end *end);

#endif
