#include "base/buffer.h"
#include "base/terminal.h"
#include "command/command.h"
#include "command/simulated_options.h"
#include "machine/facts.h"
#include "machine/sysctl.h"
#include "provider/advice.h"
#include "provider/kernel_catalogue.h"
#include "session/counting.h"
#include "session/program.h"
#include "session/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPTION_CALL_GRAPH = 256, OPTION_NO_CALL_GRAPH, OPTION_DURATION, OPTION_KEEP_STACKS,
       OPTION_PROVIDER, OPTION_SIM_CPU, OPTION_REGION, OPTION_TOGGLE };

static const double DEFAULT_HZ = 999;

static const struct tally_option options[] = {
	{ 'e', "event", TALLY_ARGUMENT_REQUIRED, "EVENTS", "what to sample (cycles, else cpu-clock); 'tally list' has all",
	  NULL, 0 },
	{ 'F', "freq", TALLY_ARGUMENT_REQUIRED, "HZ", "samples a second (999); max: what the kernel allows", NULL, 0 },
	{ 'c', "count", TALLY_ARGUMENT_REQUIRED, "N", "a sample every N events", NULL, 0 },
	{ 'g', NULL, TALLY_ARGUMENT_NONE, NULL, "record call graphs (the default)", NULL, 0 },
	{ 0, "call-graph", TALLY_ARGUMENT_REQUIRED, "fp|dwarf[,SIZE]|none",
	  "by frame pointers, or by unwinding copies of the stack (SIZE bytes,\nelse as many as prove needed); by default what the target's executable needs", NULL,
	  OPTION_CALL_GRAPH },
	{ 0, "no-call-graph", TALLY_ARGUMENT_NONE, NULL, "addresses alone", NULL, OPTION_NO_CALL_GRAPH },
	{ 0, "keep-stacks", TALLY_ARGUMENT_NONE, NULL, "keep the stack copies in the file, unwind when reading", NULL,
	  OPTION_KEEP_STACKS },
	{ 'p', "pid", TALLY_ARGUMENT_REQUIRED, "PIDS", "record these processes", NULL, 0 },
	{ 't', "tid", TALLY_ARGUMENT_REQUIRED, "TIDS", "record these threads", NULL, 0 },
	{ 'a', "all-cpus", TALLY_ARGUMENT_NONE, NULL, "record the whole system", NULL, 0 },
	{ 'C', "cpu", TALLY_ARGUMENT_REQUIRED, "CPUS", "record these CPUs (0-3,7)", NULL, 0 },
	{ 'o', "output", TALLY_ARGUMENT_REQUIRED, "FILE", "tally.data; - is a pipe on standard output", NULL, 0 },
	{ 'm', "mmap-pages", TALLY_ARGUMENT_REQUIRED, "SIZE", "ring per CPU: bytes with K, M, G, else pages", NULL, 0 },
	{ 'D', "delay", TALLY_ARGUMENT_REQUIRED, "MS", "start sampling that many milliseconds later", NULL, 0 },
	{ 0, "duration", TALLY_ARGUMENT_REQUIRED, "TIME", "stop after so long: 5, 500ms, 2m; a command gets SIGTERM",
	  NULL, OPTION_DURATION },
	{ 'z', "compression-level", TALLY_ARGUMENT_REQUIRED, "LEVEL", "zstd's, 1 to 22 (1); 0: plain", NULL, 0 },
	{ 'q', "quiet", TALLY_ARGUMENT_NONE, NULL, "say nothing but errors and losses", NULL, 0 },
	SIMULATED_OPTION_PROVIDER(OPTION_PROVIDER),
	SIMULATED_OPTION_CPU(OPTION_SIM_CPU),
	SIMULATED_OPTION_REGION(OPTION_REGION),
	SIMULATED_OPTION_TOGGLE(OPTION_TOGGLE),
	TALLY_OPTIONS_END,
};

struct request {
	struct tally_record_options record;
	struct tally_target target;
	struct tally_catalogue catalogue;
	struct tally_arena arena;
	const char *expressions[64]; /* -e: understood once the provider is known */
	size_t expression_count;
	struct tally_event_list events;
	const char *provider_name;
	struct tally_simulated_options simulated;
	struct tally_provider *provider;
	bool wants_max_rate; /* -F max */
	const char *output;
	char old_output[4096]; /* what stood there before has this name now; "" when nothing did */
	char older_output[4096 + 1]; /* what had that name before; "" likewise.  Given up once the recording began */
	bool pipe; /* the output can't seek */
	const char *default_event_note; /* why it isn't cycles, or NULL */
	bool quiet;
};

