/* The handles of a counting: opens each event in each scope, switches, reads and closes them.
 *
 * Opening is more than a loop over perf_event_open(2), for two reasons:
 *
 *   Groups.  Members of a group are on the PMU together or not at all, which makes their ratios
 *   exact; but a group that is too large is never counted.  A member that fails to join is tried
 *   alone.  If it opens alone, the group is too large: a weak group is opened again as single
 *   events in that scope; another group goes on without this member.  If it fails alone too, the
 *   event can't be counted, and the group goes on without it.  When the first event of a group
 *   can't be opened, the next one leads.
 *
 *   Privilege.  With perf_event_paranoid at 2 an ordinary user may count only user mode.  After
 *   EACCES, this and all further events are opened with exclude_kernel, and their names say so
 *   (":u").  Three kinds of event need care.  Context switches and migrations happen in the kernel,
 *   so in user mode their counters would always read 0: their values come from the task's resource
 *   usage, or are withheld.  Most tracepoints are in the kernel too, but not all (uprobes): a
 *   tracepoint's value is withheld only if it is 0.  Clocks ignore modes (measured: task-clock:u is
 *   the whole time), so their names get no ":u".
 */
#include "counting/counting_internal.h"

#include "abi/abi.h"
#include "base/extremes.h"
#include "session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { GROUP_READ_MAX = 1100 }; /* the kernel's limit is 1,022 siblings (measured) */

/* ---- beginning ----------------------------------------------------------- */

/* Opens the events' cgroups.  There may be hundreds of events, so adjacent events of one cgroup
 * share a descriptor. */
static int open_cgroups(struct tally_count_handles *h, struct tally_error *err)
{
	const struct tally_event *events = h->options->events;
	int result;
	for (size_t i = 0; i < h->options->event_count; i++)
		h->events[i].cgroup = -1;
	for (size_t i = 0; i < h->options->event_count; i++) {
		if (!events[i].cgroup)
			continue;
		bool is_same = i && events[i - 1].cgroup &&
			       !strcmp(events[i - 1].cgroup, events[i].cgroup);
		if (is_same)
			result = h->events[i - 1].cgroup;
		else
			result = tally_cgroup_open(events[i].cgroup, err);
		if (result < 0)
			return result;
		h->events[i].cgroup = result;
	}
	return 0;
}

int tally_count_handles_init(struct tally_count_handles *h,
			     const struct tally_counting_options *options, struct tally_error *err)
{
	*h = (struct tally_count_handles){ .options = options };
	h->events = calloc(options->event_count + 1, sizeof(*h->events));
	if (!h->events)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return open_cgroups(h, err);
}

int tally_count_handles_explain(const struct tally_count_handles *h, int code,
				struct tally_error *err)
{
	struct rlimit limit = { 0 };
	if (h->misfiltered)
		return tally_event_filter_explain(h->misfiltered, code, err);
	getrlimit(RLIMIT_NOFILE, &limit);
	if (code == -ENOMEM)
		return tally_error_set(err, code, "out of memory");
	if (code == -ENFILE)
		return tally_error_set(err, code,
				       "the system is out of file descriptors: see fs.file-max");
	const struct tally_target *target = h->options->target;
	size_t scopes = target->all ? target->cpus.count : target->tids.count;
	tally_error_set(err, code,
			"%zu event%s on %zu %s need a file descriptor each; the limit is %llu",
			h->options->event_count, h->options->event_count == 1 ? "" : "s", scopes,
			target->all ? "CPUs" : "threads", (unsigned long long)limit.rlim_cur);
	tally_error_hint(
		err,
		"count fewer events (-e) or threads, or raise the hard limit (ulimit -Hn) as root");
	return code;
}

/* ---- opening one event --------------------------------------------------- */

bool tally_counting_is_emptied(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE && (attr->flags & TALLY_ATTR_EXCLUDE_KERNEL) &&
	       (attr->config == TALLY_SW_CONTEXT_SWITCHES ||
		attr->config == TALLY_SW_CPU_MIGRATIONS ||
		attr->config == TALLY_SW_CGROUP_SWITCHES);
}

