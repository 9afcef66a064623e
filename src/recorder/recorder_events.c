/* Opens a recording's events: each event on each task and CPU, with one ring for samples and one
 * for side-band records on each CPU.
 *
 * Inherited events can be mapped only when they are bound to a CPU, so even a single task's events
 * are opened once per CPU.  All events of a CPU write to the ring of the first one (SET_OUTPUT).
 */
#include "recorder/recorder_state.h"

#include "base/vector.h"
#include "counting/counting.h"
#include "machine/limits.h"
#include "provider/advice.h"
#include "session/cgroup.h"
#include "session/event_filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
static bool fall_back_to_user(struct tally_recorder *recorder)
{
	bool changed = false;
	size_t emptied = 0;
	if (tally_recorder_off_cpu(recorder))
		return false;
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++)
		emptied += is_empty_in_user_mode(&recorder->events.sources[i]);
	if (emptied + 1 == recorder->events.source_count)
		return false;
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++) {
		struct tally_recorder_source *source = &recorder->events.sources[i];
		if (!wants_kernel(source))
			continue;
		source->attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		source->written.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
		const char *name = tally_arena_printf(&recorder->session.arena, "%s%s", source->name,
						      strchr(source->name, ':') ? "u" : ":u");
		source->name = name ? name : source->name;
		changed = true;
	}
	if (changed)
		tally_buffer_text(
			recorder->session.notes,
			"only user mode is recorded; 'sysctl kernel.perf_event_paranoid=1' adds "
			"the kernel\n");
	return changed;
}

