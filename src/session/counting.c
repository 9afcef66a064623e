/* Opening, reading and closing counters.
 *
 * Why this is more than a loop over perf_event_open(2):
 *
 *   Groups.  Members of a group are on the PMU together or not at all, which makes their ratios exact, but a group
 *   that is too large is never counted.  A member that fails to join is tried alone: when it opens, the group is
 *   what it failed for, and a weak group is taken apart in that place; else the event itself can't be counted, and
 *   its siblings go on without it.  When the first event of a group can't be opened the next one leads.
 *
 *   Privilege.  With perf_event_paranoid at 2 an ordinary user may count what happens in user mode alone: EACCES is
 *   answered by opening again with exclude_kernel, from then on for all events, and their names say so (":u").
 *   Three kinds are then a trap.  Context switches and migrations happen in the kernel, so the kernel counts none
 *   and reads 0: they are not opened at all, and taken from the task's resource usage or withheld.  Kernel
 *   tracepoints likewise; since some are not in the kernel (uprobes), only their zeros are withheld.  And clocks
 *   know no modes (measured: task-clock:u is the whole time), so no ":u" is put on them.
 *
 *   Refusal.  Where perf events are refused altogether (seccomp in containers: EPERM; no support: ENOSYS), times,
 *   faults and switches come from the resource usage, marked as such.  Of CPUs only the exact counters of the whole
 *   system are taken: /proc's times of CPUs are ticks of busy time, and no cpu-clock, and a list of CPUs has no
 *   faults and switches of its own there.  Those are withheld.
 *
 *   Time.  A task that never ran has enabled = running = 0 and a true count of 0; an event that never got the PMU
 *   while its task ran has no count at all.
 */
#include "session/counting.h"

#include "base/vector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { GROUP_READ_MAX = 1100 }; /* the kernel's limit is 1,022 siblings (measured) */

static struct tally_count_slot *slot_at(const struct tally_counting *c, size_t place, size_t event)
{
	return &c->slots[place * c->options->event_count + event];
}

bool tally_counting_is_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK);
}

bool tally_counting_is_emptied(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE && (attr->flags & TALLY_ATTR_EXCLUDE_KERNEL) &&
	       (attr->config == TALLY_SW_CONTEXT_SWITCHES || attr->config == TALLY_SW_CPU_MIGRATIONS ||
		attr->config == TALLY_SW_CGROUP_SWITCHES);
}

static bool is_hardware(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE || attr->type == TALLY_TYPE_RAW;
}

static struct tally_attr counting_attr(const struct tally_counting *c, size_t event, struct tally_count_place place,
				       bool leads, bool has_members)
{
	const struct tally_counting_options *o = c->options;
	struct tally_attr attr = o->events[event].attr;
	attr.sample_period = 0;
	attr.sample_type = 0;
	attr.flags &= ~(TALLY_ATTR_FREQ);
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	if (place.pid > 0 && !o->no_inherit)
		attr.flags |= TALLY_ATTR_INHERIT;
	if (leads)
		attr.flags |= TALLY_ATTR_DISABLED;
	if (leads && o->command_pid)
		attr.flags |= TALLY_ATTR_ENABLE_ON_EXEC;
	if (leads && has_members)
		attr.read_format |= TALLY_FORMAT_GROUP;
	attr.size = tally_attr_size_needed(&attr);
	return attr;
}

static bool raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return !setrlimit(RLIMIT_NOFILE, &limit);
}

/* exclude_guest is set on every event of a PMU, and some PMUs accept no exclusion at all (msr); what was asked for
 * by a modifier stays. */
static bool may_drop_guest(const struct tally_event *event, const struct tally_attr *attr)
{
	const char *slash = strrchr(event->name, '/'), *modifiers = slash ? slash : strchr(event->name, ':');
	return (attr->flags & TALLY_ATTR_EXCLUDE_GUEST) && !(attr->flags & TALLY_ATTR_EXCLUDE_HOST) &&
	       !(modifiers && strchr(modifiers, 'H'));
}

static int open_handle(const struct tally_counting *c, size_t event, struct tally_attr *attr,
		       struct tally_count_place place, int group)
{
	struct tally_provider *p = c->options->provider;
	int handle = p->ops->open(p, attr, place.pid, place.cpu, group, TALLY_FLAG_FD_CLOEXEC);
	if (handle == -EMFILE && raise_descriptor_limit())
		handle = p->ops->open(p, attr, place.pid, place.cpu, group, TALLY_FLAG_FD_CLOEXEC);
	if (handle == -EINVAL && may_drop_guest(&c->options->events[event], attr)) {
		attr->flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
		handle = p->ops->open(p, attr, place.pid, place.cpu, group, TALLY_FLAG_FD_CLOEXEC);
	}
	return handle;
}

