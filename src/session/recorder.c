#include "session/recorder_state.h"

#include "base/vector.h"
#include "machine/latency.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_MS = 500, DRAIN_MS = TALLY_RECORD_PACE_MS_MAX, FLUSH_MS = 1000 };

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static double own_cpu_s(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void describe_sources(struct tally_recorder *recorder)
{
	for (size_t i = 0; i < recorder->source_count; i++) {
		struct tally_record_source *source = &recorder->sources[i];
		recorder->recorded[i] = (struct tally_recorded_event){
			.attr = source->written,
			.name = source->name,
			.ids = source->ids.items,
			.id_count = source->ids.count,
		};
		recorder->recorded[i].attr.size = tally_attr_size_needed(&source->written);
	}
}

/* Not of a zombie, nor of another user's task: -errno, and its stacks stay as their copies have them. */
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
	return now_ns();
}

int tally_recorder_new(struct tally_provider *provider, const struct tally_event_list *events,
		       struct tally_target *target, const struct tally_record_options *options, int output_fd,
		       bool pipe, struct tally_spawn *spawn, struct tally_buffer *notes,
		       struct tally_recorder **out, struct tally_error *err)
{
	struct tally_recorder *recorder = calloc(1, sizeof(*recorder));
	if (!recorder)
		return tally_error_set(err, -ENOMEM, "out of memory");
	recorder->provider = provider;
	recorder->objects.is_live = provider == tally_provider_kernel();
	recorder->target = target;
	recorder->options = *options;
	recorder->spawn = spawn;
	recorder->notes = notes;
	recorder->pipe = pipe;
	recorder->output_fd = output_fd;
	struct tally_perfdata_options writing = { .pipe = pipe, .compression_level = options->compression_level };
	int result = tally_record_make_sources(recorder, events, err);
	if (!result)
		result = tally_record_open(recorder, err);
	if (!result) {
		describe_sources(recorder);
		result = tally_perfdata_writer_new(output_fd, recorder->recorded, recorder->source_count, &writing,
						   &recorder->writer, err);
	}
	if (!result && pipe)
		result = tally_record_features(recorder, err);
	if (!result)
		result = tally_record_synthesize(recorder, err);
	if (!result && recorder->unwinds && provider == tally_provider_kernel())
		recorder->outer = tally_record_outer_new(read_task, sample_clock_ns, NULL); /* goes without, too */
	if (result < 0) {
		tally_recorder_free(recorder);
		return result;
	}
	*out = recorder;
	return 0;
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

struct loop {
	struct tally_recorder *recorder;
	struct tally_signals *signals;
	struct tally_record_waits waits;
	uint64_t enable_at, stop_at, progress_at; /* ns; 0: never */
	uint64_t flush_at;
	struct tally_record_pace pace;
	int look_ms; /* -1: when woken */
	enum tally_record_end end;
	bool ended;
};

static bool command_runs(const struct tally_recorder *recorder)
{
	return recorder->spawn && recorder->spawn->pid > 0 && !recorder->command_ended;
}

static void reap(struct tally_recorder *recorder)
{
	if (command_runs(recorder) &&
	    waitpid(recorder->spawn->pid, &recorder->wait_status, WNOHANG) == recorder->spawn->pid)
		recorder->command_ended = true;
}

/* Asks the command to end, also one that is stopped. */
static void tell_command(const struct tally_recorder *recorder, int number)
{
	if (!command_runs(recorder))
		return;
	kill(recorder->spawn->pid, number);
	kill(recorder->spawn->pid, SIGCONT);
}

/* How many asked for the end. */
static unsigned take_signals(struct tally_recorder *recorder, struct tally_signals *signals)
{
	struct tally_signal signal;
	unsigned asked = 0;
	while (tally_signals_next(signals, &signal)) {
		if (signal.number == SIGCHLD) {
			reap(recorder);
			continue;
		}
		if (signal.was_ignored)
			continue;
		/* A terminal's Ctrl-C reached the command by itself.  SIGINT from elsewhere is passed on as SIGTERM:
		 * shells start background jobs with SIGINT ignored. */
		if (!signal.from_terminal)
			tell_command(recorder, signal.number == SIGINT ? SIGTERM : signal.number);
		asked++;
	}
	return asked;
}

static int earliest_ms(const struct loop *loop)
{
	uint64_t now = now_ns(), next = now + DRAIN_MS * 1000000ull;
	const uint64_t times[] = { loop->enable_at, loop->stop_at, loop->progress_at };
	for (unsigned i = 0; i < 3; i++)
		if (times[i] && times[i] < next)
			next = times[i];
	if (loop->look_ms > 0 && now + (uint64_t)loop->look_ms * 1000000u < next)
		return loop->look_ms;
	return next <= now ? 0 : (int)((next - now) / 1000000) + 1;
}

static void fill_status(struct tally_recorder *recorder)
{
	recorder->status.seconds = (double)(now_ns() - recorder->start_ns) / 1e9;
	struct stat file;
	recorder->status.bytes = tally_perfdata_writer_bytes(recorder->writer);
	if (!recorder->pipe && !fstat(recorder->output_fd, &file) && S_ISREG(file.st_mode))
		recorder->status.bytes = (uint64_t)file.st_size;
	recorder->status.own_cpu_s = own_cpu_s();
}

/* The first reason counts. */
static void end_loop(struct loop *loop, enum tally_record_end end)
{
	if (!loop->ended)
		loop->end = end;
	loop->ended = true;
}

static int on_time(struct loop *loop, struct tally_error *err)
{
	uint64_t now = now_ns();
	if (loop->enable_at && now >= loop->enable_at) {
		loop->enable_at = 0;
		int result = tally_record_enable(loop->recorder, true, err);
		if (result < 0)
			return result;
	}
	if (loop->stop_at && now >= loop->stop_at)
		end_loop(loop, TALLY_RECORD_END_DURATION);
	return 0;
}

/* A killed recorder's file lacks a second at most; a pipe's reader lags by a pass. */
static int flush(struct loop *loop, struct tally_error *err)
{
	uint64_t now = now_ns();
	if (!loop->recorder->pipe && now < loop->flush_at)
		return 0;
	loop->flush_at = now + FLUSH_MS * 1000000ull;
	return tally_perfdata_flush(loop->recorder->writer, err);
}

/* All rings are as large as the first that is there.  Files that only the processes lead to which have them mapped (of
 * containers) must be opened while these live: no ring that fills slowly keeps us from a look. */
static int next_look_ms(struct loop *loop)
{
	enum { SEE_FILES_MS = 50 };
	const struct tally_recorder *recorder = loop->recorder;
	int longest_ms = recorder->objects.is_live ? SEE_FILES_MS : -1;
	if (!recorder->ring_count || !recorder->rings[0].page)
		return longest_ms;
	int ms = tally_record_pace_ms(&loop->pace, now_ns(), recorder->status.lost, recorder->found_bytes,
				    recorder->rings[0].mask + 1);
	return ms < 0 || (longest_ms >= 0 && longest_ms < ms) ? longest_ms : ms;
}

static int drain_until_end(struct loop *loop,
			   void (*progress)(void *context, const struct tally_record_status *status), void *context,
			   struct tally_error *err)
{
	struct tally_recorder *recorder = loop->recorder;
	struct tally_provider *provider = recorder->provider;
	while (!loop->ended) {
		struct tally_record_waits *waits = &loop->waits;
		int ready = provider->ops->wait(provider, waits->items, waits->count, loop->signals->fd,
						earliest_ms(loop));
		if (ready < 0 && ready != -EINTR)
			return tally_error_set(err, ready, "waiting for events failed: %s", tally_errno_text(ready));
		recorder->status.wakeups++;
		if (take_signals(recorder, loop->signals))
			end_loop(loop, TALLY_RECORD_END_SIGNAL);
		if (recorder->command_ended)
			end_loop(loop, TALLY_RECORD_END_COMMAND);
		int result = on_time(loop, err);
		if (!result)
			result = tally_record_drain(recorder, false, err);
		loop->look_ms = next_look_ms(loop);
		if (!result)
			result = flush(loop, err);
		if (result < 0)
			return result;
		if (ready > 0)
			tally_record_waits_update(waits, recorder);
		if (!recorder->spawn && waits->ended == waits->count)
			end_loop(loop, TALLY_RECORD_END_COMMAND);
		if (progress && now_ns() >= loop->progress_at) {
			loop->progress_at = now_ns() + PROGRESS_MS * 1000000ull;
			fill_status(recorder);
			progress(context, &recorder->status);
		}
	}
	return 0;
}

/* What the provider had no room for in our rings; then nobody needs to wait for room any more: of a command that goes on,
 * and of what it left behind. */
static int drain_the_rest(struct tally_recorder *recorder, struct tally_error *err)
{
	struct tally_provider *provider = recorder->provider;
	ssize_t moved = 1;
	int result = 0;
	while (provider->ops->gather && !result && (moved = provider->ops->gather(provider)) > 0)
		result = tally_record_drain(recorder, true, err);
	for (size_t i = 0; provider->ops->gather && i < recorder->ring_count; i++) {
		tally_ring_close(&recorder->rings[i]);
		tally_ring_close(&recorder->side_rings[i]);
	}
	return result;
}

int tally_recorder_run(struct tally_recorder *recorder, struct tally_signals *signals,
		       void (*progress)(void *context, const struct tally_record_status *status), void *context,
		       enum tally_record_end *end, struct tally_error *err)
{
	const struct tally_record_options *options = &recorder->options;
	struct loop loop = { .recorder = recorder, .signals = signals };
	recorder->start_ns = now_ns();
	loop.progress_at = progress ? recorder->start_ns + PROGRESS_MS * 1000000ull : 0;
	if (options->delay_s > 0)
		loop.enable_at = recorder->start_ns + (uint64_t)(options->delay_s * 1e9);
	if (options->duration_s > 0)
		loop.stop_at = recorder->start_ns + (uint64_t)((options->delay_s + options->duration_s) * 1e9);
	if (tally_record_waits_init(&loop.waits, recorder) < 0) {
		tally_record_waits_release(&loop.waits);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}

