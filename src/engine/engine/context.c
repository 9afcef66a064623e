/* Contexts: they hold the events, and let the surface change events that a CPU is working with.
 *
 * A context belongs to a task or to a CPU, and holds the events of all PMUs.  A task's context is
 * *on* a CPU while the task runs there; a CPU's is on while the CPU is up.  Four parties access it:
 *
 *   the scheduler  switches, ticks, hotplug: on its CPU, interrupts off (context_schedule.c)
 *   run_pending()  on its CPU, interrupts off
 *   hits           on its CPU, at any instruction: they read and add to counts, but change
 *                  nothing else here
 *   the surface    open, close, ioctl, read, fork, exec, exit: on any CPU, one at a time, since
 *                  the engine lock is held
 *
 * The rules:
 *   1. The list of a context's events, their groups, states and times change under the context's
 *      lock with interrupts off.  Within one CPU, turning interrupts off is enough to keep
 *      scheduler, run_pending() and surface apart.  The lock is for the surface when it comes from
 *      another CPU.
 *   2. A context that is on a CPU is changed on that CPU only: PMU operations program that CPU's
 *      counters, and hits there walk listener lists without a lock.  The surface goes there with
 *      host->run_on().  A context that is on no CPU is changed wherever the surface runs.  Only the
 *      times and states of events that aren't ACTIVE may be brought up to date from another CPU,
 *      since that touches no counter.
 *   3. Only the surface changes which events are in a context and in which group.  So it may read
 *      these lists under the engine lock alone.
 *   4. Lock order: the engine lock, a CPU's context, the context of its current task.  Code that
 *      comes from another CPU takes the lock of one context, and never calls run_on() while it
 *      holds it: so no cycle of waiting is possible.
 *
 * A task may move between the moment when the surface finds its context's CPU and the moment when
 * it gets there.  So call_there() checks again once it has the locks, and if the task has left, it
 * does nothing and the surface starts anew.  call_elsewhere() does the same if the task has started
 * to run.  task->cpu decides.  tally_engine_switch_in() sets it before it looks for a context, and
 * _switch_out() clears it after the context has left, both on the task's CPU with interrupts off.
 * So on CPU c with interrupts off, `task->cpu == c` is stable.  Under the lock of a context that is
 * on no CPU, `task->cpu == -1` means that a switch_in() in progress has yet to take the lock, and
 * will then see what was done.  A context that is made while its task runs is published before
 * task->cpu is read; switch_in() does the two in the opposite order, both with sequential
 * consistency.  So one of the two sees the other, and an event that is opened on a running task
 * counts at once.  Each retry means that the task was switched.  Retries end, since the host runs
 * function calls before it runs tasks.
 *
 * Freeing: contexts count references (of their task, of their events) under the engine lock.  They
 * are retired, since a hit may still read the time of the context that its event was in. */
#include "engine/engine_schedule.h"

void engine_context_init(struct engine_context *context, struct tally_engine *engine,
			 struct tally_engine_task *task, int cpu)
{
	context->engine = engine;
	context->task = task;
	context->cpu = task ? -1 : cpu;
	context->running = !task; /* a CPU's time is the host's clock */
	context->references = 1;
	engine_list_init(&context->events);
	engine_list_init(&context->active_pinned);
	engine_list_init(&context->active_flexible);
	engine_queue_init(&context->any);
}

static void free_context(struct tally_engine *engine, struct engine_retired *retired)
{
	struct engine_context *context = ENGINE_CONTAINER(retired, struct engine_context, retired);
	struct engine_queue_table table = { context->by_cpu, context->by_cpu_size };
	engine_queue_table_free(engine, &table);
	engine_release(engine, context, sizeof(*context));
}

void engine_context_put(struct engine_context *context)
{
	if (context->task && !--context->references)
		engine_retire(context->engine, &context->retired, free_context);
}

