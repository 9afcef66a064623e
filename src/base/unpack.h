/* Unpacks files and sections that are compressed as a whole: .gnu_debugdata, kernel modules,
 * recordings.
 *
 * zstd is linked; liblzma and zlib are loaded on first use.  The bytes are untrusted: the output is
 * never larger than `size_max`.  Files may consist of several compressed ones, one behind the other.
 */
#ifndef TALLY_BASE_UNPACK_H
#define TALLY_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if the bytes begin like xz, zstd or gzip. */
bool tally_is_packed(const void *bytes, size_t size);

/* Unpacks the bytes into malloc'd memory.  Returns 0; -EBADMSG for damage; -EFBIG above `size_max`;
 * -ENOMEM; -ENOPKG when the library is not installed (liblzma5, zlib1g). */
int tally_unpack(const void *bytes, size_t size, size_t size_max, uint8_t **out, size_t *out_size);

#endif
