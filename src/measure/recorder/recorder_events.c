/* Opens a recording's events: each event on each task and CPU, with one ring for samples and one
 * for side-band records on each CPU.
 *
 * Inherited events can be mapped only when they are bound to a CPU, so even a single task's events
 * are opened once per CPU.  All events of a CPU write to the ring of the first one (SET_OUTPUT).
 */
#include "recorder/recorder_events.h"
#include "recorder/recorder_inherited.h"

#include "base/error.h"
#include "base/vector.h"
#include "counting/counting.h"
#include "machine/machine.h"
#include "provider/provider.h"
#include "session/session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SINCE_LINUX_5_1 (TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT)

struct place {
	pid_t tid; /* -1: all tasks */
	int cpu;
	size_t ring;
};

/* ---- one event ----------------------------------------------------------- */

static bool wants_kernel(const struct tally_recorder_source *source)
{
	return source->event && source->event->kind != TALLY_EVENT_TRACEPOINT &&
	       !(source->attr.flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER));
}

static bool is_empty_in_user_mode(const struct tally_recorder_source *source)
{
	struct tally_attr attr = source->attr;
	attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL;
	return source->event && tally_counting_is_emptied(&attr);
}

/* Restricts the events to user mode after the kernel refused its own part, and marks their names.
 * Returns false when this leaves no event. */
static bool fall_back_to_user(struct tally_recorder_events *events)
{
	bool changed = false;
	size_t emptied = 0;
	if (tally_recorder_off_cpu(events))
		return false;
	for (size_t i = 0; i + 1 < events->source_count; i++)
		emptied += is_empty_in_user_mode(&events->sources[i]);
	if (emptied + 1 == events->source_count)
		return false;
	for (size_t i = 0; i + 1 < events->source_count; i++) {
		struct tally_recorder_source *source = &events->sources[i];
		if (!wants_kernel(source))
			continue;
		source->attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		source->written.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		const char *name = tally_arena_printf(&events->session->arena, "%s%s", source->name,
						      strchr(source->name, ':') ? "u" : ":u");
		if (name)
			source->name = name;
		changed = true;
	}
	if (changed)
		tally_buffer_text(
			events->session->notes,
			"only user mode is recorded; 'sysctl kernel.perf_event_paranoid=1' adds "
			"the kernel\n");
	return changed;
}

static int note_id(struct tally_recorder_events *events, size_t source_index, int handle)
{
	struct tally_recorder_source *source = &events->sources[source_index];
	uint64_t id = 0;
	int result = events->session->provider->ops->ioctl(events->session->provider, handle,
							   TALLY_IOCTL_ID, &id, 0);
	if (result < 0)
		return result;
	uint64_t *slot = tally_map_put(&events->source_of_id, id, NULL);
	if (!slot || tally_vector_push(&source->ids, id) < 0)
		return -ENOMEM;
	*slot = source_index;
	return 0;
}

static void set_precise(struct tally_attr *attr, unsigned precise)
{
	attr->flags = (attr->flags & ~TALLY_ATTR_PRECISE_IP) |
		      (uint64_t)precise << TALLY_ATTR_PRECISE_IP_SHIFT;
}

/* True if exclude_guest may be dropped.  It is set on every PMU event by default, and some PMUs
 * accept no exclusion at all.  An explicit modifier stays. */
static bool may_drop_guest(const struct tally_recorder_source *source)
{
	return source->event && !source->event->host_guest_given &&
	       source->attr.flags & TALLY_ATTR_EXCLUDE_GUEST;
}

/* Reduces the attribute after the kernel refused it.  Returns false when nothing more can be left
 * out. */
