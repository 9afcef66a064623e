/* Compiled units as bytes: what the cache on the disk keeps of an object's lines.  Of this room
 * alone.
 *
 * The bytes are used where they lie, and are looked at only where an address needs it.  They may be
 * damaged: every offset and count is checked against the blob's size where it is used; what is
 * wrong inside gives wrong answers at worst.
 */
#ifndef TALLY_SYMBOL_LINES_CACHE_H
#define TALLY_SYMBOL_LINES_CACHE_H

#include "base/buffer.h"
#include "symbol/lines_unit.h"

enum { TALLY_LINES_CACHE_VERSION = 1 };

/* A blob's parts. */
struct tally_lines_blob {
	const uint8_t *bytes; /* NULL: there is none; aligned to 8 */
	uint64_t size;
	uint32_t unit_count, index_count;
	const struct tally_nested_item *index;
	const uint64_t *units; /* offset of each, or 0 */
	const char *strings;   /* the last byte is 0 */
	uint64_t strings_size;
};

/* False when the blob isn't one, or not of a source of this size. */
bool tally_lines_blob_open(struct tally_lines_blob *blob, const void *bytes, uint64_t size,
			   uint64_t source_size);

/* A unit of the blob, in place; false when it isn't there. */
bool tally_lines_blob_unit(const struct tally_lines_blob *blob, uint32_t index,
			   struct tally_lines_unit *out);

/* A string of a unit of the blob, or NULL. */
const char *tally_lines_blob_text(const struct tally_lines_blob *blob, uint32_t offset);

/* Makes a blob: units[i] is NULL where there is nothing to be kept.  `old` is the blob that units
 * without names of their own are from.  buffer->failed tells whether memory was out. */
void tally_lines_blob_write(struct tally_buffer *buffer, uint64_t source_size,
			    const struct tally_nested_item *index, size_t index_count,
			    const struct tally_lines_unit *const *units, size_t unit_count,
			    const struct tally_lines_blob *old);

#endif
