/* Inheritance (SPEC.md B9): a task's events with attr.inherit are cloned for each task that it
 * creates.
 *
 * Clones of clones point to the original as well.  Its file keeps all of them alive, and all write
 * to its ring.  Only the original has a descriptor, so a tree of tasks needs no tree of events: the
 * value of an original is its own count, plus child_count (the counts of children that have ended),
 * plus the counts of its living children.  All of these change under the engine lock, which orders
 * forks, exits and reads.  So at any read a child's count is in exactly one of the three places. */
#include "engine/engine_schedule.h"

/* --- fork ----------------------------------------------------------------- */

/* Clones `event` into the child's context, as a leader if `leader` is NULL, otherwise as a member
 * of its group. */
static int inherit_event(struct engine_event *event, struct tally_engine_task *child,
			 struct engine_event *leader, struct engine_event **out)
{
	struct engine_event *original = event->parent ? event->parent : event, *clone = NULL;
	int code = engine_event_new(event->engine, &original->attr, child, event->cpu, leader,
				    original, &clone);
	if (code)
		return code;
	/* The clone takes the parent's present state, not its state when it was opened.  A pinned
	 * event in ERROR gives OFF, as in Linux. */
	bool on = engine_event_state(event) >= ENGINE_EVENT_INACTIVE;
	clone->state = on ? ENGINE_EVENT_INACTIVE : ENGINE_EVENT_OFF;
	if (engine_event_flag(original, TALLY_ATTR_FREQ)) {
		clone->hw.sample_period = clone->hw.last_period = original->hw.sample_period;
		clone->hw.period_left = (int64_t)original->hw.sample_period;
	}
	clone->overflow_handler = original->overflow_handler;
	clone->overflow_data = original->overflow_data;
	struct engine_context *context;
	code = engine_context_find(event->engine, child, -1, &context);
	if (code) {
		engine_event_put(clone);
		return code;
	}
	engine_list_add_tail(&clone->child_link, &original->children);
	engine_context_install(context, clone);
	*out = clone;
	return 0;
}

static bool is_inherited(const struct engine_event *event, bool thread)
{
	return event->leader == event && engine_event_flag(event, TALLY_ATTR_INHERIT) &&
	       (thread || !engine_event_flag(event, TALLY_ATTR_INHERIT_THREAD));
}

static int inherit_group(struct engine_event *group, struct tally_engine_task *child)
{
	struct engine_event *leader = NULL, *clone = NULL;
	int code = inherit_event(group, child, NULL, &leader);
	if (code)
		return code;
	ENGINE_LIST_EACH(member, &group->siblings, struct engine_event, sibling_link) {
		if (engine_event_state(member) == ENGINE_EVENT_EXIT) /* an exec removed it */
			continue;
		code = inherit_event(member, child, leader, &clone);
		if (code)
			return code;
	}
	leader->group_generation = group->group_generation;
	return 0;
}

/* Releases the events of a child that never ran: they have no counts. */
static void undo(struct tally_engine_task *child)
{
	struct engine_context *context = child->context;
	if (!context)
		return;
	ENGINE_LIST_EACH(event, &context->events, struct engine_event, context_link) {
		engine_context_remove(event, true, true);
		engine_list_remove(&event->child_link);
		engine_event_put(event);
	}
	__atomic_store_n(&child->context, NULL, __ATOMIC_SEQ_CST);
	engine_context_put(context);
}

int engine_inherit_fork(struct tally_engine_task *parent, struct tally_engine_task *child,
			bool thread)
{
	if (!parent->context)
		return 0;
	/* The list can't change: only the surface changes it, and this is a call of the surface. */
	ENGINE_LIST_EACH_BACK(event, &parent->context->events, struct engine_event, context_link) {
		if (!is_inherited(event, thread))
			continue;
		int code = inherit_group(event, child);
		if (code) {
			undo(child);
			return code;
		}
	}
	return 0;
}

/* --- exit ----------------------------------------------------------------- */

/* Wakes the waiters of an original, so that they see that it has ended (POLLHUP). */
static void wake_waiters(struct engine_event *event)
{
	const struct tally_engine_host *host = &event->engine->host;
	if (event->ring)
		engine_ring_wakeup(event);
	else if (event->file)
		host->wake(host->host, event->file);
}

/* Ends one event because its task ended, or by exec.  A child's counts are folded into its parent's
 * and it is freed.  An original moves to EXIT, and its pollers are woken. [surface] */
static void exit_event(struct engine_event *event, struct tally_engine_task *task, bool exec)
{
	struct engine_event *original = event->parent;
	if (!original) {
		/* After an exit the group stays: it can still be read as one. */
		engine_context_remove(event, exec, true);
		wake_waiters(event);
		return;
	}
	if (engine_event_flag(event, TALLY_ATTR_INHERIT_STAT))
		engine_output_read(event, task);
	engine_context_remove(event, true, true);
	engine_add64(&original->child_count, engine_load64(&event->count));
	original->child_time_enabled += event->time_enabled;
	original->child_time_running += event->time_running;
	original->lost_samples += event->lost_samples;
	engine_list_remove(&event->child_link);
	wake_waiters(original);
	engine_event_put(event);
}

static void leave(struct engine_event *event, void *argument)
{
	(void)event;
	struct engine_context *context = argument;
	struct engine_cpu *cpu = engine_context_here(context);
	if (cpu)
		engine_context_leave(context, cpu);
	/* so that it is not scheduled in again, though the task still runs for a while */
	context->dead = true;
}

void engine_inherit_exit(struct tally_engine_task *task)
{
	struct engine_context *context = task->context;
	if (!context)
		return;
	engine_context_call_in(context, NULL, leave, context);
	ENGINE_LIST_EACH(event, &context->events, struct engine_event, context_link)
		exit_event(event, task, false);
	__atomic_store_n(&task->context, NULL, __ATOMIC_SEQ_CST);
	engine_context_put(context);
}

/* --- exec ----------------------------------------------------------------- */

static void enable_on_exec(struct engine_event *unused, void *argument)
{
	(void)unused;
	struct engine_context *context = argument;
	struct engine_cpu *cpu = engine_context_here(context);
	bool any = false;
	ENGINE_LIST_EACH(event, &context->events, struct engine_event, context_link) {
		if (!engine_event_flag(event, TALLY_ATTR_ENABLE_ON_EXEC))
			continue;
		event->attr.flags &= ~TALLY_ATTR_ENABLE_ON_EXEC; /* only the first exec */
		if (event->state >= ENGINE_EVENT_INACTIVE)
			continue;
		engine_event_set_state(event, ENGINE_EVENT_INACTIVE);
		any = true;
	}
	if (any && cpu)
		engine_context_reschedule_all(context, cpu);
}

void engine_inherit_exec(struct tally_engine_task *task)
{
	struct engine_context *context = task->context;
	if (!context)
		return;
	engine_context_call_in(context, NULL, enable_on_exec, context);
	ENGINE_LIST_EACH(event, &context->events, struct engine_event, context_link) {
		if (!engine_event_flag(event, TALLY_ATTR_REMOVE_ON_EXEC))
			continue;
		if (event->owner)
			engine_list_remove(&event->owner_link);
		event->owner = NULL;
		exit_event(event, task, true);
	}
}
