/* Opens counters.
 *
 * This is more than a loop over perf_event_open(2), for two reasons:
 *
 *   Groups.  Members of a group are on the PMU together or not at all, which makes their ratios
 *   exact; but a group that is too large is never counted.  A member that fails to join is tried
 *   alone.  If it opens, the group was too large: a weak group is then taken apart in that scope.
 *   If it doesn't, the event can't be counted, and its siblings go on without it.  When the first
 *   event of a group can't be opened, the next one leads.
 *
 *   Privilege.  With perf_event_paranoid at 2 an ordinary user may count only user mode.  After
 *   EACCES, this and all further events are opened with exclude_kernel, and their names say so
 *   (":u").  Three kinds need care.  Context switches and migrations happen in the kernel, so the
 *   kernel would read 0: they are not opened, and come from the task's resource usage or are
 *   withheld.  Most tracepoints are in the kernel too, but not all (uprobes): only their zeros are
 *   withheld.  Clocks ignore modes (measured: task-clock:u is the whole time), so their names get
 *   no ":u".
 */
#include "session/cgroup.h"
#include "counting/counting_parts.h"
#include "session/event_filter.h"

#include "abi/attr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

bool tally_counting_is_emptied(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE && (attr->flags & TALLY_ATTR_EXCLUDE_KERNEL) &&
	       (attr->config == TALLY_SW_CONTEXT_SWITCHES ||
		attr->config == TALLY_SW_CPU_MIGRATIONS ||
		attr->config == TALLY_SW_CGROUP_SWITCHES);
}

static bool is_hardware(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE ||
	       attr->type == TALLY_TYPE_RAW;
}

static struct tally_attr counting_attr(const struct tally_counting *c, size_t event,
				       struct tally_count_scope scope, bool leads, bool has_members)
{
	const struct tally_counting_options *o = c->options;
	struct tally_attr attr = o->events[event].attr;
	attr.sample_period = 0;
	attr.sample_type = 0;
	attr.flags &= ~(TALLY_ATTR_FREQ);
	attr.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	if (scope.pid > 0 && !o->no_inherit)
		attr.flags |= TALLY_ATTR_INHERIT;
	if (leads)
		attr.flags |= TALLY_ATTR_DISABLED;
	if (leads && o->command_pid && !o->starts_disabled)
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

/* True if exclude_guest may be dropped.  It is set on every PMU event by default, but some PMUs
 * (msr) accept no exclusion at all.  An explicit modifier stays. */
static bool may_drop_guest(const struct tally_event *event, const struct tally_attr *attr)
{
	const char *slash = strrchr(event->name, '/'),
		   *modifiers = slash ? slash : strchr(event->name, ':');
	return (attr->flags & TALLY_ATTR_EXCLUDE_GUEST) &&
	       !(attr->flags & TALLY_ATTR_EXCLUDE_HOST) && !(modifiers && strchr(modifiers, 'H'));
}

/* Sets the event's filter.  On failure closes the handle: without the filter all hits would
 * count. */
static int put_filter(struct tally_counting *c, size_t event, int handle)
{
	struct tally_provider *provider = c->options->provider;
	int result = tally_event_filter_put(provider, &c->options->events[event], handle);
	if (result >= 0)
		return handle;
	provider->ops->close(provider, handle);
	c->misfiltered = &c->options->events[event];
	c->fatal = result;
	return result;
}

static int open_handle(struct tally_counting *c, size_t event, struct tally_attr *attr,
		       struct tally_count_scope scope, int group)
{
	struct tally_provider *p = c->options->provider;
	int cgroup = c->cgroups[event];
	pid_t pid = cgroup >= 0 ? cgroup : scope.pid;
	unsigned long flags = TALLY_FLAG_FD_CLOEXEC | (cgroup >= 0 ? TALLY_FLAG_PID_CGROUP : 0);
	int handle = p->ops->open(p, attr, pid, scope.cpu, group, flags);
	if (handle == -EMFILE && raise_descriptor_limit())
		handle = p->ops->open(p, attr, pid, scope.cpu, group, flags);
	if (handle == -EINVAL && may_drop_guest(&c->options->events[event], attr)) {
		attr->flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
		handle = p->ops->open(p, attr, pid, scope.cpu, group, flags);
	}
	/* Fatal, since counts of some scopes would look like those of all. */
	if ((handle == -EMFILE || handle == -ENFILE) && !c->fatal)
		c->fatal = handle;
	return handle >= 0 && c->options->events[event].filter ? put_filter(c, event, handle)
							       : handle;
}

static bool may_drop_kernel(const struct tally_event *event)
{
	return !(event->attr.flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER));
}