static bool relax(struct tally_recorder_source *source, int code)
{
	unsigned precise = tally_attr_precise(&source->attr);
	bool invalid = code == -EINVAL;
	if (source->ids.count || (!invalid && code != -EOPNOTSUPP && code != -ENOENT))
		return false; /* the kernel has accepted the attribute elsewhere */
	if (source->event && source->event->precise_max && precise) {
		set_precise(&source->attr, precise - 1);
		set_precise(&source->written, precise - 1);
	} else if (invalid && !source->event && source->attr.flags & TALLY_ATTR_TEXT_POKE) {
		source->attr.flags &= ~TALLY_ATTR_TEXT_POKE; /* since Linux 5.8 */
		source->written.flags &= ~TALLY_ATTR_TEXT_POKE;
	} else if (invalid && !source->event && source->attr.flags & SINCE_LINUX_5_1) {
		source->attr.flags &= ~SINCE_LINUX_5_1;
		source->written.flags &= ~SINCE_LINUX_5_1;
	} else if (invalid && source->attr.read_format & TALLY_FORMAT_LOST) {
		source->attr.read_format &= ~TALLY_FORMAT_LOST; /* before Linux 6.0 */
	} else if (invalid && may_drop_guest(source)) {
		source->attr.flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
		source->written.flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
	} else {
		return false;
	}
	return true;
}

/* Opens one event in one place.  Returns the handle or -errno. */
static int open_one(struct tally_recorder_events *events, size_t source_index,
		    const struct place *place, int leader, uint32_t copy_bytes)
{
	struct tally_recorder_source *source = &events->sources[source_index];
	struct tally_provider *provider = events->session->provider;
	struct tally_recorder_handle opened = { .ring = (uint32_t)place->ring,
						.source = (uint32_t)source_index,
						.copy_bytes = copy_bytes };
	pid_t pid = place->tid;
	unsigned long flags = 0;
	int handle;
	if (source->cgroup_fd >= 0) {
		pid = source->cgroup_fd;
		flags = TALLY_FLAG_PID_CGROUP;
	}
	do {
		struct tally_attr attr = source->attr;
		attr.flags &= ~TALLY_ATTR_BUILD_ID; /* recorder_build_ids.c */
		if (copy_bytes)
			attr.sample_stack_user = copy_bytes;
		if (copy_bytes && copy_bytes != events->copies.sizes[events->copies.now])
			attr.flags &= ~TALLY_ATTR_ENABLE_ON_EXEC;
		handle = provider->ops->open(provider, &attr, pid, place->cpu, leader, flags);
	} while (handle < 0 && relax(source, handle));
	if (handle < 0)
		return handle;
	opened.handle = handle;
	int result = note_id(events, source_index, handle);
	if (!result && source->event)
		result = tally_vector_push(&events->handles, opened);
	else if (!result)
		result = tally_vector_push(&events->side_handles, opened);
	if (result < 0) {
		provider->ops->close(provider, handle);
		return result;
	}
	return handle;
}

/* Returns how many samples the event lost.  Events count their losses themselves (FORMAT_LOST,
 * Linux 6.0); children count in their parent. */
static uint64_t lost_by(const struct tally_recorder_events *events,
			const struct tally_recorder_handle *opened)
{
	uint64_t words[8];
	struct tally_provider *provider = events->session->provider;
	uint64_t format = events->sources[opened->source].attr.read_format;
	if (format != (TALLY_FORMAT_ID | TALLY_FORMAT_LOST))
		return 0;
	ssize_t got = provider->ops->read(provider, opened->handle, words, sizeof(words));
	if (got < (ssize_t)(3 * sizeof(*words))) /* value, id, lost */
		return 0;
	return words[2];
}

static bool is_refused(int result)
{
	return result == -EACCES || result == -EPERM;
}

/* ---- all of them --------------------------------------------------------- */

/* While events are being opened. */
struct opening {
	struct tally_recorder_events *events;
	struct tally_recorder_rings *rings;
	struct tally_recorder_ring_sizes sizes; /* smaller than asked for, if memory is short */
	struct tally_recorder_inherited inherited;
};

static int explain_refusal(const struct tally_recorder_session *session,
			   const struct tally_event *event, int code, const struct place *place,
			   struct tally_error *err)
{
	struct tally_provider *provider = session->provider;
	const char *hint = NULL;
	if (!provider->ops->reason) {
		tally_provider_open_error(event, code, place->tid, place->cpu,
					  tally_recorder_command(session), err);
		return code;
	}
	tally_error_set(err, code, "'%s': %s", event->name,
			provider->ops->reason(provider, &event->attr, code, &hint));
	if (hint)
		tally_error_hint(err, "%s", hint);
	return code;
}

/* Explains why an event could not be opened.  If this user may not open it and waits are recorded,
 * the message is about the event of the waits. */
