/* The command `perf report` of perf mode: parses perf's options, reads a profile, and prints perf's
 * text.  Only `--stdio` exists: perf mode is for programs, and tally report browses. */
#include "base/buffer.h"
#include "base/text.h"
#include "command/command.h"
#include "command/header_options.h"
#include "command/perf_mode.h"
#include "perf/perf.h"
#include "perfdata/perfdata.h"
#include "profile/profile.h"
#include "report/report.h"
#include "view/view.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	SEPARATOR_BYTES = 16,
	FAILURE = 255,   /* perf's exit status */
	MAX_STACK = 127, /* perf's default of --max-stack */
};

struct request {
	struct tally_view_options view;
	struct tally_header_request header;
	struct tally_perf_sums_options sums;
	struct tally_perf_report_view text;
	const char *sort, *fields, *percentage, *separator;
	char separator_text[SEPARATOR_BYTES];
	bool no_children, shows_samples, shows_period;
	bool graph_given, no_graph, order_given, counts_records, is_grouped, is_apart;
};

/* ---- options -------------------------------------------------------------- */

static bool set_chains(struct request *request, const char *word, size_t length)
{
	static const struct { const char *name; enum tally_perf_chains chains;
	} modes[] = {
		{ "graph", TALLY_PERF_CHAINS_GRAPH },   { "fractal", TALLY_PERF_CHAINS_FRACTAL },
		{ "flat", TALLY_PERF_CHAINS_FLAT },     { "folded", TALLY_PERF_CHAINS_FOLDED },
		{ "none", TALLY_PERF_CHAINS_NONE },     { "no", TALLY_PERF_CHAINS_NONE },
	};
	static const struct { const char *name; enum tally_perf_value value;
	} values[] = {
		{ "percent", TALLY_PERF_VALUE_PERCENT },
		{ "period", TALLY_PERF_VALUE_PERIOD },
		{ "count", TALLY_PERF_VALUE_COUNT },
	};
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strlen(modes[i].name) == length && !memcmp(word, modes[i].name, length)) {
			request->text.chains = modes[i].chains;
			return true;
		}
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (strlen(values[i].name) == length && !memcmp(word, values[i].name, length)) {
			request->text.value = values[i].value;
			return true;
		}
	return length == strlen("function") && !memcmp(word, "function", length);
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && !memcmp(text, word, length);
}

/* Parses perf's "graph,0.5,0,caller,function,percent", in any order. */
static int take_graph(void *taker, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	struct request *request = taker;
	bool limit_given = false;
	(void)option;
	request->graph_given = true;
	request->no_graph = false;
	for (const char *word = value; word && *word; word += *word == ',') {
		size_t length = strcspn(word, ",");
		char *end;
		if (is_word(word, length, "caller") || is_word(word, length, "callee")) {
			request->sums.from_caller = word[5] == 'r';
			request->order_given = true;
		} else if (isdigit((unsigned char)*word) || *word == '.') {
			double number = strtod(word, &end);
			if (end != word + length)
				return tally_error_set(err, -EINVAL, "option -g: '%s' is wrong",
						       value);
			if (limit_given)
				request->text.print_limit = (uint32_t)number;
			else
				request->text.chain_percent_min = number;
			limit_given = true;
		} else if (!set_chains(request, word, length)) {
			tally_error_set(err, -ENOTSUP, "option -g: there is no '%.*s'", (int)length,
					word);
			tally_error_hint(err, "it takes graph, fractal, flat, folded or none, a "
					      "percentage, and caller or callee");
			return -ENOTSUP;
		}
		word += length;
	}
	request->no_graph = request->text.chains == TALLY_PERF_CHAINS_NONE;
	return 0;
}

static int take_inverted(void *taker, const struct tally_option *option, const char *value,
			 struct tally_error *err)
{
	struct request *request = taker;
	(void)option, (void)value, (void)err;
	request->sums.from_caller = request->order_given = true;
	return 0;
}

