/* States and times of an event (SPEC.md H1).
 *
 * time_enabled grows while an event is INACTIVE or ACTIVE, unless its leader is OFF or in a lower
 * state.  time_running grows while it is ACTIVE.  Both are in the time of the event's context, in
 * ns: a task's context has time only while the task runs, a CPU's always.  So when a task leaves
 * the CPU its events need no update: the context's clock stands still.  An event's times are
 * brought up to date when its state changes.  The times of a group's members depend on their
 * leader, so they are also brought up to date when it changes between on and off.  One operation
 * reads the clock once, into context->time, so that all members of a group have equal times.
 *
 * A CPU's event with a cgroup has time only while the CPU runs that cgroup (cgroup_away). */
#include "engine/engine_schedule.h"

static enum engine_event_state effective_state(const struct engine_event *event)
{
	if (event->leader != event && event->leader->state < ENGINE_EVENT_INACTIVE)
		return event->leader->state;
	return event->state;
}

static void times_at(const struct engine_event *event, uint64_t now, uint64_t *enabled,
		     uint64_t *running)
{
	enum engine_event_state state = effective_state(event);
	uint64_t passed = now - event->stamp;
	*enabled = engine_load64(&event->time_enabled);
	*running = engine_load64(&event->time_running);
	if (state >= ENGINE_EVENT_INACTIVE && !event->cgroup_away)
		*enabled += passed;
	if (state >= ENGINE_EVENT_ACTIVE)
		*running += passed;
}

void engine_event_update_times(struct engine_event *event)
{
	if (!event->context)
		return;
	uint64_t enabled, running, now = engine_load64(&event->context->time);
	times_at(event, now, &enabled, &running);
	/* The stamp goes first: a hit between two of these stores sees too little time, but never
	 * counts any twice. */
	engine_store64(&event->stamp, now);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	engine_store64(&event->time_enabled, enabled);
	engine_store64(&event->time_running, running);
}

void engine_event_set_state(struct engine_event *event, enum engine_event_state state)
{
	if (event->state == state)
		return;
	engine_event_update_times(event);
	if (event->leader == event &&
	    (event->state < ENGINE_EVENT_INACTIVE) != (state < ENGINE_EVENT_INACTIVE))
		ENGINE_LIST_EACH(member, &event->siblings, struct engine_event, sibling_link)
			engine_event_update_times(member);
	__atomic_store_n(&event->state, state, __ATOMIC_RELEASE);
}

void engine_event_times(struct engine_event *event, uint64_t *now, uint64_t *enabled,
			uint64_t *running)
{
	const struct engine_context *context = __atomic_load_n(&event->context, __ATOMIC_ACQUIRE);
	*now = engine_now(event->engine);
	if (!context) {
		*enabled = engine_load64(&event->time_enabled);
		*running = engine_load64(&event->time_running);
		return;
	}
	uint64_t time;
	if (__atomic_load_n(&context->running, __ATOMIC_ACQUIRE))
		time = *now - engine_load64(&context->offset);
	else
		time = engine_load64(&context->time);
	times_at(event, time, enabled, running);
}

uint64_t engine_event_count(struct engine_event *event)
{
	return engine_load64(&event->count) + engine_load64(&event->child_count);
}
