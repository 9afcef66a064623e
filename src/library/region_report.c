/* The report of regions: a table for people and JSON for programs; its place when the process
 * exits. */
#include "base/error.h"
#include "base/extremes.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/output_path.h"
#include "base/terminal.h"
#include "base/text.h"
#include "counts/counts.h"
#include "library/library_events.h"
#include "library/region_internal.h"
#include "metric/metric.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REPORT_VERSION = 1 };

/* ---- ratios -------------------------------------------------------------------- */

/* An event has ratios if its counter ran during all of the measured calls, and if they were not
 * mostly begin and end. */
static bool has_ratios(const struct region_plan *plan, const struct region_all *all, unsigned event)
{
	enum { TIMES_OVERHEAD = 20 };
	const struct region_sum *sum = &all->events[event];
	if (sum->scaled || !sum->total || sum->measured != all->events[REGION_WALL].measured)
		return false;
	return region_subtracts() ||
	       sum->total / sum->measured >= TIMES_OVERHEAD * plan->events[event].empty;
}

/* Makes the region's sums a table of counts.  `rows` has REGION_EVENTS_MAX items. */
static struct tally_count_table make_table(const struct region_plan *plan,
					   const struct region_all *all,
					   struct tally_event_count *rows)
{
	for (unsigned i = 0; i < plan->event_count; i++) {
		const struct region_event *event = &plan->events[i];
		rows[i] = (struct tally_event_count){
			.name = event->name,
			.unit = event->is_time ? "ns" : "",
			.scale = 1,
			.type = event->type,
			.config = event->config,
			.excludes = event->excludes,
			.group = event->group,
			.state = TALLY_COUNT_OK,
			.value = (double)all->events[i].total,
		};
		if (i == REGION_WALL || !has_ratios(plan, all, i))
			rows[i].state = TALLY_COUNT_WITHHELD;
	}
	return (struct tally_count_table){
		.rows = rows,
		.count = plan->event_count,
		.elapsed_ns = (double)all->events[REGION_WALL].total,
	};
}

/* ---- the table ----------------------------------------------------------------- */

