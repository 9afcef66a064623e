/* Writes JSON (RFC 8259), value by value, into a buffer.
 *
 * It keeps track of commas and nesting.  A NULL name means "inside an array".  Numbers are written
 * as in the C locale, whatever the program's is.  Bytes that are not UTF-8 become U+FFFD; characters
 * that are not plain (characters.h) are escaped, so that the text can be shown on a terminal.
 *
 *     struct tally_json json = { .out = &buffer };
 *     tally_json_object(&json, NULL);
 *     tally_json_text(&json, "name", "cycles");
 *     tally_json_end(&json); */
#ifndef TALLY_BASE_JSON_H
#define TALLY_BASE_JSON_H

#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALLY_JSON_DEPTH_MAX = 64 };

struct tally_json {
	struct tally_buffer *out;
	bool indent;  /* one line per member; otherwise compact */
	unsigned depth;
	bool is_array[TALLY_JSON_DEPTH_MAX];
	bool has_items[TALLY_JSON_DEPTH_MAX];
};

void tally_json_object(struct tally_json *json, const char *name);
void tally_json_array(struct tally_json *json, const char *name);
/* Closes the innermost object or array, and writes a newline behind the outermost. */
void tally_json_end(struct tally_json *json);

/* Appends `text` as a JSON string with its quotes, where another program's layout is wanted.  Readers
 * get back each character; a line of the text itself shows none that is not plain. */
void tally_json_quote(struct tally_buffer *out, const char *text);

/* a NULL value writes null */
void tally_json_text(struct tally_json *json, const char *name, const char *value);
void tally_json_u64(struct tally_json *json, const char *name, uint64_t value);
void tally_json_i64(struct tally_json *json, const char *name, int64_t value);
/* a value that isn't finite writes null */
void tally_json_double(struct tally_json *json, const char *name, double value);
void tally_json_bool(struct tally_json *json, const char *name, bool value);
void tally_json_null(struct tally_json *json, const char *name);

/* Writes the text, or null if it is empty: for arrays of char, where empty means unknown. */
static inline void tally_json_text_or_null(struct tally_json *json, const char *name,
					   const char *text)
{
	if (*text)
		tally_json_text(json, name, text);
	else
		tally_json_null(json, name);
}

/* Reads JSON (RFC 8259) by libjansson, which is loaded on first use, so that commands that only
 * count or sample don't pay for it.
 *
 * Values belong to their document.  Nothing here prints.  Only one thread at a time may read a
 * document. */

struct tally_json_document;
struct tally_json_value; /* opaque */

/* Reads the value at the beginning of `text`, and sets *used to its length; text behind it is left.
 * Returns 0; -EINVAL with a message that names the line; -ENOENT without the library; -ENOMEM. */
int tally_json_read(const char *text, size_t length, struct tally_json_document **out, size_t *used,
		    struct tally_error *err);
void tally_json_release(struct tally_json_document *document);
const struct tally_json_value *tally_json_root(const struct tally_json_document *document);

/* Return NULL if there is no such value, or if `value` is NULL or of another type: so look-ups can
 * be chained. */
const struct tally_json_value *tally_json_member(const struct tally_json_document *document,
						 const struct tally_json_value *value,
						 const char *name);
const struct tally_json_value *tally_json_item(const struct tally_json_document *document,
					       const struct tally_json_value *value, size_t index);
/* Returns the number of items in an array; 0 for other values. */
size_t tally_json_count(const struct tally_json_document *document,
			const struct tally_json_value *value);
/* Returns NULL if it isn't a string. */
const char *tally_json_string(const struct tally_json_document *document,
			      const struct tally_json_value *value);
/* Returns false if it isn't a number. */
bool tally_json_number(const struct tally_json_document *document,
		       const struct tally_json_value *value, double *out);
/* Returns true for the value `true` only. */
bool tally_json_is_true(const struct tally_json_value *value);

#endif
