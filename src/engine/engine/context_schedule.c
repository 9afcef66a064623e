/* Decides which groups are on a CPU, at switches, ticks, openings and enablings, and when CPUs come
 * and go.
 *
 * Groups are tried in this order: CPU-pinned, task-pinned, CPU-flexible, task-flexible; each list
 * in its own order.  Once a flexible group of a PMU finds no room, the later ones of that PMU in
 * the list are not tried: otherwise small groups would starve large ones.  A new group may push out
 * groups that rank behind it, but only those of its PMUs; events of other PMUs and software events
 * stay on undisturbed.  A pinned group without room goes to ERROR (B7).  A flexible group without
 * room makes its PMU rotate at each tick (B6): the first group of the PMU becomes the last, in the
 * CPU's context and in the task's, and both are tried anew.
 *
 * All of this runs on the CPU that it concerns, with interrupts off; context.c says why that is
 * enough. */
#include "engine/engine_schedule.h"

enum { PINNED = 1, FLEXIBLE = 2 };
enum { POLL_CODE_ERR = 4 };

void engine_cpu_lock(struct tally_engine *engine, struct engine_cpu *cpu,
		     struct engine_cpu_held *held)
{
	held->task = cpu->task_context;
	held->outer = engine_lock(engine, &cpu->context.lock);
	engine_context_update_time(&cpu->context);
	if (!held->task)
		return;
	held->inner = engine_lock(engine, &held->task->lock);
	engine_context_update_time(held->task);
}

void engine_cpu_unlock(struct tally_engine *engine, struct engine_cpu *cpu,
		       struct engine_cpu_held *held)
{
	if (held->task)
		engine_unlock(engine, &held->task->lock, held->inner);
	engine_unlock(engine, &cpu->context.lock, held->outer);
}

void engine_cpu_bring(struct engine_cpu *cpu, struct engine_context *context,
		      struct engine_cpu_held *held)
{
	if (held->task)
		return;
	uintptr_t inner = engine_lock(context->engine, &context->lock);
	if (context->dead) {
		engine_unlock(context->engine, &context->lock, inner);
		return;
	}
	held->task = context;
	held->inner = inner;
	engine_context_enter(context, cpu);
}

/* --- out and in ----------------------------------------------------------- */

static void list_out(struct engine_list *active, struct engine_cpu *cpu, uint64_t pmus)
{
	ENGINE_LIST_EACH(leader, active, struct engine_event, active_link)
		if (leader->pmus & pmus)
			engine_group_schedule_out(leader, cpu);
}

static void schedule_out(struct engine_context *context, struct engine_cpu *cpu, unsigned kinds,
			 uint64_t pmus)
{
	if (!context)
		return;
	if (kinds & FLEXIBLE) {
		list_out(&context->active_flexible, cpu, pmus);
		context->rotate &= ~pmus;
	}
	if (kinds & PINNED)
		list_out(&context->active_pinned, cpu, pmus);
}

/* `full`: PMUs on which an earlier group of the list has found no room. */
static bool may_go_on(const struct engine_event *leader, const struct engine_cpu *cpu,
		      uint64_t full)
{
	if (leader->software_only)
		return true;
	if (leader->pmus & (cpu->exclusive | full))
		return false;
	if (engine_event_flag(leader, TALLY_ATTR_EXCLUSIVE))
		for (uint64_t set = leader->pmus; set; set &= set - 1)
			if (cpu->active[__builtin_ctzll(set)])
				return false;
	return true;
}

static void no_room(struct engine_event *leader)
{
	if (!engine_event_flag(leader, TALLY_ATTR_PINNED)) {
		leader->context->rotate |= leader->pmus;
		return;
	}
	engine_event_set_state(leader, ENGINE_EVENT_ERROR);
	leader->pending_code = POLL_CODE_ERR;
	/* poll gives POLLHUP from now on */
	engine_event_pend(leader, ENGINE_PENDING_WAKEUP | ENGINE_PENDING_SIGNAL);
}

static void list_in(struct engine_context *context, struct engine_cpu *cpu, bool pinned,
		    uint64_t pmus)
{
	struct engine_queue_walk walk;
	engine_queue_walk_begin(&walk, context, cpu->number, pinned);
	uint64_t full = 0;
	for (struct engine_event *leader; (leader = engine_queue_walk_next(&walk));) {
		if (leader->state != ENGINE_EVENT_INACTIVE || !(leader->pmus & pmus) ||
		    !engine_event_fits(leader, cpu))
			continue;
		if (may_go_on(leader, cpu, full) && !engine_group_schedule_in(leader, cpu))
			continue;
		full |= leader->pmus;
		no_room(leader);
	}
}

