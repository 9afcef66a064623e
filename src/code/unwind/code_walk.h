/* Code, instruction by instruction: walks, and where instructions start. */
#ifndef TALLY_UNWIND_CODE_WALK_H
#define TALLY_UNWIND_CODE_WALK_H

#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* x86-64: finds where a function without rules keeps its return address, by following its
 * instructions.  Pure. */

/* Returns the length of the instruction that `code` begins with, in bytes.  Returns 0 when it is
 * invalid, or longer than `size`. */
size_t tally_code_length(const uint8_t *code, size_t size);

/* Follows a function from its first instruction, which `code` begins with, to the one that holds
 * the byte `at` (below `size`): the next to run, or a call that is under way.  Returns false when
 * no way leads there, when ways that do disagree, or when rsp is unknown there. */
bool tally_code_walk(const uint8_t *code, size_t size, size_t at, struct tally_code_frame *frame);

/* Does the same where the function's end is unknown.  Follows neither jumps through tables nor
 * calls that may not return.  `address` is that of the first instruction. */
bool tally_code_walk_plainly(const uint8_t *code, size_t size, uint64_t address, size_t at,
			     struct tally_code_frame *frame);

/* Finds the frame of a function at its jumps through registers or memory, which lead to code of its
 * own.  Returns false when there are none, or when their frames differ. */
bool tally_code_walk_to_jump(const uint8_t *code, size_t size, struct tally_code_frame *frame);

/* How the code leads to the byte behind it. */
enum tally_code_way {
	TALLY_CODE_NO_WAY,
	TALLY_CODE_WAY,        /* with the stack as a function finds it: perhaps another function */
	TALLY_CODE_WAY_INSIDE, /* with something on the stack: it is the same function */
};

/* Tells how a function's first `size` bytes lead to the byte behind them: by falling through, or by
 * a jump.  A call right before that byte may not return, and is no way. */
enum tally_code_way tally_code_way_to(const uint8_t *code, size_t size);

/* Follows the instructions onward, through every branch, to the function's `ret`.  Finds the frame
 * at the first of them, wherever the function begins.  With `passes_calls`, calls are taken to
 * return and to leave rsp as it was.  Returns false when no `ret` is reached, or when several
 * disagree.  Sets *is_edge if the code seems to begin a function, or to leave one by a jump, with
 * the stack as it is. */
bool tally_code_onward(const uint8_t *code, size_t size, bool passes_calls,
		       struct tally_code_frame *frame, bool *is_edge);

/* True if the function, which the bytes are, may leave by a jump. */
bool tally_code_jumps_out(const uint8_t *code, size_t size);

/* True if the function hands its call on: some instructions leave the stack as it is, then comes a
 * jump.  Sets *distance to the target's distance from `code`. */
bool tally_code_tail(const uint8_t *code, size_t size, int64_t *distance);

/* True if the instructions make a system call that does not return, as a thread's start does behind
 * the call of the thread's function. */
bool tally_code_exits(const uint8_t *code, size_t size);

/* True if the instructions call something and stop there (hlt, ud2): code that a stack was set up
 * to return to, as libraries of fibers do, and that ends the thread or the program. */
bool tally_code_ends_stack(const uint8_t *code, size_t size);

/* True if the code leads from its first instruction to the one that holds the byte `at` (below
 * `size`), whatever it does to the stack.  Does not go on behind calls that may not return. */
bool tally_code_leads_to(const uint8_t *code, size_t size, size_t at);

/* x86-64: finds where functions begin in code without rules and symbols.  Pure. */

/* A bit for each byte of code. */
struct tally_code_starts {
	uint64_t address; /* of the code's first byte */
	size_t size;
	uint64_t *bits;
	uint64_t *likely; /* more bits, less certain; part of the same memory */
};

/* Reads the code once.  Returns 0 or -ENOMEM.  The caller releases *out. */
int tally_code_starts_find(const uint8_t *code, size_t size, uint64_t address,
			   struct tally_code_starts *out);
void tally_code_starts_release(struct tally_code_starts *starts);

/* Finds the last beginning up to an address, at most `reach` bytes before it.  *end is the next one
 * behind it, at most 2 * `reach` bytes farther, or the code's end.  Returns false when there is
 * none. */
bool tally_code_starts_around(const struct tally_code_starts *starts, uint64_t address,
			      size_t reach, uint64_t *start, uint64_t *end);

/* The same with likely beginnings: good for names, not for unwinding. */
bool tally_code_starts_likely(const struct tally_code_starts *starts, uint64_t address,
			      size_t reach, uint64_t *start, uint64_t *end);

#endif
