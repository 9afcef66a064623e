/* A JIT's dump (jit-PID.dump): which code lay where and since when, with its bytes, lines and
 * unwind rules.
 *
 * The format is the kernel's tools/perf/Documentation/jitdump-specification.txt, version 1, of
 * either byte order.  Pure: the bytes are borrowed and untrusted; damaged records are left out and
 * counted.  Immutable once read.
 */
#ifndef TALLY_SYMBOL_JIT_DUMP_H
#define TALLY_SYMBOL_JIT_DUMP_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_symbols;

struct tally_jit_line {
	uint64_t offset;  /* bytes from the function's start; the line applies up to the next one */
	const char *file; /* NULL: unknown */
	uint32_t line, column;
};

struct tally_jit_function {
	const char *name;
	/* of its first byte among all code of the dump; stays the same when the code is moved */
	uint64_t base;
	uint64_t size; /* never 0 */
	const uint8_t *bytes; /* machine code */
	uint32_t first_line, line_count; /* in the dump's lines */
	/* .eh_frame, as if it lay behind the code at the next multiple of 8; size 0: none */
	const uint8_t *eh_frame;
	size_t eh_frame_size;
};

/* An address of a function, valid from `time_ns` on. */
struct tally_jit_place {
	uint64_t time_ns, address;
	uint32_t function;
};

struct tally_jit_dump {
	uint32_t pid;         /* of the JIT, in its own namespace */
	unsigned machine;     /* e_machine */
	bool has_cycle_times; /* times are the processor's cycle counter, not CLOCK_MONOTONIC */
	size_t damaged;       /* records that make no sense, plus one for a torn end */
	/* sorted by base */
	struct { struct tally_jit_function *items; size_t count, capacity; } functions;
	/* sorted by time */
	struct { struct tally_jit_place *items; size_t count, capacity; } places;
	struct { struct tally_jit_line *items; size_t count, capacity; } lines;
	/* names that are not in the bytes */
	struct { char **items; size_t count, capacity; } files;
	struct tally_jit_index *index;
};

/* Finds the end of a dump's records without their content: a dump may be a sparse file of terabytes
 * with hardly a record. */
struct tally_jit_extent {
	uint64_t at; /* where to read next, from the start of the file */
	bool has_header, swap;
};

/* Goes on over `size` bytes of the file, those at extent->at.  Returns false at the end: the bytes
 * at extent->at are no whole header of a record.  Give at least 64 bytes unless the file ends. */
bool tally_jit_extent_go_on(struct tally_jit_extent *extent, const void *bytes, size_t size);

/* Reads a dump; `bytes` must outlive it.  Returns 0; -EBADMSG when this is no dump, -ENOTSUP
 * (another version), -ENOMEM. */
int tally_jit_dump_read(const void *bytes, size_t size, struct tally_jit_dump **out,
			struct tally_error *err);
void tally_jit_dump_free(struct tally_jit_dump *dump); /* accepts NULL */

/* Returns how many of the places are valid at a time. */
size_t tally_jit_dump_places_at(const struct tally_jit_dump *dump, uint64_t time_ns);

/* Returns the code at an address, when the first `limit` places are valid; NULL when the dump has
 * none there. */
const struct tally_jit_place *tally_jit_dump_find(const struct tally_jit_dump *dump,
						  uint64_t address, size_t limit);

/* Returns the function that contains a byte of the dump's code (base + offset); NULL: none. */
const struct tally_jit_function *tally_jit_dump_function(const struct tally_jit_dump *dump,
							 uint64_t address);

/* Returns the line of a byte of the dump's code; NULL: unknown. */
const struct tally_jit_line *tally_jit_dump_line(const struct tally_jit_dump *dump,
						 uint64_t address);

/* Makes a symbol table of the functions, by base.  The dump must outlive it.  Returns 0 or
 * -ENOMEM. */
int tally_jit_dump_symbols(const struct tally_jit_dump *dump, struct tally_symbols **out);

/* Finds places by address. */
struct tally_jit_index;
/* Indexes the places from the `first` on.  Returns NULL without memory. */
struct tally_jit_index *tally_jit_index_new(const struct tally_jit_dump *dump, size_t first);

/* A JIT's dump that is read while the JIT writes it.
 *
 * It keeps the places of code and the unwind rules, but no names, lines or code.  It borrows
 * nothing.  Bytes are untrusted.  Pure.  Not thread-safe.
 */

struct tally_jit_growth;

/* Limits of one dump. */
enum {
	TALLY_JIT_GROWTH_FUNCTIONS_MAX = 1 << 18,
	TALLY_JIT_GROWTH_PLACES_MAX = 1 << 19,
	TALLY_JIT_GROWTH_RULES_MAX = 32 << 20, /* bytes */
};

struct tally_jit_growth *tally_jit_growth_new(void);         /* NULL: no memory */
void tally_jit_growth_free(struct tally_jit_growth *growth); /* NULL is fine */

/* Reads the bytes of the dump from where the last call ended.  *read is set to how many bytes were
 * read: they end with the last whole record.  *wanted is how many bytes the next record has; 0: not
 * known.  Returns 0, -EBADMSG (no dump), -ENOTSUP (another version), -EFBIG (too much to keep), or
 * -ENOMEM; after an error only tally_jit_growth_free() may be called. */
int tally_jit_growth_read(struct tally_jit_growth *growth, const void *bytes, size_t size,
			  size_t *read, size_t *wanted);

/* Skips the bytes of a record that is too large. */
void tally_jit_growth_skip(struct tally_jit_growth *growth, size_t size);

/* Returns how many places of code are known.  While this number is the same, so are the answers of
 * tally_jit_growth_find(). */
size_t tally_jit_growth_places(const struct tally_jit_growth *growth);

/* Returns the memory that it takes, in bytes. */
size_t tally_jit_growth_bytes(const struct tally_jit_growth *growth);

struct tally_jit_grown {
	const struct tally_jit_function *function; /* without name, bytes and lines */
	uint32_t number;                           /* of the function; stays */
	uint64_t offset;                           /* of the address in the function */
	uint64_t code_at; /* where the dump has the code's bytes; 0: it has none */
	unsigned machine; /* e_machine */
};

/* Finds the code at an address at a time (CLOCK_MONOTONIC; UINT64_MAX: now).  Returns false when
 * there is no known code.  *out holds until the next tally_jit_growth_read(). */
bool tally_jit_growth_find(struct tally_jit_growth *growth, uint64_t address, uint64_t time_ns,
			   struct tally_jit_grown *out);

#endif
