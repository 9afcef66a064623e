/* The course of a `stat`: start the command or attach, let it run, read, report.
 *
 * One poll(2) waits for everything: signals (among them the child's end) by a signalfd, the ends of attached
 * processes by their pidfds, intervals and the timeout by its own time.  Ctrl-C reaches the command by the terminal
 * itself; what was sent to tally alone (kill, timeout(1)) is passed on.
 */
#include "session/stat_run.h"

#include "base/vector.h"
#include "session/signals.h"
#include "session/spawn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD 0200 /* O_EXCL on the machines that have perf events; Linux 6.9 */
#endif

struct run {
	const struct tally_stat_options *options;
	struct tally_signals signals;
	struct tally_spawn spawn;
	struct tally_counting_options counting_options; /* with this run's command */
	struct tally_counting counting;
	struct tally_stat_report report;
	TALLY_VECTOR(struct pollfd) waits; /* the first is the signals' */
	size_t unwatched;     /* attached threads that no pidfd could be had for */
	size_t tasks_left;    /* attached tasks that are watched and have not ended */
	int64_t start_ns, end_ns;
	bool has_ended;       /* the command, or all attached tasks */
	bool should_stop;     /* interrupted, time over, intervals done */
	bool was_limited;     /* the command was asked to end, since what was asked for is counted */
	int wait_status;
	struct rusage rusage; /* of the ended command */
	struct tally_resource_usage usage_last;
	unsigned long intervals; /* that are over */
	unsigned long interval_reports;
	bool has_all_intervals;
	double reported_ns;   /* time of the last report, from the start */
};

static int64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* What the target has used since it started or was attached to. */
static struct tally_resource_usage usage_now(const struct run *run)
{
	const struct tally_target *target = run->options->target;
	struct tally_resource_usage usage = { 0 };
	if (target->all) {
		tally_resource_usage_system(&usage);
	} else if (tally_target_has_tasks(target)) {
		int result = 0;
		for (size_t i = 0; i < target->pids.count && result >= 0; i++)
			result = tally_resource_usage_add_process(&usage, target->pids.items[i]);
		for (size_t i = 0; i < target->threads.count && result >= 0; i++)
			result = tally_resource_usage_add_thread(&usage, target->threads.items[i]);
		if (result < 0)
			usage = (struct tally_resource_usage){ .source = "/proc" }; /* a sum that lacks a task is none */
	} else if (run->has_ended) {
		usage = tally_resource_usage_of(&run->rusage);
	} else if (run->spawn.pid) {
		tally_resource_usage_add_process(&usage, run->spawn.pid);
	}
	return usage;
}

static void read_counts(struct run *run)
{
	if (!tally_counting_needs_usage(&run->counting)) {
		tally_counting_read(&run->counting, NULL);
		return;
	}
	struct tally_resource_usage now = usage_now(run);
	struct tally_resource_usage since = tally_resource_usage_since(now, run->usage_last);
	tally_counting_read(&run->counting, &since);
	run->usage_last = now;
}

static void watch_task(struct run *run, pid_t pid, unsigned flags)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, flags);
	if (fd < 0 && errno == ESRCH)
		return;
	if (fd >= 0 && tally_vector_push(&run->waits, (struct pollfd){ .fd = fd, .events = POLLIN }) >= 0) {
		run->tasks_left++;
		return;
	}
	if (fd >= 0)
		close(fd);
	run->unwatched++;
}

static void watch_tasks(struct run *run)
{
	const struct tally_target *target = run->options->target;
	for (size_t i = 0; i < target->pids.count; i++)
		watch_task(run, target->pids.items[i], 0);
	for (size_t i = 0; i < target->threads.count; i++)
		watch_task(run, target->threads.items[i], PIDFD_THREAD);
}

/* Kernels without pidfds (or without them for threads): asked every tenth of a second. */
static bool unwatched_are_gone(const struct run *run)
{
	const struct tally_target *target = run->options->target;
	for (size_t i = 0; i < target->tids.count; i++)
		if (!kill(target->tids.items[i], 0) || errno == EPERM)
			return false;
	return true;
}

static void take_signal(struct run *run, const struct tally_signal *signal)
{
	if (signal->number == SIGCHLD) {
		if (run->spawn.pid && !run->has_ended &&
		    wait4(run->spawn.pid, &run->wait_status, WNOHANG, &run->rusage) == run->spawn.pid)
			run->has_ended = true;
		return;
	}
	if (signal->was_ignored)
		return;
	run->report.was_interrupted = true;
	if (!run->spawn.pid)
		run->should_stop = true;
	else if (!signal->from_terminal && !run->has_ended)
		kill(run->spawn.pid, signal->number);
}

