/* CSV in the order of `perf stat -x`, with two more columns; see docs/stat-output.md. */
#include "base/text.h"
#include "stat/stat.h"

#include "base/buffer.h"
#include "base/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void field(struct tally_stat_view *view, const char *text, bool is_last)
{
	tally_csv_quote(view->out, text, view->separator);
	tally_buffer_text(view->out, is_last ? "\n" : view->separator);
}

static void number(struct tally_stat_view *view, bool is_there, int decimals, double value)
{
	char text[352] = "";
	if (is_there)
		snprintf(text, sizeof(text), "%.*f", decimals, value);
	field(view, text, false);
}

static void heading(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	static const char *const columns[] = { "value",           "unit",          "event",
					       "cgroup",          "sigma-percent", "running-ns",
					       "running-percent", "metric",        "metric-unit",
					       "source",          "note" };
	enum { CGROUP = 3, SIGMA = 4 };
	tally_buffer_printf(view->out, "# tally-stat-csv %d: ", TALLY_STAT_CSV_VERSION);
	if (report->is_interval)
		field(view, "seconds", false);
	if (report->by)
		field(view, tally_stat_part_name(report->by), false);
	if (tally_stat_part_is_sum(report->by))
		field(view, "cpus", false);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		if ((i != SIGMA || report->runs_wanted > 1) &&
		    (i != CGROUP || tally_stat_has_cgroups(report)))
			field(view, columns[i], i + 1 == sizeof(columns) / sizeof(columns[0]));
}

/* Puts the columns before the value: the time, and the part that it belongs to. */
static void show_place(struct tally_stat_view *view, const struct tally_stat_report *report,
		       const struct tally_count_part *part)
{
	if (report->is_interval)
		number(view, true, 9, report->timestamp_ns / 1e9);
	else if (report->is_summary)
		field(view, "summary", false);
	if (report->by)
		field(view, part->label, false);
	if (tally_stat_part_is_sum(report->by))
		number(view, true, 0, part->cpus);
}

static void show_row(struct tally_stat_view *view, const struct tally_stat_report *report,
		     const struct tally_stat_row *shown, bool has_cgroups)
{
	const struct tally_event_count *row = shown->count;
	const char *missing = tally_stat_missing_text(row), *unit;
	struct tally_metric metrics[TALLY_METRICS_MAX];
	unsigned count = tally_metrics_of(&shown->table, shown->index, metrics);
	bool has_times = !missing && !row->is_substitute;
	int decimals;
	double value = tally_stat_shown(row, row->value, &unit, &decimals);
	if (decimals || (report->runs > 1 && value != (double)(long long)value))
		decimals = 6;
	show_place(view, report, shown->part);
	if (missing)
		field(view, missing, false);
	else
		number(view, true, decimals, value);
	field(view, unit, false);
	field(view, row->name, false);
	if (has_cgroups)
		field(view, tally_text_or(row->cgroup, ""), false);
	if (report->runs_wanted > 1)
		number(view, row->spread.count > 1, 4, tally_spread_percent(&row->spread));
	number(view, has_times, 0, (double)row->running_ns);
	number(view, has_times, 2, 100 * tally_count_share(row));
	if (!count)
		metrics[0] = (struct tally_metric){ .unit = "" };
	number(view, count > 0, 6, metrics[0].value);
	field(view, metrics[0].unit, false);
	field(view, missing ? "" : row->source, false);
	const char *note = row->reason;
	if (!note && !missing)
		note = row->quality;
	for (unsigned i = 0; i < count && !note; i++)
		if (metrics[i].is_apart)
			note = "the metric is of counts that were not taken together";
	field(view, tally_text_or(note, ""), true);
	/* As in perf, each further metric has its own row, which is empty otherwise. */
	for (unsigned i = 1; i < count; i++) {
		show_place(view, report, shown->part);
		for (int empty = 0; empty < 5 + (report->runs_wanted > 1) + has_cgroups; empty++)
			field(view, "", false);
		number(view, true, 6, metrics[i].value);
		field(view, metrics[i].unit, false);
		field(view, "", false);
		field(view, "", true);
	}
}

/* A metric's row has no value, but a metric and its unit. */
static void show_metric(struct tally_stat_view *view, const struct tally_stat_report *report,
			const struct tally_stat_metric *metric, bool has_cgroups)
{
	const struct tally_metric_figure *figure = &metric->figure;
	show_place(view, report, metric->part);
	field(view, "", false);
	field(view, "", false);
	field(view, figure->label, false);
	if (has_cgroups)
		field(view, tally_text_or(figure->cgroup, ""), false);
	for (int empty = 0; empty < 2 + (report->runs_wanted > 1); empty++)
		field(view, "", false);
	number(view, !isnan(figure->value), 6, figure->value);
	field(view, figure->definition->unit, false);
	field(view, isnan(figure->value) ? "" : "metric", false);
	field(view, tally_text_or(figure->note, ""), true);
}

static void show_metrics(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	size_t count;
	struct tally_stat_metric *metrics = tally_stat_metrics(view, report, &count);
	for (size_t i = 0; metrics && i < count; i++)
		show_metric(view, report, &metrics[i], tally_stat_has_cgroups(report));
	view->out->failed |= count && !metrics;
	free(metrics);
}

static void show(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	if (!view->reports++ && view->names_columns)
		heading(view, report);
	size_t count;
	struct tally_stat_row *rows = tally_stat_rows(view, report, &count);
	for (size_t i = 0; i < count; i++)
		show_row(view, report, &rows[i], tally_stat_has_cgroups(report));
	view->out->failed |= !rows;
	free(rows);
	show_metrics(view, report);
}

const struct tally_stat_view_ops tally_stat_view_csv = { "csv", show };
