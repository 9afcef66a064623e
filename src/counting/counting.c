/* Reads counters and makes rows that say for themselves what they show.
 *
 *   Refusal.  Where perf events are refused altogether (seccomp in containers: EPERM; no support:
 *   ENOSYS), times, faults and switches come from the resource usage, and are marked so.  When
 *   whole CPUs are counted, only exact figures of the whole system replace counts.  /proc's times
 *   of CPUs are ticks of busy time and no cpu-clock, and it has no faults or switches for a list
 *   of CPUs; rows of this kind are withheld.
 *
 *   Time.  A task that never ran has enabled = running = 0 and a true count of 0; an event that
 *   never got the PMU while its task ran has no count at all.
 *
 *   Parts.  With counts by CPU, core, thread, …, each scope (a task or a CPU on which events are
 *   open) belongs to a part, and a row is one event in one part.  The state of an event (refused,
 *   user mode only) applies to all of its rows.
 *
 *   Hotplug.  When a CPU goes offline, the kernel silently detaches its events for good.  Their
 *   counts so far are read and kept, the handles are closed, and new ones are opened when the CPU
 *   comes back.
 */
#include "session/close_apart.h"
#include "counting/counting_parts.h"

#include "abi/attr.h"
#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GROUP_READ_MAX = 1100 }; /* the kernel's limit is 1,022 siblings (measured) */

static bool is_open(const struct tally_counting *c, size_t event)
{
	for (size_t i = 0; i < c->scope_count; i++)
		if (tally_counting_slot(c, i, event)->was_open)
			return true;
	return false;
}

static void control_scope(struct tally_counting *c, size_t scope, enum tally_ioctl request)
{
	for (size_t i = 0; i < c->options->event_count; i++) {
		struct tally_count_slot *slot = tally_counting_slot(c, scope, i);
		if (slot->handle >= 0 && slot->leader == i)
			c->options->provider->ops->ioctl(c->options->provider, slot->handle,
							 request, NULL, 0);
	}
}

void tally_counting_enable(struct tally_counting *c)
{
	for (size_t scope = 0; scope < c->scope_count; scope++)
		control_scope(c, scope, TALLY_IOCTL_ENABLE);
	c->was_enabled = c->is_enabled = true;
}

void tally_counting_disable(struct tally_counting *c)
{
	for (size_t scope = 0; scope < c->scope_count; scope++)
		control_scope(c, scope, TALLY_IOCTL_DISABLE);
	c->is_enabled = false;
}

size_t tally_counting_control_named(struct tally_counting *c, const char *name, bool enable)
{
	enum tally_ioctl request = enable ? TALLY_IOCTL_ENABLE : TALLY_IOCTL_DISABLE;
	size_t found = 0, length = strlen(name);
	for (size_t i = 0; i < c->options->event_count; i++) {
		const char *own = c->options->events[i].name;
		if (strncmp(own, name, length) != 0 || (own[length] && own[length] != ':'))
			continue;
		found++;
		for (size_t scope = 0; scope < c->scope_count; scope++) {
			struct tally_count_slot *slot = tally_counting_slot(c, scope, i);
			if (slot->handle >= 0)
				c->options->provider->ops->ioctl(c->options->provider, slot->handle,
								 request, NULL, 0);
		}
	}
	c->was_enabled |= found && enable;
	return found;
}

/* Reads a leader and stores its members' values, which come in the order in which they joined. */
static void read_leader(struct tally_counting *c, size_t scope, size_t leader, uint64_t *words,
			size_t size)
{
	struct tally_count_slot *slot = tally_counting_slot(c, scope, leader);
	uint64_t format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING |
			  (slot->reads_group ? TALLY_FORMAT_GROUP : 0);
	size_t count = c->options->event_count;
	struct tally_read_values values;
	ssize_t got = c->options->provider->ops->read(c->options->provider, slot->handle, words,
						      size);
	if (got <= 0 || tally_read_values_parse(format, words, (size_t)got, &values) < 0)
		return;
	for (size_t i = leader, at = 0; i < count && at < values.count; i++) {
		struct tally_count_slot *member = tally_counting_slot(c, scope, i);
		if (member->handle < 0 || member->leader != leader)
			continue;
		const struct tally_reading *kept = &member->kept;
		member->now = (struct tally_reading){ kept->value +
							      values.values[at++ * values.stride],
						      kept->enabled_ns + values.time_enabled,
						      kept->running_ns + values.time_running };
		member->was_read = true;
	}
}

