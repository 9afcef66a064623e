/* JSON, one document per report and line; docs/stat-output.md has the schema. */
#include "base/json.h"
#include "stat/stat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *state_text(enum tally_count_state state)
{
	static const char *const names[] = { [TALLY_COUNT_OK] = "counted",
					     [TALLY_COUNT_NOT_COUNTED] = "not-counted",
					     [TALLY_COUNT_NOT_SUPPORTED] = "not-supported",
					     [TALLY_COUNT_WITHHELD] = "withheld" };
	return names[state];
}

/* Writes a number, or null. */
static void number_or_null(struct tally_json *json, const char *name, bool is_there, double value)
{
	tally_json_double(json, name, is_there ? value : NAN);
}

/* Writes a text, or null. */
static void text_or_null(struct tally_json *json, const char *name, bool is_there, const char *text)
{
	tally_json_text(json, name, is_there ? text : NULL);
}

static void show_beside(struct tally_json *json, const struct tally_count_table *table,
			size_t index)
{
	struct tally_metric metrics[TALLY_METRICS_MAX];
	unsigned count = tally_metrics_of(table, index, metrics);
	tally_json_array(json, "metrics");
	for (unsigned i = 0; i < count; i++) {
		tally_json_object(json, NULL);
		tally_json_double(json, "value", metrics[i].value);
		tally_json_text(json, "unit", metrics[i].unit);
		tally_json_bool(json, "apart", metrics[i].is_apart);
		tally_json_end(json);
	}
	tally_json_end(json);
}

static void show_part(struct tally_json *json, const struct tally_stat_report *report,
		      const struct tally_count_part *part)
{
	if (!report->by)
		return;
	const char *label = part->label;
	if (report->by == TALLY_COUNT_BY_CPU) /* perf's JSON has "0" for "CPU0" */
		label += strlen("CPU");
	tally_json_text(json, tally_stat_part_name(report->by), label);
	if (tally_stat_part_is_sum(report->by))
		tally_json_u64(json, "aggregate-number", part->cpus);
}

static void show_event(struct tally_json *json, const struct tally_stat_report *report,
		       const struct tally_stat_row *shown)
{
	const struct tally_event_count *row = shown->count;
	bool is_counted = row->state == TALLY_COUNT_OK;
	bool has_times = is_counted && !row->is_substitute;
	bool has_spread = is_counted && row->spread.count > 1;
	tally_json_object(json, NULL);
	show_part(json, report, shown->part);
	tally_json_text(json, "name", row->name);
	if (row->cgroup)
		tally_json_text(json, "cgroup", row->cgroup);
	tally_json_text(json, "state", state_text(row->state));
	number_or_null(json, "value", is_counted, row->value);
	tally_json_text(json, "unit", row->unit);
	number_or_null(json, "sigma", has_spread, tally_spread_sigma(&row->spread));
	number_or_null(json, "minimum", has_spread, row->spread.minimum);
	number_or_null(json, "maximum", has_spread, row->spread.maximum);
	if (is_counted)
		tally_json_u64(json, "raw", row->raw);
	else
		tally_json_null(json, "raw");
	number_or_null(json, "enabled_ns", has_times, (double)row->enabled_ns);
	number_or_null(json, "running_ns", has_times, (double)row->running_ns);
	if (row->core)
		tally_json_u64(json, "core_type", row->core);
	if (row->task_ns)
		tally_json_u64(json, "task_ns", row->task_ns);
	tally_json_bool(json, "scaled", is_counted && row->was_scaled);
	number_or_null(json, "scale_error", is_counted && row->was_scaled && row->scale_error >= 0,
		       row->scale_error);
	tally_json_bool(json, "user_only", row->excludes & TALLY_ATTR_EXCLUDE_KERNEL);
	if (row->group >= 0)
		tally_json_i64(json, "group", row->group);
	else
		tally_json_null(json, "group");
	text_or_null(json, "source", is_counted, row->source);
	text_or_null(json, "quality", is_counted, row->quality);
	tally_json_bool(json, "substitute", row->is_substitute);
	tally_json_text(json, "note", row->reason);
	show_beside(json, &shown->table, shown->index);
	tally_json_end(json);
}