static int explain_refused_source(const struct tally_recorder_events *events,
				  const struct tally_recorder_source *source, int code,
				  const struct place *place, struct tally_error *err)
{
	const struct tally_recorder_source *off_cpu = NULL;
	if (is_refused(code))
		off_cpu = tally_recorder_off_cpu(events);
	if (off_cpu)
		source = off_cpu;
	struct tally_event asked = *source->event;
	asked.attr = source->attr;
	return explain_refusal(events->session, &asked, code, place, err);
}

/* Returns the handle of the leader of the source's group; -1 if it leads itself or has no group. */
static int leader_of(const struct tally_recorder_events *events, size_t source, int last_leader)
{
	const struct tally_event *event = events->sources[source].event;
	if (!source || !event || event->group == TALLY_EVENT_NO_GROUP ||
	    events->sources[source - 1].event->group != event->group)
		return -1;
	return last_leader;
}

/* Opens an event, or one event for each size of copies.  Sets *handle to the first. */
static int open_source(struct opening *opening, size_t index, const struct place *place, int group,
		       int *handle, struct tally_error *err)
{
	struct tally_recorder_events *events = opening->events;
	struct tally_recorder_rings *rings = opening->rings;
	const struct tally_recorder_source *source = &events->sources[index];
	const struct tally_recorder_copies *copies = &events->copies;
	unsigned count = 1;
	if (tally_recorder_has_copies(events, source))
		count = copies->count;
	for (unsigned i = 0; i < count; i++) {
		int result = 0;
		int opened = open_one(events, index, place, group,
				      count > 1 ? copies->sizes[i] : 0);
		if (opened < 0)
			return explain_refused_source(events, source, opened, place, err);
		if (!i)
			*handle = opened;
		if (source->event->filter)
			result = tally_event_filter_put(events->session->provider, source->event,
							opened);
		if (result < 0)
			return tally_event_filter_explain(source->event, result, err);
		result = tally_recorder_join_ring(rings, &rings->samples[place->ring], opened,
						  place->cpu, &opening->sizes.sample_pages, err);
		if (result)
			return result;
	}
	return 0;
}

static int open_side_band(struct opening *opening, const struct place *place,
			  struct tally_error *err)
{
	struct tally_recorder_events *events = opening->events;
	struct tally_recorder_rings *rings = opening->rings;
	int handle = open_one(events, events->source_count - 1, place, -1, 0);
	if (handle < 0) {
		/* A refusal of the side-band's event applies to all.  The message names an event
		 * that the user knows. */
		return explain_refusal(events->session, events->sources[0].event, handle, place,
				       err);
	}
	return tally_recorder_join_ring(rings, &rings->sides[place->ring], handle, place->cpu,
					&opening->sizes.side_pages, err);
}

static int open_samples(struct opening *opening, const struct place *place, struct tally_error *err)
{
	int leader = -1;
	for (size_t i = 0; i + 1 < opening->events->source_count; i++) {
		int group = leader_of(opening->events, i, leader), handle = -1;
		int result = open_source(opening, i, place, group, &handle, err);
		if (result)
			return result;
		if (group < 0)
			leader = handle;
	}
	return 0;
}

/* Opens all events on one task and CPU; the side-band first, so that no mapping is missed. */
static int open_place(struct opening *opening, const struct place *place, struct tally_error *err)
{
	int result = open_side_band(opening, place, err);
	if (result)
		return result;
	return open_samples(opening, place, err);
}

/* Opens a thread's events on whichever CPU it runs, with a ring of its own. */
static int open_thread(struct opening *opening, pid_t tid, bool may_end, struct tally_error *err)
{
	struct tally_recorder_rings *rings = opening->rings;
	struct place place = { .tid = tid, .cpu = -1, .ring = rings->count };
	if (place.ring == rings->capacity)
		return 0; /* more threads than rings were planned for */
	rings->count++;
	int result = open_place(opening, &place, err);
	if (result == -ESRCH && may_end)
		return 0;
	if (result < 0)
		return result;
	return 1;
}

/* Opens a task's events on all CPUs.  Returns 1, 0 when the task has ended, or -errno.  The
 * side-band comes first on all CPUs.  A child that appears meanwhile inherits what is open then; it
 * must not be sampled on one CPU while its mappings on another go unrecorded. */
