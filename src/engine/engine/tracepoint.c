/* A program's own tracepoints (SPEC part E), and the PMU "tracepoint" that perf events on them
 * have.  The code that tally/tracepoint.h generates makes a hit.  If the tracepoint has listeners,
 * it measures the record, calls tally_trace_begin() for the place to write it, writes it, and
 * passes it to tally_trace_end(): tracepoint_hit.c.
 *
 * The first perf event opened on a tracepoint makes the tracepoint's lists and the scratch, which
 * has room for a record per CPU and level.  Closing the last one frees them, deferred
 * (engine_retire()), since hits may still use them. */
#include "engine/tracepoint_state.h"

/* --- the registered tracepoints ------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static int check_event(struct tally_engine *engine, const struct tally_trace_group *group,
		       size_t which)
{
	const struct tally_trace_event *event = group->events[which];
	if (event->engine)
		return -ENGINE_EBUSY;
	for (size_t i = 0; i < which; i++)
		if (group->events[i] == event)
			return -ENGINE_EEXIST;
	for (const struct tally_trace_event *other = engine->tracepoints->first; other;
	     other = other->next)
		if (same_text(other->group, group->name) && same_text(other->name, event->name))
			return -ENGINE_EEXIST;
	if (tally_trace_format(event, NULL, 0) < 0)
		return -ENGINE_EINVAL;
	return 0;
}

static int register_locked(struct tally_engine *engine, struct tally_trace_group *group)
{
	struct engine_tracepoints *all = engine->tracepoints;
	if (group->count > TRACE_ID_MAX - all->next_id)
		return -ENGINE_ENOSPC;
	for (size_t i = 0; i < group->count; i++) {
		int error = check_event(engine, group, i);
		if (error)
			return error;
	}
	for (size_t i = 0; i < group->count; i++) {
		struct tally_trace_event *event = group->events[i];
		event->id = ++all->next_id;
		event->group = group->name;
		event->raw_for_anybody = group->raw_for_anybody;
		event->next = NULL;
		if (all->last)
			all->last->next = event;
		else
			all->first = event;
		all->last = event;
		__atomic_store_n(&event->engine, engine, __ATOMIC_RELEASE);
	}
	return 0;
}

int tally_trace_register(struct tally_engine *engine, struct tally_trace_group *group)
{
	engine_enter(engine);
	int error = register_locked(engine, group);
	engine_leave(engine);
	return error;
}

/* Takes the tracepoint off the list.  It has no probes any more. */
static void forget(struct tally_engine *engine, struct tally_trace_event *event)
{
	struct engine_tracepoints *all = engine->tracepoints;
	struct tally_trace_event **at = &all->first, *last = NULL;
	for (; *at != event; at = &(*at)->next)
		last = *at;
	*at = event->next;
	if (all->last == event)
		all->last = last;
	event->next = NULL;
	event->id = 0;
	__atomic_store_n(&event->engine, NULL, __ATOMIC_RELEASE);
}

int tally_trace_unregister(struct tally_engine *engine, struct tally_trace_group *group)
{
	int error = 0;
	engine_enter(engine);
	for (size_t i = 0; i < group->count; i++) {
		if (group->events[i]->engine != engine)
			error = -ENGINE_ENOENT;
		else if (group->events[i]->enabled || group->events[i]->perf_events)
			error = -ENGINE_EBUSY;
		if (error)
			break;
	}
	for (size_t i = 0; !error && i < group->count; i++)
		forget(engine, group->events[i]);
	engine_leave(engine);
	return error;
}

struct tally_trace_event *tally_trace_next(struct tally_engine *engine,
					   const struct tally_trace_event *event)
{
	if (event)
		return event->next;
	return engine->tracepoints->first;
}

struct tally_trace_event *tally_trace_find(struct tally_engine *engine, uint64_t id)
{
	for (struct tally_trace_event *event = engine->tracepoints->first; event;
	     event = event->next)
		if (event->id == id)
			return event;
	return NULL;
}