static int note_id(struct tally_recorder *recorder, size_t source_index, int handle)
{
	struct tally_recorder_source *source = &recorder->events.sources[source_index];
	uint64_t id = 0;
	int result = recorder->session.provider->ops->ioctl(recorder->session.provider, handle, TALLY_IOCTL_ID, &id,
						    0);
	uint64_t *slot = result < 0 ? NULL : tally_map_put(&recorder->events.source_of_id, id, NULL);
	if (result < 0)
		return result;
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
static int open_one(struct tally_recorder *recorder, size_t source_index, const struct place *place,
		    int leader, uint32_t copy_bytes)
{
	struct tally_recorder_source *source = &recorder->events.sources[source_index];
	struct tally_provider *provider = recorder->session.provider;
	struct tally_recorder_handle opened = { .ring = (uint32_t)place->ring,
						.source = (uint32_t)source_index,
						.copy_bytes = copy_bytes };
	int handle;
	do {
		struct tally_attr attr = source->attr;
		if (copy_bytes)
			attr.sample_stack_user = copy_bytes;
		if (copy_bytes && copy_bytes != recorder->events.copies.sizes[recorder->events.copies.now])
			attr.flags &= ~TALLY_ATTR_ENABLE_ON_EXEC;
		bool of_cgroup = source->cgroup_fd >= 0;
		handle = provider->ops->open(provider, &attr,
					     of_cgroup ? source->cgroup_fd : place->tid, place->cpu,
					     leader, of_cgroup ? TALLY_FLAG_PID_CGROUP : 0);
	} while (handle < 0 && relax(source, handle));
	if (handle < 0)
		return handle;
	opened.handle = handle;
	int result = note_id(recorder, source_index, handle);
	if (!result && source->event)
		result = tally_vector_push(&recorder->events.handles, opened);
	else if (!result)
		result = tally_vector_push(&recorder->events.side_handles, opened);
	if (result < 0) {
		provider->ops->close(provider, handle);
		return result;
	}
	return handle;
}

static bool is_refused(int result)
{
	return result == -EACCES || result == -EPERM;
}

/* ---- all of them --------------------------------------------------------- */

static int explain_refusal(const struct tally_recorder *recorder, const struct tally_event *event,
			   int code, const struct place *place, struct tally_error *err)
{
	struct tally_provider *provider = recorder->session.provider;
	const char *hint = NULL;
	if (!provider->ops->reason) {
		tally_provider_open_error(event, code, place->tid, place->cpu,
					  tally_recorder_command(recorder), err);
		return code;
	}
	tally_error_set(err, code, "'%s': %s", event->name,
			provider->ops->reason(provider, &event->attr, code, &hint));
	if (hint)
		tally_error_hint(err, "%s", hint);
	return code;
}

static int leader_of(const struct tally_recorder *recorder, size_t source, int last_leader)
{
	int group = recorder->events.sources[source].event ? recorder->events.sources[source].event->group
						    : TALLY_EVENT_NO_GROUP;
	bool member = source && group != TALLY_EVENT_NO_GROUP &&
		      recorder->events.sources[source - 1].event->group == group;
	return member ? last_leader : -1;
}

/* Opens an event, or one event for each size of copies.  Sets *handle to the first. */
static int open_source(struct tally_recorder *recorder, size_t index, const struct place *place,
		       int group, int *handle, struct tally_recorder_ring_sizes *sizes,
		       struct tally_error *err)
{
	const struct tally_recorder_source *source = &recorder->events.sources[index];
	const struct tally_recorder_copies *copies = &recorder->events.copies;
	unsigned count = tally_recorder_has_copies(recorder, source) ? copies->count : 1;
	int result = 0;
	for (unsigned i = 0; !result && i < count; i++) {
		int opened = open_one(recorder, index, place, group,
				      count > 1 ? copies->sizes[i] : 0);
		if (opened < 0) {
			const struct tally_recorder_source *off_cpu =
				is_refused(opened) ? tally_recorder_off_cpu(recorder) : NULL;
			struct tally_event asked = off_cpu ? *off_cpu->event : *source->event;
			asked.attr = off_cpu ? off_cpu->attr : source->attr;
			return explain_refusal(recorder, &asked, opened, place, err);
		}
		if (!i)
			*handle = opened;
		if (source->event->filter)
			result = tally_event_filter_put(recorder->session.provider, source->event, opened);
		if (result < 0)
			return tally_event_filter_explain(source->event, result, err);
		result = tally_recorder_join_ring(recorder, &recorder->rings.samples[place->ring], opened,
						  place->cpu, &sizes->sample_pages, err);
	}
	return result;
}

static int open_side_band(struct tally_recorder *recorder, const struct place *place,
			  struct tally_recorder_ring_sizes *sizes, struct tally_error *err)
{
	int handle = open_one(recorder, recorder->events.source_count - 1, place, -1, 0);
	if (handle < 0) {
		/* A refusal of the side-band's event applies to all.  The message names an event
		 * that the user knows. */
		return explain_refusal(recorder, recorder->events.sources[0].event, handle, place, err);
	}
	return tally_recorder_join_ring(recorder, &recorder->rings.sides[place->ring], handle,
					place->cpu, &sizes->side_pages, err);
}

static int open_samples(struct tally_recorder *recorder, const struct place *place,
			struct tally_recorder_ring_sizes *sizes, struct tally_error *err)
{
	int leader = -1, result = 0;
	for (size_t i = 0; !result && i + 1 < recorder->events.source_count; i++) {
		int group = leader_of(recorder, i, leader), handle = -1;
		result = open_source(recorder, i, place, group, &handle, sizes, err);
		if (group < 0)
			leader = handle;
	}
	return result;
}

/* Opens all events on one task and CPU; the side-band first, so that no mapping is missed. */
static int open_place(struct tally_recorder *recorder, const struct place *place,
		      struct tally_recorder_ring_sizes *sizes, struct tally_error *err)
{
	int result = open_side_band(recorder, place, sizes, err);
	return result ? result : open_samples(recorder, place, sizes, err);
}

/* Opens a thread's events on whichever CPU it runs, with a ring of its own. */
static int open_thread(struct tally_recorder *recorder, pid_t tid, bool may_end,
		       struct tally_recorder_ring_sizes *sizes, struct tally_error *err)
{
	struct place place = { .tid = tid, .cpu = -1, .ring = recorder->rings.count };
	if (place.ring == recorder->rings.capacity)
		return 0; /* more threads than rings were planned for */
	recorder->rings.count++;
	int result = open_place(recorder, &place, sizes, err);
	return result == -ESRCH && may_end ? 0 : result < 0 ? result : 1;
}

/* Opens a task's events on all CPUs.  Returns 1, 0 when the task has ended, or -errno.  The
 * side-band comes first on all CPUs.  A child that appears meanwhile inherits what is open then; it
 * must not be sampled on one CPU while its mappings on another go unrecorded. */
static int open_task(struct tally_recorder *recorder, pid_t tid, bool may_end,
		     struct tally_recorder_ring_sizes *sizes, struct tally_error *err)
{
	if (recorder->session.options.per_thread)
		return open_thread(recorder, tid, may_end, sizes, err);
	for (size_t i = 0; i < 2 * recorder->rings.count; i++) {
		size_t ring = i % recorder->rings.count;
		struct place place = { .tid = tid,
				       .cpu = (int)recorder->rings.cpus[ring].number,
				       .ring = ring };
		int result = 0;
		if (i < recorder->rings.count)
			result = open_side_band(recorder, &place, sizes, err);
		else if (!tally_recorder_has_inherited(recorder, tid, ring))
			result = open_samples(recorder, &place, sizes, err);
		if (result == -ESRCH && may_end)
			return 0;
		if (!result && i >= recorder->rings.count &&
		    tally_recorder_note_opened(recorder, tid, ring) < 0)
			result = tally_error_set(err, -ENOMEM, "out of memory");
		if (result < 0)
			return result;
	}
	return 1;
}

/* Opens one of the target's tasks, like open_task().  The first task shows what this user may
 * record: a child process of another user is left out. */
static int open_listed(struct tally_recorder *recorder, pid_t tid, bool is_first,
		       struct tally_recorder_ring_sizes *sizes, struct tally_error *err)
{
	if (tally_recorder_has_inherited_all(recorder, tid))
		return 0;
	int result = open_task(recorder, tid, true, sizes, err);
	if (!is_first && is_refused(result) && tally_target_is_descendant(recorder->session.target, tid)) {
		*err = (struct tally_error)TALLY_ERROR_NONE;
		recorder->events.refused_descendants++;
		return 0;
	}
	return result;
}

/* Opens the target's tasks.  Lists again to find new tasks, made by tasks that had no events
 * yet. */
static int open_all_listed(struct tally_recorder *recorder, struct tally_recorder_ring_sizes *sizes,
			   struct tally_error *err)
{
	struct tally_target *target = recorder->session.target;
	size_t opened = 0, next = 0;
	long listed;
	recorder->events.refused_descendants = 0;
	do {
		for (; next < target->tids.count; next++) {
			int result = open_listed(recorder, target->tids.items[next], !opened, sizes,
						 err);
			if (result < 0)
				return result;
			opened += (size_t)result;
		}
		listed = tally_target_refresh(target);
		if (listed > 0 && tally_recorder_look_for_inherited(recorder) < 0)
			return tally_error_set(err, -ENOMEM, "out of memory");
	} while (listed > 0);
	return opened ? 0
		      : tally_error_set(err, -ESRCH,
					"none of the tasks to record exists (any more)");
}

static int open_everywhere(struct tally_recorder *recorder, struct tally_recorder_ring_sizes *sizes,
			   struct tally_error *err)
{
	struct tally_target *target = recorder->session.target;
	if (recorder->session.options.per_thread)
		recorder->rings.count = 0; /* each thread adds its own */
	if (target->all || tally_recorder_follows_command(recorder)) {
		int result = open_task(recorder, target->all ? -1 : recorder->session.spawn->pid, false,
				       sizes, err);
		return result < 0 ? result : 0;
	}
	int result = open_all_listed(recorder, sizes, err);
	tally_recorder_forget_inherited(recorder);
	return result;
}

static void close_all(struct tally_recorder *recorder)
{
	struct tally_provider *provider = recorder->session.provider;
	for (size_t i = 0; recorder->rings.samples && i < recorder->rings.count; i++) {
		tally_ring_close(&recorder->rings.samples[i]);
		tally_ring_close(&recorder->rings.sides[i]);
	}
	for (size_t i = 0; i < recorder->events.handles.count; i++)
		provider->ops->close(provider, recorder->events.handles.items[i].handle);
	for (size_t i = 0; i < recorder->events.side_handles.count; i++)
		provider->ops->close(provider, recorder->events.side_handles.items[i].handle);
	for (size_t i = 0; i < recorder->events.source_count; i++)
		recorder->events.sources[i].ids.count = 0;
	recorder->events.handles.count = recorder->events.side_handles.count = 0;
	tally_map_release(&recorder->events.source_of_id);
}

/* Tells the user which events can have no samples: switches and migrations happen in the kernel,
 * which gives 0 for user mode instead of an error. */
static void tell_of_emptied(struct tally_recorder *recorder)
{
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++)
		if (tally_counting_is_emptied(&recorder->events.sources[i].attr))
			tally_buffer_printf(
				recorder->session.notes,
				"'%s' can have no samples: it occurs only in the kernel\n",
				recorder->events.sources[i].name);
}

