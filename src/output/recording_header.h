/* What a recording says of itself, in the lines of `perf report --header-only`.
 *
 * Feature sections are read here and nowhere kept: each has its printer, in recording_header.c's
 * table.  Layouts: perf's tools/perf/Documentation/perf.data-file-format.txt.
 */
#ifndef TALLY_OUTPUT_RECORDING_HEADER_H
#define TALLY_OUTPUT_RECORDING_HEADER_H

#include "base/buffer.h"
#include "perfdata/perfdata.h"

/* Appends all of it, each line behind a '#'.  `captured` is the file's time of change, by time(2);
 * `full`: with the topologies and caches too, which are one line each otherwise.  Of a pipe there
 * is what has been read of it so far. */
void tally_recording_header(const struct tally_perfdata *data, int64_t captured, bool full,
			    struct tally_buffer *out);

/* Appends one feature's lines, as they come down a pipe; nothing when it isn't there. */
void tally_recording_header_feature(const struct tally_perfdata *data, unsigned feature, bool full,
				    struct tally_buffer *out);

#endif