int engine_context_find(struct tally_engine *engine, struct tally_engine_task *task, int cpu,
			struct engine_context **out)
{
	if (!task) {
		*out = &engine->cpus[cpu].context;
		return 0;
	}
	if (task->exited || (task->context && task->context->dead))
		return -ENGINE_ESRCH;
	if (!task->context) {
		struct engine_context *context = engine_allocate(engine, sizeof(*context));
		if (!context)
			return -ENGINE_ENOMEM;
		engine_context_init(context, engine, task, -1);
		/* pairs with tally_engine_switch_in() */
		__atomic_store_n(&task->context, context, __ATOMIC_SEQ_CST);
	}
	*out = task->context;
	return 0;
}

void engine_context_update_time(struct engine_context *context)
{
	if (context->running)
		engine_store64(&context->time,
			       engine_now(context->engine) - engine_load64(&context->offset));
}

/* --- where a context is --------------------------------------------------- */

struct context_call {
	struct engine_context *context;
	struct engine_event *event;
	void (*function)(struct engine_event *event, void *argument);
	void *argument;
	bool done;
};

/* Returns the CPU that the context is on, or is about to be on; -1 if there is none. */
static int runs_on(const struct engine_context *context)
{
	if (context->task && context->dead)
		return -1;
	if (context->task)
		return __atomic_load_n(&context->task->cpu, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&context->engine->cpus[context->cpu].up, __ATOMIC_ACQUIRE))
		return context->cpu;
	return -1;
}

static void call_there(void *argument)
{
	struct context_call *call = argument;
	struct engine_context *context = call->context;
	struct tally_engine *engine = context->engine;
	struct engine_cpu *cpu = engine_this_cpu(engine);
	struct engine_cpu_held held;
	engine_cpu_lock(engine, cpu, &held);
	if (runs_on(context) == (int)cpu->number) {
		if (context->task)
			engine_cpu_bring(cpu, context, &held);
		call->function(call->event, call->argument);
		call->done = true;
	}
	engine_cpu_unlock(engine, cpu, &held);
}

/* `unplugged`: the host has unplugged the CPU, even if it has not called tally_engine_cpu_down()
 * yet. */
static void call_elsewhere(struct context_call *call, bool unplugged)
{
	struct engine_context *context = call->context;
	uintptr_t state = engine_lock(context->engine, &context->lock);
	if (runs_on(context) < 0 || unplugged) {
		engine_context_update_time(context);
		call->function(call->event, call->argument);
		call->done = true;
	}
	engine_unlock(context->engine, &context->lock, state);
}

void engine_context_call_in(struct engine_context *context, struct engine_event *event,
			    void (*function)(struct engine_event *event, void *argument),
			    void *argument)
{
	const struct tally_engine_host *host = &context->engine->host;
	struct context_call call = { context, event, function, argument, false };
	for (;;) {
		int cpu = runs_on(context);
		if (cpu < 0)
			call_elsewhere(&call, false);
		else if (host->run_on(host->host, (unsigned)cpu, call_there, &call) &&
			 !context->task)
			call_elsewhere(&call, true);
		if (call.done)
			return;
		if (host->relax)
			host->relax(host->host);
	}
}

void engine_context_call(struct engine_event *event,
			 void (*function)(struct engine_event *event, void *argument),
			 void *argument)
{
	const struct tally_engine_host *host = &event->engine->host;
	if (event->context) {
		engine_context_call_in(event->context, event, function, argument);
		return;
	}
	uintptr_t state = host->irq_save(host->host);
	function(event, argument);
	host->irq_restore(host->host, state);
}

/* --- in and out ----------------------------------------------------------- */

struct installation {
	struct engine_context *context;
	struct engine_queue_table table;
};

