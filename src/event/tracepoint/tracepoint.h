/* Tracepoints: a format's fields, and an event's text. */
#ifndef TALLY_EVENT_TRACEPOINT_H
#define TALLY_EVENT_TRACEPOINT_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tally_print;

/* A tracepoint's layout, parsed from tracefs' events/GROUP/NAME/format
 * (Documentation/trace/events.rst).
 *
 * Pure: text in, structures out.  The text (which may come from another machine's recording) and an
 * event's raw bytes are untrusted: every access to raw bytes is bounded by their size.  A parsed
 * tracepoint doesn't change, and many threads may read it.
 */

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

/* Turns a tracepoint's raw bytes into the text that `perf script` shows.  The print format is
 * compiled once and then run for each event.
 *
 * Wherever libtraceevent (perf's printer) understands the format, the text equals its output byte
 * for byte; print_parse.c lists where that library errs and we don't.  A format that we can't
 * compile prints the fields as name=value.
 *
 * Strings in events come from the traced programs: the text may contain terminal escapes, which the
 * caller must clean.
 */

/* Names that the text needs and the event lacks.  Each function may be NULL. */
struct tally_print_names {
	void *context;
	/* Returns the kernel function that contains `address`, for %pS and the like, and its start;
	 * NULL: unknown. */
	const char *(*function)(void *context, uint64_t address, uint64_t *start);
	/* Returns the kernel's string at `address` (tracefs' printk_formats), for %s of a pointer;
	 * NULL: unknown. */
	const char *(*string)(void *context, uint64_t address);
};

enum { TALLY_PRINT_TEXT_MAX = 1 << 16 }; /* the kernel's own limit is two pages */

enum tally_print_means {
	TALLY_PRINT_COMPILED,
	TALLY_PRINT_FIELDS,  /* "[FAILED TO PARSE] name=value …", as perf prints it */
};

/* Compiles the print format.  `tracepoint` must outlive the program.  Returns 0 or -ENOMEM: a
 * format that can't be compiled prints the fields, and `why` (may be NULL) says what was not
 * understood.  Free with tally_print_free(). */
int tally_print_compile(const struct tally_tracepoint *tracepoint, struct tally_print **out,
			struct tally_error *why);

void tally_print_free(struct tally_print *print);

enum tally_print_means tally_print_means(const struct tally_print *print);

/* Appends the text of the event in `size` raw bytes (PERF_SAMPLE_RAW), without a newline.  `names`
 * may be NULL.  Any bytes are safe: a value outside of them prints as 0 or as nothing.  The
 * text is at most TALLY_PRINT_TEXT_MAX bytes; a longer one is cut and ends with "[LINE TOO BIG]", as
 * the kernel's own.  Many threads may print at once. */
void tally_print_event(const struct tally_print *print, const void *raw, size_t size,
		       const struct tally_print_names *names, struct tally_buffer *out);

/* Appends " name=value" for each field except the common ones, and cuts the text like
 * tally_print_event(). */
void tally_print_fields(const struct tally_tracepoint *tracepoint, const void *raw, size_t size,
			struct tally_buffer *out);

/* tracefs' printk_formats: strings of the kernel that events point to, by address.
 *
 *     0xffffffff82522880 : "mas_find"
 *
 * Pure; untrusted text.  The table doesn't change after parsing.
 */

struct tally_printk_string {
	uint64_t address;
	/* without its quotes and a final \n; other escapes are unresolved, as in perf */
	const char *text;
};

struct tally_printk {
	struct tally_arena arena;
	struct tally_printk_string *strings; /* sorted by address */
	size_t count;
};

/* Parses the file; skips lines of another form.  Returns 0 or -ENOMEM.  A zero-initialised table is
 * empty. */
int tally_printk_parse(struct tally_printk *printk, const char *text, size_t length);

/* Returns the string at exactly `address`, or NULL.  `printk` is a struct tally_printk; the type
 * fits struct tally_print_names. */
const char *tally_printk_find(void *printk, uint64_t address);

void tally_printk_release(struct tally_printk *printk);

#endif
