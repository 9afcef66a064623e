#include "recorder/recorder_state.h"

#include "abi/attr.h"
#include "base/vector.h"
#include "session/close_apart.h"
#include "task/live_jits.h"
#include "task/made_code.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t tally_recorder_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void tally_recorder_say(const struct tally_recorder *recorder, const char *format, ...)
{
	char text[512];
	va_list args;
	if (!recorder->session.options.say)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	recorder->session.options.say(recorder->session.options.context, text);
}

static double own_cpu_s(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void tally_recorder_describe_sources(struct tally_recorder *recorder)
{
	for (size_t i = 0; i < recorder->events.source_count; i++) {
		struct tally_recorder_source *source = &recorder->events.sources[i];
		recorder->events.recorded[i] = (struct tally_recorded_event){
			.attr = source->written,
			.name = source->name,
			.ids = source->ids.items,
			.id_count = source->ids.count,
		};
		recorder->events.recorded[i].attr.size = tally_attr_size_needed(&source->written);
	}
}

/* Reads a task's memory.  Fails with -errno for zombies and for other users' tasks; their stacks
 * end where their copies do. */
static long read_task(void *context, uint32_t tid, uint64_t address, void *out, size_t size)
{
	struct iovec local = { out, size }, remote = { (void *)(uintptr_t)address, size };
	(void)context;
	ssize_t got = process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0);
	return got < 0 ? -errno : got;
}

static uint64_t sample_clock_ns(void *context)
{
	(void)context;
	return tally_recorder_now_ns();
}

/* Returns NULL when there can be no excerpt. */
static struct tally_recorder_excerpt *new_excerpt(const struct tally_recorder *recorder)
{
	const struct tally_attr **attrs = calloc(recorder->events.source_count, sizeof(*attrs));
	for (size_t i = 0; attrs && i < recorder->events.source_count; i++)
		attrs[i] = &recorder->events.sources[i].written;
	struct tally_recorder_excerpt *excerpt = attrs ? tally_recorder_excerpt_new(
								 attrs, recorder->events.source_count,
								 &recorder->events.source_of_id)
						       : NULL;
	free(attrs);
	return excerpt;
}

int tally_recorder_new(struct tally_provider *provider, const struct tally_event_list *events,
		       struct tally_target *target, const struct tally_recorder_options *options,
		       int output_fd, bool pipe, struct tally_spawn *spawn,
		       struct tally_buffer *notes, struct tally_recorder **out,
		       struct tally_error *err)
{
	struct tally_recorder *recorder = calloc(1, sizeof(*recorder));
	if (!recorder)
		return tally_error_set(err, -ENOMEM, "out of memory");
	recorder->session.provider = provider;
	recorder->tasks.objects.is_live = provider == tally_provider_kernel();
	recorder->session.target = target;
	recorder->session.options = *options;
	recorder->session.spawn = spawn;
	recorder->session.notes = notes;
	recorder->output.is_pipe = pipe;
	recorder->output.fd = output_fd;
	struct tally_perfdata_options writing = { .pipe = pipe,
						  .compression_level = options->compression_level };
	int result = tally_recorder_make_sources(recorder, events, err);
	if (!result)
		result = tally_recorder_open(recorder, err);
	if (!result) {
		tally_recorder_describe_sources(recorder);
		result = tally_perfdata_writer_new(output_fd, recorder->events.recorded,
						   recorder->events.source_count, &writing,
						   &recorder->output.writer, err);
	}
	if (!result && pipe)
		result = tally_recorder_features(recorder, err);
	if (!result && options->keeps_excerpt && !pipe && !options->next_output &&
	    !options->take_sample)
		recorder->output.excerpt = new_excerpt(recorder);
	if (!result && (recorder->events.unwinds || recorder->events.completes) &&
	    provider == tally_provider_kernel())
		recorder->tasks.objects.live_jits = tally_live_jits_new(); /* optional */
	if (!result)
		result = tally_recorder_synthesize(recorder, err);
	if (!result && recorder->events.unwinds && provider == tally_provider_kernel())
		/* optional */
		recorder->stacks.outer = tally_recorder_outer_new(read_task, sample_clock_ns, NULL);
	if (!result && (recorder->events.unwinds || recorder->events.completes) &&
	    provider == tally_provider_kernel())
		recorder->tasks.objects.made_code = tally_made_code_new(read_task, NULL); /* optional */
	if (result < 0) {
		tally_recorder_free(recorder);
		return result;
	}
	*out = recorder;
	return 0;
}

static bool command_runs(const struct tally_recorder *recorder)
{
	return recorder->session.spawn && recorder->session.spawn->pid > 0 && !recorder->session.command_ended;
}

static void reap(struct tally_recorder *recorder)
{
	if (command_runs(recorder) && wait4(recorder->session.spawn->pid, &recorder->session.wait_status, WNOHANG,
					    &recorder->session.command_used) == recorder->session.spawn->pid)
		recorder->session.command_ended = true;
}

