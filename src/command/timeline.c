/* The command `timeline`: reads the activity of CPUs and tasks from a recording, and writes it as
 * text or as trace events. */
#include "base/buffer.h"
#include "base/number_text.h"
#include "base/text.h"
#include "command/command.h"
#include "command/output_file.h"
#include "output/output.h"
#include "output/output_text.h"
#include "recording/recording.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH_IN_FILES = 120, TASKS_DEFAULT = 20 };

struct request {
	struct tally_view_options from;
	struct tally_timeline_view view;
	const char *output;
	bool no_pager;
};

static int take_rows(void *taker, const struct tally_option *option, const char *value,
		     struct tally_error *err)
{
	struct tally_timeline_view *view = &((struct request *)taker)->view;
	(void)option;
	if (strcmp(value, "cpu") && strcmp(value, "task") && strcmp(value, "both"))
		return tally_error_set(err, -EINVAL, "option --by: '%s' is none of cpu, task, both",
				       value);
	view->cpus_wanted = strcmp(value, "task") != 0;
	view->tasks_wanted = strcmp(value, "cpu") != 0;
	return 0;
}

static int take_width(void *taker, const struct tally_option *option, const char *value,
		      struct tally_error *err)
{
	struct request *request = taker;
	unsigned long long number = 0;
	int result = tally_option_u64("--width", value, 60, 10000, &number, err);
	(void)option;
	request->view.columns = (unsigned)number;
	return result;
}

static const struct tally_option options[] = {
	{ TALLY_INCLUDE(tally_view_input_option, struct request, from) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE: trace events for ui.perfetto.dev and chrome://tracing\n"
	  "if its name ends in .json, otherwise text",
	  TALLY_TEXT(struct request, output) },
	{ 0, "by", TALLY_ARGUMENT_REQUIRED, "cpu|task|both", "which rows (both)",
	  TALLY_TAKE(take_rows) },
	{ 'n', "limit", TALLY_ARGUMENT_REQUIRED, "N",
	  "at most N tasks: those that ran longest (20)",
	  TALLY_NUMBER(struct request, view.tasks, 1, 1000000) },
	{ 'w', "width", TALLY_ARGUMENT_REQUIRED, "COLUMNS", "width of the text (the terminal's)",
	  TALLY_TAKE(take_width) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT", "only this event's samples",
	  TALLY_TEXT(struct request, from.filter.event) },
	{ TALLY_INCLUDE(tally_view_task_options, struct request, from) },
	{ TALLY_INCLUDE(tally_view_filter_options, struct request, from) },
	{ 0, "stdio", TALLY_ARGUMENT_NONE, NULL, "no pager", TALLY_SET(struct request, no_pager) },
	TALLY_OPTIONS_END,
};

static void describe(void *context, const struct tally_recorded_event *event, size_t index,
		     const struct tally_sample *sample, struct tally_buffer *out)
{
	tally_event_text_put(context, event, index, sample, out);
}

static const char *const endings[] = { ".json", NULL };

static bool is_json(const char *path)
{
	return tally_output_ends_in(path, endings);
}

static int show(struct request *request, const struct tally_activity *activity,
		struct tally_error *err)
{
	struct tally_buffer out = { .maximum = (size_t)1 << 36 };
	char size[TALLY_SIZE_TEXT];
	struct tally_pager pager = { 0 };
	struct tally_timeline_view *view = &request->view;
	int result;
	if (!request->output)
		tally_pager_start(&pager, !request->no_pager);
	if (!view->columns)
		view->columns = pager.columns;
	if (!view->columns)
		view->columns = WIDTH_IN_FILES;
	view->colours = pager.colours;
	view->ascii = !tally_terminal_is_utf8();
	if (is_json(request->output))
		result = tally_timeline_trace(activity, &out);
	else
		result = tally_timeline_text(activity, view, &out);
	if (result < 0)
		result = tally_error_set(err, -ENOMEM, "out of memory");
	else if (request->output)
		result = tally_output_write(request->output, &out, err);
	else
		fwrite(tally_buffer_string(&out), 1, out.length, stdout);
	tally_pager_finish(&pager);
	if (!result && request->output && strcmp(request->output, "-"))
		tally_say("tally timeline: wrote %s (%s)%s", request->output,
			  tally_size_text(out.length, size),
			  is_json(request->output) ? "; open it at ui.perfetto.dev" : "");
	tally_buffer_release(&out);
	return result;
}

static int read_and_show(const struct tally_command *command, struct request *request,
			 struct tally_error *err)
{
	struct tally_view_progress progress;
	struct tally_recording *recording;
	struct tally_activity *activity;
	const char *const inputs[] = { request->from.input, NULL };
	int result = tally_output_check(request->output, inputs, err);
	if (result < 0)
		return result;
	result = tally_view_open(&request->from, &recording, err);
	if (result < 0)
		return result;
	tally_view_protect(recording);
	struct tally_event_text trace = { .recording = recording };
	struct tally_activity_options wanted = {
		.filter = request->from.filter,
		.progress = tally_view_progress,
		.progress_context = &progress,
		.describe = is_json(request->output) ? describe : NULL,
		.context = &trace,
	};
	tally_view_progress_start(&progress);
	result = tally_activity_new(recording, &wanted, &activity, err);
	tally_view_progress_end(&progress);
	tally_event_text_release(&trace);
	if (result < 0)
		return result;
	result = show(request, activity, err);
	if (!result && activity->source == TALLY_ACTIVITY_SAMPLES && activity->idle_samples)
		tally_say("tally timeline: %s sample%s of the idle task %s not drawn",
			  tally_number(activity->idle_samples),
			  tally_plural(activity->idle_samples),
			  activity->idle_samples == 1 ? "is" : "are");
	/* a timeline shows neither stacks nor functions: no warnings about them */
	const struct tally_recording_counts all = recording->counts;
	recording->counts = (struct tally_recording_counts){ .records = all.records,
							     .samples = all.samples,
							     .lost = all.lost,
							     .throttled = all.throttled,
							     .undecodable = all.undecodable,
							     .trace = all.trace,
							     .unknown = all.unknown,
							     .unknown_ids = all.unknown_ids };
	tally_view_warn(command->name, recording);
	tally_activity_free(activity);
	return result;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = {
		.from = { .names_nothing = true },
		.view = { .cpus_wanted = true, .tasks_wanted = true, .tasks = TASKS_DEFAULT }
	};
	int status;
	if (!tally_recording_arguments(command, argc, argv, &request, &request.from.input, &status))
		return status;
	if (tally_output_is_other_kind(request.output, endings))
		return tally_command_misuse(
			command, "'%s': a timeline is a .json file (trace events), or text (.txt)",
			request.output);
	tally_view_choose_input(command->name, &request.from);
	if (read_and_show(command, &request, &err) < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_command_timeline = {
	.name = "timeline",
	.summary = "what ran and what happened over time, by CPU and by task",
	.usage = "[options] [FILE]",
	.details =
		"Each row is a strip of time; a cell's height shows how much of its time was used. "
		" Running times come from\n"
		"context switches (record --switch-events, or -e sched:sched_switch -a), or "
		"without them from samples.\n"
		"Other events have a row of their own below their task.\n\n"
		"  tally record --switch-events -e cpu-clock,page-faults -- make -j2\n"
		"  tally timeline\n"
		"  tally record -a -e sched:sched_switch -e 'block:*' -- sleep 1\n"
		"  tally timeline --by cpu\n"
		"  tally timeline -o trace.json          for ui.perfetto.dev",
	.options = options,
	.run = run,
};