static bool may_drop_kernel(const struct tally_event *event)
{
	return !(event->attr.flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER));
}

/* One event in one place: a handle, or a refusal. */
static int open_event(struct tally_counting *c, size_t event, struct tally_count_place place, int group,
		      bool has_members)
{
	const struct tally_event *e = &c->options->events[event];
	struct tally_attr attr = counting_attr(c, event, place, group < 0, has_members);
	if (tally_counting_is_emptied(&attr))
		return TALLY_REFUSED_EMPTIED;
	if (!c->is_user_only || !may_drop_kernel(e)) {
		int handle = open_handle(c, event, &attr, place, group);
		if ((handle != -EACCES && handle != -EPERM) || !may_drop_kernel(e))
			return handle;
	}
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	bool is_emptied = tally_counting_is_emptied(&attr);
	if (is_emptied && c->is_user_only)
		return TALLY_REFUSED_EMPTIED;
	int handle = open_handle(c, event, &attr, place, group);
	if (handle < 0)
		return handle;
	c->is_user_only = true;
	if (is_emptied) {
		c->options->provider->ops->close(c->options->provider, handle);
		return TALLY_REFUSED_EMPTIED;
	}
	c->user_only[event] = true;
	return handle;
}

static void close_slot(struct tally_counting *c, struct tally_count_slot *slot)
{
	if (slot->handle >= 0)
		c->options->provider->ops->close(c->options->provider, slot->handle);
	slot->handle = -1;
}

static void note_result(struct tally_counting *c, size_t place, size_t event, size_t leader, int handle)
{
	struct tally_count_slot *slot = slot_at(c, place, event);
	slot->handle = handle >= 0 ? handle : -1;
	slot->leader = leader;
	if (handle >= 0)
		c->has_hardware |= is_hardware(&c->options->events[event].attr);
	else if (!c->refusals[event] || c->refusals[event] == -ESRCH)
		c->refusals[event] = handle;
}

static bool counts_on(const struct tally_counting *c, size_t event, struct tally_count_place place)
{
	const char *text = c->options->event_cpus ? c->options->event_cpus[event] : NULL;
	struct tally_cpu_list cpus = { 0 };
	bool result = true;
	if (place.cpu >= 0 && text && text[0] && tally_cpu_list_parse(text, &cpus, NULL) >= 0)
		result = tally_cpu_list_contains(&cpus, (unsigned)place.cpu);
	tally_cpu_list_release(&cpus);
	return result;
}

static void open_single(struct tally_counting *c, size_t place, size_t event)
{
	if (counts_on(c, event, c->places[place]))
		note_result(c, place, event, event, open_event(c, event, c->places[place], -1, false));
}

/* True when the group was taken apart and its events stand alone. */
static bool open_group(struct tally_counting *c, size_t place, size_t first, size_t count)
{
	const struct tally_event *events = c->options->events;
	size_t leader = SIZE_MAX;
	for (size_t i = first; i < first + count; i++) {
		if (!counts_on(c, i, c->places[place]))
			continue;
		int group = leader == SIZE_MAX ? -1 : slot_at(c, place, leader)->handle;
		int handle = open_event(c, i, c->places[place], group, true);
		bool may_be_full = group >= 0 && (handle == -EINVAL || handle == -E2BIG || handle == -ENOSPC);
		int alone = may_be_full ? open_event(c, i, c->places[place], -1, false) : -1;
		if (alone >= 0) {
			c->options->provider->ops->close(c->options->provider, alone);
			if (events[i].weak_group)
				return false;
			handle = TALLY_REFUSED_GROUP;
		}
		if (handle >= 0 && leader == SIZE_MAX) {
			leader = i;
			slot_at(c, place, i)->reads_group = true;
		}
		note_result(c, place, i, leader == SIZE_MAX ? i : leader, handle);
	}
	return true;
}

static void open_place(struct tally_counting *c, size_t place)
{
	const struct tally_event *events = c->options->events;
	size_t total = c->options->event_count;
	for (size_t first = 0, count; first < total; first += count) {
		for (count = 1; events[first].group >= 0 && first + count < total &&
				events[first + count].group == events[first].group;)
			count++;
		if (count > 1 && open_group(c, place, first, count))
			continue;
		for (size_t i = first; i < first + count; i++) {
			close_slot(c, slot_at(c, place, i));
			slot_at(c, place, i)->reads_group = false;
			open_single(c, place, i);
		}
	}
}

