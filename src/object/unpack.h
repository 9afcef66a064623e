/* Unpacks files and sections that are compressed as a whole: .gnu_debugdata, kernel modules.
 *
 * zstd is linked; liblzma and zlib are loaded on first use.  The bytes are untrusted: an output
 * above `size_max` counts as damage.
 */
#ifndef TALLY_OBJECT_UNPACK_H
#define TALLY_OBJECT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if the bytes begin like xz, zstd or gzip. */
bool tally_is_packed(const void *bytes, size_t size);

/* Unpacks the bytes into malloc'd memory.  Returns 0; -EBADMSG; -ENOMEM; -ENOPKG when the library
 * is not installed (liblzma5, zlib1g). */
int tally_unpack(const void *bytes, size_t size, size_t size_max, uint8_t **out, size_t *out_size);

#endif
