/* `tally top`: the functions that run now, updated repeatedly: browsed on a terminal, else as
 * text. */
#include "base/extremes.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "browse/browse.h"
#include "command/record_request.h"
#include "command/report_sort.h"
#include "command/simulated_options.h"
#include "machine/machine.h"
#include "output/output.h"
#include "output/output_text.h"
#include "recorder/recorder.h"
#include "report/report.h"
#include "view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum interface { INTERFACE_DEFAULT, INTERFACE_TEXT, INTERFACE_BROWSER };

struct top_request {
	struct record_request request; /* first: the options of `tally record` are stored in it */
	double delay_s, duration_s, percent_min; /* duration 0: until the user leaves */
	unsigned long long iterations;           /* 0: unlimited */
	size_t limit;
	enum interface interface;
	bool stdio; /* as text: requested, or without a terminal */
	bool stacks;
	bool no_totals;                    /* show no totals, even with stacks */
	struct tally_view_options view;    /* some of them: the shared options of its table */
	bool forgets;                      /* each view starts from zero */
	bool by[TALLY_SORT_KEYS];          /* keys that group rows */
	bool is_narrowed; /* only the user's processes, since the kernel refused the whole system */
	struct tally_recorder *recorder;
	struct tally_signals signals;
	struct tally_spawn spawn;          /* pid 0: no command */

	struct tally_names names;
	struct tally_live_sums sums;
	struct tally_report_options options;
	struct tally_report report;
	struct tally_recorder_status status, before; /* now, and at the last view */
	uint64_t taken;            /* samples of the shown event since the last view */
	bool is_paused, is_hinted; /* the hint about unnamed code was given */
	struct tally_browser browser;
};

/* --- options -------------------------------------------------------------- */

#define SORT_CHOICES "comm pid tid dso sym"

static int take_rate(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	struct tally_recorder_options *record = &((struct top_request *)taker)->request.record;
	unsigned long long hertz = 0;
	(void)option;
	int result = tally_option_u64("-F", value, 1, 1000000, &hertz, err);
	record->frequency = (double)hertz;
	record->rate_given = true;
	return result;
}

/* True for perf's words for the shape of trees, alone: "graph,0.5,caller". */
static bool is_shape(const char *value)
{
	static const char *const shapes[] = { "graph", "fractal", "flat", "folded", "caller" };
	size_t length = strcspn(value, ",");
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		if (strlen(shapes[i]) == length && !strncmp(value, shapes[i], length))
			return true;
	return !length;
}

/* perf has the trees' shape after "fp,", or alone; it is ignored. */
static int take_call_graph(void *taker, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct top_request *top = taker;
	enum tally_call_graph *call_graph = &top->request.record.call_graph;
	int result = 0;
	if (value && strstr(value, "callee"))
		return tally_error_set(
			err, -EINVAL,
			"--call-graph: trees show what an entry called; tally record -g, and then "
			"tally report -g callee, shows who called it");
	if (value && !strncmp(value, "fp,", 3))
		value = "fp";
	if (value && !is_shape(value))
		result = record_take_call_graph(&top->request, option, value, err);
	else
		*call_graph = TALLY_CALL_GRAPH_AUTO;
	top->stacks = *call_graph != TALLY_CALL_GRAPH_NONE;
	return result;
}

/* Takes the keys of live sums. */
static int take_sort(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	const uint64_t allowed = TALLY_SORT_BIT(TALLY_SORT_COMM) | TALLY_SORT_BIT(TALLY_SORT_PID) |
				 TALLY_SORT_BIT(TALLY_SORT_TID) |
				 TALLY_SORT_BIT(TALLY_SORT_OBJECT) |
				 TALLY_SORT_BIT(TALLY_SORT_SYMBOL);
	struct top_request *top = taker;
	(void)option;
	return tally_sort_keys_parse(value, allowed, SORT_CHOICES, top->by, err);
}

static int take_iterations(void *taker, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	int result = tally_option_store(taker, option, value, err);
	if (result < 0)
		tally_error_hint(
			err, "-n limits the views; for samples, which perf's -n shows: "
			     "tally record -a -- sleep 5, and then tally report -j, has the samples and "
			     "periods of each row");
	return result;
}

