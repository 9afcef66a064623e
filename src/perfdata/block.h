/* Pieces of memory that a recording's bytes pass through: what is read of a file, what came down a pipe, what was
 * unpacked.
 *
 * One fills a block and goes on to the next; whoever still needs records in it holds it, so that records wait for
 * their turn where they are instead of being copied.  A block that nobody holds is filled again.  Not thread-safe.
 */
#ifndef TALLY_PERFDATA_BLOCK_H
#define TALLY_PERFDATA_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Four of the largest records.  Blocks are read and walked through while they are in the second-level cache. */
enum { TALLY_BLOCK_BYTES = 256 << 10 };

struct tally_block {
	struct tally_block *next; /* of those that nobody holds */
	unsigned holders;
	size_t capacity; /* TALLY_BLOCK_BYTES, or more for what had to be in one piece */
	_Alignas(64) uint8_t bytes[];
};

struct tally_blocks {
	struct tally_block *unused;
	size_t count; /* held or not */
};

/* A block of at least `capacity` bytes with one holder; NULL when memory is out. */
struct tally_block *tally_block_take(struct tally_blocks *blocks, size_t capacity);

static inline void tally_block_hold(struct tally_block *block)
{
	if (block)
		block->holders++;
}

/* One holder less; `block` may be NULL. */
void tally_block_drop(struct tally_blocks *blocks, struct tally_block *block);

/* Frees the blocks that nobody holds. */
void tally_blocks_release(struct tally_blocks *blocks);

#endif
