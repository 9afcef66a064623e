#include "perfdata/block.h"

#include <stdlib.h>

static struct tally_block *new_block(size_t capacity)
{
	size_t size = (sizeof(struct tally_block) + capacity + 63) & ~(size_t)63;
	struct tally_block *block = size > capacity ? aligned_alloc(64, size) : NULL;
	if (block)
		*block = (struct tally_block){ .holders = 1, .capacity = capacity };
	return block;
}

static struct tally_block *pop(struct tally_block **list)
{
	struct tally_block *block = *list;
	if (block) {
		*list = block->next;
		block->holders = 1;
	}
	return block;
}

static void push(struct tally_block **list, struct tally_block *block)
{
	block->next = *list;
	*list = block;
}

struct tally_block *tally_block_take(struct tally_blocks *blocks, size_t capacity)
{
	struct tally_block *block = capacity <= TALLY_BLOCK_BYTES ? pop(&blocks->unused) : NULL;
	if (block)
		return block;
	block = new_block(capacity < TALLY_BLOCK_BYTES ? TALLY_BLOCK_BYTES : capacity);
	blocks->count += block != NULL;
	return block;
}

void tally_block_drop(struct tally_blocks *blocks, struct tally_block *block)
{
	/* ACQ_REL: the other holders' accesses to the block finish before the block is filled
	 * again. */
	if (!block || __atomic_sub_fetch(&block->holders, 1, __ATOMIC_ACQ_REL))
		return;
	if (block->stock) {
		pthread_mutex_lock(&block->stock->lock);
		push(&block->stock->unused, block);
		pthread_mutex_unlock(&block->stock->lock);
	} else if (block->capacity > TALLY_BLOCK_BYTES) {
		free(block);
		blocks->count--;
	} else {
		push(&blocks->unused, block);
	}
}

void tally_blocks_release(struct tally_blocks *blocks)
{
	for (struct tally_block *block; (block = pop(&blocks->unused)); blocks->count--)
		free(block);
}

void tally_block_stock_init(struct tally_block_stock *stock)
{
	pthread_mutex_init(&stock->lock, NULL);
	stock->unused = NULL;
}

struct tally_block *tally_block_stock_take(struct tally_block_stock *stock, size_t capacity)
{
	pthread_mutex_lock(&stock->lock);
	struct tally_block *block = pop(&stock->unused);
	pthread_mutex_unlock(&stock->lock);
	if (!block && (block = new_block(capacity)))
		block->stock = stock;
	return block;
}

void tally_block_stock_release(struct tally_block_stock *stock)
{
	for (struct tally_block *block; (block = pop(&stock->unused));)
		free(block);
	pthread_mutex_destroy(&stock->lock);
}
