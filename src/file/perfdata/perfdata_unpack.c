/* Unpacks COMPRESSED records.
 *
 * Output goes into blocks of one size, regardless of a record's claims.  So a few bytes that zstd
 * would expand to gigabytes cost time, not memory (unless they are held to be ordered), and
 * TALLY_INPUT_COMPRESSED bounds the time.  A record torn by the end of a COMPRESSED record is completed by the
 * next one.  A record torn by the end of a block moves to the front of another block, or of the
 * same block when nothing else holds it.
 */
#include "base/input_limits.h"
#include "perfdata/perfdata_internal.h"

#include <errno.h>
#include <string.h>
#include <zstd_errors.h>

#define AHEAD_BYTES_MIN (1u << 20) /* compressed: some 20 ms of work */
#define ROOM_MIN ((size_t)32 << 10) /* with less room, fill another block */

static int start(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	if (!unpacker->stream)
		unpacker->stream = ZSTD_createDStream();
	if (!unpacker->block)
		unpacker->block = tally_block_take(&data->blocks, TALLY_BLOCK_BYTES);
	if (unpacker->stream && unpacker->block)
		return 0;
	return -ENOMEM;
}

/* Makes room for unpacking behind the bytes that are left. */
static int make_room(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	struct tally_block *block = unpacker->block;
	size_t left = unpacker->end - unpacker->start;
	bool is_ours = tally_block_is_ours(block);
	if (block->capacity - unpacker->end >= ROOM_MIN && !(is_ours && !left))
		return 0;
	if (!is_ours && !(block = tally_block_take(&data->blocks, TALLY_BLOCK_BYTES)))
		return -ENOMEM;
	memmove(block->bytes, unpacker->block->bytes + unpacker->start, left);
	if (!is_ours)
		tally_block_drop(&data->blocks, unpacker->block);
	unpacker->block = block;
	unpacker->start = 0;
	unpacker->end = left;
	return 0;
}

bool tally_compressed_bytes(const uint8_t *record, bool swap, size_t *head, size_t *size)
{
	const struct tally_record_header header = tally_header_at(record, swap);
	uint64_t meant = 0;
	*head = sizeof(header);
	*size = header.size - sizeof(header);
	if (header.type == TALLY_RECORD_COMPRESSED)
		return true;
	/* COMPRESSED2 is padded: a word stores the true number of bytes. */
	*head += sizeof(meant);
	if (header.size < *head)
		return false;
	memcpy(&meant, record + sizeof(header), sizeof(meant));
	meant = tally_disk_u64(meant, swap);
	*size = (size_t)meant;
	return meant <= header.size - *head;
}

bool tally_unpacks_too_much(uint64_t bytes_in, uint64_t bytes_out)
{
	return bytes_out > tally_input_limit_unpacked(TALLY_INPUT_COMPRESSED, bytes_in);
}

/* Starts a thread that unpacks ahead, when there is enough data. */
static void start_ahead(struct tally_perfdata *data, uint64_t offset)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	if (!unpacker->ahead_tried && data->source.memory &&
	    data->data_end <= data->source.memory_size &&
	    data->data_end - offset >= AHEAD_BYTES_MIN)
		unpacker->ahead = tally_unpack_ahead_start(data->source.memory, offset,
							   data->data_end, data->swap);
	unpacker->ahead_tried = true;
}

int tally_unpacker_feed(struct tally_perfdata *data, const uint8_t *record, uint64_t offset)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	size_t head, size;
	if (!tally_compressed_bytes(record, data->swap, &head, &size)) {
		tally_perfdata_note_damage(data, true, offset,
					   "a COMPRESSED2 record is longer than itself");
		return 0;
	}
	start_ahead(data, offset);
	unpacker->input = (ZSTD_inBuffer){ record + head, size, 0 };
	unpacker->has_input = true;
	unpacker->offset = offset;
	unpacker->bytes_in += size;
	if (unpacker->ahead)
		return 0;
	return start(data);
}

