/* Text listeners, which get each hit as a line, and the scratch that hits of all kinds write their
 * records to. */
#include "engine/tracepoint_state.h"

/* --- scratch -------------------------------------------------------------- */

static void free_scratch(struct tally_engine *engine, struct engine_retired *retired)
{
	struct trace_scratch *scratch = ENGINE_CONTAINER(retired, struct trace_scratch, retired);
	for (unsigned level = 0; level < TALLY_LEVELS; level++)
		engine_release(engine, scratch->levels[level], scratch->each * engine->host.cpus);
	engine_release(engine, scratch, sizeof(*scratch));
}

int trace_scratch_ref(struct tally_engine *engine, struct trace_scratch **at, unsigned *users,
		      size_t each)
{
	if (*users) {
		++*users;
		return 0;
	}
	struct trace_scratch *scratch = engine_allocate(engine, sizeof(*scratch));
	if (!scratch)
		return -ENGINE_ENOMEM;
	scratch->each = each;
	for (unsigned level = 0; level < TALLY_LEVELS; level++) {
		scratch->levels[level] = engine_allocate(engine, each * engine->host.cpus);
		if (!scratch->levels[level]) {
			free_scratch(engine, &scratch->retired);
			return -ENGINE_ENOMEM;
		}
	}
	__atomic_store_n(at, scratch, __ATOMIC_RELEASE);
	*users = 1;
	return 0;
}

void trace_scratch_unref(struct tally_engine *engine, struct trace_scratch **at, unsigned *users)
{
	struct trace_scratch *scratch = *at;
	if (--*users)
		return;
	__atomic_store_n(at, NULL, __ATOMIC_RELEASE);
	engine_retire(engine, &scratch->retired, free_scratch);
}

/* --- listeners ------------------------------------------------------------ */

void trace_listener_deliver(const struct tally_trace_listener *listener,
			    const struct tally_trace_hit *hit, const struct engine_cpu *cpu)
{
	const struct tally_trace_class *of = listener->event->of;
	const struct trace_scratch *lines =
		__atomic_load_n(&listener->event->engine->tracepoints->lines, __ATOMIC_ACQUIRE);
	if (!lines)
		return;
	struct tally_trace_text text = {
		.bytes = (char *)trace_scratch_of(lines, cpu->number, hit->level),
		.size = lines->each,
		.record = hit->record,
		.record_size = hit->size,
		.of = of,
	};
	of->text(&text, hit->record);
	text.bytes[text.length] = '\0';
	const struct tally_trace_line line = {
		.event = listener->event, .text = text.bytes, .length = text.length,
		.record = hit->record, .record_size = hit->size, .cpu = cpu->number,
	};
	listener->write(listener->data, &line);
}

static void free_listener(struct tally_engine *engine, struct engine_retired *retired)
{
	struct tally_trace_listener *listener = ENGINE_CONTAINER(
		retired, struct tally_trace_listener, retired);
	engine_release(engine, listener, sizeof(*listener));
}

static int listen_locked(struct tally_trace_event *event, tally_trace_write *write, void *data,
			 struct tally_trace_listener **out)
{
	struct tally_engine *engine = event->engine;
	struct engine_tracepoints *all = engine->tracepoints;
	struct tally_trace_listener *listener = engine_allocate(engine, sizeof(*listener));
	if (!listener)
		return -ENGINE_ENOMEM;
	listener->event = event;
	listener->write = write;
	listener->data = data;
	int error = trace_scratch_ref(engine, &all->records, &all->record_users,
				      TALLY_TRACE_SIZE_MAX);
	if (error)
		goto free_it;
	error = trace_scratch_ref(engine, &all->lines, &all->line_users, TALLY_TRACE_LINE_MAX);
	if (error)
		goto put_records;
	error = trace_operate(event, TALLY_TRACE_REGISTER, listener);
	if (error)
		goto put_lines;
	*out = listener;
	return 0;
put_lines:
	trace_scratch_unref(engine, &all->lines, &all->line_users);
put_records:
	trace_scratch_unref(engine, &all->records, &all->record_users);
free_it:
	engine_release(engine, listener, sizeof(*listener));
	return error;
}

int tally_trace_listen(struct tally_trace_event *event, tally_trace_write *write, void *data,
		       struct tally_trace_listener **out)
{
	struct tally_engine *engine = event->engine;
	if (!engine)
		return -ENGINE_ENODEV;
	engine_enter(engine);
	int error = listen_locked(event, write, data, out);
	engine_leave(engine);
	return error;
}

void tally_trace_unlisten(struct tally_trace_listener *listener)
{
	struct tally_engine *engine = listener->event->engine;
	struct engine_tracepoints *all = engine->tracepoints;
	engine_enter(engine);
	trace_operate(listener->event, TALLY_TRACE_UNREGISTER, listener);
	trace_scratch_unref(engine, &all->lines, &all->line_users);
	trace_scratch_unref(engine, &all->records, &all->record_users);
	engine_retire(engine, &listener->retired, free_listener);
	engine_leave(engine);
}
