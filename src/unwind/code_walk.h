/* x86-64: finds where a function without rules keeps its return address, by following its
 * instructions.  Pure. */
#ifndef TALLY_UNWIND_CODE_WALK_H
#define TALLY_UNWIND_CODE_WALK_H

#include "unwind/code_frame.h"

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

/* True if the function hands its call on: some instructions leave the stack as it is, then comes a
 * jump.  Sets *distance to the target's distance from `code`. */
bool tally_code_tail(const uint8_t *code, size_t size, int64_t *distance);

/* True if the instructions make a system call that does not return, as a thread's start does behind
 * the call of the thread's function. */
bool tally_code_exits(const uint8_t *code, size_t size);

#endif
