/* ioctl(2) on an event: SPEC B3.  Requests of later kernels are refused with ENOTTY, as any kernel
 * refuses those that it does not know. */
#include "engine/engine_state.h"
#include "engine/sample_record.h"

static void reset_one(struct engine_event *event, void *argument)
{
	(void)argument;
	engine_exchange64(&event->count, 0);
	engine_user_page_update(event);
}

/* Resets only the value of the event and of its living children: counts of children that have ended
 * stay, as in the kernel. */
static void reset(struct engine_event *event)
{
	engine_event_sync(event, false, NULL, NULL);
	engine_context_call(event, reset_one, NULL);
	ENGINE_LIST_EACH(child, &event->children, struct engine_event, child_link) {
		engine_event_sync(child, false, NULL, NULL);
		engine_context_call(child, reset_one, NULL);
	}
}

/* Applies the function to the event, or with the flag to its whole group, whichever member `event`
 * is. */
static long each(struct engine_event *event, uintptr_t flags,
		 void (*function)(struct engine_event *event))
{
	if (!((uint32_t)flags & TALLY_IOC_FLAG_GROUP)) {
		function(event);
		return 0;
	}
	struct engine_event *leader = event->leader;
	function(leader);
	ENGINE_LIST_EACH(sibling, &leader->siblings, struct engine_event, sibling_link)
		function(sibling);
	return 0;
}

static long set_period(struct engine_event *event, uintptr_t argument)
{
	uint64_t period;
	int error = engine_copy_in(event->engine, &period, (const void *)argument, sizeof(period));
	if (error)
		return error;
	return engine_event_period(event, period);
}

static long copy_id(struct engine_event *event, uintptr_t argument)
{
	uint64_t id = engine_primary_id(event);
	return engine_copy_out(event->engine, (void *)argument, &id, sizeof(id));
}

static long set_output(struct engine_event *event, uintptr_t argument)
{
	if (argument == (uintptr_t)-1)
		return engine_event_set_output(event, NULL);
	struct tally_engine_file *target = engine_file(event->engine, (int)argument);
	if (target)
		return engine_event_set_output(event, target->event);
	return -ENGINE_EBADF;
}

/* --- filters -------------------------------------------------------------- */

/* Returns the length of the caller's text with its NUL, -EFAULT, or -EINVAL if it is longer than a
 * page. */
static long text_length(struct tally_engine *engine, const char *text)
{
	for (size_t length = 0; length < engine->host.page_size; length++) {
		char byte;
		int error = engine_copy_in(engine, &byte, text + length, 1);
		if (error)
			return error;
		if (!byte)
			return (long)length + 1;
	}
	return -ENGINE_EINVAL;
}

static int apply_filter(struct engine_event *event, const char *text)
{
	const struct tally_engine_pmu *pmu = event->hw.pmu;
	if (pmu == &event->engine->tracepoint_pmu)
		return engine_tracepoint_set_filter(event, text);
	if (pmu->ops->set_filter)
		return pmu->ops->set_filter(&event->hw, text);
	return -ENGINE_EINVAL;
}

static long set_filter(struct engine_event *event, uintptr_t argument)
{
	struct tally_engine *engine = event->engine;
	long length = text_length(engine, (const char *)argument);
	if (length < 0)
		return length;
	char *text = engine_allocate(engine, (size_t)length);
	if (!text)
		return -ENGINE_ENOMEM;
	int error = engine_copy_in(engine, text, (const void *)argument, (size_t)length);
	text[length - 1] = '\0'; /* the caller may have changed it since its length was taken */
	if (!error)
		error = apply_filter(event, text);
	engine_release(engine, text, (size_t)length);
	return error;
}

/* --- BPF: there are no programs here, and none can be attached ------------ */

static long set_bpf(struct engine_event *event, uintptr_t argument)
{
	if (engine_file(event->engine, (int)argument))
		return -ENGINE_EINVAL;
	return -ENGINE_EBADF;
}

static long query_bpf(struct engine_event *event, uintptr_t argument)
{
	enum { PROGRAMS_MAX = 64 };
	struct { uint32_t ids_length, count; } query;
	struct tally_engine *engine = event->engine;
	if (!engine_capable(engine, TALLY_CAPABLE_PERFMON))
		return -ENGINE_EPERM;
	if (event->attr.type != TALLY_TYPE_TRACEPOINT)
		return -ENGINE_EINVAL;
	int error = engine_copy_in(engine, &query, (const void *)argument, sizeof(query));
	if (error)
		return error;
	if (query.ids_length > PROGRAMS_MAX)
		return -ENGINE_E2BIG;
	uint32_t ids[PROGRAMS_MAX] = { 0 };
	query.count = 0;
	error = engine_copy_out(engine, (void *)argument, &query, sizeof(query));
	if (error)
		return error;
	return engine_copy_out(engine, (void *)(argument + sizeof(query)), ids,
			       query.ids_length * sizeof(ids[0]));
}

/* --- attributes ----------------------------------------------------------- */

/* MODIFY_ATTRIBUTES works for breakpoints only: it changes their address, length and type, and the
 * data of SIGTRAP. */
static long modify(struct engine_event *event, uintptr_t argument)
{
	struct tally_attr attr;
	int error = engine_attr_copy(event->engine, (const void *)argument, &attr);
	if (error)
		return error;
	bool clock = event->attr.type == TALLY_TYPE_SOFTWARE && engine_is_clock(&event->attr);
	/* in Linux each clock has a PMU of its own, with a type of its own */
	if (attr.type != event->attr.type || clock)
		return -ENGINE_EINVAL;
	if (attr.type != TALLY_TYPE_BREAKPOINT)
		return -ENGINE_EOPNOTSUPP;
	event->attr.sig_data = attr.sig_data;
	error = engine_breakpoint_modify(event, &attr);
	ENGINE_LIST_EACH(child, &event->children, struct engine_event, child_link) {
		if (error)
			break;
		child->attr.sig_data = attr.sig_data;
		error = engine_breakpoint_modify(child, &attr);
	}
	return error;
}

long engine_event_ioctl(struct engine_event *event, unsigned long request, uintptr_t argument)
{
	switch ((uint32_t)request) {
	case TALLY_IOC_ENABLE:
		return each(event, argument, engine_event_enable);
	case TALLY_IOC_DISABLE:
		return each(event, argument, engine_event_disable);
	case TALLY_IOC_RESET:
		return each(event, argument, reset);
	case TALLY_IOC_REFRESH:
		return engine_event_refresh(event, argument);
	case TALLY_IOC_PERIOD:
		return set_period(event, argument);
	case TALLY_IOC_ID:
		return copy_id(event, argument);
	case TALLY_IOC_SET_OUTPUT:
		return set_output(event, argument);
	case TALLY_IOC_SET_FILTER:
		return set_filter(event, argument);
	case TALLY_IOC_SET_BPF:
		return set_bpf(event, argument);
	case TALLY_IOC_PAUSE_OUTPUT:
		return engine_event_pause_output(event, argument != 0);
	case TALLY_IOC_QUERY_BPF:
		return query_bpf(event, argument);
	case TALLY_IOC_MODIFY_ATTRIBUTES:
		return modify(event, argument);
	default:
		return -ENGINE_ENOTTY;
	}
}
