/* The table for people.
 *
 *          1,234,567,890       instructions        #     2.31 insn per cycle, CPI 0.43    ± 0.12 %
 *
 * Columns are as wide as their contents; a remark about one row is on that row.
 */
#include "base/characters.h"
#include "base/extremes.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "event/event.h"
#include "stat/stat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	TEXT_MAX = 192,
	VALUE_WIDTH = 18,
	VALUE_WIDTH_MIN = 12,
	NAME_WIDTH_MIN = 20,
	NAME_WIDTH_MAX = 48,
	COMMENT_WIDTH_MAX = 64
};

enum ink { INK_PLAIN, INK_DIM, INK_BOLD, INK_WARN };

struct line {
	char place[TEXT_MAX];
	char value[TEXT_MAX], unit[13], name[TEXT_MAX], cgroup[TEXT_MAX], comment[TEXT_MAX],
		tail[TEXT_MAX];
	bool is_missing;
};

const char *tally_stat_missing_text(const struct tally_event_count *row)
{
	switch (row->state) {
	case TALLY_COUNT_NOT_COUNTED:
		return "<not counted>";
	case TALLY_COUNT_NOT_SUPPORTED:
		return "<not supported>";
	case TALLY_COUNT_WITHHELD:
		return "<withheld>";
	default:
		return NULL;
	}
}

void tally_stat_number(double value, int decimals, char *out, size_t size)
{
	char digits[352];
	snprintf(digits, sizeof(digits), "%.*f", decimals, value);
	tally_number_group(digits, out, size);
}

double tally_stat_shown(const struct tally_event_count *row, double value, const char **unit,
			int *decimals)
{
	bool is_tool = row->type == TALLY_TYPE_TOOL; /* shown in ns, as in perf */
	*unit = row->unit;
	*decimals = 0;
	if ((row->unit[0] && !is_tool) || row->scale != 1)
		*decimals = 2;
	if (is_tool || strcmp(row->unit, "ns"))
		return value;
	*unit = "msec";
	return value / 1e6;
}

static void paint(struct tally_stat_view *view, enum ink ink)
{
	static const char *const codes[] = { "\033[0m", "\033[2m", "\033[1m", "\033[33m" };
	if (view->has_colours)
		tally_buffer_text(view->out, codes[ink]);
}

/* Returns a text's columns. tally's own texts have no wide characters. */
static int width(const char *text)
{
	int columns = 0;
	for (; *text; text++)
		columns += tally_begins_character(*text);
	return columns;
}

static void pad(struct tally_buffer *out, int columns)
{
	for (; columns > 0; columns--)
		tally_buffer_char(out, ' ');
}

static void comment_of(const struct tally_count_table *table, size_t index, char *out, size_t size)
{
	struct tally_metric metrics[TALLY_METRICS_MAX];
	unsigned count = tally_metrics_of(table, index, metrics);
	size_t used = 0;
	out[0] = 0;
	for (unsigned i = 0; i < count && used < size; i++) {
		const struct tally_metric *m = &metrics[i];
		char digits[64], number[66];
		tally_stat_number(m->value, m->decimals, digits, sizeof(digits));
		snprintf(number, sizeof(number), "%s%s", m->is_apart ? "~" : "", digits);
		if (m->unit_first)
			used += (size_t)snprintf(out + used, size - used, "%s%s %s", i ? ", " : "",
						 m->unit, number);
		else
			used += (size_t)snprintf(out + used, size - used, i ? ", %s %s" : "%9s %s",
						 number, m->unit);
	}
}

/* True if the row's source needs no mention. Only /proc's times are inexact: they are in ticks. */
static bool has_usual_source(const struct tally_event_count *row)
{
	if (row->type == TALLY_TYPE_TOOL)
		return strcmp(row->source, "/proc") != 0;
	return !strcmp(row->source, "kernel");
}