static void schedule_in(struct engine_context *context, struct engine_cpu *cpu, unsigned kinds,
			uint64_t pmus)
{
	if (!context)
		return;
	if (kinds & PINNED)
		list_in(context, cpu, true, pmus);
	if (kinds & FLEXIBLE)
		list_in(context, cpu, false, pmus);
}

static void schedule_all_in(struct engine_cpu *cpu, uint64_t pmus)
{
	schedule_in(&cpu->context, cpu, PINNED, pmus);
	schedule_in(cpu->task_context, cpu, PINNED, pmus);
	schedule_in(&cpu->context, cpu, FLEXIBLE, pmus);
	schedule_in(cpu->task_context, cpu, FLEXIBLE, pmus);
}

static uint64_t batch_begin(struct tally_engine *engine, struct engine_cpu *cpu, uint64_t pmus)
{
	uint64_t both = (cpu->context.pmus | (cpu->task_context ? cpu->task_context->pmus : 0)) &
			pmus;
	engine_pmus_disable(engine, both);
	return both;
}

void engine_context_reschedule(struct engine_event *leader, struct engine_cpu *cpu)
{
	struct tally_engine *engine = leader->engine;
	if (leader->state < ENGINE_EVENT_INACTIVE || !engine_event_fits(leader, cpu))
		return;
	uint64_t pmus = leader->pmus;
	unsigned kinds = FLEXIBLE;
	if (engine_event_flag(leader, TALLY_ATTR_PINNED))
		kinds |= PINNED;
	uint64_t batch = batch_begin(engine, cpu, pmus);
	if (leader->software_only) {
		/* There is always room, so no other group is taken off.  It is taken off itself, so
		 * that new members get on. */
		engine_group_schedule_out(leader, cpu);
		if (leader->state == ENGINE_EVENT_INACTIVE && engine_group_schedule_in(leader, cpu))
			no_room(leader);
	} else {
		schedule_out(cpu->task_context, cpu, kinds, pmus);
		if (!leader->context->task)
			schedule_out(&cpu->context, cpu, kinds, pmus);
		else if (kinds & PINNED)
			schedule_out(&cpu->context, cpu, FLEXIBLE, pmus);
		schedule_all_in(cpu, pmus);
	}
	engine_pmus_enable(engine, batch);
}

void engine_context_reschedule_all(struct engine_context *context, struct engine_cpu *cpu)
{
	struct tally_engine *engine = context->engine;
	uint64_t batch = batch_begin(engine, cpu, ENGINE_PMUS_ALL);
	schedule_out(context, cpu, PINNED | FLEXIBLE, ENGINE_PMUS_ALL);
	if (context->task)
		schedule_out(&cpu->context, cpu, FLEXIBLE,
			     context->pinned_pmus & ~ENGINE_PMU_SOFTWARE);
	schedule_all_in(cpu, ENGINE_PMUS_ALL);
	engine_pmus_enable(engine, batch);
}

/* --- switches ------------------------------------------------------------- */

void engine_context_enter(struct engine_context *context, struct engine_cpu *cpu)
{
	struct tally_engine *engine = context->engine;
	engine_store64(&context->offset, engine_now(engine) - engine_load64(&context->time));
	__atomic_store_n(&context->running, true, __ATOMIC_RELEASE);
	__atomic_store_n(&context->cpu, (int)cpu->number, __ATOMIC_RELEASE);
	cpu->task_context = context;
	if (!context->event_count)
		return;
	uint64_t batch = batch_begin(engine, cpu, ENGINE_PMUS_ALL);
	uint64_t yields = context->pinned_pmus & ~ENGINE_PMU_SOFTWARE;
	if (yields)
		schedule_out(&cpu->context, cpu, FLEXIBLE, yields);
	schedule_in(context, cpu, PINNED, ENGINE_PMUS_ALL);
	if (yields)
		schedule_in(&cpu->context, cpu, FLEXIBLE, yields);
	schedule_in(context, cpu, FLEXIBLE, ENGINE_PMUS_ALL);
	engine_pmus_enable(engine, batch);
}

void engine_context_leave(struct engine_context *context, struct engine_cpu *cpu)
{
	struct tally_engine *engine = context->engine;
	uint64_t batch = batch_begin(engine, cpu, ENGINE_PMUS_ALL);
	schedule_out(context, cpu, PINNED | FLEXIBLE, ENGINE_PMUS_ALL);
	engine_pmus_enable(engine, batch);
	__atomic_store_n(&context->running, false, __ATOMIC_RELEASE);
	__atomic_store_n(&context->cpu, -1, __ATOMIC_RELEASE);
	cpu->task_context = NULL;
}

