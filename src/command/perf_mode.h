/* The commands of perf mode (perf_mode.c).  Their names begin with "perf "; argv[0] is the name
 * without it. */
#ifndef TALLY_COMMAND_PERF_MODE_H
#define TALLY_COMMAND_PERF_MODE_H

#include "command/command.h"

/* The release of perf whose texts and options these are. */
#define TALLY_PERF_VERSION "6.1"

extern const struct tally_command tally_perf_stat; /* stat.c */

#endif