/* "(49 % of the time, scaled ± 1.3 %)  " */
static size_t share_of(const struct tally_event_count *row, char *out, size_t size)
{
	char error[32] = "";
	double share = 100 * tally_count_share(row);
	if (row->scale_error >= 0 && row->value > 0)
		snprintf(error, sizeof(error), " ± %.2g %%", 100 * row->scale_error / row->value);
	return (size_t)snprintf(out, size, "(%.*f %% of the time, scaled%s)  ", share < 10, share,
				error);
}

static void tail_of(const struct tally_stat_report *report, const struct tally_event_count *row,
		    char *out, size_t size)
{
	size_t used = 0;
	out[0] = 0;
	if (row->state != TALLY_COUNT_OK)
		return;
	if (row->spread.count > 1 && report->runs > 1)
		used += (size_t)snprintf(out + used, size - used, "± %5.2f %%  ",
					 tally_spread_percent(&row->spread));
	if (row->was_scaled && used < size)
		used += share_of(row, out + used, size - used);
	if (row->task_ns > row->enabled_ns && used < size)
		used += (size_t)snprintf(out + used, size - used,
					 "(%.0f %% of the time on its cores)  ",
					 100 * (double)row->enabled_ns / (double)row->task_ns);
	if (row->quality && used < size) {
		bool is_user = !strcmp(row->quality, "exact") &&
			       row->excludes & TALLY_ATTR_EXCLUDE_KERNEL;
		used += (size_t)snprintf(out + used, size - used, "(%s%s)  ", row->quality,
					 is_user ? ", user" : "");
	} else if (!has_usual_source(row) && used < size)
		used += (size_t)snprintf(out + used, size - used, "(%s)  ", row->source);
	if (row->reason && used < size)
		snprintf(out + used, size - used, "(%s)", row->reason);
}

/* Writes the part that the row belongs to: "S0-D0-C1 2". */
static void place_of(const struct tally_stat_report *report, const struct tally_count_part *part,
		     char *out, size_t size)
{
	char label[TEXT_MAX];
	out[0] = 0;
	if (!report->by)
		return;
	tally_terminal_clean_name(part->label, label, sizeof(label));
	if (tally_stat_part_is_sum(report->by))
		snprintf(out, size, "%-12.150s%4u", label, part->cpus);
	else
		snprintf(out, size, "%.180s", label);
}

static void remove_commas(char *text)
{
	char *out = text;
	for (; *text; text++)
		if (*text != ',')
			*out++ = *text;
	*out = 0;
}

static void fill_line(const struct tally_stat_view *view, const struct tally_stat_report *report,
		      const struct tally_stat_row *shown, struct line *line)
{
	const struct tally_event_count *row = shown->count;
	const char *missing = tally_stat_missing_text(row), *unit;
	int decimals;
	double value = tally_stat_shown(row, row->value, &unit, &decimals);
	/* The mean of small counts may be a fraction: 0.5 must not be shown as 0. */
	if (!decimals && report->runs > 1 && value < 100 && value != (double)(long)value)
		decimals = 2;
	tally_stat_number(value, decimals, line->value, sizeof(line->value));
	if (view->is_plain)
		remove_commas(line->value);
	place_of(report, shown->part, line->place, sizeof(line->place));
	tally_terminal_clean_name(missing ? "" : unit, line->unit, sizeof(line->unit));
	tally_terminal_clean_name(row->name, line->name, sizeof(line->name));
	tally_terminal_clean_name(tally_text_or(row->cgroup, ""), line->cgroup,
				  sizeof(line->cgroup));
	line->is_missing = missing;
	if (missing) {
		snprintf(line->value, sizeof(line->value), "%s", missing);
		snprintf(line->comment, sizeof(line->comment), "%.180s",
			 tally_text_or(row->reason, ""));
	} else {
		comment_of(&shown->table, shown->index, line->comment, sizeof(line->comment));
	}
	tail_of(report, row, line->tail, sizeof(line->tail));
	/* reasons may quote names */
	tally_terminal_clean_name(line->comment, line->comment, sizeof(line->comment));
	tally_terminal_clean_name(line->tail, line->tail, sizeof(line->tail));
}

