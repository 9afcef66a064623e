/* Names of a process's perf map.  Of this room alone. */
#ifndef TALLY_PROFILE_PERF_MAP_NAMES_H
#define TALLY_PROFILE_PERF_MAP_NAMES_H

#include "profile/names.h"

/* Its symbols: of the maps that were held while it was recorded (names->perf_maps), else of the one
 * where it lies.  NULL: none, or none that may be believed.  What is wrong with it is counted in
 * the gaps. */
struct tally_symbols *tally_perf_map_load(struct tally_names *names, uint32_t pid);

#endif
