/* Makes a second recording that contains tally's own section: copies the file, or rewrites its
 * records. */
#ifndef TALLY_PERFDATA_GRAFT_H
#define TALLY_PERFDATA_GRAFT_H

#include "perfdata/perfdata.h"

/* Copies a finished perf.data file of either byte order from descriptor `from` to `to`, an empty
 * file.  The data and all features stay as they are; the section is added or replaced.  Returns 0.
 * Returns -ENOTSUP when the recording must be rewritten instead: a pipe's stream, an unfinished
 * file, or a file with another layout than perf's.  Other errors of reading and writing are -errno
 * with a message. */
int tally_perfdata_graft(int from, int to, const void *bytes, size_t size, struct tally_error *err);

/* Writes the recording at `path` to `to` as a file of this machine's byte order.  `level` is zstd's
 * compression level; 0 means uncompressed.  The payload of AUXTRACE records is left out.  Returns
 * 0, or -errno with a message. */
int tally_perfdata_rewrite(const char *path, int to, int level, const void *bytes, size_t size,
			   struct tally_error *err);

#endif