static const struct tally_option options[] = {
	RECORD_EVENT_OPTION,
	{ 'F', "freq", TALLY_ARGUMENT_REQUIRED, "HZ", "samples per second (999)",
	  TALLY_TAKE(take_rate) },
	RECORD_PERIOD_OPTION,
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL,
	  "the whole system (the default, where the kernel allows it)",
	  TALLY_SET(struct record_request, target.all) },
	RECORD_TASK_OPTIONS(""),
	RECORD_CPU_OPTION(""),
	/* perf's form of -g. It stands before the row in the help, because the first row with a
	 * name is used. */
	{ 0, "call-graph", TALLY_ARGUMENT_OPTIONAL, "fp|dwarf[,SIZE]|lbr|none", NULL,
	  "fp dwarf lbr none graph fractal flat folded caller callee",
	  TALLY_TAKE(take_call_graph) },
	{ 'g', "call-graph", TALLY_ARGUMENT_NONE, NULL, "call trees and totals",
	  TALLY_CONSTANT(struct record_request, record.call_graph, TALLY_CALL_GRAPH_AUTO),
	  TALLY_ALSO(struct top_request, stacks) },
	{ TALLY_INCLUDE(tally_view_max_stack_option, struct top_request, view) },
	{ TALLY_INCLUDE(tally_view_full_names_option, struct top_request, view) },
	{ TALLY_INCLUDE(tally_view_symbols_option, struct top_request, view) },
	{ 0, "no-children", TALLY_ARGUMENT_NONE, NULL, "no totals, with -g",
	  TALLY_SET(struct top_request, no_totals) },
	{ TALLY_INCLUDE(tally_view_idle_option, struct top_request, view) },
	{ TALLY_INCLUDE(tally_view_language_option, struct top_request, view) },
	{ 'K', "hide-kernel", TALLY_ARGUMENT_NONE, NULL, "only user mode",
	  TALLY_BITS(struct record_request, record.exclude, TALLY_ATTR_EXCLUDE_KERNEL) },
	{ 'U', "hide-user", TALLY_ARGUMENT_NONE, NULL, "only the kernel",
	  TALLY_BITS(struct record_request, record.exclude, TALLY_ATTR_EXCLUDE_USER) },
	{ 's', "sort", TALLY_ARGUMENT_REQUIRED, "KEYS",
	  "group rows by these of comm,pid,tid,dso,sym (dso,sym)", SORT_CHOICES,
	  TALLY_TAKE(take_sort) },
	{ 'm', "mmap-pages", TALLY_ARGUMENT_REQUIRED, "SIZE",
	  "ring size per CPU: 512K, 8M, or pages", TALLY_TAKE(record_take_ring) },
	RECORD_INHERIT_OPTION,
	{ 'd', "delay", TALLY_ARGUMENT_REQUIRED, "TIME", "time between views (2): 1, 500ms",
	  TALLY_SECONDS(struct top_request, delay_s) },
	{ 'n', "iterations", TALLY_ARGUMENT_REQUIRED, "N", "exit after N views",
	  TALLY_NUMBER(struct top_request, iterations, 1, 1000000000),
	  TALLY_TAKE(take_iterations) },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "TIME", "exit after TIME: 5, 500ms, 2m",
	  TALLY_DURATION(struct top_request, duration_s) },
	{ 'E', "entries", TALLY_ARGUMENT_REQUIRED, "N", "at most N rows (as text: 20)",
	  TALLY_NUMBER(struct top_request, limit, 1, 1000000) },
	{ 'z', "zero", TALLY_ARGUMENT_NONE, NULL, "start each view from zero (always so as text)",
	  TALLY_SET(struct top_request, forgets) },
	{ 0, "percent-limit", TALLY_ARGUMENT_REQUIRED, "P", "leave out rows below P % (0.1)",
	  TALLY_PERCENT(struct top_request, percent_min) },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL,
	  "print a list for each interval (the default without a terminal)",
	  TALLY_CONSTANT(struct top_request, interface, INTERFACE_TEXT) },
	{ 0, "tui", TALLY_ARGUMENT_NONE, NULL, "browse on the terminal (the default there)",
	  TALLY_CONSTANT(struct top_request, interface, INTERFACE_BROWSER) },
	TALLY_PROVIDER_OPTION(struct record_request, provider_name),
	/* perf's names */
	{ 0, "children", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_CLEAR(struct top_request, no_totals) },
	{ 0, "hide_kernel_symbols", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_BITS(struct record_request, record.exclude, TALLY_ATTR_EXCLUDE_KERNEL) },
	{ 0, "hide_user_symbols", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_BITS(struct record_request, record.exclude, TALLY_ATTR_EXCLUDE_USER) },
	{ 0, "no-bpf-event", TALLY_ARGUMENT_NONE, NULL, NULL,
	  TALLY_SET(struct record_request, record.no_bpf_events) },
	TALLY_OPTIONS_END,
};