static int take_percent(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	struct request *request = taker;
	int result = tally_option_store(request, option, value, err);
	request->text.chain_percent_min = request->text.percent_min;
	return result;
}

static int take_percentage(void *taker, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct request *request = taker;
	(void)option;
	request->text.is_relative = !strcmp(value, "relative");
	if (request->text.is_relative || !strcmp(value, "absolute"))
		return 0;
	return tally_error_set(err, -EINVAL,
			       "option --percentage: '%s' is neither relative nor absolute", value);
}

static int take_separator(void *taker, const struct tally_option *option, const char *value,
			  struct tally_error *err)
{
	struct request *request = taker;
	(void)option;
	if (!strcmp(value, "\\t"))
		value = "\t";
	if (!*value || strlen(value) >= SEPARATOR_BYTES || *value == '.')
		return tally_error_set(err, -EINVAL, "option -t: '%s' can't separate columns",
				       value);
	snprintf(request->separator_text, sizeof(request->separator_text), "%s", value);
	request->text.separator = request->separator_text;
	return 0;
}

static const struct tally_option options[] = {
	{ TALLY_INCLUDE(tally_view_input_option, struct request, view) },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "text, as always", TALLY_IGNORED },
	{ 's', "sort", TALLY_ARGUMENT_REQUIRED, "KEYS",
	  "group by these keys: comm, dso, symbol, pid, cpu, srcline, srcfile,\ntrace",
	  TALLY_TEXT(struct request, sort) },
	{ 'F', "fields", TALLY_ARGUMENT_REQUIRED, "FIELDS",
	  "columns: keys, and overhead, sample, period", TALLY_TEXT(struct request, fields) },
	{ 'n', "show-nr-samples", TALLY_ARGUMENT_NONE, NULL, "a column of numbers of samples",
	  TALLY_SET(struct request, shows_samples) },
	{ 0, "show-total-period", TALLY_ARGUMENT_NONE, NULL, "a column of periods",
	  TALLY_SET(struct request, shows_period) },
	{ 't', "field-separator", TALLY_ARGUMENT_REQUIRED, "SEP",
	  "SEP between columns instead of blanks", TALLY_TAKE(take_separator) },
	{ 'q', "quiet", TALLY_ARGUMENT_NONE, NULL, "rows alone",
	  TALLY_SET(struct request, text.quiet) },
	{ 0, "children", TALLY_ARGUMENT_NONE, NULL,
	  "sums of callers, too (the default with call graphs)",
	  TALLY_CLEAR(struct request, no_children) },
	{ 0, "no-children", TALLY_ARGUMENT_NONE, NULL, "no sums of callers",
	  TALLY_SET(struct request, no_children) },
	{ 'g', "call-graph", TALLY_ARGUMENT_OPTIONAL, "MODE,PERCENT,ORDER",
	  "how call chains are shown: graph, fractal, flat, folded or none;\n"
	  "branches of at least PERCENT; caller or callee first (graph,0.5,caller)",
	  "graph fractal flat folded none no caller callee function address srcline percent "
	  "period count",
	  TALLY_TAKE(take_graph) },
	{ 0, "no-call-graph", TALLY_ARGUMENT_NONE, NULL, "no call chains",
	  TALLY_SET(struct request, no_graph) },
	{ 'G', "inverted", TALLY_ARGUMENT_NONE, NULL, "callers first", TALLY_TAKE(take_inverted) },
	{ 0, "max-stack", TALLY_ARGUMENT_REQUIRED, "N", "at most N frames of a chain (127)",
	  TALLY_FRAMES(struct request, sums.frames_max) },
	{ 'd', "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these objects",
	  TALLY_TEXT(struct request, sums.objects) },
	{ 'c', "comms", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples of these commands",
	  TALLY_TEXT(struct request, sums.comms) },
	{ 'S', "symbols", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these functions",
	  TALLY_TEXT(struct request, sums.symbols) },
	{ 0, "symbol-filter", TALLY_ARGUMENT_REQUIRED, "TEXT",
	  "only functions whose names contain TEXT", TALLY_TEXT(struct request, sums.symbol_part) },
	{ 0, "pid", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples of these processes",
	  TALLY_TEXT(struct request, sums.pids) },
	{ 0, "tid", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples of these threads",
	  TALLY_TEXT(struct request, sums.tids) },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples on these CPUs",
	  TALLY_TEXT(struct request, view.filter.cpus), TALLY_TAKE(tally_view_take_cpus) },
	{ TALLY_INCLUDE(tally_view_time_option, struct request, view) },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "P",
	  "leave out entries and branches below P %",
	  TALLY_PERCENT(struct request, text.percent_min), TALLY_TAKE(take_percent) },
	{ 0, "percentage", TALLY_ARGUMENT_REQUIRED, "relative|absolute",
	  "shares of the shown samples, or of all (absolute)", TALLY_TAKE(take_percentage) },
	{ 'U', "hide-unresolved", TALLY_ARGUMENT_NONE, NULL, "only code with symbols",
	  TALLY_SET(struct request, sums.no_unknown) },
	{ TALLY_INCLUDE(tally_view_name_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_no_demangle_option, struct request, view) },
	{ 0, "no-inline", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_IGNORED },
	{ TALLY_INCLUDE(tally_header_options, struct request, header) },
	{ 0, "group", TALLY_ARGUMENT_NONE, NULL, "all events beside each other",
	  TALLY_SET(struct request, is_grouped) },
	{ 0, "no-group", TALLY_ARGUMENT_NONE, NULL, "groups' events one after the other",
	  TALLY_SET(struct request, is_apart) },
	{ 0, "stats", TALLY_ARGUMENT_NONE, NULL, "numbers of records, by kind",
	  TALLY_SET(struct request, counts_records) },
	{ 'D', "dump-raw-trace", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_INSTEAD("tally perf script -D shows each record") },
	{ 'b', "branch-stack", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_INSTEAD("tally report -b has a row for each branch") },
	{ 0, "mem-mode", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_INSTEAD("tally report --mem-mode has the costs of accesses") },
	{ 0, "tui", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_INSTEAD("tally report --tui browses on the terminal") },
	TALLY_OPTIONS_END,
};

