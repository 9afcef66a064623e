/* The loop that draws the browser, waits for a key, and does what the key requests: it builds the
 * report again, changes the event, or runs `annotate` in a child process.  The child gets the
 * report's selection as options. */
#include "command/browse_report.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/vector.h"
#include "command/command.h"
#include "view/view_messages.h"
#include "browse/browse.h"
#include "output/pager.h"
#include "output/report_text.h"
#include "profile/hot_functions.h"
#include "profile/idle.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct report_browser {
	struct tally_browser browser;
	const struct tally_profile *profile;
	struct tally_report_options options;
	struct tally_report report;
	const struct tally_browse_request *request;
	uint32_t idle_said_of; /* event + 1 that say_idle() has reported; 0: none */
};

/* Reports idle samples once for each event shown. */
static void say_idle(struct report_browser *view)
{
	struct tally_buffer text = { 0 };
	if (view->idle_said_of == view->options.event + 1)
		return;
	view->idle_said_of = view->options.event + 1;
	tally_idle_text(&view->report.idle, view->report.period, &text);
	if (text.length)
		snprintf(view->browser.message, sizeof(view->browser.message), "%s",
			 tally_buffer_string(&text));
	tally_buffer_release(&text);
}

static bool has_samples(const struct report_browser *view, uint32_t event)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(
		view->profile->recording->data, &count);
	uint64_t samples, period;
	if (event != view->request->report.event &&
	    tally_off_cpu_serves(&view->profile->recording->off_cpu, &events[event]))
		return false;
	tally_profile_totals(view->profile, event, &samples, &period);
	return samples || tally_profile_idle(view->profile, event).samples;
}

static void number_event(struct report_browser *view)
{
	size_t count;
	tally_perfdata_events(view->profile->recording->data, &count);
	view->browser.event_count = 0;
	for (uint32_t event = 0; event < count; event++) {
		view->browser.event_count += has_samples(view, event);
		if (event == view->options.event)
			view->browser.event_number = view->browser.event_count;
	}
}

/* Builds the report again with the current options. */
static int build(struct report_browser *view)
{
	struct tally_report old = view->report;
	int result = tally_report_build(view->profile, &view->options, &view->report);
	if (result < 0) {
		view->report = old;
		return result;
	}
	result = tally_browse_set(&view->browser.browse, &view->report, &view->options);
	tally_report_release(&old);
	const struct tally_report_view plain = { .columns = 0 };
	struct tally_buffer head = { 0 };
	tally_report_head(view->profile, &view->report, &view->options, &plain, &head);
	snprintf(view->browser.title, sizeof(view->browser.title), "%s",
		 tally_buffer_string(&head));
	tally_buffer_release(&head);
	say_idle(view);
	number_event(view);
	return result;
}

/* Goes to the next or previous event with samples; false if there is no other. */
static bool go_to_event(struct report_browser *view, bool backwards)
{
	size_t count;
	uint32_t event = view->options.event;
	tally_perfdata_events(view->profile->recording->data, &count);
	do {
		event = (uint32_t)((event + (backwards ? count - 1 : 1)) % count);
	} while (!has_samples(view, event) && event != view->options.event);
	if (event == view->options.event) {
		snprintf(view->browser.message, sizeof(view->browser.message),
			 "there is only one event");
		return false;
	}
	view->options.event = event;
	return true;
}

static const struct tally_command *annotate_command(void)
{
	for (size_t i = 0; tally_commands[i]; i++)
		if (!strcmp(tally_commands[i]->name, "annotate"))
			return tally_commands[i];
	return NULL;
}

struct arguments {
	struct tally_arena arena;
	const char *items[32];
	unsigned count;
};

/* Adds "--cpu=3". */
static void add_argument(struct arguments *arguments, const char *option, const char *value)
{
	char *text = value ? tally_arena_printf(&arguments->arena, "--%s=%s", option, value) :
			     tally_arena_printf(&arguments->arena, "--%s", option);
	if (text)
		arguments->items[arguments->count++] = text;
}