static int add_place(struct tally_counting *c, struct tally_count_place place)
{
	size_t events = c->options->event_count;
	if (c->place_count == c->place_capacity) {
		size_t capacity = c->place_capacity ? 2 * c->place_capacity : 4;
		struct tally_count_place *places = reallocarray(c->places, capacity, sizeof(*places));
		if (places)
			c->places = places;
		struct tally_count_slot *slots = places ? reallocarray(c->slots, capacity * (events + 1), sizeof(*slots))
							: NULL;
		if (!slots)
			return -ENOMEM;
		c->slots = slots;
		c->place_capacity = capacity;
	}
	size_t at = c->place_count++;
	c->places[at] = place;
	for (size_t i = 0; i < events; i++)
		*slot_at(c, at, i) = (struct tally_count_slot){ .handle = -1, .leader = i };
	open_place(c, at);
	return 0;
}

int tally_counting_follow(struct tally_counting *c)
{
	const struct tally_pid_list *tids = &c->options->target->tids;
	int result = 0;
	for (size_t i = c->place_count; i < tids->count && result >= 0; i++)
		result = add_place(c, (struct tally_count_place){ .pid = tids->items[i], .cpu = -1 });
	return result;
}

static int add_places(struct tally_counting *c)
{
	const struct tally_target *target = c->options->target;
	if (c->options->command_pid)
		return add_place(c, (struct tally_count_place){ .pid = c->options->command_pid, .cpu = -1 });
	if (!target->all)
		return tally_counting_follow(c);
	int result = 0;
	for (size_t i = 0; i < target->cpus.count && result >= 0; i++)
		result = add_place(c, (struct tally_count_place){ .pid = -1, .cpu = (int)target->cpus.cpus[i] });
	return result;
}

static bool is_open(const struct tally_counting *c, size_t event)
{
	for (size_t i = 0; i < c->place_count; i++)
		if (slot_at(c, i, event)->handle >= 0)
			return true;
	return false;
}

/* The name with the "u" that the event was opened with: behind modifiers that are there already. */
static const char *user_only_name(struct tally_counting *c, const struct tally_event *event)
{
	const char *name = event->name, *behind = strrchr(name, '/');
	bool has_modifiers = strchr(name, ':') || (event->kind == TALLY_EVENT_PMU && behind);
	if (event->kind == TALLY_EVENT_TRACEPOINT) {
		const char *colon = strchr(name, ':');
		has_modifiers = colon && strchr(colon + 1, ':') != NULL;
	}
	const char *text = tally_arena_printf(&c->arena, "%s%s", name, has_modifiers ? "u" : ":u");
	return text ? text : name;
}

/* What was counted part of the time is an estimate, however exact the part. */
static const char *quality_of(const struct tally_counting *c, size_t i, bool was_scaled)
{
	const struct tally_provider_ops *ops = c->options->provider->ops;
	const char *quality = ops->quality && !c->refusals[i] ?
			      ops->quality(c->options->provider, &c->options->events[i].attr) : NULL;
	return quality && was_scaled ? "estimate" : quality;
}

static void name_row(struct tally_counting *c, size_t i)
{
	const struct tally_event *event = &c->options->events[i];
	const struct tally_provider_ops *ops = c->options->provider->ops;
	struct tally_count *row = &c->rows[i];
	bool is_clock = tally_counting_is_clock(&event->attr);
	row->name = event->name;
	row->unit = is_clock ? "ns" : event->unit ? event->unit : "";
	row->scale = event->scale > 0 ? event->scale : 1;
	row->type = event->attr.type;
	row->config = event->attr.config;
	row->group = event->group;
	row->excludes = is_clock ? 0 : event->attr.flags & TALLY_ATTR_EXCLUDES;
	row->source = ops->name;
	row->quality = quality_of(c, i, false);
	if (c->user_only[i] && !is_clock) {
		row->excludes |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		row->name = user_only_name(c, event);
	}
}

int tally_counting_open(const struct tally_counting_options *options, struct tally_counting *c, struct tally_error *err)
{
	*c = (struct tally_counting){ .options = options, .coverage = 1 };
	size_t count = options->event_count;
	c->rows = tally_arena_array(&c->arena, count + 1, sizeof(*c->rows));
	c->refusals = tally_arena_array(&c->arena, count + 1, sizeof(*c->refusals));
	c->user_only = tally_arena_array(&c->arena, count + 1, sizeof(*c->user_only));
	int result = c->rows && c->refusals && c->user_only ? add_places(c) : -ENOMEM;
	if (result < 0) {
		tally_counting_release(c);
		return tally_error_set(err, result, "out of memory");
	}
	for (size_t i = 0; i < count; i++)
		name_row(c, i);
	return 0;
}