/* --- the first and the last perf event of a tracepoint -------------------- */

static void free_lists(struct tally_engine *engine, struct engine_retired *retired)
{
	struct tally_trace_lists *lists = ENGINE_CONTAINER(retired, struct tally_trace_lists,
							   retired);
	engine_release(engine, lists, lists->size);
}

static int first_listener(struct tally_trace_event *event)
{
	struct tally_engine *engine = event->engine;
	struct engine_tracepoints *all = engine->tracepoints;
	size_t size = sizeof(struct tally_trace_lists) +
		      engine->host.cpus * sizeof(struct engine_hits);
	struct tally_trace_lists *lists = engine_allocate(engine, size);
	if (!lists)
		return -ENGINE_ENOMEM;
	lists->size = size;
	int error = trace_scratch_ref(engine, &all->records, &all->record_users,
				      TALLY_TRACE_SIZE_MAX);
	if (error)
		goto free_the_lists;
	__atomic_store_n(&event->lists, lists, __ATOMIC_RELEASE);
	error = trace_operate(event, TALLY_TRACE_PERF_REGISTER, NULL);
	if (error)
		goto put_scratch;
	return 0;
put_scratch:
	__atomic_store_n(&event->lists, NULL, __ATOMIC_RELEASE);
	trace_scratch_unref(engine, &all->records, &all->record_users);
free_the_lists:
	engine_retire(engine, &lists->retired, free_lists);
	return error;
}

static void last_listener(struct tally_trace_event *event)
{
	struct tally_engine *engine = event->engine;
	struct engine_tracepoints *all = engine->tracepoints;
	struct tally_trace_lists *lists = event->lists;
	trace_operate(event, TALLY_TRACE_PERF_UNREGISTER, NULL);
	__atomic_store_n(&event->lists, NULL, __ATOMIC_RELEASE);
	engine_retire(engine, &lists->retired, free_lists);
	trace_scratch_unref(engine, &all->records, &all->record_users);
}

/* --- the PMU -------------------------------------------------------------- */

/* RAW data reveal what the traced code works on; a hit alone reveals little.  An inherited event
 * was permitted with its original. */
static int check_permission(const struct engine_event *event,
			    const struct tally_trace_event *tracepoint)
{
	if (event->parent || !(event->attr.sample_type & TALLY_SAMPLE_RAW) ||
	    (tracepoint->raw_for_anybody && event->task))
		return 0;
	if (event->engine->settings.paranoid > -1 &&
	    !engine_capable(event->engine, TALLY_CAPABLE_PERFMON))
		return -ENGINE_EPERM;
	return 0;
}

/* Sets counts_only, which together with perf_alone only allows a shortcut: a hit that still takes
 * the shortcut skips listeners that do more than count. */
void trace_event_classify(struct engine_event *event)
{
	const struct engine_event *original = event->parent ? event->parent : event;
	struct tally_trace_event *tracepoint = event->tracepoint;
	bool counts = !event->attr.sample_period && !original->filter &&
		      !(engine_event_flag(event, TALLY_ATTR_EXCLUDE_KERNEL) &&
			event->engine->host.trace_regs);
	if (counts == event->counts_only)
		return;
	__atomic_store_n(&event->counts_only, counts, __ATOMIC_RELEASE);
	tracepoint->perf_more += counts ? (uint32_t)-1 : 1;
	trace_update_alone(tracepoint);
}

static int open_event(struct engine_event *event, struct tally_trace_event *tracepoint)
{
	int error = 0;
	if (!tracepoint->perf_events)
		error = first_listener(tracepoint);
	if (error)
		return error;
	tracepoint->perf_events++;
	error = trace_operate(tracepoint, TALLY_TRACE_PERF_OPEN, &event->hw);
	if (error) {
		if (!--tracepoint->perf_events)
			last_listener(tracepoint);
		return error;
	}
	event->tracepoint = tracepoint;
	tracepoint->perf_more++;
	trace_update_alone(tracepoint);
	trace_event_classify(event);
	event->hw.state = 0; /* a task may receive a hit before it ever runs: see hit_task() */
	if (event->task)
		engine_hits_add(&tracepoint->lists->of_tasks, &event->of_task_link);
	return 0;
}

