/* Opening COMPRESSED records.
 *
 * Output goes into blocks of one size, whatever a record claims to unpack to: a few bytes that zstd would blow up to
 * gigabytes cost time, not memory (unless they are held to be put in order), and RATIO_MAX bounds the time.  A record
 * torn by the end of a COMPRESSED record is completed by the next; one torn by the end of a block goes to the front of
 * another, or of the same when nobody holds it.
 */
#include "perfdata/perfdata_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN ((size_t)32 << 10) /* below it another block is filled */
#define RATIO_MAX 8192u                               /* 64 KiB stack copies that differ in a few bytes */
#define RATIO_FREE_BYTES ((uint64_t)4 << 20)

static int start(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	if (!unpacker->stream)
		unpacker->stream = ZSTD_createDStream();
	if (!unpacker->block)
		unpacker->block = tally_block_take(&data->blocks, TALLY_BLOCK_BYTES);
	return unpacker->stream && unpacker->block ? 0 : -ENOMEM;
}

/* Room to unpack into, behind what is left. */
static int make_room(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	struct tally_block *block = unpacker->block;
	size_t left = unpacker->end - unpacker->start;
	bool is_ours = block->holders == 1;
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

int tally_unpacker_feed(struct tally_perfdata *data, const uint8_t *record, uint64_t offset)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	struct tally_record_header header;
	memcpy(&header, record, sizeof(header));
	size_t head = sizeof(header), size = header.size - sizeof(header);
	if (header.type == TALLY_RECORD_COMPRESSED2) { /* padded: a word says how many bytes are meant */
		uint64_t meant = 0;
		head += sizeof(meant);
		if (header.size >= head)
			memcpy(&meant, record + sizeof(header), sizeof(meant));
		if (header.size < head || meant > header.size - head) {
			tally_perfdata_note_damage(data, true, offset, "a COMPRESSED2 record is longer than itself");
			return 0;
		}
		size = (size_t)meant;
	}
	unpacker->input = (ZSTD_inBuffer){ record + head, size, 0 };
	unpacker->has_input = true;
	unpacker->offset = offset;
	unpacker->bytes_in += size;
	return start(data);
}

/* Unpacks behind what is left: 1, 0 when there is nothing more to unpack, -ENOMEM. */
static int refill(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	if (!unpacker->has_input)
		return 0;
	if (make_room(data) < 0)
		return -ENOMEM;
	ZSTD_outBuffer output = { unpacker->block->bytes, unpacker->block->capacity, unpacker->end };
	size_t result = ZSTD_decompressStream(unpacker->stream, &output, &unpacker->input);
	unpacker->bytes_out += output.pos - unpacker->end;
	unpacker->end = output.pos;
	/* All input taken and room left in the output: zstd holds nothing back. */
	unpacker->has_input = unpacker->input.pos < unpacker->input.size || output.pos == output.size;
	if (ZSTD_isError(result)) {
		unpacker->has_input = false;
		tally_perfdata_note_damage(data, true, unpacker->offset, "compressed data can't be unpacked (%s)",
					   ZSTD_getErrorName(result));
	} else if (unpacker->bytes_out > RATIO_FREE_BYTES + RATIO_MAX * unpacker->bytes_in) {
		unpacker->has_input = false;
		tally_perfdata_note_damage(data, true, unpacker->offset,
					   "compressed data unpacks to more than recordings do");
	}
	return 1;
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
		memcpy(&header, unpacker->block->bytes + unpacker->start, sizeof(header));
		if (header.size < sizeof(header)) {
			tally_perfdata_note_damage(data, true, unpacker->offset,
						   "a compressed record claims a size of %u bytes", header.size);
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
}
