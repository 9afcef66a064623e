#include "perfdata/block.h"

#include <stdlib.h>

struct tally_block *tally_block_take(struct tally_blocks *blocks, size_t capacity)
{
	struct tally_block *block = capacity <= TALLY_BLOCK_BYTES ? blocks->unused : NULL;
	if (block) {
		blocks->unused = block->next;
		block->holders = 1;
		return block;
	}
	capacity = capacity < TALLY_BLOCK_BYTES ? TALLY_BLOCK_BYTES : capacity;
	size_t size = (sizeof(*block) + capacity + 63) & ~(size_t)63;
	block = size > capacity ? aligned_alloc(64, size) : NULL;
	if (block) {
		*block = (struct tally_block){ .holders = 1, .capacity = capacity };
		blocks->count++;
	}
	return block;
}

void tally_block_drop(struct tally_blocks *blocks, struct tally_block *block)
{
	if (!block || --block->holders)
		return;
	if (block->capacity > TALLY_BLOCK_BYTES) {
		free(block);
		blocks->count--;
		return;
	}
	block->next = blocks->unused;
	blocks->unused = block;
}

void tally_blocks_release(struct tally_blocks *blocks)
{
	while (blocks->unused) {
		struct tally_block *block = blocks->unused;
		blocks->unused = block->next;
		blocks->count--;
		free(block);
	}
}
