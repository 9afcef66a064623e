/* The command `report`: parses options, reads a profile that is just detailed enough for them, and
 * shows it in the browser, as text or as JSON.  Many options are perf's; they only name what tally
 * has instead. */
#include "base/buffer.h"
#include "base/json.h"
#include "base/number_text.h"
#include "command/browse_report.h"
#include "command/command.h"
#include "command/header_options.h"
#include "command/report_sort.h"
#include "output/output.h"
#include "output/output_text.h"
#include "perfdata/perfdata.h"
#include "profile/profile.h"
#include "report/report.h"
#include "view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* How the report is shown. */
enum interface { INTERFACE_DEFAULT, INTERFACE_TEXT, INTERFACE_BROWSER };

struct request {
	struct tally_view_options view;
	struct tally_header_request header;
	struct tally_report_options report;
	struct tally_report_sort sort;
	struct tally_browse_request browsing;
	uint64_t quantum_ns;
	enum interface interface;
	bool children_given, percent_given, errors, json, browses, shows_functions, with_wakers;
};

static int take_sort(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	(void)option;
	return tally_report_sort_parse(&((struct request *)taker)->sort, value, err);
}

static int wrong_tree(const char *value, struct tally_error *err)
{
	tally_error_set(err, -EINVAL, "option -g: '%s' is none of caller, callee, none", value);
	if (!strncmp(value, "folded", strlen("folded")))
		tally_error_hint(err, "tally fold writes each stack as one line");
	return -EINVAL;
}

/* Parses the order; also from perf's "graph,0.5,callee". */
static int take_tree(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	static const char *const styles[] = { "caller", "graph", "fractal", "flat" };
	struct request *request = taker;
	bool known = !value;
	(void)option;
	for (unsigned i = 0; value && i < sizeof(styles) / sizeof(styles[0]); i++)
		known |= !strncmp(value, styles[i], strlen(styles[i]));
	if (value && strstr(value, "callee"))
		request->report.tree = TALLY_TREE_CALLEE;
	else if (value && (!strcmp(value, "none") || !strcmp(value, "no")))
		request->report.tree = TALLY_TREE_NONE;
	else if (known)
		request->report.tree = TALLY_TREE_CALLER;
	else
		return wrong_tree(value, err);
	return 0;
}

static int take_no_tree(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	(void)option, (void)value, (void)err;
	((struct request *)taker)->report.tree = TALLY_TREE_NONE;
	return 0;
}

static int take_percent(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	struct request *request = taker;
	int result = tally_option_store(request, option, value, err);
	request->report.tree_percent_min = request->report.percent_min;
	return result;
}

static int take_quantum(void *taker, const struct tally_option *option, const char *value,
			struct tally_error *err)
{
	const double second = 1e9, day = 86400;
	struct request *request = taker;
	double seconds;
	int result = tally_option_seconds("--time-quantum", value, &seconds, err);
	(void)option;
	if (!result && (seconds < 1 / second || seconds > day))
		return tally_error_set(
			err, -ERANGE,
			"option --time-quantum: '%s' is not between a nanosecond and a day", value);
	if (result)
		return result;
	request->quantum_ns = (uint64_t)(seconds * second + 0.5);
	return 0;
}

static int take_limit(void *taker, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	int result = tally_option_store(taker, option, value, err);
	if (result < 0)
		tally_error_hint(
			err,
			"-n limits the rows; -j has the samples of each, and 'tally perf report "
			"-n' prints them");
	return result;
}