static void take_events(struct run *run)
{
	struct tally_signal signal;
	while (tally_signals_next(&run->signals, &signal))
		take_signal(run, &signal);
	for (size_t i = 1; i < run->waits.count; i++) {
		struct pollfd *wait = &run->waits.items[i];
		if (wait->fd < 0 || !wait->revents)
			continue;
		close(wait->fd);
		wait->fd = -1;
		run->tasks_left--;
	}
	bool has_command = run->options->target->command;
	if (!has_command && tally_target_has_tasks(run->options->target) && !run->tasks_left &&
	    (!run->unwatched || unwatched_are_gone(run)))
		run->has_ended = true;
}

static int64_t next_deadline(const struct run *run)
{
	const struct tally_stat_options *o = run->options;
	int64_t deadline = INT64_MAX;
	if (o->interval_ms)
		deadline = run->start_ns + (int64_t)(run->intervals + 1) * o->interval_ms * 1000000;
	if (o->timeout_ms && run->start_ns + (int64_t)o->timeout_ms * 1000000 < deadline)
		deadline = run->start_ns + (int64_t)o->timeout_ms * 1000000;
	return deadline;
}

static void wait_for(struct run *run, int64_t deadline_ns)
{
	enum { ASK_NS = 100000000 };
	int64_t left = deadline_ns == INT64_MAX ? INT64_MAX : deadline_ns - now_ns();
	if (run->unwatched && left > ASK_NS)
		left = ASK_NS;
	if (left < 0)
		left = 0;
	struct timespec time = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
	if (ppoll(run->waits.items, run->waits.count, left == INT64_MAX ? NULL : &time, NULL) < 0)
		for (size_t i = 0; i < run->waits.count; i++)
			run->waits.items[i].revents = 0;
	take_events(run);
}

static void report(struct run *run, double at_ns, bool is_interval)
{
	struct tally_stat_report *r = &run->report;
	r->table.rows = run->counting.rows;
	r->table.count = run->options->counting.event_count;
	r->table.elapsed_ns = at_ns - run->reported_ns;
	r->timestamp_ns = at_ns;
	r->is_interval = is_interval;
	if (is_interval) {
		struct tally_arena arena = TALLY_ARENA_INIT;
		r->note_count = tally_counting_notes(&run->counting, &arena, r->notes, TALLY_STAT_NOTES_MAX);
		run->options->on_report(run->options->context, r);
		r->note_count = 0;
		tally_arena_release(&arena);
	}
	run->reported_ns = at_ns;
}

static void check_deadlines(struct run *run)
{
	const struct tally_stat_options *o = run->options;
	int64_t now = now_ns(), since_start = now - run->start_ns;
	if (o->timeout_ms && since_start >= (int64_t)o->timeout_ms * 1000000) {
		run->should_stop = true;
		return;
	}
	if (!o->interval_ms || since_start < (int64_t)(run->intervals + 1) * o->interval_ms * 1000000)
		return;
	read_counts(run);
	report(run, (double)(now_ns() - run->start_ns), true);
	/* Late ones are skipped, not caught up with. */
	run->intervals = (unsigned long)(since_start / ((int64_t)o->interval_ms * 1000000));
	if (o->interval_count && ++run->interval_reports >= o->interval_count)
		run->should_stop = run->has_all_intervals = true;
}

/* The time is over, but the command is not: it is asked to end, as timeout(1) does. */
static void end_command(struct run *run)
{
	if (!run->spawn.pid || run->has_ended)
		return;
	run->was_limited = true;
	kill(run->spawn.pid, SIGTERM);
	kill(run->spawn.pid, SIGCONT);
	while (!run->has_ended)
		wait_for(run, INT64_MAX);
}

