/* Events whose hits start the next file (--switch-output-event).  They are open on the same tasks
 * and CPUs as the recorded events, with a ring of their own for each CPU.  The rings' records are
 * not read; it only matters that there are any. */
#include "recorder/recorder_triggers.h"

#include "base/vector.h"
#include "provider/provider.h"

#include <errno.h>

static void make_attr(const struct tally_recorder_triggers *triggers,
		      const struct tally_event *event, struct tally_attr *attr)
{
	*attr = event->attr;
	attr->size = sizeof(*attr);
	attr->flags &= ~(TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_WATERMARK);
	attr->sample_type = TALLY_SAMPLE_TIME;
	attr->wakeup_events = 1;
	if (!event->has_period && !event->has_frequency) {
		attr->sample_period = 1;
		attr->flags &= ~TALLY_ATTR_FREQ;
	}
	if (!triggers->session->target->all && !triggers->session->options.no_inherit)
		attr->flags |= TALLY_ATTR_INHERIT;
}

static int open_on(struct tally_recorder_triggers *triggers, const struct tally_event *event,
		   pid_t tid, int cpu, size_t at, struct tally_error *err)
{
	struct tally_provider *provider = triggers->session->provider;
	struct tally_ring *ring = &triggers->rings[at];
	struct tally_attr attr;
	make_attr(triggers, event, &attr);
	int handle = provider->ops->open(provider, &attr, tid, cpu, -1, 0);
	if (handle == -ESRCH && tid > 0)
		return 0; /* it has ended */
	if (handle < 0) {
		tally_provider_open_error(event, handle, tid, cpu,
					  tally_recorder_command(triggers->session), err);
		return handle;
	}
	if (tally_vector_push(&triggers->handles, handle) < 0) {
		provider->ops->close(provider, handle);
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	int result;
	if (ring->page)
		result = provider->ops->ioctl(provider, handle, TALLY_IOCTL_SET_OUTPUT,
					      (void *)(intptr_t)ring->handle, 0);
	else
		result = tally_ring_open(ring, provider, handle, cpu, 1);
	if (result < 0)
		return tally_error_set(err, result, "a ring for '%s' failed: %s", event->name,
				       tally_errno_text(result));
	return 0;
}

static int open_event(struct tally_recorder_triggers *triggers, const struct tally_event *event,
		      struct tally_error *err)
{
	const struct tally_target *target = triggers->session->target;
	bool is_listed = !target->all && !tally_recorder_follows_command(triggers->session);
	size_t tasks = is_listed ? target->tids.count : 1;
	pid_t tid = -1;
	int result = 0;
	for (size_t t = 0; !result && t < tasks; t++) {
		if (!target->all)
			tid = is_listed ? target->tids.items[t] : triggers->session->spawn->pid;
		for (size_t c = 0; !result && c < target->cpus.count; c++)
			result = open_on(triggers, event, tid, (int)target->cpus.cpus[c], c, err);
	}
	return result;
}

int tally_recorder_open_triggers(struct tally_recorder_triggers *triggers, struct tally_error *err)
{
	const struct tally_event_list *events = triggers->session->options.switch_events;
	if (!events || !events->count)
		return 0;
	triggers->count = triggers->session->target->cpus.count;
	triggers->rings = tally_arena_array(&triggers->session->arena, triggers->count,
					    sizeof(*triggers->rings));
	if (!triggers->rings) {
		triggers->count = 0;
		return tally_error_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < events->count; i++) {
		int result = open_event(triggers, &events->items[i], err);
		if (result)
			return result;
	}
	return 0;
}

bool tally_recorder_triggered(struct tally_recorder_triggers *triggers)
{
	bool is_hit = false;
	for (size_t i = 0; i < triggers->count; i++) {
		struct tally_ring *ring = &triggers->rings[i];
		if (!ring->page)
			continue;
		tally_ring_note(ring);
		is_hit |= ring->noted != ring->tail;
		ring->tail = ring->noted;
		tally_ring_release_read(ring);
	}
	return is_hit;
}

void tally_recorder_close_triggers(struct tally_recorder_triggers *triggers)
{
	for (size_t i = 0; i < triggers->count; i++)
		tally_ring_close(&triggers->rings[i]);
	for (size_t i = 0; i < triggers->handles.count; i++)
		triggers->session->provider->ops->close(triggers->session->provider,
							triggers->handles.items[i]);
	tally_vector_release(&triggers->handles);
	triggers->count = 0;
}
