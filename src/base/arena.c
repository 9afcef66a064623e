/* The arena is a list of blocks, each twice as large as the one before, up to a maximum.  The first
 * block of the list serves requests.  A large request that does not fit there gets a block of its
 * own. */
#include "base/arena.h"

#include "base/extremes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Small at first: there are hundreds of arenas that each hold little (the rules of a file). */
enum { BLOCK_BYTES_MIN = 4 << 10, BLOCK_BYTES_MAX = 64 << 10 };

struct tally_arena_block {
	struct tally_arena_block *next;
	size_t used;
	size_t capacity;
	_Alignas(max_align_t) unsigned char bytes[];
};

static struct tally_arena_block *block_new(size_t capacity)
{
	if (capacity > SIZE_MAX - sizeof(struct tally_arena_block))
		return NULL;
	struct tally_arena_block *block = malloc(sizeof(*block) + capacity);
	if (!block)
		return NULL;
	block->next = NULL;
	block->used = 0;
	block->capacity = capacity;
	return block;
}

/* Each new block has twice the size of the newest one, up to the maximum. */
static size_t next_capacity(const struct tally_arena_block *newest, size_t need)
{
	size_t capacity = newest ? newest->capacity * 2 : BLOCK_BYTES_MIN;
	if (capacity > BLOCK_BYTES_MAX)
		capacity = BLOCK_BYTES_MAX;
	return tally_max_u64(capacity, need);
}

void *tally_arena_alloc(struct tally_arena *arena, size_t size_bytes)
{
	const size_t align = _Alignof(max_align_t);
	if (size_bytes > SIZE_MAX - align)
		return NULL;
	size_t need = (size_bytes + align - 1) & ~(align - 1);
	struct tally_arena_block *block = arena->block;

	if (!block || block->capacity - block->used < need) {
		/* A large request gets a block of its own behind the current one, which still has
		 * room. */
		if (need > BLOCK_BYTES_MAX / 4) {
			struct tally_arena_block *own = block_new(need);
			if (!own)
				return NULL;
			own->used = need;
			if (block) {
				own->next = block->next;
				block->next = own;
			} else {
				arena->block = own;
			}
			return memset(own->bytes, 0, need);
		}
		block = block_new(next_capacity(block, need));
		if (!block)
			return NULL;
		block->next = arena->block;
		arena->block = block;
	}
	void *result = block->bytes + block->used;
	block->used += need;
	return memset(result, 0, need);
}

void *tally_arena_array(struct tally_arena *arena, size_t count, size_t item_bytes)
{
	size_t total;
	if (__builtin_mul_overflow(count, item_bytes, &total))
		return NULL;
	return tally_arena_alloc(arena, total);
}

char *tally_arena_copy(struct tally_arena *arena, const char *text, size_t length)
{
	if (length == SIZE_MAX)
		return NULL;
	char *copy = tally_arena_alloc(arena, length + 1);
	if (copy && length)
		memcpy(copy, text, length);
	return copy;
}

char *tally_arena_string(struct tally_arena *arena, const char *text)
{
	return tally_arena_copy(arena, text, strlen(text));
}

char *tally_arena_printf(struct tally_arena *arena, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *text = NULL;
	if (length >= 0)
		text = tally_arena_alloc(arena, (size_t)length + 1);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}

size_t tally_arena_bytes(const struct tally_arena *arena)
{
	size_t bytes = 0;
	for (const struct tally_arena_block *block = arena->block; block; block = block->next)
		bytes += sizeof(*block) + block->capacity;
	return bytes;
}

void tally_arena_release(struct tally_arena *arena)
{
	struct tally_arena_block *block = arena->block;
	while (block) {
		struct tally_arena_block *next = block->next;
		free(block);
		block = next;
	}
	arena->block = NULL;
}
