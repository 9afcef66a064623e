/* The machine code that a recording carries: of the functions that most samples are in, so that
 * they can be annotated where neither their program nor its source is.  docs/file-format.md has the
 * layout (part 6).  Pure: bytes in, tables out; the bytes are untrusted.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_PACKED_CODE_H
#define TALLY_PROFILE_PACKED_CODE_H

#include "profile/packed_names.h"

struct tally_packer;

/* From a byte of the code on, up to the next row's. */
struct tally_packed_code_row {
	uint32_t offset;
	uint32_t line;       /* 0: not known */
	const char *file;    /* NULL: not known */
	/* the function that was inlined there, mangled; NULL: it is the function's own */
	const char *inlined;
};

/* What lies at an address that the code refers to. */
struct tally_packed_code_target {
	uint64_t address;
	uint64_t offset; /* from where the symbol begins */
	const char *name; /* mangled */
};

struct tally_packed_code {
	uint32_t function;    /* of the packed names */
	uint64_t start;       /* as its symbol table has it */
	uint64_t shown;       /* what is added to addresses where they are shown */
	const uint8_t *bytes; /* as long as the packed names */
	size_t size;
	unsigned machine;     /* e_machine */
	bool is_64bit, is_big_endian;
	const char *main_file; /* where the function itself is; NULL: not known */
	size_t first_row, row_count, first_target, target_count;
};

struct tally_packed_codes {
	struct tally_buffer text;
	struct { struct tally_packed_code *items; size_t count, capacity; } codes; /* by function */
	struct { struct tally_packed_code_row *items; size_t count, capacity; } rows;
	/* of a code by address */
	struct { struct tally_packed_code_target *items; size_t count, capacity; } targets;
};

/* Part 6 of a section, whose strings and functions `names` has.  1; 0: there is none; -EBADMSG,
 * -ENOTSUP, -ENOMEM.  `out` is to be freed where it isn't NULL, before the names. */
int tally_packed_codes_read(const void *section, size_t size,
			    const struct tally_packed_names *names,
			    struct tally_packed_codes **out);
void tally_packed_codes_free(struct tally_packed_codes *codes); /* NULL is fine */

/* The function's; NULL: it isn't there. */
const struct tally_packed_code *tally_packed_code_find(const struct tally_packed_codes *codes,
						       uint32_t function);

/* Of a byte of the code; NULL: nothing is told. */
const struct tally_packed_code_row *tally_packed_code_row(const struct tally_packed_codes *codes,
							  const struct tally_packed_code *code,
							  uint64_t offset);

/* NULL: nothing is told of the address. */
const struct tally_packed_code_target *tally_packed_code_target(
	const struct tally_packed_codes *codes, const struct tally_packed_code *code,
	uint64_t address);

#endif
