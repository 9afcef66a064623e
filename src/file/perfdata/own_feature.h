/* tally's own section: a sequence of parts, each with a type and compressed separately.
 * docs/file-format.md has the layout.
 *
 *     "TALLY255", version | type, 0, stored bytes, unpacked bytes, zstd frame | …
 *
 * A reader takes the parts that it knows and skips the others by their length.  All numbers are
 * little-endian, regardless of the recording's byte order.  The bytes are untrusted.
 */
#ifndef TALLY_PERFDATA_OWN_FEATURE_H
#define TALLY_PERFDATA_OWN_FEATURE_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tally_own_part {
	TALLY_OWN_STRINGS = 1,
	TALLY_OWN_FUNCTIONS,
	TALLY_OWN_PLACES,
	TALLY_OWN_STACKS,
	TALLY_OWN_JITS,
	TALLY_OWN_CODE,
	TALLY_OWN_SOURCES,
	TALLY_OWN_DECLARED,
	TALLY_OWN_AROUND,
	TALLY_OWN_CAUSES,
	TALLY_OWN_PARTIAL,
};

/* Starts a section in an empty buffer. */
void tally_own_feature_begin(struct tally_buffer *out);
/* Adds a part.  Failure sticks in `out`. */
void tally_own_feature_add(struct tally_buffer *out, enum tally_own_part type, const void *bytes,
			   size_t size);

/* Unpacks the first part of `type` into `out`; the caller releases it.  Returns 1, or 0 when there
 * is none; -EBADMSG when the section is damaged, -ENOTSUP when a newer tally made it, -EFBIG when
 * its parts unpack to more than the limit (noted, base/input_limits.h), -ENOMEM. */
int tally_own_feature_get(const void *section, size_t size, enum tally_own_part type,
			  struct tally_buffer *out);

/* Returns how much memory may be used for the tables that are made of parts of a section. */
uint64_t tally_own_tables_max(size_t section_size);
/* True if tables of `bytes` may be made; otherwise notes that they were refused. */
bool tally_own_tables_fit(uint64_t bytes, uint64_t bytes_max);

/* Appends a number as LEB128 (DWARF 5, 7.6), as tally_reader_uleb() reads it. */
void tally_own_put_number(struct tally_buffer *out, uint64_t value);

/* Appends a signed difference in zigzag: 0, −1, 1, −2 become 0, 1, 2, 3. */
void tally_own_put_step(struct tally_buffer *out, uint64_t step);

#endif
