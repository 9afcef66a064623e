/* Reads untrusted bytes: every read is bounded, errors stick.
 *
 * After a read past the end `failed` is set, and this and every later read returns 0 or NULL.  A
 * failed reader stands at its end, so a read needs only one comparison. */
#ifndef TALLY_BASE_READER_H
#define TALLY_BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tally_reader {
	const uint8_t *start;
	const uint8_t *at;
	const uint8_t *end;
	bool swap; /* multi-byte values have the other byte order */
	bool failed;
};

static inline void tally_reader_init(struct tally_reader *reader, const void *bytes, size_t length,
				     bool swap)
{
	/* NULL + 0 is undefined in C */
	*reader = (struct tally_reader){
		.start = bytes,
		.at = bytes,
		.end = length ? (const uint8_t *)bytes + length : bytes,
		.swap = swap,
	};
}

/* Marks the bytes as malformed. */
static inline void tally_reader_fail(struct tally_reader *reader)
{
	reader->at = reader->end;
	reader->failed = true;
}

static inline size_t tally_reader_left(const struct tally_reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

static inline size_t tally_reader_offset(const struct tally_reader *reader)
{
	return (size_t)(reader->at - reader->start);
}

/* Returns true if `length` more bytes can be read; otherwise fails. */
static inline bool tally_reader_need(struct tally_reader *reader, uint64_t length)
{
	if (__builtin_expect(tally_reader_left(reader) >= length, 1))
		return true;
	tally_reader_fail(reader);
	return false;
}

static inline void tally_reader_skip(struct tally_reader *reader, uint64_t length)
{
	if (tally_reader_need(reader, length))
		reader->at += length;
}

static inline uint8_t tally_reader_u8(struct tally_reader *reader)
{
	if (!tally_reader_need(reader, 1))
		return 0;
	return *reader->at++;
}

#define TALLY_READER_DEFINE(name, type, swapped) \
	static inline type name(struct tally_reader *reader) \
	{ \
		type value; \
		if (!tally_reader_need(reader, sizeof(value))) \
			return 0; \
		memcpy(&value, reader->at, sizeof(value)); \
		reader->at += sizeof(value); \
		return reader->swap ? swapped(value) : value; \
	}

TALLY_READER_DEFINE(tally_reader_u16, uint16_t, __builtin_bswap16)
TALLY_READER_DEFINE(tally_reader_u32, uint32_t, __builtin_bswap32)
TALLY_READER_DEFINE(tally_reader_u64, uint64_t, __builtin_bswap64)

#undef TALLY_READER_DEFINE

/* Reads an unsigned value of 1, 2, 3, 4 or 8 bytes; skips other sizes and returns 0. */
uint64_t tally_reader_fixed(struct tally_reader *reader, unsigned size);

/* LEB128 of DWARF 5, 7.6.  It may be padded to any length; bits beyond 64 are dropped. */
uint64_t tally_reader_long_uleb(struct tally_reader *reader);
int64_t tally_reader_long_sleb(struct tally_reader *reader);

static inline uint64_t tally_reader_uleb(struct tally_reader *reader)
{
	if (__builtin_expect(reader->at < reader->end && *reader->at < 0x80, 1))
		return *reader->at++;
	return tally_reader_long_uleb(reader);
}

static inline int64_t tally_reader_sleb(struct tally_reader *reader)
{
	if (__builtin_expect(reader->at < reader->end && *reader->at < 0x80, 1))
		return (int64_t)((uint64_t)*reader->at++ << 57) >> 57;
	return tally_reader_long_sleb(reader);
}

/* Reads unsigned LEB128 that must fit 32 bits. */
static inline uint32_t tally_reader_uleb32(struct tally_reader *reader)
{
	uint64_t value = tally_reader_uleb(reader);
	if (value > UINT32_MAX)
		tally_reader_fail(reader);
	if (reader->failed)
		return 0;
	return (uint32_t)value;
}

/* Returns `length` bytes in place, or NULL. */
static inline const void *tally_reader_bytes(struct tally_reader *reader, uint64_t length)
{
	if (!tally_reader_need(reader, length) || reader->failed)
		return NULL;
	const void *bytes = reader->at;
	reader->at += length;
	return bytes;
}

/* Returns a NUL-terminated string in place, or NULL. */
const char *tally_reader_string(struct tally_reader *reader);

/* The same for a string in a field of `room` bytes, which are skipped. */
const char *tally_reader_padded_string(struct tally_reader *reader, uint64_t room);

/* Moves to `offset` bytes from the start. */
static inline void tally_reader_seek(struct tally_reader *reader, uint64_t offset)
{
	if (reader->failed || offset > (size_t)(reader->end - reader->start))
		tally_reader_fail(reader);
	else
		reader->at = reader->start + offset;
}

#endif