/* Returns -1, or the exit status when the command must end: after the help or an error. */
static int parse(const struct tally_command *command, int argc, char **argv,
		 struct top_request *top)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	const uint64_t both = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL;
	struct record_request *request = &top->request;
	struct tally_target *target = &request->target;
	const char *kernel_option = NULL;
	struct tally_error err = TALLY_ERROR_NONE;
	if (!tally_options_parse(&walk, top))
		return walk.status;
	if (walk.index < argc)
		target->command = argv + walk.index;
	if (target->command &&
	    (target->all || target->has_cpu_list || tally_target_has_tasks(target)))
		return tally_command_misuse(
			command, "top shows either a command that it starts or what runs already");
	if (top->request.record.exclude == both)
		return tally_command_misuse(command, "-K and -U leave nothing to show");
	if (!(top->delay_s >= 0.05))
		return tally_command_misuse(command, "-d: the minimum is 50ms");
	if (top->interface == INTERFACE_BROWSER && !tally_screen_possible())
		return tally_command_misuse(command,
					    "--tui needs a terminal, for input and output");
	if (request->record.exclude & TALLY_ATTR_EXCLUDE_USER)
		kernel_option = "-U";
	provider_choose(&request->choice, request->provider_name, TALLY_PROVIDER_SAMPLES, target,
			kernel_option);
	request->provider_ops = request->choice.ops;
	if (!request->provider_ops) /* record_parse_events() refuses it */
		request->provider_ops = tally_provider_kernel()->ops;
	if (provider_choice_check(&request->choice, &err) < 0)
		return tally_command_fail(command, &err);
	return record_parse_events(command, &top->request);
}

/* --- views ---------------------------------------------------------------- */

enum { LOOK_MS = 100, TEXT_ROWS = 20 };

static const double FADES = 0.5; /* share of a sample's weight that remains one view later */

/* True for clocks, and for events of the CPU that are not precise (recording.h has the rule). */
static bool has_skid(const struct tally_attr *attr)
{
	bool is_cpu = attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE ||
		      attr->type == TALLY_TYPE_RAW;
	return tally_attr_is_clock(attr) || (is_cpu && !(attr->flags & TALLY_ATTR_PRECISE_IP));
}

/* Callback tally_recorder_options.take_sample; `context` is a struct top_request. */
static int take_sample(void *context, size_t event, const struct tally_record *sample)
{
	struct top_request *top = context;
	top->taken += event == top->options.event;
	if (top->is_paused)
		return 0;
	return tally_live_sums_add(&top->sums, (uint32_t)event,
				   has_skid(&top->request.events.items[event].attr), sample);
}

/* Callback tally_recorder_options.say: prints to the terminal's last line, or to standard error. */
static void say(void *context, const char *line)
{
	struct top_request *top = context;
	if (top->stdio)
		tally_say("tally: %s", line);
	else
		snprintf(top->browser.message, sizeof(top->browser.message), "%s", line);
}

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Writes "812 samples of cpu-clock in 2.0 s, 3 lost, the whole system". */
static void describe(const struct top_request *top, char *out, size_t size)
{
	char event[TALLY_BROWSER_TEXT_BYTES / 2], target[TALLY_BROWSER_TEXT_BYTES / 4],
		lost[48] = "", idle[48] = "";
	uint64_t lost_now = top->status.lost - top->before.lost;
	tally_terminal_clean_name(top->request.events.items[top->options.event].name, event,
				  sizeof(event));
	tally_target_text(&top->request.target, target, sizeof(target));
	if (lost_now)
		snprintf(lost, sizeof(lost), ", %s lost", tally_number(lost_now));
	const struct tally_left_out *none = &top->report.idle;
	if (none->samples)
		snprintf(idle, sizeof(idle), ", and %.0f%% idle (--idle)",
			 100 * (double)none->period /
				 ((double)none->period + (double)top->report.period));
	uint64_t samples = top->stdio ? top->report.samples : top->taken;
	const char *state = top->is_narrowed ? " (the system is not allowed)" : "";
	if (top->is_paused)
		state = ", paused";
	snprintf(out, size, "%s sample%s of %s in %.1f s%s%s, %s%s", tally_number(samples),
		 tally_plural(samples), event, top->status.seconds - top->before.seconds, idle,
		 lost, target, state);
}

