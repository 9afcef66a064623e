/* Finds the frame of code without rules where a few bytes of it suffice. */
#ifndef TALLY_UNWIND_CODE_SPOT_H
#define TALLY_UNWIND_CODE_SPOT_H

#include <stddef.h>
#include <stdint.h>

enum tally_code_spot {
	TALLY_CODE_OTHER,
	TALLY_CODE_SIGRETURN,  /* a signal handler returns here; the kernel's ucontext is at sp */
	TALLY_CODE_EDGE,       /* the return address is at rsp, or in x30 */
	TALLY_CODE_PUSHED_RBP, /* rbp was just pushed, the return address is above it */
};

/* Recognises x86-64 code.  `code` runs next; `previous` is the byte before it. */
enum tally_code_spot tally_code_recognise(const uint8_t *code, size_t size, uint8_t previous);

/* Recognises arm64 code by its next instruction (sigreturn: by two). */
enum tally_code_spot tally_code_recognise_arm64(const uint8_t *code, size_t size);

#endif
