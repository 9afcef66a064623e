/* Runs `stat`: starts the command or attaches, lets it run, reads, reports.
 *
 * One poll(2) waits for everything: signals (including the child's end) by a signalfd, the ends of
 * attached processes by their pidfds, intervals and the timeout by its timeout.  The terminal sends
 * Ctrl-C to the command directly; a signal that was sent to tally alone (kill, timeout(1)) is
 * passed on.
 */
#include "counting/stat_state.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct tally_resource_usage tally_stat_usage_of_tasks(const struct tally_stat_state *run)
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
static struct tally_resource_usage usage_now(const struct tally_stat_state *run)
{
	const struct tally_target *target = run->options->target;
	struct tally_resource_usage usage = { 0 };
	if (!target->all && !target->every_thread)
		return tally_stat_usage_of_tasks(run);
	tally_resource_usage_system(&usage);
	return usage;
}

static void read_counts(struct tally_stat_state *run)
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

/* True once the delay, if any, is over. */
static bool has_begun(const struct tally_stat_state *run)
{
	return run->enable_at_ns == INT64_MAX;
}

static int64_t next_deadline(const struct tally_stat_state *run)
{
	const struct tally_stat_options *o = run->options;
	int64_t deadline = run->enable_at_ns;
	if (!has_begun(run))
		return deadline;
	if (o->interval_ms)
		deadline = run->start_ns + (int64_t)(run->intervals + 1) * o->interval_ms * 1000000;
	if (o->timeout_ms && run->start_ns + (int64_t)o->timeout_ms * 1000000 < deadline)
		deadline = run->start_ns + (int64_t)o->timeout_ms * 1000000;
	return deadline;
}

static void report(struct tally_stat_state *run, double at_ns, bool is_interval)
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
		run->options->on_report(run->options->context, r);
		r->note_count = 0;
		tally_arena_release(&arena);
	}
	run->reported_ns = at_ns;
}

void tally_stat_interval(struct tally_stat_state *run)
{
	tally_stat_check_online(run);
	read_counts(run);
	double at_ns = (double)(tally_stat_now_ns() - run->start_ns);
	tally_stat_read_tools(run, at_ns - run->reported_ns);
	report(run, at_ns, true);
}

static void begin_counting(struct tally_stat_state *run)
{
	if (tally_counting_needs_usage(&run->counting))
		run->usage_first = run->usage_last = usage_now(run);
	tally_stat_begin_tools(run, NULL);
	tally_counting_enable(&run->counting);
	run->start_ns = tally_stat_now_ns();
	run->enable_at_ns = INT64_MAX;
}

static void check_deadlines(struct tally_stat_state *run)
{
	const struct tally_stat_options *o = run->options;
	int64_t now = tally_stat_now_ns(), since_start = now - run->start_ns;
	if (!has_begun(run)) {
		if (now >= run->enable_at_ns)
			begin_counting(run);
		return;
	}
	if (o->timeout_ms && since_start >= (int64_t)o->timeout_ms * 1000000) {
		run->should_stop = true;
		return;
	}
	if (!o->interval_ms ||
	    since_start < (int64_t)(run->intervals + 1) * o->interval_ms * 1000000)
		return;
	tally_stat_interval(run);
	/* Skip intervals that are late; don't catch up. */
	run->intervals = (unsigned long)(since_start / ((int64_t)o->interval_ms * 1000000));
	if (o->interval_count && ++run->interval_reports >= o->interval_count)
		run->should_stop = run->has_all_intervals = true;
}

/* Ends the command, as timeout(1) does, when the time is over. */
static void end_command(struct tally_stat_state *run)
{
	if (!run->spawn.pid || run->has_ended)
		return;
	run->was_limited = true;
	kill(run->spawn.pid, SIGTERM);
	kill(run->spawn.pid, SIGCONT);
	while (!run->has_ended)
		tally_stat_wait(run, INT64_MAX);
}

static bool is_exec_failure(int code)
{
	return code == -ENOENT || code == -EACCES || code == -ENOEXEC;
}

