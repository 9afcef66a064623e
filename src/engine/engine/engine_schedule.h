/* Functions that context.c, context_schedule.c, context_queue.c, group.c and inherit.c share. */
#ifndef TALLY_ENGINE_SCHEDULE_H
#define TALLY_ENGINE_SCHEDULE_H

#include "engine/engine_state.h"

#define ENGINE_PMUS_ALL UINT64_MAX

/* Returns the CPU where the context is scheduled in, or NULL.  Context locked. */
static inline struct engine_cpu *engine_context_here(const struct engine_context *context)
{
	int cpu = __atomic_load_n(&context->cpu, __ATOMIC_RELAXED);
	struct engine_cpu *here = cpu < 0 ? NULL : &context->engine->cpus[cpu];
	if (here && (context->task || __atomic_load_n(&here->up, __ATOMIC_RELAXED)))
		return here;
	return NULL;
}

/* --- context.c --- */

/* Brings context->time up to now.  Called first whenever the context has been locked. */
void engine_context_update_time(struct engine_context *context);
/* engine_context_call() for a given context.  `event` is only passed on. */
void engine_context_call_in(struct engine_context *context, struct engine_event *event,
			    void (*function)(struct engine_event *event, void *argument),
			    void *argument);

/* --- context_queue.c: the order in which groups are tried. Context locked. --- */

void engine_queue_init(struct engine_queue *queue);
void engine_queue_insert(struct engine_event *leader); /* as the last */
void engine_queue_remove(struct engine_event *leader);
void engine_queue_rotate(struct engine_event *leader); /* moves it to the end */

/* A larger table for the groups that are bound to a CPU.  It is made where memory may be allocated
 * (_new), put in place under the lock (_place), and what is left over is freed afterwards (_free).
 * Without memory the old table stays, and is slower. */
struct engine_queue_table {
	struct engine_queue *queues;
	unsigned size;
};
void engine_queue_table_new(const struct engine_context *context, const struct engine_event *leader,
			    struct engine_queue_table *table);
void engine_queue_table_place(struct engine_context *context, struct engine_queue_table *table);
void engine_queue_table_free(struct tally_engine *engine, struct engine_queue_table *table);

/* Walks the context's groups that may run on `cpu`, in their order: groups for any CPU and groups
 * bound to it.  The queues must not change meanwhile. */
struct engine_queue_walk {
	const struct engine_list *head[2], *at[2];
	int cpu;
};
void engine_queue_walk_begin(struct engine_queue_walk *walk, const struct engine_context *context,
			     unsigned cpu, bool pinned);
struct engine_event *engine_queue_walk_next(struct engine_queue_walk *walk); /* NULL: the end */

/* --- group.c. Context locked. --- */

/* Put one event on its PMU (_in; returns 0 or -EAGAIN), and take it off (_out). _in does nothing
 * unless the event is INACTIVE, _out unless it is ACTIVE. [cpu] */
int engine_event_in(struct engine_event *event, struct engine_cpu *cpu);
void engine_event_out(struct engine_event *event, struct engine_cpu *cpu);
void engine_group_alone(struct engine_event *event);  /* makes it its own leader */
void engine_group_attach(struct engine_event *event); /* joins event->leader */
/* Leaves its group.  Members of a leader become leaders of their own, are queued, and stay on if
 * they are on. */
void engine_group_detach(struct engine_event *event);
/* the part of detaching a leader that concerns one member */
void engine_group_release(struct engine_event *member);

/* --- context_schedule.c. Context locked, and the CPU's other one; times up to date. [cpu] --- */

/* Lock both contexts of this CPU, the CPU's first, with interrupts off, and bring their times up to
 * date. */
struct engine_cpu_held {
	struct engine_context *task;
	uintptr_t outer, inner;
};
void engine_cpu_lock(struct tally_engine *engine, struct engine_cpu *cpu,
		     struct engine_cpu_held *held);
void engine_cpu_unlock(struct tally_engine *engine, struct engine_cpu *cpu,
		       struct engine_cpu_held *held);
/* While the CPU is locked: schedules in the current task's context if it isn't yet (it has just
 * been made), and adds it to those that are locked. */
void engine_cpu_bring(struct engine_cpu *cpu, struct engine_context *context,
		      struct engine_cpu_held *held);
/* Schedule a task's context in on this CPU, which has none, and out again.  The context is
 * locked. */
void engine_context_enter(struct engine_context *context, struct engine_cpu *cpu);
void engine_context_leave(struct engine_context *context, struct engine_cpu *cpu);
/* The leader's group is new or was just enabled: tries to schedule it in.  Groups that rank behind
 * it give way. */
void engine_context_reschedule(struct engine_event *leader, struct engine_cpu *cpu);
/* Schedules all groups of the context anew. */
void engine_context_reschedule_all(struct engine_context *context, struct engine_cpu *cpu);
/* Sets event->cgroup_away by the current task. */
void engine_cgroup_look(struct engine_event *event, const struct engine_cpu *cpu);

#endif
