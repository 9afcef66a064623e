/* The text, CSV and JSON of `perf stat`, to the letter (perf 6.1, tools/perf/util/stat-display.c and
 * stat-shadow.c). */
#include "base/json.h"
#include "base/text.h"
#include "event/event.h"
#include "perf/perf.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	VALUE_WIDTH = 18,
	UNIT_WIDTH = 4,       /* at least */
	NAME_WIDTH = 32,
	NAME_WIDTH_BARE = 25, /* of an event without a figure */
	METRIC_WIDTH = 35,
	HEADING_EVERY = 25    /* intervals */
};

enum form { TEXT, CSV, JSON };

/* What stands behind "#".  `format` NULL: nothing. */
struct metric {
	const char *format;
	double value;
	char unit[40];
};

struct page {
	struct tally_stat_view *view;
	const struct tally_stat_report *report;
	enum form form;
	bool is_grouped;
	char decimal_point, separator[8];
	int unit_width;
};

/* --- numbers -------------------------------------------------------------- */

/* Writes a number as printf("%'.*f") does it in the user's locale. */
static void number_text(const struct page *page, double value, int decimals, char *out, size_t size)
{
	char digits[352];
	snprintf(digits, sizeof(digits), "%.*f", decimals, value);
	size_t whole = strcspn(digits, "."), used = 0;
	size_t begin = digits[0] == '-';
	for (size_t i = 0; digits[i] && used + sizeof(page->separator) < size; i++) {
		bool is_start = i <= begin || i >= whole || (whole - i) % 3;
		if (page->is_grouped && !is_start)
			used += (size_t)snprintf(out + used, size - used, "%s", page->separator);
		out[used++] = digits[i] == '.' ? page->decimal_point : digits[i];
	}
	out[used] = 0;
}

/* Fields that the locale groups; -x and -j have plain numbers. */
static void find_locale(struct page *page)
{
	page->decimal_point = '.';
	if (page->form != TEXT)
		return;
	locale_t user = newlocale(LC_NUMERIC_MASK, "", (locale_t)0), before;
	if (!user)
		return;
	before = uselocale(user);
	const struct lconv *known = localeconv();
	if (known->decimal_point[0] && !known->decimal_point[1])
		page->decimal_point = known->decimal_point[0];
	snprintf(page->separator, sizeof(page->separator), "%s", known->thousands_sep);
	page->is_grouped = page->separator[0] && known->grouping[0] && !page->view->is_plain;
	uselocale(before);
	freelocale(user);
}

/* perf's convert_unit_double(): the value below 1,000, and the letter. */
static double with_letter(double value, char *letter)
{
	static const char letters[] = { 0, 'K', 'M', 'G', 'T' };
	size_t i = 0;
	while (i + 1 < sizeof(letters) && value > 1000) {
		value /= 1000;
		i++;
	}
	*letter = letters[i];
	return value;
}

/* --- metrics -------------------------------------------------------------- */

static void set_metric(struct metric *metric, const char *format, double value, const char *unit)
{
	metric->format = format;
	metric->value = value;
	snprintf(metric->unit, sizeof(metric->unit), "%s", unit);
}

static const struct tally_event_count *other_row(const struct tally_stat_row *row, uint32_t type,
						 uint64_t config)
{
	const struct tally_event_count *found =
		tally_count_find(&row->table, type, config, row->count->excludes, row->count->group,
				 row->count->cgroup);
	if (!found || found->state != TALLY_COUNT_OK || found->value == 0)
		return NULL;
	return found;
}

static bool is_clock(const struct tally_event_count *count)
{
	return count->type == TALLY_TYPE_SOFTWARE && (count->config == TALLY_SW_TASK_CLOCK ||
						      count->config == TALLY_SW_CPU_CLOCK);
}

/* The time that perf divides by: the interval as it was asked for. */
static double wall_ns(const struct page *page)
{
	if (page->report->is_interval && page->view->interval_ms)
		return page->view->interval_ms * 1e6;
	return page->report->table.elapsed_ns;
}