/* A metric's line: its value, name, unit and what is to be said about it. */
static void fill_metric(const struct tally_stat_view *view, const struct tally_stat_report *report,
			const struct tally_stat_metric *metric, struct line *line)
{
	const struct tally_metric_figure *figure = &metric->figure;
	const struct tally_metric_definition *d = figure->definition;
	const char *note = tally_text_or(figure->note, "");
	tally_stat_number(figure->value, tally_metric_decimals(d, figure->value), line->value,
			  sizeof(line->value));
	if (view->is_plain)
		remove_commas(line->value);
	place_of(report, metric->part, line->place, sizeof(line->place));
	tally_terminal_clean_name(figure->label, line->name, sizeof(line->name));
	tally_terminal_clean_name(tally_text_or(figure->cgroup, ""), line->cgroup,
				  sizeof(line->cgroup));
	tally_terminal_clean_name(d->unit, line->comment, sizeof(line->comment));
	line->is_missing = isnan(figure->value);
	if (line->is_missing) {
		snprintf(line->value, sizeof(line->value), "–");
		snprintf(line->comment, sizeof(line->comment), "%.180s", note);
		tally_terminal_clean_name(line->comment, line->comment, sizeof(line->comment));
	} else if (note[0]) {
		snprintf(line->tail, sizeof(line->tail), "(%.180s)", note);
	}
}

/* Widths of the columns. */
struct columns {
	int place, value, name, cgroup, comment;
};

static void widen(int *column, const char *text, int maximum)
{
	if (width(text) > *column && width(text) <= maximum)
		*column = width(text);
}

static void show_line(struct tally_stat_view *view, const struct line *line,
		      const struct columns *columns)
{
	struct tally_buffer *out = view->out;
	if (columns->place) {
		tally_buffer_text(out, line->place);
		pad(out, columns->place - width(line->place) + 1);
	}
	paint(view, line->is_missing ? INK_DIM : INK_BOLD);
	pad(out, columns->value - width(line->value));
	tally_buffer_text(out, line->value);
	if (!line->is_missing)
		paint(view, INK_PLAIN);
	tally_buffer_printf(out, " %-6s%s", line->unit, line->name);
	if (line->comment[0] || line->tail[0] || line->cgroup[0])
		pad(out, columns->name - width(line->name));
	if (columns->cgroup && (line->comment[0] || line->tail[0] || line->cgroup[0])) {
		tally_buffer_printf(out, "  %s", line->cgroup);
		if (line->comment[0] || line->tail[0])
			pad(out, columns->cgroup - width(line->cgroup));
	}
	if (line->comment[0])
		tally_buffer_printf(out, "  # %s", line->comment);
	if (line->tail[0]) {
		pad(out, columns->comment - width(line->comment));
		if (!line->comment[0])
			pad(out, 4);
		paint(view, INK_DIM);
		size_t length = strlen(line->tail);
		while (length && line->tail[length - 1] == ' ')
			length--;
		tally_buffer_text(out, "  ");
		tally_buffer_append(out, line->tail, length);
	}
	paint(view, INK_PLAIN);
	tally_buffer_char(out, '\n');
}

static void widen_all(struct columns *columns, const struct line *line)
{
	widen(&columns->place, line->place, TEXT_MAX);
	widen(&columns->value, line->value, VALUE_WIDTH);
	widen(&columns->name, line->name, NAME_WIDTH_MAX);
	widen(&columns->cgroup, line->cgroup, NAME_WIDTH_MAX);
	if (!line->is_missing)
		widen(&columns->comment, line->comment, COMMENT_WIDTH_MAX);
}

