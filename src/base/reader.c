/* The slower parts of the reader, which the header does not inline: values of a size that is known
 * only at run time, long LEB128, and strings. */
#include "base/reader.h"

uint64_t tally_reader_fixed(struct tally_reader *reader, unsigned size)
{
	switch (size) {
	case 1:
		return tally_reader_u8(reader);
	case 2:
		return tally_reader_u16(reader);
	case 3: {
		const uint8_t *bytes = tally_reader_bytes(reader, 3);
		bool is_big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != reader->swap;
		if (!bytes)
			return 0;
		if (is_big)
			return (uint64_t)bytes[0] << 16 | (uint64_t)bytes[1] << 8 | bytes[2];
		return (uint64_t)bytes[2] << 16 | (uint64_t)bytes[1] << 8 | bytes[0];
	}
	case 4:
		return tally_reader_u32(reader);
	case 8:
		return tally_reader_u64(reader);
	default:
		tally_reader_skip(reader, size);
		return 0;
	}
}

static inline uint64_t leb(struct tally_reader *reader, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;
	do {
		byte = tally_reader_u8(reader);
		if (shift < 64) {
			value |= (uint64_t)(byte & 0x7f) << shift;
			shift += 7;
		}
	} while (byte & 0x80);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= ~(uint64_t)0 << shift;
	if (reader->failed)
		return 0;
	return value;
}

uint64_t tally_reader_long_uleb(struct tally_reader *reader)
{
	return leb(reader, false);
}

int64_t tally_reader_long_sleb(struct tally_reader *reader)
{
	return (int64_t)leb(reader, true);
}

const char *tally_reader_string(struct tally_reader *reader)
{
	const uint8_t *end = NULL;
	if (!reader->failed)
		end = memchr(reader->at, 0, tally_reader_left(reader));
	if (!end) {
		tally_reader_fail(reader);
		return NULL;
	}
	const char *text = (const char *)reader->at;
	reader->at = end + 1;
	return text;
}

const char *tally_reader_padded_string(struct tally_reader *reader, uint64_t room)
{
	const char *text = tally_reader_bytes(reader, room);
	if (text && memchr(text, 0, room))
		return text;
	tally_reader_fail(reader);
	return NULL;
}
