/* Names from a process's perf map.  Used in this room only. */
#ifndef TALLY_PROFILE_PERF_MAP_NAMES_H
#define TALLY_PROFILE_PERF_MAP_NAMES_H

#include "naming/names.h"

/* Returns the symbols of a process's perf map: from those held while recording (names->perf_maps),
 * else from the file where it is now.  NULL: there is none, or none that can be trusted.  Counts
 * problems in the names' gaps. */
struct tally_symbols *tally_perf_map_load(struct tally_names *names, uint32_t pid);

#endif
