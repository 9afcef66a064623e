/* Writes JSON (RFC 8259), value by value, into a buffer.
 *
 * It keeps track of commas and nesting.  A NULL name means "inside an array".  Numbers are written
 * as in the C locale, whatever the program's is.  Bytes that are not UTF-8 become U+FFFD.
 *
 *     struct tally_json json = { .out = &buffer };
 *     tally_json_object(&json, NULL);
 *     tally_json_text(&json, "name", "cycles");
 *     tally_json_end(&json); */
#ifndef TALLY_BASE_JSON_H
#define TALLY_BASE_JSON_H

#include "base/buffer.h"

#include <stdbool.h>
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

/* a NULL value writes null */
void tally_json_text(struct tally_json *json, const char *name, const char *value);
void tally_json_u64(struct tally_json *json, const char *name, uint64_t value);
void tally_json_i64(struct tally_json *json, const char *name, int64_t value);
/* a value that isn't finite writes null */
void tally_json_double(struct tally_json *json, const char *name, double value);
void tally_json_bool(struct tally_json *json, const char *name, bool value);
void tally_json_null(struct tally_json *json, const char *name);

#endif
