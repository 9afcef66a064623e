/* The machine code of a recorded function, wherever it is to be had.
 *
 * A program's or library's from its file, when that is the recorded one (by build-id); a JIT's from
 * its dump; the kernel's from the memory of the running kernel, which has been patched as it was
 * when it ran, else from its vmlinux, or a module's file.  What the kernel wrote over its code
 * while it was recorded is told by the recording (text_pokes.h), as is the whole of some code that
 * it made meanwhile.  Where none of these is here, the recording may carry it (packed_code.h).
 */
#ifndef TALLY_PROFILE_FUNCTION_CODE_H
#define TALLY_PROFILE_FUNCTION_CODE_H

#include "profile/names.h"

struct tally_packed_code;

struct tally_function_code {
	uint64_t start, end;  /* addresses as its symbols have them; both 0: nothing tells */
	/* what is added to those where they are shown: where JITs' and kernels' code lay */
	uint64_t shown;
	/* `size` of them, from `start`; valid as long as the names, or `kept` */
	const uint8_t *bytes;
	/* 0: the code is not to be had, for the reason that `missing` tells */
	size_t size;
	const struct tally_packed_code *packed; /* the recording carries it; NULL: it is a file's */
	uint8_t *kept;        /* bytes that are this function's own; NULL: none */
	/* bytes of it that were written over while it was recorded: they are those of the end */
	size_t poked;
	unsigned machine;     /* e_machine */
	bool is_64bit, is_big_endian;
	char missing[256], hint[256];
	int64_t file_time_s;  /* when its file was changed last; 0: not known */
	bool is_rebuilt;      /* the file that is here is another build than the recorded one */
	/* why there may be no source lines; NULL: for want of debug information */
	const char *no_lines;
};

/* Of the function that holds a place.  0 or -ENOMEM. */
int tally_function_code_find(struct tally_names *names, const struct tally_place *place,
			     struct tally_function_code *out);
void tally_function_code_release(struct tally_function_code *code);

/* What was found at a symbol address: "memcpy", NULL where nothing is known, and how far behind its
 * start.  `place` is one of the function's; `address` in the terms of its symbols.  Mangled, or
 * not; it lives as long as the names. */
const char *tally_function_code_symbol(struct tally_names *names,
				       const struct tally_function_code *code,
				       const struct tally_place *place, uint64_t address,
				       uint64_t *offset);

/* A place of the code's function: its address as the code's symbols have it. */
bool tally_function_code_address(struct tally_names *names, const struct tally_function_code *code,
				 const struct tally_place *place, uint64_t *address);

/* The lines of ascending addresses (as symbols have them): innermost frames, as tally_lines_find()
 * gives them.  They live as long as the names.  `scratch` has room for twice `count` frames.  0 or
 * -ENOMEM. */
struct tally_line_answer;
struct tally_line_frame;
int tally_function_code_lines(struct tally_names *names, const struct tally_function_code *code,
			      const struct tally_place *place, const uint64_t *addresses,
			      size_t count, struct tally_line_answer *answers,
			      struct tally_line_frame *scratch);

#endif
