/* Filters of tracepoint events (SPEC E7): IOC_SET_FILTER. */
#include "engine/tracepoint_state.h"

#define FIELDS_MAX 36u /* 4 common fields and at most 32 of the class */

static const struct tally_filter_field common_fields[] = {
	{ "common_type", 0, 2, false, TALLY_FILTER_NUMBER },
	{ "common_flags", 2, 1, false, TALLY_FILTER_NUMBER },
	{ "common_preempt_count", 3, 1, false, TALLY_FILTER_NUMBER },
	{ "common_pid", 4, 4, true, TALLY_FILTER_NUMBER },
};

static enum tally_filter_kind kind_of(const struct tally_trace_field *field)
{
	switch (field->kind) {
	case TALLY_TRACE_DYNAMIC:
		/* A filter compares the location word (offset and size) of other dynamic arrays, as
		 * in the kernel. */
		if (trace_field_is_text(field))
			return TALLY_FILTER_DYNAMIC_STRING;
		return TALLY_FILTER_NUMBER;
	case TALLY_TRACE_ARRAY:
		if (trace_field_is_text(field))
			return TALLY_FILTER_STRING;
		return TALLY_FILTER_OTHER;
	case TALLY_TRACE_NUMBER:
		break;
	}
	if (field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8)
		return TALLY_FILTER_NUMBER;
	return TALLY_FILTER_OTHER;
}

static long compile(const struct tally_trace_event *event, unsigned cpus, const char *text,
		    void *memory, size_t size, struct tally_filter_error *error)
{
	struct tally_filter_field fields[FIELDS_MAX];
	size_t count = 0;
	for (unsigned i = 0; i < event->of->field_count && count < FIELDS_MAX - 4; i++) {
		const struct tally_trace_field *field = &event->of->fields[i];
		bool dynamic = field->kind == TALLY_TRACE_DYNAMIC;
		fields[count++] = (struct tally_filter_field){ field->name, (uint16_t)field->offset,
							       (uint16_t)field->size,
							       field->is_signed && !dynamic,
							       kind_of(field) };
	}
	for (size_t i = 0; i < sizeof(common_fields) / sizeof(common_fields[0]); i++)
		fields[count++] = common_fields[i];
	const struct tally_filter_fields all = { fields, count, cpus };
	return tally_filter_compile(text, &all, memory, size, error);
}

int tally_trace_check_filter(const struct tally_trace_event *event, const char *filter,
			     size_t *position, const char **reason)
{
	struct tally_filter_error error;
	unsigned cpus = event->engine ? event->engine->host.cpus : 1;
	long size = compile(event, cpus, filter, NULL, 0, &error);
	*position = error.position;
	*reason = error.reason;
	if (size < 0)
		return (int)size;
	return 0;
}

static void free_filter(struct tally_engine *engine, struct engine_retired *retired)
{
	struct trace_filter *filter = ENGINE_CONTAINER(retired, struct trace_filter, retired);
	engine_release(engine, filter, filter->size);
}

int engine_tracepoint_set_filter(struct engine_event *event, const char *text)
{
	struct tally_engine *engine = event->engine;
	if (!event->tracepoint)
		return -ENGINE_EINVAL;
	if (event->filter)
		return -ENGINE_EEXIST;
	long size = compile(event->tracepoint, engine->host.cpus, text, NULL, 0, NULL);
	if (size < 0)
		return (int)size;
	struct trace_filter *filter = engine_allocate(engine, sizeof(*filter) + (size_t)size);
	if (!filter)
		return -ENGINE_ENOMEM;
	filter->size = sizeof(*filter) + (size_t)size;
	compile(event->tracepoint, engine->host.cpus, text, filter->program, (size_t)size, NULL);
	__atomic_store_n(&event->filter, (struct tally_filter *)(void *)filter->program,
			 __ATOMIC_RELEASE);
	trace_event_classify(event);
	ENGINE_LIST_EACH(child, &event->children, struct engine_event, child_link)
		trace_event_classify(child);
	return 0;
}

void trace_filter_free(struct engine_event *event)
{
	if (!event->filter)
		return;
	struct trace_filter *filter = ENGINE_CONTAINER(event->filter, struct trace_filter, program);
	__atomic_store_n(&event->filter, NULL, __ATOMIC_RELEASE);
	engine_retire(event->engine, &filter->retired, free_filter);
}

bool trace_filter_match(const struct tally_filter *filter, const struct tally_trace_hit *hit,
			const struct engine_cpu *cpu)
{
	/* the filter was set after this hit had decided that no listener needs a record */
	if (!hit->record)
		return false;
	struct tally_engine *engine = hit->event->engine;
	const struct tally_engine_task *task = engine->host.current_task(engine->host.host);
	const struct tally_filter_context context = { cpu->number,
						      task ? task->identity.comm : "swapper" };
	return tally_filter_match(filter, hit->record, hit->size, &context);
}