static void add_number(struct arguments *arguments, const char *option, uint32_t number)
{
	char text[16];
	snprintf(text, sizeof(text), "%u", number);
	add_argument(arguments, option, text);
}

/* Adds a name as a pattern that matches only itself. */
static void add_name(struct arguments *arguments, const char *option, const char *name)
{
	char *quoted = tally_arena_alloc(&arguments->arena, 2 * strlen(name) + 1);
	if (!quoted)
		return;
	tally_list_quote(name, quoted);
	add_argument(arguments, option, quoted);
}

/* Selects the samples and names of the report. */
static void add_selection(struct arguments *arguments, const struct tally_profile_filter *filter,
			  const struct tally_name_sources *names)
{
	const struct {
		const char *option, *value;
	} texts[] = {
		{ "comm", filter->comms },       { "pid", filter->pids },
		{ "tid", filter->tids },         { "cpu", filter->cpus },
		{ "time", filter->time },        { "symfs", names->search.root },
		{ "vmlinux", names->vmlinux },   { "buildid-dir", names->search.build_ids },
		{ "kallsyms", names->kallsyms },
	};
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].value)
			add_argument(arguments, texts[i].option, texts[i].value);
	if (names->modules)
		add_argument(arguments, "modules", NULL);
	if (names->full_names)
		add_argument(arguments, "full-names", NULL);
	if (names->asks_debuginfod)
		add_argument(arguments, "debuginfod", names->debuginfod_urls);
}

/* Restricts `annotate` to the entry's command, thread and CPU: samples of python3's memcpy() are
 * not those of gcc's. */
static void add_entry(struct arguments *arguments, const struct report_browser *view)
{
	const struct tally_report_entry *entry = tally_browse_entry(&view->browser.browse);
	const bool *by = view->options.by, has_threads = view->report.threads > 1;
	const char *comm = entry && by[TALLY_SORT_COMM] && view->report.comms > 1
				   ? tally_strings_text(&view->profile->recording->tasks.strings,
							entry->key[TALLY_SORT_COMM])
				   : NULL;
	if (comm && *comm)
		add_name(arguments, "comm", comm);
	if (entry && by[TALLY_SORT_PID] && has_threads)
		add_number(arguments, "pid", entry->key[TALLY_SORT_PID]);
	if (entry && by[TALLY_SORT_TID] && has_threads)
		add_number(arguments, "tid", entry->key[TALLY_SORT_TID]);
	if (entry && by[TALLY_SORT_CPU] && entry->key[TALLY_SORT_CPU] != UINT32_MAX)
		add_number(arguments, "cpu", entry->key[TALLY_SORT_CPU]);
}

/* True if the code can be read: code without a symbol must be in a file. */
static bool has_code(const struct tally_names *names, uint32_t function)
{
	const struct tally_function *one = &names->functions.items[function];
	return one->name != TALLY_STRING_NONE || one->kind == TALLY_FRAME_PROGRAM ||
	       one->kind == TALLY_FRAME_LIBRARY;
}

/* True if some samples are in the function itself or in functions that were inlined into it. */
static bool has_own_samples(const struct report_browser *view, uint32_t function)
{
	const struct tally_names *names = &view->profile->recording->names;
	const struct tally_function_choice choice = {
		.name = tally_names_plain_text(names, function),
		.object = tally_names_short_object(names, function),
	};
	struct tally_hot_functions found = { 0 };
	struct tally_error ignored = TALLY_ERROR_NONE;
	int result = tally_hot_functions_find(view->profile, view->options.event, &choice, &found,
					      &ignored);
	tally_vector_release(&found);
	return result != -ENOENT;
}

