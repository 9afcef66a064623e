/* The commands of perf mode (perf_mode.c).  Their names begin with "perf "; argv[0] is the name
 * without it. */
#ifndef TALLY_COMMAND_PERF_MODE_H
#define TALLY_COMMAND_PERF_MODE_H

#include "command/command.h"

/* The release of perf whose texts and options these are. */
#define TALLY_PERF_VERSION "6.1"

extern const struct tally_command tally_perf_data;   /* perf_data.c */
extern const struct tally_command tally_perf_inject; /* perf_inject.c */
extern const struct tally_command tally_command_doctor; /* doctor.c */
extern const struct tally_command tally_perf_stat;          /* stat.c */
extern const struct tally_command tally_perf_record;        /* record.c */
extern const struct tally_command tally_perf_diff;          /* perf_mode_diff.c */
extern const struct tally_command tally_perf_report;        /* perf_mode_report.c */
extern const struct tally_command tally_perf_script;        /* script.c */
extern const struct tally_command tally_perf_list;          /* list.c */
extern const struct tally_command tally_perf_evlist;        /* perf_evlist.c */
extern const struct tally_command tally_perf_buildid_list;  /* perf_evlist.c */
extern const struct tally_command tally_perf_kallsyms;      /* perf_kallsyms.c */

/* Returns the recording that perf reads where `given` is NULL: standard input if it is a pipe, or
 * perf.data.  Otherwise returns `given`. */
const char *tally_perf_input(const char *given);

#endif
