/* Reads untrusted bytes: every read is bounded, errors stick.
 *
 * After a read past the end `failed` is set, and this and every later read returns 0 or NULL. */
#ifndef TALLY_BASE_READER_H
#define TALLY_BASE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_reader {
	const uint8_t *start;
	const uint8_t *at;
	const uint8_t *end;
	bool swap; /* multi-byte values have the other byte order */
	bool failed;
};

void tally_reader_init(struct tally_reader *reader, const void *bytes, size_t length, bool swap);

uint8_t tally_reader_u8(struct tally_reader *reader);
uint16_t tally_reader_u16(struct tally_reader *reader);
uint32_t tally_reader_u32(struct tally_reader *reader);
uint64_t tally_reader_u64(struct tally_reader *reader);

/* LEB128 of DWARF 5, 7.6.  Bits beyond 64 are dropped; more than 10 bytes fail. */
uint64_t tally_reader_uleb(struct tally_reader *reader);
int64_t tally_reader_sleb(struct tally_reader *reader);

/* Returns `length` bytes in place, or NULL. */
const void *tally_reader_bytes(struct tally_reader *reader, size_t length);

/* Returns a NUL-terminated string in place, or NULL. */
const char *tally_reader_string(struct tally_reader *reader);

/* Moves to `offset` bytes from the start. */
void tally_reader_seek(struct tally_reader *reader, size_t offset);

static inline size_t tally_reader_left(const struct tally_reader *reader)
{
	return reader->failed ? 0 : (size_t)(reader->end - reader->at);
}

static inline size_t tally_reader_offset(const struct tally_reader *reader)
{
	return (size_t)(reader->at - reader->start);
}

#endif
