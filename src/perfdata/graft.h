/* A recording once more, with tally's own section: by copying the file, or by writing its records
 * anew. */
#ifndef TALLY_PERFDATA_GRAFT_H
#define TALLY_PERFDATA_GRAFT_H

#include "perfdata/perfdata.h"

/* Copies a finished perf.data file from one descriptor into another, which is empty, of either byte
 * order: what was recorded and all of its features stay as they are, the section is added or
 * replaced.  0; -ENOTSUP where it must be written anew: a pipe's stream, a file that was never
 * finished or that lies otherwise than perf's do; -errno of reading and writing, with a message. */
int tally_perfdata_graft(int from, int to, const void *bytes, size_t size, struct tally_error *err);

/* Writes the recording at `path` anew, as a file of this machine's byte order: compressed by zstd's
 * `level`, 0: plain.  What follows AUXTRACE records is left out.  0 or -errno with a message. */
int tally_perfdata_rewrite(const char *path, int to, int level, const void *bytes, size_t size,
			   struct tally_error *err);

#endif