/* The metrics of -M; without -M there is no such member. */
static void show_metrics(struct tally_json *json, const struct tally_stat_view *view,
			 const struct tally_stat_report *report)
{
	size_t count;
	struct tally_stat_metric *metrics = tally_stat_metrics(view, report, &count);
	if (!view->metrics)
		return;
	tally_json_array(json, "metrics");
	for (size_t i = 0; metrics && i < count; i++) {
		const struct tally_metric_figure *figure = &metrics[i].figure;
		const struct tally_metric_definition *d = figure->definition;
		tally_json_object(json, NULL);
		show_part(json, report, metrics[i].part);
		tally_json_text(json, "name", figure->label);
		if (figure->cgroup)
			tally_json_text(json, "cgroup", figure->cgroup);
		tally_json_double(json, "value", figure->value);
		tally_json_text(json, "unit", d->unit);
		tally_json_text(json, "expression", d->expression);
		tally_json_text(json, "source", d->source);
		tally_json_bool(json, "scaled", figure->is_scaled);
		tally_json_bool(json, "same_time", !figure->is_mixed);
		tally_json_text(json, "note", figure->note);
		tally_json_end(json);
	}
	tally_json_end(json);
	view->out->failed |= count && !metrics;
	free(metrics);
}

static void show_command(struct tally_json *json, char **command)
{
	if (!command) {
		tally_json_null(json, "command");
		return;
	}
	tally_json_array(json, "command");
	for (; *command; command++)
		tally_json_text(json, NULL, *command);
	tally_json_end(json);
}

static void show_times(struct tally_json *json, const struct tally_stat_report *report)
{
	const struct tally_count_table *table = &report->table;
	if (report->is_interval)
		tally_json_double(json, "interval_end_ns", report->timestamp_ns);
	else
		tally_json_null(json, "interval_end_ns");
	tally_json_double(json, "elapsed_ns", table->elapsed_ns);
	number_or_null(json, "elapsed_sigma_ns", report->elapsed.count > 1 && !report->is_interval,
		       tally_spread_sigma(&report->elapsed));
	number_or_null(json, "user_ns", table->has_cpu_times, table->user_ns);
	number_or_null(json, "user_sigma_ns", table->has_cpu_times && report->user.count > 1,
		       tally_spread_sigma(&report->user));
	number_or_null(json, "system_ns", table->has_cpu_times, table->system_ns);
	number_or_null(json, "system_sigma_ns", table->has_cpu_times && report->system.count > 1,
		       tally_spread_sigma(&report->system));
}

static void show(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	struct tally_json json = { .out = view->out };
	char verdict[256];
	tally_json_object(&json, NULL);
	tally_json_text(&json, "schema", "tally-stat");
	tally_json_u64(&json, "version", TALLY_STAT_JSON_VERSION);
	tally_json_text(&json, "target", report->target);
	show_command(&json, report->command);
	tally_json_text(&json, "provider", report->provider);
	tally_json_text(&json, "machine", report->machine);
	tally_json_u64(&json, "runs", report->runs);
	show_times(&json, report);
	if (report->exit_status >= 0)
		tally_json_i64(&json, "exit_status", report->exit_status);
	else
		tally_json_null(&json, "exit_status");
	tally_json_bool(&json, "interrupted", report->was_interrupted);
	tally_json_array(&json, "events");
	size_t count;
	struct tally_stat_row *rows = tally_stat_rows(view, report, &count);
	for (size_t i = 0; i < count; i++)
		show_event(&json, report, &rows[i]);
	view->out->failed |= !rows;
	free(rows);
	tally_json_end(&json);
	show_metrics(&json, view, report);
	bool has_verdict = !report->by &&
			   tally_count_verdict(&report->table, verdict, sizeof(verdict));
	text_or_null(&json, "reading", has_verdict, verdict);
	tally_json_array(&json, "notes");
	for (size_t i = 0; i < report->note_count; i++)
		tally_json_text(&json, NULL, report->notes[i]);
	tally_json_end(&json);
	tally_json_end(&json);
	view->reports++;
}

const struct tally_stat_view_ops tally_stat_view_json = { "json", show };
