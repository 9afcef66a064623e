/* Explains missing figures: a few words in the row, and lines below the table that say how to get
 * the figure.  Finds the refused events that have another source.
 *
 * The row's words are short, since eight rows may need them; the advice is given once.
 */
#include "counting/counting_internal.h"

#include "abi/abi.h"
#include "base/buffer.h"
#include "base/text.h"
#include "machine/machine.h"
#include "metric/metric.h"
#include "provider/provider.h"
#include "provider/simulated.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* ---- refusals ------------------------------------------------------------ */

/* True if the kernel accounts for this event, per task or for the whole system. */
static bool has_usage(const struct tally_count_handles *h, size_t event)
{
	int code = h->events[event].refusal;
	struct tally_resource_usage all = {
		.has_times = true, .has_faults = true, .has_switches = true, .has_migrations = true
	};
	uint64_t value;
	if (code != TALLY_REFUSED_EMPTIED && code != -EPERM && code != -EACCES && code != -ENOSYS)
		return false;
	return !h->events[event].was_open &&
	       tally_resource_usage_value(&all, &h->options->events[event].attr, &value);
}

bool tally_count_is_inexact(const struct tally_count_handles *h, size_t event)
{
	const struct tally_target *target = h->options->target;
	return target->all && has_usage(h, event) &&
	       (target->has_cpu_list || tally_attr_is_clock(&h->options->events[event].attr));
}

bool tally_count_is_substitutable(const struct tally_count_handles *h, size_t event)
{
	return has_usage(h, event) && !tally_count_is_inexact(h, event) &&
	       h->options->by == TALLY_COUNT_BY_NOTHING && !h->options->events[event].cgroup;
}

bool tally_counting_needs_usage(const struct tally_counting *c)
{
	for (size_t i = 0; i < c->options->event_count; i++)
		if (tally_count_is_substitutable(&c->handles, i))
			return true;
	return false;
}

/* If perf events are refused altogether, returns the error; 0 if an event opened or other errors
 * occurred. */
static int whole_refusal(const struct tally_count_handles *h)
{
	int code = 0;
	for (size_t i = 0; i < h->options->event_count; i++) {
		int one = h->events[i].refusal;
		/* Many users may not count the kernel's part alone, but may count the rest. */
		if (one == -EACCES && (h->options->events[i].attr.flags & TALLY_ATTR_EXCLUDE_USER))
			continue;
		if (h->events[i].was_open || h->is_user_only)
			return 0;
		if (!code && (one == -EPERM || one == -EACCES || one == -ENOSYS))
			code = one;
	}
	return code;
}

/* ---- a row's words ------------------------------------------------------- */

static bool is_hardware(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE ||
	       attr->type == TALLY_TYPE_RAW;
}

/* True if no event of a PMU could be opened, and the reason was not a refusal. */
static bool lacks_pmu(const struct tally_count_handles *h)
{
	size_t refused = 0;
	if (h->options->provider->ops->reason)
		return false;
	for (size_t i = 0; i < h->options->event_count; i++) {
		int code = h->events[i].refusal;
		if (!is_hardware(&h->options->events[i].attr))
			continue;
		if (h->events[i].was_open)
			return false;
		refused += code == -ENOENT || code == -EOPNOTSUPP || code == -ENODEV;
	}
	return refused > 0;
}

static const char *refused_reason(const struct tally_count_handles *h,
				  const struct tally_event *event, int code)
{
	/* The kernel's own checks give EACCES; EPERM comes from a filter in front of it. */
	if (code == -EPERM)
		return "perf events are refused here";
	if (event->kind == TALLY_EVENT_TRACEPOINT)
		return "tracepoints need privilege here";
	if (h->options->target->all)
		return "counting whole CPUs needs privilege here";
	if (h->is_user_only)
		return "only user mode may be counted here";
	return "perf events are refused here";
}