static int open_task(struct opening *opening, pid_t tid, bool may_end, struct tally_error *err)
{
	const struct tally_recorder_rings *rings = opening->rings;
	struct tally_recorder_inherited *inherited = &opening->inherited;
	if (rings->session->options.per_thread)
		return open_thread(opening, tid, may_end, err);
	for (size_t i = 0; i < 2 * rings->count; i++) {
		size_t ring = i % rings->count;
		struct place place = { .tid = tid,
				       .cpu = (int)rings->cpus[ring].number,
				       .ring = ring };
		int result = 0;
		if (i < rings->count)
			result = open_side_band(opening, &place, err);
		else if (!tally_recorder_has_inherited(inherited, tid, ring))
			result = open_samples(opening, &place, err);
		if (result == -ESRCH && may_end)
			return 0;
		if (!result && i >= rings->count &&
		    tally_recorder_note_opened(inherited, tid, ring) < 0)
			result = tally_error_set(err, -ENOMEM, "out of memory");
		if (result < 0)
			return result;
	}
	return 1;
}

/* Opens one of the target's tasks, like open_task().  The first task shows what this user may
 * record: a child process of another user is left out. */
static int open_listed(struct opening *opening, pid_t tid, bool is_first, struct tally_error *err)
{
	struct tally_recorder_events *events = opening->events;
	if (tally_recorder_has_inherited_all(&opening->inherited, tid))
		return 0;
	int result = open_task(opening, tid, true, err);
	if (!is_first && is_refused(result) &&
	    tally_target_is_descendant(events->session->target, tid)) {
		*err = (struct tally_error)TALLY_ERROR_NONE;
		events->refused_descendants++;
		return 0;
	}
	return result;
}

/* Opens the target's tasks.  Lists again to find new tasks, made by tasks that had no events
 * yet. */
