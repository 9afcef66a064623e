/* A program's own tracepoints (tally/tracepoint.h), counted.
 *
 * A program publishes its groups by tally_trace_publish(), which libtally defines without effect.
 * This object's definition takes its place, since it is preloaded; the same holds for the functions
 * that a hit calls.  They are called only for events that a published group has and the plan counts:
 * without, a hit stays a load and a branch.
 *
 * A hit of an enabled event calls tally_trace_count() when counting is all that there is to do
 * (TALLY_TRACE_COUNTED), and otherwise, for a record that is too large, tally_trace_begin().  The
 * engine has functions of these names for hosts that register groups with it; in this object they
 * are renamed (meson.build). */
#include "process/process_agent.h"
#include "process/process_pmu.h"
#include "tally/tracepoint.h"

enum { PUBLISHED = 1024 };

/* The hashes of the events' names.  An event's id is its index here + 1. */
static uint64_t names[PUBLISHED];
static uint32_t name_count; /* atomic */

static bool is_counted(uint64_t name)
{
	bool any = false;
	for (unsigned i = 0; i < process_agent.plan->event_count; i++) {
		struct tally_plan_event *event = &process_agent.plan->events[i];
		if (event->attr.type != TALLY_PROCESS_PMU_TYPE ||
		    event->attr.config != TALLY_PROCESS_TRACEPOINT || event->attr.config1 != name)
			continue;
		__atomic_store_n(&event->published, 1, __ATOMIC_SEQ_CST);
		any = true;
	}
	return any;
}

static void publish(struct tally_trace_event *event, const char *group)
{
	uint64_t name = tally_process_name(group, event->name);
	if (event->id || !is_counted(name))
		return;
	uint32_t index = __atomic_fetch_add(&name_count, 1, __ATOMIC_SEQ_CST);
	if (index >= PUBLISHED)
		return;
	names[index] = name;
	event->id = index + 1;
	event->perf_alone = TALLY_TRACE_COUNTED;
	__atomic_store_n(&event->enabled, 1, __ATOMIC_RELEASE);
}

PROCESS_EXPORT int tally_trace_publish(struct tally_trace_group *group)
{
	if (!process_agent.plan)
		return 0;
	for (size_t i = 0; i < group->count; i++)
		publish(group->events[i], group->name);
	return 0;
}

static void hit(const struct tally_trace_event *event, uint64_t count)
{
	/* without a look at its tid: a child of vfork(2) counts as its parent */
	struct process_thread *thread = process_own;
	if (!thread || !thread->task || process_agent.is_ending || !event->id ||
	    event->id > PUBLISHED)
		return;
	process_enter(thread);
	process_pmu_hit(thread, names[event->id - 1], count);
	process_leave(thread);
}

PROCESS_EXPORT void process_trace_count(struct tally_trace_event *event, uint64_t count)
	__asm__("tally_trace_count");
PROCESS_EXPORT void *process_trace_begin(struct tally_trace_hit *hit, size_t size)
	__asm__("tally_trace_begin");

void process_trace_count(struct tally_trace_event *event, uint64_t count)
{
	hit(event, count);
}

void *process_trace_begin(struct tally_trace_hit *of, size_t size)
{
	(void)size;
	hit(of->event, of->count);
	return NULL;
}
