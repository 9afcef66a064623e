/* Bytes in order, seen through a window onto memory or onto a block that read(2) fills.
 *
 * A file is mapped, but its records are read into blocks where that is cheaper.  A copy out of the
 * page cache costs less than page faults and cache misses: a bare walk through 500 MB takes 45 ms
 * of CPU, against 85 ms in mapped memory.  The copied bytes are then in the cache for the next
 * reader.
 *
 * In two cases the window is put on the mapping instead.  When more than BLOCKS_MAX blocks are held
 * (rings of many megabytes on many CPUs), this keeps memory small.  When samples have kilobytes of
 * stack, the reader touches only a few cache lines of each, and a copy of everything gains little.
 * (500 MB of such samples, walked and unwound: the mapping is 45 ms faster when the page cache has
 * the file in large folios, as after reading it from the disk; equally fast with single pages.)
 */
#include "base/extremes.h"
#include "perfdata/perfdata_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct tally_block *new_block(size_t capacity)
{
	size_t size = (sizeof(struct tally_block) + capacity + 63) & ~(size_t)63;
	struct tally_block *block = NULL;
	if (size > capacity)
		block = aligned_alloc(64, size);
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
	struct tally_block *block = NULL;
	if (capacity <= TALLY_BLOCK_BYTES)
		block = pop(&blocks->unused);
	if (block)
		return block;
	block = new_block(tally_max_u64(capacity, TALLY_BLOCK_BYTES));
	blocks->count += block != NULL;
	return block;
}

void tally_block_hold(struct tally_block *block)
{
	if (block)
		__atomic_fetch_add(&block->holders, 1, __ATOMIC_RELAXED);
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

enum { READ_BYTES_MIN = 64 << 10, BLOCKS_MAX = 64 };

static bool read_at(struct tally_source *source, uint8_t *to, size_t size, size_t *got)
{
	ssize_t one;
	do {
		if (source->memory)
			one = pread(source->fd, to, size, (off_t)source->offset);
		else
			one = read(source->fd, to, size);
	} while (one < 0 && errno == EINTR);
	*got = (size_t)tally_max_i64(one, 0);
	return one >= 0;
}

static size_t in_window(const struct tally_source *source)
{
	return source->end - source->used;
}

static void set_window(struct tally_source *source, struct tally_block *block, const uint8_t *bytes,
		       size_t end)
{
	if (block != source->block)
		tally_block_drop(source->blocks, source->block);
	source->block = block;
	source->window = bytes;
	source->used = 0;
	source->end = end;
}

/* Reads the window's bytes into a block that nothing else holds.  Reads again what was left in the
 * last window. */
static bool read_window(struct tally_source *source, size_t size, size_t left)
{
	bool is_ours = source->block && tally_block_is_ours(source->block);
	size_t shift = source->offset % 8; /* keeps records aligned as they are in the file */
	if (size > TALLY_BLOCK_BYTES - shift ||
	    (!is_ours && source->blocks->count >= BLOCKS_MAX && !source->blocks->unused))
		return false;
	struct tally_block *block = source->block;
	if (!is_ours)
		block = tally_block_take(source->blocks, TALLY_BLOCK_BYTES);
	size_t want = tally_min_u64(left, TALLY_BLOCK_BYTES - shift), got;
	if (!block)
		return false;
	if (!read_at(source, block->bytes + shift, want, &got) || got < size) {
		if (!is_ours)
			tally_block_drop(source->blocks, block);
		else
			set_window(source, block, block->bytes, 0);
		return false;
	}
	set_window(source, block, block->bytes + shift, got);
	return true;
}

/* Moves the window to the cursor, so that it contains `size` bytes.  The source must have that
 * many. */
static void move_window(struct tally_source *source, size_t size)
{
	size_t left = source->memory_size - (size_t)source->offset;
	if (source->reads && read_window(source, size, left))
		return;
	if (source->reads)
		left = tally_min_u64(left, tally_max_u64(size, TALLY_BLOCK_BYTES));
	set_window(source, NULL, source->memory + source->offset, left);
}

/* Makes room for one more read: moves the rest to the front of the block, or of a new block when
 * something else holds this one or it has too little room. */
static bool make_room(struct tally_source *source)
{
	struct tally_block *block = source->block;
	size_t left = in_window(source), capacity = TALLY_BLOCK_BYTES;
	if (block && block->capacity - source->end >= READ_BYTES_MIN)
		return true;
	if (block && tally_block_is_ours(block) && block->capacity - left >= block->capacity / 2) {
		memmove(block->bytes, source->window + source->used, left);
	} else {
		while (capacity < 2 * left)
			capacity *= 2;
		struct tally_block *next = tally_block_take(source->blocks, capacity);
		if (!next) {
			source->failure = -ENOMEM;
			return false;
		}
		if (left)
			memcpy(next->bytes, source->window + source->used, left);
		block = next;
	}
	set_window(source, block, block->bytes, left);
	return true;
}

static bool read_more(struct tally_source *source)
{
	size_t got;
	if (source->at_end || source->failure || !make_room(source))
		return false;
	if (!read_at(source, source->block->bytes + source->end,
		     source->block->capacity - source->end, &got))
		source->failure = -errno;
	else if (!got)
		source->at_end = true;
	source->end += got;
	return got > 0;
}

size_t tally_source_left(struct tally_source *source, size_t size)
{
	if (source->memory)
		return tally_saturating_sub_u64(source->memory_size, source->offset);
	while (in_window(source) < size)
		if (!read_more(source))
			break;
	return in_window(source);
}

const uint8_t *tally_source_peek(struct tally_source *source, size_t size)
{
	if (tally_source_left(source, size) < size)
		return NULL;
	if (in_window(source) < size)
		move_window(source, size);
	return source->window + source->used;
}

void tally_source_seek(struct tally_source *source, uint64_t offset)
{
	source->offset = tally_min_u64(offset, source->memory_size);
	set_window(source, NULL, NULL, 0);
}

bool tally_source_skip(struct tally_source *source, uint64_t size)
{
	if (size <= in_window(source)) {
		source->used += (size_t)size;
		source->offset += size;
		return true;
	}
	if (source->memory) {
		bool fits = size <= tally_source_left(source, 0);
		tally_source_seek(source, fits ? source->offset + size : source->memory_size);
		return fits;
	}
	while (size) {
		size_t left = tally_source_left(source, 1);
		size_t part = tally_min_u64(left, size);
		if (!part)
			return false;
		source->used += part;
		source->offset += part;
		size -= part;
	}
	return true;
}

void tally_source_release(struct tally_source *source)
{
	tally_block_drop(source->blocks, source->block);
	source->block = NULL;
}
