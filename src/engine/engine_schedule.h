/* What context.c, context_schedule.c, context_queue.c, group.c and inherit.c give one another. */
#ifndef TALLY_ENGINE_SCHEDULE_H
#define TALLY_ENGINE_SCHEDULE_H

#include "engine/engine_state.h"

#define ENGINE_PMUS_ALL UINT64_MAX

/* The CPU where the context is scheduled in, or NULL. Context locked. */
static inline struct engine_cpu *engine_context_here(const struct engine_context *context)
{
	int cpu = __atomic_load_n(&context->cpu, __ATOMIC_RELAXED);
	struct engine_cpu *here = cpu < 0 ? NULL : &context->engine->cpus[cpu];
	return here && (context->task || __atomic_load_n(&here->up, __ATOMIC_RELAXED)) ? here
										       : NULL;
}

/* --- context.c --- */

/* Brings context->time up to now: first of all under its lock. */
void engine_context_update_time(struct engine_context *context);
/* engine_context_call() of a context, not of an event's; `event` is passed on. */
void engine_context_call_in(struct engine_context *context, struct engine_event *event,
			    void (*function)(struct engine_event *event, void *argument),
			    void *argument);

/* --- context_queue.c: the order in which groups are tried. Context locked. --- */

void engine_queue_init(struct engine_queue *queue);
void engine_queue_insert(struct engine_event *leader); /* last */
void engine_queue_remove(struct engine_event *leader);
void engine_queue_rotate(struct engine_event *leader); /* to the end */

/* A table for the groups that are bound to a CPU, when one more wants a larger one: made where
 * memory may be asked for, put in place under the lock; what is left over is freed after.  Without
 * memory the old one serves, slower. */
struct engine_queue_table {
	struct engine_queue *queues;
	unsigned size;
};
void engine_queue_table_new(const struct engine_context *context, const struct engine_event *leader,
			    struct engine_queue_table *table);
void engine_queue_table_place(struct engine_context *context, struct engine_queue_table *table);
void engine_queue_table_free(struct tally_engine *engine, struct engine_queue_table *table);

/* Walks a context's groups that may run on `cpu`, in their order: those for any CPU and those bound
 * to it.  The queues must not change meanwhile. */
struct engine_queue_walk {
	const struct engine_list *head[2], *at[2];
	int cpu;
};
void engine_queue_walk_begin(struct engine_queue_walk *walk, const struct engine_context *context,
			     unsigned cpu, bool pinned);
struct engine_event *engine_queue_walk_next(struct engine_queue_walk *walk); /* NULL: the end */

/* --- group.c. Context locked. --- */

/* One event on its PMU, or -EAGAIN; off it.  Nothing when it isn't INACTIVE, or ACTIVE. [cpu] */
int engine_event_in(struct engine_event *event, struct engine_cpu *cpu);
void engine_event_out(struct engine_event *event, struct engine_cpu *cpu);
void engine_group_alone(struct engine_event *event);  /* its own leader */
void engine_group_attach(struct engine_event *event); /* to event->leader */
/* Leaves its group; a leader's members become leaders of their own, queued, and stay on when they
 * are on. */
void engine_group_detach(struct engine_event *event);
/* what detaching a leader does to a member */
void engine_group_release(struct engine_event *member);

/* --- context_schedule.c. Context locked, and the CPU's other one; times up to date. [cpu] --- */

/* Locks both contexts of this CPU, the CPU's first, interrupts off, and brings their times up to
 * date. */
struct engine_cpu_held {
	struct engine_context *task;
	uintptr_t outer, inner;
};
void engine_cpu_lock(struct tally_engine *engine, struct engine_cpu *cpu,
		     struct engine_cpu_held *held);
void engine_cpu_unlock(struct tally_engine *engine, struct engine_cpu *cpu,
		       struct engine_cpu_held *held);
/* Between these: the current task's context is scheduled in if it isn't (it was made just now), and
 * locked with them. */
void engine_cpu_bring(struct engine_cpu *cpu, struct engine_context *context,
		      struct engine_cpu_held *held);
/* The task's context comes to this CPU, which has none, with its lock held; goes. */
void engine_context_enter(struct engine_context *context, struct engine_cpu *cpu);
void engine_context_leave(struct engine_context *context, struct engine_cpu *cpu);
/* The leader's group has come, or has been enabled: tries it in its place, others giving way as far
 * as its rank goes. */
void engine_context_reschedule(struct engine_event *leader, struct engine_cpu *cpu);
/* All groups of the context anew. */
void engine_context_reschedule_all(struct engine_context *context, struct engine_cpu *cpu);
/* Sets event->cgroup_away by the current task. */
void engine_cgroup_look(struct engine_event *event, const struct engine_cpu *cpu);

/* --- inherit.c --- */

/* One event's end by its task's: a child's counts are folded into its parent's and it is freed, an
 * original's state becomes EXIT and those who poll are told. [surface] */
void engine_inherit_exit_event(struct engine_event *event, struct tally_engine_task *task,
			       bool exec);

#endif