static void install(struct engine_event *event, void *argument)
{
	struct installation *installation = argument;
	struct engine_context *context = installation->context;
	struct engine_cpu *cpu = engine_context_here(context);
	if (!cpu && !context->task) { /* unplugged since the event was opened */
		event->leader = event;
		return;
	}
	engine_queue_table_place(context, &installation->table);
	event->stamp = context->time;
	__atomic_store_n(&event->context, context, __ATOMIC_RELEASE);
	engine_list_add(&event->context_link, &context->events);
	context->event_count++;
	context->frequency_events += engine_event_flag(event, TALLY_ATTR_FREQ);
	engine_cgroup_look(event, cpu);
	if (cpu && !context->task)
		cpu->cgroup_events += event->has_cgroup;
	if (event->leader != event)
		engine_group_attach(event);
	else {
		engine_group_alone(event);
		engine_queue_insert(event);
	}
	if (!cpu || event->state != ENGINE_EVENT_INACTIVE)
		return;
	if (event->leader->software_only && event->leader->state == ENGINE_EVENT_ACTIVE)
		/* there is always room: the other groups keep running */
		engine_event_in(event, cpu);
	else
		engine_context_reschedule(event->leader, cpu);
}

void engine_context_install(struct engine_context *context, struct engine_event *event)
{
	struct installation installation = { .context = context };
	engine_list_init(&event->group_link);
	engine_list_init(&event->active_link);
	event->on_cpu = -1;
	engine_queue_table_new(context, event, &installation.table);
	engine_context_call_in(context, event, install, &installation);
	engine_queue_table_free(context->engine, &installation.table);
	if (event->context && context->task)
		context->references++;
}

struct removal {
	bool detach, exiting;
};

static void take_out(struct engine_event *event, void *argument)
{
	const struct removal *removal = argument;
	struct engine_context *context = event->context;
	struct engine_cpu *cpu = engine_context_here(context);
	if (cpu && removal->detach)
		/* members that were on stay on, as leaders of their own */
		engine_event_out(event, cpu);
	else if (cpu && event->leader == event)
		engine_group_schedule_out(event, cpu);
	else if (cpu)
		engine_event_out(event, cpu);
	if (removal->exiting)
		engine_event_set_state(event, ENGINE_EVENT_EXIT);
	else if (event->state >= ENGINE_EVENT_INACTIVE)
		engine_event_set_state(event, ENGINE_EVENT_OFF);
	else
		engine_event_update_times(event);
	if (event->leader == event)
		engine_queue_remove(event);
	if (removal->detach)
		engine_group_detach(event);
	engine_list_remove(&event->context_link);
	context->event_count--;
	context->frequency_events -= engine_event_flag(event, TALLY_ATTR_FREQ);
	if (!context->task)
		context->engine->cpus[context->cpu].cgroup_events -= event->has_cgroup;
	if (!context->event_count)
		context->pmus = context->pinned_pmus = context->rotate = 0;
	__atomic_store_n(&event->context, NULL, __ATOMIC_RELEASE);
}

static void leave_group(struct engine_event *leader, void *member)
{
	(void)leader;
	engine_group_detach(member);
}

static void become_single(struct engine_event *member, void *argument)
{
	(void)argument;
	engine_group_release(member);
}

/* For an event whose task has exited, or that an exec removed: it has no context any more, but is
 * still in its group, whose other events may still count. */
static void detach_removed(struct engine_event *event)
{
	if (event->leader != event)
		engine_context_call(event->leader, leave_group, event);
	else
		ENGINE_LIST_EACH(member, &event->siblings, struct engine_event, sibling_link)
			engine_context_call(member, become_single, NULL);
}

void engine_context_remove(struct engine_event *event, bool detach, bool exiting)
{
	struct engine_context *context = event->context;
	struct removal removal = { detach, exiting };
	if (context) {
		engine_context_call_in(context, event, take_out, &removal);
		engine_context_put(context);
	} else if (detach)
		detach_removed(event);
}

/* --- on and off ----------------------------------------------------------- */

static void enable(struct engine_event *event, void *argument)
{
	(void)argument;
	struct engine_context *context = event->context;
	if (!context || (event->state != ENGINE_EVENT_OFF && event->state != ENGINE_EVENT_ERROR))
		return;
	struct engine_cpu *cpu = engine_context_here(context);
	struct engine_event *leader = event->leader;
	engine_event_set_state(event, ENGINE_EVENT_INACTIVE);
	if (!cpu)
		return;
	if (leader == event)
		engine_context_reschedule(leader, cpu);
	else if (leader->state == ENGINE_EVENT_ACTIVE && leader->software_only)
		engine_event_in(event, cpu);
	else if (leader->state == ENGINE_EVENT_ACTIVE)
		/* all of the group with this member, or none of it */
		engine_context_reschedule(leader, cpu);
}