/* Signals the command; a stopped command is continued, so that it can end. */
static void tell_command(const struct tally_recorder *recorder, int number)
{
	if (!command_runs(recorder))
		return;
	kill(recorder->session.spawn->pid, number);
	kill(recorder->session.spawn->pid, SIGCONT);
}

/* Takes all pending signals.  Returns how many asked for the end. */
unsigned tally_recorder_take_signals(struct tally_recorder *recorder, struct tally_signals *signals,
				     bool *asked_next)
{
	struct tally_signal signal;
	unsigned asked = 0;
	while (tally_signals_next(signals, &signal)) {
		if (signal.number == SIGCHLD) {
			reap(recorder);
			continue;
		}
		if (signal.number == SIGUSR2) {
			*asked_next = true;
			continue;
		}
		if (signal.was_ignored)
			continue;
		/* A terminal's Ctrl-C reached the command directly.  SIGINT from elsewhere is
		 * passed on as SIGTERM: shells start background jobs with SIGINT ignored. */
		if (!signal.from_terminal)
			tell_command(recorder, signal.number == SIGINT ? SIGTERM : signal.number);
		asked++;
	}
	return asked;
}

void tally_recorder_fill_status(struct tally_recorder *recorder)
{
	recorder->session.status.seconds = (double)(tally_recorder_now_ns() - recorder->session.start_ns) / 1e9;
	struct stat file;
	recorder->session.status.bytes = tally_perfdata_writer_bytes(recorder->output.writer);
	if (!recorder->output.is_pipe && !fstat(recorder->output.fd, &file) && S_ISREG(file.st_mode))
		recorder->session.status.bytes = (uint64_t)file.st_size;
	recorder->session.status.own_cpu_s = own_cpu_s();
	recorder->session.status.file_samples = recorder->session.status.samples - recorder->output.file_samples;
}

int tally_recorder_finish(struct tally_recorder *recorder, struct tally_recorder_status *status,
			  struct tally_error *err)
{
	int result = recorder->output.is_pipe ? 0 : tally_recorder_features(recorder, err);
	int finished = tally_perfdata_finish(recorder->output.writer, result < 0 ? NULL : err);
	double seconds = recorder->session.status.seconds;
	tally_recorder_fill_status(recorder);
	recorder->session.status.seconds = seconds;
	*status = recorder->session.status;
	return result < 0 ? result : finished;
}

int tally_recorder_add_own(struct tally_recorder *recorder, const void *bytes, size_t size,
			   struct tally_recorder_status *status, struct tally_error *err)
{
	double seconds = recorder->session.status.seconds, own_cpu_s = recorder->session.status.own_cpu_s;
	int result = tally_perfdata_add_own(recorder->output.writer, bytes, size, err);
	tally_recorder_fill_status(recorder);
	recorder->session.status.seconds = seconds;
	recorder->session.status.own_cpu_s = own_cpu_s;
	*status = recorder->session.status;
	return result;
}

int tally_recorder_watch(struct tally_recorder *recorder, struct tally_signals *signals, int fd,
			 int timeout_ms)
{
	struct pollfd waits[2] = { { .fd = fd, .events = POLLIN },
				   { .fd = signals->fd, .events = POLLIN } };
	int ready = poll(waits, 2, timeout_ms);
	bool is_late;
	if (ready > 0 && waits[0].revents)
		return 1;
	return ready > 0 && tally_recorder_take_signals(recorder, signals, &is_late) ? -EINTR : 0;
}

const char *tally_recorder_call_graph_text(const struct tally_recorder *recorder)
{
	return recorder->events.call_graph_text[0] ? recorder->events.call_graph_text : NULL;
}

/* Gives the command 0.3 s to end: the signal that interrupted us may have reached it as well
 * (Ctrl-C, timeout). */
static bool ends_soon(struct tally_recorder *recorder)
{
	enum { ROUNDS = 30, ROUND_MS = 10 };
	for (unsigned i = 0; i < ROUNDS && command_runs(recorder); i++) {
		poll(NULL, 0, ROUND_MS);
		reap(recorder);
	}
	return !command_runs(recorder);
}

int tally_recorder_wait(struct tally_recorder *recorder, struct tally_signals *signals,
			enum tally_recorder_end end)
{
	if (end == TALLY_RECORDER_END_DURATION)
		tell_command(recorder, SIGTERM);
	for (reap(recorder); command_runs(recorder);) {
		struct pollfd wait = { .fd = signals->fd, .events = POLLIN };
		bool is_late;
		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (tally_recorder_take_signals(recorder, signals, &is_late))
			return ends_soon(recorder) ? 0 : -EINTR;
	}
	return 0;
}

int tally_recorder_begin(struct tally_recorder *recorder, struct tally_error *err)
{
	recorder->session.start_ns = tally_recorder_now_ns();
	return tally_recorder_enable(recorder, true, err);
}

