/* Probe lists: the functions that a hit of a tracepoint calls, each with data of its own. */
#include "engine/tracepoint_state.h"

static size_t probes_size(unsigned count)
{
	return sizeof(struct tally_trace_probes) + (count + 1) * sizeof(struct tally_trace_probe);
}

static struct tally_trace_probes *probes_new(struct tally_engine *engine, unsigned count)
{
	struct tally_trace_probes *probes = engine_allocate(engine, probes_size(count));
	if (probes)
		probes->count = count;
	return probes;
}

static void probes_release(struct tally_engine *engine, struct engine_retired *retired)
{
	struct tally_trace_probes *probes = ENGINE_CONTAINER(retired, struct tally_trace_probes,
							     retired);
	engine_release(engine, probes, probes_size(probes->count));
}

void trace_update_alone(struct tally_trace_event *event)
{
	const struct tally_trace_probes *probes = event->probes;
	bool alone = probes && probes->count == 1 &&
		     probes->list[0].function == event->of->perf_probe &&
		     probes->list[0].data == event;
	uint32_t kind = 0;
	if (alone && event->perf_events && !event->perf_more)
		kind = TALLY_TRACE_COUNTED;
	else if (alone)
		kind = TALLY_TRACE_ALONE;
	__atomic_store_n(&event->perf_alone, kind, __ATOMIC_RELEASE);
}

/* Publishes the new list before the flag that says that there is one, and never lets hits take a
 * list for perf's alone when it isn't. */
static void publish(struct tally_trace_event *event, struct tally_trace_probes *probes)
{
	struct tally_trace_probes *old = event->probes;
	unsigned count = probes ? probes->count : 0;
	__atomic_store_n(&event->perf_alone, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&event->probes, probes, __ATOMIC_RELEASE);
	trace_update_alone(event);
	__atomic_store_n(&event->enabled, count, __ATOMIC_RELEASE);
	if (old)
		engine_retire(event->engine, &old->retired, probes_release);
}

static int find_probe(const struct tally_trace_event *event, tally_trace_function *function,
		      const void *data)
{
	const struct tally_trace_probes *probes = event->probes;
	for (unsigned i = 0; probes && i < probes->count; i++)
		if (probes->list[i].function == function && probes->list[i].data == data)
			return (int)i;
	return -1;
}

static int add_probe(struct tally_trace_event *event, tally_trace_function *function, void *data)
{
	struct tally_engine *engine = event->engine;
	struct tally_trace_probes *old = event->probes, *reserve = NULL;
	unsigned count = old ? old->count : 0;
	if (find_probe(event, function, data) >= 0)
		return -ENGINE_EEXIST;
	struct tally_trace_probes *probes = probes_new(engine, count + 1);
	if (probes && count)
		reserve = probes_new(engine, count);
	if (!probes || (count && !reserve)) {
		engine_release(engine, probes, probes_size(count + 1));
		return -ENGINE_ENOMEM;
	}
	for (unsigned i = 0; i < count; i++)
		probes->list[i] = old->list[i];
	probes->list[count] = (struct tally_trace_probe){ function, data };
	probes->reserve = reserve;
	if (reserve)
		reserve->reserve = old->reserve;
	publish(event, probes);
	return 0;
}

static int remove_probe(struct tally_trace_event *event, tally_trace_function *function,
			const void *data)
{
	struct tally_trace_probes *old = event->probes;
	int at = find_probe(event, function, data);
	if (at < 0)
		return -ENGINE_ENOENT;
	struct tally_trace_probes *probes = old->reserve;
	for (unsigned i = 0, to = 0; i < old->count; i++)
		if ((int)i != at)
			probes->list[to++] = old->list[i];
	publish(event, probes);
	return 0;
}

int tally_trace_probe_add(struct tally_trace_event *event, tally_trace_function *function,
			  void *data)
{
	struct tally_engine *engine = event->engine;
	if (!engine)
		return -ENGINE_ENODEV;
	engine_enter(engine);
	int error = add_probe(event, function, data);
	engine_leave(engine);
	return error;
}

int tally_trace_probe_remove(struct tally_trace_event *event, tally_trace_function *function,
			     void *data)
{
	struct tally_engine *engine = event->engine;
	if (!engine)
		return -ENGINE_ENODEV;
	engine_enter(engine);
	int error = remove_probe(event, function, data);
	engine_leave(engine);
	return error;
}

int tally_trace_operate(struct tally_trace_event *event, enum tally_trace_operation operation,
			void *data)
{
	switch (operation) {
	case TALLY_TRACE_REGISTER:
		return add_probe(event, event->of->text_probe, data);
	case TALLY_TRACE_UNREGISTER:
		return remove_probe(event, event->of->text_probe, data);
	case TALLY_TRACE_PERF_REGISTER:
		return add_probe(event, event->of->perf_probe, event);
	case TALLY_TRACE_PERF_UNREGISTER:
		return remove_probe(event, event->of->perf_probe, event);
	case TALLY_TRACE_PERF_OPEN:
	case TALLY_TRACE_PERF_CLOSE:
	case TALLY_TRACE_PERF_ADD:
	case TALLY_TRACE_PERF_DEL:
		break;
	}
	return 0;
}

int trace_operate(struct tally_trace_event *event, enum tally_trace_operation operation, void *data)
{
	if (event->of->operate)
		return event->of->operate(event, operation, data);
	return tally_trace_operate(event, operation, data);
}

void trace_probes_free(struct tally_trace_event *event)
{
	event->enabled = 0;
	event->perf_alone = 0;
	for (struct tally_trace_probes *probes = event->probes, *next; probes; probes = next) {
		next = probes->reserve;
		engine_release(event->engine, probes, probes_size(probes->count));
	}
	event->probes = NULL;
}

/* --- where an event hits -------------------------------------------------- */

const struct tally_trace_probe *tally_trace_walk(struct tally_trace_event *event, void **mark)
{
	struct tally_engine *engine = event->engine;
	*mark = NULL;
	if (!engine) /* unregistered since `enabled` was read */
		return NULL;
	struct engine_cpu *cpu = engine_this_cpu(engine);
	cpu->walks++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*mark = cpu;
	const struct tally_trace_probes *probes = __atomic_load_n(&event->probes, __ATOMIC_ACQUIRE);
	if (probes)
		return probes->list;
	return NULL;
}

void tally_trace_walked(void *mark)
{
	struct engine_cpu *cpu = mark;
	if (!cpu)
		return;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	cpu->walks--;
}

struct quiet_walks {
	struct tally_engine *engine;
	bool quiet;
};

/* Runs on the CPU itself, so in its program order: see engine.c. */
static void ask_walks(void *argument)
{
	struct quiet_walks *question = argument;
	const struct engine_cpu *cpu = engine_this_cpu(question->engine);
	question->quiet = !__atomic_load_n(&cpu->walks, __ATOMIC_RELAXED);
}

bool tally_trace_quiet(struct tally_engine *engine)
{
	bool quiet = true;
	engine_enter(engine);
	for (unsigned cpu = 0; quiet && cpu < engine->host.cpus; cpu++) {
		struct quiet_walks question = { engine, true };
		engine->host.run_on(engine->host.host, cpu, ask_walks, &question);
		quiet = question.quiet;
	}
	engine_leave(engine);
	return quiet;
}
