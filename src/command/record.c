/* tally record: makes one recording, from open events to a closed file, and prints its result. */
#include "abi/abi.h"
#include "base/environment.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "base/text.h"
#include "command/news.h"
#include "command/perf_mode.h"
#include "command/record_request.h"
#include "machine/machine.h"
#include "session/session.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- messages on standard error ------------------------------------------- */

/* Not with a command: progress would overwrite its output and prompts. */
static bool shows_progress(const struct record_request *request)
{
	return !request->quiet && !request->is_perf && !request->target.command &&
	       tally_terminal_knows_escapes(STDERR_FILENO);
}

static void say_behind_progress(const struct record_request *request, const char *line)
{
	if (shows_progress(request))
		fputs("\r\x1b[K", stderr);
	tally_say("tally: %s", line);
}

/* Callback of struct tally_recorder_options; `context` is the request. */
static void say(void *context, const char *line)
{
	const struct record_request *request = context;
	if (!request->quiet)
		say_behind_progress(request, line);
}

static void show_progress(void *context, const struct tally_recorder_status *status)
{
	char size[TALLY_SIZE_TEXT];
	(void)context;
	tally_size_text(status->bytes, size);
	fprintf(stderr, "\r\x1b[Krecording: %.0f s, %s sample%s, %s", status->seconds,
		tally_number(status->samples), tally_plural(status->samples), size);
	if (status->lost)
		fprintf(stderr, ", %s lost", tally_number(status->lost));
	fflush(stderr);
}

void record_say_notes(const struct record_request *request, const struct tally_recorder *recorder,
		      const struct tally_buffer *notes)
{
	const char *graph = NULL, *path = tally_environment_of_caller("PATH");
	char choice[256];
	char **words = request->target.command;
	if (recorder)
		graph = tally_recorder_call_graph_text(recorder);
	if (request->quiet || request->is_perf ||
	    (words && !tally_program_is_there(path, words[0])))
		return;
	/* A fact about the machine is told once; that an event is an estimate, always. */
	bool is_fact = !request->provider_ops->default_event;
	if (provider_choice_note(&request->choice, "sampling", choice, sizeof(choice)))
		tally_say("tally: %s", choice);
	if (request->default_event_note &&
	    (!is_fact || request->is_verbose || tally_is_news(TALLY_NEWS_DEFAULT_EVENT)))
		tally_say("tally: %s", request->default_event_note);
	if (graph)
		tally_say("tally: %s", graph);
	if (request->lacks_wakers)
		fputs("tally: wakers are not recorded: this user may not sample tracepoints (root "
		      "may)\n",
		      stderr);
	for (const char *line = tally_buffer_string(notes); *line; line += strcspn(line, "\n") + 1)
		tally_say("tally: %.*s", (int)strcspn(line, "\n"), line);
}

/* One recording, from open events to a closed file. */
struct run {
	const struct tally_command *command;
	struct record_request *request;
	struct tally_signals signals;
	struct tally_spawn spawn;
	struct tally_recorder *recorder;
	struct tally_control control;
	bool began; /* the output has useful content */
};