/* ---- columns and order ---------------------------------------------------- */

static const struct { const char *name; unsigned column;
} names_of_columns[] = {
	{ "pid", TALLY_PERF_PID },
	{ "comm", TALLY_PERF_COMM },
	{ "dso", TALLY_PERF_OBJECT },
	{ "symbol", TALLY_PERF_SYMBOL },
	{ "cpu", TALLY_PERF_CPU },
	{ "srcline", TALLY_PERF_LINE },
	{ "srcfile", TALLY_PERF_FILE },
	{ "trace", TALLY_PERF_TRACE },
	{ "overhead", TALLY_PERF_BY_OVERHEAD },
	{ "overhead_children", TALLY_PERF_BY_CHILDREN },
	{ "sample", TALLY_PERF_BY_SAMPLES },
	{ "period", TALLY_PERF_BY_PERIOD },
};

/* Finds a column; perf takes the beginning of a name for it.  Returns TALLY_PERF_ORDERS: none. */
static unsigned column_of(const char *word, size_t length)
{
	const size_t count = sizeof(names_of_columns) / sizeof(names_of_columns[0]);
	for (size_t i = 0; i < count; i++)
		if (strlen(names_of_columns[i].name) == length &&
		    !strncasecmp(names_of_columns[i].name, word, length))
			return names_of_columns[i].column;
	for (size_t i = 0; i < count; i++)
		if (!strncasecmp(names_of_columns[i].name, word, length))
			return names_of_columns[i].column;
	return TALLY_PERF_ORDERS;
}

