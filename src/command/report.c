#include "base/buffer.h"
#include "base/json.h"
#include "command/browse_report.h"
#include "command/command.h"
#include "command/filter_options.h"
#include "command/header_options.h"
#include "command/name_options.h"
#include "command/recording_path.h"
#include "command/recording_warnings.h"
#include "command/report_perf_options.h"
#include "command/report_sort.h"
#include "output/pager.h"
#include "output/report_cells.h"
#include "output/report_text.h"
#include "perfdata/off_cpu_event.h"
#include "profile/idle.h"
#include "profile/profile.h"
#include "report/report_model.h"
#include "profile/wait_stacks.h"

#include <errno.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPTION_CHILDREN = 256,
	OPTION_NO_CHILDREN,
	OPTION_PERCENT,
	OPTION_STDIO,
	OPTION_DSO,
	OPTION_SYMBOL,
	OPTION_EVENT,
	OPTION_MANGLED,
	OPTION_NO_INLINE,
	OPTION_ERROR,
	OPTION_TUI,
	OPTION_NO_BRANCHES,
	OPTION_QUANTUM,
	OPTION_MEMORY,
	OPTION_SCHEDULER,
	OPTION_WAKERS
};

static const struct tally_option options[] = {
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "the recording (tally.data, else perf.data; - is standard input)", NULL, 0 },
	{ 's', "sort", TALLY_ARGUMENT_REQUIRED, "KEYS",
	  "group rows by these keys, listed below (comm,dso,sym; for branches\ncomm,dso_from,sym_from,dso_to,sym_to)",
	  TALLY_SORT_CHOICES, 0 },
	{ 0, "mem-mode", TALLY_ARGUMENT_NONE, NULL,
	  "shares of the cost of memory accesses, by memory level and data\n"
	  "(recordings of perf mem)",
	  NULL, OPTION_MEMORY },
	{ 0, "time-quantum", TALLY_ARGUMENT_REQUIRED, "TIME",
	  "length of a row of --sort time: 10us, 1s (100ms)", NULL, OPTION_QUANTUM },
	{ 'g', "call-graph", TALLY_ARGUMENT_OPTIONAL, "caller|callee",
	  "show call trees: what an entry called (caller, the default)\nor who called it (callee)",
	  "caller callee none graph fractal flat", 0 },
	TALLY_FILTER_STACK_OPTION,
	{ 'b', "branch-stack", TALLY_ARGUMENT_NONE, NULL,
	  "a row for each branch taken before the samples (the default if they\nwere recorded, without -g)",
	  NULL, 0 },
	{ 0, "no-branch-stack", TALLY_ARGUMENT_NONE, NULL,
	  "rows are of samples, even if branches were recorded", NULL, OPTION_NO_BRANCHES },
	{ 0, "children", TALLY_ARGUMENT_NONE, NULL,
	  "heaviest total first, as with -g (else heaviest self first)", NULL, OPTION_CHILDREN },
	{ 0, "no-children", TALLY_ARGUMENT_NONE, NULL, "no totals", NULL, OPTION_NO_CHILDREN },
	{ 'n', "limit", TALLY_ARGUMENT_REQUIRED, "N", "at most N rows", NULL, 0 },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "P",
	  "leave out rows whose TOTAL (SELF if there is no TOTAL), and\nbranches of trees, are below P % (0.5)",
	  NULL, OPTION_PERCENT },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT", "only this event, by name or number",
	  NULL, OPTION_EVENT },
	TALLY_FILTER_TASK_OPTIONS("pid", "tid"),
	TALLY_FILTER_OPTIONS,
	TALLY_NAME_OPTIONS,
	TALLY_FULL_NAMES_OPTION,
	TALLY_IDLE_OPTION,
	{ 0, "scheduler", TALLY_ARGUMENT_NONE, NULL,
	  "show waits in the scheduler's own functions, not in their caller", NULL, OPTION_SCHEDULER },
	{ 0, "wakers", TALLY_ARGUMENT_NONE, NULL,
	  "call trees of waits, continued by their wakers (record --off-cpu)", NULL,
	  OPTION_WAKERS },
	{ 0, "error", TALLY_ARGUMENT_NONE, NULL,
	  "columns of sampling errors, 95 % (the default on wide terminals)", NULL,
	  OPTION_ERROR },
	{ 0, "dso", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these objects (libc*)", NULL,
	  OPTION_DSO },
	{ 0, "symbol", TALLY_ARGUMENT_REQUIRED, "LIST", "only samples in these functions (std::*)",
	  NULL, OPTION_SYMBOL },
	TALLY_HEADER_OPTIONS,
	{ 0, "no-demangle", TALLY_ARGUMENT_NONE, NULL, "mangled names, as in the file", NULL,
	  OPTION_MANGLED },
	{ 0, "no-inline", TALLY_ARGUMENT_NONE, NULL,
	  "leave out inlined functions in call trees", NULL,
	  OPTION_NO_INLINE },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "text without a pager", NULL, OPTION_STDIO },
	{ 0, "tui", TALLY_ARGUMENT_NONE, NULL, "browse on the terminal (the default there)",
	  NULL, OPTION_TUI },
	{ 'j', "json", TALLY_ARGUMENT_NONE, NULL, "JSON (docs/report-json.md)", NULL, 0 },
	/* perf's names */
	{ 'c', "comms", TALLY_ARGUMENT_REQUIRED, "LIST", NULL, NULL, TALLY_OPTION_COMMS },
	{ 'd', "dsos", TALLY_ARGUMENT_REQUIRED, "LIST", NULL, NULL, OPTION_DSO },
	{ 'S', "symbols", TALLY_ARGUMENT_REQUIRED, "LIST", NULL, NULL, OPTION_SYMBOL },
	{ 'G', "inverted", TALLY_ARGUMENT_NONE, NULL, NULL, NULL, 'g' },