static void read_slots(struct tally_counting *c)
{
	uint64_t words[GROUP_READ_MAX + 4];
	for (size_t scope = 0; scope < c->scope_count; scope++)
		for (size_t i = 0; i < c->options->event_count; i++) {
			struct tally_count_slot *slot = tally_counting_slot(c, scope, i);
			/* a CPU that went offline: its kept counts are the reading */
			slot->was_read = slot->was_open && slot->handle < 0;
		}
	for (size_t scope = 0; scope < c->scope_count; scope++)
		for (size_t i = 0; i < c->options->event_count; i++)
			if (tally_counting_slot(c, scope, i)->handle >= 0 &&
			    tally_counting_slot(c, scope, i)->leader == i)
				read_leader(c, scope, i, words, sizeof(words));
}

static void withhold_empty_tracepoint(struct tally_count *row)
{
	if (row->type == TALLY_TYPE_TRACEPOINT && (row->excludes & TALLY_ATTR_EXCLUDE_KERNEL) &&
	    !row->raw) {
		row->state = TALLY_COUNT_WITHHELD;
		row->reason = "occurs in the kernel, and only user mode may be counted";
	}
}

/* The counts of one event in one part. */
struct sum {
	struct tally_total total;
	bool was_read, was_open;
};

static struct sum *sum_up(struct tally_counting *c, bool since_start)
{
	size_t events = c->options->event_count;
	struct sum *sums = calloc(c->part_count * events + 1, sizeof(*sums));
	for (size_t scope = 0; sums && scope < c->scope_count; scope++)
		for (size_t i = 0; i < events; i++) {
			struct tally_count_slot *slot = tally_counting_slot(c, scope, i);
			struct sum *sum = &sums[c->scopes[scope].part * events + i];
			struct tally_reading none = { 0 };
			sum->was_open |= slot->was_open;
			if (!slot->was_read)
				continue;
			tally_total_add(
				&sum->total,
				tally_reading_since(slot->now, since_start ? none : slot->last));
			slot->last = slot->now;
			sum->was_read = true;
		}
	return sums;
}

static void fill_counted(struct tally_counting *c, struct tally_count *row, size_t event,
			 const struct sum *sum)
{
	struct tally_total total = sum->total;
	bool was_read = sum->was_read;
	double value = 0;
	bool has_value = tally_total_value(&total, &value);
	/* Read, but it was never enabled: the task did not run, and 0 is the true count. */
	/* A pinned event without a counter is in error state: its time stops, and it reads 0 once
	 * its task has ended. */
	bool is_pinned = c->options->events[event].attr.flags & TALLY_ATTR_PINNED;
	bool is_task = !c->options->target->all || row->cgroup;
	bool is_idle = was_read && !is_pinned && !total.enabled_ns && is_task &&
		       (c->was_enabled || c->reads);
	row->raw = total.raw;
	row->enabled_ns = total.enabled_ns;
	row->running_ns = total.running_ns;
	row->was_scaled = total.was_scaled;
	row->quality = tally_counting_quality(c, event, total.was_scaled);
	row->value = value * row->scale;
	const struct tally_provider *provider = c->options->provider;
	const char *uncounted = provider->ops->uncounted
					? provider->ops->uncounted(c->options->provider)
					: NULL;
	row->state = (has_value || is_idle) && !uncounted ? TALLY_COUNT_OK
							  : TALLY_COUNT_NOT_COUNTED;
	if (uncounted)
		row->reason = uncounted;
	else if (row->state == TALLY_COUNT_OK)
		withhold_empty_tracepoint(row);
	else if (is_pinned && !total.enabled_ns)
		row->reason = "pinned, but no counter was free";
	else if (!was_read)
		row->reason = sum->was_open ? "lost its counter to another user"
					    : tally_counting_reason(c, event);
	else if (row->group >= 0 && total.enabled_ns && !c->options->events[event].weak_group)
		row->reason = "its group was never scheduled; {…}:W counts its events separately";
	else
		row->reason = total.enabled_ns ? "was never scheduled; try fewer events (-e)"
					       : "was never enabled";
}

static bool substitute(struct tally_counting *c, struct tally_count *row, size_t event,
		       const struct tally_resource_usage *usage)
{
	uint64_t value;
	if (!tally_resource_usage_value(usage, &c->options->events[event].attr, &value))
		return false;
	row->name =
		c->options->events[event].name; /* without the ":u" of the unused event */
	row->excludes = c->options->events[event].attr.flags & TALLY_ATTR_EXCLUDES;
	row->state = TALLY_COUNT_OK;
	row->reason = NULL;
	row->is_substitute = true;
	row->was_scaled = false;
	row->source = usage->source;
	row->value = (double)value;
	row->raw = value;
	row->enabled_ns = row->running_ns = 0;
	return true;
}

