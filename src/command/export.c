/* The command `export`: reads samples, and writes those of one event in a format for another tool.
 * The whole output is built in memory, so that an error leaves an existing file as it was. */
#include "base/buffer.h"
#include "base/gzip.h"
#include "command/command.h"
#include "command/output_file.h"
#include "export/export.h"
#include "profile/profile.h"
#include "view/view.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct request {
	struct tally_view_options view;
	const char *output, *event;
	const struct tally_export_format *format;
};

/* without the first separator */
static const char *const format_names = &(TALLY_EXPORT_LIST)[2];

static int take_format(void *taker, const struct tally_option *option, const char *value,
		       struct tally_error *err)
{
	const struct tally_export_format **out = &((struct request *)taker)->format;
	(void)option;
	for (*out = tally_export_formats; (*out)->name; ++*out)
		if (!strcmp((*out)->name, value))
			return 0;
	return tally_error_set(err, -EINVAL, "option --format: '%s' is none of %s", value,
			       format_names);
}

static const struct tally_option options[] = {
	{ TALLY_INCLUDE(tally_view_input_option, struct request, view) },
	{ 'f', "format", TALLY_ARGUMENT_REQUIRED, "FORMAT",
	  &(TALLY_EXPORT_LIST " (default: by -o's name)")[2], &(TALLY_EXPORT_CHOICES)[1],
	  TALLY_TAKE(take_format) },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE",
	  "write to FILE, compressed if its name ends in .gz;\n"
	  "- is standard output (profile and the format's ending)",
	  TALLY_TEXT(struct request, output) },
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENT", "export this event's samples (the first)",
	  TALLY_TEXT(struct request, event) },
	{ TALLY_INCLUDE(tally_view_task_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_filter_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_max_stack_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_idle_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_name_options, struct request, view) },
	{ TALLY_INCLUDE(tally_view_raw_addresses_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_full_names_option, struct request, view) },
	{ TALLY_INCLUDE(tally_view_no_inline_option, struct request, view) },
	TALLY_OPTIONS_END,
};

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);
	return length >= end_length && !strcmp(text + length - end_length, end);
}

/* Derives the format from a file's name: "x.pb.gz" and "x.pb" are pprof's, "x.json" is
 * ambiguous. */
static const struct tally_export_format *format_of(const char *path)
{
	for (const struct tally_export_format *format = tally_export_formats; path && format->name;
	     format++) {
		char plain[32];
		snprintf(plain, sizeof(plain), "%s", format->suffix);
		if (ends_in(plain, ".gz"))
			plain[strlen(plain) - 3] = '\0';
		if (strcmp(plain, ".json") &&
		    (ends_in(path, format->suffix) || ends_in(path, plain)))
			return format;
	}
	return NULL;
}

static int choose_event(const struct tally_samples *samples, const char *name, uint32_t *event,
			struct tally_error *err)
{
	size_t count;
	const struct tally_recorded_event *events = tally_perfdata_events(samples->recording->data,
									  &count);
	*event = samples->samples.items[0].event;
	for (size_t i = 0; !name && i < samples->samples.count; i++)
		if (samples->samples.items[i].event < *event)
			*event = samples->samples.items[i].event;
	if (!name)
		return 0;
	size_t found = tally_event_find(events, count, name);
	if (found == count)
		return tally_event_not_found(samples->recording->data, name, err);
	for (size_t i = 0; i < samples->samples.count; i++)
		if (samples->samples.items[i].event == found) {
			*event = (uint32_t)found;
			return 0;
		}
	return tally_error_set(err, -ENOENT, "no samples of %s", name);
}

/* Samples of idle CPUs, by the rule that all views have. */
static int leave_out_idle(const struct tally_command *command, const struct request *request,
			  struct tally_samples *samples, uint32_t event, struct tally_error *err)
{
	struct tally_left_out idle;
	uint64_t rest;
	if (!tally_view_leaves_out_idle(&request->view))
		return 0;
	if (tally_samples_leave_out_idle(samples, event, &idle, &rest) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	tally_view_say_idle(command->name, NULL, &idle, rest);
	return 0;
}

static int export_samples(const struct tally_command *command, const struct request *request,
			  struct tally_samples *samples, struct tally_error *err)
{
	const struct tally_export_format *format = request->format;
	struct tally_buffer plain = { .maximum = (size_t)1 << 36 },
			    packed = { .maximum = (size_t)1 << 36 };
	char named[64];
	uint32_t event;
	snprintf(named, sizeof(named), "profile%s", format->suffix);
	const char *path = request->output;
	if (!path)
		path = isatty(STDOUT_FILENO) ? named : "-";
	bool compress = ends_in(path, ".gz") || (!strcmp(path, "-") && format->compressed);
	int result = choose_event(samples, request->event, &event, err);
	if (result)
		goto out;
	result = leave_out_idle(command, request, samples, event, err);
	if (result)
		goto out;
	if (format->write(samples, event, &plain) < 0) {
		result = tally_error_set(err, -ENOMEM, "out of memory");
		goto out;
	}
	if (compress) {
		result = tally_gzip(tally_buffer_string(&plain), plain.length, &packed, err);
		if (result)
			goto out;
	}
	result = tally_output_write(path, compress ? &packed : &plain, err);
	if (!result && strcmp(path, "-") != 0)
		tally_say("tally export: wrote %s; open it with %s", path, format->opened);
out:
	tally_buffer_release(&plain);
	tally_buffer_release(&packed);
	return result;
}

static int read_and_export(const struct tally_command *command, const struct request *request,
			   struct tally_error *err)
{
	struct tally_view_progress progress;
	struct tally_samples_options samples_options = { .filter = request->view.filter,
							 .progress = tally_view_progress,
							 .context = &progress };
	struct tally_recording *recording;
	struct tally_samples *samples;
	const char *const inputs[] = { request->view.input, NULL };
	int result = tally_output_check(request->output, inputs, err);
	if (!result)
		result = tally_view_open(&request->view, &recording, err);
	if (result < 0)
		return result;
	tally_view_protect(recording);
	tally_view_progress_start(&progress);
	result = tally_samples_new(recording, &samples_options, &samples, err);
	tally_view_progress_end(&progress);
	if (result < 0)
		return result;
	result = export_samples(command, request, samples, err);
	tally_view_warn(command->name, recording);
	tally_samples_free(samples);
	return result;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct request request = { 0 };
	int status;
	if (!tally_recording_arguments(command, argc, argv, &request, &request.view.input, &status))
		return status;
	if (!request.format && !(request.format = format_of(request.output)))
		return tally_command_misuse(command, "name a format with --format: %s",
					    format_names);
	request.view.has_signed_sums = request.format->is_signed;
	tally_view_choose_input(command->name, &request.view);
	if (read_and_export(command, &request, &err) < 0)
		return tally_command_fail(command, &err);
	return TALLY_EXIT_OK;
}

const struct tally_command tally_command_export = {
	.name = "export",
	.summary = "a recording for pprof, Firefox Profiler, speedscope and Perfetto",
	.usage = "[options] [FILE]",
	.details =
		"pprof gets each distinct stack with the sum of its samples; the others get "
		"samples in time order.\n"
		"In chrome's format, consecutive samples of one function are drawn as one call, "
		"and samples of other\n"
		"events are marks.\n\n"
		"  tally export -f firefox -o profile.json.gz  for profiler.firefox.com\n"
		"  tally export -o a.pb.gz && go tool pprof -http :8080 a.pb.gz\n"
		"  tally export -o run.speedscope.json perf.data\n"
		"  tally export -o run.trace.json --comm node",
	.options = options,
	.run = run,
};