static void disable(struct engine_event *event, void *argument)
{
	(void)argument;
	if (!event->context || event->state < ENGINE_EVENT_INACTIVE)
		return; /* B7: DISABLE does not leave ERROR */
	struct engine_cpu *cpu = engine_context_here(event->context);
	if (cpu && event->leader == event)
		engine_group_schedule_out(event, cpu);
	else if (cpu)
		engine_event_out(event, cpu);
	if (event->state == ENGINE_EVENT_INACTIVE)
		engine_event_set_state(event, ENGINE_EVENT_OFF);
}

static void with_children(struct engine_event *event,
			  void (*function)(struct engine_event *event, void *argument))
{
	engine_context_call(event, function, NULL);
	ENGINE_LIST_EACH(child, &event->children, struct engine_event, child_link)
		engine_context_call(child, function, NULL);
}

void engine_event_enable_alone(struct engine_event *event)
{
	engine_context_call(event, enable, NULL);
}

void engine_event_disable_alone(struct engine_event *event)
{
	engine_context_call(event, disable, NULL);
}

void engine_event_enable(struct engine_event *event)
{
	with_children(event, enable);
}

void engine_event_disable(struct engine_event *event)
{
	with_children(event, disable);
}

void engine_event_disable_here(struct engine_event *event)
{
	struct tally_engine *engine = event->engine;
	struct engine_cpu *cpu = engine_this_cpu(engine);
	struct engine_cpu_held held;
	engine_cpu_lock(engine, cpu, &held);
	/* If it has been scheduled out meanwhile, that has moved it to OFF: group.c. */
	if (__atomic_load_n(&event->on_cpu, __ATOMIC_ACQUIRE) == (int)cpu->number)
		disable(event, NULL);
	engine_cpu_unlock(engine, cpu, &held);
}

/* --- H3 ------------------------------------------------------------------- */

struct sync {
	bool group, elsewhere, done;
	void (*look)(struct engine_event *event, void *argument);
	void *argument;
};

static void sync_one(struct engine_event *event)
{
	engine_event_update_times(event); /* they are final if it has no context */
	if (event->state == ENGINE_EVENT_ACTIVE)
		event->hw.pmu->ops->read(&event->hw);
}

static bool is_active(const struct engine_event *event, bool group)
{
	if (event->state == ENGINE_EVENT_ACTIVE)
		return true;
	if (group)
		ENGINE_LIST_EACH(member, &event->siblings, struct engine_event, sibling_link)
			if (member->state == ENGINE_EVENT_ACTIVE)
				return true;
	return false;
}

static void sync_event(struct engine_event *event, void *argument)
{
	struct sync *sync = argument;
	if (sync->elsewhere && is_active(event, sync->group))
		return;
	sync_one(event);
	if (sync->group)
		ENGINE_LIST_EACH(member, &event->siblings, struct engine_event, sibling_link)
			sync_one(member);
	if (sync->look)
		sync->look(event, sync->argument);
	sync->done = true;
}

/* Brings the values up to date from this CPU, if no PMU must be read for it: so a read of events
 * that don't count now interrupts no other CPU.  Returns true if that was enough. */
static bool sync_from_memory(struct engine_event *event, struct sync *sync)
{
	struct engine_context *context = event->context;
	uintptr_t state = engine_lock(context->engine, &context->lock);
	engine_context_update_time(context);
	sync->elsewhere = true;
	sync_event(event, sync);
	sync->elsewhere = false;
	engine_unlock(context->engine, &context->lock, state);
	return sync->done;
}

void engine_event_sync(struct engine_event *event, bool group,
		       void (*look)(struct engine_event *event, void *argument), void *argument)
{
	struct sync sync = { .group = group, .look = look, .argument = argument };
	if (group)
		event = event->leader;
	if (!event->context || !sync_from_memory(event, &sync))
		engine_context_call(event, sync_event, &sync);
}
