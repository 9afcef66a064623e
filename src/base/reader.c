#include "base/reader.h"

#include <string.h>

void tally_reader_init(struct tally_reader *reader, const void *bytes, size_t length, bool swap)
{
	*reader = (struct tally_reader){
		.start = bytes, .at = bytes, .end = (const uint8_t *)bytes + length, .swap = swap
	};
}

const void *tally_reader_bytes(struct tally_reader *reader, size_t length)
{
	if (reader->failed || (size_t)(reader->end - reader->at) < length) {
		reader->failed = true;
		return NULL;
	}
	const void *bytes = reader->at;
	reader->at += length;
	return bytes;
}

uint8_t tally_reader_u8(struct tally_reader *reader)
{
	const uint8_t *bytes = tally_reader_bytes(reader, 1);
	return bytes ? *bytes : 0;
}

#define DEFINE_READ(name, type, swapped) \
	type name(struct tally_reader *reader) \
	{ \
		const void *bytes = tally_reader_bytes(reader, sizeof(type)); \
		if (!bytes) \
			return 0; \
		type value; \
		memcpy(&value, bytes, sizeof(value)); \
		return reader->swap ? swapped(value) : value; \
	}

DEFINE_READ(tally_reader_u16, uint16_t, __builtin_bswap16)
DEFINE_READ(tally_reader_u32, uint32_t, __builtin_bswap32)
DEFINE_READ(tally_reader_u64, uint64_t, __builtin_bswap64)

static uint64_t leb(struct tally_reader *reader, bool is_signed)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte = tally_reader_u8(reader);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (is_signed && (byte & 0x40) && shift + 7 < 64)
			value |= ~(uint64_t)0 << (shift + 7);
		return reader->failed ? 0 : value;
	}
	reader->failed = true;
	return 0;
}

uint64_t tally_reader_uleb(struct tally_reader *reader)
{
	return leb(reader, false);
}

int64_t tally_reader_sleb(struct tally_reader *reader)
{
	return (int64_t)leb(reader, true);
}

const char *tally_reader_string(struct tally_reader *reader)
{
	const uint8_t *end = reader->failed
				     ? NULL
				     : memchr(reader->at, 0, (size_t)(reader->end - reader->at));
	if (!end) {
		reader->failed = true;
		return NULL;
	}
	const char *text = (const char *)reader->at;
	reader->at = end + 1;
	return text;
}

void tally_reader_seek(struct tally_reader *reader, size_t offset)
{
	if (reader->failed || offset > (size_t)(reader->end - reader->start))
		reader->failed = true;
	else
		reader->at = reader->start + offset;
}
