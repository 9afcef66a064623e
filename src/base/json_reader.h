/* Reads JSON (RFC 8259) by libjansson, which is loaded on first use, so that commands that only
 * count or sample don't pay for it.
 *
 * Values belong to their document.  Nothing here prints.  Only one thread at a time may read a
 * document. */
#ifndef TALLY_BASE_JSON_READER_H
#define TALLY_BASE_JSON_READER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

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
