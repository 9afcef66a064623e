/* x86-64: where a function without rules keeps its return address, by following its instructions.
 * Pure. */
#ifndef TALLY_UNWIND_CODE_WALK_H
#define TALLY_UNWIND_CODE_WALK_H

#include "unwind/code_frame.h"

/* Bytes of the instruction that `code` begins with; 0: it is none, or longer than `size`. */
size_t tally_code_length(const uint8_t *code, size_t size);

/* Follows a function from its first instruction, which `code` begins with, to the one that holds
 * the byte `at` (below `size`): the next to run, or a call that is under way.  False where no way
 * leads there, where ways that do differ, or where rsp is not known there. */
bool tally_code_walk(const uint8_t *code, size_t size, size_t at, struct tally_code_frame *frame);

/* Does the same where the function's end is not known.  `address` is that of the first instruction.
 * Follows neither jumps through tables nor calls that may not return. */
bool tally_code_walk_plainly(const uint8_t *code, size_t size, uint64_t address, size_t at,
			     struct tally_code_frame *frame);

/* Where a function goes that hands its call on: some instructions that leave the stack as it is,
 * then a jump.  *distance is the target's from `code`. */
bool tally_code_tail(const uint8_t *code, size_t size, int64_t *distance);

/* Do the instructions make a system call that is not to return, as a thread's start does behind the
 * call of the thread's function? */
bool tally_code_exits(const uint8_t *code, size_t size);

#endif
