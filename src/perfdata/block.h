/* Pieces of memory that a recording's bytes pass through: what is read of a file, what came down a
 * pipe, what was unpacked.
 *
 * One fills a block and goes on to the next; whoever still needs records in it holds it, so that
 * records wait for their turn where they are instead of being copied.  A block that nobody holds is
 * filled again.  Blocks of a stock may be taken, held and dropped by several threads; all else is
 * one thread's.
 */
#ifndef TALLY_PERFDATA_BLOCK_H
#define TALLY_PERFDATA_BLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Four of the largest records.  Blocks are read and walked through while they are in the
 * second-level cache. */
enum { TALLY_BLOCK_BYTES = 256 << 10 };

struct tally_block {
	struct tally_block *next; /* of those that nobody holds */
	struct tally_block_stock *stock; /* where it came from; NULL: from a struct tally_blocks */
	unsigned holders; /* atomic */
	size_t capacity; /* TALLY_BLOCK_BYTES, or more for what had to be in one piece */
	_Alignas(64) uint8_t bytes[];
};

struct tally_blocks {
	struct tally_block *unused;
	size_t count; /* held or not */
};

/* Blocks of one size, shared by threads. */
struct tally_block_stock {
	pthread_mutex_t lock;
	struct tally_block *unused;
};

/* A block of at least `capacity` bytes with one holder; NULL when memory is out. */
struct tally_block *tally_block_take(struct tally_blocks *blocks, size_t capacity);

static inline void tally_block_hold(struct tally_block *block)
{
	if (block)
		__atomic_fetch_add(&block->holders, 1, __ATOMIC_RELAXED);
}

/* Whether one holder alone is left: the caller. */
static inline bool tally_block_is_ours(const struct tally_block *block)
{
	return __atomic_load_n(&block->holders, __ATOMIC_ACQUIRE) == 1;
}

/* One holder less; `block` may be NULL.  `blocks` is not looked at for blocks of a stock. */
void tally_block_drop(struct tally_blocks *blocks, struct tally_block *block);

/* Frees the blocks that nobody holds. */
void tally_blocks_release(struct tally_blocks *blocks);

void tally_block_stock_init(struct tally_block_stock *stock);
/* As tally_block_take(); all of a stock's blocks have the same capacity. */
struct tally_block *tally_block_stock_take(struct tally_block_stock *stock, size_t capacity);
/* All of its blocks must have been dropped. */
void tally_block_stock_release(struct tally_block_stock *stock);

#endif
