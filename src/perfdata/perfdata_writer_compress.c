/* COMPRESSED records: each contains one whole zstd frame of whole records.
 *
 * perf's own recorder runs one zstd stream through all of them.  Separate frames compress slightly
 * worse, but a reader can unpack them in any order and on any thread, and can go on behind a
 * damaged one.
 *
 * A record is smaller than 64 KiB.  The writer guesses from the last chunk's ratio how much to
 * compress, and halves the guess when the result doesn't fit. zstd gives up as soon as the output
 * is full, so a wrong guess costs little.
 *
 * If needed, a skippable frame in front makes the record's size a multiple of 8.  Then the records
 * behind it stay aligned and are read in place.  (It can't stand behind: perf 6.1's
 * zstd_decompress_stream() misplaces its output when more data follows the frame that wrote
 * output.)
 */
#include "perfdata/perfdata_writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHUNK_START = 256 << 10,
	CHUNK_MIN = 16 << 10,
	SKIPPABLE_HEADER = 8,
	PADDING_MAX = SKIPPABLE_HEADER + 7,
	HEADER = sizeof(struct tally_record_header),
	FRAME_MAX = TALLY_RECORD_SIZE_ALIGNED - HEADER - PADDING_MAX,
};

int tally_writer_compress_init(struct tally_perfdata_writer *writer, int level,
			       struct tally_error *err)
{
	if (level < 1 || level > ZSTD_maxCLevel())
		return tally_error_set(err, -EINVAL,
				       "there is no compression level %d; levels are 0 to %d",
				       level, ZSTD_maxCLevel());
	writer->compressor = ZSTD_createCCtx();
	writer->packed = malloc(TALLY_RECORD_SIZE_MAX);
	if (!writer->compressor || !writer->packed ||
	    ZSTD_isError(
		    ZSTD_CCtx_setParameter(writer->compressor, ZSTD_c_compressionLevel, level)))
		return tally_error_set(err, -ENOMEM, "no memory for the compressor");
	writer->level = level;
	writer->chunk_target = CHUNK_START;
	return 0;
}

/* Returns the packed record of `packed_size` bytes, or NULL when the frame doesn't fit in one
 * record. */
static const uint8_t *pack(struct tally_perfdata_writer *writer, const void *bytes, size_t size,
			   size_t *packed_size)
{
	uint8_t *frame = writer->packed + HEADER + PADDING_MAX;
	size_t length = ZSTD_compress2(writer->compressor, frame, FRAME_MAX, bytes, size);
	if (ZSTD_isError(length))
		return NULL;
	size_t padding = length % 8 ? SKIPPABLE_HEADER + 8 - length % 8 : 0;
	uint8_t *start = frame - padding - HEADER;
	*packed_size = HEADER + padding + length;
	struct tally_record_header header = { .type = TALLY_RECORD_COMPRESSED,
					      .size = (uint16_t)*packed_size };
	memcpy(start, &header, sizeof(header));
	if (padding) {
		uint32_t skippable[2] = { ZSTD_MAGIC_SKIPPABLE_START,
					  (uint32_t)(padding - SKIPPABLE_HEADER) };
		memset(start + HEADER, 0, padding);
		memcpy(start + HEADER, skippable, sizeof(skippable));
	}
	return start;
}

/* Returns the next chunk's size, which fills nine tenths of a record at this chunk's ratio. */
static size_t next_target(size_t size, size_t packed_size)
{
	size_t target = size * (FRAME_MAX - FRAME_MAX / 10) / packed_size;
	target = target > 2 * size ? 2 * size : target;
	target = target > TALLY_WRITER_PENDING_MAX ? TALLY_WRITER_PENDING_MAX : target;
	return target < CHUNK_MIN ? CHUNK_MIN : target;
}

/* Writes one chunk of `size` bytes as a COMPRESSED record, or plain when that is no longer.  Sets
 * `done` to 0 when the chunk must be halved. */
static int put_chunk(struct tally_perfdata_writer *writer, const uint8_t *bytes, size_t size,
		     size_t *done)
{
	size_t packed_size = 0;
	const uint8_t *packed = pack(writer, bytes, size, &packed_size);
	*done = size;
	if (packed && packed_size < size) {
		writer->chunk_target = next_target(size, packed_size);
		writer->chunk_largest = size > writer->chunk_largest ? size : writer->chunk_largest;
		writer->bytes_in += size;
		writer->bytes_out += packed_size;
		return tally_writer_put(writer, packed, packed_size);
	}
	if (packed || size <= CHUNK_MIN)
		return tally_writer_put_records(writer, bytes, size);
	*done = 0;
	return 0;
}

int tally_writer_put_compressed(struct tally_perfdata_writer *writer, const void *bytes,
				size_t size)
{
	const uint8_t *at = bytes, *end = at + size;
	while (at < end && !writer->failure) {
		size_t done, limit = writer->chunk_target;
		size_t left = (size_t)(end - at),
		       chunk = left <= limit ? left : tally_records_whole(at, left, limit);
		if (!chunk) /* one record larger than the target */
			chunk = tally_records_whole(at, (size_t)(end - at), TALLY_RECORD_SIZE_MAX);
		if (put_chunk(writer, at, chunk, &done) == 0 && !done && chunk > limit)
			tally_writer_put_records(writer, at, done = chunk);
		else if (!done)
			writer->chunk_target = limit / 2 > CHUNK_MIN ? limit / 2 : CHUNK_MIN;
		at += done;
	}
	return writer->failure;
}