static bool in_cgroup(const struct tally_engine_host *host, struct tally_engine_task *task,
		      uint64_t cgroup)
{
	return task && host->in_cgroup && host->in_cgroup(host->host, task, cgroup);
}

void engine_cgroup_look(struct engine_event *event, const struct engine_cpu *cpu)
{
	const struct tally_engine_host *host = &event->engine->host;
	if (event->has_cgroup && cpu)
		event->cgroup_away = !in_cgroup(host, host->current_task(host->host),
						event->cgroup);
}

/* After a switch of tasks: groups of cgroups that the current task is not in go off, those of its
 * own come on. */
static void switch_cgroups(struct tally_engine *engine, struct engine_cpu *cpu)
{
	struct engine_context *context = &cpu->context;
	const struct tally_engine_host *host = &engine->host;
	struct tally_engine_task *task = host->current_task(host->host);
	struct engine_cpu_held held;
	engine_cpu_lock(engine, cpu, &held);
	uint64_t batch = batch_begin(engine, cpu, ENGINE_PMUS_ALL);
	bool came = false;
	ENGINE_LIST_EACH(event, &context->events, struct engine_event, context_link) {
		if (!event->has_cgroup)
			continue;
		bool away = !in_cgroup(host, task, event->cgroup);
		if (away == event->cgroup_away)
			continue;
		if (away)
			engine_group_schedule_out(event->leader, cpu);
		engine_event_update_times(event);
		event->cgroup_away = away;
		came |= !away;
	}
	if (came)
		schedule_in(context, cpu, PINNED | FLEXIBLE, ENGINE_PMUS_ALL);
	engine_pmus_enable(engine, batch);
	engine_cpu_unlock(engine, cpu, &held);
}

static bool is_heard(const struct engine_cpu *cpu, enum tally_sw event)
{
	return __atomic_load_n(&cpu->software[event].first, __ATOMIC_RELAXED) != NULL;
}

static void count_switch(struct tally_engine *engine, struct engine_cpu *cpu,
			 struct tally_engine_task *previous, struct tally_engine_task *next)
{
	const struct tally_engine_host *host = &engine->host;
	if (is_heard(cpu, TALLY_SW_CONTEXT_SWITCHES))
		tally_engine_software(engine, TALLY_SW_CONTEXT_SWITCHES, 1, NULL, 0);
	if (!is_heard(cpu, TALLY_SW_CGROUP_SWITCHES) || !host->cgroup)
		return;
	/* The idle task is in the root cgroup, whose id is not known here: 0. */
	uint64_t from = previous ? host->cgroup(host->host, previous) : 0;
	if (from != (next ? host->cgroup(host->host, next) : 0))
		tally_engine_software(engine, TALLY_SW_CGROUP_SWITCHES, 1, NULL, 0);
}

void tally_engine_switch_out(struct tally_engine *engine, struct tally_engine_task *previous,
			     struct tally_engine_task *next, bool preempted)
{
	struct engine_cpu *cpu = engine_this_cpu(engine);
	count_switch(engine, cpu, previous, next);
	if (engine->wanted.switches)
		engine_output_switch(engine, previous, next, true, preempted);
	struct engine_context *context = cpu->task_context;
	uint64_t pmus = cpu->context.pmus | (context ? context->pmus : 0);
	if (previous && pmus)
		engine_pmus_switched(engine, pmus, previous, false);
	if (context) {
		uintptr_t state = engine_lock(engine, &context->lock);
		engine_context_update_time(context);
		engine_context_leave(context, cpu);
		engine_unlock(engine, &context->lock, state);
	}
	if (previous)
		__atomic_store_n(&previous->cpu, -1, __ATOMIC_RELEASE);
}

void tally_engine_switch_in(struct tally_engine *engine, struct tally_engine_task *previous,
			    struct tally_engine_task *next)
{
	struct engine_cpu *cpu = engine_this_cpu(engine);
	struct engine_context *context = NULL;
	if (next) {
		/* Pairs with engine_context_find() and runs_on(): either the code that makes a
		 * context for a task sees that the task runs, or this sees the context. */
		__atomic_store_n(&next->cpu, (int)cpu->number, __ATOMIC_SEQ_CST);
		context = __atomic_load_n(&next->context, __ATOMIC_SEQ_CST);
	}
	if (cpu->cgroup_events)
		switch_cgroups(engine, cpu);
	if (context) {
		struct engine_cpu_held held;
		engine_cpu_lock(engine, cpu, &held);
		engine_cpu_bring(cpu, context, &held);
		engine_cpu_unlock(engine, cpu, &held);
	}
	uint64_t pmus = cpu->context.pmus | (context ? context->pmus : 0);
	if (next && pmus)
		engine_pmus_switched(engine, pmus, next, true);
	if (next && next->migrated) {
		next->migrated = false;
		if (is_heard(cpu, TALLY_SW_CPU_MIGRATIONS))
			tally_engine_software(engine, TALLY_SW_CPU_MIGRATIONS, 1, NULL, 0);
	}
	if (engine->wanted.switches)
		engine_output_switch(engine, previous, next, false, false);
}

