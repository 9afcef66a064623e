/* Showing a `stat` report: a table for people, CSV and JSON for programs. */
#ifndef TALLY_OUTPUT_STAT_VIEW_H
#define TALLY_OUTPUT_STAT_VIEW_H

#include "base/buffer.h"
#include "session/stat_run.h"

#include <stdbool.h>

enum { TALLY_STAT_CSV_VERSION = 1, TALLY_STAT_JSON_VERSION = 1 };

struct tally_stat_view {
	struct tally_buffer *out;
	const char *separator; /* CSV */
	bool has_colours;      /* table */
	bool is_ascii;         /* table: the terminal's locale can't show "±" */
	unsigned columns;      /* table: the terminal's, 0: it is none and the heading stays whole */
	unsigned long reports; /* shown so far: headings stand above the first */
};

struct tally_stat_view_ops {
	const char *name;
	/* Appends one report to view->out. */
	void (*show)(struct tally_stat_view *view, const struct tally_stat_report *report);
};

extern const struct tally_stat_view_ops tally_stat_view_table, tally_stat_view_csv, tally_stat_view_json;

/* "<not counted>", "<not supported>", "<withheld>", or NULL for a row that has a figure. */
const char *tally_stat_missing_text(const struct tally_count *row);

/* 1234567.5 → "1,234,567.50", whatever the locale. */
void tally_stat_number(double value, int decimals, char *out, size_t size);

/* The value and unit as people read them: clocks in msec.  `decimals` for the value. */
double tally_stat_shown(const struct tally_count *row, double value, const char **unit, int *decimals);

#endif