static void put_time(char *out, size_t size, double ns)
{
	if (ns < 1e3)
		snprintf(out, size, "%.0f ns", ns);
	else if (ns < 1e6)
		snprintf(out, size, "%.2f us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(out, size, "%.2f ms", ns / 1e6);
	else
		snprintf(out, size, "%.3f s", ns / 1e9);
}

static void put_count(char *out, size_t size, double count)
{
	uint64_t whole = tally_whole_number(count);
	if (count < 1e3 && count != (double)whole)
		snprintf(out, size, "%.1f", count);
	else if (count < 1e8)
		snprintf(out, size, "%s", tally_number(tally_whole_number(count + 0.5)));
	else if (count < 1e12)
		snprintf(out, size, "%.3f G", count / 1e9);
	else
		snprintf(out, size, "%.3f T", count / 1e12);
}

static void put_cell(struct tally_buffer *out, double value, bool is_time)
{
	char text[48];
	if (is_time)
		put_time(text, sizeof(text), value);
	else
		put_count(text, sizeof(text), value);
	tally_buffer_printf(out, " %11s", text);
}

static void put_remark(struct tally_buffer *out, const struct region_all *all, unsigned event,
		       const struct tally_count_table *table,
		       const struct tally_region_figures *figures)
{
	struct tally_metric metrics[TALLY_METRICS_MAX];
	uint64_t calls = all->events[REGION_WALL].measured;
	if (figures->measured < calls)
		tally_buffer_printf(out, "  # in %s of %s calls", tally_number(figures->measured),
				    tally_number(calls));
	if (figures->scaled)
		tally_buffer_printf(out, "  # ~ scaled: counted %.0f%% of the time, no ratios",
				    100 * figures->share);
	if (!tally_metrics_of(table, event, metrics))
		return;
	const char *format = "  # %.*f %s";
	tally_buffer_printf(out, format, metrics[0].decimals, metrics[0].value, metrics[0].unit);
}

static void put_region(struct tally_buffer *out, const struct region_plan *plan,
		       const struct region_all *all)
{
	struct tally_event_count rows[REGION_EVENTS_MAX];
	struct tally_count_table table = make_table(plan, all, rows);
	tally_buffer_char(out, '\n');
	tally_put_name(out, all->name);
	tally_buffer_printf(out, ": %s call%s", tally_number(all->calls), tally_plural(all->calls));
	if (all->recursive)
		tally_buffer_printf(out, ", %s of them recursive", tally_number(all->recursive));
	if (all->open)
		tally_buffer_printf(out, "; %s still open, without figures",
				    tally_number(all->open));
	tally_buffer_char(out, '\n');
	for (unsigned i = 0; i < plan->event_count && all->calls; i++) {
		struct tally_region_figures f;
		bool is_time = plan->events[i].is_time;
		region_figures(all, i, &f);
		tally_buffer_printf(out, "  %-18s%c", plan->events[i].name, " ~"[f.scaled > 0]);
		if (!f.measured) {
			tally_buffer_text(out, " <not counted>\n");
			continue;
		}
		put_cell(out, (double)f.total, is_time);
		if (!f.max) {
			tally_buffer_char(out, '\n');
			continue;
		}
		put_cell(out, (double)f.self, is_time);
		put_cell(out, f.mean, is_time);
		if (f.measured > 1)
			put_cell(out, f.sigma, is_time);
		else
			tally_buffer_printf(out, " %11s", "-");
		put_cell(out, (double)f.p50, is_time);
		put_cell(out, (double)f.p99, is_time);
		put_cell(out, (double)f.max, is_time);
		put_remark(out, all, i, &table, &f);
		tally_buffer_char(out, '\n');
	}
}

static void put_mistakes(struct tally_buffer *out, const struct region_mistakes *mistakes)
{
	const struct {
		uint64_t count;
		const char *what;
	} lines[] = {
		{ mistakes->left_open, "begins without an end (TALLY_REGION() has one always)" },
		{ mistakes->too_deep, "begins more than 512 deep" },
		{ mistakes->in_handlers, "calls in signal handlers that interrupted begin or end" },
		{ mistakes->no_memory, "begins without memory" },
	};
	if (mistakes->unknown_ends)
		tally_buffer_printf(out,
				    "Not measured: ends without a begin: %s; the first was '%s'\n",
				    tally_number(mistakes->unknown_ends),
				    tally_text_or(region_first_unknown(), "?"));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (lines[i].count)
			tally_buffer_printf(out, "Not measured: %s: %s\n", lines[i].what,
					    tally_number(lines[i].count));
	if (mistakes->without_events)
		tally_buffer_printf(
			out,
			"Threads that could not open all events: %s; raise the limit of open "
			"files (ulimit -n), or choose fewer events (TALLY_EVENTS)\n",
			tally_number(mistakes->without_events));
}

static void put_overhead(struct tally_buffer *out, const struct region_plan *plan)
{
	tally_buffer_text(out, "\nAn empty region measures");
	for (unsigned i = 0; i < plan->event_count; i++) {
		const struct region_event *event = &plan->events[i];
		char text[48];
		if (!event->empty)
			continue;
		if (event->is_time)
			put_time(text, sizeof(text), (double)event->empty);
		else
			put_count(text, sizeof(text), (double)event->empty);
		tally_buffer_printf(out, "%s %s %s", i ? "," : "", event->name, text);
	}
	char pair[48];
	put_time(pair, sizeof(pair), (double)plan->events[REGION_WALL].pair);
	tally_buffer_printf(out, "; begin and end take %s.\n", pair);
	if (region_subtracts())
		tally_buffer_text(out, "Both are subtracted.\n");
	else
		tally_buffer_text(out, "Neither is subtracted: TALLY_OVERHEAD=subtract does it.\n");
}

static void append_table(struct tally_buffer *out, const struct region_plan *plan,
			 const struct region_all *regions, unsigned count)
{
	struct region_mistakes mistakes;
	uint64_t threads = region_threads(&mistakes);
	tally_buffer_text(out, "Regions of ");
	tally_put_name(out, program_invocation_short_name);
	tally_buffer_printf(out, " (pid %d), %s thread%s:\n", (int)getpid(), tally_number(threads),
			    tally_plural(threads));
	tally_buffer_printf(out, "%21s", "");
	static const char *const columns[] = {
		"total", "self", "mean", "sigma", "p50", "p99", "max"
	};
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		tally_buffer_printf(out, " %11s", columns[i]);
	tally_buffer_char(out, '\n');
	for (unsigned i = 0; i < count; i++)
		put_region(out, plan, &regions[i]);
	put_overhead(out, plan);
	if (*plan->missing)
		tally_buffer_printf(out, "Not counted: %s\n", plan->missing);
	put_mistakes(out, &mistakes);
}

/* ---- JSON ---------------------------------------------------------------------- */

static void json_event(struct tally_json *json, const struct region_plan *plan,
		       const struct region_all *all, unsigned event,
		       const struct tally_count_table *table)
{
	struct tally_region_figures f;
	struct tally_metric metrics[TALLY_METRICS_MAX];
	region_figures(all, event, &f);
	tally_json_object(json, NULL);
	tally_json_text(json, "event", plan->events[event].name);
	tally_json_u64(json, "measured", f.measured);
	tally_json_u64(json, "scaled", f.scaled);
	tally_json_double(json, "share", f.share);
	if (f.measured) {
		tally_json_u64(json, "total", f.total);
		tally_json_u64(json, "self", f.self);
		tally_json_double(json, "mean", f.mean);
		tally_json_double(json, "sigma", f.sigma);
		tally_json_u64(json, "p50", f.p50);
		tally_json_u64(json, "p99", f.p99);
		tally_json_u64(json, "max", f.max);
	}
	unsigned count = tally_metrics_of(table, event, metrics);
	tally_json_array(json, "metrics");
	for (unsigned i = 0; i < count; i++) {
		tally_json_object(json, NULL);
		tally_json_double(json, "value", metrics[i].value);
		tally_json_text(json, "unit", metrics[i].unit);
		tally_json_end(json);
	}
	tally_json_end(json);
	tally_json_end(json);
}

static void json_region(struct tally_json *json, const struct region_plan *plan,
			const struct region_all *all)
{
	struct tally_event_count rows[REGION_EVENTS_MAX];
	struct tally_count_table table = make_table(plan, all, rows);
	tally_json_object(json, NULL);
	tally_json_text(json, "name", all->name);
	tally_json_u64(json, "calls", all->calls);
	tally_json_u64(json, "recursive", all->recursive);
	tally_json_u64(json, "open", all->open);
	tally_json_array(json, "events");
	for (unsigned i = 0; i < plan->event_count; i++)
		json_event(json, plan, all, i, &table);
	tally_json_end(json);
	tally_json_end(json);
}

static void json_plan(struct tally_json *json, const struct region_plan *plan)
{
	tally_json_array(json, "events");
	for (unsigned i = 0; i < plan->event_count; i++) {
		const struct region_event *event = &plan->events[i];
		tally_json_object(json, NULL);
		tally_json_text(json, "name", event->name);
		tally_json_text(json, "unit", event->is_time ? "ns" : "count");
		tally_json_u64(json, "empty", event->empty);
		tally_json_u64(json, "pair", event->pair);
		tally_json_end(json);
	}
	tally_json_end(json);
	tally_json_text_or_null(json, "missing", plan->missing);
	tally_json_bool(json, "overhead_subtracted", region_subtracts());
}

static void append_json(struct tally_buffer *out, const struct region_plan *plan,
			const struct region_all *regions, unsigned count)
{
	struct tally_json json = { .out = out, .indent = true };
	struct region_mistakes mistakes;
	uint64_t threads = region_threads(&mistakes);
	tally_json_object(&json, NULL);
	tally_json_text(&json, "type", "tally regions");
	tally_json_u64(&json, "version", REPORT_VERSION);
	tally_json_text(&json, "command", program_invocation_short_name);
	tally_json_i64(&json, "pid", getpid());
	tally_json_u64(&json, "threads", threads);
	json_plan(&json, plan);
	tally_json_array(&json, "regions");
	for (unsigned i = 0; i < count; i++)
		json_region(&json, plan, &regions[i]);
	tally_json_end(&json);
	tally_json_object(&json, "mistakes");
	tally_json_u64(&json, "ends_without_begin", mistakes.unknown_ends);
	tally_json_text(&json, "first_end_without_begin", region_first_unknown());
	tally_json_u64(&json, "begins_without_end", mistakes.left_open);
	tally_json_u64(&json, "too_deep", mistakes.too_deep);
	tally_json_u64(&json, "ignored_in_handlers", mistakes.in_handlers);
	tally_json_u64(&json, "without_memory", mistakes.no_memory);
	tally_json_u64(&json, "threads_without_events", mistakes.without_events);
	tally_json_end(&json);
	tally_json_end(&json);
}

/* ---- one report ---------------------------------------------------------------- */

/* The region with the most wall time comes first. */
static int by_total(const void *a, const void *b)
{
	const struct region_all *x = a, *y = b;
	int order = tally_compare_u64(y->events[REGION_WALL].total, x->events[REGION_WALL].total);
	if (order)
		return order;
	return tally_compare_u64(x->index, y->index);
}

int region_report_append(struct tally_buffer *out, const char *format)
{
	bool is_json = !strcmp(format, "json");
	if (!is_json && strcmp(format, "table"))
		return -EINVAL;
	const struct region_plan *plan = region_plan_get();
	unsigned count = 0, names = region_names();
	if (!plan)
		return -ENOENT;
	struct region_all *regions = malloc(names * sizeof(*regions));
	if (!regions)
		return -ENOMEM;
	for (unsigned i = 0; i < names; i++) {
		region_sum_up(i, &regions[count]);
		if (regions[count].calls || regions[count].open)
			count++;
	}
	int result = count ? 0 : -ENOENT;
	qsort(regions, count, sizeof(*regions), by_total);
	if (count && is_json)
		append_json(out, plan, regions, count);
	else if (count)
		append_table(out, plan, regions, count);
	free(regions);
	if (out->failed)
		result = -ENOMEM;
	return result;
}

static int write_all(int fd, const struct tally_buffer *buffer)
{
	for (size_t done = 0; done < buffer->length;) {
		ssize_t got = write(fd, buffer->bytes + done, buffer->length - done);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			done += (size_t)got;
	}
	return 0;
}

int tally_region_report(int fd, const char *format)
{
	struct tally_buffer out = { 0 };
	int result = region_report_append(&out, format);
	if (!result)
		result = write_all(fd, &out);
	tally_buffer_release(&out);
	return tally_library_result(result);
}

/* ---- at exit ------------------------------------------------------------------- */

/* The report's place.  Set by the first thread, read by the library's destructor. */
static struct {
	const char *format; /* NULL: none */
	char *path;         /* absolute, with %p; NULL: descriptor 2 */
	bool has_stderr;
	struct stat standard_error;
	char complaint[128]; /* about the setting; or "" */
} place;

void region_report_prepare(const char *setting)
{
	if (!setting || !*setting)
		return;
	place.has_stderr = !fstat(STDERR_FILENO, &place.standard_error);
	size_t length = strcspn(setting, ":");
	if (length == 5 && !strncmp(setting, "table", 5))
		place.format = "table";
	else if (length == 4 && !strncmp(setting, "json", 4))
		place.format = "json";
	else
		snprintf(place.complaint, sizeof(place.complaint),
			 "TALLY_REPORT is none of table, json, table:FILE, json:FILE");
	const char *file = setting + length + 1;
	if (!place.format || !setting[length])
		return;
	/* The program may change its folder later. */
	char *folder = NULL;
	if (*file != '/')
		folder = getcwd(NULL, 0);
	if (asprintf(&place.path, "%s%s%s", tally_text_or(folder, ""), folder ? "/" : "", file) < 0)
		place.path = NULL;
	free(folder);
	if (!place.path || !*file) {
		place.format = NULL;
		snprintf(place.complaint, sizeof(place.complaint),
			 "TALLY_REPORT names no file behind the colon");
	}
}

/* The program may have closed descriptor 2, and opened a file of its own there. */
static bool is_stderr_the_same(void)
{
	struct stat now;
	return place.has_stderr && !fstat(STDERR_FILENO, &now) &&
	       now.st_dev == place.standard_error.st_dev &&
	       now.st_ino == place.standard_error.st_ino;
}

/* "%p" → the process's id, "%%" → "%". */
static void expand_path(char *out, size_t size)
{
	size_t length = 0;
	for (const char *at = place.path; *at && length + 12 < size; at++) {
		if (at[0] == '%' && at[1] == 'p')
			length += (size_t)snprintf(out + length, size - length, "%d",
						   (int)getpid());
		else
			out[length++] = *at;
		if (at[0] == '%' && (at[1] == 'p' || at[1] == '%'))
			at++;
	}
	out[length] = '\0';
}

static int write_file(const struct tally_buffer *out, struct tally_error *err)
{
	struct tally_output_path path = TALLY_OUTPUT_PATH_INIT;
	char expanded[PATH_MAX];
	expand_path(expanded, sizeof(expanded));
	int result = tally_output_path_open(&path, expanded, err);
	if (result)
		return result;
	int fd = tally_output_path_write(&path, O_WRONLY | O_TRUNC, 0666, err);
	tally_output_path_close(&path);
	if (fd < 0)
		return fd;
	result = write_all(fd, out);
	if (close(fd) < 0 && !result)
		result = -errno;
	if (result)
		tally_error_set(err, result, "%s: %s", expanded, tally_errno_text(result));
	return result;
}

/* Writes to descriptor 2.  A closed pipe must not end the process by SIGPIPE: its exit status is
 * the program's. */
static void write_stderr(const struct tally_buffer *out)
{
	const struct timespec now = { 0 };
	sigset_t pipe, old, pending;
	if (!is_stderr_the_same())
		return;
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &old);
	if (write_all(STDERR_FILENO, out) == -EPIPE && !sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void region_report_at_exit(void)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer out = { 0 };
	int result = 0;
	if (*place.complaint)
		tally_buffer_printf(&out, "libtally: %s\n", place.complaint);
	if (place.format)
		result = region_report_append(&out, place.format);
	if (result == -ENOENT)
		goto out;
	if (!result && place.path && !*place.complaint) {
		result = write_file(&out, &err);
		tally_buffer_clear(&out);
		if (result)
			tally_buffer_printf(&out, "libtally: the report was not written: %s\n",
					    err.message);
	} else if (result) {
		tally_buffer_clear(&out);
		tally_buffer_printf(&out, "libtally: no report: %s\n", tally_errno_text(result));
	}
	write_stderr(&out);
out:
	tally_buffer_release(&out);
}