#define ROW(id_, letter_, name_, kind_, argument_, instead_) \
	{ letter_, name_, TALLY_ARGUMENT_##kind_, argument_, NULL, NULL, REPORT_PERF_##id_ },
	REPORT_PERF_OPTIONS(ROW)
#undef ROW
		TALLY_OPTIONS_END,
};

struct request {
	const char *input, *event;
	struct tally_profile_filter filter;
	struct tally_header_request header;
	struct tally_name_sources names;
	struct tally_report_options report;
	struct tally_report_sort sort;
	struct tally_browse_request browsing;
	uint64_t quantum_ns;
	bool children_given, percent_given, errors, json, no_pager, tui, browses, mangled,
		no_inlines;
	bool shows_functions, shows_idle, shows_scheduler, with_wakers;
};

/* Parses the order; also from perf's "graph,0.5,callee". */
static int parse_tree(const char *value, struct request *request, struct tally_error *err)
{
	static const char *const styles[] = { "caller", "graph", "fractal", "flat" };
	bool known = !value;
	for (unsigned i = 0; value && i < sizeof(styles) / sizeof(styles[0]); i++)
		known |= !strncmp(value, styles[i], strlen(styles[i]));
	if (value && strstr(value, "callee"))
		request->report.tree = TALLY_TREE_CALLEE;
	else if (value && !strcmp(value, "none"))
		request->report.tree = TALLY_TREE_NONE;
	else if (known)
		request->report.tree = TALLY_TREE_CALLER;
	else
		return tally_error_set(err, -22, "option -g: '%s' is neither caller nor callee",
				       value);
	return 0;
}

static int parse_number(const char *option, const char *value, double *out, struct tally_error *err)
{
	char *end;
	*out = strtod(value, &end);
	if (end == value || *end || *out < 0 || *out > 100)
		return tally_error_set(err, -22, "option %s: '%s' is not a percentage", option,
				       value);
	return 0;
}