static const struct tally_option options[] = {
	{ TALLY_INCLUDE(tally_view_input_option, struct request, view) },
	{ 's', "sort", TALLY_ARGUMENT_REQUIRED, "KEYS",
	  "group rows by these keys, listed below (comm,dso,sym; for branches\n"
	  "comm,dso_from,sym_from,dso_to,sym_to)",
	  TALLY_SORT_CHOICES, TALLY_TAKE(take_sort) },
	{ 0, "mem-mode", TALLY_ARGUMENT_NONE, NULL,
	  "shares of the cost of memory accesses, by memory level and data\n"
	  "(recordings of perf mem)",
	  TALLY_SET(struct request, sort.of_memory) },
	{ 0, "time-quantum", TALLY_ARGUMENT_REQUIRED, "TIME",
	  "length of a row of --sort time: 10us, 1s (100ms)", TALLY_TAKE(take_quantum) },
	{ 'g', "call-graph", TALLY_ARGUMENT_OPTIONAL, "caller|callee",
	  "show call trees: what an entry called (caller, the default)\nor who called it (callee)",
	  "caller callee none no graph fractal flat folded", TALLY_TAKE(take_tree) },
	{ TALLY_INCLUDE(tally_view_max_stack_option, struct request, view) },
	{ 'b', "branch-stack", TALLY_ARGUMENT_NONE, NULL,
	  "a row for each branch taken before the samples (the default if they\n"
	  "were recorded, without -g)",
	  TALLY_CONSTANT(struct request, sort.branches, TALLY_BRANCHES_WANTED) },
	{ 0, "no-branch-stack", TALLY_ARGUMENT_NONE, NULL,
	  "rows are of samples, even if branches were recorded",
	  TALLY_CONSTANT(struct request, sort.branches, TALLY_BRANCHES_UNWANTED) },
	{ 0, "children", TALLY_ARGUMENT_NONE, NULL,
	  "heaviest total first, as with -g (else heaviest self first)",
	  TALLY_SET(struct request, report.children), TALLY_ALSO(struct request, children_given) },
	{ 0, "no-children", TALLY_ARGUMENT_NONE, NULL, "no totals",
	  TALLY_CLEAR(struct request, report.children),
	  TALLY_ALSO(struct request, children_given) },
	{ 'n', "limit", TALLY_ARGUMENT_REQUIRED, "N", "at most N rows",
	  TALLY_NUMBER(struct request, report.limit, 1, 1000000), TALLY_TAKE(take_limit) },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "P",
	  "leave out rows whose TOTAL (SELF if there is no TOTAL), and\n"
	  "branches of trees, are below P % (0.5)",
	  TALLY_PERCENT(struct request, report.percent_min), TALLY_TAKE(take_percent),
	  TALLY_ALSO(struct request, percent_given) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT", "only this event, by name or number",
	  TALLY_TEXT(struct request, view.filter.event) },
	{ TALLY_INCLUDE(tally_view_task_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_filter_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_name_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_raw_addresses_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_full_names_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_idle_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_language_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_scheduler_option, struct request, view) },
	{ 0, "wakers", TALLY_ARGUMENT_NONE, NULL,
	  "call trees of waits, continued by their wakers (record --off-cpu)",
	  TALLY_SET(struct request, with_wakers) },
	{ 0, "error", TALLY_ARGUMENT_NONE, NULL,
	  "columns of sampling errors, 95 % (the default on wide terminals)",
	  TALLY_SET(struct request, errors) },
	{ TALLY_INCLUDE(tally_view_leaf_options, struct request, view) },
	{ TALLY_INCLUDE(tally_header_options, struct request, header) },
	{ TALLY_INCLUDE(tally_view_no_demangle_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_symbols_option, struct request, view) },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "text without a pager",
	  TALLY_CONSTANT(struct request, interface, INTERFACE_TEXT) },
	{ 0, "tui", TALLY_ARGUMENT_NONE, NULL, "browse on the terminal (the default there)",
	  TALLY_CONSTANT(struct request, interface, INTERFACE_BROWSER) },
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/report-json.md)",
	  TALLY_SET(struct request, json) },
	/* perf's names */
	{ 'c', "comms", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, view.filter.comms) },
	{ 'd', "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, view.filter.objects) },
	{ 'S', "symbols", TALLY_ARGUMENT_REQUIRED, "LIST", NULL,
	  TALLY_TEXT(struct request, view.filter.symbols) },
	{ 'G', "inverted", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_TAKE(take_tree) },
	{ 0, "no-call-graph", TALLY_ARGUMENT_NONE, NULL, NULL, TALLY_TAKE(take_no_tree) },
	TALLY_OPTIONS_END,
};

/* Chooses the event to show first: the requested one; or the waits, since they are recorded only on
 * request; or the first with samples. */
static int choose_event(const struct tally_profile *profile, const struct request *request,
			uint32_t *event, struct tally_error *err)
{
	const char *name = request->view.filter.event;
	if (!name) {
		*event = tally_profile_waits(profile);
		if (*event != UINT32_MAX)
			return 0;
	}
	return tally_profile_event(profile, name, event, err);
}

