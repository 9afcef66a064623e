/* Reading JSON (RFC 8259), by libjansson, which is loaded when it is first needed: what only counts
 * or samples does not pay for it.
 *
 * Values belong to their document.  Nothing here prints; a document may be read by one thread at a
 * time. */
#ifndef TALLY_BASE_JSON_READER_H
#define TALLY_BASE_JSON_READER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct tally_json_document;
struct tally_json_value; /* opaque */

/* The value that `text` begins with; what stands behind it is left, *used tells how much was read.
 * 0; -EINVAL with words that name the line; -ENOENT without the library; -ENOMEM. */
int tally_json_read(const char *text, size_t length, struct tally_json_document **out, size_t *used,
		    struct tally_error *err);
void tally_json_release(struct tally_json_document *document);
const struct tally_json_value *tally_json_root(const struct tally_json_document *document);

/* NULL where there is none, or `value` is NULL or of another type: so look-ups can be chained. */
const struct tally_json_value *tally_json_member(const struct tally_json_document *document,
						 const struct tally_json_value *value,
						 const char *name);
const struct tally_json_value *tally_json_item(const struct tally_json_document *document,
					       const struct tally_json_value *value, size_t index);
/* Items of an array; else 0. */
size_t tally_json_count(const struct tally_json_document *document,
			const struct tally_json_value *value);
/* NULL when it is no string. */
const char *tally_json_string(const struct tally_json_document *document,
			      const struct tally_json_value *value);
/* False when it is no number. */
bool tally_json_number(const struct tally_json_document *document,
		       const struct tally_json_value *value, double *out);
/* False when it is none, or false. */
bool tally_json_is_true(const struct tally_json_value *value);

#endif