struct column_list {
	uint8_t items[TALLY_PERF_ORDERS_MAX];
	unsigned count;
};

static void add_column(struct column_list *list, unsigned column)
{
	for (unsigned i = 0; i < list->count; i++)
		if (list->items[i] == column)
			return;
	list->items[list->count++] = (uint8_t)column; /* there are fewer kinds than room */
}

static int add_columns(struct column_list *list, const char *option, const char *text,
		       struct tally_error *err)
{
	while (*text) {
		size_t length = strcspn(text, ", ");
		unsigned column = column_of(text, length);
		if (length && column == TALLY_PERF_ORDERS) {
			tally_error_set(err, -ENOTSUP, "option %s: '%.*s' is not among the columns",
					option, (int)length, text);
			tally_error_hint(err, "tally report --sort has more keys");
			return -ENOTSUP;
		}
		if (length)
			add_column(list, column);
		text += length + (text[length] != '\0');
	}
	return 0;
}

static void add_sums(struct column_list *list, bool children)
{
	if (children)
		add_column(list, TALLY_PERF_BY_CHILDREN);
	add_column(list, TALLY_PERF_BY_OVERHEAD);
}

/* perf's rules: entries are sorted by their sums and the keys of -s; with -F alone by its columns.
 * The columns of -F are followed by those that entries are sorted by. */
static int choose_columns(struct request *request, bool is_trace, bool children,
			  struct tally_error *err)
{
	struct column_list columns = { .count = 0 }, order = { .count = 0 };
	const char *usual = is_trace ? "trace" : "comm,dso,symbol", *fields = request->fields,
		   *sort = request->sort;
	bool is_strict = fields && *fields != '+';
	int result = 0;
	if (!is_strict) {
		add_sums(&order, children);
		add_sums(&columns, children);
		if (request->shows_samples)
			add_column(&columns, TALLY_PERF_BY_SAMPLES);
		if (request->shows_period)
			add_column(&columns, TALLY_PERF_BY_PERIOD);
	}
	if (fields)
		result = add_columns(&columns, "-F", fields + !is_strict, err);
	if (!result && ((!sort && !is_strict) || (sort && *sort == '+')))
		result = add_columns(&order, "-s", usual, err);
	if (!result && sort)
		result = add_columns(&order, "-s", sort + (*sort == '+'), err);
	if (!result && sort && strstr(sort, "symbol")) /* perf: not for "sym" */
		add_column(&order, TALLY_PERF_IPC);
	if (result < 0)
		return result;
	for (unsigned i = 0; i < order.count; i++)
		add_column(&columns, order.items[i]);
	for (unsigned i = 0; i < columns.count; i++)
		add_column(&order, columns.items[i]);
	memcpy(request->sums.order, order.items, sizeof(order.items));
	request->sums.order_count = order.count;
	memcpy(request->text.columns, columns.items, sizeof(columns.items));
	request->text.column_count = columns.count;
	for (unsigned i = 0; i < columns.count; i++)
		if (columns.items[i] < TALLY_PERF_KEYS)
			request->sums.by[columns.items[i]] = true;
	request->text.has_self = children && !is_strict;
	memcpy(request->text.sums_by, request->sums.by, sizeof(request->sums.by));
	return 0;
}

/* A list of one name leaves out the column that has this name in each row, unless nothing would be
 * left. */
static void elide(struct request *request)
{
	const struct { enum tally_perf_key key; const char *list;
	} lists[] = {
		{ TALLY_PERF_OBJECT, request->sums.objects },
		{ TALLY_PERF_COMM, request->sums.comms },
		{ TALLY_PERF_SYMBOL, request->sums.symbols },
	};
	unsigned keys = 0, elided = 0;
	for (unsigned i = 0; i < TALLY_PERF_KEYS; i++)
		keys += request->sums.by[i];
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const char *list = lists[i].list;
		if (!list || strchr(list, ',') || !request->sums.by[lists[i].key])
			continue;
		request->text.listed[lists[i].key] = list;
		request->text.is_elided[lists[i].key] = true;
		elided++;
	}
	if (elided == keys)
		memset(request->text.is_elided, 0, sizeof(request->text.is_elided));
}