static int open_all_listed(struct opening *opening, struct tally_error *err)
{
	struct tally_recorder_events *events = opening->events;
	struct tally_target *target = events->session->target;
	const struct tally_attr *side_band = &tally_recorder_side_band(events)->attr;
	size_t opened = 0, next = 0;
	long listed;
	events->refused_descendants = 0;
	do {
		for (; next < target->tids.count; next++) {
			int result = open_listed(opening, target->tids.items[next], !opened, err);
			if (result < 0)
				return result;
			opened += (size_t)result;
		}
		listed = tally_target_refresh(target);
		if (listed > 0 &&
		    tally_recorder_look_for_inherited(&opening->inherited, side_band) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
	} while (listed > 0);
	if (!opened)
		return tally_error_set(err, -ESRCH,
				       "none of the tasks to record exists (any more)");
	return 0;
}

static int open_everywhere(struct opening *opening, struct tally_error *err)
{
	const struct tally_recorder_session *session = opening->events->session;
	struct tally_target *target = session->target;
	int result;
	if (session->options.per_thread)
		opening->rings->count = 0; /* each thread adds its own */
	opening->inherited = (struct tally_recorder_inherited){ .rings = opening->rings };
	if (target->all)
		result = open_task(opening, -1, false, err);
	else if (tally_recorder_follows_command(session))
		result = open_task(opening, session->spawn->pid, false, err);
	else
		result = open_all_listed(opening, err);
	tally_recorder_inherited_release(&opening->inherited);
	return tally_error_of(result);
}

static void close_all(struct tally_recorder_events *events, struct tally_recorder_rings *rings)
{
	struct tally_provider *provider = events->session->provider;
	tally_recorder_close_rings(rings);
	for (size_t i = 0; i < events->handles.count; i++)
		provider->ops->close(provider, events->handles.items[i].handle);
	for (size_t i = 0; i < events->side_handles.count; i++)
		provider->ops->close(provider, events->side_handles.items[i].handle);
	for (size_t i = 0; i < events->source_count; i++)
		events->sources[i].ids.count = 0;
	events->handles.count = events->side_handles.count = 0;
	tally_map_release(&events->source_of_id);
}

/* Tells the user which events can have no samples: switches and migrations happen in the kernel,
 * which gives 0 for user mode instead of an error. */
static void report_emptied(struct tally_recorder_events *events)
{
	struct tally_buffer *notes = events->session->notes;
	size_t count = 0;
	for (size_t i = 0; i + 1 < events->source_count; i++)
		if (tally_counting_is_emptied(&events->sources[i].attr))
			tally_buffer_printf(notes, "%s'%s'", count++ ? ", " : "",
					    events->sources[i].name);
	if (count)
		tally_buffer_printf(notes, " can have no samples: %s only in the kernel\n",
				    count > 1 ? "they occur" : "it occurs");
}

static void report_group_reads(struct tally_recorder_events *events)
{
	bool any = false;
	for (size_t i = 0; i + 1 < events->source_count; i++)
		any |= events->sources[i].event->group_read;
	bool can_take_all = tally_provider_can(events->session->provider,
					       TALLY_PROVIDER_ANY_TARGET);
	if (any && !events->session->target->all)
		tally_buffer_printf(
			events->session->notes,
			"with :S new threads and children are not sampled: groups of inherited "
			"events can't be read%s\n",
			can_take_all ? "; -a samples them all" : "");
}

static void report_descendants(struct tally_recorder_events *events)
{
	const char *fate = "not recorded";
	char text[1024];
	tally_target_descendants_text(events->session->target, text, sizeof(text));
	if (!*text)
		return;
	if (events->session->target->takes_descendants)
		fate = "recorded as well; --no-descendants leaves them out";
	tally_buffer_printf(events->session->notes, "%s %s\n", text, fate);
	if (events->refused_descendants)
		tally_buffer_printf(events->session->notes,
				    "this user may not record %zu of their threads\n",
				    events->refused_descendants);
}

static int open_cgroups(struct tally_recorder_events *events, struct tally_error *err)
{
	for (size_t i = 0; i + 1 < events->source_count; i++) {
		struct tally_recorder_source *source = &events->sources[i];
		if (!source->event->cgroup)
			continue;
		const char *named = tally_arena_printf(&events->session->arena, "%s,%s",
						       source->name, source->event->cgroup);
		if (named)
			source->name = named;
		source->cgroup_fd = tally_cgroup_open(source->event->cgroup, err);
		if (source->cgroup_fd < 0)
			return source->cgroup_fd;
	}
	return 0;
}

int tally_recorder_open_cpu(struct tally_recorder_events *events,
			    struct tally_recorder_rings *rings, size_t ring,
			    struct tally_error *err)
{
	struct opening opening = { .events = events, .rings = rings, .sizes = rings->sizes };
	struct place place = { .tid = -1, .cpu = (int)rings->cpus[ring].number, .ring = ring };
	return open_place(&opening, &place, err);
}

static int list_cpus(const struct tally_recorder_session *session, struct tally_error *err)
{
	struct tally_cpu_list *cpus = &session->target->cpus;
	if (tally_provider_can(session->provider, TALLY_PROVIDER_ONE_CPU))
		return tally_cpu_list_parse("0", cpus, err);
	return tally_cpu_list_read(TALLY_CPU_ONLINE, cpus, err);
}

int tally_recorder_open(struct tally_recorder_events *events, struct tally_recorder_rings *rings,
			struct tally_error *err)
{
	struct tally_target *target = events->session->target;
	if (!target->cpus.count) {
		int listed = list_cpus(events->session, err);
		if (listed < 0)
			return listed;
	}
	if (tally_recorder_make_rings(rings) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	tally_limits_raise_descriptors();
	int result = open_cgroups(events, err);
	if (result < 0)
		return result;
	struct opening opening = { .events = events, .rings = rings };
	struct tally_recorder_ring_sizes *sizes = &opening.sizes, tried;
	*sizes = tally_recorder_choose_rings(rings, events->call_graph == TALLY_CALL_GRAPH_STACK,
					     tally_recorder_copies_ring_bytes(events));
	/* Rings that turned out smaller need smaller watermarks, which only new events can get. */
	do {
		tried = *sizes;
		close_all(events, rings);
		tally_recorder_set_wakeups(events, sizes);
		tally_recorder_copies_init(events,
					   sizes->sample_pages * (size_t)sysconf(_SC_PAGESIZE));
		result = open_everywhere(&opening, err);
		if (is_refused(result) && !target->all && fall_back_to_user(events)) {
			close_all(events, rings);
			result = open_everywhere(&opening, err);
		}
	} while (!result && (sizes->sample_pages < tried.sample_pages ||
			     sizes->side_pages < tried.side_pages));
	rings->sizes = *sizes;
	if (result < 0)
		return result;
	tally_recorder_report_small_rings(rings);
	report_emptied(events);
	report_group_reads(events);
	report_descendants(events);
	return 0;
}

void tally_recorder_close(struct tally_recorder_events *events, struct tally_recorder_rings *rings)
{
	close_all(events, rings);
	for (size_t i = 0; events->sources && i < events->source_count; i++) {
		tally_vector_release(&events->sources[i].ids);
		if (events->sources[i].cgroup_fd >= 0)
			close(events->sources[i].cgroup_fd);
	}
	tally_vector_release(&events->handles);
	tally_vector_release(&events->side_handles);
}

void tally_recorder_close_cpu(struct tally_recorder_events *events,
			      struct tally_recorder_rings *rings, size_t ring)
{
	struct tally_provider *provider = events->session->provider;
	size_t kept = 0;
	tally_ring_close(&rings->samples[ring]);
	tally_ring_close(&rings->sides[ring]);
	for (size_t i = 0; i < events->handles.count; i++) {
		const struct tally_recorder_handle *opened = &events->handles.items[i];
		if (opened->ring != ring) {
			events->handles.items[kept++] = *opened;
			continue;
		}
		events->lost_closed += lost_by(events, opened);
		provider->ops->close(provider, opened->handle);
	}
	events->handles.count = kept;
	kept = 0;
	for (size_t i = 0; i < events->side_handles.count; i++) {
		const struct tally_recorder_handle *opened = &events->side_handles.items[i];
		if (opened->ring != ring)
			events->side_handles.items[kept++] = *opened;
		else
			provider->ops->close(provider, opened->handle);
	}
	events->side_handles.count = kept;
}

/* ---- on and off ---------------------------------------------------------- */

/* Only one size of a source's copies is on at a time. */
static int switch_handle(const struct tally_recorder_events *events,
			 const struct tally_recorder_handle *opened, bool enable)
{
	const struct tally_recorder_copies *copies = &events->copies;
	struct tally_provider *provider = events->session->provider;
	if (enable && opened->copy_bytes && opened->copy_bytes != copies->sizes[copies->now])
		return 0;
	return provider->ops->ioctl(provider, opened->handle,
				    enable ? TALLY_IOCTL_ENABLE : TALLY_IOCTL_DISABLE, NULL, 0);
}

int tally_recorder_enable_from(const struct tally_recorder_events *events, size_t first,
			       bool enable, struct tally_error *err)
{
	for (size_t i = first; i < events->handles.count; i++) {
		int result = switch_handle(events, &events->handles.items[i], enable);
		if (result < 0)
			return tally_error_set(err, result, "switching an event %s failed: %s",
					       enable ? "on" : "off", tally_errno_text(result));
	}
	return 0;
}

int tally_recorder_enable(struct tally_recorder_events *events, bool enable,
			  struct tally_error *err)
{
	int result = tally_recorder_enable_from(events, 0, enable, err);
	if (!result)
		events->is_enabled = enable;
	return result;
}

int tally_recorder_enable_named(const struct tally_recorder_events *events, const char *name,
				bool enable, struct tally_error *err)
{
	int is_known = 0;
	for (size_t i = 0; i < events->handles.count; i++) {
		const struct tally_recorder_handle *opened = &events->handles.items[i];
		if (strcmp(events->sources[opened->source].name, name) != 0)
			continue;
		is_known = 1;
		int result = switch_handle(events, opened, enable);
		if (result < 0)
			return tally_error_set(err, result, "switching '%s' failed: %s", name,
					       tally_errno_text(result));
	}
	return is_known;
}

uint64_t tally_recorder_lost(const struct tally_recorder_events *events)
{
	uint64_t lost = events->lost_closed;
	for (size_t i = 0; i < events->handles.count; i++)
		lost += lost_by(events, &events->handles.items[i]);
	return lost;
}
