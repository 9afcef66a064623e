/* Runs `stat`: starts the command or attaches, lets it run, reads, reports.
 *
 * One poll(2) waits for everything: signals (including the child's end), commands and CPUs through
 * the session's inputs, the ends of attached processes by their pidfds, intervals and the timeout by
 * its timeout.  The terminal sends
 * Ctrl-C to the command directly; a signal that was sent to tally alone (kill, timeout(1)) is
 * passed on.
 */
#include "counting/stat_run.h"

#include "base/text.h"
#include "base/vector.h"
#include "counting/pass_check.h"
#include "machine/machine.h"
#include "session/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD 0200 /* O_EXCL on machines that have perf events; since Linux 6.9 */
#endif

/* The descriptors that poll(2) waits for. */
struct waits {
	TALLY_VECTOR(struct pollfd) polls; /* WAIT_INPUTS, then the tasks' */
	struct tally_session_inputs inputs;
	size_t unwatched;                  /* attached threads without a pidfd */
	size_t tasks_left;                 /* attached tasks that are watched and have not ended */
};

enum { WAIT_INPUTS, WAIT_TASKS };

/* Resource usage at the start of counting, and at the last reading. */
struct usage_span {
	struct tally_resource_usage first, last;
};

struct run {
	const struct tally_stat_options *options;
	struct tally_signals signals;
	struct tally_spawn spawn;
	struct tally_counting_options counting_options; /* with this run's command */
	struct tally_counting counting;
	struct tally_stat_report report;
	struct waits waits;
	int64_t start_ns, end_ns; /* start: of counting */
	int64_t enable_at_ns;     /* INT64_MAX: not by time */
	bool has_ended;           /* the command, or all attached tasks */
	bool should_stop;         /* interrupted, time over, or all intervals done */
	/* tally told the command to end, because the requested time or intervals are over */
	bool was_limited;
	bool failed_to_exec;
	int wait_status;
	struct rusage rusage;         /* of the ended command */
	struct usage_span usage;      /* of the target, in place of refused events */
	struct usage_span tools;      /* of the tasks or the command, for user_time, system_time */
	double switches, preemptions; /* of the ended commands, summed over all runs */
	unsigned long failed_runs;    /* runs whose command failed */
	int pass;                     /* of this run */
	struct tally_pass_check check;
	unsigned long intervals;      /* intervals that are over */
	unsigned long interval_reports;
	bool has_all_intervals;
	double reported_ns; /* time of the last report, from the start */
	int64_t slice_at_ns, slice_ns; /* the next slice, and the time between two; 0: none */
};

static int64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* ---- resource usage ------------------------------------------------------ */

/* Returns what the attached tasks, or otherwise the command, have used since they started. */
static struct tally_resource_usage usage_of_tasks(const struct run *run)
{
	const struct tally_target *target = run->options->target;
	struct tally_resource_usage usage = { 0 };
	if (tally_target_has_tasks(target)) {
		int result = 0;
		for (size_t i = 0; i < target->pids.count && result >= 0; i++)
			result = tally_resource_usage_add_process(&usage, target->pids.items[i]);
		for (size_t i = 0; i < target->threads.count && result >= 0; i++)
			result = tally_resource_usage_add_thread(&usage, target->threads.items[i]);
		if (result < 0)
			/* a sum that lacks a task is useless */
			usage = (struct tally_resource_usage){ .source = "/proc" };
	} else if (run->has_ended) {
		usage = tally_resource_usage_of(&run->rusage);
	} else if (run->spawn.pid) {
		tally_resource_usage_add_process(&usage, run->spawn.pid);
	}
	return usage;
}

/* Returns what the target has used since it started or was attached to. */
static struct tally_resource_usage usage_now(const struct run *run)
{
	const struct tally_target *target = run->options->target;
	struct tally_resource_usage usage = { 0 };
	if (!target->all && !target->every_thread)
		return usage_of_tasks(run);
	tally_resource_usage_system(&usage);
	return usage;
}

/* ---- tool events --------------------------------------------------------- */

/* perf's tool events are times that need no counter, as rows among the counts.
 *
 * duration_time is the time of the run or the interval.  user_time and system_time are those of the
 * attached tasks, or otherwise of the command.  This applies even when whole CPUs are counted (as
 * in perf); then the row says so.  A command's times are not known before its end, because /proc
 * lacks the children that it has not waited for.
 */

