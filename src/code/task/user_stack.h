/* Unwinds a sample's copied user stack to its return addresses, with the tasks' mappings. */
#ifndef TALLY_TASK_USER_STACK_H
#define TALLY_TASK_USER_STACK_H

#include "task/task.h"
#include "unwind/unwind.h"

/* User frames kept of a stack: as many as fit in a record of 64 KiB beside the kernel's frames. */
enum { TALLY_USER_FRAMES_MAX = 8000 };

/* Unwinds by the REGS_USER and STACK_USER of a sample of `attr`.  Writes at most `limit` addresses,
 * leaf first, and returns their number; 0 when the sample has no user registers (a kernel
 * thread).  Sets `is_exact` (NULL, or `limit` elements) for addresses that are no return addresses:
 * the leaf, and code that a signal interrupted.  `extent` may be NULL. */
size_t tally_user_stack_frames(const struct tally_tasks *tasks, struct tally_objects *objects,
			       const struct tally_attr *attr, const struct tally_sample *sample,
			       uint64_t *addresses, bool *is_exact, size_t limit,
			       enum tally_unwind_end *end, struct tally_unwind_extent *extent);

/* For a copy that was too short: the size that would have been enough. */
struct tally_user_stack_need {
	/* of stack; 0: no copy can be longer (the kernel gave less than the event asked for) */
	uint64_t bytes;
	/* true: `bytes` are certainly enough; false: enough for at least one more frame */
	bool is_at_most;
};

/* For a stack that ended with TALLY_UNWIND_TRUNCATED.  `top` is the known end of the thread's stack
 * (from an earlier complete stack); 0: unknown, then the mapping's end is used if the recording has
 * it. */
struct tally_user_stack_need tally_user_stack_needed(const struct tally_tasks *tasks,
						     const struct tally_objects *objects,
						     const struct tally_attr *attr,
						     const struct tally_sample *sample,
						     const struct tally_unwind_extent *extent,
						     uint64_t top);

/* The innermost frames of a chain by frame pointers.
 *
 * The kernel's chain lacks the caller of a function without a frame: a leaf, the first instructions
 * of a function, the wrapper of a system call in a C library without frame pointers.  On arm64 the
 * return address is in x30, on x86-64 it is near the top of the stack.  So samples carry that
 * register, or a few registers and the top of the stack, beside the chain.  The unwind rules at the
 * innermost address then find the caller. */

/* Makes `attr`, which has a call chain, record them; not on x86-64 when samples are `kept` as the
 * kernel writes them. */
void tally_user_stack_ask_for_inner(enum tally_unwind_machine machine, bool kept,
				    struct tally_attr *attr);
/* True if `attr` records them. */
bool tally_user_stack_has_inner(enum tally_unwind_machine machine, const struct tally_attr *attr);

enum { TALLY_USER_STACK_INNER_MAX = 64 };

/* The mended user part of a chain: `frames`, then the words of the sample's chain from `resume`
 * on. */
struct tally_user_stack_inner {
	uint64_t frames[TALLY_USER_STACK_INNER_MAX];
	size_t count;
	size_t at;     /* index of the first user address in sample->chain */
	size_t resume;
	bool is_cut;   /* neither the copied words nor the chain give the next caller */
};

/* Mends the chain of such a sample.  Returns false when there is nothing to mend. */
bool tally_user_stack_mend(const struct tally_tasks *tasks, struct tally_objects *objects,
			   const struct tally_attr *attr, const struct tally_sample *sample,
			   struct tally_user_stack_inner *inner);

/* Goes on where a walk ended with TALLY_UNWIND_SWITCHED, by the kernel's chain in the same sample.
 *
 * Go's runtime.systemstack changes the stack pointer to the thread's own stack and leaves the frame
 * pointer as it was.  So the chain by frame pointers leads from the thread's stack back to the
 * goroutine's.  It lacks the function that called systemstack; this function is the target of the
 * call in front of the chain's next address.  The same holds while Go calls C code that leaves the
 * frame pointer alone; but where C calls Go, the chain skips the C functions, so it is not used.
 *
 * `frames` are the `count` frames of the walk.  Appends the outer ones, as many as there is `room`
 * for.  Returns the number that there are, perhaps more than `room`; 0 if the chain does not lead
 * to the start of a goroutine or of a thread. */
size_t tally_user_stack_cross(const struct tally_tasks *tasks, struct tally_objects *objects,
			      const struct tally_attr *attr, const struct tally_sample *sample,
			      uint64_t *frames, size_t count, size_t room);

/* Returns the number of words of the sample's chain that belong to the kernel: those before the
 * user's marker. */
size_t tally_user_stack_kernel_words(const struct tally_sample *sample);

/* Returns the address where the function begins that holds an address, by the unwind rules; 0: there
 * are none. */
uint64_t tally_user_stack_function(const struct tally_tasks *tasks, struct tally_objects *objects,
				   uint32_t pid, uint64_t address);

/* True if a direct call precedes the return address and calls the function that contains `callee`.
 * Both are addresses in the process.  False when this is unknown. */
bool tally_user_stack_is_call_of(const struct tally_tasks *tasks, struct tally_objects *objects,
				 uint32_t pid, uint64_t return_address, uint64_t callee);

/* True if two return addresses of the process are in the same function, by its unwind rules. */
bool tally_user_stack_is_same_function(const struct tally_tasks *tasks,
				       struct tally_objects *objects, uint32_t pid, uint64_t one,
				       uint64_t other);

/* Options and further results of a walk. */
struct tally_user_stack_walk {
	/* NULL: the sample's copy; otherwise a replacement that begins at the same sp */
	const void *stack;
	size_t stack_size;
	struct tally_unwind_memory other;   /* as in struct tally_unwind_request */
	bool *is_exact;                     /* NULL, or `limit` elements */
	uint64_t *stack_pointers;           /* NULL, or `limit` elements: each frame's sp */
	struct tally_unwind_extent *extent; /* NULL, or filled in */
	struct tally_unwind_chain *chain;   /* NULL, or a memory of the thread's last stack */
	bool skips_c;                       /* as in struct tally_unwind_request */
};
size_t tally_user_stack_walk(const struct tally_tasks *tasks, struct tally_objects *objects,
			     const struct tally_attr *attr, const struct tally_sample *sample,
			     const struct tally_user_stack_walk *walk, uint64_t *addresses,
			     size_t limit, enum tally_unwind_end *end);

#endif
