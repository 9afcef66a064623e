/* A structure-aware mutator for libFuzzer (LLVMFuzzerCustomMutator, LLVMFuzzerCustomCrossOver).
 *
 * An input is taken apart into pieces: a recording into its attributes, records, feature sections
 * and the parts of tally's own section; an ELF file into its sections, and these into CFI entries,
 * DWARF units, symbols; a JIT dump into its records; a perf map into its lines.  A mutation changes
 * a piece, or deletes, repeats, moves or exchanges pieces.  Then everything is put together again
 * with offsets, sizes and compression that fit, so that the change reaches the code behind the
 * first checks.  Now and then the sizes stay wrong.
 *
 * Out of memory ends the program: fuzzers have no use for an error.
 */
#ifndef TALLY_TEST_MUTATE_H
#define TALLY_TEST_MUTATE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mutation {
	uint64_t random;          /* state of the generator; not 0 */
	struct tally_arena arena; /* everything that a mutation allocates */
	size_t size_max;          /* of the result, in bytes */
	bool swap;                /* numbers of the input have the other byte order */
};

/* Returns a number below `below`; 0 if that is 0. */
uint64_t mutate_random(struct mutation *mutation, uint64_t below);
/* True once in `times` calls. */
bool mutate_once_in(struct mutation *mutation, unsigned times);
void *mutate_alloc(struct mutation *mutation, size_t size);

struct bytes {
	uint8_t *at; /* in the arena */
	size_t size;
};

struct bytes mutate_copy(struct mutation *mutation, const void *at, size_t size);
struct bytes mutate_join(struct mutation *mutation, struct bytes first, struct bytes second);
uint64_t mutate_get(const struct mutation *mutation, const uint8_t *at, unsigned width);
void mutate_put(const struct mutation *mutation, uint8_t *at, unsigned width, uint64_t value);

/* Changes one number of 1, 2, 4 or 8 bytes, in place: to a limit, to a neighbour, or to another
 * number of the same bytes. */
void mutate_number(struct mutation *mutation, struct bytes bytes);
/* Changes the bytes, and perhaps how many there are. */
struct bytes mutate_bytes(struct mutation *mutation, struct bytes bytes);

/* A list of pieces.  Each list gives `tag` and `flag` a meaning of its own. */
struct piece {
	struct bytes bytes;
	uint32_t tag;
	bool flag;
};

struct pieces {
	struct piece *items;
	size_t count, capacity;
};

void pieces_add(struct mutation *mutation, struct pieces *pieces, struct piece piece);
void pieces_insert(struct mutation *mutation, struct pieces *pieces, size_t at, struct piece piece);
/* Deletes, repeats, moves, exchanges or copies pieces.  `other`, which may be NULL, is where some
 * are copied from. */
void pieces_shuffle(struct mutation *mutation, struct pieces *pieces, const struct pieces *other);
struct bytes pieces_join(struct mutation *mutation, const struct pieces *pieces);

/* Change an input of one kind.  `other` is another input of any kind, for the exchange of pieces;
 * size 0: there is none.  Each returns the changed input, or size 0 if it can't read the input. */
struct bytes mutate_recording(struct mutation *mutation, struct bytes input, struct bytes other);
struct bytes mutate_elf(struct mutation *mutation, struct bytes input, struct bytes other);
struct bytes mutate_jit_dump(struct mutation *mutation, struct bytes input, struct bytes other);
struct bytes mutate_lines(struct mutation *mutation, struct bytes input, struct bytes other);
struct bytes mutate_folder(struct mutation *mutation, struct bytes input, struct bytes other);

/* Changes an input of any kind. */
struct bytes mutate_any(struct mutation *mutation, struct bytes input, struct bytes other);

#endif