/* Everything in /proc is in ticks of 10 ms, whatever the kernel's own rate is. */
static const char *inexact_reason(const struct tally_count_handles *h, size_t i)
{
	bool is_clock = tally_attr_is_clock(&h->options->events[i].attr);
	if (h->events[i].refusal != -ENOSYS && is_clock)
		return "closed to this user; /proc counts in ticks of 10 ms";
	if (h->events[i].refusal != -ENOSYS)
		return "closed to this user; /proc does not count it per CPU";
	if (is_clock)
		return "this kernel has no perf events; /proc counts in ticks of 10 ms";
	return "this kernel has no perf events; /proc does not count it per CPU";
}

const char *tally_count_reason(const struct tally_count_handles *h, size_t i)
{
	const struct tally_event *event = &h->options->events[i];
	bool hardware = is_hardware(&event->attr);
	struct tally_provider *provider = h->options->provider;
	int code = h->events[i].refusal;
	if (code < 0 && code > TALLY_REFUSED_EMPTIED && provider->ops->reason)
		return provider->ops->reason(provider, &event->attr, code, NULL);
	if (code != TALLY_REFUSED_EMPTIED && tally_count_is_inexact(h, i))
		return inexact_reason(h, i);
	switch (code) {
	case 0:
		if (h->options->target->all)
			return "no CPU of its PMU is counted";
		return "the task has ended";
	case TALLY_REFUSED_EMPTIED:
		return "happens in the kernel: in user mode the count would be 0";
	case TALLY_REFUSED_GROUP:
		return "does not fit into its group; {…}:W opens it separately";
	case -EPERM:
	case -EACCES:
		return refused_reason(h, event, code);
	case -ENOSYS:
		return "this kernel has no perf events";
	case -ENOENT:
	case -EOPNOTSUPP:
		if (hardware && lacks_pmu(h))
			return "no hardware counters here";
		if (h->options->event_cores && h->options->event_cores[i])
			return "these cores have no such event, or the kernel can't select them";
		if (hardware)
			return "this CPU has no such event";
		if (event->kind == TALLY_EVENT_BREAKPOINT)
			return "no hardware breakpoints here";
		return "the kernel has no such event";
	case -EINVAL:
		if (event->kind == TALLY_EVENT_PMU && !h->options->target->all)
			return "rejected; if it counts CPUs rather than tasks, add -a";
		return "the kernel rejects it as written";
	case -EBUSY:
		return "another user holds the counter";
	case -ENOSPC:
		return "no counter of that kind is free";
	case -ESRCH:
		return "the task has ended";
	case -ENODEV:
		return "not on this CPU, or the CPU is offline";
	case -EMFILE:
		return "out of file descriptors: raise ulimit -n";
	default:
		return tally_errno_text(code);
	}
}

/* ---- notes below the table ----------------------------------------------- */

static long paranoid_level(void)
{
	struct tally_buffer text = { 0 };
	long level = -2;
	if (tally_buffer_read_file(&text, AT_FDCWD, "/proc/sys/kernel/perf_event_paranoid", 64) >=
	    0)
		level = strtol(tally_buffer_string(&text), NULL, 10);
	tally_buffer_release(&text);
	return level;
}

/* Returns advice on the machine's settings, or "".  It would not help with a simulation's or
 * script's refusals. */
static const char *advice_on(const struct tally_counting *c, struct tally_arena *arena,
			     size_t event)
{
	struct tally_error err = TALLY_ERROR_NONE;
	struct tally_event asked = c->options->events[event];
	const char *command = NULL;
	if (c->options->command_pid)
		command = c->options->target->command[0];
	if (!tally_provider_can(c->options->provider, TALLY_PROVIDER_THIS_MACHINE) ||
	    !c->handles.scope_count)
		return "";
	/* After a refusal of the kernel's part, user mode was tried; its refusal was the last. */
	if (c->handles.events[event].refusal == -EACCES &&
	    (asked.attr.flags & TALLY_ATTR_EXCLUDE_USER))
		return ". To count more: 'sysctl kernel.perf_event_paranoid=1' "
		       "as root, or CAP_PERFMON";
	if (!(asked.attr.flags & TALLY_ATTR_EXCLUDE_USER))
		asked.attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	tally_provider_open_error(&asked, c->handles.events[event].refusal,
				  c->handles.scopes[0].pid, c->handles.scopes[0].cpu, command, &err);
	if (!err.hint[0])
		return "";
	return tally_arena_printf(arena, ". To count more: %s", err.hint);
}

