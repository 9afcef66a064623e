/* A JIT's dump that is read while the JIT writes it.
 *
 * It keeps the places of code and the unwind rules, but no names, lines or code.  It borrows
 * nothing.  Bytes are untrusted.  Pure.  Not thread-safe.
 */
#ifndef TALLY_SYMBOL_JIT_GROWTH_H
#define TALLY_SYMBOL_JIT_GROWTH_H

#include "symbol/jit_dump.h"

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
 * known.  0, -EBADMSG (no dump), -ENOTSUP (another version), -EFBIG (too much to keep), or
 * -ENOMEM; after an error only tally_jit_growth_free() may be called. */
int tally_jit_growth_read(struct tally_jit_growth *growth, const void *bytes, size_t size,
			  size_t *read, size_t *wanted);

/* Skips the bytes of a record that is too large. */
void tally_jit_growth_skip(struct tally_jit_growth *growth, size_t size);

/* How many places of code are known.  It changes when tally_jit_growth_find() may answer
 * differently. */
size_t tally_jit_growth_places(const struct tally_jit_growth *growth);

/* The memory that it takes. */
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
