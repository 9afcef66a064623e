/* The recorder's face (recorder.h): opening, closing, and what callers take from it.  The loop is
 * in recorder_loop.c. */
#include "recorder/recorder_state.h"

#include "abi/abi.h"
#include "machine/machine.h"
#include "session/session.h"
#include "task/jit.h"

#include <errno.h>
#include <signal.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------- */

/* Reads a task's memory.  Fails with -errno for processes that have ended and for other users'
 * tasks; their stacks end where their copies do. */
static long read_task(void *context, uint32_t tid, uint64_t address, void *out, size_t size)
{
	struct iovec local = { out, size }, remote = { (void *)(uintptr_t)address, size };
	(void)context;
	ssize_t got = process_vm_readv((pid_t)tid, &local, 1, &remote, 1, 0);
	if (got < 0 && errno == ESRCH) {
		/* a main thread that ended before others of its process has no memory of its own */
		pid_t other = tally_proc_living_thread((pid_t)tid);
		if (other && other != (pid_t)tid)
			got = process_vm_readv(other, &local, 1, &remote, 1, 0);
	}
	if (got < 0)
		return -errno;
	return got;
}

static uint64_t sample_clock_ns(void *context)
{
	(void)context;
	return tally_recorder_now_ns();
}

/* Returns NULL when there can be no excerpt. */
static struct tally_recorder_excerpt *new_excerpt(const struct tally_recorder_events *events)
{
	struct tally_recorder_excerpt *excerpt = NULL;
	const struct tally_attr **attrs = calloc(events->source_count, sizeof(*attrs));
	for (size_t i = 0; attrs && i < events->source_count; i++)
		attrs[i] = &events->sources[i].written;
	if (attrs)
		excerpt = tally_recorder_excerpt_new(attrs, events->source_count,
						     &events->source_of_id);
	free(attrs);
	return excerpt;
}

void tally_recorder_init(struct tally_recorder *recorder)
{
	struct tally_recorder_session *session = &recorder->session;
	recorder->events.session = recorder->rings.session = recorder->triggers.session = session;
	recorder->tasks.session = recorder->stacks.session = recorder->output.session = session;
	recorder->output.events = &recorder->events;
	recorder->stacks.tasks = &recorder->tasks;
	recorder->stacks.copies = &recorder->events.copies;
	recorder->stacks.output = &recorder->output;
}

/* Opens the events, and writes what stands before their records. */
static int open_recorder(struct tally_recorder *recorder, const struct tally_event_list *list,
			 int output_fd, struct tally_error *err)
{
	const struct tally_recorder_session *session = &recorder->session;
	const struct tally_recorder_options *options = &session->options;
	struct tally_recorder_events *events = &recorder->events;
	struct tally_recorder_tasks *tasks = &recorder->tasks;
	struct tally_recorder_output *output = &recorder->output;
	bool is_live = tally_provider_can(session->provider, TALLY_PROVIDER_LIVE_TASKS);
	int result = tally_recorder_make_sources(events, list, err);
	if (result < 0)
		return result;
	result = tally_recorder_open(events, &recorder->rings, err);
	if (result < 0)
		return result;
	result = tally_recorder_open_triggers(&recorder->triggers, err);
	if (result < 0)
		return result;
	tally_recorder_describe_sources(events);
	result = tally_recorder_begin_file(output, output_fd, err);
	if (result < 0)
		return result;
	if (session->is_pipe)
		result = tally_recorder_features(tasks, output, err);
	if (result < 0)
		return result;
	if (options->keeps_excerpt && !session->is_pipe && !options->next_output &&
	    !options->take_sample)
		output->excerpt = new_excerpt(events);
	/* Without one of these the recorder works as well: stacks are cut, or places have no
	 * names. */
	tasks->objects.is_live = is_live;
	if (is_live && (events->unwinds || events->completes))
		tasks->objects.live_jits = tally_live_jits_new();
	result = tally_recorder_synthesize(tasks, output, err);
	if (result < 0)
		return result;
	if (is_live && events->unwinds)
		recorder->stacks.outer = tally_recorder_outer_new(read_task, sample_clock_ns, NULL);
	if (is_live && (events->unwinds || events->completes))
		tasks->objects.made_code = tally_made_code_new(read_task, NULL);
	return 0;
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
	recorder->session = (struct tally_recorder_session){ .provider = provider,
							     .target = target,
							     .options = *options,
							     .spawn = spawn,
							     .is_pipe = pipe,
							     .notes = notes };
	tally_recorder_init(recorder);
	int result = open_recorder(recorder, events, output_fd, err);
	if (result < 0) {
		tally_recorder_free(recorder);
		return result;
	}
	*out = recorder;
	return 0;
}