static bool is_tool(const struct run *run, size_t event, enum tally_tool tool)
{
	const struct tally_event *e = &run->options->counting.events[event];
	return e->kind == TALLY_EVENT_TOOL && e->attr.config == tool;
}

static bool needs_cpu_times(const struct run *run)
{
	for (size_t i = 0; i < run->options->counting.event_count; i++)
		if (is_tool(run, i, TALLY_TOOL_USER_TIME) ||
		    is_tool(run, i, TALLY_TOOL_SYSTEM_TIME))
			return true;
	return false;
}

/* Begins counting.  Usage up to `first` is not counted; NULL: up to now. */
static void begin_tools(struct run *run, const struct rusage *first)
{
	bool is_of_command = first && !tally_target_has_tasks(run->options->target);
	if (first && !is_of_command)
		return; /* began when the tasks were attached to */
	if (!needs_cpu_times(run))
		return;
	if (is_of_command)
		run->tools.first = tally_resource_usage_of(first);
	else
		run->tools.first = usage_of_tasks(run);
	run->tools.last = run->tools.first;
}

static void put_tool(struct tally_event_count *row, uint64_t value_ns, const char *source)
{
	row->reason = NULL;
	row->state = TALLY_COUNT_OK;
	row->value = (double)value_ns;
	row->raw = row->enabled_ns = row->running_ns = value_ns;
	row->source = source;
}

/* Returns why there are no CPU times, or whose they are; NULL: the counted target's. */
static const char *tool_remark(const struct run *run, const struct tally_resource_usage *used)
{
	const struct tally_target *target = run->options->target;
	if (tally_target_has_tasks(target) && !used->has_times)
		return "the tasks have ended";
	if (tally_target_has_tasks(target))
		return NULL;
	if (!target->command)
		return "measured only for a command or tasks";
	if (!used->has_times)
		return "measured when the command has ended: --summary";
	if (target->all)
		return "measured only for the command";
	return NULL;
}

static void fill_tools(struct run *run, const struct tally_resource_usage *used, double elapsed_ns)
{
	for (size_t i = 0; i < run->options->counting.event_count && run->counting.part_count;
	     i++) {
		struct tally_event_count *row = &run->counting.rows[i];
		bool is_user = is_tool(run, i, TALLY_TOOL_USER_TIME);
		if (is_tool(run, i, TALLY_TOOL_DURATION_TIME))
			put_tool(row, (uint64_t)elapsed_ns, "clock");
		if (!is_user && !is_tool(run, i, TALLY_TOOL_SYSTEM_TIME))
			continue;
		if (used->has_times)
			put_tool(row, is_user ? used->user_ns : used->system_ns, used->source);
		row->reason = tool_remark(run, used);
	}
}

/* Fills the rows of tool events, which reading has left out, with the time since the last call. */
static void read_tools(struct run *run, double elapsed_ns)
{
	struct tally_resource_usage used = { 0 };
	bool is_part = run->options->interval_ms && !tally_target_has_tasks(run->options->target);
	if (needs_cpu_times(run)) {
		struct tally_resource_usage now = usage_of_tasks(run);
		used = tally_resource_usage_since(now, run->tools.last);
		run->tools.last = now;
		used.has_times &= !is_part;
	}
	fill_tools(run, &used, elapsed_ns);
}

/* The same since the start. */
static void total_tools(struct run *run, double elapsed_ns)
{
	struct tally_resource_usage used = tally_resource_usage_since(run->tools.last,
								      run->tools.first);
	fill_tools(run, &used, elapsed_ns);
}

/* ---- reading and reporting ----------------------------------------------- */

/* Handles CPUs that came online or went offline since the last call. */
static void check_online(struct run *run)
{
	struct tally_cpu_list online;
	if (!run->options->target->all ||
	    !tally_provider_can(run->options->counting.provider, TALLY_PROVIDER_HOTPLUG))
		return;
	if (tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL) < 0)
		return;
	tally_counting_set_online(&run->counting, &online);
	tally_cpu_list_release(&online);
}

static void read_counts(struct run *run)
{
	if (!tally_counting_needs_usage(&run->counting)) {
		tally_counting_read(&run->counting, NULL);
		return;
	}
	struct tally_resource_usage now = usage_now(run);
	struct tally_resource_usage since = tally_resource_usage_since(now, run->usage.last);
	tally_counting_read(&run->counting, &since);
	run->usage.last = now;
}