static int start(struct run *run, struct tally_error *err)
{
	const struct tally_stat_options *o = run->options;
	bool on_command = o->target->command && !o->target->all && !tally_target_has_tasks(o->target);
	char **executed = o->target->command;
	int result = 0;
	if (o->target->command)
		result = tally_spawn_command(o->counting.provider, o->target->command, &executed, err);
	if (result >= 0 && o->target->command)
		result = tally_spawn_prepare(&run->spawn, executed, &run->signals.before, err);
	if (result < 0)
		return result;
	run->counting_options = o->counting;
	run->counting_options.target = o->target;
	run->counting_options.command_pid = on_command ? run->spawn.pid : 0;
	result = tally_counting_open(&run->counting_options, &run->counting, err);
	/* Threads made meanwhile have inherited the events; without that they are looked for. */
	while (result >= 0 && o->counting.no_inherit && tally_target_has_tasks(o->target) &&
	       tally_target_refresh(o->target) > 0)
		result = tally_counting_follow(&run->counting);
	if (result < 0)
		return result;
	if (!on_command) {
		if (tally_counting_needs_usage(&run->counting))
			run->usage_last = usage_now(run);
		tally_counting_enable(&run->counting);
	}
	run->start_ns = now_ns();
	if (o->target->command)
		result = tally_spawn_go(&run->spawn, executed, err);
	if (result >= 0 && on_command)
		run->usage_last = tally_resource_usage_of(&run->spawn.before);
	return result;
}

static int open_waits(struct run *run)
{
	tally_vector_release(&run->waits);
	if (tally_vector_push(&run->waits, (struct pollfd){ .fd = run->signals.fd, .events = POLLIN }) < 0)
		return -ENOMEM;
	if (!run->options->target->command)
		watch_tasks(run);
	return 0;
}

static void close_waits(struct run *run)
{
	for (size_t i = 1; i < run->waits.count; i++)
		if (run->waits.items[i].fd >= 0)
			close(run->waits.items[i].fd);
	tally_vector_release(&run->waits);
	run->tasks_left = run->unwatched = 0;
}

/* What the ended command used from its exec on. */
static struct tally_resource_usage command_usage(const struct run *run)
{
	return tally_resource_usage_since(tally_resource_usage_of(&run->rusage),
					  tally_resource_usage_of(&run->spawn.before));
}

static void note_status(struct run *run)
{
	struct tally_stat_report *r = &run->report;
	bool has_status = run->options->target->command && run->has_ended;
	r->exit_status = has_status ? tally_spawn_exit_status(run->wait_status) : -1;
	r->end_signal = has_status && WIFSIGNALED(run->wait_status) ? WTERMSIG(run->wait_status) : 0;
	r->was_limited = run->was_limited && !r->was_interrupted && r->end_signal == SIGTERM;
}

static void note_times(struct run *run)
{
	struct tally_stat_report *r = &run->report;
	tally_spread_add(&r->elapsed, (double)(run->end_ns - run->start_ns));
	if (!run->has_ended || !run->counting_options.command_pid || r->table.is_simulated)
		return; /* the command is the clock, not what is counted; or its times are not its own */
	struct tally_resource_usage used = command_usage(run);
	tally_spread_add(&r->user, (double)used.user_ns);
	tally_spread_add(&r->system, (double)used.system_ns);
}

/* One run from start to the last read; the counting stays open for its rows. */
static int run_once(struct run *run, struct tally_error *err)
{
	run->has_ended = run->should_stop = run->was_limited = false;
	run->intervals = 0;
	run->reported_ns = 0;
	int result = start(run, err);
	if (result >= 0)
		result = open_waits(run);
	if (result < 0)
		return result;
	take_events(run);
	while (!run->has_ended && !run->should_stop) {
		wait_for(run, next_deadline(run));
		if (!run->has_ended)
			check_deadlines(run);
	}
	end_command(run);
	run->end_ns = now_ns();
	if (!run->counting_options.command_pid)
		tally_counting_disable(&run->counting);
	read_counts(run);
	note_status(run);
	bool sees_all = run->counting_options.command_pid && run->has_ended && !run->options->counting.no_inherit &&
			!run->options->interval_ms && run->options->counting.provider == tally_provider_kernel();
	if (sees_all) {
		struct tally_resource_usage used = command_usage(run);
		tally_counting_check_coverage(&run->counting, &used);
	}
	return 0;
}

/* Adds a run's rows to the spreads that the report keeps, and puts the means into them. */
static void merge(struct tally_count *into, const struct tally_count *rows, size_t count, bool is_first)
{
	for (size_t i = 0; i < count; i++) {
		struct tally_spread spread = is_first ? (struct tally_spread){ 0 } : into[i].spread;
		bool had_figure = !is_first && into[i].state == TALLY_COUNT_OK;
		if (rows[i].state == TALLY_COUNT_OK)
			tally_spread_add(&spread, rows[i].value);
		if (rows[i].state == TALLY_COUNT_OK || !had_figure)
			into[i] = rows[i];
		into[i].spread = spread;
		if (spread.count)
			into[i].value = spread.mean;
	}
}