static void tell_of_group_reads(struct tally_recorder *recorder)
{
	bool any = false;
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++)
		any |= recorder->events.sources[i].event->group_read;
	if (any && !recorder->session.target->all)
		tally_buffer_printf(
			recorder->session.notes,
			"with :S new threads and children are not sampled: groups of inherited "
			"events can't be read%s\n",
			recorder->session.provider->ops->command ? "" : "; -a samples them all");
}

static void tell_of_descendants(struct tally_recorder *recorder)
{
	char text[1024];
	tally_target_descendants_text(recorder->session.target, text, sizeof(text));
	if (!*text)
		return;
	tally_buffer_printf(recorder->session.notes, "%s %s\n", text,
			    recorder->session.target->takes_descendants
				    ? "recorded as well; --no-descendants leaves them out"
				    : "not recorded");
	if (recorder->events.refused_descendants)
		tally_buffer_printf(recorder->session.notes,
				    "this user may not record %zu of their threads\n",
				    recorder->events.refused_descendants);
}

static int open_cgroups(struct tally_recorder *recorder, struct tally_error *err)
{
	for (size_t i = 0; i + 1 < recorder->events.source_count; i++) {
		struct tally_recorder_source *source = &recorder->events.sources[i];
		if (!source->event->cgroup)
			continue;
		const char *named = tally_arena_printf(&recorder->session.arena, "%s,%s", source->name,
						       source->event->cgroup);
		source->name = named ? named : source->name;
		source->cgroup_fd = tally_cgroup_open(source->event->cgroup, err);
		if (source->cgroup_fd < 0)
			return source->cgroup_fd;
	}
	return 0;
}

