/* Sets of CPUs in records: perf's struct perf_record_cpu_map_data
 * (tools/lib/perf/include/perf/event.h). */
#ifndef TALLY_PERFDATA_CPU_MAP_H
#define TALLY_PERFDATA_CPU_MAP_H

#include "base/buffer.h"
#include "base/reader.h"

/* Appends the set as "0-3,7"; -1 stands for any CPU.  Marks the reader as failed when the record is
 * too short for the set or the set's type is unknown. */
void tally_cpu_map_text(struct tally_reader *reader, struct tally_buffer *out);

#endif
