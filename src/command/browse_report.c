/* The loop that draws the browser, waits for a key, and does what the key requests: it builds the
 * report again, changes the event, or runs `annotate` in a child process, with the options of the
 * report's view. */
#include "command/browse_report.h"

#include "base/buffer.h"
#include "base/vector.h"
#include "browse/browse.h"
#include "command/annotate_command.h"
#include "output/output.h"
#include "output/output_text.h"
#include "profile/profile.h"
#include "view/view.h"

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
	size_t step = backwards ? count - 1 : 1;
	do {
		event = (uint32_t)((event + step) % count);
	} while (!has_samples(view, event) && event != view->options.event);
	if (event == view->options.event) {
		snprintf(view->browser.message, sizeof(view->browser.message),
			 "there is only one event");
		return false;
	}
	view->options.event = event;
	return true;
}

/* Lists of one item each, which select the samples of an entry. */
struct entry_lists {
	char *comm; /* allocated */
	char pid[16], tid[16], cpu[16];
};

static const char *write_number(char text[16], uint32_t number)
{
	snprintf(text, 16, "%u", number);
	return text;
}

/* Restricts the filter to the entry's command, thread and CPU: samples of python3's memcpy() are not
 * those of gcc's. */
static void select_entry(const struct report_browser *view, struct entry_lists *lists,
			 struct tally_profile_filter *filter)
{
	const struct tally_report_entry *entry = tally_browse_entry(&view->browser.browse);
	const bool *by = view->options.by, has_threads = view->report.threads > 1;
	if (!entry)
		return;
	if (by[TALLY_SORT_COMM] && view->report.comms > 1) {
		const char *comm = tally_strings_text(&view->profile->recording->tasks.strings,
						      entry->key[TALLY_SORT_COMM]);
		lists->comm = malloc(2 * strlen(comm) + 1);
		if (*comm && lists->comm) {
			tally_list_quote(comm, lists->comm); /* matches only itself */
			filter->comms = lists->comm;
		}
	}
	if (by[TALLY_SORT_PID] && has_threads)
		filter->pids = write_number(lists->pid, entry->key[TALLY_SORT_PID]);
	if (by[TALLY_SORT_TID] && has_threads)
		filter->tids = write_number(lists->tid, entry->key[TALLY_SORT_TID]);
	if (by[TALLY_SORT_CPU] && entry->key[TALLY_SORT_CPU] != UINT32_MAX)
		filter->cpus = write_number(lists->cpu, entry->key[TALLY_SORT_CPU]);
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

static int run_annotate(const struct report_browser *view, uint32_t function)
{
	const struct tally_names *names = view->browser.browse.names;
	const struct tally_function_choice choice = {
		.name = tally_names_plain_text(names, function),
		.object = tally_names_short_object(names, function),
	};
	const struct tally_view_options *shown = view->request->view;
	struct tally_view_options wanted = {
		.input = shown->input,
		.filter = shown->filter,
		.names = shown->names,
		.keep_mangled = shown->keep_mangled,
		.no_inlines = shown->no_inlines,
	};
	struct entry_lists lists = { 0 };
	char event[16];
	wanted.filter.event = write_number(event, view->options.event);
	/* the function is chosen by its name, and its callers don't matter */
	wanted.filter.objects = wanted.filter.symbols = NULL;
	wanted.filter.frames_max = 0;
	wanted.names.verbose = false; /* the report prints the details */
	select_entry(view, &lists, &wanted.filter);
	setenv("LESS", "RS", 1); /* the pager stays even if everything fits on the screen */
	int status = tally_annotate_function(&wanted, &choice);
	free(lists.comm);
	return status;
}

/* Runs `tally annotate` in a child process, which uses the terminal until it ends. */
static void annotate(struct report_browser *view)
{
	struct tally_browser *browser = &view->browser;
	const struct tally_names *names = browser->browse.names;
	const struct tally_browse_line *line = tally_browse_current(&browser->browse);
	uint32_t function = UINT32_MAX;
	if (line)
		function = tally_browse_function(&browser->browse, line);
	if (function == UINT32_MAX || !has_code(names, function)) {
		snprintf(browser->message, sizeof(browser->message),
			 "code without a symbol and a file can't be annotated");
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
		_exit(run_annotate(view, function));
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

/* Does what a key requests. */
static int act(struct report_browser *view, enum tally_browser_request wish, bool *leave)
{
	switch (wish) {
	case TALLY_REQUEST_REPORT:
		return build(view);
	case TALLY_REQUEST_NEXT_EVENT:
	case TALLY_REQUEST_PREVIOUS_EVENT:
		if (!go_to_event(view, wish == TALLY_REQUEST_PREVIOUS_EVENT))
			return 0;
		return build(view);
	case TALLY_REQUEST_ANNOTATE:
		annotate(view);
		return 0;
	case TALLY_REQUEST_QUIT:
		*leave = true;
		return 0;
	case TALLY_REQUEST_FAIL:
		return -ENOMEM;
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
	tally_view_jit_hint_text(profile, TALLY_HINT_BRIEF, view.browser.message,
				 sizeof(view.browser.message));
	int result = build(&view);
	while (!result && !leave) {
		tally_browser_draw(&view.browser);
		result = act(&view, tally_browser_key(&view.browser, screen->ops->key(screen, -1)),
			     &leave);
	}
	tally_browse_release(&view.browser.browse);
	tally_report_release(&view.report);
	return result;
}