static struct columns measure(const struct tally_stat_view *view,
			      const struct tally_stat_report *report,
			      const struct tally_stat_row *rows, size_t count)
{
	struct columns columns = { .value = VALUE_WIDTH, .name = NAME_WIDTH_MIN };
	if (report->by) /* with more columns, numbers and names get no more room than they need */
		columns = (struct columns){ .value = VALUE_WIDTH_MIN };
	for (size_t i = 0; i < count; i++) {
		struct line line = { 0 };
		fill_line(view, report, &rows[i], &line);
		widen_all(&columns, &line);
	}
	return columns;
}

static void show_interval_heading(struct tally_stat_view *view,
				  const struct tally_stat_report *report,
				  const struct columns *columns)
{
	tally_buffer_printf(view->out, "#%11s ", "seconds");
	if (columns->place)
		tally_buffer_printf(view->out, "%-*s ", columns->place,
				    tally_stat_part_name(report->by));
	tally_buffer_printf(view->out, "%*s %-6s%s\n", columns->value, "count", "unit", "event");
}

/* Sums the instructions of several types of cores.  A program executes the same ones on any type,
 * which is not so for cycles and ratios.  Returns false if there are not several types, if one is
 * missing, or if the rows differ in what they count. */
static bool sum_instructions(const struct tally_stat_row *rows, size_t count,
			     struct tally_event_count *sum)
{
	const struct tally_event_count *first = NULL;
	bool has_others = false;
	*sum = (struct tally_event_count){ .value = 0 };
	for (size_t i = 0; i < count; i++) {
		const struct tally_event_count *row = rows[i].count;
		if (!row->core || row->type != TALLY_TYPE_HARDWARE ||
		    (row->config & UINT32_MAX) != TALLY_HW_INSTRUCTIONS)
			continue;
		if (row->state != TALLY_COUNT_OK || row->cgroup ||
		    (first && row->excludes != first->excludes))
			return false;
		/* the same event twice */
		for (size_t before = 0; before < i; before++)
			if (rows[before].count->type == row->type &&
			    rows[before].count->config == row->config)
				return false;
		if (!first)
			first = row;
		has_others |= row != first;
		sum->value += row->value;
		sum->was_scaled |= row->was_scaled;
		sum->excludes = row->excludes;
	}
	return has_others;
}

static void show_sum(struct tally_stat_view *view, const struct tally_stat_report *report,
		     const struct tally_stat_row *rows, size_t count, const struct columns *columns)
{
	struct line line = { .name = "instructions", .comment = "on all types of cores" };
	struct tally_event_count sum;
	if (report->by || !sum_instructions(rows, count, &sum))
		return;
	bool is_user = (sum.excludes & TALLY_ATTR_EXCLUDE_KERNEL) &&
		       !(sum.excludes & TALLY_ATTR_EXCLUDE_USER);
	if (is_user)
		snprintf(line.name, sizeof(line.name), "instructions:u");
	tally_stat_number(sum.value, 0, line.value, sizeof(line.value));
	if (view->is_plain)
		remove_commas(line.value);
	if (sum.was_scaled)
		snprintf(line.tail, sizeof(line.tail), "(scaled)");
	if (report->is_interval)
		tally_buffer_printf(view->out, "%12.6f ", report->timestamp_ns / 1e9);
	show_line(view, &line, columns);
}

/* -M's metrics, below the counts of their events. */
static void show_metrics(struct tally_stat_view *view, const struct tally_stat_report *report,
			 const struct tally_stat_metric *metrics, size_t count,
			 const struct columns *columns)
{
	if (count && report->table.count && !report->is_interval)
		tally_buffer_char(view->out, '\n');
	for (size_t i = 0; i < count; i++) {
		struct line line = { 0 };
		fill_metric(view, report, &metrics[i], &line);
		if (report->is_interval)
			tally_buffer_printf(view->out, "%12.6f ", report->timestamp_ns / 1e9);
		show_line(view, &line, columns);
	}
}