/* ---- the end ------------------------------------------------------------- */

int tally_recorder_finish(struct tally_recorder *recorder, struct tally_recorder_status *status,
			  struct tally_error *err)
{
	return tally_recorder_end_file(recorder, status, err);
}

int tally_recorder_add_own(struct tally_recorder *recorder, const void *bytes, size_t size,
			   struct tally_recorder_status *status, struct tally_error *err)
{
	struct tally_recorder_status *current = &recorder->session.status;
	double seconds = current->seconds, own_cpu_s = current->own_cpu_s;
	int result = tally_perfdata_add_own(recorder->output.writer, bytes, size, err);
	tally_recorder_fill_status(&recorder->output);
	current->seconds = seconds;
	current->own_cpu_s = own_cpu_s;
	*status = *current;
	return result;
}

int tally_recorder_wait(struct tally_recorder *recorder, struct tally_signals *signals,
			enum tally_recorder_end end)
{
	return tally_recorder_await_command(&recorder->session, signals, end);
}

int tally_recorder_watch(struct tally_recorder *recorder, struct tally_signals *signals, int fd,
			 int timeout_ms)
{
	struct pollfd waits[2] = { { .fd = fd, .events = POLLIN },
				   { .fd = signals->fd, .events = POLLIN } };
	int ready = poll(waits, 2, timeout_ms);
	if (ready > 0 && waits[0].revents)
		return 1;
	if (ready > 0 && tally_recorder_take_signals(&recorder->session, signals))
		return -EINTR;
	return 0;
}

const char *tally_recorder_call_graph_text(const struct tally_recorder *recorder)
{
	if (!recorder->events.call_graph_text[0])
		return NULL;
	return recorder->events.call_graph_text;
}

uint32_t tally_recorder_copy_bytes(const struct tally_recorder *recorder)
{
	const struct tally_recorder_events *events = &recorder->events;
	if (events->copies.count)
		return events->copies.sizes[events->copies.now];
	for (size_t i = 0; i < events->source_count; i++)
		if (events->sources[i].unwinds)
			return events->sources[i].attr.sample_stack_user;
	return 0;
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
	double period_s = (double)attr->sample_period / 1e9;
	if (attr->flags & TALLY_ATTR_FREQ)
		period_s = 1 / (double)attr->sample_period;
	if (period_s < in_time_s)
		return 0;
	return period_s;
}

bool tally_recorder_coverage(const struct tally_recorder *recorder, double *sampled_s,
			     double *used_s)
{
	const struct tally_recorder_session *session = &recorder->session;
	const struct tally_recorder_options *options = &session->options;
	bool was_on = !(options->delay_s > 0) && !options->range_count && !options->starts_off &&
		      !options->control;
	bool is_alone = recorder->events.source_count == 2; /* with the side-band */
	if (!session->command_ended || !tally_recorder_follows_command(session) || !is_alone ||
	    !was_on || options->no_inherit || options->overwrite ||
	    !tally_provider_can(session->provider, TALLY_PROVIDER_COMMAND_TIME))
		return false;
	double period_s = clock_period_s(&recorder->events.sources[0].attr);
	*sampled_s = (double)session->status.weight / 1e9 + (double)session->status.lost * period_s;
	*used_s = seconds_of(session->command_used.ru_utime) +
		  seconds_of(session->command_used.ru_stime);
	return period_s > 0;
}