static int start(struct tally_stat_state *run, struct tally_error *err)
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
		result = tally_spawn_prepare(&run->spawn, executed, &run->signals.before, err);
	if (result < 0)
		return result;
	run->counting_options = o->counting;
	run->counting_options.target = o->target;
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
	run->start_ns = tally_stat_now_ns();
	if (o->delay_ms > 0)
		run->enable_at_ns = run->start_ns + (int64_t)o->delay_ms * 1000000;
	if (o->target->command)
		result = tally_spawn_go(&run->spawn, executed, err);
	run->failed_to_exec = is_exec_failure(result);
	if (result >= 0 && o->target->command && !o->delay_ms)
		tally_stat_begin_tools(run, &run->spawn.before);
	if (result >= 0 && on_command)
		run->usage_first = run->usage_last = tally_resource_usage_of(&run->spawn.before);
	return result;
}

/* Returns what the ended command used from its exec on. */
static struct tally_resource_usage command_usage(const struct tally_stat_state *run)
{
	return tally_resource_usage_since(tally_resource_usage_of(&run->rusage),
					  tally_resource_usage_of(&run->spawn.before));
}

static void note_status(struct tally_stat_state *run)
{
	struct tally_stat_report *r = &run->report;
	bool has_status = run->options->target->command && run->has_ended;
	r->exit_status = has_status ? tally_spawn_exit_status(run->wait_status) : -1;
	r->end_signal = has_status && WIFSIGNALED(run->wait_status) ? WTERMSIG(run->wait_status)
								    : 0;
	r->was_limited = run->was_limited && !r->was_interrupted && r->end_signal == SIGTERM;
}

static void note_times(struct tally_stat_state *run)
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

/* Makes one run from the start to the last read.  The counting stays open, because its rows are
 * needed. */
static int run_once(struct tally_stat_state *run, struct tally_error *err)
{
	run->has_ended = run->should_stop = run->was_limited = false;
	run->intervals = 0;
	run->reported_ns = 0;
	run->enable_at_ns = INT64_MAX;
	int result = start(run, err);
	if (result >= 0)
		result = tally_stat_open_waits(run);
	if (result < 0)
		return result;
	if (run->options->on_start)
		run->options->on_start(run->options->context);
	tally_stat_take_events(run);
	while (!run->has_ended && !run->should_stop) {
		tally_stat_wait(run, next_deadline(run));
		if (!run->has_ended)
			check_deadlines(run);
	}
	end_command(run);
	run->end_ns = tally_stat_now_ns();
	if (!run->counting_options.command_pid)
		tally_counting_disable(&run->counting);
	tally_stat_check_online(run);
	read_counts(run);
	tally_stat_read_tools(run, (double)(run->end_ns - run->start_ns) - run->reported_ns);
	note_status(run);
	bool sees_all = run->counting_options.command_pid && run->has_ended &&
			!run->options->counting.no_inherit && !run->options->interval_ms &&
			!run->options->delay_ms && !run->options->control &&
			run->options->counting.provider == tally_provider_kernel();
	if (sees_all) {
		struct tally_resource_usage used = command_usage(run);
		tally_counting_check_coverage(&run->counting, &used);
	}
	return 0;
}

/* Adds a run's rows to the spreads in the report, and sets the rows' values to the means. */
static void merge(struct tally_count *into, const struct tally_count *rows, size_t count,
		  bool is_first)
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

static void finish_report(struct tally_stat_state *run)
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

struct merged {
	struct tally_count *rows;
	size_t count;
};

/* Makes the array of merged rows.  The parts of the target come first; all runs have them.  CPUs
 * that came online during one run are left out. */
static int fit_merged(const struct tally_stat_state *run, struct merged *merged)
{
	size_t count = run->counting.part_count * run->options->counting.event_count;
	if (merged->rows && count >= merged->count)
		return 0;
	merged->count = count;
	if (!merged->rows)
		merged->rows = calloc(count + 1, sizeof(*merged->rows));
	return merged->rows ? 0 : -ENOMEM;
}

