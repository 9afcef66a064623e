/* Showing a `stat` report: a table for people, CSV and JSON for programs. */
#ifndef TALLY_OUTPUT_STAT_VIEW_H
#define TALLY_OUTPUT_STAT_VIEW_H

#include "base/buffer.h"
#include "counting/stat_run.h"

#include <stdbool.h>

enum { TALLY_STAT_CSV_VERSION = 1, TALLY_STAT_JSON_VERSION = 1 };

struct tally_stat_view {
	struct tally_buffer *out;
	const char *separator; /* CSV */
	bool has_colours;      /* table */
	bool is_ascii;         /* table: the terminal's locale can't show "±" */
	bool is_plain;         /* table: no commas in numbers */
	bool clears;           /* table: the screen is cleared before each interval */
	bool hides_zero;       /* rows that counted 0 are left out */
	/* table: the terminal's, 0: it is none and the heading stays whole */
	unsigned columns;
	unsigned long reports; /* shown so far: headings stand above the first */
	size_t notes_shown;    /* table, intervals: a new one is shown when it comes */
};

struct tally_stat_view_ops {
	const char *name;
	/* Appends one report to view->out. */
	void (*show)(struct tally_stat_view *view, const struct tally_stat_report *report);
};

extern const struct tally_stat_view_ops tally_stat_view_table, tally_stat_view_csv,
	tally_stat_view_json;

/* A row, and what it stands in: its part's rows, for metrics. */
struct tally_stat_row {
	const struct tally_count *count;
	const struct tally_count_part *part;
	struct tally_count_table table;
	size_t index; /* in the table */
};

/* All rows in the order in which they are shown, which is perf's: of CPUs and threads event by
 * event (the largest threads first), else part by part.  malloc'd; NULL: out of memory. */
struct tally_stat_row *tally_stat_rows(const struct tally_stat_view *view,
				       const struct tally_stat_report *report, size_t *count);

/* perf's name for what a row is a part of: "cpu", "core", … or NULL of a whole. */
const char *tally_stat_part_name(enum tally_count_by by);

/* The part is of several CPUs, whose number is shown. */
bool tally_stat_part_is_sum(enum tally_count_by by);

bool tally_stat_has_cgroups(const struct tally_stat_report *report);

/* "<not counted>", "<not supported>", "<withheld>", or NULL for a row that has a figure. */
const char *tally_stat_missing_text(const struct tally_count *row);

/* 1234567.5 → "1,234,567.50", whatever the locale. */
void tally_stat_number(double value, int decimals, char *out, size_t size);

/* The value and unit as people read them: clocks in msec.  `decimals` for the value. */
double tally_stat_shown(const struct tally_count *row, double value, const char **unit,
			int *decimals);

#endif