static struct tally_attr counting_attr(const struct tally_count_handles *h, size_t event,
				       struct tally_count_scope scope, bool leads, bool has_members)
{
	const struct tally_counting_options *o = h->options;
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
static int put_filter(struct tally_count_handles *h, size_t event, int handle)
{
	struct tally_provider *provider = h->options->provider;
	int result = tally_event_filter_put(provider, &h->options->events[event], handle);
	if (result >= 0)
		return handle;
	provider->ops->close(provider, handle);
	h->misfiltered = &h->options->events[event];
	h->fatal = result;
	return result;
}

static int open_handle(struct tally_count_handles *h, size_t event, struct tally_attr *attr,
		       struct tally_count_scope scope, int group)
{
	struct tally_provider *p = h->options->provider;
	int cgroup = h->events[event].cgroup;
	pid_t pid = scope.pid;
	unsigned long flags = TALLY_FLAG_FD_CLOEXEC;
	if (cgroup >= 0) {
		pid = cgroup;
		flags |= TALLY_FLAG_PID_CGROUP;
	}
	int handle = p->ops->open(p, attr, pid, scope.cpu, group, flags);
	if (handle == -EMFILE && raise_descriptor_limit())
		handle = p->ops->open(p, attr, pid, scope.cpu, group, flags);
	if (handle == -EINVAL && may_drop_guest(&h->options->events[event], attr)) {
		attr->flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
		handle = p->ops->open(p, attr, pid, scope.cpu, group, flags);
	}
	/* Out of descriptors is fatal: the count would lack some scopes and not show it. */
	if ((handle == -EMFILE || handle == -ENFILE) && !h->fatal)
		h->fatal = handle;
	if (handle >= 0 && h->options->events[event].filter)
		return put_filter(h, event, handle);
	return handle;
}

static bool may_drop_kernel(const struct tally_event *event)
{
	return !(event->attr.flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER));
}

int tally_count_handles_open_event(struct tally_count_handles *h, size_t event,
				   struct tally_count_scope scope, int group, bool has_members)
{
	const struct tally_event *e = &h->options->events[event];
	struct tally_attr attr = counting_attr(h, event, scope, group < 0, has_members);
	if (tally_counting_is_emptied(&attr))
		return TALLY_REFUSED_EMPTIED;
	if (!h->is_user_only || !may_drop_kernel(e)) {
		int handle = open_handle(h, event, &attr, scope, group);
		if ((handle != -EACCES && handle != -EPERM) || !may_drop_kernel(e))
			return handle;
	}
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	bool is_emptied = tally_counting_is_emptied(&attr);
	if (is_emptied && h->is_user_only)
		return TALLY_REFUSED_EMPTIED;
	int handle = open_handle(h, event, &attr, scope, group);
	if (handle < 0)
		return handle;
	h->is_user_only = true;
	if (is_emptied) {
		h->options->provider->ops->close(h->options->provider, handle);
		return TALLY_REFUSED_EMPTIED;
	}
	h->events[event].user_only = true;
	return handle;
}

static void close_slot(struct tally_count_handles *h, struct tally_count_slot *slot)
{
	if (slot->handle >= 0)
		h->options->provider->ops->close(h->options->provider, slot->handle);
	slot->handle = -1;
}

/* ---- opening a scope ----------------------------------------------------- */

static void note_result(struct tally_count_handles *h, size_t scope, size_t event, size_t leader,
			int handle)
{
	struct tally_count_slot *slot = tally_count_slot_of(h, scope, event);
	slot->handle = handle >= 0 ? handle : -1;
	slot->leader = leader;
	slot->was_open |= handle >= 0;
	h->events[event].was_open |= handle >= 0;
	if (handle < 0 && (!h->events[event].refusal || h->events[event].refusal == -ESRCH))
		h->events[event].refusal = handle;
}

static bool counts_on(const struct tally_count_handles *h, size_t event,
		      struct tally_count_scope scope)
{
	const char *text = NULL;
	if (h->options->event_cpus)
		text = h->options->event_cpus[event];
	struct tally_cpu_list cpus = { 0 };
	bool result = true;
	if (scope.cpu >= 0 && text && text[0] && tally_cpu_list_parse(text, &cpus, NULL) >= 0)
		result = tally_cpu_list_contains(&cpus, (unsigned)scope.cpu);
	tally_cpu_list_release(&cpus);
	return result;
}

/* True for events that are not opened: those of another pass, and those that need no counter (the
 * caller fills their rows, stat_run.c). */