/* Makes all runs.  The rows' strings are in the counting's arena, which each run replaces; the last
 * run's strings survive the loop. */
static int sample_runs(struct tally_stat_state *run, struct merged *merged, int *exit_status,
		       struct tally_error *err)
{
	const struct tally_stat_options *o = run->options;
	for (unsigned long i = 0; i < o->runs && !run->report.was_interrupted; i++) {
		tally_counting_release(&run->counting);
		int result = run_once(run, err);
		if (result < 0)
			return result;
		tally_stat_close_waits(run);
		if (fit_merged(run, merged) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
		for (size_t row = 0; i && row < merged->count; row++)
			merged->rows[row].name = run->counting.rows[row].name;
		/* A failed run must not be hidden by a later one that succeeds.  A requested limit
		 * is no failure. */
		if (run->report.exit_status > 0 && !run->report.was_limited && !*exit_status)
			*exit_status = run->report.exit_status;
		/* A run that was cut short is not comparable to the whole ones. */
		if (run->report.was_interrupted && i)
			break;
		note_times(run);
		merge(merged->rows, run->counting.rows, merged->count, !i);
		run->report.runs++;
	}
	return 0;
}

static void add_notes_of_provider(struct tally_stat_state *run, struct tally_arena *arena)
{
	struct tally_stat_report *r = &run->report;
	struct tally_provider *provider = run->options->counting.provider;
	if (provider->ops->notes)
		r->note_count += provider->ops->notes(provider, r->end_signal, arena,
						      r->notes + r->note_count,
						      TALLY_STAT_NOTES_MAX - r->note_count);
}

/* Makes the summary of the intervals. */
static void sum_up_intervals(struct tally_stat_state *run)
{
	if (tally_counting_needs_usage(&run->counting)) {
		struct tally_resource_usage all = tally_resource_usage_since(run->usage_last,
									     run->usage_first);
		tally_counting_total(&run->counting, &all);
	} else {
		tally_counting_total(&run->counting, NULL);
	}
	tally_stat_total_tools(run, (double)(run->end_ns - run->start_ns));
	run->report.is_summary = true;
	run->reported_ns = 0;
}

static int all_runs(struct tally_stat_state *run, struct merged *merged, int *exit_status,
		    struct tally_error *err)
{
	const struct tally_stat_options *o = run->options;
	int result = sample_runs(run, merged, exit_status, err);
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
		run->counting.part_count = o->counting.event_count
						   ? merged->count / o->counting.event_count
						   : run->counting.part_count;
	}
	struct tally_arena arena = TALLY_ARENA_INIT;
	report(run, (double)(run->end_ns - run->start_ns), false);
	finish_report(run);
	run->report.note_count = tally_counting_notes(&run->counting, &arena, run->report.notes,
						      TALLY_STAT_NOTES_MAX);
	add_notes_of_provider(run, &arena);
	o->on_report(o->context, &run->report);
	tally_arena_release(&arena);
	return 0;
}

int tally_stat_run(const struct tally_stat_options *options, int *exit_status,
		   struct tally_error *err)
{
	struct tally_stat_state run = { .options = options,
					.spawn = TALLY_SPAWN_INIT,
					.hotplug_fd = -1 };
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
	run.report.table.is_simulated = ops->command != NULL;
	run.report.machine = ops->machine ? ops->machine(options->counting.provider, false) : NULL;
	run.report.machine_short = ops->machine ? ops->machine(options->counting.provider, true)
						: NULL;
	run.report.table.cpu_count = options->target->all ? (unsigned)options->target->cpus.count
							  : 0;
	tally_target_text(options->target, run.report.target, sizeof(run.report.target));
	result = all_runs(&run, &merged, exit_status, err);
	if (result < 0)
		*exit_status = run.failed_to_exec ? tally_spawn_failure_status(result) : 1;
	tally_stat_close_waits(&run);
	tally_spawn_release(&run.spawn);
	tally_counting_release_last(&run.counting);
	tally_signals_release(&run.signals);
	if (run.hotplug_fd >= 0)
		close(run.hotplug_fd);
	free(merged.rows);
	return result;
}
