/* Blocks of memory for a recording's bytes: bytes read from a file, received through a pipe, or
 * unpacked.
 *
 * A reader fills a block and goes on to the next.  Code that still needs records in a block holds
 * it, so records wait in place instead of being copied.  A block without holders is filled again.
 * Several threads may take, hold and drop the blocks of a stock; all other blocks belong to one
 * thread.
 */
#ifndef TALLY_PERFDATA_BLOCK_H
#define TALLY_PERFDATA_BLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Four of the largest records.  A block is small enough to be walked through while it is still in
 * the second-level cache. */
enum { TALLY_BLOCK_BYTES = 256 << 10 };

struct tally_block {
	struct tally_block *next; /* in the list of unused blocks */
	/* the stock that it belongs to; NULL: it belongs to a struct tally_blocks */
	struct tally_block_stock *stock;
	unsigned holders; /* atomic */
	size_t capacity; /* TALLY_BLOCK_BYTES, or more for data that must be in one piece */
	_Alignas(64) uint8_t bytes[];
};

struct tally_blocks {
	struct tally_block *unused;
	size_t count; /* all blocks, held or unused */
};

/* Blocks of one size, shared by threads. */
struct tally_block_stock {
	pthread_mutex_t lock;
	struct tally_block *unused;
};

/* Returns a block of at least `capacity` bytes with one holder, or NULL without memory. */
struct tally_block *tally_block_take(struct tally_blocks *blocks, size_t capacity);

static inline void tally_block_hold(struct tally_block *block)
{
	if (block)
		__atomic_fetch_add(&block->holders, 1, __ATOMIC_RELAXED);
}

/* True if the caller is the only holder. */
static inline bool tally_block_is_ours(const struct tally_block *block)
{
	return __atomic_load_n(&block->holders, __ATOMIC_ACQUIRE) == 1;
}

/* Removes one holder; `block` may be NULL.  `blocks` is ignored for the blocks of a stock. */
void tally_block_drop(struct tally_blocks *blocks, struct tally_block *block);

/* Frees the unused blocks. */
void tally_blocks_release(struct tally_blocks *blocks);

void tally_block_stock_init(struct tally_block_stock *stock);
/* Like tally_block_take(), but all blocks of a stock must have the same capacity. */
struct tally_block *tally_block_stock_take(struct tally_block_stock *stock, size_t capacity);
/* Frees the stock's blocks.  The caller must have dropped all of them. */
void tally_block_stock_release(struct tally_block_stock *stock);

#endif