/* True if the kernel accounts for this event, per task or for the whole system. */
static bool has_usage(const struct tally_counting *c, size_t event)
{
	int code = c->refusals[event];
	struct tally_resource_usage all = {
		.has_times = true, .has_faults = true, .has_switches = true, .has_migrations = true
	};
	uint64_t value;
	if (code != TALLY_REFUSED_EMPTIED && code != -EPERM && code != -EACCES && code != -ENOSYS)
		return false;
	return !is_open(c, event) &&
	       tally_resource_usage_value(&all, &c->options->events[event].attr, &value);
}

bool tally_counting_is_inexact(const struct tally_counting *c, size_t event)
{
	const struct tally_target *target = c->options->target;
	return target->all && has_usage(c, event) &&
	       (target->has_cpu_list || tally_attr_is_clock(&c->options->events[event].attr));
}

static bool is_substitutable(const struct tally_counting *c, size_t event)
{
	return has_usage(c, event) && !tally_counting_is_inexact(c, event) &&
	       c->options->by == TALLY_COUNT_BY_NOTHING && !c->options->events[event].cgroup;
}

static void fill_refused(struct tally_counting *c, struct tally_count *row, size_t event,
			 const struct tally_resource_usage *usage)
{
	bool is_withheld = c->refusals[event] == TALLY_REFUSED_EMPTIED ||
			   tally_counting_is_inexact(c, event);
	row->state = is_withheld ? TALLY_COUNT_WITHHELD : TALLY_COUNT_NOT_SUPPORTED;
	row->reason = tally_counting_reason(c, event);
	if (usage && is_substitutable(c, event))
		substitute(c, row, event, usage);
}

static void fill(struct tally_counting *c, const struct tally_resource_usage *usage,
		 bool since_start)
{
	size_t events = c->options->event_count;
	struct sum *sums = sum_up(c, since_start);
	for (size_t at = 0; at < c->part_count * events; at++) {
		struct tally_count *row = &c->rows[at];
		row->reason = NULL;
		if (!sums) {
			row->state = TALLY_COUNT_NOT_COUNTED;
			row->reason = "out of memory";
		} else if (c->options->events[at % events].kind == TALLY_EVENT_TOOL) {
			row->state = TALLY_COUNT_NOT_COUNTED;
		} else if (is_open(c, at % events)) {
			fill_counted(c, row, at % events, &sums[at]);
		} else {
			fill_refused(c, row, at % events, usage);
		}
	}
	free(sums);
}

void tally_counting_read(struct tally_counting *c, const struct tally_resource_usage *usage)
{
	read_slots(c);
	fill(c, usage, false);
	c->reads++;
}

void tally_counting_total(struct tally_counting *c, const struct tally_resource_usage *usage)
{
	fill(c, usage, true);
}

void tally_counting_check_coverage(struct tally_counting *c,
				   const struct tally_resource_usage *usage)
{
	/* Events don't see all of the work of exec and exit, nor what the child does before its
	 * exec: the first writes after fork copy pages, for 2 ms in a build with sanitizers.  Each
	 * event makes exec, exit and the switches between them longer: 700 tracepoints by 1 ms, on
	 * a busy machine by several. */
	enum { UNCERTAIN_NS = 3000000, UNCERTAIN_NS_PER_EVENT = 10000 };
	uint64_t used_ns = usage->user_ns + usage->system_ns, seen_ns = 0;
	size_t open_count = 0;
	for (size_t i = 0; i < c->options->event_count; i++)
		if (is_open(c, i)) {
			open_count++;
			if (c->rows[i].enabled_ns > seen_ns)
				seen_ns = c->rows[i].enabled_ns;
		}
	if (!open_count || seen_ns + UNCERTAIN_NS + open_count * UNCERTAIN_NS_PER_EVENT >= used_ns)
		return;
	c->coverage = (double)seen_ns / (double)used_ns;
	for (size_t i = 0; i < c->options->event_count && c->coverage < 0.5; i++)
		if (is_open(c, i) && !substitute(c, &c->rows[i], i, usage)) {
			c->rows[i].state = TALLY_COUNT_WITHHELD;
			c->rows[i].reason =
				"the counter was dropped by the exec of a set-user-ID program";
		}
}

bool tally_counting_needs_usage(const struct tally_counting *c)
{
	for (size_t i = 0; i < c->options->event_count; i++)
		if (is_substitutable(c, i))
			return true;
	return false;
}

