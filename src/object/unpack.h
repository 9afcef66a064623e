/* Files and sections that come compressed as a whole: .gnu_debugdata, a kernel's modules.
 *
 * zstd is linked; liblzma and zlib are loaded when they are needed first.  The bytes are untrusted:
 * what would be larger than `size_max` is damaged.
 */
#ifndef TALLY_OBJECT_UNPACK_H
#define TALLY_OBJECT_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether they begin as xz, zstd or gzip do. */
bool tally_is_packed(const void *bytes, size_t size);

/* What they were before, malloc'd.  0; -EBADMSG; -ENOMEM; -ENOPKG: the library is not installed
 * (liblzma5, zlib1g). */
int tally_unpack(const void *bytes, size_t size, size_t size_max, uint8_t **out, size_t *out_size);

#endif