static int parse_quantum(const char *value, uint64_t *out_ns, struct tally_error *err)
{
	const double second = 1e9, day = 86400;
	double seconds;
	int result = tally_option_seconds("--time-quantum", value, &seconds, err);
	if (!result && (seconds < 1 / second || seconds > day))
		return tally_error_set(
			err, -ERANGE,
			"option --time-quantum: '%s' is not between a nanosecond and a day", value);
	*out_ns = result ? 0 : (uint64_t)(seconds * second + 0.5);
	return result;
}

static int apply_option(void *taker, int id, const char *value, struct tally_error *err)
{
	struct request *request = taker;
	unsigned long long number;
	int result = 0;
	switch (id) {
	case 'i': request->input = value; break;
	case 's': return tally_report_sort_parse(&request->sort, value, err);
	case 'b': request->sort.branches = TALLY_BRANCHES_WANTED; break;
	case OPTION_MEMORY: request->sort.of_memory = true; break;
	case OPTION_QUANTUM: return parse_quantum(value, &request->quantum_ns, err);
	case OPTION_NO_BRANCHES: request->sort.branches = TALLY_BRANCHES_UNWANTED; break;
	case 'g': return parse_tree(value, request, err);
	case OPTION_CHILDREN: request->report.children = request->children_given = true; break;
	case OPTION_NO_CHILDREN:
		request->report.children = false;
		request->children_given = true;
		break;
	case 'n':
		result = tally_option_u64("-n", value, 1, 1000000, &number, err);
		request->report.limit = result < 0 ? 0 : (size_t)number;
		if (result < 0)
			tally_error_hint(
				err,
				"-n limits the rows; -j has the samples of each, which perf's -n shows");
		break;
	case OPTION_PERCENT:
		result = parse_number("--percent-limit", value, &request->report.percent_min, err);
		request->report.tree_percent_min = request->report.percent_min;
		request->percent_given = true;
		break;
	case OPTION_EVENT: request->event = request->filter.event = value; break;
	case OPTION_DSO: request->filter.objects = value; break;
	case OPTION_SYMBOL: request->filter.symbols = value; break;
	case OPTION_MANGLED: request->mangled = true; break;
	case OPTION_NO_INLINE: request->no_inlines = true; break;
	case OPTION_STDIO: request->no_pager = true; request->tui = false; break;
	case OPTION_TUI: request->tui = true; request->no_pager = false; break;
	case TALLY_OPTION_IDLE: request->shows_idle = true; break;
	case OPTION_SCHEDULER: request->shows_scheduler = true; break;
	case OPTION_WAKERS: request->with_wakers = true; break;
	case OPTION_ERROR: request->errors = true; break;
	case 'j': request->json = true; break;
	default:
		if (tally_header_option(id, &request->header))
			return 0;
		result = report_take_perf_option(id, err);
		if (result)
			return result;
		if (id != TALLY_OPTION_MAX_STACK) /* annotate shows leaves only */
			tally_browse_give(&request->browsing, options, id, value);
		result = tally_name_option(id, value, &request->names, err);
		return result ? result : tally_filter_option(id, value, &request->filter, err);
	}
	return result;
}

/* Chooses the event to show first: the requested one; or the waits, since they are recorded only on
 * request; or the first with samples. */