pid_t tally_recorder_survivor(const struct tally_recorder *recorder, char name[TALLY_PROC_COMM_MAX])
{
	const struct tally_recorder_session *session = &recorder->session;
	const struct tally_tasks *tasks = &recorder->tasks.known;
	if (!session->command_ended || !tally_recorder_follows_command(session))
		return 0;
	for (size_t i = 0; i < tasks->threads.count; i++) {
		pid_t pid = (pid_t)tasks->threads.items[i].pid;
		if (pid > 0 && !kill(pid, 0) &&
		    tally_proc_comm(pid, name, TALLY_PROC_COMM_MAX) >= 0)
			return pid;
	}
	return 0;
}

void tally_recorder_take_perf_maps(struct tally_recorder *recorder, struct tally_perf_maps *out)
{
	*out = recorder->tasks.perf_maps;
	recorder->tasks.perf_maps = (struct tally_perf_maps){ 0 };
}

void tally_recorder_take_jit_files(struct tally_recorder *recorder, struct tally_jit_files *out)
{
	*out = recorder->tasks.jit_files;
	recorder->tasks.jit_files = (struct tally_jit_files){ 0 };
}

void tally_recorder_take_excerpt(struct tally_recorder *recorder, struct tally_buffer *out)
{
	*out = (struct tally_buffer){ 0 };
	if (recorder->output.excerpt)
		tally_recorder_excerpt_take(recorder->output.excerpt, out);
}

int tally_recorder_take_files(struct tally_recorder *recorder, struct tally_objects *out)
{
	return tally_objects_hand_over(&recorder->tasks.objects, &recorder->tasks.known, out);
}

/* ---- a loop of the caller's ----------------------------------------------- */

int tally_recorder_begin(struct tally_recorder *recorder, struct tally_error *err)
{
	const struct tally_recorder_session *session = &recorder->session;
	int result = 0;
	recorder->session.start_ns = tally_recorder_now_ns();
	if (!(recorder->events.sources[0].attr.flags & TALLY_ATTR_ENABLE_ON_EXEC))
		result = tally_recorder_enable(&recorder->events, true, err);
	if (!result && session->spawn)
		result = tally_spawn_go(session->spawn, session->target->command, err);
	return result;
}

int tally_recorder_look(struct tally_recorder *recorder, struct tally_recorder_status *status,
			struct tally_error *err)
{
	int result = tally_recorder_drain(recorder, false, err);
	if (!result)
		tally_recorder_check_online(&recorder->events, &recorder->rings, -1);
	tally_recorder_fill_status(&recorder->output);
	*status = recorder->session.status;
	return result;
}

struct tally_tasks *tally_recorder_tasks(struct tally_recorder *recorder)
{
	return &recorder->tasks.known;
}

/* ---- closing ------------------------------------------------------------- */

static void close_recorder(struct tally_recorder *recorder)
{
	tally_recorder_close(&recorder->events, &recorder->rings);
	tally_recorder_close_triggers(&recorder->triggers);
}

static bool takes_long(const struct tally_recorder *recorder)
{
	const struct tally_recorder_events *events = &recorder->events;
	size_t count = 0;
	for (size_t i = 0; i + 1 < events->source_count; i++)
		count += events->sources[i].event->kind == TALLY_EVENT_TRACEPOINT;
	return count >= TALLY_CLOSE_APART_MIN && events->handles.count &&
	       tally_provider_can(recorder->session.provider, TALLY_PROVIDER_SLOW_CLOSE);
}

void tally_recorder_close_apart(struct tally_recorder *recorder)
{
	if (!recorder || !takes_long(recorder))
		return;
	/* The kernel's handles are descriptors. */
	size_t count = recorder->events.handles.count;
	int *descriptors = malloc(count * sizeof(*descriptors));
	for (size_t i = 0; descriptors && i < count; i++)
		descriptors[i] = recorder->events.handles.items[i].handle;
	int gate = -1;
	if (descriptors)
		gate = tally_close_apart(descriptors, count);
	close_recorder(recorder);
	if (gate >= 0)
		close(gate);
	free(descriptors);
}

void tally_recorder_free(struct tally_recorder *recorder)
{
	if (!recorder)
		return;
	close_recorder(recorder);
	tally_recorder_output_release(&recorder->output);
	tally_recorder_stacks_release(&recorder->stacks);
	tally_recorder_tasks_release(&recorder->tasks);
	tally_buffer_release(&recorder->history);
	tally_arena_release(&recorder->session.arena);
	free(recorder);
}