static void finish_report(struct run *run)
{
	struct tally_stat_report *r = &run->report;
	r->table.elapsed_ns = r->elapsed.mean;
	r->table.has_cpu_times = r->user.count > 0;
	r->table.user_ns = r->user.mean;
	r->table.system_ns = r->system.mean;
}

/* Strings of rows live in the counting's arena, which each run replaces: the last one's outlive the loop. */
static int sample_runs(struct run *run, struct tally_count *merged, int *exit_status, struct tally_error *err)
{
	const struct tally_stat_options *o = run->options;
	size_t count = o->counting.event_count;
	for (unsigned long i = 0; i < o->runs && !run->report.was_interrupted; i++) {
		tally_counting_release(&run->counting);
		int result = run_once(run, err);
		if (result < 0)
			return result;
		close_waits(run);
		for (size_t row = 0; i && row < count; row++)
			merged[row].name = run->counting.rows[row].name;
		/* A run that fails is not hidden by a later one that does not; a limit that was asked for is no failure. */
		if (run->report.exit_status > 0 && !run->report.was_limited && !*exit_status)
			*exit_status = run->report.exit_status;
		/* A run that was cut short is no sample of the whole ones. */
		if (run->report.was_interrupted && i)
			break;
		note_times(run);
		merge(merged, run->counting.rows, count, !i);
		run->report.runs++;
	}
	return 0;
}

static void add_notes_of_provider(struct run *run, struct tally_arena *arena)
{
	struct tally_stat_report *r = &run->report;
	struct tally_provider *provider = run->options->counting.provider;
	if (provider->ops->notes)
		r->note_count += provider->ops->notes(provider, r->end_signal, arena, r->notes + r->note_count,
						      TALLY_STAT_NOTES_MAX - r->note_count);
}

static int all_runs(struct run *run, struct tally_count *merged, int *exit_status, struct tally_error *err)
{
	const struct tally_stat_options *o = run->options;
	int result = sample_runs(run, merged, exit_status, err);
	if (result < 0)
		return result;
	if (o->interval_ms) {
		if (!run->has_all_intervals)
			report(run, (double)(run->end_ns - run->start_ns), true);
		return 0;
	}
	struct tally_arena arena = TALLY_ARENA_INIT;
	memcpy(run->counting.rows, merged, o->counting.event_count * sizeof(*merged));
	report(run, (double)(run->end_ns - run->start_ns), false);
	finish_report(run);
	run->report.note_count = tally_counting_notes(&run->counting, &arena, run->report.notes, TALLY_STAT_NOTES_MAX);
	add_notes_of_provider(run, &arena);
	o->on_report(o->context, &run->report);
	tally_arena_release(&arena);
	return 0;
}

int tally_stat_run(const struct tally_stat_options *options, int *exit_status, struct tally_error *err)
{
	struct run run = { .options = options, .spawn = TALLY_SPAWN_INIT };
	struct tally_count *merged = calloc(options->counting.event_count + 1, sizeof(*merged));
	if (!merged)
		return tally_error_set(err, -ENOMEM, "out of memory");
	int result = tally_signals_open(&run.signals, err);
	if (result < 0) {
		free(merged);
		return result;
	}
	*exit_status = 0;
	run.report.provider = options->counting.provider->ops->name;
	run.report.runs_wanted = options->runs;
	run.report.command = options->target->command;
	run.report.exit_status = -1;
	const struct tally_provider_ops *ops = options->counting.provider->ops;
	run.report.table.is_simulated = ops->command != NULL;
	run.report.machine = ops->machine ? ops->machine(options->counting.provider, false) : NULL;
	run.report.machine_short = ops->machine ? ops->machine(options->counting.provider, true) : NULL;
	run.report.table.cpu_count = options->target->all ? (unsigned)options->target->cpus.count : 0;
	tally_target_text(options->target, run.report.target, sizeof(run.report.target));
	result = all_runs(&run, merged, exit_status, err);
	if (result < 0)
		*exit_status = options->target->command && (result == -ENOENT || result == -EACCES || result == -ENOEXEC)
				       ? tally_spawn_failure_status(result)
				       : 1;
	close_waits(&run);
	tally_spawn_release(&run.spawn);
	tally_counting_release(&run.counting);
	tally_signals_release(&run.signals);
	free(merged);
	return result;
}