static const char *refusal_note(const struct tally_counting *c, struct tally_arena *arena, int code)
{
	size_t event = 0;
	while (event + 1 < c->options->event_count && c->handles.events[event].refusal != code)
		event++;
	const char *what = "perf events are refused";
	if (code == -ENOSYS)
		what = "perf_event_open(2) is missing";
	else if (code == -EACCES && c->options->target->all)
		what = "counting whole CPUs is refused";
	else if (code == -EACCES && tally_target_has_tasks(c->options->target))
		what = "counting these tasks is refused";
	const char *fallback = "";
	if (tally_counting_needs_usage(c))
		fallback = "; the counts shown are from resource usage";
	const char *name = "EACCES";
	if (code == -EPERM)
		name = "EPERM";
	else if (code == -ENOSYS)
		name = "ENOSYS";
	return tally_arena_printf(arena, "%s (%s)%s%s", what, name, fallback,
				  advice_on(c, arena, event));
}

/* Returns a note on the first row that was refused while others are counted. */
static const char *single_note(const struct tally_counting *c, struct tally_arena *arena)
{
	for (size_t i = 0; i < c->options->event_count; i++) {
		int code = c->handles.events[i].refusal;
		if (c->rows[i].state != TALLY_COUNT_NOT_SUPPORTED ||
		    (code != -EACCES && code != -EPERM && code != -EINVAL && code != -EBUSY &&
		     code != -EMFILE))
			continue;
		const char *advice = advice_on(c, arena, i);
		if (!advice || !advice[0])
			return NULL;
		return tally_arena_printf(arena, "%s: %s%s", c->rows[i].name,
					  tally_count_reason(&c->handles, i), advice);
	}
	return NULL;
}

static bool has_multiplexing(const struct tally_counting *c)
{
	for (size_t i = 0; i < c->part_count * c->options->event_count; i++)
		if (c->rows[i].state == TALLY_COUNT_OK && c->rows[i].was_scaled)
			return true;
	return false;
}

static const char *multiplexing_note(const struct tally_counting *c)
{
	if (c->options->passes)
		return "scaled all the same: another user, such as 'perf stat -a', took counters "
		       "during a run";
	if (c->options->command_pid && tally_fit_can_try(c->options->provider->ops))
		return "scaled: there were more events than counters; with fewer events (-e), or "
		       "with --no-multiplex, nothing is scaled";
	return "scaled: there were more events than counters; with fewer events (-e) nothing is "
	       "scaled";
}

static bool has_apart_metric(const struct tally_counting *c)
{
	struct tally_metric metrics[TALLY_METRICS_MAX];
	for (size_t part = 0; part < c->part_count; part++)
		for (size_t i = 0; i < c->options->event_count; i++) {
			const struct tally_count_table table = {
				.rows = c->rows + part * c->options->event_count,
				.count = c->options->event_count
			};
			unsigned count = tally_metrics_of(&table, i, metrics);
			for (unsigned at = 0; at < count; at++)
				if (metrics[at].is_apart)
					return true;
		}
	return false;
}

/* True if a simulated CPU could count instead: for a command, counted by the kernel, if the
 * simulator is available.  A script's lack says nothing about this machine. */
static bool can_be_simulated(const struct tally_counting *c)
{
	return c->options->command_pid &&
	       tally_provider_can(c->options->provider, TALLY_PROVIDER_THIS_MACHINE) &&
	       !*tally_simulated_lack();
}

static const char *pmu_note(const struct tally_counting *c)
{
	if (!can_be_simulated(c))
		return "no hardware counters: usual in virtual machines whose host does not share "
		       "its PMU";
	return "no hardware counters: usual in virtual machines whose host does not share its PMU. "
	       "--provider simulated counts instructions, branches and cache misses all the same, "
	       "on a simulated CPU (" TALLY_SIMULATED_COST ")";
}

/* A simulation gives the same counts at each run, unless the program's input from outside
 * differs. */
