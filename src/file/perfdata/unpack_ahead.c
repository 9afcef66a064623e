/* The thread puts pieces into a queue of fixed size, and waits while it is full.  A piece refers to
 * a part of a block, and the thread goes on in the same block until little room is left. */
#include "perfdata/perfdata_internal.h"

#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <zstd_errors.h>

enum {
	/* space in front of the unpacked bytes, for the beginning of a torn record */
	TORN_BYTES = 64 << 10,
	ROOM_MIN = 32 << 10,
	QUEUE = 16,
};

struct tally_unpack_ahead {
	const uint8_t *file;
	uint64_t offset, end;
	bool swap; /* the file is of the other byte order */
	pthread_t thread;
	struct tally_block_stock stock;

	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	struct tally_unpacked queue[QUEUE];
	unsigned first, count;
	bool is_done, is_stopped;
};

/* The thread's own state. */
struct work {
	struct tally_unpack_ahead *ahead;
	ZSTD_DStream *stream;
	struct tally_block *block;
	size_t at; /* offset in the block of the next unpacked byte */
	uint64_t bytes_in, bytes_out;
};

/* Queues a piece.  Returns false when the reader has stopped. */
static bool hand_over(struct tally_unpack_ahead *ahead, const struct tally_unpacked *piece)
{
	pthread_mutex_lock(&ahead->lock);
	while (ahead->count == QUEUE && !ahead->is_stopped)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	bool wanted = !ahead->is_stopped;
	if (wanted) {
		tally_block_hold(piece->block);
		ahead->queue[(ahead->first + ahead->count++) % QUEUE] = *piece;
		pthread_cond_broadcast(&ahead->changed);
	}
	pthread_mutex_unlock(&ahead->lock);
	return wanted;
}

bool tally_unpack_ahead_next(struct tally_unpack_ahead *ahead, struct tally_unpacked *piece)
{
	pthread_mutex_lock(&ahead->lock);
	while (!ahead->count && !ahead->is_done)
		pthread_cond_wait(&ahead->changed, &ahead->lock);
	bool found = ahead->count > 0;
	if (found) {
		*piece = ahead->queue[ahead->first];
		ahead->first = (ahead->first + 1) % QUEUE;
		ahead->count--;
		pthread_cond_broadcast(&ahead->changed);
	}
	pthread_mutex_unlock(&ahead->lock);
	return found;
}

/* Takes another block when this one has little room.  Records keep the stream's alignment. */
static bool make_room(struct work *work)
{
	if (work->block && work->block->capacity - work->at >= ROOM_MIN)
		return true;
	tally_block_drop(NULL, work->block);
	work->block = tally_block_stock_take(&work->ahead->stock, TORN_BYTES + TALLY_BLOCK_BYTES);
	work->at = TORN_BYTES + work->bytes_out % 8;
	return work->block != NULL;
}

/* Unpacks one COMPRESSED record.  Returns false when the thread must end. */
static bool unpack(struct work *work, const uint8_t *bytes, size_t size)
{
	ZSTD_inBuffer input = { bytes, size, 0 };
	struct tally_unpacked piece = { 0 };
	work->bytes_in += size;
	do {
		if (!make_room(work)) {
			piece = (struct tally_unpacked){ .is_last = true,
							 .failure = TALLY_UNPACK_NO_MEMORY };
			hand_over(work->ahead, &piece);
			return false;
		}
		ZSTD_outBuffer output = { work->block->bytes, work->block->capacity, work->at };
		size_t result = ZSTD_decompressStream(work->stream, &output, &input);
		piece.block = work->block;
		piece.start = work->at;
		piece.end = work->at = output.pos;
		work->bytes_out += piece.end - piece.start;
		piece.is_last = input.pos == input.size && output.pos < output.size;
		if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
			piece.failure = TALLY_UNPACK_NO_MEMORY;
		else if (ZSTD_isError(result))
			piece.failure = TALLY_UNPACK_DAMAGED;
		else if (tally_unpacks_too_much(work->bytes_in, work->bytes_out))
			piece.failure = TALLY_UNPACK_BOMB;
		piece.zstd_result = result;
		if (!hand_over(work->ahead, &piece))
			return false;
	} while (!piece.is_last && !piece.failure);
	return !piece.failure;
}

/* Walks the file like the reader.  It stops where the reader would stop, so the reader never waits
 * for a piece that doesn't come. */
static void walk(struct work *work)
{
	const struct tally_unpack_ahead *ahead = work->ahead;
	for (uint64_t offset = ahead->offset;
	     ahead->end - offset >= sizeof(struct tally_record_header);) {
		const uint8_t *record = ahead->file + offset;
		const struct tally_record_header header = tally_header_at(record, ahead->swap);
		size_t head, size;
		if (header.size < sizeof(header) || header.size > ahead->end - offset)
			return;
		if (tally_record_is_compressed(&header) &&
		    (!tally_compressed_bytes(record, ahead->swap, &head, &size) ||
		     !unpack(work, record + head, size)))
			return;
		uint64_t payload = tally_record_payload(record, ahead->swap);
		offset += header.size;
		if (payload > ahead->end - offset)
			return;
		offset += payload;
	}
}

static void *run(void *context)
{
	struct tally_unpack_ahead *ahead = context;
	struct work work = { .ahead = ahead, .stream = ZSTD_createDStream() };
	struct tally_unpacked no_memory = { .is_last = true,
					    .failure = TALLY_UNPACK_NO_MEMORY };
	if (work.stream)
		walk(&work);
	else
		hand_over(ahead, &no_memory);
	tally_block_drop(NULL, work.block);
	ZSTD_freeDStream(work.stream);
	pthread_mutex_lock(&ahead->lock);
	ahead->is_done = true;
	pthread_cond_broadcast(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

static bool has_second_cpu(void)
{
	cpu_set_t set;
	return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1;
}

static void release(struct tally_unpack_ahead *ahead)
{
	tally_block_stock_release(&ahead->stock);
	pthread_cond_destroy(&ahead->changed);
	pthread_mutex_destroy(&ahead->lock);
	free(ahead);
}

struct tally_unpack_ahead *tally_unpack_ahead_start(const uint8_t *file, uint64_t offset,
						    uint64_t end, bool swap)
{
	struct tally_unpack_ahead *ahead = NULL;
	if (has_second_cpu())
		ahead = calloc(1, sizeof(*ahead));
	if (!ahead)
		return NULL;
	ahead->file = file;
	ahead->offset = offset;
	ahead->end = end;
	ahead->swap = swap;
	tally_block_stock_init(&ahead->stock);
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	if (!tally_thread_start(&ahead->thread, run, ahead))
		return ahead;
	release(ahead);
	return NULL;
}

void tally_unpack_ahead_stop(struct tally_unpack_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->is_stopped = true;
	pthread_cond_broadcast(&ahead->changed);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	for (; ahead->count; ahead->count--, ahead->first = (ahead->first + 1) % QUEUE)
		tally_block_drop(NULL, ahead->queue[ahead->first].block);
	release(ahead);
}