/* Returns a rate that takes some ten samples of that much CPU time; 0: the kernel allows none. */
static double sufficient_rate(double used_s)
{
	const double rates[] = { 1999, 4999, 9999, 19999, 49999 }, samples = 10;
	int limit = tally_sysctl_read("kernel/perf_event_max_sample_rate");
	for (unsigned i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		if (rates[i] * used_s >= samples && rates[i] <= limit)
			return rates[i];
	return 0;
}

/* A clock took no sample: the target used less CPU time than a period. */
static void say_used_too_little(const struct run *run, double seconds)
{
	char name[TALLY_PROC_COMM_MAX];
	double frequency = run->request->record.frequency, sampled_s, used_s;
	pid_t survivor = tally_recorder_survivor(run->recorder, name);
	bool is_known = tally_recorder_coverage(run->recorder, &sampled_s, &used_s);
	double rate = 0;
	if (is_known)
		rate = sufficient_rate(used_s);
	if (survivor)
		tally_say(
			"hint: nothing was sampled: the command ended after %.2f s; '%s', which it "
			"started, goes on: record it with -p %d",
			seconds, name, (int)survivor);
	else if (rate > frequency)
		tally_say(
			"hint: nothing was sampled: the command used %.2g ms of CPU, and -F %.0f takes "
			"a sample each %.2g ms; try -F %.0f",
			used_s * 1e3, frequency, 1e3 / frequency, rate);
	else
		tally_say(
			"hint: nothing was sampled: -F %.0f takes a sample each %.2g ms of CPU time, "
			"and less was used",
			frequency, 1e3 / frequency);
}

/* Prints the likely reason why nothing was sampled. */
static void say_nothing_sampled(const struct run *run, double seconds)
{
	const struct record_request *request = run->request;
	const struct tally_recorder_options *rate = &request->record;
	const struct tally_event *event = &request->events.items[0];
	bool is_clock = tally_attr_is_clock(&event->attr) || event->kind == TALLY_EVENT_HARDWARE;
	struct tally_provider *provider = request->provider;
	const char *uncounted = NULL;
	if (provider->ops->uncounted)
		uncounted = provider->ops->uncounted(provider);
	if (uncounted)
		tally_say("hint: nothing was sampled: %s", uncounted);
	else if (request->off_cpu)
		fputs("hint: nothing was sampled: no task left a CPU; waits that began before the "
		      "recording are not seen\n",
		      stderr);
	else if (rate->delay_s >= seconds)
		tally_say("hint: nothing was sampled: it ended after %.2f s, and sampling was to "
			  "start after %.2f s (-D)",
			  seconds, rate->delay_s);
	else if (is_clock && !rate->period && !event->has_period && !event->has_frequency)
		say_used_too_little(run, seconds);
	else if (event->filter)
		tally_say(
			"hint: nothing was sampled: '%s' did not occur, or no hit passed --filter",
			event->name);
	else if (rate->rate_given || event->has_period || event->has_frequency)
		tally_say("hint: nothing was sampled: '%s' did not occur, or less often than the "
			  "period; -c 1 records each",
			  event->name);
	else
		tally_say("hint: nothing was sampled: '%s' did not occur; 'tally stat' counts it",
			  event->name);
}

/* Warns about incomplete stacks in one line, with the most common reason. */
static void say_incomplete(const struct tally_recorder *recorder,
			   const struct tally_recorder_status *status)
{
	enum { WORTH_SAYING = 20 /* one in this many */, COPY_BYTES_MAX = 64512 };
	uint64_t incomplete = status->stacks_cut + status->stacks_lost + status->stacks_deep;
	const char *why = "they exceed the largest copies (64,512 bytes), and change before the "
			  "rest is read";
	if (tally_recorder_copy_bytes(recorder) < COPY_BYTES_MAX)
		why = "a lower rate (-F) or --call-graph dwarf,64512 copies more";
	if (incomplete <= status->stacks / WORTH_SAYING)
		return;
	if (status->stacks_lost * 2 > incomplete)
		why = "nothing leads from code without unwind rules to its callers";
	else if (status->stacks_deep * 2 > incomplete)
		why = "they exceed the 8,000 frames or 512 KiB that are kept of a stack";
	else if (status->stacks_ended * 2 > status->stacks_cut)
		why = "the kernel had no more to copy: exec replaced the program, or memory was "
		      "never touched";
	tally_say("tally record: warning: %.0f%% of the stacks are incomplete: %s",
		  100 * (double)incomplete / (double)status->stacks, why);
}

static void say_warnings(const struct record_request *request,
			 const struct tally_recorder *recorder,
			 const struct tally_recorder_status *status)
{
	if (status->lost)
		tally_say("tally record: warning: %s record%s lost: use a larger ring (-m) or a "
			  "lower rate (-F)",
			  tally_number(status->lost), status->lost == 1 ? " was" : "s were");
	if (status->throttled)
		tally_say("tally record: warning: the kernel throttled the sampling %s time%s; a "
			  "lower rate (-F) avoids it",
			  tally_number(status->throttled), tally_plural(status->throttled));
	if (request->quiet)
		return;
	if (status->stacks_completed && request->is_verbose)
		tally_say(
			"tally: the kernel copied only a part of %s of %s stacks; tally read the rest of "
			"%s from process memory",
			tally_number(status->stacks_completed + status->stacks_cut),
			tally_number(status->stacks),
			status->stacks_cut ? tally_number(status->stacks_completed) : "all");
	say_incomplete(recorder, status);
}

/* Warns when samples miss much CPU time. A new task's clock starts at 0: tasks that live for less
 * than a period get no sample, others lose half a period on average. For ordinary programs, 91 % or
 * more of the time is covered. */
static void say_coverage(const struct record_request *request,
			 const struct tally_recorder *recorder)
{
	static const char advice[] = "use -a or a higher -F for short tasks";
	const char *missed = request->provider_ops->missed_note;
	const double worth_saying_s = 0.1, enough = 0.8;
	double sampled_s, used_s;
	if (tally_recorder_coverage(recorder, &sampled_s, &used_s) && used_s >= worth_saying_s &&
	    sampled_s < enough * used_s)
		tally_say("tally record: warning: the samples cover %.0f of %.0f ms of CPU time: "
			  "%s",
			  sampled_s * 1e3, used_s * 1e3, tally_text_or(missed, advice));
}

void record_say_file(const struct record_request *request,
		     const struct tally_recorder_status *status, const char *name)
{
	char size[TALLY_SIZE_TEXT], line[4096 + 128];
	if (request->is_perf && !request->quiet) {
		tally_say("[ perf record: dump data: Woken up 1 times ]");
		tally_say("[ perf record: Dump %s ]", name);
	}
	if (request->is_perf)
		return;
	tally_size_text(status->bytes, size);
	snprintf(line, sizeof(line), "%s sample%s, %s in %s", tally_number(status->file_samples),
		 tally_plural(status->file_samples), size, name);
	say((void *)(uintptr_t)request, line);
}

/* perf's last lines, in MiB; programs look for them.  tally counts no wakeups. */
static void say_perfs_result(const struct record_request *request,
			     const struct tally_recorder_status *status)
{
	char samples[48] = "";
	if (request->quiet)
		return;
	if (status->samples)
		snprintf(samples, sizeof(samples), " (%llu samples)",
			 (unsigned long long)status->samples);
	fprintf(stderr, "[ perf record: Woken up 1 times to write data ]\n");
	tally_say("[ perf record: Captured and wrote %.3f MB %s%s ]",
		  (double)status->bytes / 1024 / 1024,
		  request->pipe ? "-" : record_output_path(request), samples);
}

static void say_result(const struct run *run, const struct tally_recorder_status *status,
		       double names_cpu_s)
{
	const struct record_request *request = run->request;
	char size[TALLY_SIZE_TEXT];
	if (shows_progress(request))
		fputs("\r\x1b[K", stderr);
	if (!request->quiet) {
		const char *file = record_output_path(request);
		tally_size_text(status->bytes, size);
		char each[48] = "", names[48] = "";
		if (status->samples)
			snprintf(each, sizeof(each), " (%.1f us a sample)",
				 status->own_cpu_s * 1e6 / (double)status->samples);
		if (names_cpu_s > 0)
			snprintf(names, sizeof(names), ", %.3f s for the names", names_cpu_s);
		tally_say(
			"tally: %s sample%s in %.2f s, %s in %s; the recorder used %.3f s of CPU%s%s",
			tally_number(status->samples), tally_plural(status->samples), status->seconds,
			size, request->pipe ? "the pipe" : file, status->own_cpu_s, each, names);
	}
	if (!status->samples && !request->quiet)
		say_nothing_sampled(run, status->seconds);
	say_warnings(request, run->recorder, status);
	size_t late = tally_target_late_count(&request->target);
	if (late)
		fprintf(stderr,
			"tally record: warning: %zu process%s entered the container later, not "
			"recorded: see -a -G\n",
			late, late == 1 ? "" : "es");
	if (!request->quiet)
		say_coverage(run->request, run->recorder);
}

/* --- the recording -------------------------------------------------------- */

enum { RECORDER_NICE = -15 };

static void say_notes_of_provider(const struct run *run, int signal)
{
	struct tally_provider *provider = run->request->provider;
	struct tally_arena arena = TALLY_ARENA_INIT;
	const char *notes[8];
	size_t count = 0;
	if (provider->ops->notes)
		count = provider->ops->notes(provider, signal, &arena, notes, 8);
	for (size_t i = 0; i < count; i++)
		tally_say("tally record: warning: %s", notes[i]);
	tally_arena_release(&arena);
}

/* Waits for the command, which may run on after the recording is complete. */
static int await_command(struct run *run, enum tally_recorder_end end)
{
	int status, ended = tally_recorder_wait(run->recorder, &run->signals, end);
	bool has_ended = tally_recorder_command_ended(run->recorder, &status);
	int signal = 0;
	if (has_ended && WIFSIGNALED(status))
		signal = WTERMSIG(status);
	say_notes_of_provider(run, signal);
	if (has_ended) {
		/* Reaching a requested time limit is not a failure of the command, as with stat. */
		bool stopped_by_us = end == TALLY_RECORDER_END_DURATION && WIFSIGNALED(status) &&
				     WTERMSIG(status) == SIGTERM;
		if (WIFSIGNALED(status) && end == TALLY_RECORDER_END_COMMAND &&
		    !run->request->quiet)
			tally_say("tally: the command was ended by signal %d (%s)",
				  WTERMSIG(status), strsignal(WTERMSIG(status)));
		if (stopped_by_us)
			return TALLY_EXIT_OK;
		return tally_spawn_exit_status(status);
	}
	if (ended == -EINTR) {
		fprintf(stderr, "tally: the command is still running\n");
		return 128 + SIGINT;
	}
	return TALLY_EXIT_OK;
}

/* Prints the error, before the figures of the part that is kept. */
static void say_output_failed(const struct run *run, const struct tally_error *err)
{
	int ignored;
	tally_command_fail(run->command, err);
	if (!run->request->pipe)
		tally_say("hint: what was written so far is readable in %s",
			  record_output_path(run->request));
	if (run->spawn.pid > 0 && !tally_recorder_command_ended(run->recorder, &ignored))
		tally_say("tally: '%s' continues unrecorded", run->request->target.command[0]);
}

/* Gives the last file its name, and waits until all is on disk.  Prints errors. */
static bool keep(const struct run *run)
{
	struct tally_error err = TALLY_ERROR_NONE;
	bool is_named = !run->request->wants_time_in_name ||
			!(record_output_name(run->request, &err) < 0);
	if (!is_named)
		tally_command_fail(run->command, &err);
	bool is_safe = !(record_output_sync(run->request, &err) < 0);
	if (!is_safe)
		tally_command_fail(run->command, &err);
	return is_named && is_safe;
}

static int finish(struct run *run, enum tally_recorder_end end, const struct tally_error *run_err)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_recorder_status status = { 0 };
	int finished = tally_recorder_finish(run->recorder, &status, &err);
	/* A signal that came while the rest was written was meant for the recording as well. */
	bool was_signalled = tally_recorder_watch(run->recorder, &run->signals, -1, 0) < 0 ||
			     end == TALLY_RECORDER_END_SIGNAL;
	bool output_failed = end == TALLY_RECORDER_END_OUTPUT || finished < 0;
	bool failed = output_failed;
	double names_cpu_s = 0;
	char hint[512] = "";
	if (!output_failed)
		failed = record_add_names(run->request, run->recorder, &run->signals,
					  run->request->output_fd, was_signalled, &status, hint,
					  sizeof(hint), &names_cpu_s) < 0;
	if (output_failed)
		say_output_failed(run, end == TALLY_RECORDER_END_OUTPUT ? run_err : &err);
	failed |= !keep(run);
	if (run->request->is_perf) {
		say_perfs_result(run->request, &status);
		say_warnings(run->request, run->recorder, &status);
	} else {
		say_result(run, &status, names_cpu_s);
	}
	if (*hint && !run->request->quiet)
		tally_say("%s", hint);
	int exit_status = await_command(run, end);
	if (failed)
		return TALLY_EXIT_FAILURE;
	return exit_status;
}

