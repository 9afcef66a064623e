/* A process's perf map, where it lies: /tmp/perf-PID.map, as the process sees /tmp and its own
 * pid. */
#ifndef TALLY_TASK_PERF_MAP_FILE_H
#define TALLY_TASK_PERF_MAP_FILE_H

#include <stdint.h>

/* The map, open to be read; -ENOENT, or -EPERM when there is one that must not be believed. */
int tally_perf_map_open(uint32_t pid);

#endif