static int tracepoint_event_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *hw)
{
	struct engine_event *event = engine_event_of(hw);
	struct tally_trace_event *tracepoint;
	(void)pmu;
	if (event->attr.type != TALLY_TYPE_TRACEPOINT)
		return -ENGINE_ENOENT;
	if (event->attr.sample_type & TALLY_SAMPLE_BRANCH_STACK)
		return -ENGINE_EOPNOTSUPP;
	tracepoint = tally_trace_find(event->engine, event->attr.config);
	if (!tracepoint)
		return -ENGINE_EINVAL;
	int error = check_permission(event, tracepoint);
	if (error)
		return error;
	return open_event(event, tracepoint);
}

static void tracepoint_event_release(struct tally_pmu_event *hw)
{
	struct engine_event *event = engine_event_of(hw);
	struct tally_trace_event *tracepoint = event->tracepoint;
	if (!tracepoint)
		return;
	engine_hits_remove(&event->of_task_link);
	trace_filter_free(event);
	trace_operate(tracepoint, TALLY_TRACE_PERF_CLOSE, hw);
	event->tracepoint = NULL;
	tracepoint->perf_more -= !event->counts_only;
	--tracepoint->perf_events;
	trace_update_alone(tracepoint);
	if (!tracepoint->perf_events)
		last_listener(tracepoint);
}

static int tracepoint_add(struct tally_pmu_event *hw, unsigned flags)
{
	struct engine_event *event = engine_event_of(hw);
	struct tally_trace_event *tracepoint = event->tracepoint;
	if (trace_operate(tracepoint, TALLY_TRACE_PERF_ADD, hw))
		return 0;
	return engine_swevent_add(event, flags,
				  &tracepoint->lists->cpus[engine_this_cpu(event->engine)->number]);
}

static void tracepoint_del(struct tally_pmu_event *hw, unsigned flags)
{
	if (!trace_operate(engine_event_of(hw)->tracepoint, TALLY_TRACE_PERF_DEL, hw))
		engine_swevent_del(hw, flags);
}

static int tracepoint_set_filter(struct tally_pmu_event *hw, const char *text)
{
	return engine_tracepoint_set_filter(engine_event_of(hw), text);
}

static const struct tally_engine_pmu_ops tracepoint_ops = {
	.event_init = tracepoint_event_init,
	.event_release = tracepoint_event_release,
	.add = tracepoint_add,
	.del = tracepoint_del,
	.start = engine_swevent_start,
	.stop = engine_swevent_stop,
	.read = engine_swevent_read,
	.set_filter = tracepoint_set_filter,
};

int engine_tracepoint_register(struct tally_engine *engine)
{
	engine->tracepoints = engine_allocate(engine, sizeof(*engine->tracepoints));
	if (!engine->tracepoints)
		return -ENGINE_ENOMEM;
	engine->tracepoint_pmu = (struct tally_engine_pmu){
		.name = "tracepoint",
		.type = TALLY_TYPE_TRACEPOINT,
		.scope = TALLY_SCOPE_SOFTWARE,
		.ops = &tracepoint_ops,
	};
	return tally_engine_pmu_register(engine, &engine->tracepoint_pmu);
}

void engine_tracepoint_unregister(struct tally_engine *engine)
{
	struct engine_tracepoints *all = engine->tracepoints;
	if (!all)
		return;
	while (all->first) {
		struct tally_trace_event *event = all->first;
		trace_probes_free(event);
		forget(engine, event);
	}
	engine_release(engine, all, sizeof(*all));
	engine->tracepoints = NULL;
}
