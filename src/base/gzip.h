/* gzip (RFC 1952) of bytes in memory, by zlib, which is loaded on demand (libelf brings it along
 * anyway). */
#ifndef TALLY_BASE_GZIP_H
#define TALLY_BASE_GZIP_H

#include "base/buffer.h"
#include "base/error.h"

/* Appends the compressed bytes.  Returns 0, -ENOMEM, or -ENOENT without zlib. */
int tally_gzip(const void *bytes, size_t size, struct tally_buffer *out, struct tally_error *err);

#endif