/* ---- the report ----------------------------------------------------------- */

static bool has_chains(const struct tally_recorded_event *event)
{
	return event->attr.sample_type & TALLY_SAMPLE_CALLCHAIN;
}

/* perf prints these lines before it finds out that there is nothing to show. */
static void put_hint(void)
{
	puts("# To display the perf.data header info, please use --header/--header-only "
	     "options.\n#");
}

/* perf's message, which names both causes. */
static int refuse_graph(void)
{
	put_hint();
	fputs("Error:\nSelected -g or --branch-history.\nBut no callchain or branch data.\n"
	      "Did you call 'perf record' without -g or -b?\n",
	      stderr);
	return FAILURE;
}

/* Completes the request with what the recording has.  As in perf, a pipe's events come too late to
 * have their own columns, and its entries have no sums of callers.  Returns an exit status. */
static int choose(const struct tally_command *command, struct request *request,
		  const struct tally_recording *recording, bool is_pipe)
{
	struct tally_error err = TALLY_ERROR_NONE;
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(recording->data, &count);
	bool is_trace = count > 0 && !is_pipe, chains = false;
	for (size_t i = 0; i < count; i++) {
		is_trace &= events[i].attr.type == TALLY_TYPE_TRACEPOINT;
		chains |= has_chains(&events[i]);
	}
	if (!chains && request->graph_given && !request->no_graph)
		return refuse_graph();
	bool children = chains && !request->no_children && !is_pipe;
	if (request->no_graph || !chains)
		request->text.chains = TALLY_PERF_CHAINS_NONE;
	request->sums.children = request->text.children = children;
	request->sums.chains = request->text.chains != TALLY_PERF_CHAINS_NONE;
	if (!request->order_given)
		request->sums.from_caller = chains && !request->no_children;
	if (choose_columns(request, is_trace, children, &err) < 0)
		return tally_command_misused(command, &err);
	elide(request);
	request->text.lists_objects = request->sums.objects;
	request->text.has_header = request->header.shown;
	request->text.time = request->view.filter.time;
	request->text.leaves_out_first = !request->fields && request->sort &&
					 !strncmp(request->sort, "sym", strlen("sym"));
	return TALLY_EXIT_OK;
}

/* Appends "event 'a'", or "events 'anon group { a, b }'"; a group that --group makes has no name.
 * perf writes "events" for the leader of a group even if it is apart. */
static void put_name(const struct tally_recorded_event *events, uint32_t members, const char *group,
		     struct tally_buffer *out)
{
	bool is_anonymous = group && !strcmp(group, "{anon_group}");
	tally_buffer_text(out, members > 1 || group ? "events '" : "event '");
	if (members == 1)
		group = NULL;
	if (group)
		tally_buffer_printf(out, "%s { ", is_anonymous ? "anon group" : group);
	for (uint32_t i = 0; i < members; i++)
		tally_buffer_printf(out, "%s%s", i ? ", " : "", events[i].name);
	tally_buffer_text(out, group ? " }'" : "'");
}