/* Opens one event in one scope.  Returns a handle, or the reason of a refusal. */
static int open_event(struct tally_counting *c, size_t event, struct tally_count_scope scope,
		      int group, bool has_members)
{
	const struct tally_event *e = &c->options->events[event];
	struct tally_attr attr = counting_attr(c, event, scope, group < 0, has_members);
	if (tally_counting_is_emptied(&attr))
		return TALLY_REFUSED_EMPTIED;
	if (!c->is_user_only || !may_drop_kernel(e)) {
		int handle = open_handle(c, event, &attr, scope, group);
		if ((handle != -EACCES && handle != -EPERM) || !may_drop_kernel(e))
			return handle;
	}
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	bool is_emptied = tally_counting_is_emptied(&attr);
	if (is_emptied && c->is_user_only)
		return TALLY_REFUSED_EMPTIED;
	int handle = open_handle(c, event, &attr, scope, group);
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

void tally_counting_close_slot(struct tally_counting *c, struct tally_count_slot *slot)
{
	if (slot->handle >= 0)
		c->options->provider->ops->close(c->options->provider, slot->handle);
	slot->handle = -1;
}

static void note_result(struct tally_counting *c, size_t scope, size_t event, size_t leader,
			int handle)
{
	struct tally_count_slot *slot = tally_counting_slot(c, scope, event);
	slot->handle = handle >= 0 ? handle : -1;
	slot->leader = leader;
	slot->was_open |= handle >= 0;
	if (handle >= 0)
		c->has_hardware |= is_hardware(&c->options->events[event].attr);
	else if (!c->refusals[event] || c->refusals[event] == -ESRCH)
		c->refusals[event] = handle;
}

static bool counts_on(const struct tally_counting *c, size_t event, struct tally_count_scope scope)
{
	const char *text = c->options->event_cpus ? c->options->event_cpus[event] : NULL;
	struct tally_cpu_list cpus = { 0 };
	bool result = true;
	if (scope.cpu >= 0 && text && text[0] && tally_cpu_list_parse(text, &cpus, NULL) >= 0)
		result = tally_cpu_list_contains(&cpus, (unsigned)scope.cpu);
	tally_cpu_list_release(&cpus);
	return result;
}

/* Needs no counter; the caller fills its row (stat_run.c). */
static bool is_tool(const struct tally_counting *c, size_t event)
{
	return c->options->events[event].kind == TALLY_EVENT_TOOL;
}

static void open_single(struct tally_counting *c, size_t scope, size_t event)
{
	if (!is_tool(c, event) && counts_on(c, event, c->scopes[scope]))
		note_result(c, scope, event, event,
			    open_event(c, event, c->scopes[scope], -1, false));
}

/* Opens a group.  Returns false if it must be taken apart and its events opened singly. */
static bool open_group(struct tally_counting *c, size_t scope, size_t first, size_t count)
{
	const struct tally_event *events = c->options->events;
	size_t leader = SIZE_MAX;
	for (size_t i = first; i < first + count; i++) {
		if (is_tool(c, i) || !counts_on(c, i, c->scopes[scope]))
			continue;
		int group = leader == SIZE_MAX ? -1 : tally_counting_slot(c, scope, leader)->handle;
		int handle = open_event(c, i, c->scopes[scope], group, true);
		bool may_be_full = group >= 0 &&
				   (handle == -EINVAL || handle == -E2BIG || handle == -ENOSPC);
		int alone = may_be_full ? open_event(c, i, c->scopes[scope], -1, false) : -1;
		if (alone >= 0) {
			c->options->provider->ops->close(c->options->provider, alone);
			if (events[i].weak_group)
				return false;
			handle = TALLY_REFUSED_GROUP;
		}
		if (handle >= 0 && leader == SIZE_MAX) {
			leader = i;
			tally_counting_slot(c, scope, i)->reads_group = true;
		}
		note_result(c, scope, i, leader == SIZE_MAX ? i : leader, handle);
	}
	return true;
}

void tally_counting_open_scope(struct tally_counting *c, size_t scope)
{
	const struct tally_event *events = c->options->events;
	size_t total = c->options->event_count;
	for (size_t first = 0, count; first < total; first += count) {
		for (count = 1; events[first].group >= 0 && first + count < total &&
				events[first + count].group == events[first].group;)
			count++;
		if (count > 1 && open_group(c, scope, first, count))
			continue;
		for (size_t i = first; i < first + count; i++) {
			tally_counting_close_slot(c, tally_counting_slot(c, scope, i));
			tally_counting_slot(c, scope, i)->reads_group = false;
			open_single(c, scope, i);
		}
	}
}

int tally_counting_add_scope(struct tally_counting *c, struct tally_count_scope scope)
{
	size_t events = c->options->event_count;
	if (c->scope_count == c->scope_capacity) {
		size_t capacity = c->scope_capacity ? 2 * c->scope_capacity : 4;
		struct tally_count_scope *scopes = reallocarray(c->scopes, capacity,
								sizeof(*scopes));
		if (scopes)
			c->scopes = scopes;
		struct tally_count_slot *slots = scopes ? reallocarray(c->slots,
								       capacity * (events + 1),
								       sizeof(*slots))
							: NULL;
		if (!slots)
			return -ENOMEM;
		c->slots = slots;
		c->scope_capacity = capacity;
	}
	int result = tally_counting_find_part(c, &scope);
	if (result < 0)
		return result;
	size_t at = c->scope_count++;
	c->scopes[at] = scope;
	for (size_t i = 0; i < events; i++)
		*tally_counting_slot(c, at, i) = (struct tally_count_slot){ .handle = -1,
									    .leader = i };
	tally_counting_open_scope(c, at);
	return c->fatal;
}

int tally_counting_follow(struct tally_counting *c)
{
	const struct tally_pid_list *tids = &c->options->target->tids;
	int result = 0;
	for (size_t i = c->scope_count; i < tids->count && result >= 0; i++)
		result = tally_counting_add_scope(
			c, (struct tally_count_scope){ .pid = tids->items[i], .cpu = -1 });
	return result;
}

static int add_places(struct tally_counting *c)
{
	const struct tally_target *target = c->options->target;
	if (c->options->command_pid)
		return tally_counting_add_scope(
			c, (struct tally_count_scope){ .pid = c->options->command_pid, .cpu = -1 });
	if (!target->all)
		return tally_counting_follow(c);
	int result = 0;
	for (size_t i = 0; i < target->cpus.count && result >= 0; i++)
		result = tally_counting_add_scope(
			c,
			(struct tally_count_scope){ .pid = -1, .cpu = (int)target->cpus.cpus[i] });
	return result;
}

/* Returns the event's name with the "u" that it was opened with, appended to existing modifiers. */
static const char *user_only_name(struct tally_counting *c, const struct tally_event *event)
{
	const char *name = event->name, *behind = strrchr(name, '/');
	bool has_modifiers = (event->kind != TALLY_EVENT_VENDOR && strchr(name, ':')) ||
			     (event->kind == TALLY_EVENT_PMU && behind);
	if (event->kind == TALLY_EVENT_TRACEPOINT) {
		const char *colon = strchr(name, ':');
		has_modifiers = colon && strchr(colon + 1, ':') != NULL;
	}
	const char *text = tally_arena_printf(&c->arena, "%s%s", name, has_modifiers ? "u" : ":u");
	return text ? text : name;
}

/* A count of part of the time is an estimate, however exact that part is. */
const char *tally_counting_quality(const struct tally_counting *c, size_t i, bool was_scaled)
{
	const struct tally_provider_ops *ops = c->options->provider->ops;
	const char *quality = ops->quality && !c->refusals[i]
				      ? ops->quality(c->options->provider,
						     &c->options->events[i].attr)
				      : NULL;
	return quality && was_scaled ? "estimate" : quality;
}

static void name_row(struct tally_counting *c, size_t part, size_t i)
{
	const struct tally_event *event = &c->options->events[i];
	const struct tally_provider_ops *ops = c->options->provider->ops;
	struct tally_count *row = &c->rows[part * c->options->event_count + i];
	bool is_clock = tally_attr_is_clock(&event->attr) || is_tool(c, i);
	row->name = event->name;
	row->unit = is_clock ? "ns" : event->unit ? event->unit : "";
	row->scale = event->scale > 0 ? event->scale : 1;
	row->type = event->attr.type;
	row->config = event->attr.config;
	row->group = event->group;
	row->cgroup = event->cgroup;
	row->excludes = is_clock ? 0 : event->attr.flags & TALLY_ATTR_EXCLUDES;
	row->source = ops->name;
	row->quality = tally_counting_quality(c, i, false);
	if (c->user_only[i] && !is_clock) {
		row->excludes |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		row->name = user_only_name(c, event);
	}
}

/* Opens the events' cgroups; adjacent events of one cgroup share a descriptor, since there may be
 * hundreds. */
static int open_cgroups(struct tally_counting *c, struct tally_error *err)
{
	const struct tally_event *events = c->options->events;
	int result = 0;
	for (size_t i = 0; i < c->options->event_count; i++)
		c->cgroups[i] = -1;
	for (size_t i = 0; i < c->options->event_count && result >= 0; i++) {
		if (!events[i].cgroup)
			continue;
		bool is_same = i && events[i - 1].cgroup &&
			       !strcmp(events[i - 1].cgroup, events[i].cgroup);
		result = is_same ? c->cgroups[i - 1] : tally_cgroup_open(events[i].cgroup, err);
		c->cgroups[i] = result >= 0 ? result : -1;
	}
	return result < 0 ? result : 0;
}

void tally_counting_close_cgroups(struct tally_counting *c)
{
	for (size_t i = 0; c->cgroups && i < c->options->event_count; i++)
		if (c->cgroups[i] >= 0 && (!i || c->cgroups[i - 1] != c->cgroups[i]))
			close(c->cgroups[i]);
}

static int say_failure(const struct tally_counting *c, int code, struct tally_error *err)
{
	struct rlimit limit = { 0 };
	if (c->misfiltered)
		return tally_event_filter_explain(c->misfiltered, code, err);
	getrlimit(RLIMIT_NOFILE, &limit);
	if (code == -ENOMEM)
		return tally_error_set(err, code, "out of memory");
	if (code == -ENFILE)
		return tally_error_set(err, code,
				       "the system is out of file descriptors: see fs.file-max");
	const struct tally_target *target = c->options->target;
	size_t scopes = target->all ? target->cpus.count : target->tids.count;
	tally_error_set(err, code,
			"%zu event%s on %zu %s need a file descriptor each; the limit is %llu",
			c->options->event_count, c->options->event_count == 1 ? "" : "s", scopes,
			target->all ? "CPUs" : "threads", (unsigned long long)limit.rlim_cur);
	tally_error_hint(
		err,
		"count fewer events (-e) or threads, or raise the hard limit (ulimit -Hn) as root");
	return code;
}

int tally_counting_open(const struct tally_counting_options *options, struct tally_counting *c,
			struct tally_error *err)
{
	*c = (struct tally_counting){ .options = options, .coverage = 1 };
	size_t count = options->event_count;
	c->refusals = tally_arena_array(&c->arena, count + 1, sizeof(*c->refusals));
	c->user_only = tally_arena_array(&c->arena, count + 1, sizeof(*c->user_only));
	c->cgroups = tally_arena_array(&c->arena, count + 1, sizeof(*c->cgroups));
	bool has_memory = c->refusals && c->user_only && c->cgroups;
	int result = has_memory ? open_cgroups(c, err) : -ENOMEM;
	bool is_told = has_memory && result < 0;
	if (result >= 0)
		result = add_places(c);
	/* without any thread left, each event still has a row */
	if (result >= 0 && !c->part_count)
		result = tally_counting_add_part(c, "");
	if (result < 0) {
		if (!is_told)
			say_failure(c, result, err);
		tally_counting_release(c);
		return result;
	}
	tally_counting_name_rows(c, 0);
	return 0;
}

void tally_counting_name_rows(struct tally_counting *c, size_t first_part)
{
	for (size_t part = first_part; part < c->part_count; part++)
		for (size_t i = 0; i < c->options->event_count; i++)
			name_row(c, part, i);
}