/* True if all target tasks have ended. */
static bool are_gone(const struct tally_target *target)
{
	bool gone = target->tids.count && !target->all;
	for (size_t i = 0; gone && i < target->tids.count; i++)
		gone = kill(target->tids.items[i], 0) < 0 && errno == ESRCH;
	return gone;
}

static bool is_asked_to_end(struct top_request *top)
{
	return tally_recorder_watch(top->recorder, &top->signals, -1, 0) < 0;
}

static bool has_command_ended(const struct top_request *top)
{
	int status;
	return tally_recorder_command_ended(top->recorder, &status);
}

static int build(struct top_request *top)
{
	struct tally_report old = top->report;
	int result = tally_live_sums_report(&top->sums, &top->options, &top->report);
	if (result < 0) {
		top->report = old;
		return result;
	}
	result = tally_browse_set(&top->browser.browse, &top->report, &top->options);
	tally_report_release(&old);
	return result;
}

/* --- views as text -------------------------------------------------------- */

static void print_row(const struct top_request *top, const struct tally_report_entry *entry,
		      const int *widths)
{
	const struct tally_browse *browse = &top->browser.browse;
	struct tally_buffer line = { 0 };
	char cell[TALLY_REPORT_CELL_BYTES];
	double whole = (double)tally_max_u64(top->report.period, 1);
	if (top->options.children)
		tally_buffer_printf(&line, "%7.2f%%", 100.0 * (double)entry->total / whole);
	tally_buffer_printf(&line, "%7.2f%%  ", 100.0 * (double)entry->self / whole);
	for (unsigned i = 0; i < browse->column_count; i++) {
		bool is_last = i + 1 == browse->column_count;
		int width = is_last ? 0 : widths[i], padding = 0;
		tally_report_cell(&top->names, entry, browse->columns[i].key, cell, sizeof(cell));
		int used = tally_fit_text(&line, cell, width, !tally_terminal_is_utf8());
		if (!is_last)
			padding = width + 2 - used;
		tally_buffer_printf(&line, "%*s", padding, "");
	}
	printf("%s\n", tally_buffer_string(&line));
	tally_buffer_release(&line);
}

static void print_view(const struct top_request *top)
{
	const struct tally_browse *browse = &top->browser.browse;
	char title[TALLY_BROWSER_TEXT_BYTES], clock[16];
	int widths[TALLY_SORT_KEYS];
	struct tm tm;
	time_t now = time(NULL);
	describe(top, title, sizeof(title));
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &tm));
	printf("%s  %s\n%s    SELF", clock, title, top->options.children ? "   TOTAL" : "");
	for (unsigned i = 0; i < browse->column_count; i++) {
		widths[i] = browse->columns[i].width;
		printf("  %-*s", i + 1 < browse->column_count ? widths[i] : 0,
		       tally_sort_row(browse->columns[i].key)->title);
	}
	printf("\n");
	for (size_t i = 0; i < top->report.entries.count; i++)
		print_row(top, &top->report.entries.items[i], widths);
	if (!top->report.entries.count)
		printf("  nothing was sampled\n");
	printf("\n");
	fflush(stdout);
}

/* --- the loop ------------------------------------------------------------- */

struct loop {
	double next, end; /* seconds; end 0: none */
	unsigned long long views;
	bool leave;
};

static int hint(struct top_request *top)
{
	struct tally_buffer text = { 0 };
	char clean[TALLY_BROWSER_TEXT_BYTES];
	int result = 0;
	if (!top->is_hinted)
		result = tally_live_jit_hint(&top->sums, &text);
	if (!result && text.length) {
		text.bytes[strcspn(text.bytes, "\n")] = '\0'; /* the first line */
		tally_terminal_clean_name(text.bytes, clean, sizeof(clean));
		top->is_hinted = true;
		if (top->stdio)
			tally_say("hint: %s", clean);
		else
			snprintf(top->browser.message, sizeof(top->browser.message), "%s", clean);
	}
	tally_buffer_release(&text);
	return result;
}

