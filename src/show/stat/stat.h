/* The outputs of stat and compare. */
#ifndef TALLY_STAT_H
#define TALLY_STAT_H

#include "base/buffer.h"
#include "counting/stat_run.h"
#include "counts/counts.h"
#include "metric/metric.h"

#include <stdbool.h>

/* Shows a `stat` report: a table for people, CSV and JSON for programs. */

enum { TALLY_STAT_CSV_VERSION = 1, TALLY_STAT_JSON_VERSION = 1 };

struct tally_stat_view {
	struct tally_buffer *out;
	const char *separator; /* CSV: between fields */
	bool has_colours;      /* table */
	/* table: whether the terminal shows "±"; called only if a text is not ASCII.  NULL: it does */
	bool (*is_utf8)(void);
	bool is_plain;         /* table: numbers without commas */
	bool clears;           /* table: clear the screen before each interval */
	bool names_columns;    /* CSV: begin with a comment */
	bool hides_zero;       /* leave out rows that counted 0 */
	const struct tally_metric_uses *metrics; /* of -M, or NULL */
	/* perf mode: the interval that was asked for, or 0; and the words for what is counted, "process
	 * id '42'", or NULL: the command, or the whole system */
	unsigned interval_ms;
	const char *perf_target;
	/* table: terminal width; 0: not a terminal, headings are not cut */
	unsigned columns;
	unsigned long reports; /* shown so far; headings precede the first */
	/* table, intervals: notes printed so far; new ones are printed once */
	size_t notes_shown;
};

struct tally_stat_view_ops {
	const char *name;
	/* Appends one report to view->out. */
	void (*show)(struct tally_stat_view *view, const struct tally_stat_report *report);
};

extern const struct tally_stat_view_ops tally_stat_view_table, tally_stat_view_csv,
	tally_stat_view_json;

/* A row, with its part and, for metrics, its part's rows. */
struct tally_stat_row {
	const struct tally_event_count *count;
	const struct tally_count_part *part;
	struct tally_count_table table;
	size_t index; /* in the table */
};

/* Returns all rows in perf's order: for CPUs and threads event by event (the largest threads
 * first), otherwise part by part. The caller frees the array. NULL: out of memory. */
struct tally_stat_row *tally_stat_rows(const struct tally_stat_view *view,
				       const struct tally_stat_report *report, size_t *count);

/* The figure of one of -M's metrics, in one part. */
struct tally_stat_metric {
	struct tally_metric_figure figure;
	const struct tally_count_part *part;
};

/* Returns the figures of all metrics, in the order of rows.  The caller frees the array.  NULL: out
 * of memory, if *count is not 0. */
struct tally_stat_metric *tally_stat_metrics(const struct tally_stat_view *view,
					     const struct tally_stat_report *report, size_t *count);

/* Returns perf's name for a kind of part: "cpu", "core", …; NULL: the report has no parts. */
const char *tally_stat_part_name(enum tally_count_by by);

/* True if a part covers several CPUs; their number is then shown. */
bool tally_stat_part_is_sum(enum tally_count_by by);

bool tally_stat_has_cgroups(const struct tally_stat_report *report);

/* Returns "<not counted>", "<not supported>" or "<withheld>"; NULL: the row has a figure. */
const char *tally_stat_missing_text(const struct tally_event_count *row);

/* Writes 1234567.5 as "1,234,567.50", independent of the locale. */
void tally_stat_number(double value, int decimals, char *out, size_t size);

/* Returns the value in the unit for people (clocks in msec); stores the unit and the number of
 * decimals. */
double tally_stat_shown(const struct tally_event_count *row, double value, const char **unit,
			int *decimals);

/* Shows a comparison of saved counts: a table for people, Markdown for a pull request, JSON for
 * programs. */

enum { TALLY_COMPARE_JSON_VERSION = 1 };

void tally_comparison_table(const struct tally_saved_comparison *comparison, bool has_colours,
			    struct tally_buffer *out);
/* Draws the distribution of the elapsed times of both sides' runs, in at most that many columns;
 * nothing unless each side has 5 runs, known one by one. */
void tally_comparison_plot(const struct tally_saved_comparison *comparison, unsigned columns,
			   bool is_ascii, struct tally_buffer *out);
void tally_comparison_markdown(const struct tally_saved_comparison *comparison,
			       struct tally_buffer *out);
/* docs/stat-output.md has the schema. */
void tally_comparison_json(const struct tally_saved_comparison *comparison,
			   struct tally_buffer *out);

#endif