/* Puts the events from number `first` on that stand beside each other.  Returns 0 or -ENOMEM. */
static int put_group(const struct tally_profile *profile, struct request *request, uint32_t first,
		     const char *group, struct tally_buffer *out)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	uint64_t all_samples = 0;
	for (uint32_t i = 0; i < request->sums.members; i++) {
		uint64_t samples, period;
		tally_profile_totals(profile, first + i, &samples, &period);
		all_samples += samples;
	}
	if (!all_samples)
		return 0;
	struct tally_perf_sums sums;
	struct tally_buffer name = { 0 };
	put_name(&events[first], request->sums.members, group, &name);
	request->sums.event = first;
	int result = tally_perf_sums_build(profile, &request->sums, &sums);
	if (!result)
		result = tally_perf_report_text(profile, &sums, &request->text,
						tally_buffer_string(&name), out);
	tally_perf_sums_release(&sums);
	tally_buffer_release(&name);
	return result;
}

/* --group: returns the number of events if none of them is in a group; otherwise 1. */
static size_t ungrouped(const struct tally_perfdata *data)
{
	const char *name;
	size_t count;
	tally_perfdata_events(data, &count);
	for (size_t i = 0; i < count; i++)
		if (tally_perf_group_of(data, i, &name) > 1)
			return 1;
	return count;
}

static int put_events(const struct tally_profile *profile, struct request *request,
		      struct tally_buffer *out)
{
	size_t count, members;
	const struct tally_perfdata *data = profile->recording->data;
	int result = 0;
	tally_perfdata_events(data, &count);
	for (size_t i = 0; !result && i < count; i += members) {
		const char *group = NULL;
		members = tally_perf_group_of(data, i, &group);
		if (request->is_apart)
			members = 1;
		else if (request->is_grouped && !i && members == 1)
			members = ungrouped(data);
		if (members > count - i) /* a damaged file */
			members = count - i;
		request->sums.members = (uint32_t)members;
		result = put_group(profile, request, (uint32_t)i, group, out);
	}
	return result;
}

static int show(const struct tally_command *command, struct request *request,
		const struct tally_profile *profile)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer out = { 0 };
	if (!profile->recording->counts.samples) {
		if (!request->text.quiet && !request->header.shown)
			put_hint();
		fprintf(stderr, "Error:\nThe %s data has no samples!\n", request->view.input);
		return TALLY_EXIT_OK;
	}
	if (request->header.shown)
		tally_command_header(profile->recording, request->view.input, &request->header,
				     &out);
	tally_perf_report_begin(&request->text, profile->recording->counts.lost, &out);
	int result = put_events(profile, request, &out);
	tally_perf_report_end(&request->text, &out);
	if (result < 0 || out.failed)
		tally_error_set(&err, -ENOMEM, "out of memory");
	else
		fwrite(tally_buffer_string(&out), 1, out.length, stdout);
	result = result < 0 || out.failed;
	tally_buffer_release(&out);
	if (result)
		return tally_command_fail(command, &err);
	if (!request->text.quiet)
		tally_view_warn(command->name, profile->recording);
	return TALLY_EXIT_OK;
}

/* Counts a record; the events of a pipe become known while it is read.  Returns 0 or -ENOMEM. */
static int count_record(const struct tally_perfdata *data, const struct tally_raw_record *raw,
			struct tally_perf_record_counts *counts, size_t *room)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(data, &count);
	struct tally_record_header header;
	memcpy(&header, raw->bytes, sizeof(header));
	if (count > *room) {
		uint64_t *samples = realloc(counts->samples, count * sizeof(*samples));
		if (!samples)
			return -ENOMEM;
		memset(samples + *room, 0, (count - *room) * sizeof(*samples));
		counts->samples = samples;
		*room = count;
	}
	counts->all++;
	if (header.type < TALLY_RECORD_USER_MAX)
		counts->types[header.type]++;
	if (header.type == TALLY_RECORD_SAMPLE && raw->event)
		counts->samples[raw->event - events]++;
	return 0;
}

