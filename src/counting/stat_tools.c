/* perf's tool events: times that need no counter, as rows among the counts.
 *
 * duration_time is the time of the run or the interval.  user_time and system_time are those of the
 * attached tasks, or otherwise of the command.  This applies even when whole CPUs are counted (as
 * in perf); then the row says so.  A command's times are not known before its end, because /proc
 * lacks the children that it has not waited for.
 */
#include "counting/stat_state.h"

static bool is_tool(const struct tally_stat_state *run, size_t event, enum tally_tool tool)
{
	const struct tally_event *e = &run->options->counting.events[event];
	return e->kind == TALLY_EVENT_TOOL && e->attr.config == tool;
}

static bool needs_usage(const struct tally_stat_state *run)
{
	for (size_t i = 0; i < run->options->counting.event_count; i++)
		if (is_tool(run, i, TALLY_TOOL_USER_TIME) ||
		    is_tool(run, i, TALLY_TOOL_SYSTEM_TIME))
			return true;
	return false;
}

void tally_stat_begin_tools(struct tally_stat_state *run, const struct rusage *first)
{
	bool is_of_command = first && !tally_target_has_tasks(run->options->target);
	if (first && !is_of_command)
		return; /* began when the tasks were attached to */
	if (needs_usage(run))
		run->tools_first = run->tools_last = is_of_command ? tally_resource_usage_of(first)
								   : tally_stat_usage_of_tasks(run);
}

static void put(struct tally_count *row, uint64_t value_ns, const char *source)
{
	row->reason = NULL;
	row->state = TALLY_COUNT_OK;
	row->value = (double)value_ns;
	row->raw = row->enabled_ns = row->running_ns = value_ns;
	row->source = source;
}

/* Returns why there are no CPU times, or whose they are; NULL: the counted target's. */
static const char *remark(const struct tally_stat_state *run,
			  const struct tally_resource_usage *used)
{
	const struct tally_target *target = run->options->target;
	if (tally_target_has_tasks(target))
		return used->has_times ? NULL : "the tasks have ended";
	if (!target->command)
		return "measured only for a command or tasks";
	if (!used->has_times)
		return "measured when the command has ended: --summary";
	return target->all ? "measured only for the command" : NULL;
}

static void fill(struct tally_stat_state *run, const struct tally_resource_usage *used,
		 double elapsed_ns)
{
	for (size_t i = 0; i < run->options->counting.event_count && run->counting.part_count;
	     i++) {
		struct tally_count *row = &run->counting.rows[i];
		bool is_user = is_tool(run, i, TALLY_TOOL_USER_TIME);
		if (is_tool(run, i, TALLY_TOOL_DURATION_TIME))
			put(row, (uint64_t)elapsed_ns, "clock");
		if (!is_user && !is_tool(run, i, TALLY_TOOL_SYSTEM_TIME))
			continue;
		if (used->has_times)
			put(row, is_user ? used->user_ns : used->system_ns, used->source);
		row->reason = remark(run, used);
	}
}

void tally_stat_read_tools(struct tally_stat_state *run, double elapsed_ns)
{
	struct tally_resource_usage used = { 0 };
	bool is_part = run->options->interval_ms && !tally_target_has_tasks(run->options->target);
	if (needs_usage(run)) {
		struct tally_resource_usage now = tally_stat_usage_of_tasks(run);
		used = tally_resource_usage_since(now, run->tools_last);
		run->tools_last = now;
		used.has_times &= !is_part;
	}
	fill(run, &used, elapsed_ns);
}

void tally_stat_total_tools(struct tally_stat_state *run, double elapsed_ns)
{
	struct tally_resource_usage used = tally_resource_usage_since(run->tools_last,
								      run->tools_first);
	fill(run, &used, elapsed_ns);
}
