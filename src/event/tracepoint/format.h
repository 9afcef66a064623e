/* A tracepoint's layout, parsed from tracefs' events/GROUP/NAME/format
 * (Documentation/trace/events.rst).
 *
 * Pure: text in, structures out.  The text (which may come from another machine's recording) and an
 * event's raw bytes are untrusted: every access to raw bytes is bounded by their size.  A parsed
 * tracepoint doesn't change, and many threads may read it.
 */
#ifndef TALLY_TRACEPOINT_FORMAT_H
#define TALLY_TRACEPOINT_FORMAT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The longest text, in bytes, and the most fields (the kernels' own have up to 41). */
enum { TALLY_TRACEPOINT_TEXT_MAX = 1 << 20, TALLY_TRACEPOINT_FIELDS_MAX = 256 };

enum tally_field_place {
	TALLY_FIELD_FIXED,    /* the value is at `offset` */
	/* at `offset` is a word: offset of the value from the record's start | length << 16 */
	TALLY_FIELD_DATA_LOC,
	TALLY_FIELD_REL_LOC,  /* the same, with an offset from the end of this word */
};

struct tally_tracepoint_field {
	const char *name;       /* "prev_comm" */
	const char *
		type; /* as declared, brackets after the type: "char[16]", "__data_loc char[]" */
	uint32_t offset;        /* bytes from the record's start */
	uint32_t size_bytes;    /* bytes in the fixed part */
	/* of an array's elements; otherwise `size_bytes`; 0: unknown */
	uint32_t element_bytes;
	enum tally_field_place place;
	bool is_signed;
	bool is_array;
	bool is_string; /* an array of char or bytes */
	bool is_pointer;
	bool is_long;
};

/* Properties of the recording machine.  Zero-initialised: 64-bit, this machine's byte order. */
struct tally_tracepoint_machine {
	unsigned long_bytes; /* 4 or 8; 0 means 8 */
	bool swap;           /* true: the other byte order */
};

struct tally_tracepoint {
	const char *name;
	uint32_t id;
	const struct tally_tracepoint_field *fields; /* common ones first */
	size_t field_count;
	size_t common_count;
	const char *print_format; /* the text after "print fmt:", or "" */
	const char *text;         /* the whole file, NUL-terminated */
	size_t text_length;
	unsigned long_bytes;
	bool swap;
};

/* Parses `length` bytes of a format file.  `machine` may be NULL.  Returns 0, -EBADMSG (with
 * position) or -ENOMEM.  Free with tally_tracepoint_free(). */
int tally_tracepoint_parse(const char *text, size_t length,
			   const struct tally_tracepoint_machine *machine,
			   struct tally_tracepoint **out, struct tally_error *err);

void tally_tracepoint_free(struct tally_tracepoint *tracepoint);

/* Returns the field of that name, or NULL. */
const struct tally_tracepoint_field *tally_tracepoint_field(
	const struct tally_tracepoint *tracepoint, const char *name);

/* Gets the field's number (1, 2, 4 or 8 bytes), not sign-extended.  Returns false when it is no
 * number or not within the `size` bytes. */
bool tally_tracepoint_u64(const struct tally_tracepoint *tracepoint,
			  const struct tally_tracepoint_field *field, const void *raw, size_t size,
			  uint64_t *value);

/* Gets the field's bytes in place: for __data_loc and __rel_loc the bytes that they refer to,
 * otherwise the field itself.  Returns false when they are not within the `size` bytes. */
bool tally_tracepoint_bytes(const struct tally_tracepoint *tracepoint,
			    const struct tally_tracepoint_field *field, const void *raw,
			    size_t size, const void **bytes, size_t *length);

/* Reads a number of 1, 2, 4 or 8 bytes at `offset`.  Returns false for other sizes or beyond the
 * end. */
static inline bool tally_tracepoint_number(const struct tally_tracepoint *tracepoint,
					   const void *raw, size_t size, size_t offset,
					   size_t bytes, uint64_t *value)
{
	if (offset > size || bytes > size - offset)
		return false;
	const uint8_t *at = (const uint8_t *)raw + offset;
	uint16_t half;
	uint32_t word;
	switch (bytes) {
	case 1:
		*value = *at;
		return true;
	case 2:
		memcpy(&half, at, 2);
		*value = tracepoint->swap ? __builtin_bswap16(half) : half;
		return true;
	case 4:
		memcpy(&word, at, 4);
		*value = tracepoint->swap ? __builtin_bswap32(word) : word;
		return true;
	case 8:
		memcpy(value, at, 8);
		if (tracepoint->swap)
			*value = __builtin_bswap64(*value);
		return true;
	default:
		return false;
	}
}

/* Returns the bytes of an integer type by its name ("unsigned long", "__u16"); 0 for other
 * names. */
unsigned tally_tracepoint_type_bytes(const char *type, size_t length, unsigned long_bytes);

#endif
