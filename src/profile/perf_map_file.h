/* A process's perf map, where it lies: /tmp/perf-PID.map, as the process sees /tmp and its own pid.  Of this room alone. */
#ifndef TALLY_PROFILE_PERF_MAP_FILE_H
#define TALLY_PROFILE_PERF_MAP_FILE_H

#include "profile/names.h"

/* Its symbols, or NULL: none, or none that may be believed.  What is wrong with it is counted in the gaps. */
struct tally_symbols *tally_perf_map_load(struct tally_names_gaps *gaps, uint32_t pid);

#endif