/* ---- options ------------------------------------------------------------------------------------------- */

static int parse_call_graph(const char *value, struct tally_record_options *record, struct tally_error *err)
{
	unsigned long long bytes;
	if (!strcmp(value, "fp")) {
		record->call_graph = TALLY_CALL_GRAPH_FP;
	} else if (!strcmp(value, "none") || !strcmp(value, "no")) {
		record->call_graph = TALLY_CALL_GRAPH_NONE;
	} else if (!strncmp(value, "dwarf", 5) && (!value[5] || value[5] == ',')) {
		record->call_graph = TALLY_CALL_GRAPH_STACK;
		if (value[5]) {
			int result = tally_option_size("--call-graph dwarf", value + 6, &bytes, err);
			if (result < 0)
				return result;
			if (bytes < 256 || bytes > 64512)
				return tally_error_set(err, -EINVAL,
						       "--call-graph dwarf: a stack copy has 256 to 64512 bytes, not %llu",
						       bytes);
			record->stack_bytes = (uint32_t)bytes;
		}
	} else {
		return tally_error_set(err, -EINVAL, "--call-graph: '%s' is none of fp, dwarf, dwarf,SIZE, none", value);
	}
	return 0;
}

static int parse_rate(const char *value, struct request *request, struct tally_error *err)
{
	unsigned long long hertz = 1000;
	request->wants_max_rate = !strcmp(value, "max");
	int result = request->wants_max_rate ? 0 : tally_option_u64("-F", value, 1, 1000000000, &hertz, err);
	if (result < 0)
		return result;
	request->record.frequency = (double)hertz;
	request->record.rate_given = true;
	return 0;
}

/* By what the kernel allows; a simulated CPU's time is its own. */
static int check_rate(struct request *request, struct tally_error *err)
{
	enum { SIMULATED_MAX_HZ = 100000 }; /* what a kernel allows; nothing is lost beyond it, but for the disk's room */
	bool is_simulated = simulated_is_meant(request->provider_name);
	int allowed = is_simulated ? SIMULATED_MAX_HZ : tally_sysctl_read("kernel/perf_event_max_sample_rate");
	struct tally_record_options *record = &request->record;
	if (allowed <= 0 || (is_simulated && !request->wants_max_rate))
		return 0;
	if (request->wants_max_rate || (!record->rate_given && allowed < (int)DEFAULT_HZ))
		record->frequency = allowed;
	if (!record->rate_given || record->frequency <= allowed)
		return 0;
	return tally_error_set(err, -EINVAL, "-F %.0f: the kernel allows %d samples a second at most "
			       "(sysctl kernel.perf_event_max_sample_rate)", record->frequency, allowed);
}

static int take_expression(struct request *request, const char *value, struct tally_error *err)
{
	if (request->expression_count == sizeof(request->expressions) / sizeof(request->expressions[0]))
		return tally_error_set(err, -E2BIG, "too many -e: put events into one, separated by commas");
	request->expressions[request->expression_count++] = value;
	return 0;
}

static int parse_ring(const char *value, struct tally_record_options *record, struct tally_error *err)
{
	unsigned long long bytes;
	int result = tally_option_size("-m", value, &bytes, err);
	if (result < 0)
		return result;
	bool is_pages = !strpbrk(value, "KMGTkmgtBb");
	record->ring_bytes = (size_t)(is_pages ? bytes * (unsigned long long)sysconf(_SC_PAGESIZE) : bytes);
	if (!record->ring_bytes || record->ring_bytes > (size_t)1 << 31)
		return tally_error_set(err, -EINVAL, "-m: a ring has a page to 2 GiB");
	return 0;
}