	loop.look_ms = next_look_ms(&loop);
	tally_latency_ask_low(); /* the command is forked already: it keeps its own */
	bool enable_now = !loop.enable_at && !(recorder->sources[0].attr.flags & TALLY_ATTR_ENABLE_ON_EXEC);
	int result = enable_now ? tally_record_enable(recorder, true, err) : 0;
	if (!result && recorder->spawn)
		result = tally_spawn_go(recorder->spawn, recorder->target->command, err);
	bool ran = !result;
	if (!result)
		result = drain_until_end(&loop, progress, context, err);
	tally_record_enable(recorder, false, NULL);
	if (!result)
		result = tally_record_drain(recorder, true, err);
	if (!result)
		result = drain_the_rest(recorder, err);
	if (!result)
		result = tally_record_count_lost(recorder, err);
	if (ran && result < 0) {
		loop.end = TALLY_RECORD_END_OUTPUT;
		result = 0;
	}
	*end = loop.end;
	tally_record_waits_release(&loop.waits);
	fill_status(recorder);
	return result;
}

int tally_recorder_finish(struct tally_recorder *recorder, struct tally_record_status *status,
			  struct tally_error *err)
{
	int result = recorder->pipe ? 0 : tally_record_features(recorder, err);
	int finished = tally_perfdata_finish(recorder->writer, result < 0 ? NULL : err);
	double seconds = recorder->status.seconds;
	fill_status(recorder);
	recorder->status.seconds = seconds;
	*status = recorder->status;
	return result < 0 ? result : finished;
}

int tally_recorder_add_own(struct tally_recorder *recorder, const void *bytes, size_t size,
			   struct tally_record_status *status, struct tally_error *err)
{
	double seconds = recorder->status.seconds, own_cpu_s = recorder->status.own_cpu_s;
	int result = tally_perfdata_add_own(recorder->writer, bytes, size, err);
	fill_status(recorder);
	recorder->status.seconds = seconds;
	recorder->status.own_cpu_s = own_cpu_s;
	*status = recorder->status;
	return result;
}

int tally_recorder_watch(struct tally_recorder *recorder, struct tally_signals *signals, int fd, int timeout_ms)
{
	struct pollfd waits[2] = { { .fd = fd, .events = POLLIN }, { .fd = signals->fd, .events = POLLIN } };
	int ready = poll(waits, 2, timeout_ms);
	if (ready > 0 && waits[0].revents)
		return 1;
	return ready > 0 && take_signals(recorder, signals) ? -EINTR : 0;
}

const char *tally_recorder_call_graph_text(const struct tally_recorder *recorder)
{
	return recorder->call_graph_text[0] ? recorder->call_graph_text : NULL;
}

/* What interrupts us may have ended the command as well (Ctrl-C, timeout): it dies in its own time. */
static bool ends_soon(struct tally_recorder *recorder)
{
	enum { ROUNDS = 30, ROUND_MS = 10 };
	for (unsigned i = 0; i < ROUNDS && command_runs(recorder); i++) {
		poll(NULL, 0, ROUND_MS);
		reap(recorder);
	}
	return !command_runs(recorder);
}

int tally_recorder_wait(struct tally_recorder *recorder, struct tally_signals *signals, enum tally_record_end end)
{
	if (end == TALLY_RECORD_END_DURATION)
		tell_command(recorder, SIGTERM);
	for (reap(recorder); command_runs(recorder);) {
		struct pollfd wait = { .fd = signals->fd, .events = POLLIN };
		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
			return -errno;
		if (take_signals(recorder, signals))
			return ends_soon(recorder) ? 0 : -EINTR;
	}
	return 0;
}

bool tally_recorder_command_ended(const struct tally_recorder *recorder, int *wait_status)
{
	*wait_status = recorder->wait_status;
	return recorder->command_ended;
}

void tally_recorder_free(struct tally_recorder *recorder)
{
	if (!recorder)
		return;
	tally_record_close(recorder);
	tally_perfdata_writer_free(recorder->writer);
	tally_record_outer_free(recorder->outer);
	for (unsigned i = 0; i < TALLY_RECORD_CHAINS; i++)
		tally_unwind_chain_free(recorder->chains[i]);
	tally_objects_release(&recorder->objects);
	tally_tasks_release(&recorder->tasks);
	tally_arena_release(&recorder->arena);
	free(recorder);
}
