/* The machine code that a recording carries for the functions with most samples, so that they can
 * be annotated on machines that have neither their program nor its source. docs/file-format.md has
 * the layout (parts 6 and 9).  Pure: bytes in, tables out; the bytes are untrusted.  Not
 * thread-safe. */
#ifndef TALLY_NAMING_PACKED_CODE_H
#define TALLY_NAMING_PACKED_CODE_H

#include "naming/packed_names.h"
#include "symbol/lines.h"

struct tally_packer;

/* The source of the code from `offset` to the next row's. */
struct tally_packed_code_row {
	uint32_t offset;
	/* Its frames: codes->frames.items[first] … [first + count), innermost first.  The last one
	 * is the function itself.  Only the innermost one has a line, and the file of the line;
	 * the names are mangled. */
	uint32_t count;
	size_t first;
};

/* A symbol at an address that the code refers to. */
struct tally_packed_code_target {
	uint64_t address;
	uint64_t offset; /* from the start of the symbol */
	const char *name; /* mangled */
};

struct tally_packed_code {
	uint32_t function;    /* index of the packed function */
	uint64_t start;       /* in the terms of its symbol table */
	uint64_t shown;       /* added to addresses to show them */
	const uint8_t *bytes; /* valid as long as the packed names */
	size_t size;
	unsigned machine;     /* e_machine */
	bool is_64bit, is_big_endian;
	const char *main_file; /* source file of the function itself; NULL: not known */
	size_t first_row, row_count, first_target, target_count;
};

struct tally_packed_codes {
	struct tally_buffer text, around;
	/* sorted by function */
	struct { struct tally_packed_code *items; size_t count, capacity; } codes;
	struct { struct tally_packed_code_row *items; size_t count, capacity; } rows;
	struct { struct tally_line_frame *items; size_t count, capacity; } frames;
	/* sorted by address within a code */
	struct { struct tally_packed_code_target *items; size_t count, capacity; } targets;
	uint64_t tables_max; /* bytes */
};

/* Reads parts 6 and 9 of a section; `names` has the section's strings and functions.  Returns 1, 0
 * if there is no part 6, -EBADMSG, -ENOTSUP or -ENOMEM.  If `out` isn't NULL, free it before the
 * names. */
int tally_packed_codes_read(const void *section, size_t size,
			    const struct tally_packed_names *names,
			    struct tally_packed_codes **out);
void tally_packed_codes_free(struct tally_packed_codes *codes); /* NULL is allowed */

/* Returns the function's code; NULL: there is none. */
const struct tally_packed_code *tally_packed_code_find(const struct tally_packed_codes *codes,
						       uint32_t function);

/* Returns the row of a byte of the code; NULL: not known. */
const struct tally_packed_code_row *tally_packed_code_row(const struct tally_packed_codes *codes,
							  const struct tally_packed_code *code,
							  uint64_t offset);

/* Returns the target at an address; NULL: not known. */
const struct tally_packed_code_target *tally_packed_code_target(
	const struct tally_packed_codes *codes, const struct tally_packed_code *code,
	uint64_t address);

#endif