static const char *difference_note(const struct tally_counting *c, struct tally_arena *arena)
{
	const struct tally_event_count *most = NULL;
	for (size_t i = 0; i < c->options->event_count; i++) {
		const struct tally_event_count *row = &c->rows[i];
		if (row->quality && row->spread.minimum < row->spread.maximum &&
		    (!most ||
		     tally_spread_percent(&row->spread) > tally_spread_percent(&most->spread)))
			most = row;
	}
	if (!most)
		return NULL;
	return tally_arena_printf(
		arena,
		"the runs differ: %s from %.0f to %.0f. The program does different work each time: "
		"it may depend on the time, random numbers, process ids, files, or the order of its "
		"threads and processes",
		most->name, most->spread.minimum, most->spread.maximum);
}

static const char *cpus_text(const struct tally_cpu_list *cpus, struct tally_arena *arena)
{
	const char *list = tally_cpu_list_text(cpus, arena);
	return tally_arena_printf(arena, "CPU%s %s", tally_plural(cpus->count),
				  tally_text_or(list, ""));
}

static const char *offline_note(const struct tally_counting *c, struct tally_arena *arena)
{
	if (!c->went_offline.count)
		return NULL;
	return tally_arena_printf(arena, "%s went offline: counted until then",
				  cpus_text(&c->went_offline, arena));
}

static const char *online_note(const struct tally_counting *c, struct tally_arena *arena)
{
	if (!c->came_online.count)
		return NULL;
	return tally_arena_printf(arena, "%s came online: counted from then on",
				  cpus_text(&c->came_online, arena));
}

static const char *descendants_note(const struct tally_counting *c, struct tally_arena *arena)
{
	char text[1024];
	tally_target_descendants_text(c->options->target, text, sizeof(text));
	if (!*text)
		return NULL;
	if (!c->options->target->takes_descendants)
		return tally_arena_printf(arena, "%s not counted (--no-descendants)", text);
	return tally_arena_printf(arena, "%s counted as well; --no-descendants leaves them out",
				  text);
}

static const char *late_note(const struct tally_counting *c, struct tally_arena *arena)
{
	size_t count = tally_target_late_count(c->options->target);
	if (!count)
		return NULL;
	return tally_arena_printf(arena,
				  "%zu process%s entered the container later, not counted: -a -G "
				  "CGROUP counts all",
				  count, count == 1 ? "" : "es");
}

size_t tally_counting_notes(const struct tally_counting *c, struct tally_arena *arena,
			    const char **notes, size_t maximum)
{
	size_t count = 0;
	int refusal = whole_refusal(&c->handles);
	if (count < maximum && refusal)
		notes[count++] = refusal_note(c, arena, refusal);
	else if (count < maximum)
		notes[count++] = single_note(c, arena);
	if (c->handles.is_user_only && count < maximum)
		notes[count++] = tally_arena_printf(
			arena,
			"only user mode is counted (:u), since kernel.perf_event_paranoid is "
			"%ld; 1 or CAP_PERFMON allows counting the kernel as well",
			paranoid_level());
	if (!refusal && lacks_pmu(&c->handles) && count < maximum)
		notes[count++] = pmu_note(c);
	if (c->coverage < 0.85 && count < maximum)
		notes[count++] = tally_arena_printf(
			arena, "only %.0f %% of the command's CPU time was counted: %s",
			100 * c->coverage,
			tally_text_or(c->options->provider->ops->missed_note,
				      "exec of a set-user-ID program drops the events. To count "
				      "it, run tally as root, or attach with -p"));
	if (has_multiplexing(c) && count < maximum)
		notes[count++] = multiplexing_note(c);
	if (has_apart_metric(c) && count < maximum)
		notes[count++] = "~: the ratio of counts that were not taken at the same time; "
				 "{…} counts events together";
	if (count < maximum)
		notes[count++] = difference_note(c, arena);
	if (count < maximum)
		notes[count++] = offline_note(c, arena);
	if (count < maximum)
		notes[count++] = online_note(c, arena);
	if (count < maximum)
		notes[count++] = descendants_note(c, arena);
	if (count < maximum)
		notes[count++] = late_note(c, arena);
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (notes[i])
			notes[kept++] = notes[i];
	return kept;
}
