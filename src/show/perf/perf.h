/* What perf's commands print, to the letter: for `tally perf` (command/perf_mode.c). */
#ifndef TALLY_PERF_H
#define TALLY_PERF_H

#include "stat/stat.h"

#include <stdbool.h>

struct tally_buffer;
struct tally_event_listing;
struct tally_perfdata;

/* perf stat, perf stat -x, perf stat -j */
extern const struct tally_stat_view_ops tally_perf_stat_text, tally_perf_stat_csv,
	tally_perf_stat_json;

/* perf evlist: a line for each event of a recording. */
struct tally_perf_evlist {
	bool verbose;      /* all of its attribute */
	bool frequency;    /* its frequency or period */
	bool groups;       /* a line for each group */
	bool trace_fields; /* the names of a tracepoint's fields */
};
void tally_perf_evlist_text(const struct tally_perfdata *data,
			    const struct tally_perf_evlist *options, struct tally_buffer *out);

/* perf buildid-list: the build-ids in a recording, in the file's order. */
void tally_perf_build_ids_text(const struct tally_perfdata *data, struct tally_buffer *out);

/* perf list: the events that this machine has. */
struct tally_perf_list {
	bool names_only; /* --raw-dump: names alone, in one line */
};
void tally_perf_list_text(const struct tally_event_listing *listing,
			  const struct tally_perf_list *options, struct tally_buffer *out);

#endif
