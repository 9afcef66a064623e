/* The time of a task on the cores of one type, on machines with several types.
 *
 * An event of a task counts on the cores of its PMU alone, but its enabled time goes on while the task
 * is on other cores.  So enabled / running, the factor for events that share counters, has a second
 * cause here, and would attribute the work on one type of cores to the other, too.  What must be known
 * is the task's time on the type.
 *
 *   One event of each type had a counter all the time: their running times add up to the enabled time,
 *   and each is the time on its type.
 *   Events of a type ran for different times: they had to share counters.  The time that other types
 *   leave is the time on such a type, or is divided between several by their longest running times.
 *   Only some of the types have events: the longest running time is the best that is known.  That is
 *   exact if the type's events ran equally long, since then none had to wait; otherwise it is a lower
 *   bound.
 *
 * Events of CPUs need none of this: they are opened on the CPUs of their type. */
#include "counting/counting_internal.h"

#include "base/extremes.h"

/* Each reading has a clock of its own, so that equal times may differ a little. */
static bool is_less(uint64_t time_ns, uint64_t other_ns)
{
	return time_ns < other_ns - other_ns / 1000;
}

bool tally_cores_apply(const struct tally_count_handles *handles, size_t scope, size_t event)
{
	const struct tally_counting_options *options = handles->options;
	return options->core_types > 1 && handles->scopes[scope].cpu < 0 && options->event_cores &&
	       options->event_cores[event];
}

/* Returns the longest time for which an event of that type of cores ran. */
static uint64_t longest(const struct tally_count_handles *handles,
			const struct tally_reading *readings, uint32_t core)
{
	uint64_t longest_ns = 0;
	for (size_t i = 0; i < handles->options->event_count; i++)
		if (handles->options->event_cores[i] == core)
			longest_ns = tally_max_u64(longest_ns, readings[i].running_ns);
	return longest_ns;
}

/* True if an event of that type of cores ran for less than `longest_ns`. */
static bool share_counters(const struct tally_count_handles *handles,
			   const struct tally_reading *readings, uint32_t core, uint64_t longest_ns)
{
	for (size_t i = 0; i < handles->options->event_count; i++)
		if (handles->options->event_cores[i] == core && handles->events[i].was_open &&
		    is_less(readings[i].running_ns, longest_ns))
			return true;
	return false;
}

struct tally_core_times tally_core_times_of(const struct tally_count_handles *handles, size_t scope,
					    const struct tally_reading *readings)
{
	const uint32_t *cores = handles->options->event_cores;
	struct tally_core_times times = { 0 };
	size_t types = 0;
	for (size_t i = 0; i < handles->options->event_count; i++) {
		if (!tally_cores_apply(handles, scope, i))
			continue;
		times.task_ns = tally_max_u64(times.task_ns, readings[i].enabled_ns);
		size_t first = 0;
		while (cores[first] != cores[i])
			first++;
		if (first < i)
			continue;
		uint64_t longest_ns = longest(handles, readings, cores[i]);
		types++;
		times.seen_ns += longest_ns;
		if (share_counters(handles, readings, cores[i], longest_ns))
			times.shared_ns += longest_ns;
	}
	times.has_all_types = types == handles->options->core_types;
	times.is_whole = !is_less(times.seen_ns, times.task_ns);
	return times;
}

bool tally_core_times_correct(const struct tally_count_handles *handles,
			      const struct tally_reading *readings,
			      const struct tally_core_times *times, size_t event,
			      struct tally_reading *reading)
{
	uint32_t core = handles->options->event_cores[event];
	uint64_t on_ns = longest(handles, readings, core);
	bool is_shared = share_counters(handles, readings, core, on_ns);
	bool is_known = times->is_whole;
	if (!is_known)
		is_known = on_ns && (times->has_all_types || !is_shared);
	if (!times->is_whole && times->has_all_types && on_ns && (is_shared || !times->shared_ns)) {
		uint64_t among_ns = is_shared ? times->shared_ns : times->seen_ns;
		uint64_t left_ns = times->task_ns - (times->seen_ns - among_ns);
		on_ns = (uint64_t)((double)on_ns * (double)left_ns / (double)among_ns);
	}
	reading->enabled_ns = tally_max_u64(on_ns, reading->running_ns);
	return is_known;
}
