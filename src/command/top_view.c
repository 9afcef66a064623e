#include "command/top_view.h"

#include "base/number_text.h"
#include "base/terminal.h"
#include "output/fit_text.h"
#include "output/report_cells.h"
#include "report/jit_hint.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 100, TEXT_ROWS = 20 };

static const double FADES = 0.5; /* share of a sample's weight that remains one view later */

int top_take_sample(void *context, size_t event, const struct tally_record *sample)
{
	struct top_request *top = context;
	top->taken += event == top->options.event;
	return top->is_paused ? 0 : tally_live_sums_add(&top->sums, (uint32_t)event, sample);
}

void top_say(void *context, const char *line)
{
	struct top_request *top = context;
	if (top->stdio)
		fprintf(stderr, "tally: %s\n", line);
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
	tally_terminal_clean(top->request.events.items[top->options.event].name, event,
			     sizeof(event));
	tally_target_text(&top->request.target, target, sizeof(target));
	if (lost_now)
		snprintf(lost, sizeof(lost), ", %s lost", tally_number(lost_now));
	const struct tally_left_out *none = &top->report.idle;
	if (none->samples)
		snprintf(idle, sizeof(idle), ", and %.0f%% idle (--idle)",
			 100 * (double)none->period / (double)(none->period + top->report.period));
	uint64_t samples = top->stdio ? top->report.samples : top->taken;
	snprintf(out, size, "%s sample%s of %s in %.1f s%s%s, %s%s", tally_number(samples),
		 samples == 1 ? "" : "s", event, top->status.seconds - top->before.seconds, idle,
		 lost, target,
		 top->is_paused     ? ", paused"
		 : top->is_narrowed ? " (the system is not allowed)"
				    : "");
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
	struct tally_signal signal;
	bool asked = false;
	while (tally_signals_next(&top->signals, &signal))
		asked |= signal.number != SIGCHLD && !signal.was_ignored;
	return asked;
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

/* ---- text ---------------------------------------------------------------- */

static void print_row(const struct top_request *top, const struct tally_report_entry *entry,
		      const int *widths)
{
	const struct tally_browse *browse = &top->browser.browse;
	struct tally_buffer line = { 0 };
	char cell[TALLY_REPORT_CELL_BYTES];
	double whole = top->report.period ? (double)top->report.period : 1;
	if (top->options.children)
		tally_buffer_printf(&line, "%7.2f%%", 100.0 * (double)entry->total / whole);
	tally_buffer_printf(&line, "%7.2f%%  ", 100.0 * (double)entry->self / whole);
	for (unsigned i = 0; i < browse->column_count; i++) {
		bool last = i + 1 == browse->column_count;
		tally_report_cell(&top->names, entry, browse->columns[i].key, cell, sizeof(cell));
		int used = tally_fit_text(&line, cell, last ? 0 : widths[i],
					  strcmp(nl_langinfo(CODESET), "UTF-8") != 0);
		tally_buffer_printf(&line, "%*s", last ? 0 : widths[i] + 2 - used, "");
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
		       tally_sort_key_words(browse->columns[i].key)->title);
	}
	printf("\n");
	for (size_t i = 0; i < top->report.entries.count; i++)
		print_row(top, &top->report.entries.items[i], widths);
	if (!top->report.entries.count)
		printf("  nothing was sampled\n");
	printf("\n");
	fflush(stdout);
}

/* ---- the loop ------------------------------------------------------------ */

struct loop {
	double next, end; /* seconds; end 0: none */
	unsigned long long views;
	bool leave;
};