/* Writes the report of the requested event, or of each event with samples. */
static int put_events(const struct tally_profile *profile, struct request *request,
		      struct tally_report_view *view, struct tally_buffer *out,
		      struct tally_json *json, struct tally_error *err)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &count);
	uint32_t first;
	int result = choose_event(profile, request, &first, err);
	for (uint32_t i = 0; !result && i <= count; i++) {
		uint32_t event = i ? i - 1 : first;
		struct tally_report report;
		uint64_t samples, period;
		tally_profile_totals(profile, event, &samples, &period);
		samples += tally_profile_idle(profile, event).samples;
		if (i && (request->view.filter.event || !samples || event == first ||
			  tally_off_cpu_serves(&profile->recording->off_cpu, &events[event])))
			continue;
		request->report.event = event;
		if (tally_report_build(profile, &request->report, &report) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (json) {
			tally_report_json(profile, &report, &request->report, json);
		} else {
			if (out->length)
				tally_buffer_char(out, '\n');
			tally_report_text(profile, &report, &request->report, view, out);
			view->hint = NULL; /* only once */
		}
		tally_report_release(&report);
	}
	return result;
}

/* With -v: counts calls in the stacks that the code contradicts. */
static void check_calls(const struct tally_command *command, struct tally_profile *profile)
{
	struct tally_call_check check;
	const struct tally_names *names = &profile->recording->names;
	if (!names->sources.verbose || tally_call_check_profile(profile, &check) < 0 ||
	    !check.checked)
		return;
	tally_say("tally %s: stacks: %s pairs of caller and callee agree with the code, %s do not",
		  command->name,
		  tally_number(check.checked - check.behind_no_call - check.to_another),
		  tally_number(check.behind_no_call + check.to_another));
	if (check.behind_no_call + check.to_another)
		tally_say("tally %s: stacks: %s callers follow no call, %s call another function; "
			  "first: %s+0x%" PRIx64,
			  command->name, tally_number(check.behind_no_call),
			  tally_number(check.to_another),
			  tally_tasks_path(names->tasks, check.failed.file), check.failed.address);
}

static void put_json_warnings(const struct tally_recording *recording, struct tally_json *json)
{
	struct tally_buffer warnings = { 0 };
	tally_json_array(json, "warnings");
	tally_profile_warnings(recording, &warnings);
	for (char *line = warnings.bytes; line && *line;) {
		size_t length = strcspn(line, "\n");
		bool is_last = !line[length];
		line[length] = '\0';
		tally_json_text(json, NULL, line);
		line += length + !is_last;
	}
	tally_json_end(json);
	tally_buffer_release(&warnings);
}

/* Completes the options whose defaults depend on the recording. */
static void complete(struct request *request, const struct tally_profile *profile)
{
	if (!request->children_given)
		request->report.children = profile->has_stacks;
	if (!profile->has_stacks)
		request->report.tree = TALLY_TREE_NONE;
	/* By total, a flat list would begin with _start and main, which tell nothing; perf does
	 * that. */
	request->report.by_self = request->report.tree == TALLY_TREE_NONE &&
				  !request->children_given;
}

/* Says how a language's functions get the samples of their interpreter. */
static void hint_language(const struct tally_profile *profile, uint32_t event, char *hint,
			  size_t size)
{
	enum { WORTH_A_LINE = 20 }; /* percent */
	uint64_t samples, all, period;
	tally_profile_totals(profile, event, &all, &period);
	if (tally_profile_count_runtimes(profile, event, &samples) < 0 || !all ||
	    100 * samples < WORTH_A_LINE * all)
		return;
	snprintf(hint, size,
		 "%.0f%% of the samples are an interpreter's, for functions that it runs: "
		 "--language-frames shows these",
		 100.0 * (double)samples / (double)all);
}

