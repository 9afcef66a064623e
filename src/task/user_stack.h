/* A sample's copied user stack → the addresses that returned into it, through the tasks' maps. */
#ifndef TALLY_TASK_USER_STACK_H
#define TALLY_TASK_USER_STACK_H

#include "task/objects.h"
#include "task/tasks.h"
#include "unwind/unwind.h"

/* User frames that are kept of a stack: what fits into a record of 64 KiB beside the kernel's. */
enum { TALLY_USER_FRAMES_MAX = 8000 };

/* Unwinds the REGS_USER and STACK_USER of a sample that `attr` wrote.  Leaf first, at most `limit`
 * addresses; their number, 0 when the sample has no user registers (a kernel thread). */
size_t tally_user_stack_unwind(const struct tally_tasks *tasks, struct tally_objects *objects,
			       const struct tally_attr *attr, const struct tally_sample *sample,
			       uint64_t *addresses, size_t limit, enum tally_unwind_end *end);

/* The same; `is_exact` (room for `limit`) is set where the address is not one that something
 * returns to: of the leaf and of what a signal interrupted.  `extent` may be NULL. */
size_t tally_user_stack_frames(const struct tally_tasks *tasks, struct tally_objects *objects,
			       const struct tally_attr *attr, const struct tally_sample *sample,
			       uint64_t *addresses, bool *is_exact, size_t limit,
			       enum tally_unwind_end *end, struct tally_unwind_extent *extent);

/* Why a copy was too short, and what would have been long enough. */
struct tally_user_stack_need {
	/* of stack; 0: no copy can have more (the kernel gave less than was asked for) */
	uint64_t bytes;
	bool is_at_most; /* `bytes` suffice for certain; else for one frame more at least */
};

/* Of a stack that ended with TALLY_UNWIND_TRUNCATED.  `top` is where the thread's stack is known to
 * end (what a whole one of its reached), 0: not known; then the mapping's end is taken, where the
 * recording tells of it. */
struct tally_user_stack_need tally_user_stack_needed(const struct tally_tasks *tasks,
						     const struct tally_objects *objects,
						     const struct tally_attr *attr,
						     const struct tally_sample *sample,
						     const struct tally_unwind_extent *extent,
						     uint64_t top);

/* The innermost frames of a chain by frame pointers.
 *
 * The kernel's chain lacks the caller of a function that made no frame: a leaf, a function's first
 * instructions, the wrapper of a system call in a C library without frame pointers.  On arm64 the
 * return address is in x30, on x86-64 near the top of the stack.  So samples carry that register,
 * or a few registers and the top of the stack, beside the chain, and the rules of the code at the
 * innermost address tell who called. */

/* Makes `attr`, which has a call chain, ask for them; not on x86-64 where samples are `kept` as the
 * kernel writes them. */
void tally_user_stack_ask_for_inner(enum tally_unwind_machine machine, bool kept,
				    struct tally_attr *attr);
/* True where `attr` asked for them. */
bool tally_user_stack_has_inner(enum tally_unwind_machine machine, const struct tally_attr *attr);

enum { TALLY_USER_STACK_INNER_MAX = 64 };

/* The user's part of a chain, mended: `frames`, then the words of the sample's chain from `resume`
 * on. */
struct tally_user_stack_inner {
	uint64_t frames[TALLY_USER_STACK_INNER_MAX];
	size_t count;
	size_t at;     /* of the first user address, in sample->chain */
	size_t resume;
	bool is_cut;   /* neither the copied words nor the chain tell the next caller */
};

/* Mends the chain of such a sample.  False where nothing is to be mended. */
bool tally_user_stack_mend(const struct tally_tasks *tasks, struct tally_objects *objects,
			   const struct tally_attr *attr, const struct tally_sample *sample,
			   struct tally_user_stack_inner *inner);

/* Does a direct call stand in front of the return address, of the function that `callee` is in?
 * Both are addresses of the process.  False where that can't be told. */
bool tally_user_stack_is_call_of(const struct tally_tasks *tasks, struct tally_objects *objects,
				 uint32_t pid, uint64_t return_address, uint64_t callee);

/* Are two return addresses of the process in one function, by its rules? */
bool tally_user_stack_is_same_function(const struct tally_tasks *tasks,
				       struct tally_objects *objects, uint32_t pid, uint64_t one,
				       uint64_t other);

/* The same with more to say. */
struct tally_user_stack_walk {
	/* NULL: the sample's copy; else what stands for it, from the same sp up */
	const void *stack;
	size_t stack_size;
	struct tally_unwind_memory other;   /* as a request's */
	bool *is_exact;                     /* NULL, or room for `limit` */
	uint64_t *stack_pointers;           /* NULL, or room for `limit`: each frame's sp */
	struct tally_unwind_extent *extent; /* NULL, or filled in */
	struct tally_unwind_chain *chain;   /* NULL, or what remembers the thread's last stack */
};
size_t tally_user_stack_walk(const struct tally_tasks *tasks, struct tally_objects *objects,
			     const struct tally_attr *attr, const struct tally_sample *sample,
			     const struct tally_user_stack_walk *walk, uint64_t *addresses,
			     size_t limit, enum tally_unwind_end *end);

#endif
