/* A tracepoint's layout: tracefs' events/GROUP/NAME/format (Documentation/trace/events.rst) as
 * data.
 *
 * Pure: text in, structures out.  Both the text (it may come from someone else's recording) and the
 * raw bytes of an event are untrusted: every access to raw bytes is bounded by their size.  A
 * parsed tracepoint doesn't change and may be read by many threads.
 */
#ifndef TALLY_TRACEPOINT_FORMAT_H
#define TALLY_TRACEPOINT_FORMAT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TALLY_TRACEPOINT_TEXT_MAX = 1 << 20 };

enum tally_field_place {
	TALLY_FIELD_FIXED,    /* the value stands at `offset` */
	/* there: offset | length << 16 of the value, from the record's start */
	TALLY_FIELD_DATA_LOC,
	TALLY_FIELD_REL_LOC,  /* the same, from the end of this word */
};

struct tally_tracepoint_field {
	const char *name;       /* "prev_comm" */
	const char *
		type; /* "char[16]", "__data_loc char[]": as declared, brackets moved to the type */
	uint32_t offset;        /* bytes from the record's start */
	uint32_t size_bytes;    /* in the fixed part */
	/* of an array; `size_bytes` otherwise; 0: the format doesn't tell */
	uint32_t element_bytes;
	enum tally_field_place place;
	bool is_common; /* common_type … common_pid */
	bool is_signed;
	bool is_array;
	bool is_string; /* an array of char or bytes */
	bool is_pointer;
	bool is_long;
};

/* What the recording machine was like; zero-initialised: 64-bit, this machine's byte order. */
struct tally_tracepoint_machine {
	unsigned long_bytes; /* 4 or 8; 0: 8 */
	bool swap;           /* the other byte order */
};

struct tally_tracepoint {
	const char *name;
	uint32_t id;
	const struct tally_tracepoint_field *fields; /* common ones first */
	size_t field_count;
	size_t common_count;
	const char *print_format; /* what stands behind "print fmt:"; "" when there is none */
	const char *text;         /* all of it, NUL-terminated */
	size_t text_length;
	unsigned long_bytes;
	bool swap;
};

/* Parses `length` bytes of a format file.  `machine` may be NULL.  0, -EBADMSG (with position) or
 * -ENOMEM.  Free with tally_tracepoint_free(). */
int tally_tracepoint_parse(const char *text, size_t length,
			   const struct tally_tracepoint_machine *machine,
			   struct tally_tracepoint **out, struct tally_error *err);

void tally_tracepoint_free(struct tally_tracepoint *tracepoint);

/* The field of that name, or NULL. */
const struct tally_tracepoint_field *tally_tracepoint_field(
	const struct tally_tracepoint *tracepoint, const char *name);

/* The field's number (1, 2, 4 or 8 bytes), without and with regard to its sign.  False when it is
 * not a number or stands outside the `size` bytes. */
bool tally_tracepoint_u64(const struct tally_tracepoint *tracepoint,
			  const struct tally_tracepoint_field *field, const void *raw, size_t size,
			  uint64_t *value);
bool tally_tracepoint_i64(const struct tally_tracepoint *tracepoint,
			  const struct tally_tracepoint_field *field, const void *raw, size_t size,
			  int64_t *value);

/* The field's bytes in place: what __data_loc and __rel_loc point at, the field itself otherwise.
 * False when they are not within the `size` bytes. */
bool tally_tracepoint_bytes(const struct tally_tracepoint *tracepoint,
			    const struct tally_tracepoint_field *field, const void *raw,
			    size_t size, const void **bytes, size_t *length);

/* The same up to the first NUL: not terminated within `length`. */
bool tally_tracepoint_string(const struct tally_tracepoint *tracepoint,
			     const struct tally_tracepoint_field *field, const void *raw,
			     size_t size, const char **text, size_t *length);

/* Elements of an array field (or 1), and one of them by index. */
size_t tally_tracepoint_elements(const struct tally_tracepoint *tracepoint,
				 const struct tally_tracepoint_field *field, const void *raw,
				 size_t size);
bool tally_tracepoint_element(const struct tally_tracepoint *tracepoint,
			      const struct tally_tracepoint_field *field, const void *raw,
			      size_t size, size_t index, uint64_t *value);

/* A number of 1, 2, 4 or 8 bytes at `offset`; false when it isn't one or isn't there. */
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

/* Bytes of an integer type by its name ("unsigned long", "__u16"); 0 when the name doesn't tell. */
unsigned tally_tracepoint_type_bytes(const char *type, size_t length, unsigned long_bytes);

#endif
