/* Compiled units as bytes, for the cache on disk.  Internal to this folder.
 *
 * The bytes are used in place, and only where an address needs them.  They may be damaged: every
 * offset and count is checked against the blob's size where it is used.  Damage gives wrong answers
 * at worst.
 */
#ifndef TALLY_SYMBOL_LINES_CACHE_H
#define TALLY_SYMBOL_LINES_CACHE_H

#include "base/buffer.h"
#include "symbol/lines_unit.h"

enum { TALLY_LINES_CACHE_VERSION = 2 };

/* The parts of a blob. */
struct tally_lines_blob {
	const uint8_t *bytes; /* NULL: no blob; aligned to 8 */
	uint64_t size;
	uint32_t unit_count, index_count;
	const struct tally_nested_item *index;
	const uint64_t *units; /* offset of each unit, or 0 */
	const char *strings;   /* the last byte is 0 */
	uint64_t strings_size;
};

/* Opens a blob.  Returns false when the bytes are no blob, or when it was made from a file of
 * another size. */
bool tally_lines_blob_open(struct tally_lines_blob *blob, const void *bytes, uint64_t size,
			   uint64_t source_size);

/* Gets a unit of the blob, in place.  Returns false when the blob lacks it. */
bool tally_lines_blob_unit(const struct tally_lines_blob *blob, uint32_t index,
			   struct tally_lines_unit *out);

/* Returns a string of one of the blob's units, or NULL. */
const char *tally_lines_blob_text(const struct tally_lines_blob *blob, uint32_t offset);

/* Makes a blob; units[i] is NULL for a unit that is not kept.  Units without names of their own
 * take them from `old`, the blob that they came from. buffer->failed is set without memory. */
void tally_lines_blob_write(struct tally_buffer *buffer, uint64_t source_size,
			    const struct tally_nested_item *index, size_t index_count,
			    const struct tally_lines_unit *const *units, size_t unit_count,
			    const struct tally_lines_blob *old);

#endif
