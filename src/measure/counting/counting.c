/* Reads counters and makes rows, each with its source, its quality and the reason of a missing
 * value.
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
#include "counting/counting_internal.h"

#include "abi/abi.h"
#include "base/extremes.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts and names ----------------------------------------------------- */

/* Returns the event's name with the "u" that it was opened with, appended to existing modifiers. */
static const char *user_only_name(struct tally_counting *c, const struct tally_event *event)
{
	const char *name = event->name, *behind = strrchr(name, '/');
	bool has_modifiers = (event->kind != TALLY_EVENT_VENDOR && strchr(name, ':')) ||
			     (event->kind != TALLY_EVENT_BREAKPOINT && behind);
	if (event->kind == TALLY_EVENT_TRACEPOINT) {
		const char *colon = strchr(name, ':');
		has_modifiers = colon && strchr(colon + 1, ':') != NULL;
	}
	const char *text = tally_arena_printf(&c->arena, "%s%s", name, has_modifiers ? "u" : ":u");
	return tally_text_or(text, name);
}

/* Returns the quality of a count.  A count that was scaled up is always an estimate, even if the
 * counted part is exact. */
static const char *quality(const struct tally_counting *c, size_t i, bool was_scaled)
{
	const struct tally_provider_ops *ops = c->options->provider->ops;
	const char *text = NULL;
	if (ops->quality && !c->handles.events[i].refusal)
		text = ops->quality(c->options->provider, &c->options->events[i].attr);
	if (text && was_scaled)
		return "estimate";
	return text;
}

static void name_row(struct tally_counting *c, size_t part, size_t i)
{
	const struct tally_event *event = &c->options->events[i];
	const struct tally_provider_ops *ops = c->options->provider->ops;
	struct tally_event_count *row = &c->rows[part * c->options->event_count + i];
	bool is_clock = tally_attr_is_clock(&event->attr) || event->kind == TALLY_EVENT_TOOL;
	row->name = event->name;
	row->unit = tally_text_or(event->unit, "");
	if (is_clock)
		row->unit = "ns";
	row->scale = event->scale > 0 ? event->scale : 1;
	row->type = event->attr.type;
	row->config = event->attr.config;
	if (c->options->event_cores)
		row->core = c->options->event_cores[i];
	row->group = event->group;
	row->cgroup = event->cgroup;
	row->excludes = is_clock ? 0 : event->attr.flags & TALLY_ATTR_EXCLUDES;
	row->source = ops->name;
	row->quality = quality(c, i, false);
	if (c->handles.events[i].user_only && !is_clock) {
		row->excludes |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		row->name = user_only_name(c, event);
	}
}

static void name_rows(struct tally_counting *c, size_t first_part)
{
	for (size_t part = first_part; part < c->part_count; part++)
		for (size_t i = 0; i < c->options->event_count; i++)
			name_row(c, part, i);
}