/* Shows a view, then lets its weights decay. */
static int show_view(struct top_request *top, struct loop *loop)
{
	int result = build(top);
	if (result)
		return result;
	for (uint32_t event = 0; top->stdio && event < top->request.events.count; event++) {
		top->options.event = event;
		result = build(top);
		if (result)
			return result;
		print_view(top);
	}
	result = hint(top);
	if (result)
		return result;
	top->browser.event_number = top->options.event + 1;
	top->browser.event_count = (unsigned)top->request.events.count;
	if (!top->is_paused)
		describe(top, top->browser.title, sizeof(top->browser.title));
	if (!top->is_paused)
		result = tally_live_sums_decay(&top->sums, top->stdio || top->forgets ? 0 : FADES);
	top->before = top->status;
	top->taken = 0;
	loop->next += top->delay_s;
	if (loop->next < now_s()) /* skip views that were missed */
		loop->next = now_s() + top->delay_s;
	loop->leave |= top->iterations && ++loop->views >= top->iterations;
	return result;
}

/* Does what a key requests. */
static int act(struct top_request *top, enum tally_browser_request wish, struct loop *loop)
{
	struct tally_browser *browser = &top->browser;
	switch (wish) {
	case TALLY_REQUEST_REPORT:
		return build(top);
	case TALLY_REQUEST_NEXT_EVENT:
	case TALLY_REQUEST_PREVIOUS_EVENT: {
		uint32_t count = (uint32_t)top->request.events.count;
		uint32_t step = wish == TALLY_REQUEST_NEXT_EVENT ? 1 : count - 1;
		top->options.event = (top->options.event + step) % count;
		return build(top);
	}
	case TALLY_REQUEST_PAUSE:
		top->is_paused = !top->is_paused;
		snprintf(browser->message, sizeof(browser->message), "%s",
			 top->is_paused ? "paused; p continues" : "sampling continues");
		return 0;
	case TALLY_REQUEST_RESET: {
		int result = tally_live_sums_decay(&top->sums, 0);
		if (result)
			return result;
		return build(top);
	}
	case TALLY_REQUEST_QUIT:
		loop->leave = true;
		return 0;
	case TALLY_REQUEST_FAIL:
		return -ENOMEM;
	default:
		return 0;
	}
}

/* Waits for a key, at most until the rings must be drained. */
static int wait_a_little(struct top_request *top, struct loop *loop)
{
	double left_ms = (loop->next - now_s()) * 1000;
	int timeout_ms = LOOK_MS;
	if (left_ms < LOOK_MS)
		timeout_ms = left_ms < 1 ? 1 : (int)left_ms;
	if (top->stdio) {
		struct pollfd signals = { .fd = top->signals.fd, .events = POLLIN };
		poll(&signals, 1, timeout_ms);
		return 0;
	}
	struct tally_screen *screen = top->browser.screen;
	tally_browser_draw(&top->browser);
	return act(top, tally_browser_key(&top->browser, screen->ops->key(screen, timeout_ms)),
		   loop);
}

static int sample_and_show(struct top_request *top, struct tally_error *err)
{
	double start = now_s();
	struct loop loop = { .next = start + top->delay_s,
			     .end = top->duration_s > 0 ? start + top->duration_s : 0 };
	int result = tally_recorder_begin(top->recorder, err);
	if (result < 0)
		return result;
	result = build(top); /* an empty view */
	while (!result && !loop.leave) {
		double now = now_s();
		bool is_over = (loop.end > 0 && now >= loop.end) || is_asked_to_end(top) ||
			       are_gone(&top->request.target) || has_command_ended(top);
		int looked = tally_recorder_look(top->recorder, &top->status, err);
		if (looked < 0)
			return looked;
		if (now >= loop.next || (is_over && top->stdio))
			result = show_view(top, &loop);
		loop.leave |= is_over;
		if (!result && !loop.leave)
			result = wait_a_little(top, &loop);
	}
	if (result < 0)
		return tally_error_set(err, result, "out of memory");
	return 0;
}