static int hint(struct top_request *top)
{
	struct tally_buffer text = { 0 };
	char clean[TALLY_BROWSER_TEXT_BYTES];
	int result = top->is_hinted ? 0 : tally_live_jit_hint(&top->sums, &text);
	if (!result && text.length) {
		tally_terminal_clean(tally_buffer_string(&text), clean, sizeof(clean));
		clean[strcspn(clean, "\n")] = '\0';
		top->is_hinted = true;
		if (top->stdio)
			fprintf(stderr, "hint: %s\n", clean);
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
	for (uint32_t event = 0; top->stdio && !result && event < top->request.events.count;
	     event++) {
		top->options.event = event;
		result = build(top);
		if (!result)
			print_view(top);
	}
	if (!result)
		result = hint(top);
	top->browser.event_number = top->options.event + 1;
	top->browser.event_count = (unsigned)top->request.events.count;
	if (!top->is_paused)
		describe(top, top->browser.title, sizeof(top->browser.title));
	if (!result && !top->is_paused)
		result = tally_live_sums_decay(&top->sums, top->stdio || top->forgets ? 0 : FADES);
	top->before = top->status;
	top->taken = 0;
	loop->next += top->delay_s;
	if (loop->next < now_s()) /* skip views that were missed */
		loop->next = now_s() + top->delay_s;
	loop->leave |= top->iterations && ++loop->views >= top->iterations;
	return result;
}

static int grant(struct top_request *top, enum tally_browser_wish wish, struct loop *loop)
{
	struct tally_browser *browser = &top->browser;
	switch (wish) {
	case TALLY_WISH_REPORT: return build(top);
	case TALLY_WISH_NEXT_EVENT:
	case TALLY_WISH_PREVIOUS_EVENT: {
		uint32_t count = (uint32_t)top->request.events.count;
		top->options.event = (top->options.event +
				      (wish == TALLY_WISH_NEXT_EVENT ? 1 : count - 1)) %
				     count;
		return build(top);
	}
	case TALLY_WISH_PAUSE:
		top->is_paused = !top->is_paused;
		snprintf(browser->message, sizeof(browser->message), "%s",
			 top->is_paused ? "paused; p continues" : "sampling continues");
		return 0;
	case TALLY_WISH_RESET: {
		int result = tally_live_sums_decay(&top->sums, 0);
		return result ? result : build(top);
	}
	case TALLY_WISH_QUIT: loop->leave = true; return 0;
	case TALLY_WISH_FAIL: return -ENOMEM;
	default: return 0;
	}
}

/* Waits for a key, at most until the rings must be drained. */
static int wait_a_little(struct top_request *top, struct loop *loop)
{
	double left_ms = (loop->next - now_s()) * 1000;
	int timeout_ms = left_ms < 1 ? 1 : left_ms < LOOK_MS ? (int)left_ms : LOOK_MS;
	if (top->stdio) {
		struct pollfd signals = { .fd = top->signals.fd, .events = POLLIN };
		poll(&signals, 1, timeout_ms);
		return 0;
	}
	struct tally_screen *screen = top->browser.screen;
	tally_browser_draw(&top->browser);
	return grant(top, tally_browser_key(&top->browser, screen->ops->key(screen, timeout_ms)),
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
		int looked = tally_recorder_look(top->recorder, &top->status, err);
		if (looked < 0)
			return looked;
		double now = now_s();
		bool is_over = (loop.end > 0 && now >= loop.end) || is_asked_to_end(top) ||
			       are_gone(&top->request.target);
		if (now >= loop.next || (is_over && top->stdio))
			result = show_view(top, &loop);
		loop.leave |= is_over;
		if (!result && !loop.leave)
			result = wait_a_little(top, &loop);
	}
	return result < 0 ? tally_error_set(err, result, "out of memory") : 0;
}

static void set_up(struct top_request *top)
{
	tally_names_init(&top->names, tally_recorder_tasks(top->recorder));
	tally_names_use_cache(&top->names);
	tally_names_use_sources(&top->names, &top->sources);
	top->sums = (struct tally_live_sums){ .names = &top->names, .with_stacks = top->stacks,
					       .frames_max = top->frames_max };
	top->options = (struct tally_report_options){ .by_self = true,
						      .percent_min = top->percent_min,
						      .leaves_out_idle = !top->shows_idle,
						      .limit = top->limit   ? top->limit
							       : top->stdio ? TEXT_ROWS
									    : 0,
						      .children = top->stacks && !top->no_totals,
						      .tree = top->stacks && !top->stdio
								      ? TALLY_TREE_CALLEE
								      : TALLY_TREE_NONE,
						      .tree_percent_min = top->percent_min };
	memcpy(top->options.by, top->by, sizeof(top->by));
	top->browser = (struct tally_browser){ .options = &top->options,
					       .live = true,
					       .has_threads = true,
					       .has_stacks = top->stacks,
					       .title = "sampling ..." };
	tally_browse_init(&top->browser.browse, &top->names);
}

int top_run(struct top_request *top, struct tally_error *err)
{
	struct tally_screen *screen = NULL;
	set_up(top);
	if (!top->stdio && tally_curses_screen_open(&screen, err) < 0) {
		if (top->interface == INTERFACE_BROWSER)
			return err->code;
		fprintf(stderr, "tally top: %s\nhint: %s\n", err->message, err->hint);
		top->stdio = true;
		top->options.limit = top->limit ? top->limit : TEXT_ROWS;
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