static int record_into(struct run *run, int fd)
{
	struct record_request *request = run->request;
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer notes = { 0 };
	enum tally_recorder_end end;
	int result = tally_recorder_new(
		request->provider, &request->events, &request->target, &request->record, fd,
		request->pipe, run->spawn.pid ? &run->spawn : NULL, &notes, &run->recorder, &err);
	if (!(result < 0))
		record_say_notes(request, run->recorder, &notes);
	tally_buffer_release(&notes);
	if (result < 0)
		return tally_command_fail(run->command, &err);
	result = tally_recorder_run(run->recorder, &run->signals,
				    shows_progress(request) ? show_progress : NULL, NULL, &end,
				    &err);
	if (result < 0) {
		tally_command_fail(run->command, &err);
		if (request->target.command)
			return tally_spawn_failure_status(result);
		return TALLY_EXIT_FAILURE;
	}
	run->began = true;
	return finish(run, end, &err);
}

static int next_output(void *context, const struct tally_recorder_status *status, int *fd,
		       struct tally_error *err)
{
	return record_output_next(context, status, fd, err);
}

/* Prepares signals and --control, which change the recording while it runs. */
static int prepare_control(struct run *run, struct tally_error *err)
{
	struct record_request *request = run->request;
	struct tally_recorder_options *options = &request->record;
	const struct tally_recorder_rotation *next = &options->next_file;
	options->context = request;
	options->say = say;
	options->switch_events = &request->switch_events;
	if (options->overwrite || next->is_wanted)
		options->next_output = next_output;
	options->keeps_excerpt = !request->no_pack;
	int result = 0;
	if (request->control)
		result = tally_control_open(&run->control, request->control, err);
	if (!result && request->control)
		options->control = &run->control;
	return result;
}