static void note_failure(struct tally_perfdata *data, enum tally_unpack_failure failure,
			 size_t zstd_result)
{
	char hint[TALLY_INPUT_HINT];
	if (failure)
		data->unpacker.has_input = false;
	if (failure == TALLY_UNPACK_DAMAGED)
		tally_perfdata_note_damage(data, true, data->unpacker.offset,
					   "compressed data can't be unpacked (%s)",
					   ZSTD_getErrorName(zstd_result));
	else if (failure == TALLY_UNPACK_BOMB)
		tally_perfdata_note_damage(data, true, data->unpacker.offset,
					   "compressed data unpacks to more than recordings do; %s",
					   tally_input_hint(TALLY_INPUT_COMPRESSED,
							    tally_input_limit(TALLY_INPUT_COMPRESSED), hint));
}

/* Unpacks more bytes behind those that are left. */
static int refill_here(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	if (make_room(data) < 0)
		return -ENOMEM;
	ZSTD_outBuffer output = { unpacker->block->bytes, unpacker->block->capacity,
				  unpacker->end };
	size_t result = ZSTD_decompressStream(unpacker->stream, &output, &unpacker->input);
	unpacker->bytes_out += output.pos - unpacker->end;
	unpacker->end = output.pos;
	/* All input taken and room left in the output: zstd holds nothing back. */
	unpacker->has_input = unpacker->input.pos < unpacker->input.size ||
			      output.pos == output.size;
	if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
		return -ENOMEM;
	if (ZSTD_isError(result))
		note_failure(data, TALLY_UNPACK_DAMAGED, result);
	else if (tally_unpacks_too_much(unpacker->bytes_in, unpacker->bytes_out))
		note_failure(data, TALLY_UNPACK_BOMB, 0);
	return 1;
}

/* Takes the thread's next piece.  Puts the bytes that are left in front of it when it is in another
 * block. */
static int refill_from_ahead(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	struct tally_unpacked piece;
	if (!tally_unpack_ahead_next(unpacker->ahead, &piece) ||
	    piece.failure == TALLY_UNPACK_NO_MEMORY)
		return -ENOMEM;
	if (piece.block == unpacker->block) {
		tally_block_drop(&data->blocks, piece.block);
	} else {
		size_t left = unpacker->end - unpacker->start; /* less than a record */
		piece.start -= left;
		if (left)
			memcpy(piece.block->bytes + piece.start,
			       unpacker->block->bytes + unpacker->start, left);
		tally_block_drop(&data->blocks, unpacker->block);
		unpacker->block = piece.block;
		unpacker->start = piece.start;
	}
	unpacker->end = piece.end;
	unpacker->has_input = !piece.is_last;
	note_failure(data, piece.failure, piece.zstd_result);
	return 1;
}

/* Gets more bytes behind those that are left.  Returns 1, 0 when there is nothing more to unpack,
 * -ENOMEM. */
static int refill(struct tally_perfdata *data)
{
	if (!data->unpacker.has_input)
		return 0;
	if (data->unpacker.ahead)
		return refill_from_ahead(data);
	return refill_here(data);
}

int tally_unpacker_next(struct tally_perfdata *data, const uint8_t **bytes)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	struct tally_record_header header;
	int more;
	do {
		size_t left = unpacker->end - unpacker->start;
		if (left < sizeof(header))
			continue;
		header = tally_header_at(unpacker->block->bytes + unpacker->start, data->swap);
		if (header.size < sizeof(header)) {
			tally_perfdata_note_damage(data, true, unpacker->offset,
						   "a compressed record claims a size of %u bytes",
						   header.size);
			unpacker->start = unpacker->end;
			unpacker->has_input = false;
			return 0;
		}
		if (left >= header.size) {
			*bytes = unpacker->block->bytes + unpacker->start;
			unpacker->start += header.size;
			return 1;
		}
	} while ((more = refill(data)) > 0);
	return more;
}

void tally_unpacker_release(struct tally_perfdata *data)
{
	ZSTD_freeDStream(data->unpacker.stream);
	tally_block_drop(&data->blocks, data->unpacker.block);
	tally_unpack_ahead_stop(data->unpacker.ahead);
}
