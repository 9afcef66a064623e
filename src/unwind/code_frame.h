/* x86-64: what the instructions around an address tell about the frame of code that has no rules.
 *
 * Pure: bytes in, a description out.  code_frame.c explains what is recognised, and why it is
 * certain.
 */
#ifndef TALLY_UNWIND_CODE_FRAME_H
#define TALLY_UNWIND_CODE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets are from the frame's rsp, in bytes. */
struct tally_code_frame {
	/* rbp points at the saved rbp, and the return address is above it; else: */
	bool is_linked;
	int32_t return_at;   /* where the return address is */
	bool saves_fp;       /* the caller's rbp is at fp_at; else rbp is the caller's */
	int32_t fp_at;
};

/* Follows the instructions at `code` to the function's `ret`.  False where one of them does
 * anything else than to leave the function. */
bool tally_code_frame_ahead(const uint8_t *code, size_t size, struct tally_code_frame *frame);

/* Finds the beginning of the function that the HotSpot JVM compiled, in the `size` bytes before an
 * address and the `more` behind it: `code` is the first of the bytes before.  False where no
 * beginning is recognised. */
bool tally_code_frame_behind(const uint8_t *code, size_t size, size_t more,
			     struct tally_code_frame *frame);

/* Do the bytes end in a call?  What returns behind them was called from there. */
bool tally_code_ends_in_call(const uint8_t *code, size_t size);

#endif