static void show_rows(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	size_t count, metric_count;
	struct tally_stat_row *rows = tally_stat_rows(view, report, &count);
	struct tally_stat_metric *metrics = tally_stat_metrics(view, report, &metric_count);
	struct columns columns = measure(view, report, rows, count);
	for (size_t i = 0; metrics && i < metric_count; i++) {
		struct line line = { 0 };
		fill_metric(view, report, &metrics[i], &line);
		widen_all(&columns, &line);
	}
	if (report->is_interval && (!view->reports || view->clears))
		show_interval_heading(view, report, &columns);
	for (size_t i = 0; i < count; i++) {
		struct line line = { 0 };
		fill_line(view, report, &rows[i], &line);
		if (report->is_interval)
			tally_buffer_printf(view->out, "%12.6f ", report->timestamp_ns / 1e9);
		show_line(view, &line, &columns);
	}
	show_sum(view, report, rows, count, &columns);
	if (metrics)
		show_metrics(view, report, metrics, metric_count, &columns);
	view->out->failed |= !rows || (metric_count && !metrics);
	free(metrics);
	free(rows);
}

static void show_time(struct tally_stat_view *view, const struct tally_stat_report *report,
		      const struct tally_spread *spread, const char *what)
{
	char number[64];
	if (!spread->count)
		return;
	tally_stat_number(spread->mean / 1e9, 9, number, sizeof(number));
	tally_buffer_printf(view->out, "%*s s     %s", VALUE_WIDTH, number, what);
	if (report->runs > 1)
		tally_buffer_printf(view->out, "%*s± %5.2f %%",
				    (int)(NAME_WIDTH_MIN + 2 - strlen(what)), "",
				    tally_spread_percent(spread));
	tally_buffer_char(view->out, '\n');
}

static void show_ending(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	if (report->was_limited)
		tally_buffer_text(view->out,
				  "\n The command was stopped at the requested limit.\n");
	else if (report->end_signal)
		tally_buffer_printf(view->out, "\n The command was ended by signal %d (%s).\n",
				    report->end_signal, strsignal(report->end_signal));
	else if (report->was_interrupted && report->runs_wanted > 1 &&
		 report->runs < report->runs_wanted)
		tally_buffer_printf(view->out, "\n Interrupted after %lu of %lu runs.\n",
				    report->runs, report->runs_wanted);
}

/* Wraps at blanks, so that a note stays in its column. */
static void show_wrapped(const struct tally_stat_view *view, const char *text, int indent)
{
	enum { LINE = 100 };
	struct tally_buffer *out = view->out;
	int at = indent, line = LINE;
	if (view->columns)
		line = (int)tally_min_u64(view->columns, LINE);
	while (*text) {
		size_t length = strcspn(text, " ");
		if (at > indent && at + (int)length >= line) {
			tally_buffer_char(out, '\n');
			pad(out, indent);
			at = indent;
		} else if (at > indent) {
			tally_buffer_char(out, ' ');
			at++;
		}
		tally_buffer_append(out, text, length);
		at += (int)length;
		text += length + (text[length] == ' ');
	}
	tally_buffer_char(out, '\n');
}

static void show_notes(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	for (size_t i = 0; i < report->note_count; i++) {
		paint(view, INK_WARN);
		tally_buffer_text(view->out, " note: ");
		paint(view, INK_PLAIN);
		struct tally_buffer note = { 0 };
		tally_put_name(&note, report->notes[i]);
		show_wrapped(view, tally_buffer_string(&note), 7);
		tally_buffer_release(&note);
	}
}

static bool is_ascii(const struct tally_stat_view *view)
{
	return view->is_utf8 && !view->is_utf8();
}

/* Cuts to `room` columns; `text` has space for "…" after its end. */
static void shorten(const struct tally_stat_view *view, char *text, int room)
{
	int kept = room - 1, columns = 0;
	if (width(text) <= room)
		return;
	if (is_ascii(view))
		kept = room - 3;
	if (kept < 1)
		return;
	char *at = text;
	for (; *at; at++)
		if (tally_begins_character(*at) && columns++ == kept)
			break;
	*at = 0;
	memcpy(at, "…", sizeof("…"));
}