/* Several files, or a time in the name, need an output with a name. */
static int check_files(const struct record_request *request, struct tally_error *err)
{
	const struct tally_recorder_options *options = &request->record;
	struct stat there;
	bool is_file = !request->pipe && !fstat(request->output_fd, &there) &&
		       S_ISREG(there.st_mode);
	const char *what = "--switch-output and --timestamp-filename";
	if (options->overwrite)
		what = "snapshots";
	if (!is_file &&
	    (options->overwrite || options->next_file.is_wanted || request->wants_time_in_name))
		return tally_error_set(err, -EINVAL, "%s need a file, not %s", what,
				       request->pipe ? "a pipe" : request->output);
	return 0;
}

static int go_first(const struct record_request *request, struct tally_error *err)
{
	const struct sched_param priority = { .sched_priority = request->realtime };
	if (!request->realtime || !sched_setscheduler(0, SCHED_FIFO, &priority))
		return 0;
	tally_error_set(err, -errno, "-r %d: the recorder can't get that priority: %s",
			request->realtime, tally_errno_text(errno));
	tally_error_hint(err,
			 "run as root or with CAP_SYS_NICE; without -r it gets priority 1 if "
			 "permitted");
	return err->code;
}

static int record(const struct tally_command *command, struct record_request *request)
{
	struct run run = { .command = command, .request = request, .spawn = TALLY_SPAWN_INIT,
			   .control = TALLY_CONTROL_INIT };
	struct tally_error err = TALLY_ERROR_NONE;
	char **argv = request->target.command;
	struct tally_provider *provider = request->provider;
	if (tally_target_resolve(&request->target, &err) < 0 ||
	    tally_signals_open(&run.signals, &err) < 0)
		return tally_command_fail(command, &err);
	if (prepare_control(&run, &err) < 0) {
		tally_signals_release(&run.signals);
		return tally_command_fail(command, &err);
	}
	int started = 0, fd = -1, status = TALLY_EXIT_FAILURE;
	if (argv)
		started = tally_spawn_command(provider, argv, &argv, &err);
	if (started >= 0)
		fd = record_output_open(request, &run.signals.before, &err);
	request->output_fd = fd;
	if (fd < 0 || check_files(request, &err) < 0 ||
	    (argv && tally_spawn_prepare(&run.spawn, provider, argv, &run.signals.before,
					 &err) < 0)) {
		tally_command_fail(command, &err);
		if (started < 0)
			status = tally_spawn_failure_status(started);
	} else {
		/* After the fork, so that the command keeps its own priorities. While the rings are
		 * drained the recorder has a higher priority (machine/machine.h); this one is for
		 * naming, while other programs run. */
		signal(SIGPIPE, SIG_IGN);
		setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
		if (go_first(request, &err) < 0)
			status = tally_command_fail(command, &err);
		else
			status = record_into(&run, fd);
	}
	tally_spawn_release(&run.spawn);
	record_output_close(request, run.began);
	tally_control_release(&run.control);
	tally_recorder_close_apart(run.recorder);
	tally_recorder_free(run.recorder);
	tally_signals_release(&run.signals);
	return status;
}