static void set_up(struct top_request *top)
{
	tally_names_init(&top->names, tally_recorder_tasks(top->recorder));
	top->names.options.no_inlines = top->view.no_inlines;
	tally_names_use_cache(&top->names);
	tally_names_use_sources(&top->names, &top->view.names);
	top->sums = (struct tally_live_sums){ .names = &top->names,
					      .with_stacks = top->stacks,
					      .joins_runtimes = top->view.joins_runtimes,
					      .frames_max = top->view.filter.frames_max };
	size_t rows = top->limit;
	enum tally_tree_order tree = TALLY_TREE_NONE;
	if (!rows && top->stdio)
		rows = TEXT_ROWS;
	if (top->stacks && !top->stdio)
		tree = TALLY_TREE_CALLEE;
	top->options = (struct tally_report_options){ .by_self = true,
						      .percent_min = top->percent_min,
						      .leaves_out_idle = !top->view.shows_idle,
						      .limit = rows,
						      .children = top->stacks && !top->no_totals,
						      .tree = tree,
						      .tree_percent_min = top->percent_min };
	memcpy(top->options.by, top->by, sizeof(top->by));
	top->browser = (struct tally_browser){ .options = &top->options,
					       .live = true,
					       .has_threads = true,
					       .has_stacks = top->stacks,
					       .title = "sampling ..." };
	provider_choice_note(&top->request.choice, "sampling", top->browser.message,
			     sizeof(top->browser.message));
	tally_browse_init(&top->browser.browse, &top->names);
}

/* Samples and shows views until the end. Returns 0 or -errno. */
static int sample(struct top_request *top, struct tally_error *err)
{
	struct tally_screen *screen = NULL;
	set_up(top);
	if (!top->stdio && tally_curses_screen_open(&screen, err) < 0) {
		if (top->interface == INTERFACE_BROWSER)
			return err->code;
		fprintf(stderr, "tally top: %s\nhint: %s\n", err->message, err->hint);
		top->stdio = true;
		if (!top->limit)
			top->options.limit = TEXT_ROWS;
	}
	top->browser.screen = screen;
	int result = sample_and_show(top, err);
	if (screen)
		screen->ops->close(screen);
	tally_browse_release(&top->browser.browse);
	tally_report_release(&top->report);
	tally_live_sums_release(&top->sums);
	tally_names_release(&top->names);
	return result;
}

/* --- the command ---------------------------------------------------------- */

static int open_for_target(struct top_request *top, int fd, struct tally_buffer *notes,
			   struct tally_error *err)
{
	struct record_request *request = &top->request;
	struct tally_spawn *spawn = NULL;
	int result = tally_target_resolve(&request->target, err);
	if (result)
		return result;
	if (top->spawn.pid)
		spawn = &top->spawn;
	return tally_recorder_new(request->provider, &request->events, &request->target,
				  &request->record, fd, false, spawn, notes, &top->recorder, err);
}

/* Opens the recorder for the target. If no target was given and the kernel refuses the whole
 * system, opens it for the user's own processes. */
static int open_recorder(struct top_request *top, int fd, struct tally_error *err)
{
	struct record_request *request = &top->request;
	struct tally_target *target = &request->target;
	struct tally_buffer notes = { 0 };
	bool chosen = tally_target_has_tasks(target) || target->has_cpu_list || target->all ||
		      target->command;
	char user[24];
	target->all |= !chosen;
	int result = open_for_target(top, fd, &notes, err);
	if ((result == -EACCES || result == -EPERM) && !chosen) {
		tally_target_release(target);
		*target = (struct tally_target)TALLY_TARGET_INIT;
		*err = (struct tally_error)TALLY_ERROR_NONE;
		snprintf(user, sizeof(user), "%u", (unsigned)getuid());
		result = tally_target_set_user(target, user, err);
		if (!result)
			result = open_for_target(top, fd, &notes, err);
		top->is_narrowed = result >= 0;
		if (result < 0 && !tally_probe_refusal())
			tally_error_hint(
				err,
				"the kernel does not allow the whole system: 'tally doctor' shows "
				"how to allow it");
	}
	if (!result && top->stdio)
		record_say_notes(request, top->recorder, &notes);
	tally_buffer_release(&notes);
	return tally_error_of(result);
}

/* Forks the command, if there is one.  What it would read from the browser's terminal, or write to
 * it, is lost: `null` takes the place of that.  Returns 0 or -errno. */
