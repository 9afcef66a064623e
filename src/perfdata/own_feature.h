/* tally's own section: parts, each of a type, each compressed by itself.  docs/file-format.md has
 * the layout.
 *
 *     "TALLY255", version | type, 0, stored bytes, unpacked bytes, zstd frame | …
 *
 * A reader takes the parts that it knows and skips the others by their length.  All numbers are
 * little-endian, whatever the recording's byte order.  The bytes are untrusted.
 */
#ifndef TALLY_PERFDATA_OWN_FEATURE_H
#define TALLY_PERFDATA_OWN_FEATURE_H

#include "base/buffer.h"

enum tally_own_part {
	TALLY_OWN_STRINGS = 1,
	TALLY_OWN_FUNCTIONS,
	TALLY_OWN_PLACES,
	TALLY_OWN_STACKS,
	TALLY_OWN_JITS,
	TALLY_OWN_CODE,
	TALLY_OWN_SOURCES,
};

/* Starts a section in an empty buffer. */
void tally_own_feature_begin(struct tally_buffer *out);
/* Adds a part.  Failure sticks in `out`. */
void tally_own_feature_add(struct tally_buffer *out, enum tally_own_part type, const void *bytes,
			   size_t size);

/* The first part of a type, unpacked into `out` (released by the caller): 1; 0 where there is none;
 * -EBADMSG when the section is damaged, -ENOTSUP when a newer tally made it, -ENOMEM. */
int tally_own_feature_get(const void *section, size_t size, enum tally_own_part type,
			  struct tally_buffer *out);

/* LEB128 of DWARF 5, 7.6, as tally_reader_uleb() reads it. */
void tally_own_put_number(struct tally_buffer *out, uint64_t value);

/* A step in either direction, in zigzag: 0, −1, 1, −2 are 0, 1, 2, 3. */
void tally_own_put_step(struct tally_buffer *out, uint64_t step);

#endif