static void add_note_of_caller(struct run *run)
{
	struct tally_stat_report *r = &run->report;
	if (run->options->note && r->note_count < TALLY_STAT_NOTES_MAX)
		r->notes[r->note_count++] = run->options->note;
}

static void report(struct run *run, double at_ns, bool is_interval)
{
	struct tally_stat_report *r = &run->report;
	r->table.rows = run->counting.rows;
	r->parts = run->counting.parts;
	r->part_count = run->counting.part_count;
	r->table.count = run->options->counting.event_count;
	r->table.elapsed_ns = at_ns - run->reported_ns;
	r->timestamp_ns = at_ns;
	r->is_interval = is_interval;
	if (is_interval) {
		struct tally_arena arena = TALLY_ARENA_INIT;
		r->note_count = tally_counting_notes(&run->counting, &arena, r->notes,
						     TALLY_STAT_NOTES_MAX);
		add_note_of_caller(run);
		run->options->on_report(run->options->context, r);
		r->note_count = 0;
		tally_arena_release(&arena);
	}
	run->reported_ns = at_ns;
}

/* Reads and reports. */
static void report_interval(struct run *run)
{
	check_online(run);
	read_counts(run);
	double at_ns = (double)(now_ns() - run->start_ns);
	read_tools(run, at_ns - run->reported_ns);
	report(run, at_ns, true);
}

/* ---- signals and commands ------------------------------------------------ */

static void say(struct run *run, const char *format, const char *argument)
	__attribute__((format(printf, 2, 0)));

static void say(struct run *run, const char *format, const char *argument)
{
	char text[512];
	snprintf(text, sizeof(text), format, argument);
	if (run->options->on_message)
		run->options->on_message(run->options->context, text);
}

static void take_signal(void *context, const struct tally_signal *signal)
{
	struct run *run = context;
	if (signal->number == SIGCHLD) {
		if (run->spawn.pid && !run->has_ended &&
		    wait4(run->spawn.pid, &run->wait_status, WNOHANG, &run->rusage) ==
			    run->spawn.pid)
			run->has_ended = true;
		return;
	}
	if (signal->number == SIGUSR1 || signal->number == SIGUSR2)
		say(run, "%s is ignored", signal->number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
	if (!signal->ends)
		return;
	run->report.was_interrupted = true;
	if (!run->spawn.pid)
		run->should_stop = true;
	else if (!signal->from_terminal && !run->has_ended)
		kill(run->spawn.pid, signal->passed_on);
}

static void switch_events(struct run *run, const char *name, bool enable)
{
	if (*name && !tally_counting_control_named(&run->counting, name, enable))
		say(run, "control: there is no event '%s'", name);
	else if (!*name && enable)
		tally_counting_enable(&run->counting);
	else if (!*name)
		tally_counting_disable(&run->counting);
	if (run->options->interval_ms) /* report what was counted so far, in the state before */
		report_interval(run);
}

static int run_command(void *context, const struct tally_control_command *command,
		       struct tally_error *err)
{
	(void)err;
	struct run *run = context;
	switch (command->verb) {
	case TALLY_CONTROL_ENABLE:
	case TALLY_CONTROL_DISABLE:
		switch_events(run, command->argument, command->verb == TALLY_CONTROL_ENABLE);
		break;
	case TALLY_CONTROL_STOP:
		run->should_stop = true;
		break;
	case TALLY_CONTROL_EVLIST:
		for (size_t i = 0; i < run->options->counting.event_count; i++)
			say(run, "%s", run->options->counting.events[i].name);
		break;
	case TALLY_CONTROL_SNAPSHOT:
		say(run, "control: '%s' is for recordings", "snapshot");
		break;
	case TALLY_CONTROL_UNKNOWN:
		say(run, "control: unknown command '%s' (enable, disable, ping, evlist, stop)",
		    command->argument);
		break;
	default:
		break;
	}
	return run->should_stop;
}

/* ---- waiting ------------------------------------------------------------- */

static void watch_task(struct waits *waits, pid_t pid, unsigned flags)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, flags);
	if (fd < 0 && errno == ESRCH)
		return;
	if (fd >= 0 &&
	    tally_vector_push(&waits->polls, (struct pollfd){ .fd = fd, .events = POLLIN }) >= 0) {
		waits->tasks_left++;
		return;
	}
	if (fd >= 0)
		close(fd);
	waits->unwatched++;
}