static int run_annotate(const struct report_browser *view, const struct tally_command *command,
			uint32_t function)
{
	const struct tally_browse_request *request = view->request;
	const struct tally_names *names = view->browser.browse.names;
	struct arguments arguments = { .items = { "annotate" }, .count = 1 };
	const char *name = tally_names_plain_text(names, function);
	add_argument(&arguments, "input", request->input);
	add_number(&arguments, "event", view->options.event);
	add_argument(&arguments, "object", tally_names_short_object(names, function));
	add_selection(&arguments, request->filter, request->names);
	if (names->keep_mangled)
		add_argument(&arguments, "no-demangle", NULL);
	if (names->no_inlines)
		add_argument(&arguments, "no-inline", NULL);
	add_entry(&arguments, view);
	arguments.items[arguments.count++] = "--";
	arguments.items[arguments.count++] = name;
	setenv("LESS", "RS", 1); /* the pager stays even if everything fits on the screen */
	int status = command->run(command, (int)arguments.count,
				  (char **)(uintptr_t)arguments.items);
	tally_arena_release(&arguments.arena);
	return status;
}

/* Runs `tally annotate` in a child process, which uses the terminal until it ends. */
static void annotate(struct report_browser *view)
{
	struct tally_browser *browser = &view->browser;
	const struct tally_names *names = browser->browse.names;
	const struct tally_browse_line *line = tally_browse_current(&browser->browse);
	uint32_t function = line ? tally_browse_function(&browser->browse, line) : UINT32_MAX;
	const struct tally_command *command = annotate_command();
	if (!command || function == UINT32_MAX || !has_code(names, function)) {
		snprintf(browser->message, sizeof(browser->message),
			 command ? "code without a symbol and a file can't be annotated"
				 : "this tally can't annotate");
		return;
	}
	if (!line->branch && !has_own_samples(view, function)) {
		snprintf(browser->message, sizeof(browser->message),
			 "it has no samples of its own, only in functions that it called");
		return;
	}
	browser->screen->ops->suspend(browser->screen);
	int status = 0, pid = fork();
	if (!pid)
		_exit(run_annotate(view, command, function));
	void (*interrupted)(int) = signal(SIGINT, SIG_IGN);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, interrupted);
	/* otherwise its output would vanish at once */
	if (pid < 0 || status || !tally_pager_is_less()) {
		fprintf(stderr, "press Enter to return to the report");
		for (int c = 0; pid > 0 && c != '\n' && c != EOF;)
			c = getchar();
	}
	browser->screen->ops->resume(browser->screen);
}

static int grant(struct report_browser *view, enum tally_browser_wish wish, bool *leave)
{
	switch (wish) {
	case TALLY_WISH_REPORT: return build(view);
	case TALLY_WISH_NEXT_EVENT: return go_to_event(view, false) ? build(view) : 0;
	case TALLY_WISH_PREVIOUS_EVENT: return go_to_event(view, true) ? build(view) : 0;
	case TALLY_WISH_ANNOTATE: annotate(view); return 0;
	case TALLY_WISH_QUIT: *leave = true; return 0;
	case TALLY_WISH_FAIL: return -ENOMEM;
	default: return 0;
	}
}

int tally_browse_report(struct tally_screen *screen, const struct tally_profile *profile,
			const struct tally_browse_request *request)
{
	struct report_browser view = { .profile = profile,
				       .options = request->report,
				       .request = request };
	bool leave = false;
	/* Rows sorted by self need their callers, rows sorted by total their callees. */
	if (profile->has_stacks && view.options.tree == TALLY_TREE_NONE)
		view.options.tree = view.options.by_self ? TALLY_TREE_CALLEE : TALLY_TREE_CALLER;
	view.browser = (struct tally_browser){ .screen = screen,
					       .options = &view.options,
					       .has_stacks = profile->has_stacks,
					       .has_threads = true,
					       .errors = request->errors };
	tally_browse_init(&view.browser.browse, &profile->recording->names);
	tally_command_jit_hint_text(profile, TALLY_HINT_BRIEF, view.browser.message,
				    sizeof(view.browser.message));
	int result = build(&view);
	while (!result && !leave) {
		tally_browser_draw(&view.browser);
		result = grant(&view,
			       tally_browser_key(&view.browser, screen->ops->key(screen, -1)),
			       &leave);
	}
	tally_browse_release(&view.browser.browse);
	tally_report_release(&view.report);
	return result;
}
