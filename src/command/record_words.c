#include "command/record_request.h"

#include "abi/attr.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "counting/counting.h"
#include "session/program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void record_say(void *context, const char *line)
{
	const struct record_request *request = context;
	if (!request->quiet)
		fprintf(stderr, "%stally: %s\n", record_shows_progress(request) ? "\r\x1b[K" : "",
			line);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* Not with a command: progress would overwrite its output and prompts. */
bool record_shows_progress(const struct record_request *request)
{
	return !request->quiet && !request->target.command &&
	       tally_terminal_knows_escapes(STDERR_FILENO);
}

void record_show_progress(void *context, const struct tally_recorder_status *status)
{
	char size[TALLY_SIZE_TEXT];
	(void)context;
	tally_size_text(status->bytes, size);
	fprintf(stderr, "\r\x1b[Krecording: %.0f s, %s sample%s, %s", status->seconds,
		tally_number(status->samples), plural(status->samples), size);
	if (status->lost)
		fprintf(stderr, ", %s lost", tally_number(status->lost));
	fflush(stderr);
}

void record_say_notes(const struct record_request *request, const struct tally_recorder *recorder,
		      const struct tally_buffer *notes)
{
	const char *graph = recorder ? tally_recorder_call_graph_text(recorder) : NULL;
	if (request->quiet ||
	    (request->target.command && !tally_program_is_there(request->target.command[0])))
		return;
	if (request->default_event_note)
		fprintf(stderr, "tally: %s\n", request->default_event_note);
	if (graph)
		fprintf(stderr, "tally: %s\n", graph);
	if (request->lacks_wakers)
		fputs("tally: wakers are not recorded: this user may not sample tracepoints (root may)\n",
		      stderr);
	for (const char *line = tally_buffer_string(notes); *line; line += strcspn(line, "\n") + 1)
		fprintf(stderr, "tally: %.*s\n", (int)strcspn(line, "\n"), line);
}

/* Prints the likely reason why nothing was sampled. */
static void say_nothing_sampled(const struct record_request *request, double seconds)
{
	const struct tally_recorder_options *rate = &request->record;
	const struct tally_event *event = &request->events.items[0];
	bool is_clock = tally_attr_is_clock(&event->attr) || event->kind == TALLY_EVENT_HARDWARE;
	struct tally_provider *provider = request->provider;
	const char *uncounted = provider->ops->uncounted ? provider->ops->uncounted(provider)
							 : NULL;
	if (uncounted)
		fprintf(stderr, "hint: nothing was sampled: %s\n", uncounted);
	else if (request->off_cpu)
		fputs("hint: nothing was sampled: no task left a CPU; waits that began before the recording are not seen\n",
		      stderr);
	else if (rate->delay_s >= seconds)
		fprintf(stderr,
			"hint: nothing was sampled: it ended after %.2f s, and sampling was to start after %.2f s (-D)\n",
			seconds, rate->delay_s);
	else if (is_clock && !rate->period && !event->has_period && !event->has_frequency)
		fprintf(stderr,
			"hint: nothing was sampled: -F %.0f takes a sample each %.2g ms of CPU "
			"time; try a higher -F\n",
			rate->frequency, 1000 / rate->frequency);
	else if (rate->rate_given || event->has_period || event->has_frequency)
		fprintf(stderr,
			"hint: nothing was sampled: '%s' did not occur, or less often than the period; -c 1 records each\n",
			event->name);
	else
		fprintf(stderr,
			"hint: nothing was sampled: '%s' did not occur; 'tally stat' counts it\n",
			event->name);
}

/* Warns about incomplete stacks in one line, with the most common reason. */
static void say_incomplete(const struct tally_recorder_status *status)
{
	enum { WORTH_SAYING = 20 }; /* one in this many */
	uint64_t incomplete = status->stacks_cut + status->stacks_lost + status->stacks_deep;
	const char *why = "a lower rate (-F) or --call-graph dwarf,64512 copies more";
	if (incomplete <= status->stacks / WORTH_SAYING)
		return;
	if (status->stacks_lost * 2 > incomplete)
		why = "code without unwind rules keeps no frame pointers; its runtime may have an option for them";
	else if (status->stacks_deep * 2 > incomplete)
		why = "they exceed the 8,000 frames or 512 KiB that are kept of a stack";
	else if (status->stacks_ended * 2 > status->stacks_cut)
		why = "the kernel had no more to copy: exec replaced the program, or memory was never touched";
	fprintf(stderr, "tally record: warning: %.0f%% of the stacks are incomplete: %s\n",
		100 * (double)incomplete / (double)status->stacks, why);
}

static void say_warnings(const struct record_request *request,
			 const struct tally_recorder_status *status)
{
	if (status->lost)
		fprintf(stderr,
			"tally record: warning: %s record%s lost: use a larger ring (-m) or a lower rate (-F)\n",
			tally_number(status->lost), status->lost == 1 ? " was" : "s were");
	if (status->throttled)
		fprintf(stderr,
			"tally record: warning: the kernel throttled the sampling %s time%s; a lower rate (-F) avoids it\n",
			tally_number(status->throttled), plural(status->throttled));
	if (request->quiet)
		return;
	if (status->stacks_completed)
		fprintf(stderr,
			"tally: %s of %s stacks were longer than their copy; %s completed from process memory\n",
			tally_number(status->stacks_completed + status->stacks_cut),
			tally_number(status->stacks),
			status->stacks_cut ? tally_number(status->stacks_completed) : "all");
	say_incomplete(status);
}

/* Warns when samples miss much CPU time. A new task's clock starts at 0: tasks that live for less
 * than a period get no sample, others lose half a period on average. For ordinary programs, 91 % or
 * more of the time is covered. */
static void say_coverage(const struct tally_recorder *recorder)
{
	const double worth_saying_s = 0.1, enough = 0.8;
	double sampled_s, used_s;
	if (tally_recorder_coverage(recorder, &sampled_s, &used_s) && used_s >= worth_saying_s &&
	    sampled_s < enough * used_s)
		fprintf(stderr,
			"tally record: warning: the samples cover %.0f of %.0f ms of CPU time: use "
			"-a or a higher -F for short tasks\n",
			sampled_s * 1e3, used_s * 1e3);
}

void record_say_file(const struct record_request *request,
		     const struct tally_recorder_status *status, const char *name)
{
	char size[TALLY_SIZE_TEXT], line[4096 + 128];
	tally_size_text(status->bytes, size);
	snprintf(line, sizeof(line), "%s sample%s, %s in %s", tally_number(status->file_samples),
		 plural(status->file_samples), size, name);
	record_say((void *)(uintptr_t)request, line);
}

void record_say_result(const struct record_request *request, const struct tally_recorder *recorder,
		       const struct tally_recorder_status *status, double names_cpu_s)
{
	char size[TALLY_SIZE_TEXT];
	if (record_shows_progress(request))
		fputs("\r\x1b[K", stderr);
	if (!request->quiet) {
		tally_size_text(status->bytes, size);
		fprintf(stderr,
			"tally: %s sample%s in %.2f s, %s in %s; the recorder used %.3f s of CPU",
			tally_number(status->samples), plural(status->samples), status->seconds,
			size,
			request->pipe            ? "the pipe"
			: *request->named_output ? request->named_output
						 : request->output,
			status->own_cpu_s);
		if (status->samples)
			fprintf(stderr, " (%.1f us a sample)",
				status->own_cpu_s * 1e6 / (double)status->samples);
		if (names_cpu_s > 0)
			fprintf(stderr, ", %.3f s for the names", names_cpu_s);
		fputc('\n', stderr);
	}
	if (!status->samples && !request->quiet)
		say_nothing_sampled(request, status->seconds);
	say_warnings(request, status);
	if (!request->quiet)
		say_coverage(recorder);
}
