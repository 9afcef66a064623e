/* Opening COMPRESSED records.
 *
 * Output goes through one window, whatever a record claims to unpack to: a few bytes that zstd would blow up to
 * gigabytes cost time, not memory, and RATIO_MAX bounds the time.  A record torn by the end of the window or of a
 * COMPRESSED record is moved to the front and completed by the next.
 */
#include "perfdata/perfdata_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES (((size_t)1 << 20) + (64 << 10)) /* tally's largest chunk behind a torn record */
#define RATIO_MAX 8192u                               /* 64 KiB stack copies that differ in a few bytes */
#define RATIO_FREE_BYTES ((uint64_t)4 << 20)

static int start(struct tally_unpacker *unpacker)
{
	if (!unpacker->stream)
		unpacker->stream = ZSTD_createDStream();
	if (!unpacker->window)
		unpacker->window = malloc(WINDOW_BYTES);
	return unpacker->stream && unpacker->window ? 0 : -ENOMEM;
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
	return start(unpacker);
}

/* Unpacks into the window behind what is left of it; false when there is nothing more to unpack. */
static bool refill(struct tally_perfdata *data)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	if (!unpacker->has_input)
		return false;
	memmove(unpacker->window, unpacker->window + unpacker->start, unpacker->end - unpacker->start);
	unpacker->end -= unpacker->start;
	unpacker->start = 0;
	ZSTD_outBuffer output = { unpacker->window, WINDOW_BYTES, unpacker->end };
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
	return true;
}

int tally_unpacker_next(struct tally_perfdata *data, const uint8_t **bytes)
{
	struct tally_unpacker *unpacker = &data->unpacker;
	struct tally_record_header header;
	do {
		size_t left = unpacker->end - unpacker->start;
		if (left < sizeof(header))
			continue;
		memcpy(&header, unpacker->window + unpacker->start, sizeof(header));
		if (header.size < sizeof(header)) {
			tally_perfdata_note_damage(data, true, unpacker->offset,
						   "a compressed record claims a size of %u bytes", header.size);
			unpacker->start = unpacker->end;
			unpacker->has_input = false;
			return 0;
		}
		if (left >= header.size) {
			*bytes = unpacker->window + unpacker->start;
			unpacker->start += header.size;
			return 1;
		}
	} while (refill(data));
	return 0;
}

void tally_unpacker_release(struct tally_unpacker *unpacker)
{
	ZSTD_freeDStream(unpacker->stream);
	free(unpacker->window);
}