static bool is_left_out(const struct tally_count_handles *h, size_t event)
{
	return h->options->events[event].kind == TALLY_EVENT_TOOL ||
	       !tally_counting_is_in_pass(h->options, event);
}

static void open_single(struct tally_count_handles *h, size_t scope, size_t event)
{
	if (!is_left_out(h, event) && counts_on(h, event, h->scopes[scope]))
		note_result(h, scope, event, event,
			    tally_count_handles_open_event(h, event, h->scopes[scope], -1, false));
}

/* Opens a group.  Returns false if it must be taken apart and its events opened singly. */
static bool open_group(struct tally_count_handles *h, size_t scope, size_t first, size_t count)
{
	const struct tally_event *events = h->options->events;
	size_t leader = SIZE_MAX;
	for (size_t i = first; i < first + count; i++) {
		if (is_left_out(h, i) || !counts_on(h, i, h->scopes[scope]))
			continue;
		int group = -1, alone = -1;
		if (leader != SIZE_MAX)
			group = tally_count_slot_of(h, scope, leader)->handle;
		int handle = tally_count_handles_open_event(h, i, h->scopes[scope], group, true);
		bool may_be_full = group >= 0 &&
				   (handle == -EINVAL || handle == -E2BIG || handle == -ENOSPC);
		if (may_be_full)
			alone = tally_count_handles_open_event(h, i, h->scopes[scope], -1, false);
		if (alone >= 0) {
			h->options->provider->ops->close(h->options->provider, alone);
			if (events[i].weak_group)
				return false;
			handle = TALLY_REFUSED_GROUP;
		}
		if (handle >= 0 && leader == SIZE_MAX) {
			leader = i;
			tally_count_slot_of(h, scope, i)->reads_group = true;
		}
		note_result(h, scope, i, leader == SIZE_MAX ? i : leader, handle);
	}
	return true;
}

void tally_count_handles_open(struct tally_count_handles *h, size_t scope)
{
	const struct tally_event *events = h->options->events;
	size_t total = h->options->event_count;
	for (size_t first = 0, count; first < total; first += count) {
		for (count = 1; events[first].group >= 0 && first + count < total &&
				events[first + count].group == events[first].group;)
			count++;
		if (count > 1 && open_group(h, scope, first, count))
			continue;
		for (size_t i = first; i < first + count; i++) {
			close_slot(h, tally_count_slot_of(h, scope, i));
			tally_count_slot_of(h, scope, i)->reads_group = false;
			open_single(h, scope, i);
		}
	}
}

int tally_count_handles_add(struct tally_count_handles *h, pid_t pid, int cpu)
{
	size_t events = h->options->event_count;
	if (h->scope_count == h->scope_capacity) {
		size_t capacity = tally_max_u64(2 * h->scope_capacity, 4);
		struct tally_count_scope *scopes = reallocarray(h->scopes, capacity,
								sizeof(*scopes));
		if (!scopes)
			return -ENOMEM;
		h->scopes = scopes;
		struct tally_count_slot *slots = reallocarray(h->slots, capacity * (events + 1),
							      sizeof(*slots));
		if (!slots)
			return -ENOMEM;
		h->slots = slots;
		h->scope_capacity = capacity;
	}
	size_t at = h->scope_count++;
	h->scopes[at] = (struct tally_count_scope){ .pid = pid, .cpu = cpu };
	for (size_t i = 0; i < events; i++)
		*tally_count_slot_of(h, at, i) = (struct tally_count_slot){ .handle = -1,
									    .leader = i };
	return 0;
}

/* ---- switching and reading ----------------------------------------------- */

void tally_count_handles_switch(struct tally_count_handles *h, size_t scope,
				enum tally_ioctl request)
{
	for (size_t i = 0; i < h->options->event_count; i++) {
		struct tally_count_slot *slot = tally_count_slot_of(h, scope, i);
		if (slot->handle >= 0 && slot->leader == i)
			h->options->provider->ops->ioctl(h->options->provider, slot->handle,
							 request, NULL, 0);
	}
}

void tally_count_handles_switch_event(struct tally_count_handles *h, size_t event,
				      enum tally_ioctl request)
{
	for (size_t scope = 0; scope < h->scope_count; scope++) {
		const struct tally_count_slot *slot = tally_count_slot_of(h, scope, event);
		if (slot->handle >= 0)
			h->options->provider->ops->ioctl(h->options->provider, slot->handle,
							 request, NULL, 0);
	}
}