/* perf's defaults.  Readers of perf.data, other than perf, know neither compressed records nor names
 * in the file. */
static void begin_as_perf(struct record_request *request)
{
	request->is_perf = true;
	request->no_pack = true;
	request->output = NULL; /* follows from standard output */
	request->record.frequency = RECORD_PERF_HZ;
	request->record.compression_level = 0;
	request->record.call_graph = TALLY_CALL_GRAPH_NONE;
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct record_request request = {
		.record = { .frequency = RECORD_DEFAULT_HZ,
			    .compression_level = 1,
			    .argv = argv,
			    .argc = argc },
		.target = { .takes_descendants = true },
		.output = "tally.data",
		.output_fd = -1,
		.place = TALLY_OUTPUT_PATH_INIT,
	};
	if (command == &tally_perf_record)
		begin_as_perf(&request);
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_catalogue_init(&request.catalogue) < 0) {
		tally_error_set(&err, -ENOMEM, "out of memory");
		return tally_command_fail(command, &err);
	}
	int status = record_parse_arguments(command, argc, argv, &request);
	if (status < 0 && request.is_dry_run)
		status = TALLY_EXIT_OK;
	else if (status < 0)
		status = record(command, &request);
	record_request_release(&request);
	return status;
}

const struct tally_command tally_command_record = {
	.name = "record",
	.summary = "sample a program, tasks or the whole system into a file",
	.usage = "[options] [--] [command [argument…]]",
	.details =
		"Without -e, cycles are sampled if the CPU can count them, otherwise cpu-clock.\n\n"
		"  tally record -- ./program       then: tally report\n"
		"  tally record -p 1234 --duration 10\n"
		"  tally record -a -e sched:sched_switch -- sleep 1\n"
		"  tally record -o - -- make | tally flamegraph -o make.svg -\n"
		"  tally record --provider simulated -e LLC-load-misses -c 1000 ./program",
	.options = record_options,
	.run = run,
};

const struct tally_command tally_perf_record = {
	.name = "perf record",
	.summary = "sample a program, tasks or the whole system into perf.data",
	.usage = "[options] [--] [command [argument…]]",
	.details =
		"The options and events are tally record's, with perf's defaults: perf.data, not "
		"compressed;\n"
		"4000 samples a second; call graphs with -g; the whole system where nothing is "
		"named.",
	.options = record_perf_options,
	.run = run,
};