static int show(const struct tally_command *command, struct request *request,
		struct tally_profile *profile)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer out = { 0 };
	struct tally_json json = { .out = &out, .indent = true };
	struct tally_pager pager = { 0 };
	char hint[512] = "";
	int result;
	if (request->json) {
		tally_json_object(&json, NULL);
		tally_json_u64(&json, "version", 1);
		tally_json_u64(&json, "lost", profile->recording->counts.lost);
		put_json_warnings(profile->recording, &json);
		tally_json_array(&json, "events");
		result = put_events(profile, request, NULL, &out, &json, &err);
		tally_json_end(&json);
		tally_json_end(&json);
	} else {
		tally_pager_start(&pager, request->interface != INTERFACE_TEXT);
		struct tally_report_view view = {
			.columns = pager.columns,
			.colours = pager.colours,
			.ascii = !tally_terminal_is_utf8(),
			.errors = request->errors || pager.columns >= TALLY_REPORT_ERROR_COLUMNS
		};
		if (request->shows_functions)
			tally_view_jit_hint_text(profile, TALLY_HINT_WITH_SHARES, hint,
						 sizeof(hint));
		uint32_t event;
		if (request->shows_functions && !*hint && !request->view.joins_runtimes &&
		    !choose_event(profile, request, &event, &err))
			hint_language(profile, event, hint, sizeof(hint));
		view.hint = *hint ? hint : NULL;
		if (request->header.shown)
			tally_command_header(profile->recording, request->view.input,
					     &request->header, &out);
		result = put_events(profile, request, &view, &out, NULL, &err);
	}
	if (!result && out.failed)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	if (!result)
		fwrite(tally_buffer_string(&out), 1, out.length, stdout);
	tally_pager_finish(&pager);
	tally_profile_count_unstarted(profile);
	tally_view_warn(command->name, profile->recording);
	check_calls(command, profile);
	if (!result && request->shows_functions && request->json)
		tally_view_jit_hint(NULL, profile);
	tally_buffer_release(&out);
	if (result < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

/* Returns -1 if ncurses is missing and --tui was not given; the report is then shown as text. */
static int browse(const struct tally_command *command, struct request *request,
		  struct tally_profile *profile)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_screen *screen;
	uint32_t event;
	if (choose_event(profile, request, &event, &err) < 0)
		return tally_command_fail(command, &err);
	if (tally_curses_screen_open(&screen, &err) < 0) {
		int status = tally_command_fail(command, &err);
		if (request->interface == INTERFACE_BROWSER)
			return status;
		return -1;
	}
	request->report.event = event;
	request->browsing.view = &request->view;
	request->browsing.report = request->report;
	request->browsing.errors = request->errors;
	int result = tally_browse_report(screen, profile, &request->browsing);
	screen->ops->close(screen);
	if (result < 0) {
		tally_error_set(&err, result, "out of memory");
		return tally_command_fail(command, &err);
	}
	tally_profile_count_unstarted(profile);
	tally_view_warn(command->name, profile->recording);
	check_calls(command, profile);
	return TALLY_EXIT_OK;
}

/* Completes the options before the recording is opened. */
static void prepare(struct request *request)
{
	struct tally_report_options *report = &request->report;
	/* The waker is above the wait: the tree goes from callers to callees, and the leaf is the
	 * waker's outermost caller. */
	if (request->with_wakers && report->tree == TALLY_TREE_NONE)
		report->tree = TALLY_TREE_CALLER;
	if (request->with_wakers)
		request->view.filter.event = TALLY_OFF_CPU_NAME;
	/* A tree for each command, whose branches go from its start to what woke it: a row for each
	 * function would show nearly the same tree for each function on that way. */
	if (request->with_wakers && !request->sort.given)
		tally_report_sort_parse(&request->sort, "comm", NULL);
	request->view.wants_lines = request->browses ||
				    tally_report_sort_needs_lines(&request->sort);
	/* The leaf of a wait is in the scheduler; the code that waits is among its callers. */
	if (!request->browses && !request->view.joins_runtimes && request->children_given &&
	    !report->children && report->tree == TALLY_TREE_NONE)
		request->view.stacks = TALLY_VIEW_LEAVES_UNLESS_WAITS;
}

/* Chooses the rows by what was recorded.  Returns an exit status. */
static int choose_rows(const struct tally_command *command, struct request *request,
		       const struct tally_recording *recording)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_report_options *report = &request->report;
	bool wants_stacks = report->tree != TALLY_TREE_NONE ||
			    (request->children_given && report->children);
	if (request->with_wakers &&
	    tally_view_check_wakers(recording, "the recording", &err) < 0)
		return tally_command_fail(command, &err);
	if (tally_report_sort_choose(&request->sort, recording, wants_stacks, &err) < 0)
		return tally_command_misused(command, &err);
	if (tally_report_sort_check(&request->sort, recording, &err) < 0)
		return tally_command_fail(command, &err);
	memcpy(report->by, request->sort.by, sizeof(report->by));
	request->shows_functions = request->browses || report->tree != TALLY_TREE_NONE ||
				   tally_report_sort_names_code(&request->sort);
	return TALLY_EXIT_OK;
}