static int choose_event(const struct tally_profile *profile, const struct request *request,
			uint32_t *event, struct tally_error *err)
{
	uint32_t waits = request->event ? UINT32_MAX : tally_profile_waits(profile);
	*event = waits;
	return waits == UINT32_MAX ? tally_profile_event(profile, request->event, event, err) : 0;
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
		if (i && (request->event || !samples || event == first ||
			  tally_off_cpu_serves(&profile->recording->off_cpu, &events[event])))
			continue;
		request->report.event = event;
		if (tally_report_build(profile, &request->report, &report) < 0)
			return tally_error_set(err, -12, "out of memory");
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
		tally_pager_start(&pager, !request->no_pager);
		struct tally_report_view view = {
			.columns = pager.columns,
			.colours = pager.colours,
			.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
			.errors = request->errors || pager.columns >= TALLY_REPORT_ERROR_COLUMNS
		};
		if (request->shows_functions)
			tally_command_jit_hint_text(profile, TALLY_HINT_WITH_SHARES, hint,
						    sizeof(hint));
		view.hint = *hint ? hint : NULL;
		if (request->header.shown)
			tally_command_header(profile->recording, request->input, &request->header,
					     &out);
		result = put_events(profile, request, &view, &out, NULL, &err);
	}
	if (!result && out.failed)
		result = tally_error_set(&err, -ENOMEM, "out of memory");
	if (!result)
		fwrite(tally_buffer_string(&out), 1, out.length, stdout);
	tally_pager_finish(&pager);
	tally_profile_count_unstarted(profile);
	tally_command_warn(command, profile->recording);
	if (!result && request->shows_functions && request->json)
		tally_command_jit_hint(profile);
	tally_buffer_release(&out);
	return result < 0 ? tally_command_fail(command, &err) : TALLY_EXIT_OK;
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
		return request->tui ? status : -1;
	}
	request->report.event = event;
	request->browsing.input = request->input;
	request->browsing.report = request->report;
	request->browsing.errors = request->errors;
	int result = tally_browse_report(screen, profile, &request->browsing);
	screen->ops->close(screen);
	if (result < 0) {
		tally_error_set(&err, result, "out of memory");
		return tally_command_fail(command, &err);
	}
	tally_profile_count_unstarted(profile);
	tally_command_warn(command, profile->recording);
	return TALLY_EXIT_OK;
}