void tally_engine_migrate(struct tally_engine_task *task, unsigned to_cpu)
{
	(void)to_cpu; /* counted on the CPU where it runs next */
	task->migrated = true;
}

/* --- the tick ------------------------------------------------------------- */

/* Returns the group of the PMU whose turn is over: the first that is on, or, if none is on, the
 * first that waits. */
static struct engine_event *first_of(struct engine_context *context, struct engine_cpu *cpu,
				     uint64_t pmu)
{
	ENGINE_LIST_EACH(leader, &context->active_flexible, struct engine_event, active_link)
		if (leader->pmus & pmu)
			return leader;
	struct engine_queue_walk walk;
	engine_queue_walk_begin(&walk, context, cpu->number, false);
	for (struct engine_event *leader; (leader = engine_queue_walk_next(&walk));)
		if (leader->pmus & pmu && leader->state >= ENGINE_EVENT_INACTIVE &&
		    engine_event_fits(leader, cpu))
			return leader;
	return NULL;
}

static struct engine_event *take_turn(struct engine_context *context, struct engine_cpu *cpu,
				      uint64_t pmu)
{
	if (!context || !(context->rotate & pmu))
		return NULL;
	context->rotate &= ~pmu; /* set again if there still is no room */
	return first_of(context, cpu, pmu);
}

static void rotate(struct engine_cpu *cpu, uint64_t pmu)
{
	struct engine_context *task = cpu->task_context;
	struct engine_event *of_cpu = take_turn(&cpu->context, cpu, pmu),
			    *of_task = take_turn(task, cpu, pmu);
	if (!of_cpu && !of_task)
		return;
	schedule_out(task, cpu, FLEXIBLE, pmu);
	if (of_task)
		engine_queue_rotate(of_task);
	if (of_cpu) {
		schedule_out(&cpu->context, cpu, FLEXIBLE, pmu);
		engine_queue_rotate(of_cpu);
		schedule_in(&cpu->context, cpu, FLEXIBLE, pmu);
	}
	schedule_in(task, cpu, FLEXIBLE, pmu);
}

void tally_engine_tick(struct tally_engine *engine, const struct tally_engine_regs *regs)
{
	struct engine_cpu *cpu = engine_this_cpu(engine);
	(void)regs;
	cpu->tick++;
	struct engine_cpu_held held;
	engine_cpu_lock(engine, cpu, &held);
	engine_context_tick(&cpu->context, cpu);
	if (cpu->task_context)
		engine_context_tick(cpu->task_context, cpu);
	uint64_t pmus = cpu->context.rotate | (cpu->task_context ? cpu->task_context->rotate : 0);
	if (pmus) {
		uint64_t batch = batch_begin(engine, cpu, pmus);
		for (; pmus; pmus &= pmus - 1)
			rotate(cpu, pmus & -pmus);
		engine_pmus_enable(engine, batch);
	}
	engine_cpu_unlock(engine, cpu, &held);
}

/* --- CPUs that come and go ------------------------------------------------ */

void tally_engine_cpu_up(struct tally_engine *engine, unsigned cpu)
{
	__atomic_store_n(&engine->cpus[cpu].up, true, __ATOMIC_RELEASE);
}

void tally_engine_cpu_down(struct tally_engine *engine, unsigned number)
{
	struct engine_cpu *cpu = &engine->cpus[number];
	struct engine_cpu_held held;
	engine_cpu_lock(engine, cpu, &held);
	uint64_t batch = batch_begin(engine, cpu, ENGINE_PMUS_ALL);
	schedule_out(&cpu->context, cpu, PINNED | FLEXIBLE, ENGINE_PMUS_ALL);
	engine_pmus_enable(engine, batch);
	ENGINE_LIST_EACH(event, &cpu->context.events, struct engine_event, context_link) {
		event->stranded = true;
		if (event->state >= ENGINE_EVENT_INACTIVE)
			engine_event_set_state(event, ENGINE_EVENT_OFF);
	}
	__atomic_store_n(&cpu->up, false, __ATOMIC_RELEASE);
	engine_cpu_unlock(engine, cpu, &held);
	/* Events still on this CPU's pending list can't go on another list, and their work would
	 * wait until the CPU is back. */
	tally_engine_run_pending(engine);
}
