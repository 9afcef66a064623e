/* What perf's commands print, to the letter: for `tally perf` (command/perf_mode.c). */
#ifndef TALLY_PERF_H
#define TALLY_PERF_H

#include "stat/stat.h"

/* perf stat, perf stat -x, perf stat -j */
extern const struct tally_stat_view_ops tally_perf_stat_text, tally_perf_stat_csv,
	tally_perf_stat_json;

#endif