/* --stats: counts all records of the file, in its order.  Returns the exit status. */
static int show_records(const struct tally_command *command, const char *path)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_perf_record_counts counts = { 0 };
	struct tally_perfdata *data;
	struct tally_buffer out = { 0 };
	struct tally_raw_record raw;
	size_t room = 0;
	if (tally_perfdata_open(path, &data, &err) < 0)
		return tally_command_fail(command, &err);
	int result;
	while ((result = tally_perfdata_next(data, &raw, &err)) > 0) {
		result = count_record(data, &raw, &counts, &room);
		if (result < 0)
			break;
	}
	const struct tally_error *damage = tally_perfdata_damage(data);
	if (damage)
		tally_say("tally %s: warning: %s", command->name, damage->message);
	if (!result) {
		tally_perf_stats_text(&counts, tally_perfdata_events(data, &room), room, &out);
		fwrite(tally_buffer_string(&out), 1, out.length, stdout);
	}
	if (result == -ENOMEM || out.failed)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	free(counts.samples);
	tally_buffer_release(&out);
	tally_perfdata_close(data);
	return result < 0 ? tally_command_fail(command, &err) : TALLY_EXIT_OK;
}

/* Parses the arguments.  One word is perf's filter of symbols.  Returns -1, or the exit status. */
static int parse(const struct tally_command *command, int argc, char **argv,
		 struct request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	while (tally_options_parse(&walk, request) && walk.index < argc &&
	       tally_options_take_file(&walk, &request->sums.symbol_part, 1,
				       "one text that symbols contain: '%s' is too many"))
		;
	return walk.status;
}

static bool knows_events(const struct tally_recording *recording)
{
	size_t count;
	tally_perfdata_events(recording->data, &count);
	return count > 0;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { .sums = { .frames_max = MAX_STACK },
				   .text = { .chains = TALLY_PERF_CHAINS_GRAPH,
					     .chain_percent_min = 0.5 } };
	struct tally_recording *recording;
	struct tally_profile *profile;
	int status = parse(command, argc, argv, &request);
	if (status >= 0)
		return status;
	request.view.input = tally_perf_input(request.view.input);
	if (request.header.only)
		return tally_command_header_only(command, request.view.input, &request.header);
	if (request.counts_records)
		return show_records(command, request.view.input);
	request.view.shows_idle = true;
	request.view.names.raw_addresses = true;
	if (request.no_graph && request.no_children)
		request.view.stacks = TALLY_VIEW_LEAVES;
	request.view.no_inlines = true;
	request.view.wants_lines = request.sort || request.fields;
	if (tally_view_open(&request.view, &recording, &err) < 0)
		return tally_command_fail(command, &err);
	/* a pipe's events are known only after reading it */
	bool is_known = knows_events(recording);
	status = is_known ? choose(command, &request, recording, false) : TALLY_EXIT_OK;
	if (status != TALLY_EXIT_OK) {
		tally_recording_close(recording);
		return status;
	}
	const struct tally_perf_sums_options *sums = &request.sums;
	struct tally_profile_options samples = {
		.merge_threads = is_known && !sums->by[TALLY_PERF_PID] &&
				 !sums->by[TALLY_PERF_COMM] && !sums->pids && !sums->tids &&
				 !sums->children,
		.merge_cpus = is_known && !sums->by[TALLY_PERF_CPU],
	};
	if (sums->by[TALLY_PERF_TRACE] || (!is_known && (request.sort || request.fields)))
		samples.facts = TALLY_SORT_BIT(TALLY_SORT_TRACE);
	if (tally_view_profile(&request.view, recording, &samples, &profile, &err) < 0)
		return tally_command_fail(command, &err);
	if (!is_known)
		status = choose(command, &request, profile->recording, true);
	if (status == TALLY_EXIT_OK)
		status = show(command, &request, profile);
	tally_profile_free(profile);
	return status;
}

const struct tally_command tally_perf_report = {
	.name = "perf report",
	.summary = "print a recording's functions, by what they took",
	.usage = "[options] [TEXT]",
	.options = options,
	.details = "The text is perf's; TEXT is part of the symbols' names.  perf.data is read "
		   "if -i names no file.",
	.run = run,
};