static int apply_option(int id, const char *value, struct request *request, struct tally_error *err)
{
	struct tally_record_options *record = &request->record;
	unsigned long long number = 0;
	int result = 0;
	switch (id) {
	case 'e': return take_expression(request, value, err);
	case 'F': return parse_rate(value, request, err);
	case 'c':
		result = tally_option_u64("-c", value, 1, 1ull << 62, &number, err);
		record->period = number;
		record->rate_given = true;
		break;
	case 'g':
		if (record->call_graph == TALLY_CALL_GRAPH_NONE)
			record->call_graph = TALLY_CALL_GRAPH_AUTO;
		break;
	case OPTION_CALL_GRAPH: return parse_call_graph(value, record, err);
	case OPTION_NO_CALL_GRAPH: record->call_graph = TALLY_CALL_GRAPH_NONE; break;
	case OPTION_KEEP_STACKS: record->keep_stacks = true; break;
	case 'p': return tally_target_add_pids(&request->target, value, err);
	case 't': return tally_target_add_threads(&request->target, value, err);
	case 'a': request->target.all = true; break;
	case 'C': return tally_target_set_cpus(&request->target, value, err);
	case 'o': request->output = value; break;
	case 'm': return parse_ring(value, record, err);
	case 'D':
		result = tally_option_u64("-D", value, 0, 1000000000, &number, err);
		record->delay_s = (double)number / 1000;
		break;
	case OPTION_DURATION: return tally_option_seconds("--duration", value, &record->duration_s, err);
	case 'z':
		result = tally_option_u64("-z", value, 0, 22, &number, err);
		record->compression_level = (int)number;
		break;
	case 'q': request->quiet = true; break;
	case OPTION_PROVIDER: request->provider_name = value; break;
	case OPTION_SIM_CPU: request->simulated.cpu = value; break;
	case OPTION_REGION: request->simulated.region = true; break;
	case OPTION_TOGGLE: result = simulated_add_toggle(&request->simulated, value, err); break;
	}
	return result;
}

/* Cycles where the CPU can, else the clock of the CPUs. */
static int choose_default_event(struct request *request, struct tally_error *err)
{
	const struct tally_attr cycles = { .type = TALLY_TYPE_HARDWARE, .size = sizeof(cycles),
					   .config = TALLY_HW_CPU_CYCLES, .sample_period = 1000000,
					   .flags = TALLY_ATTR_DISABLED | TALLY_ATTR_EXCLUDE_KERNEL |
						    TALLY_ATTR_EXCLUDE_HV };
	struct tally_provider *provider = request->provider;
	if (provider != tally_provider_kernel()) {
		request->default_event_note = "sampling est-cycles: an estimate, for ranking; -e instructions is exact, and "
					      "faster";
		return tally_event_parse("est-cycles", &request->catalogue, &request->arena, &request->events, err);
	}
	int handle = provider->ops->open(provider, &cycles, 0, -1, -1, 0);
	if (handle >= 0)
		provider->ops->close(provider, handle);
	else if (handle != -EPERM && handle != -EACCES && handle != -ENOSYS) /* then nothing can be sampled: told later */
		request->default_event_note =
			request->target.command && !*tally_simulated_lack() ?
				"this machine has no hardware cycle counter: sampling cpu-clock (--provider simulated samples "
				"instructions and misses: " TALLY_SIMULATED_COST ")" :
				"this machine has no hardware cycle counter: sampling cpu-clock";
	return tally_event_parse(handle >= 0 ? "cycles" : "cpu-clock", &request->catalogue, &request->arena,
				 &request->events, err);
}

/* ---- running ------------------------------------------------------------------------------------------- */