static void control(struct tally_counting *c, enum tally_ioctl request)
{
	for (size_t place = 0; place < c->place_count; place++)
		for (size_t i = 0; i < c->options->event_count; i++) {
			struct tally_count_slot *slot = slot_at(c, place, i);
			if (slot->handle >= 0 && slot->leader == i)
				c->options->provider->ops->ioctl(c->options->provider, slot->handle, request, NULL, 0);
		}
}

void tally_counting_enable(struct tally_counting *c)
{
	control(c, TALLY_IOCTL_ENABLE);
	c->was_enabled = true;
}

void tally_counting_disable(struct tally_counting *c)
{
	control(c, TALLY_IOCTL_DISABLE);
}

/* A leader's read gives its members' values in the order in which they joined. */
static void read_leader(struct tally_counting *c, size_t place, size_t leader, uint64_t *words, size_t size)
{
	struct tally_count_slot *slot = slot_at(c, place, leader);
	uint64_t format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING |
			  (slot->reads_group ? TALLY_FORMAT_GROUP : 0);
	size_t count = c->options->event_count;
	struct tally_read_values values;
	ssize_t got = c->options->provider->ops->read(c->options->provider, slot->handle, words, size);
	if (got <= 0 || tally_read_values_parse(format, words, (size_t)got, &values) < 0)
		return;
	for (size_t i = leader, at = 0; i < count && at < values.count; i++) {
		struct tally_count_slot *member = slot_at(c, place, i);
		if (member->handle < 0 || member->leader != leader)
			continue;
		member->now = (struct tally_reading){ values.values[at++ * values.stride], values.time_enabled,
						      values.time_running };
		member->was_read = true;
	}
}

static void read_slots(struct tally_counting *c)
{
	uint64_t words[GROUP_READ_MAX + 4];
	for (size_t place = 0; place < c->place_count; place++)
		for (size_t i = 0; i < c->options->event_count; i++)
			slot_at(c, place, i)->was_read = false;
	for (size_t place = 0; place < c->place_count; place++)
		for (size_t i = 0; i < c->options->event_count; i++)
			if (slot_at(c, place, i)->handle >= 0 && slot_at(c, place, i)->leader == i)
				read_leader(c, place, i, words, sizeof(words));
}

static void withhold_empty_tracepoint(struct tally_count *row)
{
	if (row->type == TALLY_TYPE_TRACEPOINT && (row->excludes & TALLY_ATTR_EXCLUDE_KERNEL) && !row->raw) {
		row->state = TALLY_COUNT_WITHHELD;
		row->reason = "fires in the kernel, where only user mode may be counted";
	}
}

static void fill_counted(struct tally_counting *c, size_t event)
{
	struct tally_count *row = &c->rows[event];
	struct tally_total total = { 0 };
	bool was_read = false;
	for (size_t place = 0; place < c->place_count; place++) {
		struct tally_count_slot *slot = slot_at(c, place, event);
		if (!slot->was_read)
			continue;
		tally_total_add(&total, tally_reading_since(slot->now, slot->last));
		slot->last = slot->now;
		was_read = true;
	}
	double value = 0;
	bool has_value = tally_total_value(&total, &value);
	/* Read, but no time has passed for it: the task did not run, and the count is truly 0. */
	/* A pinned event that found no counter is in error: its time stops, and once its task is gone it reads 0. */
	bool is_pinned = c->options->events[event].attr.flags & TALLY_ATTR_PINNED;
	bool is_idle = was_read && !is_pinned && !total.enabled_ns && !c->options->target->all &&
		       (c->was_enabled || c->reads);
	row->raw = total.raw;
	row->enabled_ns = total.enabled_ns;
	row->running_ns = total.running_ns;
	row->was_scaled = total.was_scaled;
	row->quality = quality_of(c, event, total.was_scaled);
	row->value = value * row->scale;
	const struct tally_provider *provider = c->options->provider;
	const char *uncounted = provider->ops->uncounted ? provider->ops->uncounted(c->options->provider) : NULL;
	row->state = (has_value || is_idle) && !uncounted ? TALLY_COUNT_OK : TALLY_COUNT_NOT_COUNTED;
	if (uncounted)
		row->reason = uncounted;
	else if (row->state == TALLY_COUNT_OK)
		withhold_empty_tracepoint(row);
	else if (is_pinned && !total.enabled_ns)
		row->reason = "pinned, and no counter was free: it is in error";
	else if (!was_read)
		row->reason = "lost its counter to another user";
	else if (row->group >= 0 && total.enabled_ns && !c->options->events[event].weak_group)
		row->reason = "its group never got the PMU; {…}:W counts its events singly";
	else
		row->reason = total.enabled_ns ? "never got the PMU; fewer events (-e) may" : "was never enabled";
}