/* Reads the profile, and takes ownership of the recording.  Returns an exit status: TALLY_EXIT_OK
 * when the profile was read. */
static int read_profile(const struct tally_command *command, struct request *request,
			struct tally_recording *recording, struct tally_profile **profile)
{
	struct tally_error err = TALLY_ERROR_NONE;
	const struct tally_report_options *report = &request->report;
	struct tally_profile_options samples = {
		.merge_threads = !request->browses && !report->by[TALLY_SORT_PID] &&
				 !report->by[TALLY_SORT_TID],
		.merge_cpus = !report->by[TALLY_SORT_CPU],
		/* Unnamed places matter for source lines, which a user who browses may request
		 * later. */
		.merge_unknown = !request->browses && !request->sort.facts &&
				 !request->sort.of_branches &&
				 !tally_report_sort_needs_lines(&request->sort),
		.by_cgroup = report->by[TALLY_SORT_CGROUP],
		.by_cgroup_id = report->by[TALLY_SORT_CGROUP_ID],
		.facts = request->sort.facts,
		.of_branches = request->sort.of_branches,
		.by_cost = request->sort.of_memory,
		.hides_functions = !request->shows_functions,
		.time_quantum_ns = request->quantum_ns,
		.arranges_waits = true,
		.with_wakers = request->with_wakers,
	};
	if (tally_view_profile(&request->view, recording, &samples, profile, &err) < 0)
		return tally_command_fail(command, &err);
	/* a pipe's events are known only after reading it */
	if (tally_report_sort_check(&request->sort, recording, &err) < 0) {
		tally_profile_free(*profile);
		return tally_command_fail(command, &err);
	}
	complete(request, *profile);
	return TALLY_EXIT_OK;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { .report = { .percent_min = 0.5, .tree_percent_min = 0.5 } };
	struct tally_recording *recording;
	struct tally_profile *profile;
	int status;
	if (!tally_recording_arguments(command, argc, argv, &request, &request.view.input, &status))
		return status;
	tally_view_choose_input(command->name, &request.view);
	if (request.json && !request.percent_given) /* programs get all rows */
		request.report.percent_min = request.report.tree_percent_min = 0;
	bool is_asked = request.interface == INTERFACE_BROWSER;
	if (is_asked && (request.json || !tally_screen_possible()))
		return tally_command_misuse(command,
					    "--tui needs a terminal, for input and output");
	request.browses = is_asked || (!request.json && request.interface != INTERFACE_TEXT &&
				       !request.header.shown && tally_screen_possible());

	if (request.header.only)
		return tally_command_header_only(command, request.view.input, &request.header);
	prepare(&request);
	if (tally_view_open(&request.view, &recording, &err) < 0)
		return tally_command_fail(command, &err);
	status = choose_rows(command, &request, recording);
	if (status != TALLY_EXIT_OK) {
		tally_recording_close(recording);
		return status;
	}
	status = read_profile(command, &request, recording, &profile);
	if (status != TALLY_EXIT_OK)
		return status;
	status = -1;
	if (request.browses)
		status = browse(command, &request, profile);
	if (status < 0)
		status = show(command, &request, profile);
	tally_profile_free(profile);
	return status;
}

const struct tally_command tally_command_report = {
	.name = "report",
	.summary = "a recording's functions, by the time (or events) that they took",
	.usage = "[options] [FILE]",
	.details =
		"SELF counts samples in the function itself, TOTAL also those in functions that it "
		"called.\n"
		"A function that was inlined has a row like others, marked \"(inlined)\"; the SELF "
		"of its callers is without it.\n"
		"On a terminal the report is browsed: Enter opens call trees, / searches, f "
		"filters, s selects columns, h\n"
		"lists all keys, q quits.  In pipes, with --stdio or -j, it is text.\n\n"
		"--sort takes\n"
		TALLY_SORT_HELP "\n"
		"  tally record -- ./program && tally report\n"
		"  tally report -g                    with the call trees\n"
		"  tally report -g callee --no-children --sort sym -n 20\n"
		"  tally report --comm cc1 --dso libc.so.6",
	.options = options,
	.run = run,
};