static void say_size(uint64_t bytes, char *out, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned unit = 0;
	for (; value >= 1024 && unit < 4; unit++)
		value /= 1024;
	snprintf(out, size, value < 10 && unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* A command has the terminal for itself: its output and prompts would be overwritten. */
static bool shows_progress(const struct request *request)
{
	return !request->quiet && !request->target.command && isatty(STDERR_FILENO);
}

static void show_progress(void *context, const struct tally_record_status *status)
{
	char size[32];
	(void)context;
	say_size(status->bytes, size, sizeof(size));
	fprintf(stderr, "\r\x1b[Krecording: %.0f s, %" PRIu64 " samples, %s", status->seconds, status->samples, size);
	if (status->lost)
		fprintf(stderr, ", %" PRIu64 " lost", status->lost);
	fflush(stderr);
}

static bool is_standard_output(const char *name)
{
	return !strcmp(name, "-") || !strcmp(name, "/dev/stdout") || !strcmp(name, "/dev/fd/1") ||
	       !strcmp(name, "/proc/self/fd/1");
}

/* The recording takes standard output for itself; what the command prints there goes to standard error. */
static int open_pipe(struct tally_error *err)
{
	if (isatty(STDOUT_FILENO))
		return tally_error_set(err, -EINVAL, "a recording is no text: -o - wants a pipe, not a terminal");
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return tally_error_set(err, -errno, "standard output can't be written: %s", tally_errno_text(errno));
	return fd;
}

/* The last recording stays as FILE.old, as with perf. */
static int keep_old(struct request *request, struct tally_error *err)
{
	struct stat there;
	char *old = request->old_output;
	size_t size = sizeof(request->old_output);
	char *older = request->older_output;
	bool keep = !stat(request->output, &there) && S_ISREG(there.st_mode) && there.st_size;
	if (!keep || snprintf(old, size, "%s.old", request->output) >= (int)size) {
		*old = '\0';
		return 0;
	}
	/* A recording that never begins must cost nothing, not even the last but one. */
	snprintf(older, sizeof(request->older_output), "%s~", old);
	if (rename(old, older) < 0)
		*older = '\0';
	if (!rename(request->output, old))
		return 0;
	int code = -errno;
	if (*older && !rename(older, old))
		*older = '\0';
	if (code == -EACCES || code == -EPERM) { /* the folder isn't ours, the file may be */
		*old = '\0';
		return 0;
	}
	tally_error_set(err, code, "keeping the old %s as %s failed: %s", request->output, old, tally_errno_text(code));
	*old = '\0';
	return code;
}

static bool is_fifo(const char *name)
{
	struct stat there;
	return !stat(name, &there) && S_ISFIFO(there.st_mode);
}

/* Waits for a FIFO's reader, as a shell does: the signals that are kept for the recording still end us here.  Opened
 * for reading, too, it would not tell later that the reader is gone. */
static int open_fifo(const char *name, const sigset_t *signals_before)
{
	sigset_t now;
	sigprocmask(SIG_SETMASK, signals_before, &now);
	int fd = open(name, O_WRONLY | O_CLOEXEC), code = errno;
	sigprocmask(SIG_SETMASK, &now, NULL);
	errno = code;
	return fd;
}

static void restore_old(const struct request *request)
{
	if (*request->old_output && rename(request->old_output, request->output) < 0)
		fprintf(stderr, "hint: the last recording is in %s\n", request->old_output);
	else if (*request->older_output && rename(request->older_output, request->old_output) < 0)
		fprintf(stderr, "hint: the last recording but one is in %s\n", request->older_output);
}

static int open_output(struct request *request, const sigset_t *signals_before, struct tally_error *err)
{
	request->pipe = true;
	if (is_standard_output(request->output))
		return open_pipe(err);
	bool fifo = is_fifo(request->output);
	int result = fifo ? 0 : keep_old(request, err);
	if (result < 0)
		return result;
	int fd = fifo ? open_fifo(request->output, signals_before) :
			open(request->output, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	request->pipe = fd >= 0 && lseek(fd, 0, SEEK_CUR) < 0;
	if (fd >= 0 && !isatty(fd))
		return fd;
	if (fd >= 0) {
		close(fd);
		return tally_error_set(err, -EINVAL, "a recording is no text: %s is a terminal", request->output);
	}
	int code = -errno;
	restore_old(request);
	tally_error_set(err, code, "%s can't be written: %s", request->output, tally_errno_text(code));
	tally_error_hint(err, "-o names another file");
	return code;
}

/* What never began leaves no file, and the last recording where it was. */
static void close_output(const struct request *request, int fd, bool began)
{
	struct stat there;
	if (!began && !request->pipe && !fstat(fd, &there) && S_ISREG(there.st_mode)) {
		unlink(request->output);
		restore_old(request);
	} else if (*request->older_output) {
		unlink(request->older_output);
	}
	close(fd);
}

static void say_notes(const struct request *request, const struct tally_recorder *recorder,
		      const struct tally_buffer *notes)
{
	const char *graph = recorder ? tally_recorder_call_graph_text(recorder) : NULL;
	if (request->quiet || (request->target.command && !tally_program_is_there(request->target.command[0])))
		return;
	if (request->default_event_note)
		fprintf(stderr, "tally: %s\n", request->default_event_note);
	if (graph)
		fprintf(stderr, "tally: %s\n", graph);
	for (const char *line = tally_buffer_string(notes); *line; line += strcspn(line, "\n") + 1)
		fprintf(stderr, "tally: %.*s\n", (int)strcspn(line, "\n"), line);
}

/* What may be the reason that nothing was sampled. */
static void say_nothing_sampled(const struct request *request, double seconds)
{
	const struct tally_record_options *rate = &request->record;
	const struct tally_event *event = &request->events.items[0];
	bool is_clock = tally_counting_is_clock(&event->attr) || event->kind == TALLY_EVENT_HARDWARE;
	struct tally_provider *provider = request->provider;
	const char *uncounted = provider->ops->uncounted ? provider->ops->uncounted(provider) : NULL;
	if (uncounted)
		fprintf(stderr, "hint: nothing was sampled: %s\n", uncounted);
	else if (rate->delay_s >= seconds)
		fprintf(stderr, "hint: nothing was sampled: it ended after %.2f s, and sampling was to start after %.2f s (-D)\n",
			seconds, rate->delay_s);
	else if (is_clock && !rate->period && !event->has_period && !event->has_frequency)
		fprintf(stderr, "hint: nothing was sampled: at -F %.0f that takes %.2g ms of CPU time; a higher -F, or a longer "
				"run, gives samples\n", rate->frequency, 1000 / rate->frequency);
	else if (rate->rate_given || event->has_period || event->has_frequency)
		fprintf(stderr, "hint: nothing was sampled: '%s' did not occur, or less often than the period; -c 1 takes each\n",
			event->name);
	else
		fprintf(stderr, "hint: nothing was sampled: '%s' did not occur; 'tally stat' counts it\n", event->name);
}

static void say_warnings(const struct request *request, const struct tally_record_status *status)
{
	if (status->lost)
		fprintf(stderr, "warning: %" PRIu64 " records were lost: a larger ring (-m) or a lower rate (-F) keeps "
				"them\n", status->lost);
	if (status->throttled)
		fprintf(stderr, "warning: the kernel throttled the sampling %" PRIu64 " times; a lower rate (-F) avoids "
				"it\n", status->throttled);
	if (request->quiet)
		return;
	if (status->stacks_completed)
		fprintf(stderr, "tally: of %" PRIu64 " stacks %" PRIu64 " were longer than their copies and completed from the "
				"tasks' memory, %" PRIu64 " are cut short\n", status->stacks, status->stacks_completed,
			status->stacks_cut);
	if (status->stacks_cut * 10 > status->stacks)
		fprintf(stderr, "warning: %" PRIu64 " of %" PRIu64 " stacks are cut short; --call-graph dwarf,SIZE copies "
				"more (to 64512)\n", status->stacks_cut, status->stacks);
	if (status->stacks_deep)
		fprintf(stderr, "warning: %" PRIu64 " of %" PRIu64 " stacks are deeper than the frames that are kept: they lack "
				"their roots\n", status->stacks_deep, status->stacks);
}

static void say_result(const struct request *request, const struct tally_record_status *status)
{
	char size[32];
	if (shows_progress(request))
		fputs("\r\x1b[K", stderr);
	if (!request->quiet) {
		say_size(status->bytes, size, sizeof(size));
		fprintf(stderr, "tally: %" PRIu64 " samples in %.2f s, %s in %s; the recorder used %.3f s of CPU", status->samples,
			status->seconds, size, request->pipe ? "the pipe" : request->output,
			status->own_cpu_s);
		fprintf(stderr, status->samples ? " (%.1f us a sample)\n" : "\n",
			status->own_cpu_s * 1e6 / (double)status->samples);
	}
	if (!status->samples && !request->quiet)
		say_nothing_sampled(request, status->seconds);
	say_warnings(request, status);
}

/* One recording, from opened events to a closed file. */
struct run {
	const struct tally_command *command;
	struct request *request;
	struct tally_signals signals;
	struct tally_spawn spawn;
	struct tally_recorder *recorder;
	bool began; /* the output holds something of use */
};

static void say_notes_of_provider(const struct run *run, int signal)
{
	struct tally_provider *provider = run->request->provider;
	struct tally_arena arena = TALLY_ARENA_INIT;
	const char *notes[8];
	size_t count = provider->ops->notes ? provider->ops->notes(provider, signal, &arena, notes, 8) : 0;
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "warning: %s\n", notes[i]);
	tally_arena_release(&arena);
}

/* The recording is complete; the command may still run. */
static int await_command(struct run *run, enum tally_record_end end)
{
	int status, ended = tally_recorder_wait(run->recorder, &run->signals, end);
	bool has_ended = tally_recorder_command_ended(run->recorder, &status);
	say_notes_of_provider(run, has_ended && WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	if (has_ended) {
		/* A limit that was asked for is no failure of the command, as with stat. */
		bool stopped_by_us = end == TALLY_RECORD_END_DURATION && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
		return stopped_by_us ? TALLY_EXIT_OK : tally_spawn_exit_status(status);
	}
	if (ended == -EINTR) {
		fprintf(stderr, "tally: the command goes on\n");
		return 128 + SIGINT;
	}
	return TALLY_EXIT_OK;
}

static int finish(struct run *run, enum tally_record_end end, const struct tally_error *run_err)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_record_status status = { 0 };
	int finished = tally_recorder_finish(run->recorder, &status, &err);
	bool output_failed = end == TALLY_RECORD_END_OUTPUT || finished < 0;
	say_result(run->request, &status);
	if (output_failed) {
		tally_command_fail(run->command, end == TALLY_RECORD_END_OUTPUT ? run_err : &err);
		if (!run->request->pipe)
			fprintf(stderr, "hint: what was written until then is readable in %s\n", run->request->output);
		int ignored;
		if (run->spawn.pid > 0 && !tally_recorder_command_ended(run->recorder, &ignored))
			fprintf(stderr, "tally: '%s' runs on, without being recorded\n", run->request->target.command[0]);
	}
	int exit_status = await_command(run, end);
	return output_failed ? TALLY_EXIT_FAILURE : exit_status;
}

static int record_into(struct run *run, int fd)
{
	struct request *request = run->request;
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_buffer notes = { 0 };
	enum tally_record_end end;
	int result = tally_recorder_new(request->provider, &request->events, &request->target, &request->record,
					fd, request->pipe, run->spawn.pid ? &run->spawn : NULL, &notes,
					&run->recorder, &err);
	if (!(result < 0))
		say_notes(request, run->recorder, &notes);
	tally_buffer_release(&notes);
	if (result < 0)
		return tally_command_fail(run->command, &err);
	result = tally_recorder_run(run->recorder, &run->signals, shows_progress(request) ? show_progress : NULL,
				    NULL, &end, &err);
	if (result < 0) {
		tally_command_fail(run->command, &err);
		return request->target.command ? tally_spawn_failure_status(result) : TALLY_EXIT_FAILURE;
	}
	run->began = true;
	return finish(run, end, &err);
}

static int record(const struct tally_command *command, struct request *request)
{
	struct run run = { .command = command, .request = request, .spawn = TALLY_SPAWN_INIT };
	struct tally_error err = TALLY_ERROR_NONE;
	char **argv = request->target.command;
	struct tally_provider *provider = request->provider;
	if (tally_target_resolve(&request->target, &err) < 0 || tally_signals_open(&run.signals, &err) < 0)
		return tally_command_fail(command, &err);
	int started = argv ? tally_spawn_command(provider, argv, &argv, &err) : 0;
	int fd = started < 0 ? -1 : open_output(request, &run.signals.before, &err), status = TALLY_EXIT_FAILURE;
	if (fd < 0 || (argv && tally_spawn_prepare(&run.spawn, argv, &run.signals.before, &err) < 0)) {
		tally_command_fail(command, &err);
		status = started < 0 ? tally_spawn_failure_status(started) : status;
	} else {
		signal(SIGPIPE, SIG_IGN); /* behind the fork: the command's own is as it was */
		status = record_into(&run, fd);
	}
	tally_recorder_free(run.recorder);
	tally_spawn_release(&run.spawn);
	if (fd >= 0)
		close_output(request, fd, run.began);
	tally_signals_release(&run.signals);
	return status;
}

static int choose_provider(struct request *request, struct tally_error *err)
{
	const char *name = request->provider_name;
	request->provider = tally_provider_kernel();
	if (!name || !strcmp(name, "kernel"))
		return tally_kernel_catalogue(&request->catalogue, err);
	if (!simulated_is_meant(name))
		return tally_error_set(err, -EINVAL, "there is no provider '%s': kernel, simulated", name);
	int result = simulated_check_target(&request->target, err);
	if (!result)
		result = tally_provider_simulated_new(&request->simulated, &request->provider, err);
	return result < 0 ? result : tally_simulated_catalogue(&request->catalogue, err);
}

/* Whose events they are stands in the file: no reader is to take them for the hardware's. */
static int make_own(struct request *request, struct tally_error *err)
{
	int result = simulated_check_events(&request->events, err);
	for (size_t i = 0; result >= 0 && i < request->events.count; i++)
		if (tally_simulated_make_own(&request->events.items[i], &request->arena) < 0)
			result = tally_error_set(err, -ENOMEM, "out of memory");
	return result;
}

/* 0, or an exit status after the message was printed. */
static int parse_events(const struct tally_command *command, struct request *request)
{
	struct tally_error err = TALLY_ERROR_NONE;
	int result = choose_provider(request, &err);
	if (result < 0) {
		tally_command_fail(command, &err);
		return result == -EINVAL ? TALLY_EXIT_USAGE : TALLY_EXIT_FAILURE;
	}
	for (size_t i = 0; result >= 0 && i < request->expression_count; i++)
		result = tally_event_parse(request->expressions[i], &request->catalogue, &request->arena, &request->events,
					   &err);
	if (result >= 0 && simulated_is_meant(request->provider_name))
		result = make_own(request, &err);
	if (result < 0) {
		tally_command_fail(command, &err);
		return TALLY_EXIT_USAGE;
	}
	if (request->events.count)
		return 0;
	result = choose_default_event(request, &err);
	if (result >= 0 && simulated_is_meant(request->provider_name))
		result = make_own(request, &err);
	return result < 0 ? tally_command_fail(command, &err) : 0;
}

static int parse_arguments(const struct tally_command *command, int argc, char **argv, struct request *request)
{
	struct tally_options walk = TALLY_OPTIONS_INIT(command, argc, argv);
	struct tally_error err = TALLY_ERROR_NONE;
	int id;
	while ((id = tally_options_next(&walk)) > 0)
		if (apply_option(id, walk.value, request, &err) < 0)
			return tally_command_misuse(command, "%s", err.message);
	if (id != TALLY_OPTION_DONE)
		return id == TALLY_OPTION_HELP ? -1 : TALLY_EXIT_USAGE;
	const char *conflict = simulated_conflict(&request->simulated, request->provider_name);
	if (conflict)
		return tally_command_misuse(command, "%s", conflict);
	if (check_rate(request, &err) < 0)
		return tally_command_misuse(command, "%s", err.message);
	if (walk.index < argc)
		request->target.command = argv + walk.index;
	if (!request->target.command && !request->target.all && !request->target.has_cpu_list &&
	    !tally_target_has_tasks(&request->target))
		return tally_command_misuse(command, "what to record? a command, -p PID, or -a for the whole system");
	return parse_events(command, request);
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct request request = {
		.record = { .frequency = DEFAULT_HZ, .compression_level = 1, .argv = argv, .argc = argc },
		.target = TALLY_TARGET_INIT,
		.output = "tally.data",
	};
	struct tally_error err = TALLY_ERROR_NONE;
	if (tally_catalogue_init(&request.catalogue) < 0) {
		tally_error_set(&err, -ENOMEM, "out of memory");
		return tally_command_fail(command, &err);
	}
	int status = parse_arguments(command, argc, argv, &request);
	status = status ? status : record(command, &request);
	if (request.provider)
		request.provider->ops->release(request.provider);
	tally_event_list_release(&request.events);
	tally_catalogue_release(&request.catalogue);
	tally_arena_release(&request.arena);
	tally_target_release(&request.target);
	return status < 0 ? TALLY_EXIT_OK : status;
}

const struct tally_command tally_command_record = {
	.name = "record",
	.summary = "sample a program, tasks or the whole system into a file",
	.usage = "[options] [--] command [argument…]",
	.details = "Without -e the CPU's cycles are sampled where it can count them, else its clock (cpu-clock).\n"
		   "\n"
		   "  tally record -- ./program            then: tally report, tally flamegraph\n"
		   "  tally record -p 1234 --duration 10\n"
		   "  tally record -a -e sched:sched_switch -- sleep 1\n"
		   "  tally record -o - -- make | tally flamegraph -o make.svg -\n"
		   "  tally record --provider simulated -e L1-dcache-load-misses -c 1000 -- ./program",
	.options = options,
	.run = run,
};
