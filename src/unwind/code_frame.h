/* x86-64: finds the frame of code without rules, from the instructions around an address.
 *
 * Pure: takes bytes, returns a description.  code_frame.c explains which instructions it
 * recognises, and why the result is certain.
 */
#ifndef TALLY_UNWIND_CODE_FRAME_H
#define TALLY_UNWIND_CODE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offsets are from the frame's rsp, in bytes. */
struct tally_code_frame {
	/* rbp points at the saved rbp, and the return address is above it.  If false, use the
	 * fields below. */
	bool is_linked;
	int32_t return_at;   /* of the return address */
	bool saves_fp;       /* the caller's rbp is saved at fp_at; else rbp still holds it */
	int32_t fp_at;
};

/* Follows the instructions at `code` to the function's `ret`.  Returns false when one of them does
 * anything other than leave the function. */
bool tally_code_frame_ahead(const uint8_t *code, size_t size, struct tally_code_frame *frame);

/* Finds the frame of a method that the HotSpot JVM compiled, from the method's beginning.  Searches
 * for the beginning in the `size` bytes before an address and the `more` bytes behind it; `code` is
 * the first byte of those before.  Returns false when it recognises no beginning. */
bool tally_code_frame_behind(const uint8_t *code, size_t size, size_t more,
			     struct tally_code_frame *frame);

/* True if the bytes end in a call: then the address behind them is a return address of that
 * call. */
bool tally_code_ends_in_call(const uint8_t *code, size_t size);

#endif
