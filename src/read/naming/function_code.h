/* The machine code of a recorded function, from wherever it can be found:
 *
 * - a program's or library's code from its file, if that is the recorded build (by build-id);
 * - a JIT's code from its dump;
 * - the kernel's code from the running kernel's memory, which has the same patches as when it ran,
 *   else from its vmlinux or a module's file.
 *
 * The recording itself has the changes that the kernel made to its code in that time
 * (text_pokes.h), and the whole code of some functions that the kernel generated.  If none of these
 * sources is available, the recording may carry the code (packed_code.h).
 */
#ifndef TALLY_NAMING_FUNCTION_CODE_H
#define TALLY_NAMING_FUNCTION_CODE_H

#include "naming/names.h"

struct tally_packed_code;

struct tally_function_code {
	uint64_t start, end;  /* addresses in the terms of its symbols; both 0: not known */
	/* added to these addresses to show them: JIT code and kernels are shown where they were */
	uint64_t shown;
	/* `size` bytes from `start`; valid as long as the names, or `kept` */
	const uint8_t *bytes;
	/* 0: the code was not found; `missing` says why */
	size_t size;
	const struct tally_packed_code *packed; /* the code is the recording's; NULL: a file's */
	const struct tally_object *object;      /* the file that has the code; NULL: none */
	uint8_t *kept;        /* bytes owned by this function; NULL: none */
	/* bytes that the kernel wrote over while it was recorded; `bytes` has their last values */
	size_t poked;
	unsigned machine;     /* e_machine */
	bool is_64bit, is_big_endian;
	char missing[256], hint[256];
	/* modification time of its file, seconds since the epoch; 0: not known */
	int64_t file_time_s;
	bool is_rebuilt;      /* the file here is another build than the recorded one */
	/* why there may be no source lines; NULL: debug information is missing */
	const char *no_lines;
};

/* Finds the code of the function that holds a place.  Returns 0 (`size` is 0 when there is no code)
 * or -ENOMEM.  Release `out` in both cases. */
int tally_function_code_find(struct tally_names *names, const struct tally_place *place,
			     struct tally_function_code *out);
/* The same without the recording's own code, and without `file_time_s`.  Uses nothing of other
 * files, so threads may name different files by it. */
int tally_function_code_find_in_files(struct tally_names *names, const struct tally_place *place,
				      struct tally_function_code *out);
void tally_function_code_release(struct tally_function_code *code);

/* Returns the name of the symbol at an address, such as "memcpy", and the address's offset from its
 * start; NULL: not known.  `place` is any place of the function; `address` is in the terms of its
 * symbols.  The name may be mangled, and lives as long as the names. */
const char *tally_function_code_symbol(struct tally_names *names,
				       const struct tally_function_code *code,
				       const struct tally_place *place, uint64_t address,
				       uint64_t *offset);

/* Converts a place of the function to an address in the terms of its symbols.  Returns false when
 * that is not known. */
bool tally_function_code_address(struct tally_names *names, const struct tally_function_code *code,
				 const struct tally_place *place, uint64_t *address);

/* Finds the source lines of ascending addresses (in the terms of the symbols): innermost frames, as
 * from tally_lines_find().  They live as long as the names.  `scratch` has room for `count`
 * frames.  Returns 0 or -ENOMEM. */
struct tally_line_answer;
struct tally_line_frame;
int tally_function_code_lines(struct tally_names *names, const struct tally_function_code *code,
			      const struct tally_place *place, const uint64_t *addresses,
			      size_t count, struct tally_line_answer *answers,
			      struct tally_line_frame *scratch);

#endif
