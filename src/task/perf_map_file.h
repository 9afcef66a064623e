/* A process's perf map: /tmp/perf-PID.map, with /tmp and the pid as the process sees them. */
#ifndef TALLY_TASK_PERF_MAP_FILE_H
#define TALLY_TASK_PERF_MAP_FILE_H

#include <stdint.h>

/* Opens the map.  Returns a descriptor; -ENOENT, also when the map was last written before the
 * process began; -EPERM when the map must not be believed.  When the process has ended, its start is
 * unknown: then the map must be younger than not_before_ns (CLOCK_REALTIME; 0: any age). */
int tally_perf_map_open(uint32_t pid, uint64_t not_before_ns);

#endif