/* Adds a part with its rows, not yet named.  Returns 0 or -ENOMEM. */
static int add_part(struct tally_counting *c, const char *label)
{
	size_t events = c->options->event_count;
	if (c->part_count == c->part_capacity) {
		size_t capacity = tally_max_u64(2 * c->part_capacity, 4);
		struct tally_count_part *parts = reallocarray(c->parts, capacity, sizeof(*parts));
		if (!parts)
			return -ENOMEM;
		c->parts = parts;
		struct tally_event_count *rows = reallocarray(c->rows, capacity * (events + 1),
							      sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		c->rows = rows;
		c->part_capacity = capacity;
	}
	const char *kept = "";
	if (*label)
		kept = tally_arena_string(&c->arena, label);
	if (!kept)
		return -ENOMEM;
	memset(c->rows + c->part_count * events, 0, events * sizeof(*c->rows));
	c->parts[c->part_count++] = (struct tally_count_part){ .label = kept };
	return 0;
}

static void label_thread(pid_t tid, char *out, size_t size)
{
	char comm[TALLY_PROC_COMM_MAX];
	if (tally_proc_comm(tid, comm, sizeof(comm)) < 0)
		snprintf(out, size, "%d", tid);
	else
		snprintf(out, size, "%s-%d", comm, tid);
}

/* A CPU without a die number is in die 0, as in perf. */
static void label_cpu(enum tally_count_by by, unsigned cpu, char *out, size_t size)
{
	struct tally_cpu_location at;
	int node;
	tally_cpu_location_read(NULL, cpu, &at, &node);
	if (at.die < 0)
		at.die = 0;
	if (by == TALLY_COUNT_BY_CORE)
		snprintf(out, size, "S%d-D%d-C%d", at.package, at.die, at.core);
	else if (by == TALLY_COUNT_BY_DIE)
		snprintf(out, size, "S%d-D%d", at.package, at.die);
	else if (by == TALLY_COUNT_BY_SOCKET)
		snprintf(out, size, "S%d", at.package);
	else
		snprintf(out, size, "N%d", node);
}

/* Puts the scope into its part, which is made for the first scope in it.  Parts have perf's names.
 * Returns 0 or -ENOMEM. */
static int find_part(struct tally_counting *c, struct tally_count_scope *scope)
{
	enum tally_count_by by = c->options->by;
	char label[TALLY_PROC_COMM_MAX + 32] = "";
	bool is_single = by == TALLY_COUNT_BY_CPU || by == TALLY_COUNT_BY_THREAD;
	if (by == TALLY_COUNT_BY_THREAD)
		label_thread(scope->pid, label, sizeof(label));
	else if (by == TALLY_COUNT_BY_CPU)
		snprintf(label, sizeof(label), "CPU%d", scope->cpu);
	else if (by != TALLY_COUNT_BY_NOTHING)
		label_cpu(by, (unsigned)scope->cpu, label, sizeof(label));
	size_t part = 0;
	while (part < c->part_count && (is_single || strcmp(c->parts[part].label, label) != 0))
		part++;
	if (part == c->part_count) {
		if (add_part(c, label) < 0)
			return -ENOMEM;
		name_rows(c, part);
	}
	c->parts[part].cpus += scope->cpu >= 0;
	scope->part = part;
	return 0;
}

/* ---- opening ------------------------------------------------------------- */

/* Opens the events on one more task or CPU. */
static int add_scope(struct tally_counting *c, pid_t pid, int cpu)
{
	struct tally_count_handles *handles = &c->handles;
	int result = tally_count_handles_add(handles, pid, cpu);
	if (result < 0)
		return result;
	size_t at = handles->scope_count - 1;
	result = find_part(c, &handles->scopes[at]);
	if (result < 0) {
		handles->scope_count--;
		return result;
	}
	tally_count_handles_open(handles, at);
	return handles->fatal;
}

int tally_counting_follow(struct tally_counting *c)
{
	const struct tally_pid_list *tids = &c->options->target->tids;
	int result = 0;
	for (size_t i = c->handles.scope_count; i < tids->count && result >= 0; i++)
		result = add_scope(c, tids->items[i], -1);
	return result;
}

static int add_places(struct tally_counting *c)
{
	const struct tally_target *target = c->options->target;
	if (c->options->command_pid)
		return add_scope(c, c->options->command_pid, -1);
	if (!target->all)
		return tally_counting_follow(c);
	int result = 0;
	for (size_t i = 0; i < target->cpus.count && result >= 0; i++)
		result = add_scope(c, -1, (int)target->cpus.cpus[i]);
	return result;
}

int tally_counting_open(const struct tally_counting_options *options, struct tally_counting *c,
			struct tally_error *err)
{
	*c = (struct tally_counting){ .options = options, .coverage = 1 };
	int result = tally_count_handles_init(&c->handles, options, err);
	if (result >= 0) {
		result = add_places(c);
		/* each event has a row, even if no thread is left */
		if (result >= 0 && !c->part_count)
			result = add_part(c, "");
		if (result < 0)
			tally_count_handles_explain(&c->handles, result, err);
	}
	if (result < 0) {
		tally_counting_release(c);
		return result;
	}
	name_rows(c, 0);
	return 0;
}

/* ---- switching ----------------------------------------------------------- */

void tally_counting_enable(struct tally_counting *c)
{
	for (size_t scope = 0; scope < c->handles.scope_count; scope++)
		tally_count_handles_switch(&c->handles, scope, TALLY_IOCTL_ENABLE);
	c->was_enabled = c->is_enabled = true;
}

void tally_counting_disable(struct tally_counting *c)
{
	for (size_t scope = 0; scope < c->handles.scope_count; scope++)
		tally_count_handles_switch(&c->handles, scope, TALLY_IOCTL_DISABLE);
	c->is_enabled = false;
}

size_t tally_counting_control_named(struct tally_counting *c, const char *name, bool enable)
{
	enum tally_ioctl request = enable ? TALLY_IOCTL_ENABLE : TALLY_IOCTL_DISABLE;
	size_t found = 0, length = strlen(name);
	for (size_t i = 0; i < c->options->event_count; i++) {
		const char *own = c->options->events[i].name;
		/* "cycles" is all of cpu_core/cycles/ and cpu_atom/cycles/ */
		if (c->options->event_cores && c->options->event_cores[i] && !strchr(name, '/'))
			own = strchr(own, '/') ? strchr(own, '/') + 1 : own;
		if (strncmp(own, name, length) != 0 || (own[length] && !strchr(":/", own[length])))
			continue;
		found++;
		tally_count_handles_switch_event(&c->handles, i, request);
	}
	c->was_enabled |= found && enable;
	return found;
}

/* ---- rows ---------------------------------------------------------------- */

static void withhold_empty_tracepoint(struct tally_event_count *row)
{
	if (row->type == TALLY_TYPE_TRACEPOINT && (row->excludes & TALLY_ATTR_EXCLUDE_KERNEL) &&
	    !row->raw) {
		row->state = TALLY_COUNT_WITHHELD;
		row->reason = "occurs in the kernel, and only user mode may be counted";
	}
}

static void withhold_small_share(struct tally_counting *c, struct tally_event_count *row)
{
	row->state = TALLY_COUNT_WITHHELD;
	row->reason = tally_arena_printf(
		&c->arena, "had a counter for %.2g %% of the time only; --min-running shows it",
		100 * tally_count_share(row));
}

/* The counts of one event in one part. */
struct sum {
	struct tally_total total;
	double variance;
	bool was_read, was_open;
	bool has_no_variance; /* of a task or CPU there are too few slices */
	uint64_t task_ns;     /* tasks, one of several types of cores: time on all cores */
	bool is_uncertain;    /* the time on its cores is not known */
};

static void add_slice(struct tally_count_slot *slot)
{
	tally_slices_add(&slot->slices, tally_reading_since(slot->now, slot->sliced));
	slot->sliced = slot->now;
}

bool tally_counting_slice(struct tally_counting *c)
{
	size_t events = c->options->event_count, slots = c->handles.scope_count * events;
	bool is_shared = false;
	tally_count_handles_read(&c->handles);
	for (size_t i = 0; i < slots; i++) {
		struct tally_count_slot *slot = &c->handles.slots[i];
		if (slot->was_read)
			add_slice(slot);
		/* The time on other cores is no sharing of counters. */
		if (!tally_cores_apply(&c->handles, i / events, i % events))
			is_shared |= slot->slices.running < slot->slices.enabled * 0.9999;
	}
	return is_shared;
}

/* Adds the variance of the slot's slices, which it takes. */
static void add_variance(struct tally_count_slot *slot, bool since_start, struct sum *sum)
{
	double variance;
	add_slice(slot);
	struct tally_slices slices = slot->slices;
	if (since_start) {
		slices = slot->all_slices;
		tally_slices_join(&slices, &slot->slices);
	}
	if (tally_slices_variance(&slices, &variance))
		sum->variance += variance;
	else
		sum->has_no_variance |= slices.enabled > 0;
	tally_slices_join(&slot->all_slices, &slot->slices);
	slot->slices = (struct tally_slices){ 0 };
}

/* Adds the readings of one scope to the sums of its part. */
static void sum_up_scope(struct tally_counting *c, size_t scope, bool since_start,
			 struct tally_reading *readings, struct sum *sums)
{
	size_t events = c->options->event_count;
	for (size_t i = 0; i < events; i++) {
		const struct tally_count_slot *slot = tally_count_slot_of(&c->handles, scope, i);
		struct tally_reading from = { 0 };
		if (!since_start)
			from = slot->last;
		readings[i] = (struct tally_reading){ 0 };
		if (slot->was_read)
			readings[i] = tally_reading_since(slot->now, from);
	}
	struct tally_core_times times = tally_core_times_of(&c->handles, scope, readings);
	for (size_t i = 0; i < events; i++) {
		struct tally_count_slot *slot = tally_count_slot_of(&c->handles, scope, i);
		struct sum *sum = &sums[i];
		struct tally_reading reading = readings[i];
		sum->was_open |= slot->was_open;
		if (!slot->was_read)
			continue;
		add_variance(slot, since_start, sum);
		if (tally_cores_apply(&c->handles, scope, i)) {
			sum->task_ns += reading.enabled_ns;
			sum->has_no_variance = true; /* slices have the time on other cores, too */
			sum->is_uncertain |= !tally_core_times_correct(&c->handles, readings,
								       &times, i, &reading);
		}
		tally_total_add(&sum->total, reading);
		slot->last = slot->now;
		sum->was_read = true;
	}
}

static struct sum *sum_up(struct tally_counting *c, bool since_start)
{
	size_t events = c->options->event_count;
	struct sum *sums = calloc(c->part_count * events + 1, sizeof(*sums));
	struct tally_reading *readings = calloc(events + 1, sizeof(*readings));
	for (size_t scope = 0; sums && readings && scope < c->handles.scope_count; scope++)
		sum_up_scope(c, scope, since_start, readings,
			     &sums[c->handles.scopes[scope].part * events]);
	if (!readings) {
		free(sums);
		sums = NULL;
	}
	free(readings);
	return sums;
}

static void fill_counted(struct tally_counting *c, struct tally_event_count *row, size_t event,
			 const struct sum *sum)
{
	struct tally_total total = sum->total;
	bool was_read = sum->was_read;
	double value = 0;
	bool has_value = tally_total_value(&total, &value);
	/* all of the task's time is known to be on other cores: 0 is the true count */
	bool was_elsewhere = was_read && sum->task_ns && !total.enabled_ns && !sum->is_uncertain;
	/* Read, but it was never enabled: the task did not run, and 0 is the true count. */
	/* A pinned event without a counter is in error state: its time stops, and it reads 0 once
	 * its task has ended. */
	bool is_pinned = c->options->events[event].attr.flags & TALLY_ATTR_PINNED;
	bool is_task = !c->options->target->all || row->cgroup;
	bool is_idle = was_read && !sum->task_ns && !is_pinned && !total.enabled_ns && is_task &&
		       (c->was_enabled || c->was_read);
	row->raw = total.raw;
	row->enabled_ns = total.enabled_ns;
	row->running_ns = total.running_ns;
	row->was_scaled = total.was_scaled;
	row->scale_error = -1;
	if (total.was_scaled && !sum->has_no_variance)
		row->scale_error = 1.96 * sqrt(sum->variance) * row->scale;
	row->task_ns = sum->is_uncertain ? 0 : sum->task_ns;
	row->quality = quality(c, event, total.was_scaled);
	row->value = value * row->scale;
	const struct tally_provider *provider = c->options->provider;
	const char *uncounted = NULL;
	if (provider->ops->uncounted)
		uncounted = provider->ops->uncounted(c->options->provider);
	row->state = TALLY_COUNT_NOT_COUNTED;
	if ((has_value || is_idle || was_elsewhere) && !uncounted)
		row->state = TALLY_COUNT_OK;
	if (uncounted)
		row->reason = uncounted;
	else if (row->state == TALLY_COUNT_OK && total.is_saturated)
		row->reason = "raw counts add up to more than 2^64 - 1";
	else if (row->state == TALLY_COUNT_OK && total.was_scaled &&
		 tally_count_share(row) < c->options->share_min)
		withhold_small_share(c, row);
	else if (row->state == TALLY_COUNT_OK && sum->is_uncertain)
		row->reason = "at least; -e cycles as well tells the time on these cores";
	else if (row->state == TALLY_COUNT_OK)
		withhold_empty_tracepoint(row);
	else if (sum->task_ns)
		row->reason = "the task was not on these cores, or no counter was free";
	else if (is_pinned && !total.enabled_ns)
		row->reason = "pinned, but no counter was free";
	else if (!was_read && sum->was_open)
		row->reason = "lost its counter to another user";
	else if (!was_read)
		row->reason = tally_count_reason(&c->handles, event);
	else if (row->group >= 0 && total.enabled_ns && !c->options->events[event].weak_group)
		row->reason = "its group was never scheduled; {…}:W counts its events separately";
	else if (total.enabled_ns)
		row->reason = "was never scheduled; try fewer events (-e)";
	else
		row->reason = "was never enabled";
}

static bool substitute(struct tally_counting *c, struct tally_event_count *row, size_t event,
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

static void fill_refused(struct tally_counting *c, struct tally_event_count *row, size_t event,
			 const struct tally_resource_usage *usage)
{
	bool is_withheld = c->handles.events[event].refusal == TALLY_REFUSED_EMPTIED ||
			   tally_count_is_inexact(&c->handles, event);
	row->state = is_withheld ? TALLY_COUNT_WITHHELD : TALLY_COUNT_NOT_SUPPORTED;
	row->reason = tally_count_reason(&c->handles, event);
	if (usage && tally_count_is_substitutable(&c->handles, event))
		substitute(c, row, event, usage);
}

static void fill(struct tally_counting *c, const struct tally_resource_usage *usage,
		 bool since_start)
{
	size_t events = c->options->event_count;
	struct sum *sums = sum_up(c, since_start);
	for (size_t at = 0; at < c->part_count * events; at++) {
		struct tally_event_count *row = &c->rows[at];
		row->reason = NULL;
		if (!sums) {
			row->state = TALLY_COUNT_NOT_COUNTED;
			row->reason = "out of memory";
		} else if (c->options->events[at % events].kind == TALLY_EVENT_TOOL) {
			row->state = TALLY_COUNT_NOT_COUNTED;
		} else if (c->handles.events[at % events].was_open) {
			fill_counted(c, row, at % events, &sums[at]);
		} else {
			fill_refused(c, row, at % events, usage);
		}
	}
	free(sums);
}

void tally_counting_read(struct tally_counting *c, const struct tally_resource_usage *usage)
{
	tally_count_handles_read(&c->handles);
	fill(c, usage, false);
	c->was_read = true;
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
		if (c->handles.events[i].was_open) {
			open_count++;
			if (c->rows[i].enabled_ns > seen_ns)
				seen_ns = c->rows[i].enabled_ns;
		}
	if (!open_count || seen_ns + UNCERTAIN_NS + open_count * UNCERTAIN_NS_PER_EVENT >= used_ns)
		return;
	c->coverage = (double)seen_ns / (double)used_ns;
	for (size_t i = 0; i < c->options->event_count && c->coverage < 0.5; i++)
		if (c->handles.events[i].was_open && !substitute(c, &c->rows[i], i, usage)) {
			c->rows[i].state = TALLY_COUNT_WITHHELD;
			c->rows[i].reason = tally_text_or(
				c->options->provider->ops->missed_reason,
				"the counter was dropped by the exec of a set-user-ID program");
		}
}

/* ---- CPUs that come and go ----------------------------------------------- */

/* Returns the CPU's scope, or −1 if it was never counted. */
static long scope_of_cpu(const struct tally_counting *c, unsigned cpu)
{
	for (size_t i = 0; i < c->handles.scope_count; i++)
		if (c->handles.scopes[i].cpu == (int)cpu)
			return (long)i;
	return -1;
}

static bool come_online(struct tally_counting *c, unsigned cpu)
{
	long scope = scope_of_cpu(c, cpu);
	if (scope >= 0 && !c->handles.scopes[scope].is_offline)
		return false;
	if (scope < 0 && c->options->target->has_cpu_list)
		return false;
	if (scope >= 0) {
		tally_count_handles_open(&c->handles, (size_t)scope);
		c->handles.scopes[scope].is_offline = false;
	} else {
		scope = (long)c->handles.scope_count;
		if (add_scope(c, -1, (int)cpu) < 0)
			return false;
	}
	if (c->is_enabled)
		tally_count_handles_switch(&c->handles, (size_t)scope, TALLY_IOCTL_ENABLE);
	tally_cpu_list_add(&c->came_online, cpu);
	return true;
}

bool tally_counting_set_online(struct tally_counting *c, const struct tally_cpu_list *online)
{
	bool has_changed = false;
	for (size_t i = 0; i < c->handles.scope_count && c->options->target->all; i++)
		if (!c->handles.scopes[i].is_offline &&
		    !tally_cpu_list_contains(online, (unsigned)c->handles.scopes[i].cpu)) {
			tally_count_handles_go_offline(&c->handles, i);
			tally_cpu_list_add(&c->went_offline, (unsigned)c->handles.scopes[i].cpu);
			has_changed = true;
		}
	for (size_t i = 0; i < online->count && c->options->target->all; i++)
		has_changed |= come_online(c, online->cpus[i]);
	return has_changed;
}

/* ---- closing ------------------------------------------------------------- */

void tally_counting_close(struct tally_counting *c)
{
	tally_count_handles_close(&c->handles);
}

void tally_counting_release(struct tally_counting *c)
{
	tally_count_handles_release(&c->handles);
	free(c->rows);
	free(c->parts);
	tally_cpu_list_release(&c->went_offline);
	tally_cpu_list_release(&c->came_online);
	tally_arena_release(&c->arena);
	*c = (struct tally_counting){ 0 };
}

void tally_counting_release_last(struct tally_counting *c)
{
	if (c->options)
		tally_count_handles_close_last(&c->handles);
	tally_counting_release(c);
}