static int prepare_command(struct top_request *top, int null, struct tally_error *err)
{
	enum { STANDARD = 3 };
	char **argv = top->request.target.command;
	int saved[STANDARD] = { -1, -1, -1 };
	if (!argv)
		return 0;
	int result = tally_spawn_command(top->request.provider, argv, &argv, err);
	if (result < 0)
		return result;
	for (int i = 0; i < STANDARD && !top->stdio; i++)
		if (isatty(i)) {
			saved[i] = fcntl(i, F_DUPFD_CLOEXEC, STANDARD);
			dup2(null, i);
		}
	result = tally_spawn_prepare(&top->spawn, top->request.provider, argv,
				     &top->signals.before, err);
	for (int i = 0; i < STANDARD; i++)
		if (saved[i] >= 0) {
			dup2(saved[i], i);
			close(saved[i]);
		}
	return result;
}

/* Waits for the command, which is told to end if the user has left.  Returns its exit status. */
static int await_command(struct top_request *top)
{
	int status = 0;
	if (!top->spawn.pid)
		return TALLY_EXIT_OK;
	if (tally_recorder_wait(top->recorder, &top->signals, TALLY_RECORDER_END_DURATION) < 0)
		return 128 + SIGINT;
	tally_recorder_command_ended(top->recorder, &status);
	/* that is how it was told to end */
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
		return TALLY_EXIT_OK;
	return tally_spawn_exit_status(status);
}

static int show(const struct tally_command *command, struct top_request *top)
{
	struct tally_recorder_options *record = &top->request.record;
	struct tally_error err = TALLY_ERROR_NONE;
	/* The records of tasks, which a recording would contain, are discarded. */
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), result;
	record->take_sample = take_sample;
	record->say = say;
	record->context = top;
	if (fd < 0 || tally_signals_open(&top->signals, &err) < 0) {
		if (fd < 0)
			tally_error_set(&err, -errno, "/dev/null: %s", strerror(errno));
		return tally_command_fail(command, &err);
	}
	int status = TALLY_EXIT_FAILURE;
	result = prepare_command(top, fd, &err);
	if (!result)
		result = open_recorder(top, fd, &err);
	if (!result)
		result = sample(top, &err);
	if (!result)
		status = await_command(top);
	if (result < 0 && top->request.target.command && !top->spawn.pid) /* it didn't start */
		status = tally_spawn_failure_status(result);
	tally_spawn_release(&top->spawn);
	tally_recorder_free(top->recorder);
	tally_signals_release(&top->signals);
	close(fd);
	if (result < 0)
		tally_command_fail(command, &err);
	return status;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct top_request top = {
		/* The rings are not drained while a view is drawn: with small copies of stacks, a
		 * ring holds half a second. */
		.request = { .record = { .frequency = RECORD_DEFAULT_HZ,
					 .call_graph = TALLY_CALL_GRAPH_NONE,
					 .stack_bytes = 16 << 10,
					 .argv = argv,
					 .argc = argc },
			     .target = { .takes_descendants = true },
			     .output_fd = -1,
			     .place = TALLY_OUTPUT_PATH_INIT },
		.spawn = TALLY_SPAWN_INIT,
		.delay_s = 2,
		.percent_min = 0.1,
		.by = { [TALLY_SORT_OBJECT] = true, [TALLY_SORT_SYMBOL] = true },
	};
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_catalogue_init(&top.request.catalogue) < 0) {
		tally_error_set(&err, -ENOMEM, "out of memory");
		return tally_command_fail(command, &err);
	}
	int status = parse(command, argc, argv, &top);
	if (status < 0 && top.view.joins_runtimes) { /* only stacks tell which function is run */
		top.stacks = true;
		if (top.request.record.call_graph == TALLY_CALL_GRAPH_NONE)
			top.request.record.call_graph = TALLY_CALL_GRAPH_AUTO;
	}
	if (status < 0) {
		top.stdio = top.interface == INTERFACE_TEXT || !tally_screen_possible();
		status = show(command, &top);
	}
	record_request_release(&top.request);
	return status;
}

const struct tally_command tally_command_top = {
	.name = "top",
	.summary = "what runs now, by function",
	.usage = "[options] [--] [command [argument…]]",
	.details =
		"On a terminal: recent samples, whose weight halves with each view; / searches, f "
		"filters, s selects\n"
		"columns, p pauses, h lists all keys, q quits.  As text: the samples of each "
		"interval.\n\n"
		"  tally top                            the whole system\n"
		"  tally top -p 1234 -d 500ms\n"
		"  tally top -- make -j8                a command, until it ends\n"
		"  tally top -g                         who called what\n"
		"  tally top -e minor-faults -c 1 --stdio -n 5",
	.options = options,
	.run = run,
};
