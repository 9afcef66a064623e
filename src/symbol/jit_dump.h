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
#include "symbol/lines.h"

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

/* jit_index.c: finds places by address. */
struct tally_jit_index;
/* Indexes the places from the `first` on.  Returns NULL without memory. */
struct tally_jit_index *tally_jit_index_new(const struct tally_jit_dump *dump, size_t first);
const struct tally_jit_place *tally_jit_index_find(const struct tally_jit_index *index,
						   const struct tally_jit_dump *dump,
						   uint64_t address, size_t limit);
void tally_jit_index_free(struct tally_jit_index *index);

#endif