static void watch_tasks(struct waits *waits, const struct tally_target *target)
{
	for (size_t i = 0; i < target->pids.count; i++)
		watch_task(waits, target->pids.items[i], 0);
	for (size_t i = 0; i < target->threads.count; i++)
		watch_task(waits, target->threads.items[i], PIDFD_THREAD);
}

/* True if the tasks without a pidfd have ended.  Old kernels have no pidfds (or none for threads),
 * so this is checked every tenth of a second. */
static bool unwatched_are_gone(const struct run *run)
{
	const struct tally_target *target = run->options->target;
	for (size_t i = 0; i < target->tids.count; i++)
		if (!kill(target->tids.items[i], 0) || errno == EPERM)
			return false;
	return true;
}

static void take_events(struct run *run)
{
	static const struct tally_session_handlers handlers = { take_signal, run_command };
	tally_session_inputs_take(&run->waits.inputs, &handlers, run, NULL);
	if (tally_session_inputs_cpus_changed(&run->waits.inputs))
		check_online(run);
	for (size_t i = WAIT_TASKS; i < run->waits.polls.count; i++) {
		struct pollfd *wait = &run->waits.polls.items[i];
		if (wait->fd < 0 || !wait->revents)
			continue;
		close(wait->fd);
		wait->fd = -1;
		run->waits.tasks_left--;
	}
	const struct tally_target *target = run->options->target;
	if (!target->command && !target->every_thread && tally_target_has_tasks(target) &&
	    !run->waits.tasks_left && (!run->waits.unwatched || unwatched_are_gone(run)))
		run->has_ended = true;
}

/* Sleeps until something happens or the deadline comes, and handles what happened. */
static void wait_until(struct run *run, int64_t deadline_ns)
{
	enum { ASK_NS = 100000000 };
	int64_t left = INT64_MAX;
	if (deadline_ns != INT64_MAX)
		left = deadline_ns - now_ns();
	if (run->waits.unwatched && left > ASK_NS)
		left = ASK_NS;
	if (left < 0)
		left = 0;
	struct timespec time = { .tv_sec = left / 1000000000, .tv_nsec = left % 1000000000 };
	if (ppoll(run->waits.polls.items, run->waits.polls.count, left == INT64_MAX ? NULL : &time,
		  NULL) < 0)
		for (size_t i = 0; i < run->waits.polls.count; i++)
			run->waits.polls.items[i].revents = 0;
	take_events(run);
}