static void show_heading(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	static const char start[] = " Counts of ";
	char target[sizeof(report->target) + sizeof("…")], runs[64] = "";
	tally_terminal_clean_name(report->target, target, sizeof(report->target));
	if (report->runs > 1)
		snprintf(runs, sizeof(runs), ", mean ± σ of %lu runs", report->runs);
	int room = (int)view->columns - (int)strlen(start) - width(runs);
	if (runs[0] && is_ascii(view)) /* "+- sigma" is wider than "± σ" */
		room -= 5;
	if (view->columns)
		shorten(view, target, room);
	tally_buffer_printf(view->out, "\n%s", start);
	paint(view, INK_BOLD);
	tally_buffer_text(view->out, target);
	paint(view, INK_PLAIN);
	tally_buffer_printf(view->out, "%s\n\n", runs);
}

static void show_interval(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	if (view->clears)
		tally_buffer_text(view->out, "\033[H\033[2J");
	if (!view->reports || view->clears || report->note_count > view->notes_shown)
		show_notes(view, report);
	view->notes_shown = report->note_count;
	show_rows(view, report);
	view->reports++;
}

static void show_report(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	char verdict[256];
	if (report->is_interval) {
		show_interval(view, report);
		return;
	}
	show_heading(view, report);
	show_rows(view, report);
	if ((report->table.count || view->metrics) &&
	    (report->elapsed.count || report->user.count || report->system.count))
		tally_buffer_char(view->out, '\n');
	show_time(view, report, &report->elapsed,
		  report->table.is_simulated ? "elapsed, simulated" : "elapsed");
	show_time(view, report, &report->user, "user");
	show_time(view, report, &report->system, "sys");
	if (report->machine_short) {
		paint(view, INK_DIM);
		tally_buffer_printf(view->out, "\n CPU, simulated: %s.\n", report->machine_short);
		paint(view, INK_PLAIN);
	}
	show_ending(view, report);
	bool has_verdict = !report->by &&
			   tally_count_verdict(&report->table, verdict, sizeof(verdict));
	if (has_verdict || report->note_count)
		tally_buffer_char(view->out, '\n');
	if (has_verdict) {
		paint(view, INK_BOLD);
		tally_buffer_printf(view->out, " In short: %s.\n", verdict);
		paint(view, INK_PLAIN);
	}
	show_notes(view, report);
	tally_buffer_char(view->out, '\n');
	view->reports++;
}

/* Replaces tally's own signs by ASCII spellings; other non-ASCII characters become "?". */
static void append_ascii(struct tally_buffer *out, const char *text)
{
	static const struct {
		const char *sign, *plain;
	} signs[] = { { "±", "+-" }, { "σ", "sigma" }, { "…", "..." }, { "–", "-" } };
	while (*text) {
		size_t i = 0, count = sizeof(signs) / sizeof(signs[0]);
		while (i < count && strncmp(text, signs[i].sign, strlen(signs[i].sign)) != 0)
			i++;
		if (i < count) {
			tally_buffer_text(out, signs[i].plain);
			text += strlen(signs[i].sign);
		} else {
			if (tally_begins_character(*text))
				tally_buffer_char(out, *text & 0x80 ? '?' : *text);
			text++;
		}
	}
}

static void show(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	struct tally_buffer *out = view->out, text = { 0 };
	view->out = &text;
	show_report(view, report);
	view->out = out;
	const char *byte = tally_buffer_string(&text);
	while (*byte && !(*byte & 0x80))
		byte++;
	if (*byte && is_ascii(view))
		append_ascii(out, tally_buffer_string(&text));
	else
		tally_buffer_append(out, tally_buffer_string(&text), text.length);
	out->failed |= text.failed;
	tally_buffer_release(&text);
}

const struct tally_stat_view_ops tally_stat_view_table = { "table", show };
