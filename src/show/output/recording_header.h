/* A recording's metadata, in the format of `perf report --header-only`.
 *
 * Feature sections are read here and not stored; each has a printer in the table of
 * recording_header.c. Layouts: perf's tools/perf/Documentation/perf.data-file-format.txt.
 */
#ifndef TALLY_OUTPUT_RECORDING_HEADER_H
#define TALLY_OUTPUT_RECORDING_HEADER_H

#include "base/buffer.h"
#include "perfdata/perfdata.h"

/* Appends all of it as lines that begin with '#'. `captured` is the file's modification time in
 * seconds since the Epoch. `full` shows topologies and caches, which otherwise take one line each.
 * For a pipe, appends what has been read so far. */
void tally_recording_header(const struct tally_perfdata *data, int64_t captured, bool full,
			    struct tally_buffer *out);

/* Appends one feature's lines when it arrives in a pipe; nothing if the feature is missing. */
void tally_recording_header_feature(const struct tally_perfdata *data, unsigned feature, bool full,
				    struct tally_buffer *out);

#endif