int tally_counting_refusal(const struct tally_counting *c)
{
	int code = 0;
	for (size_t i = 0; i < c->options->event_count; i++) {
		int one = c->refusals[i];
		/* Many users may not count the kernel's part alone, but may count the rest. */
		if (one == -EACCES && (c->options->events[i].attr.flags & TALLY_ATTR_EXCLUDE_USER))
			continue;
		if (is_open(c, i) || c->is_user_only)
			return 0;
		if (!code && (one == -EPERM || one == -EACCES || one == -ENOSYS))
			code = one;
	}
	return code;
}

static void go_offline(struct tally_counting *c, size_t scope)
{
	uint64_t words[GROUP_READ_MAX + 4];
	for (size_t i = 0; i < c->options->event_count; i++)
		if (tally_counting_slot(c, scope, i)->handle >= 0 &&
		    tally_counting_slot(c, scope, i)->leader == i)
			read_leader(c, scope, i, words, sizeof(words));
	for (size_t i = 0; i < c->options->event_count; i++) {
		struct tally_count_slot *slot = tally_counting_slot(c, scope, i);
		tally_counting_close_slot(c, slot);
		slot->kept = slot->now;
	}
	c->scopes[scope].is_offline = true;
}

/* Returns the CPU's scope, or −1 if it was never counted. */
static long scope_of_cpu(const struct tally_counting *c, unsigned cpu)
{
	for (size_t i = 0; i < c->scope_count; i++)
		if (c->scopes[i].cpu == (int)cpu)
			return (long)i;
	return -1;
}

static bool come_online(struct tally_counting *c, unsigned cpu)
{
	long scope = scope_of_cpu(c, cpu);
	if (scope >= 0 && !c->scopes[scope].is_offline)
		return false;
	if (scope < 0 && c->options->target->has_cpu_list)
		return false;
	if (scope >= 0) {
		tally_counting_open_scope(c, (size_t)scope);
		c->scopes[scope].is_offline = false;
	} else {
		scope = (long)c->scope_count;
		if (tally_counting_add_scope(
			    c, (struct tally_count_scope){ .pid = -1, .cpu = (int)cpu }) < 0)
			return false;
	}
	if (c->is_enabled)
		control_scope(c, (size_t)scope, TALLY_IOCTL_ENABLE);
	tally_cpu_list_add(&c->came_online, cpu);
	return true;
}

bool tally_counting_set_online(struct tally_counting *c, const struct tally_cpu_list *online)
{
	bool has_changed = false;
	for (size_t i = 0; i < c->scope_count && c->options->target->all; i++)
		if (!c->scopes[i].is_offline &&
		    !tally_cpu_list_contains(online, (unsigned)c->scopes[i].cpu)) {
			go_offline(c, i);
			tally_cpu_list_add(&c->went_offline, (unsigned)c->scopes[i].cpu);
			has_changed = true;
		}
	for (size_t i = 0; i < online->count && c->options->target->all; i++)
		has_changed |= come_online(c, online->cpus[i]);
	return has_changed;
}

/* If closing will be slow, returns all descriptors (the caller frees the array); otherwise NULL. */
static int *slow_handles(const struct tally_counting *c, size_t *count)
{
	size_t slots = c->scope_count * c->options->event_count, tracepoints = 0;
	int *handles = c->options->provider == tally_provider_kernel() && slots
			       ? malloc(slots * sizeof(*handles))
			       : NULL;
	*count = 0;
	for (size_t at = 0; handles && at < slots; at++) {
		if (c->slots[at].handle < 0)
			continue;
		tracepoints += c->options->events[at % c->options->event_count].attr.type ==
			       TALLY_TYPE_TRACEPOINT;
		handles[(*count)++] = c->slots[at].handle;
	}
	if (tracepoints >= TALLY_CLOSE_APART_MIN)
		return handles;
	free(handles);
	return NULL;
}

void tally_counting_release_last(struct tally_counting *c)
{
	size_t count;
	int *handles = c->options ? slow_handles(c, &count) : NULL;
	int gate = handles ? tally_close_apart(handles, count) : -1;
	tally_counting_release(c);
	if (gate >= 0)
		close(gate);
	free(handles);
}

void tally_counting_release(struct tally_counting *c)
{
	for (size_t scope = 0; scope < c->scope_count; scope++)
		for (size_t i = 0; i < c->options->event_count; i++)
			tally_counting_close_slot(c, tally_counting_slot(c, scope, i));
	tally_counting_close_cgroups(c);
	free(c->scopes);
	free(c->slots);
	free(c->rows);
	free(c->parts);
	tally_cpu_list_release(&c->went_offline);
	tally_cpu_list_release(&c->came_online);
	tally_arena_release(&c->arena);
	*c = (struct tally_counting){ 0 };
}