/* Takes the recording over.  An exit status: OK with the profile. */
static int read_profile(const struct tally_command *command, struct request *request,
			struct tally_recording *recording, struct tally_profile **profile)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_report_options *report = &request->report;
	if (request->with_wakers && !recording->off_cpu.has_wakings) {
		tally_error_set(&err, -ENOENT, "the recording has no recorded wakers");
		tally_error_hint(
			&err,
			"record --off-cpu records wakers into a file, for users who may sample tracepoints, such as root");
		tally_recording_close(recording);
		return tally_command_fail(command, &err);
	}
	/* The waker is above the wait: the tree goes from callers to callees, and the leaf is the
	 * waker's outermost caller. */
	if (request->with_wakers && report->tree == TALLY_TREE_NONE)
		report->tree = TALLY_TREE_CALLER;
	if (request->with_wakers)
		request->event = request->filter.event = TALLY_OFF_CPU_NAME;
	bool wants_stacks = report->tree != TALLY_TREE_NONE ||
			    (request->children_given && report->children);
	unsigned facts = 0;
	bool is_misused = tally_report_sort_choose(&request->sort, recording, wants_stacks, &facts,
						   &err) < 0;
	if (is_misused || tally_report_sort_check(&request->sort, recording, facts, &err) < 0) {
		tally_recording_close(recording);
		return is_misused ? tally_command_misused(command, &err)
				  : tally_command_fail(command, &err);
	}
	memcpy(report->by, request->sort.by, sizeof(report->by));
	request->shows_functions = request->browses || report->tree != TALLY_TREE_NONE ||
				   tally_report_sort_names_code(&request->sort);
	recording->names.keep_mangled = request->mangled;
	recording->names.no_inlines = request->no_inlines;
	tally_names_use_cache(&recording->names);
	tally_names_use_sources(&recording->names, &request->names);
	/* The leaf of a wait is in the scheduler; the code that waits is among its callers. */
	recording->leaves_only = !recording->off_cpu.is_due && !request->browses &&
				 request->children_given && !report->children &&
				 report->tree == TALLY_TREE_NONE;
	struct tally_command_progress progress;
	struct tally_profile_options samples = {
		.filter = request->filter,
		.merge_threads = !request->browses && !report->by[TALLY_SORT_PID] &&
				 !report->by[TALLY_SORT_TID],
		.merge_cpus = !report->by[TALLY_SORT_CPU],
		/* Unnamed places matter for source lines, which a user who browses may request
		 * later. */
		.merge_unknown = !request->browses && !facts &&
				 !tally_report_sort_needs_lines(&request->sort),
		.by_cgroup = report->by[TALLY_SORT_CGROUP],
		.by_cgroup_id = report->by[TALLY_SORT_CGROUP_ID],
		.facts = facts,
		.by_cost = request->sort.of_memory,
		.hides_functions = !request->shows_functions,
		.time_quantum_ns = request->quantum_ns,
		.leaves_out_idle = !request->shows_idle &&
				   !tally_filter_means_idle(&request->filter),
		.arranges_waits = true,
		.shows_scheduler = request->shows_scheduler,
		.with_wakers = request->with_wakers,
		.progress = tally_command_progress,
		.context = &progress,
	};
	tally_command_progress_start(&progress);
	int result = tally_profile_new(recording, &samples, profile, &err);
	tally_command_progress_end(&progress);
	if (result < 0)
		return tally_command_fail(command, &err);
	/* a pipe's events are known only after reading it */
	if (tally_report_sort_check(&request->sort, recording, facts, &err) < 0) {
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
	if (!tally_recording_arguments(command, argc, argv, apply_option, &request, &request.input,
				       &status))
		return status;
	if (request.no_inlines && tally_report_sort_needs_lines(&request.sort))
		return tally_command_misuse(
			command, "--sort srcline and srcfile exclude --no-inline");
	request.input = tally_recording_path(request.input);
	if (request.json && !request.percent_given) /* programs get all rows */
		request.report.percent_min = request.report.tree_percent_min = 0;
	if (request.tui && (request.json || !tally_screen_possible()))
		return tally_command_misuse(command,
					    "--tui needs a terminal, for input and output");
	request.browses = request.tui || (!request.json && !request.no_pager &&
					  !request.header.shown && tally_screen_possible());

	if (tally_recording_open(request.input, &recording, &err) < 0)
		return tally_command_fail(command, &err);
	if (request.header.only)
		return tally_command_header_only(command, recording, request.input,
						 &request.header);
	status = read_profile(command, &request, recording, &profile);
	if (status != TALLY_EXIT_OK)
		return status;
	status = request.browses ? browse(command, &request, profile) : -1;
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
		"SELF counts samples in the function itself, TOTAL also those in functions that it called.\n"
		"On a terminal the report is browsed: Enter opens call trees, / searches, f filters, s selects columns, h\n"
		"lists all keys, q quits.  In pipes, with --stdio or -j, it is text.\n\n"
		"--sort takes\n"
		"  of any sample  comm,pid,tid,cpu,socket,cgroup,cgroup_id,time,dso,sym,\n"
		"                 srcfile,srcline,addr; trace of tracepoints\n"
		"  of branches    dso_from,sym_from,srcline_from,addr_from, the same with\n"
		"                 _to, mispredict,in_tx,abort,cycles\n"
		"  of costs       weight,ins_lat,p_stage_cyc, local_weight,local_ins_lat,\n"
		"                 local_p_stage_cyc, transaction\n"
		"  of memory      mem,symbol_daddr,dso_daddr,dcacheline,phys_daddr,\n"
		"                 data_page_size,snoop,tlb,locked,blocked, code_page_size\n\n"
		"  tally record -- ./program && tally report\n"
		"  tally report -g                    with the call trees\n"
		"  tally report -g callee --no-children --sort sym -n 20\n"
		"  tally report --comm cc1 --dso libc.so.6",
	.options = options,
	.run = run,
};