int tally_recorder_look(struct tally_recorder *recorder, struct tally_recorder_status *status,
			struct tally_error *err)
{
	int result = tally_recorder_drain(recorder, false, err);
	if (!result)
		tally_recorder_check_online(recorder, -1);
	tally_recorder_fill_status(recorder);
	*status = recorder->session.status;
	return result;
}

struct tally_tasks *tally_recorder_tasks(struct tally_recorder *recorder)
{
	return &recorder->tasks.known;
}

bool tally_recorder_command_ended(const struct tally_recorder *recorder, int *wait_status)
{
	*wait_status = recorder->session.wait_status;
	return recorder->session.command_ended;
}

static double seconds_of(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Returns the time that each sample stands for: a clock's period; 0 for other events.  Also 0 for a
 * timer with so short a period that it is always late: it gives one sample for all turns that it
 * missed (hrtimer_forward()), which would look like tasks that are too short. */
static double clock_period_s(const struct tally_attr *attr)
{
	if (!tally_attr_is_clock(attr) ||
	    attr->flags & (TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL) ||
	    !attr->sample_period)
		return 0;
	const double in_time_s = 4e-5;
	double period_s = attr->flags & TALLY_ATTR_FREQ ? 1 / (double)attr->sample_period
							: (double)attr->sample_period / 1e9;
	return period_s >= in_time_s ? period_s : 0;
}

bool tally_recorder_coverage(const struct tally_recorder *recorder, double *sampled_s,
			     double *used_s)
{
	const struct tally_recorder_options *options = &recorder->session.options;
	bool was_on = !(options->delay_s > 0) && !options->range_count && !options->starts_off &&
		      !options->control;
	bool is_alone = recorder->events.source_count == 2; /* with the side-band */
	if (!recorder->session.command_ended || !tally_recorder_follows_command(recorder) || !is_alone ||
	    !was_on || options->no_inherit || options->overwrite ||
	    recorder->session.provider != tally_provider_kernel())
		return false;
	double period_s = clock_period_s(&recorder->events.sources[0].attr);
	*sampled_s = (double)(recorder->session.status.samples + recorder->session.status.lost) * period_s;
	*used_s = seconds_of(recorder->session.command_used.ru_utime) +
		  seconds_of(recorder->session.command_used.ru_stime);
	return period_s > 0;
}

void tally_recorder_take_perf_maps(struct tally_recorder *recorder, struct tally_perf_maps *out)
{
	*out = recorder->tasks.perf_maps;
	recorder->tasks.perf_maps = (struct tally_perf_maps){ 0 };
}

void tally_recorder_take_excerpt(struct tally_recorder *recorder, struct tally_buffer *out)
{
	*out = (struct tally_buffer){ 0 };
	if (recorder->output.excerpt)
		tally_recorder_excerpt_take(recorder->output.excerpt, out);
}

int tally_recorder_take_files(struct tally_recorder *recorder, struct tally_objects *out)
{
	return tally_objects_hand_over(&recorder->tasks.objects, out);
}

static bool takes_long(const struct tally_recorder *recorder)
{
	size_t count = 0;
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++)
		count += recorder->events.sources[i].event->kind == TALLY_EVENT_TRACEPOINT;
	return count >= TALLY_CLOSE_APART_MIN && recorder->session.provider == tally_provider_kernel() &&
	       recorder->events.handles.count;
}

void tally_recorder_close_apart(struct tally_recorder *recorder)
{
	if (!recorder || !takes_long(recorder))
		return;
	/* The kernel's handles are descriptors. */
	int *events = malloc(recorder->events.handles.count * sizeof(*events));
	for (size_t i = 0; events && i < recorder->events.handles.count; i++)
		events[i] = recorder->events.handles.items[i].handle;
	int gate = events ? tally_close_apart(events, recorder->events.handles.count) : -1;
	tally_recorder_close(recorder);
	if (gate >= 0)
		close(gate);
	free(events);
}

void tally_recorder_free(struct tally_recorder *recorder)
{
	if (!recorder)
		return;
	tally_recorder_close(recorder);
	tally_perfdata_writer_free(recorder->output.writer);
	tally_recorder_excerpt_free(recorder->output.excerpt);
	tally_recorder_holds_release(&recorder->stacks.holds);
	tally_recorder_outer_free(recorder->stacks.outer);
	tally_made_code_free(recorder->tasks.objects.made_code);
	tally_live_jits_free(recorder->tasks.objects.live_jits);
	for (unsigned i = 0; i < TALLY_RECORDER_CHAINS; i++)
		tally_unwind_chain_free(recorder->stacks.chains[i]);
	tally_objects_release(&recorder->tasks.objects);
	tally_tasks_release(&recorder->tasks.known);
	tally_endings_release(&recorder->tasks.endings);
	tally_perf_maps_release(&recorder->tasks.perf_maps);
	tally_recorder_forgotten_release(&recorder->tasks.forgotten);
	tally_recorder_modules_release(&recorder->tasks.modules);
	tally_buffer_release(&recorder->output.history);
	tally_arena_release(&recorder->session.arena);
	free(recorder);
}