/* Reads a leader and stores its members' values, which come in the order in which they joined. */
static void read_leader(struct tally_count_handles *h, size_t scope, size_t leader, uint64_t *words,
			size_t size)
{
	struct tally_count_slot *slot = tally_count_slot_of(h, scope, leader);
	uint64_t format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING |
			  (slot->reads_group ? TALLY_FORMAT_GROUP : 0);
	size_t count = h->options->event_count;
	struct tally_read_values values;
	ssize_t got = h->options->provider->ops->read(h->options->provider, slot->handle, words,
						      size);
	if (got <= 0 || tally_read_values_parse(format, words, (size_t)got, &values) < 0)
		return;
	for (size_t i = leader, at = 0; i < count && at < values.count; i++) {
		struct tally_count_slot *member = tally_count_slot_of(h, scope, i);
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

void tally_count_handles_read(struct tally_count_handles *h)
{
	uint64_t words[GROUP_READ_MAX + 4];
	for (size_t scope = 0; scope < h->scope_count; scope++)
		for (size_t i = 0; i < h->options->event_count; i++) {
			struct tally_count_slot *slot = tally_count_slot_of(h, scope, i);
			/* a CPU that went offline: its kept counts are the reading */
			slot->was_read = slot->was_open && slot->handle < 0;
		}
	for (size_t scope = 0; scope < h->scope_count; scope++)
		for (size_t i = 0; i < h->options->event_count; i++)
			if (tally_count_slot_of(h, scope, i)->handle >= 0 &&
			    tally_count_slot_of(h, scope, i)->leader == i)
				read_leader(h, scope, i, words, sizeof(words));
}

void tally_count_handles_go_offline(struct tally_count_handles *h, size_t scope)
{
	uint64_t words[GROUP_READ_MAX + 4];
	for (size_t i = 0; i < h->options->event_count; i++)
		if (tally_count_slot_of(h, scope, i)->handle >= 0 &&
		    tally_count_slot_of(h, scope, i)->leader == i)
			read_leader(h, scope, i, words, sizeof(words));
	for (size_t i = 0; i < h->options->event_count; i++) {
		struct tally_count_slot *slot = tally_count_slot_of(h, scope, i);
		close_slot(h, slot);
		slot->kept = slot->now;
	}
	h->scopes[scope].is_offline = true;
}

/* ---- closing ------------------------------------------------------------- */

void tally_count_handles_close(struct tally_count_handles *h)
{
	for (size_t scope = 0; scope < h->scope_count; scope++)
		for (size_t i = 0; i < h->options->event_count; i++)
			close_slot(h, tally_count_slot_of(h, scope, i));
}

/* If closing will be slow, returns all descriptors (the caller frees the array); otherwise NULL. */
static int *slow_handles(const struct tally_count_handles *h, size_t *count)
{
	size_t slots = h->scope_count * h->options->event_count, tracepoints = 0;
	int *handles = NULL;
	if (slots && tally_provider_can(h->options->provider, TALLY_PROVIDER_SLOW_CLOSE))
		handles = malloc(slots * sizeof(*handles));
	*count = 0;
	for (size_t at = 0; handles && at < slots; at++) {
		if (h->slots[at].handle < 0)
			continue;
		tracepoints += h->options->events[at % h->options->event_count].attr.type ==
			       TALLY_TYPE_TRACEPOINT;
		handles[(*count)++] = h->slots[at].handle;
	}
	if (tracepoints >= TALLY_CLOSE_APART_MIN)
		return handles;
	free(handles);
	return NULL;
}

void tally_count_handles_close_last(struct tally_count_handles *h)
{
	size_t count;
	int *handles = slow_handles(h, &count);
	int gate = handles ? tally_close_apart(handles, count) : -1;
	tally_count_handles_close(h);
	if (gate >= 0)
		close(gate);
	free(handles);
}

void tally_count_handles_release(struct tally_count_handles *h)
{
	tally_count_handles_close(h);
	for (size_t i = 0; h->events && i < h->options->event_count; i++)
		if (h->events[i].cgroup >= 0 &&
		    (!i || h->events[i - 1].cgroup != h->events[i].cgroup))
			close(h->events[i].cgroup);
	free(h->events);
	free(h->scopes);
	free(h->slots);
	*h = (struct tally_count_handles){ 0 };
}