int tally_recorder_open_cpu(struct tally_recorder *recorder, size_t ring, struct tally_error *err)
{
	struct tally_recorder_ring_sizes sizes = recorder->rings.sizes;
	struct place place = { .tid = -1,
			       .cpu = (int)recorder->rings.cpus[ring].number,
			       .ring = ring };
	return open_place(recorder, &place, &sizes, err);
}

int tally_recorder_open(struct tally_recorder *recorder, struct tally_error *err)
{
	if (!recorder->session.target->cpus.count) {
		int listed = recorder->session.provider->ops->command
				     ? tally_cpu_list_parse("0", &recorder->session.target->cpus, err)
				     : tally_cpu_list_read(TALLY_CPU_ONLINE,
							   &recorder->session.target->cpus, err);
		if (listed < 0)
			return listed;
	}
	if (tally_recorder_make_rings(recorder) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	tally_limits_raise_descriptors();
	int result = open_cgroups(recorder, err);
	if (result < 0)
		return result;
	struct tally_recorder_ring_sizes sizes = tally_recorder_choose_rings(recorder), tried;
	/* Rings that turned out smaller need smaller watermarks, which only new events can get. */
	do {
		tried = sizes;
		close_all(recorder);
		tally_recorder_set_wakeups(recorder, &sizes);
		tally_recorder_copies_init(recorder,
					   sizes.sample_pages * (size_t)sysconf(_SC_PAGESIZE));
		result = open_everywhere(recorder, &sizes, err);
		if (is_refused(result) && !recorder->session.target->all && fall_back_to_user(recorder)) {
			close_all(recorder);
			result = open_everywhere(recorder, &sizes, err);
		}
	} while (!result &&
		 (sizes.sample_pages < tried.sample_pages || sizes.side_pages < tried.side_pages));
	recorder->rings.sizes = sizes;
	if (!result)
		result = tally_recorder_open_triggers(recorder, err);
	if (!result) {
		tally_recorder_tell_of_small_rings(recorder, &sizes);
		tell_of_emptied(recorder);
		tell_of_group_reads(recorder);
		tell_of_descendants(recorder);
	}
	return result;
}

void tally_recorder_close(struct tally_recorder *recorder)
{
	close_all(recorder);
	tally_recorder_forget_inherited(recorder);
	tally_recorder_close_triggers(recorder);
	for (size_t i = 0; recorder->events.sources && i < recorder->events.source_count; i++) {
		tally_vector_release(&recorder->events.sources[i].ids);
		if (recorder->events.sources[i].cgroup_fd >= 0)
			close(recorder->events.sources[i].cgroup_fd);
	}
	tally_vector_release(&recorder->events.handles);
	tally_vector_release(&recorder->events.side_handles);
}

int tally_recorder_enable_from(struct tally_recorder *recorder, size_t first, bool enable,
			       struct tally_error *err)
{
	const struct tally_recorder_copies *copies = &recorder->events.copies;
	for (size_t i = first; i < recorder->events.handles.count; i++) {
		const struct tally_recorder_handle *opened = &recorder->events.handles.items[i];
		if (enable && opened->copy_bytes &&
		    opened->copy_bytes != copies->sizes[copies->now])
			continue;
		int result = recorder->session.provider->ops->ioctl(
			recorder->session.provider, opened->handle,
			enable ? TALLY_IOCTL_ENABLE : TALLY_IOCTL_DISABLE, NULL, 0);
		if (result < 0)
			return tally_error_set(err, result, "switching an event %s failed: %s",
					       enable ? "on" : "off", tally_errno_text(result));
	}
	return 0;
}

int tally_recorder_enable(struct tally_recorder *recorder, bool enable, struct tally_error *err)
{
	int result = tally_recorder_enable_from(recorder, 0, enable, err);
	if (!result)
		recorder->events.is_enabled = enable;
	return result;
}

/* ---- lost samples -------------------------------------------------------- */

/* Counts lost samples exactly.
 *
 * The kernel writes a LOST record before the next record that fits, so samples lost after the last
 * record are not reported.  The events themselves count them (FORMAT_LOST, Linux 6.0; children
 * count in their parent).
 */

uint64_t tally_recorder_lost_by(const struct tally_recorder *recorder,
				const struct tally_recorder_handle *opened)
{
	uint64_t words[8];
	struct tally_provider *provider = recorder->session.provider;
	uint64_t format = recorder->events.sources[opened->source].attr.read_format;
	if (format != (TALLY_FORMAT_ID | TALLY_FORMAT_LOST))
		return 0;
	ssize_t got = provider->ops->read(provider, opened->handle, words, sizeof(words));
	return got >= (ssize_t)(3 * sizeof(*words)) ? words[2] : 0; /* value, id, lost */
}

static int write_lost(struct tally_recorder *recorder, uint64_t lost, struct tally_error *err)
{
	struct {
		struct tally_record_header header;
		uint64_t id, lost;
		uint8_t trailer[64];
	} record = { .id = recorder->events.sources[0].ids.items[0], .lost = lost };
	const struct tally_attr *attr = &recorder->events.sources[0].attr;
	size_t size = offsetof(__typeof__(record), trailer) + tally_sample_id_size(attr);
	struct tally_sample_id where = { .time = recorder->output.last_sample_ns, .id = record.id };
	record.header = (struct tally_record_header){ .type = TALLY_RECORD_LOST,
						      .size = (uint16_t)size };
	tally_sample_id_encode(attr, &where, record.trailer);
	return tally_recorder_put(recorder, &record, size, err);
}

int tally_recorder_count_lost(struct tally_recorder *recorder, struct tally_error *err)
{
	uint64_t lost = recorder->events.lost_closed;
	for (size_t i = 0; i < recorder->events.handles.count; i++)
		lost += tally_recorder_lost_by(recorder, &recorder->events.handles.items[i]);
	if (lost <= recorder->output.lost_told)
		return 0;
	uint64_t untold = lost - recorder->output.lost_told;
	recorder->output.lost_told = lost;
	recorder->session.status.lost += untold;
	return write_lost(recorder, untold, err);
}