static int open_waits(struct run *run, struct tally_error *err)
{
	const struct tally_target *target = run->options->target;
	bool follows_cpus = target->all && tally_provider_can(run->options->counting.provider,
							      TALLY_PROVIDER_HOTPLUG);
	int result = tally_session_inputs_open(&run->waits.inputs, &run->signals,
					       run->options->control, follows_cpus, err);
	if (result < 0)
		return result;
	struct pollfd inputs = { .fd = run->waits.inputs.fd, .events = POLLIN };
	if (tally_vector_push(&run->waits.polls, inputs) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	if (!target->command && !target->every_thread)
		watch_tasks(&run->waits, target);
	return 0;
}

static void close_waits(struct waits *waits)
{
	for (size_t i = WAIT_TASKS; i < waits->polls.count; i++)
		if (waits->polls.items[i].fd >= 0)
			close(waits->polls.items[i].fd);
	tally_vector_release(&waits->polls);
	tally_session_inputs_close(&waits->inputs);
	waits->tasks_left = waits->unwatched = 0;
}

/* ---- one run ------------------------------------------------------------- */

static void begin_counting(struct run *run)
{
	if (tally_counting_needs_usage(&run->counting))
		run->usage.first = run->usage.last = usage_now(run);
	begin_tools(run, NULL);
	tally_counting_enable(&run->counting);
	run->start_ns = now_ns();
	run->enable_at_ns = INT64_MAX;
}

/* True once the delay, if any, is over. */
static bool has_begun(const struct run *run)
{
	return run->enable_at_ns == INT64_MAX;
}

/* Slices show how far scaled counts may be from the truth.  Reading costs time: with many events or
 * CPUs there are fewer slices.  As long as no event shares its counter, the next look comes later and
 * later. */
static void take_slice(struct run *run)
{
	enum {
		FIRST_NS = 20000000,
		LATEST_NS = 1000000000,
		PART = 200 /* at most 0.5 % of the time */
	};
	int64_t before = now_ns();
	bool is_shared = tally_counting_slice(&run->counting);
	int64_t now = now_ns(), least = (now - before) * PART;
	if (!is_shared)
		run->slice_ns *= 2;
	else
		run->slice_ns = FIRST_NS;
	if (run->slice_ns < least)
		run->slice_ns = least;
	if (run->slice_ns > LATEST_NS)
		run->slice_ns = LATEST_NS;
	run->slice_at_ns = now + run->slice_ns;
}

/* True if an event is counted by hardware, and may have to share its counter. */
static bool may_share(const struct run *run)
{
	for (size_t i = 0; i < run->options->counting.event_count; i++) {
		uint32_t type = run->options->counting.events[i].attr.type;
		if (run->counting.handles.events[i].was_open && type != TALLY_TYPE_SOFTWARE &&
		    type != TALLY_TYPE_TRACEPOINT && type != TALLY_TYPE_BREAKPOINT)
			return true;
	}
	return false;
}

static int64_t next_deadline(const struct run *run)
{
	const struct tally_stat_options *o = run->options;
	int64_t deadline = run->enable_at_ns;
	if (!has_begun(run))
		return deadline;
	if (o->interval_ms)
		deadline = run->start_ns + (int64_t)(run->intervals + 1) * o->interval_ms * 1000000;
	if (o->timeout_ms && run->start_ns + (int64_t)o->timeout_ms * 1000000 < deadline)
		deadline = run->start_ns + (int64_t)o->timeout_ms * 1000000;
	if (run->slice_ns && run->slice_at_ns < deadline)
		deadline = run->slice_at_ns;
	return deadline;
}

static void check_deadlines(struct run *run)
{
	const struct tally_stat_options *o = run->options;
	int64_t now = now_ns(), since_start = now - run->start_ns;
	if (!has_begun(run)) {
		if (now >= run->enable_at_ns)
			begin_counting(run);
		return;
	}
	if (o->timeout_ms && since_start >= (int64_t)o->timeout_ms * 1000000) {
		run->should_stop = true;
		return;
	}
	if (run->slice_ns && now >= run->slice_at_ns)
		take_slice(run);
	if (!o->interval_ms ||
	    since_start < (int64_t)(run->intervals + 1) * o->interval_ms * 1000000)
		return;
	report_interval(run);
	/* Skip intervals that are late; don't catch up. */
	run->intervals = (unsigned long)(since_start / ((int64_t)o->interval_ms * 1000000));
	if (o->interval_count && ++run->interval_reports >= o->interval_count)
		run->should_stop = run->has_all_intervals = true;
}

/* Ends the command, as timeout(1) does, when the time is over. */
static void end_command(struct run *run)
{
	if (!run->spawn.pid || run->has_ended)
		return;
	run->was_limited = true;
	kill(run->spawn.pid, SIGTERM);
	kill(run->spawn.pid, SIGCONT);
	while (!run->has_ended)
		wait_until(run, INT64_MAX);
}

static bool is_exec_failure(int code)
{
	return code == -ENOENT || code == -EACCES || code == -ENOEXEC;
}

static int start(struct run *run, struct tally_error *err)
{
	const struct tally_stat_options *o = run->options;
	bool on_command = o->target->command && !o->target->all &&
			  !tally_target_has_tasks(o->target);
	char **executed = o->target->command;
	int result = 0;
	if (o->target->command)
		result = tally_spawn_command(o->counting.provider, o->target->command, &executed,
					     err);
	run->failed_to_exec = is_exec_failure(result);
	if (result >= 0 && o->target->command)
		result = tally_spawn_prepare(&run->spawn, o->counting.provider, executed,
					     &run->signals.before, err);
	if (result < 0)
		return result;
	run->counting_options = o->counting;
	run->counting_options.target = o->target;
	run->counting_options.pass = run->pass;
	run->counting_options.command_pid = on_command ? run->spawn.pid : 0;
	run->counting_options.starts_disabled = o->delay_ms != 0;
	result = tally_counting_open(&run->counting_options, &run->counting, err);
	/* With inheritance, new threads have inherited the events; without it, list them again. */
	while (result >= 0 && o->counting.no_inherit && tally_target_has_tasks(o->target) &&
	       tally_target_refresh(o->target) > 0)
		result = tally_counting_follow(&run->counting);
	if (result < 0)
		return result;
	if (!on_command && !o->delay_ms)
		begin_counting(run);
	run->start_ns = now_ns();
	if (o->delay_ms > 0)
		run->enable_at_ns = run->start_ns + (int64_t)o->delay_ms * 1000000;
	if (o->target->command)
		result = tally_spawn_go(&run->spawn, executed, err);
	run->failed_to_exec = is_exec_failure(result);
	if (result >= 0 && o->target->command && !o->delay_ms)
		begin_tools(run, &run->spawn.before);
	if (result >= 0 && on_command)
		run->usage.first = run->usage.last = tally_resource_usage_of(&run->spawn.before);
	return result;
}

/* Returns what the ended command used from its exec on. */
static struct tally_resource_usage command_usage(const struct run *run)
{
	return tally_resource_usage_since(tally_resource_usage_of(&run->rusage),
					  tally_resource_usage_of(&run->spawn.before));
}

static void note_status(struct run *run)
{
	struct tally_stat_report *r = &run->report;
	bool has_status = run->options->target->command && run->has_ended;
	r->exit_status = -1;
	if (has_status)
		r->exit_status = tally_spawn_exit_status(run->wait_status);
	r->end_signal = 0;
	if (has_status && WIFSIGNALED(run->wait_status))
		r->end_signal = WTERMSIG(run->wait_status);
	r->was_limited = run->was_limited && !r->was_interrupted && r->end_signal == SIGTERM;
}

static void note_times(struct run *run)
{
	struct tally_stat_report *r = &run->report;
	tally_spread_add(&r->elapsed, (double)(run->end_ns - run->start_ns));
	if (!run->has_ended || !run->counting_options.command_pid || r->table.is_simulated)
		/* the command is only the clock for other targets, or its times include the
		 * simulation's */
		return;
	struct tally_resource_usage used = command_usage(run);
	tally_spread_add(&r->user, (double)used.user_ns);
	tally_spread_add(&r->system, (double)used.system_ns);
	run->switches += (double)used.switches;
	run->preemptions += (double)used.preemptions;
}

/* Returns the CPU time of the ended command in ns, negative if unknown. */
static double pass_time(const struct run *run)
{
	if (!run->has_ended || !run->counting_options.command_pid)
		return -1;
	struct tally_resource_usage used = command_usage(run);
	return (double)used.user_ns + (double)used.system_ns;
}

/* Makes one run from the start to the last read.  The counting stays open, because its rows are
 * needed. */
static int run_once(struct run *run, struct tally_error *err)
{
	run->has_ended = run->should_stop = run->was_limited = false;
	run->intervals = 0;
	run->reported_ns = 0;
	run->enable_at_ns = INT64_MAX;
	int result = start(run, err);
	if (result >= 0)
		result = open_waits(run, err);
	if (result < 0)
		return result;
	if (run->options->on_start)
		run->options->on_start(run->options->context);
	take_events(run);
	run->slice_ns = may_share(run) ? 20000000 : 0;
	run->slice_at_ns = run->start_ns + run->slice_ns;
	while (!run->has_ended && !run->should_stop) {
		wait_until(run, next_deadline(run));
		if (!run->has_ended)
			check_deadlines(run);
	}
	end_command(run);
	run->end_ns = now_ns();
	if (!run->counting_options.command_pid)
		tally_counting_disable(&run->counting);
	check_online(run);
	read_counts(run);
	read_tools(run, (double)(run->end_ns - run->start_ns) - run->reported_ns);
	note_status(run);
	bool sees_all = run->counting_options.command_pid && run->has_ended &&
			!run->options->counting.no_inherit && !run->options->interval_ms &&
			!run->options->delay_ms && !run->options->control &&
			tally_provider_can(run->options->counting.provider,
					   TALLY_PROVIDER_COMMAND_TIME);
	if (sees_all) {
		struct tally_resource_usage used = command_usage(run);
		tally_counting_check_coverage(&run->counting, &used);
	}
	return 0;
}

/* ---- all runs ------------------------------------------------------------ */

/* The rows of all runs. */
struct merged {
	struct tally_event_count *rows;
	size_t count;
	struct tally_arena arena; /* names, when the runs count different events */
};

/* Adds a run's rows to the spreads in the report, and sets the rows' values to the means.  Rows of
 * another pass only get their place in the first run. */
static void merge(const struct run *run, struct merged *merged, bool is_first)
{
	const struct tally_counting_options *o = &run->counting_options;
	const struct tally_event_count *rows = run->counting.rows;
	struct tally_event_count *into = merged->rows;
	for (size_t i = 0; i < merged->count; i++) {
		struct tally_spread spread = { 0 };
		size_t event = i % o->event_count;
		const char *name = o->events[event].name;
		if (!tally_counting_is_in_pass(o, event)) {
			if (is_first) {
				into[i] = rows[i];
				into[i].name = name;
				into[i].state = TALLY_COUNT_NOT_COUNTED;
				into[i].reason = "interrupted before the end of the run that counts it";
			}
			continue;
		}
		if (!is_first)
			spread = into[i].spread;
		bool had_figure = !is_first && into[i].state == TALLY_COUNT_OK;
		const char *reason = rows[i].reason;
		name = rows[i].name;
		if (o->passes) /* the next pass does not make these texts again */
			name = tally_text_or(tally_arena_string(&merged->arena, name),
					     o->events[event].name);
		if (o->passes && reason)
			reason = tally_arena_string(&merged->arena, reason);
		if (rows[i].state == TALLY_COUNT_OK)
			tally_spread_add(&spread, rows[i].value);
		if (rows[i].state == TALLY_COUNT_OK || !had_figure) {
			into[i] = rows[i];
			into[i].reason = reason;
		}
		into[i].name = name;
		into[i].pass = o->passes ? o->passes->pass_of[event] : 0;
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
	if (r->user.count) {
		r->table.switches = run->switches / (double)r->user.count;
		r->table.preemptions = run->preemptions / (double)r->user.count;
	}
}

/* Makes the array of merged rows.  The parts of the target come first; all runs have them.  CPUs
 * that came online during one run are left out. */
static int fit_merged(const struct run *run, struct merged *merged)
{
	size_t count = run->counting.part_count * run->options->counting.event_count;
	if (merged->rows && count >= merged->count)
		return 0;
	merged->count = count;
	if (!merged->rows)
		merged->rows = calloc(count + 1, sizeof(*merged->rows));
	if (!merged->rows)
		return -ENOMEM;
	return 0;
}

/* Makes all runs: with passes, each pass in turn, that many times.  The rows' strings are in the
 * counting's arena, which each run replaces; the last run's strings survive the loop. */
static int sample_runs(struct run *run, struct merged *merged, int *exit_status,
		       struct tally_error *err)
{
	const struct tally_stat_options *o = run->options;
	unsigned long passes = 1;
	if (o->counting.passes)
		passes = (unsigned long)o->counting.passes->count;
	for (unsigned long i = 0; i < o->runs * passes && !run->report.was_interrupted; i++) {
		tally_counting_release(&run->counting);
		run->pass = (int)(i % passes);
		int result = run_once(run, err);
		if (result < 0)
			return result;
		close_waits(&run->waits);
		if (fit_merged(run, merged) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		for (size_t row = 0; i && !o->counting.passes && row < merged->count; row++)
			merged->rows[row].name = run->counting.rows[row].name;
		/* A failed run must not be hidden by a later one that succeeds.  A requested limit
		 * is no failure. */
		bool has_failed = run->report.exit_status > 0 && !run->report.was_limited;
		run->failed_runs += has_failed;
		if (has_failed && !*exit_status)
			*exit_status = run->report.exit_status;
		/* A run that was cut short is not comparable to the whole ones. */
		if (run->report.was_interrupted && i)
			break;
		note_times(run);
		tally_pass_check_add(&run->check, &run->counting_options, run->counting.rows,
				     pass_time(run));
		merge(run, merged, !i);
		run->report.runs += run->pass + 1 == (int)passes;
	}
	return 0;
}

static void add_notes_of_provider(struct run *run, struct tally_arena *arena)
{
	struct tally_stat_report *r = &run->report;
	struct tally_provider *provider = run->options->counting.provider;
	if (provider->ops->notes)
		r->note_count += provider->ops->notes(provider, r->end_signal, arena,
						      r->notes + r->note_count,
						      TALLY_STAT_NOTES_MAX - r->note_count);
}

static void add_note_of_failures(struct run *run, int exit_status, struct tally_arena *arena)
{
	struct tally_stat_report *r = &run->report;
	if (!run->failed_runs || r->elapsed.count < 2 || r->note_count == TALLY_STAT_NOTES_MAX)
		return;
	const char *note = tally_arena_printf(
		arena,
		"%lu of %lu runs failed, the first with exit status %d; they are in the counts",
		run->failed_runs, r->elapsed.count, exit_status);
	if (note)
		r->notes[r->note_count++] = note;
}

/* Makes the summary of the intervals. */
static void sum_up_intervals(struct run *run)
{
	if (tally_counting_needs_usage(&run->counting)) {
		struct tally_resource_usage all = tally_resource_usage_since(run->usage.last,
									     run->usage.first);
		tally_counting_total(&run->counting, &all);
	} else {
		tally_counting_total(&run->counting, NULL);
	}
	total_tools(run, (double)(run->end_ns - run->start_ns));
	run->report.is_summary = true;
	run->reported_ns = 0;
}

static int all_runs(struct run *run, struct merged *merged, int *exit_status,
		    struct tally_error *err)
{
	const struct tally_stat_options *o = run->options;
	int result = sample_runs(run, merged, exit_status, err);
	if (result >= 0 && o->counting.passes && !run->report.was_interrupted)
		result = tally_pass_check_judge(&run->check, &o->counting, o->max_difference, err);
	if (result < 0)
		return result;
	if (o->interval_ms) {
		if (!run->has_all_intervals)
			report(run, (double)(run->end_ns - run->start_ns), true);
		if (!o->summary)
			return 0;
		sum_up_intervals(run);
	} else {
		memcpy(run->counting.rows, merged->rows, merged->count * sizeof(*merged->rows));
		if (o->counting.event_count)
			run->counting.part_count = merged->count / o->counting.event_count;
	}
	struct tally_arena arena = TALLY_ARENA_INIT;
	report(run, (double)(run->end_ns - run->start_ns), false);
	finish_report(run);
	run->report.note_count = tally_counting_notes(&run->counting, &arena, run->report.notes,
						      TALLY_STAT_NOTES_MAX);
	if (run->report.note_count < TALLY_STAT_NOTES_MAX && !run->report.was_interrupted)
		run->report.note_count += tally_pass_check_note(
			&run->check, &o->counting, &arena,
			&run->report.notes[run->report.note_count]);
	add_notes_of_provider(run, &arena);
	add_note_of_caller(run);
	add_note_of_failures(run, *exit_status, &arena);
	o->on_report(o->context, &run->report);
	tally_arena_release(&arena);
	return 0;
}

int tally_stat_run(const struct tally_stat_options *options, int *exit_status,
		   struct tally_error *err)
{
	struct run run = { .options = options,
			   .spawn = TALLY_SPAWN_INIT,
			   .waits.inputs = TALLY_SESSION_INPUTS_INIT };
	struct merged merged = { 0 };
	int result = tally_signals_open(&run.signals, err);
	if (result < 0)
		return result;
	*exit_status = 0;
	run.report.provider = options->counting.provider->ops->name;
	run.report.runs_wanted = options->runs;
	run.report.command = options->target->command;
	run.report.exit_status = -1;
	run.report.by = options->counting.by;
	const struct tally_provider_ops *ops = options->counting.provider->ops;
	run.report.table.is_simulated = ops->capabilities & TALLY_PROVIDER_SIMULATED_TIME;
	if (ops->machine) {
		run.report.machine = ops->machine(options->counting.provider, false);
		run.report.machine_short = ops->machine(options->counting.provider, true);
	}
	if (options->target->all)
		run.report.table.cpu_count = (unsigned)options->target->cpus.count;
	tally_target_text(options->target, run.report.target, sizeof(run.report.target));
	result = tally_pass_check_init(&run.check, &options->counting, err);
	if (result >= 0)
		result = all_runs(&run, &merged, exit_status, err);
	if (result < 0)
		*exit_status = run.failed_to_exec ? tally_spawn_failure_status(result) : 1;
	close_waits(&run.waits);
	tally_spawn_release(&run.spawn);
	tally_counting_release_last(&run.counting);
	tally_signals_release(&run.signals);
	free(merged.rows);
	tally_arena_release(&merged.arena);
	tally_pass_check_release(&run.check);
	return result;
}