/* Events whose share of another event is shown. */
static const struct {
	uint32_t type;
	uint64_t config, of;
	const char *format, *unit;
} SHARES[] = {
#define HARDWARE(name, of, format, unit) \
	{ TALLY_TYPE_HARDWARE, TALLY_HW_##name, TALLY_HW_##of, format, unit }
#define CACHE(level, unit) \
	{ TALLY_TYPE_HW_CACHE, \
	  TALLY_CACHE_##level | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_MISS << 16, \
	  TALLY_CACHE_##level | TALLY_CACHE_OP_READ << 8 | TALLY_CACHE_RESULT_ACCESS << 16, \
	  "%7.2f%%", "of all " unit " accesses" }
	HARDWARE(BRANCH_MISSES, BRANCH_INSTRUCTIONS, "%7.2f%%", "of all branches"),
	HARDWARE(CACHE_MISSES, CACHE_REFERENCES, "%8.3f %%", "of all cache refs"),
	HARDWARE(STALLED_CYCLES_FRONTEND, CPU_CYCLES, "%7.2f%%", "frontend cycles idle"),
	HARDWARE(STALLED_CYCLES_BACKEND, CPU_CYCLES, "%7.2f%%", "backend cycles idle"),
	CACHE(L1D, "L1-dcache"),
	CACHE(L1I, "L1-icache"),
	CACHE(DTLB, "dTLB cache"),
	CACHE(ITLB, "iTLB cache"),
	CACHE(LL, "LL-cache"),
#undef HARDWARE
#undef CACHE
};

static bool share_of(const struct tally_stat_row *row, struct metric *metric)
{
	const struct tally_event_count *count = row->count, *whole;
	for (size_t i = 0; i < sizeof(SHARES) / sizeof(SHARES[0]); i++) {
		if (count->type != SHARES[i].type || count->config != SHARES[i].config)
			continue;
		whole = other_row(row, SHARES[i].type, SHARES[i].of);
		if (whole)
			set_metric(metric, SHARES[i].format, 100 * count->value / whole->value,
				   SHARES[i].unit);
		return true;
	}
	return false;
}

static void rate_of(const struct tally_stat_row *row, double clock_ns, struct metric *metric)
{
	char letter, unit[8] = "/sec";
	if (clock_ns <= 0)
		return;
	double value = with_letter(1e9 * row->count->value / clock_ns, &letter);
	if (letter)
		snprintf(unit, sizeof(unit), "%c/sec", letter);
	set_metric(metric, "%8.3f", value, unit);
}

/* perf_stat__print_shadow_stats() */
static struct metric metric_of(const struct page *page, const struct tally_stat_row *row)
{
	const struct tally_event_count *count = row->count, *cycles;
	double clock_ns = tally_count_clock_ns(&row->table, count->cgroup);
	bool is_hardware = count->type == TALLY_TYPE_HARDWARE;
	struct metric metric = { .unit = "" };
	if (is_clock(count)) {
		if (wall_ns(page) > 0)
			set_metric(&metric, "%8.3f", count->value / wall_ns(page), "CPUs utilized");
	} else if (is_hardware && count->config == TALLY_HW_INSTRUCTIONS) {
		cycles = other_row(row, TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES);
		if (cycles)
			set_metric(&metric, "%7.2f ", count->value / cycles->value,
				   "insn per cycle");
	} else if (is_hardware && count->config == TALLY_HW_CPU_CYCLES) {
		if (clock_ns > 0)
			set_metric(&metric, "%8.3f", count->value / clock_ns, "GHz");
	} else if (!share_of(row, &metric)) {
		rate_of(row, clock_ns, &metric);
	}
	return metric;
}

/* --- rows ----------------------------------------------------------------- */

static void put_prefix(const struct page *page)
{
	const struct tally_stat_report *report = page->report;
	struct tally_buffer *out = page->view->out;
	const char *after = page->form == CSV ? page->view->separator : " ";
	if (page->form == JSON && report->is_interval)
		tally_buffer_printf(out, "\"interval\" : %.9f, ", report->timestamp_ns / 1e9);
	else if (page->form != JSON && report->is_interval)
		tally_buffer_printf(out, "%16.9f%s", report->timestamp_ns / 1e9, after);
	else if (page->form == CSV && report->is_summary)
		tally_buffer_printf(out, "%16s%s", "summary", after);
}

/* aggr_printout(): the part that a row is of. */
static void put_part(const struct page *page, const struct tally_count_part *part)
{
	static const struct {
		int width;       /* of the label and its padding */
		const char *key; /* of JSON */
	} parts[] = {
		[TALLY_COUNT_BY_CPU] = { 11, "cpu" },    [TALLY_COUNT_BY_CORE] = { 16, "core" },
		[TALLY_COUNT_BY_DIE] = { 13, "die" },    [TALLY_COUNT_BY_SOCKET] = { 7, "socket" },
		[TALLY_COUNT_BY_NODE] = { 7, "node" },   [TALLY_COUNT_BY_THREAD] = { 26, "thread" },
	};
	struct tally_buffer *out = page->view->out;
	enum tally_count_by by = page->report->by;
	bool is_sum = tally_stat_part_is_sum(by);
	const char *label = part->label, *separator = page->view->separator;
	if (!by)
		return;
	if (page->form == JSON) {
		if (by == TALLY_COUNT_BY_CPU)
			label += strspn(label, "CPU");
		tally_buffer_printf(out, "\"%s\" : ", parts[by].key);
		tally_json_quote(out, label);
		tally_buffer_text(out, ", ");
		if (is_sum)
			tally_buffer_printf(out, "\"aggregate-number\" : %u, ", part->cpus);
	} else if (page->form == CSV) {
		tally_buffer_printf(out, "%s%s", label, separator);
		if (is_sum)
			tally_buffer_printf(out, "%u%s", part->cpus, separator);
	} else if (by == TALLY_COUNT_BY_THREAD) {
		/* the name in 16 columns, the number in 8 */
		const char *dash = strrchr(label, '-');
		int name = dash ? (int)(dash - label) : (int)strlen(label);
		tally_buffer_printf(out, "%*.*s%-9s ", 16, name, label, dash ? dash : "");
	} else if (is_sum) {
		tally_buffer_printf(out, "%-*s%4u ", parts[by].width, label, part->cpus);
	} else {
		tally_buffer_printf(out, "%-*s", parts[by].width, label);
	}
}

/* A value in its unit: clocks in ms. */
static double value_of(const struct tally_event_count *row, const char **unit, int *decimals)
{
	*unit = row->unit;
	*decimals = row->scale != floor(row->scale) ? 2 : 0;
	if (!is_clock(row))
		return row->value;
	*unit = "msec";
	*decimals = 2;
	return row->value / 1e6;
}

/* Returns the words in place of a figure, or NULL.  An event that had no time in an interval has none. */
static const char *missing_of(const struct tally_event_count *count)
{
	bool is_tool = count->type == TALLY_TYPE_TOOL;
	bool has_time = count->running_ns || count->is_substitute || (is_tool && count->value > 0);
	if (count->state == TALLY_COUNT_OK && !has_time)
		return "<not counted>";
	if (count->state == TALLY_COUNT_WITHHELD)
		return NULL; /* perf has no such thing */
	return tally_stat_missing_text(count);
}

/* The standard error of the mean, in percent of it. */
static double noise_of(const struct tally_spread *spread)
{
	if (spread->count < 2 || spread->mean == 0)
		return 0;
	return 100 * tally_spread_sigma(spread) / sqrt((double)spread->count) /
	       fabs(spread->mean);
}

static void put_metric(const struct page *page, const struct metric *metric)
{
	struct tally_buffer *out = page->view->out;
	char text[64];
	if (!metric->format) {
		tally_buffer_printf(out, "%-*s", METRIC_WIDTH, "");
		return;
	}
	int width = snprintf(text, sizeof(text), metric->format, metric->value);
	char *point = strchr(text, '.');
	if (point)
		*point = page->decimal_point;
	tally_buffer_printf(out, " # %s %-*s", text, METRIC_WIDTH - 3 - width - 1, metric->unit);
}

static void put_text_row(const struct page *page, const struct tally_stat_row *row)
{
	const struct tally_event_count *count = row->count;
	const char *missing = missing_of(count), *unit;
	struct tally_buffer *out = page->view->out;
	struct metric metric = { .unit = "" };
	char number[400];
	int decimals;
	double value = value_of(count, &unit, &decimals);
	number_text(page, value, decimals, number, sizeof(number));
	tally_buffer_printf(out, "%*s %-*s ", VALUE_WIDTH, tally_text_or(missing, number),
			    page->unit_width, unit);
	tally_buffer_printf(out, "%-*s", missing ? NAME_WIDTH_BARE : NAME_WIDTH, count->name);
	if (count->cgroup)
		tally_buffer_printf(out, " %s", count->cgroup);
	if (!missing)
		metric = metric_of(page, row);
	put_metric(page, &metric);
	double noise = noise_of(&count->spread);
	if (!missing && noise > 0)
		tally_buffer_printf(out, "  ( +-%6.2f%% )", noise);
	if (!missing && count->was_scaled)
		tally_buffer_printf(out, "  (%.2f%%)", 100 * tally_count_share(count));
	tally_buffer_char(out, '\n');
}

static void put_csv_row(const struct page *page, const struct tally_stat_row *row)
{
	const struct tally_event_count *count = row->count;
	const char *missing = missing_of(count), *unit;
	const char *separator = page->view->separator;
	struct tally_buffer *out = page->view->out;
	struct metric metric = { .unit = "" };
	int decimals;
	double value = value_of(count, &unit, &decimals);
	if (missing)
		tally_buffer_text(out, missing);
	else
		tally_buffer_printf(out, "%.*f", decimals, value);
	tally_buffer_printf(out, "%s%s%s%s%s", separator, unit, separator, count->name, separator);
	if (count->cgroup)
		tally_buffer_printf(out, "%s%s", count->cgroup, separator);
	if (page->report->runs_wanted > 1)
		tally_buffer_printf(out, "%.2f%%%s", missing ? 0 : noise_of(&count->spread),
				    separator);
	tally_buffer_printf(out, "%.0f%s%.2f%s", missing ? 0 : (double)count->running_ns,
			    separator, missing ? 100 : 100 * tally_count_share(count), separator);
	if (!missing)
		metric = metric_of(page, row);
	if (metric.format) {
		char text[64], *end = text;
		snprintf(text, sizeof(text), metric.format, metric.value);
		char *begin = text + strspn(text, " ");
		end = begin + strspn(begin, "-0123456789.");
		*end = 0;
		tally_buffer_text(out, begin);
	}
	tally_buffer_printf(out, "%s%s\n", separator, metric.unit);
}

static void put_json_row(const struct page *page, const struct tally_stat_row *row)
{
	const struct tally_event_count *count = row->count;
	const char *missing = missing_of(count), *unit;
	struct tally_buffer *out = page->view->out;
	struct metric metric = { .unit = "" };
	int decimals;
	double value = value_of(count, &unit, &decimals);
	if (missing)
		tally_buffer_printf(out, "\"counter-value\" : \"%s\", ", missing);
	else
		tally_buffer_printf(out, "\"counter-value\" : \"%f\", ", value);
	tally_buffer_printf(out, "\"unit\" : \"%s\", \"event\" : ", unit);
	tally_json_quote(out, count->name);
	tally_buffer_text(out, ", ");
	if (count->cgroup) {
		tally_buffer_text(out, "\"cgroup\" : ");
		tally_json_quote(out, count->cgroup);
		tally_buffer_text(out, ", ");
	}
	if (page->report->runs_wanted > 1)
		tally_buffer_printf(out, "\"variance\" : %.2f, ",
				    missing ? 0 : noise_of(&count->spread));
	tally_buffer_printf(out, "\"event-runtime\" : %.0f, \"pcnt-running\" : %.2f, ",
			    missing ? 0 : (double)count->running_ns,
			    missing ? 100 : 100 * tally_count_share(count));
	if (!missing)
		metric = metric_of(page, row);
	if (!missing && !metric.format)
		snprintf(metric.unit, sizeof(metric.unit), "(null)");
	tally_buffer_printf(out, "\"metric-value\" : %f, \"metric-unit\" : \"%s\"}\n", metric.value,
			    metric.unit);
}

static void put_row(const struct page *page, const struct tally_stat_row *row)
{
	if (page->form == JSON)
		tally_buffer_char(page->view->out, '{');
	put_prefix(page);
	put_part(page, row->part);
	if (page->form == TEXT)
		put_text_row(page, row);
	else if (page->form == CSV)
		put_csv_row(page, row);
	else
		put_json_row(page, row);
}

/* --- what is around the rows ------------------------------------------------ */

static void put_interval_heading(const struct page *page)
{
	static const char *const parts[] = {
		[TALLY_COUNT_BY_NOTHING] = "",
		[TALLY_COUNT_BY_CPU] = "CPU        ",
		[TALLY_COUNT_BY_CORE] = "core            cpus ",
		[TALLY_COUNT_BY_DIE] = "die          cpus ",
		[TALLY_COUNT_BY_SOCKET] = "socket cpus ",
		[TALLY_COUNT_BY_NODE] = "node   cpus ",
		[TALLY_COUNT_BY_THREAD] = "            comm-pid      ",
	};
	tally_buffer_printf(page->view->out, "#           time %s%*s %*s events\n",
			    parts[page->report->by], VALUE_WIDTH, "counts", page->unit_width,
			    "unit");
}

static void put_target(const struct page *page)
{
	struct tally_buffer *out = page->view->out;
	char **words = page->report->command;
	tally_buffer_text(out, "\n Performance counter stats for ");
	if (page->view->perf_target) {
		tally_buffer_printf(out, "%s", page->view->perf_target);
	} else if (words) {
		tally_buffer_char(out, '\'');
		for (size_t i = 0; words[i]; i++)
			tally_buffer_printf(out, "%s%s", i ? " " : "", words[i]);
		tally_buffer_char(out, '\'');
	} else {
		tally_buffer_text(out, "'system wide'");
	}
	if (page->report->runs_wanted > 1)
		tally_buffer_printf(out, " (%lu runs)", page->report->runs_wanted);
	tally_buffer_text(out, ":\n\n");
}

static void put_seconds(const struct page *page, double ns, const char *what)
{
	char number[64];
	snprintf(number, sizeof(number), "%17.9f", ns / 1e9);
	char *point = strchr(number, '.');
	if (point)
		*point = page->decimal_point;
	tally_buffer_printf(page->view->out, " %s seconds %s\n", number, what);
}

/* get_precision(): digits behind the point until the first that isn't 0. */
static int precision_of(double value)
{
	int digits = 0;
	for (; value > 0 && value < 1; value *= 10) /* log10() would need libm */
		digits++;
	return digits;
}

static void put_times(const struct page *page)
{
	const struct tally_stat_report *report = page->report;
	struct tally_buffer *out = page->view->out;
	if (report->table.count)
		tally_buffer_char(out, '\n');
	if (report->runs_wanted > 1) {
		const struct tally_spread *elapsed = &report->elapsed;
		double error = tally_spread_sigma(elapsed) / 1e9;
		if (elapsed->count)
			error /= sqrt((double)elapsed->count);
		int precision = precision_of(error) + 2;
		tally_buffer_printf(out, " %17.*f +- %.*f seconds time elapsed", precision,
				    elapsed->mean / 1e9, precision, error);
		if (noise_of(elapsed) > 0)
			tally_buffer_printf(out, "  ( +-%6.2f%% )", noise_of(elapsed));
		tally_buffer_text(out, "\n\n");
		return;
	}
	put_seconds(page, report->elapsed.mean, "time elapsed");
	if (report->command && !page->view->perf_target && report->user.count) {
		tally_buffer_char(out, '\n');
		put_seconds(page, report->user.mean, "user");
		put_seconds(page, report->system.mean, "sys");
		tally_buffer_char(out, '\n');
	}
	tally_buffer_char(out, '\n');
}

static void show(struct tally_stat_view *view, const struct tally_stat_report *report,
		 enum form form)
{
	struct page page = { .view = view, .report = report, .form = form,
			     .unit_width = UNIT_WIDTH };
	bool is_whole = form == TEXT && !report->is_interval;
	size_t count;
	struct tally_stat_row *rows = tally_stat_rows(view, report, &count);
	find_locale(&page);
	for (size_t i = 0; i < report->table.count; i++)
		if ((int)strlen(report->table.rows[i].unit) > page.unit_width)
			page.unit_width = (int)strlen(report->table.rows[i].unit);
	if (is_whole)
		put_target(&page);
	else if (form == TEXT && (view->clears || !(view->reports % HEADING_EVERY)))
		put_interval_heading(&page);
	for (size_t i = 0; rows && i < count; i++)
		put_row(&page, &rows[i]);
	if (is_whole)
		put_times(&page);
	view->reports++;
	view->out->failed |= !rows;
	free(rows);
}

static void show_text(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	show(view, report, TEXT);
}

static void show_csv(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	show(view, report, CSV);
}

static void show_json(struct tally_stat_view *view, const struct tally_stat_report *report)
{
	show(view, report, JSON);
}

const struct tally_stat_view_ops tally_perf_stat_text = { "perf", show_text };
const struct tally_stat_view_ops tally_perf_stat_csv = { "perf-csv", show_csv };
const struct tally_stat_view_ops tally_perf_stat_json = { "perf-json", show_json };
