/* A JIT's dump (jit-PID.dump): which code lay where from when on, with its bytes, lines and unwind
 * rules.
 *
 * The format is the kernel's tools/perf/Documentation/jitdump-specification.txt, version 1, of
 * either byte order.  Pure: the bytes are borrowed and untrusted; what is damaged is left out and
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
	uint64_t offset;  /* from the function's start; the line holds until the next one */
	const char *file; /* NULL: not known */
	uint32_t line, column;
};

struct tally_jit_function {
	const char *name;
	/* of its first byte among all code of the dump: the same wherever the code is moved to */
	uint64_t base;
	uint64_t size; /* never 0 */
	const uint8_t *bytes; /* the machine's code */
	uint32_t first_line, line_count; /* of the dump's lines */
	/* .eh_frame, as if it lay behind the code at the next multiple of 8; size 0: none */
	const uint8_t *eh_frame;
	size_t eh_frame_size;
};

/* Where code lies from a time on. */
struct tally_jit_place {
	uint64_t time_ns, address;
	uint32_t function;
};

struct tally_jit_dump {
	uint32_t pid;         /* as the JIT saw itself: in its own namespace */
	unsigned machine;     /* e_machine */
	bool has_cycle_times; /* times are the processor's, not CLOCK_MONOTONIC's */
	size_t damaged;       /* records that make no sense, and what is cut off at the end */
	/* by base */
	struct { struct tally_jit_function *items; size_t count, capacity; } functions;
	/* by time */
	struct { struct tally_jit_place *items; size_t count, capacity; } places;
	struct { struct tally_jit_line *items; size_t count, capacity; } lines;
	struct { char **items; size_t count, capacity; } files; /* names that had to be made */
	struct tally_jit_index *index;
};

/* `bytes` must outlive the dump.  0; -EBADMSG when this is no dump, -ENOTSUP (another version),
 * -ENOMEM. */
int tally_jit_dump_read(const void *bytes, size_t size, struct tally_jit_dump **out,
			struct tally_error *err);
void tally_jit_dump_free(struct tally_jit_dump *dump); /* NULL is fine */

/* How many of the places are there at a time. */
size_t tally_jit_dump_places_at(const struct tally_jit_dump *dump, uint64_t time_ns);

/* What the address holds when the first `limit` of the places are there; NULL: no code of the
 * dump. */
const struct tally_jit_place *tally_jit_dump_find(const struct tally_jit_dump *dump,
						  uint64_t address, size_t limit);

/* The function that holds a byte of the dump's code (base + offset); NULL: none. */
const struct tally_jit_function *tally_jit_dump_function(const struct tally_jit_dump *dump,
							 uint64_t address);

/* The line of a byte of the dump's code; NULL: not known. */
const struct tally_jit_line *tally_jit_dump_line(const struct tally_jit_dump *dump,
						 uint64_t address);

/* The functions as symbols, by base.  The dump must outlive them.  0 or -ENOMEM. */
int tally_jit_dump_symbols(const struct tally_jit_dump *dump, struct tally_symbols **out);

/* jit_index.c: places by address. */
struct tally_jit_index;
/* NULL: no memory */
struct tally_jit_index *tally_jit_index_new(const struct tally_jit_dump *dump);
const struct tally_jit_place *tally_jit_index_find(const struct tally_jit_index *index,
						   const struct tally_jit_dump *dump,
						   uint64_t address, size_t limit);
void tally_jit_index_free(struct tally_jit_index *index);

#endif