static bool substitute(struct tally_counting *c, size_t event, const struct tally_resource_usage *usage)
{
	struct tally_count *row = &c->rows[event];
	uint64_t value;
	if (!tally_resource_usage_value(usage, &c->options->events[event].attr, &value))
		return false;
	row->name = c->options->events[event].name; /* without the ":u" of an event that is not used */
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

/* The kernel accounts for this event of tasks, or of the whole system. */
static bool has_usage(const struct tally_counting *c, size_t event)
{
	int code = c->refusals[event];
	struct tally_resource_usage all = { .has_times = true, .has_faults = true, .has_switches = true,
					    .has_migrations = true };
	uint64_t value;
	if (code != TALLY_REFUSED_EMPTIED && code != -EPERM && code != -EACCES && code != -ENOSYS)
		return false;
	return !is_open(c, event) && tally_resource_usage_value(&all, &c->options->events[event].attr, &value);
}

bool tally_counting_is_inexact(const struct tally_counting *c, size_t event)
{
	const struct tally_target *target = c->options->target;
	return target->all && has_usage(c, event) &&
	       (target->has_cpu_list || tally_counting_is_clock(&c->options->events[event].attr));
}

static bool is_substitutable(const struct tally_counting *c, size_t event)
{
	return has_usage(c, event) && !tally_counting_is_inexact(c, event);
}

static void fill_refused(struct tally_counting *c, size_t event, const struct tally_resource_usage *usage)
{
	struct tally_count *row = &c->rows[event];
	bool is_withheld = c->refusals[event] == TALLY_REFUSED_EMPTIED || tally_counting_is_inexact(c, event);
	row->state = is_withheld ? TALLY_COUNT_WITHHELD : TALLY_COUNT_NOT_SUPPORTED;
	row->reason = tally_counting_reason(c, event);
	if (usage && is_substitutable(c, event))
		substitute(c, event, usage);
}

void tally_counting_read(struct tally_counting *c, const struct tally_resource_usage *usage)
{
	read_slots(c);
	for (size_t i = 0; i < c->options->event_count; i++) {
		c->rows[i].reason = NULL;
		if (is_open(c, i))
			fill_counted(c, i);
		else
			fill_refused(c, i, usage);
	}
	c->reads++;
}

void tally_counting_check_coverage(struct tally_counting *c, const struct tally_resource_usage *usage)
{
	/* Exec's own work and exit's are partly outside of what events see, and so is what the child does before: the first
	 * writes after fork copy pages, for 2 ms in a build with sanitizers. */
	enum { UNCERTAIN_NS = 3000000 };
	uint64_t used_ns = usage->user_ns + usage->system_ns, seen_ns = 0;
	bool has_any = false;
	for (size_t i = 0; i < c->options->event_count; i++)
		if (is_open(c, i)) {
			has_any = true;
			if (c->rows[i].enabled_ns > seen_ns)
				seen_ns = c->rows[i].enabled_ns;
		}
	if (!has_any || seen_ns + UNCERTAIN_NS >= used_ns)
		return;
	c->coverage = (double)seen_ns / (double)used_ns;
	for (size_t i = 0; i < c->options->event_count && c->coverage < 0.5; i++)
		if (is_open(c, i) && !substitute(c, i, usage)) {
			c->rows[i].state = TALLY_COUNT_WITHHELD;
			c->rows[i].reason = "the counter was dropped by the exec of a set-user-ID program";
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
		/* Work of the kernel alone is refused to many who may count the rest. */
		if (one == -EACCES && (c->options->events[i].attr.flags & TALLY_ATTR_EXCLUDE_USER))
			continue;
		if (is_open(c, i) || c->is_user_only)
			return 0;
		if (!code && (one == -EPERM || one == -EACCES || one == -ENOSYS))
			code = one;
	}
	return code;
}

void tally_counting_release(struct tally_counting *c)
{
	for (size_t place = 0; place < c->place_count; place++)
		for (size_t i = 0; i < c->options->event_count; i++)
			close_slot(c, slot_at(c, place, i));
	free(c->places);
	free(c->slots);
	tally_arena_release(&c->arena);
	*c = (struct tally_counting){ 0 };
}
