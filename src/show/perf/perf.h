/* What perf's commands print, to the letter: for `tally perf` (command/perf_mode.c). */
#ifndef TALLY_PERF_H
#define TALLY_PERF_H

#include "report/report.h"
#include "stat/stat.h"
#include "tally/record.h"

#include <stdbool.h>

struct tally_buffer;
struct tally_event_listing;
struct tally_perfdata;
struct tally_raw_record;
struct tally_record;
struct tally_recording;
struct tally_raw_record;
struct tally_record;
struct tally_recorded_event;
struct tally_recording;

/* perf stat, perf stat -x, perf stat -j */
extern const struct tally_stat_view_ops tally_perf_stat_text, tally_perf_stat_csv,
	tally_perf_stat_json;

/* perf script -D: appends the record that tally_recording_next() returned last.  `path` is the
 * recording's. */
void tally_perf_dump(struct tally_recording *recording, const struct tally_raw_record *raw,
		     const struct tally_record *record, const char *path, struct tally_buffer *out);

/* Returns the number of members of the group that event `leader` leads; 1: it leads none.  Sets
 * `name` to the group's name, which lives as long as the reader; NULL: there is no group. */
size_t tally_perf_group_of(const struct tally_perfdata *data, size_t leader, const char **name);

/* perf evlist: a line for each event of a recording. */
struct tally_perf_evlist {
	bool verbose;      /* all of its attribute */
	bool frequency;    /* its frequency or period */
	bool groups;       /* a line for each group */
	bool trace_fields; /* the names of a tracepoint's fields */
};
void tally_perf_evlist_text(const struct tally_perfdata *data,
			    const struct tally_perf_evlist *options, struct tally_buffer *out);

/* perf buildid-list: the build-ids in a recording, in the file's order; of those whose entry in
 * `shown` is true, or NULL: of all. */
void tally_perf_build_ids_text(const struct tally_perfdata *data, const bool *shown,
			       struct tally_buffer *out);

/* perf list: the events that this machine has. */
struct tally_perf_list {
	bool names_only; /* --raw-dump: names alone, in one line */
};
void tally_perf_list_text(const struct tally_event_listing *listing,
			  const struct tally_perf_list *options, struct tally_buffer *out);

/* perf data convert --to-json: what is before the samples (`captured`: seconds since 1970), each of
 * them, and what is behind.  _sample returns 0, or -ENOMEM. */
void tally_perf_data_json_begin(const struct tally_perfdata *data, int64_t captured,
				struct tally_buffer *out);
int tally_perf_data_json_sample(struct tally_recording *recording,
				const struct tally_raw_record *raw,
				const struct tally_record *record, bool is_first,
				struct tally_buffer *out);
void tally_perf_data_json_end(struct tally_buffer *out);

/* perf report --stdio */

enum tally_perf_chains {
	TALLY_PERF_CHAINS_NONE,
	TALLY_PERF_CHAINS_GRAPH,   /* shares of all samples */
	TALLY_PERF_CHAINS_FRACTAL, /* shares of the branch above */
	TALLY_PERF_CHAINS_FLAT,    /* a block of lines for each chain */
	TALLY_PERF_CHAINS_FOLDED   /* a line for each chain */
};

enum tally_perf_value { TALLY_PERF_VALUE_PERCENT, TALLY_PERF_VALUE_PERIOD, TALLY_PERF_VALUE_COUNT };

enum { TALLY_PERF_COLUMNS_MAX = 16 };

struct tally_perf_report_view {
	uint8_t columns[TALLY_PERF_COLUMNS_MAX]; /* enum tally_perf_key or tally_perf_order */
	unsigned column_count;
	bool sums_by[TALLY_PERF_KEYS];    /* the keys of the sums */
	bool is_elided[TALLY_PERF_KEYS];  /* columns that are left out: all their values are one */
	const char *listed[TALLY_PERF_KEYS]; /* that one value, told above; or NULL */
	bool lists_objects;               /* only some objects' samples are shown */
	const char *separator;            /* between columns, which are not aligned; or NULL */
	bool quiet;                       /* rows alone */
	bool has_header;                  /* the recording's header is above */
	bool children;                    /* entries have the sums of what they called */
	bool has_self;                    /* the column of their own is called "Self" */
	const char *time;                 /* the text of --time, or NULL */
	bool is_relative;                 /* shares of the samples that the lists select */
	bool leaves_out_first;            /* a single branch's first frame, which the row names */
	double percent_min;               /* lighter entries are left out */
	enum tally_perf_chains chains;
	enum tally_perf_value value;
	double chain_percent_min;         /* lighter branches are left out */
	uint32_t print_limit;             /* of branches at each level; 0: none */
};

/* perf report --stats: numbers of records. */
struct tally_perf_record_counts {
	uint64_t all, types[TALLY_RECORD_USER_MAX]; /* other types are in `all` alone */
	uint64_t *samples; /* by event */
};
void tally_perf_stats_text(const struct tally_perf_record_counts *counts,
			   const struct tally_recorded_event *events, size_t event_count,
			   struct tally_buffer *out);

/* Append the lines above the first event (`lost`: samples), and below the last one. */
void tally_perf_report_begin(const struct tally_perf_report_view *view, uint64_t lost,
			     struct tally_buffer *out);
void tally_perf_report_end(const struct tally_perf_report_view *view, struct tally_buffer *out);

/* Appends the report of one event or group, called `event` ("events 'a, b'").  Returns 0 or
 * -ENOMEM. */
int tally_perf_report_text(const struct tally_profile *profile, const struct tally_perf_sums *sums,
			   const struct tally_perf_report_view *view, const char *event,
			   struct tally_buffer *out);

/* perf diff */
struct tally_perf_diff_view {
	struct tally_perf_diff_side {
		const struct tally_profile *profile;
		const struct tally_perf_sums *sums;
	} sides[2]; /* the old one first */
	bool by[TALLY_PERF_KEYS]; /* the keys of the sums: comm, dso, symbol */
	uint8_t keys[TALLY_PERF_COLUMNS_MAX]; /* the same in the order of the columns */
	unsigned key_count;
	const char *separator; /* between columns, which are not aligned; or NULL */
	bool quiet;            /* rows alone */
};

/* Appends the changes of one event.  Returns 0 or -ENOMEM. */
int tally_perf_diff_text(const struct tally_perf_diff_view *view, const char *event,
			 struct tally_buffer *out);

#endif
