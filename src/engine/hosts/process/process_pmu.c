/* The PMU "process": wall-clock, and hits of a program's own tracepoints.
 *
 * wall-clock is the time that passes for a thread, whether it runs or sleeps.  It samples by a monotonic interval timer of its own, whose signal also comes to a thread that
 * sleeps: that is what it is for.  System calls that the signal interrupts go on
 * (process_restart.c).  A sample weighs the time since the last one, so signals that the kernel
 * merged are not lost.
 *
 * Tracepoints (tally/tracepoint.h) are known by a hash of their names (process_trace.c).  They only
 * count. */
#include "process/process_agent.h"
#include "process/process_call.h"
#include "process/process_pmu.h"

#include <errno.h>
#include <time.h>

enum { NS_PER_S = 1000000000, SHORTEST_NS = 50000 };

/* tally_pmu_event.words */
enum { SAMPLED_AT, NEXT };

static uint64_t monotonic_ns(void)
{
	struct timespec now;
	process_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct process_thread *thread_of(const struct tally_pmu_event *event)
{
	return event->pmu->driver;
}

static int event_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	if (event->attr->type != pmu->type)
		return -ENOENT;
	event->index = -1;
	if (event->attr->config == TALLY_PROCESS_WALL_CLOCK)
		return 0;
	if (event->attr->config != TALLY_PROCESS_TRACEPOINT)
		return -EINVAL;
	return event->sample_period ? -EOPNOTSUPP : 0;
}

static struct tally_pmu_event *next_of(const struct tally_pmu_event *event)
{
	return (struct tally_pmu_event *)(uintptr_t)event->words[NEXT];
}

static bool is_wall_clock(const struct tally_pmu_event *event)
{
	return event->attr->config == TALLY_PROCESS_WALL_CLOCK;
}

static void set_timer(struct process_thread *thread)
{
	uint64_t least = 0;
	for (const struct tally_pmu_event *at = thread->wall_events; at; at = next_of(at))
		if (!least || at->sample_period < least)
			least = at->sample_period;
	if (least && least < SHORTEST_NS)
		least = SHORTEST_NS;
	process_timer_wall(thread, least);
}

static void update(struct tally_pmu_event *event)
{
	uint64_t now = monotonic_ns();
	tally_engine_pmu_count(event, now - event->previous);
	event->previous = now;
}

static void put(struct tally_pmu_event **list, struct tally_pmu_event *event)
{
	event->words[NEXT] = (uintptr_t)*list;
	*list = event;
}

/* Returns false if it isn't there. */
static bool take(struct tally_pmu_event **list, const struct tally_pmu_event *event)
{
	struct tally_pmu_event *before = NULL;
	for (struct tally_pmu_event *at = *list; at; before = at, at = next_of(at)) {
		if (at != event)
			continue;
		if (before)
			before->words[NEXT] = event->words[NEXT];
		else
			*list = next_of(event);
		return true;
	}
	return false;
}

static void start(struct tally_pmu_event *event, unsigned flags)
{
	struct process_thread *thread = thread_of(event);
	(void)flags;
	event->state = 0;
	if (!is_wall_clock(event)) {
		put(&thread->trace_events, event);
		return;
	}
	event->previous = event->words[SAMPLED_AT] = monotonic_ns();
	if (!event->sample_period)
		return;
	put(&thread->wall_events, event);
	set_timer(thread);
}

static void stop(struct tally_pmu_event *event, unsigned flags)
{
	struct process_thread *thread = thread_of(event);
	if (event->state & TALLY_HES_STOPPED)
		return;
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
	if (!is_wall_clock(event)) {
		take(&thread->trace_events, event);
		return;
	}
	if (flags & TALLY_EF_UPDATE)
		update(event);
	if (take(&thread->wall_events, event))
		set_timer(thread);
}

static int add(struct tally_pmu_event *event, unsigned flags)
{
	event->index = 0;
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
	if (flags & TALLY_EF_START)
		start(event, TALLY_EF_RELOAD);
	return 0;
}

static void del(struct tally_pmu_event *event, unsigned flags)
{
	stop(event, flags | TALLY_EF_UPDATE);
	event->index = -1;
}

static void read_event(struct tally_pmu_event *event)
{
	if (!(event->state & TALLY_HES_STOPPED) && is_wall_clock(event))
		update(event);
}

int process_pmu_register(struct process_thread *thread)
{
	static const struct tally_engine_pmu_ops ops = {
		.event_init = event_init,
		.add = add,
		.del = del,
		.start = start,
		.stop = stop,
		.read = read_event,
	};
	thread->wall_events = thread->trace_events = NULL;
	thread->pmu = (struct tally_engine_pmu){
		.name = "process",
		.type = TALLY_PROCESS_PMU_TYPE,
		.scope = TALLY_SCOPE_SOFTWARE,
		.capabilities = TALLY_PMU_NO_NMI,
		.ops = &ops,
		.driver = thread,
	};
	return tally_engine_pmu_register(thread->engine, &thread->pmu);
}

/* Without its weight, the sample is repeated for each period that has passed. */
static void sample(struct tally_pmu_event *event, uint64_t passed,
		   const struct tally_engine_regs *regs)
{
	struct tally_engine_hit hit = { .period = passed };
	uint64_t times = 1;
	if (!(event->attr->sample_type & TALLY_SAMPLE_PERIOD)) {
		hit.period = event->sample_period;
		times = (passed + event->sample_period / 2) / event->sample_period;
	}
	while (times--)
		if (tally_engine_overflow(event, &hit, regs)) {
			stop(event, 0);
			break;
		}
}

void process_wall_sample(struct process_thread *thread, const struct tally_engine_regs *regs)
{
	struct tally_pmu_event *next;
	for (struct tally_pmu_event *event = thread->wall_events; event; event = next) {
		next = next_of(event);
		update(event);
		uint64_t passed = event->previous - event->words[SAMPLED_AT];
		if (passed < event->sample_period / 2)
			continue; /* the timer is another event's, which is faster */
		tally_engine_period_elapsed(event);
		event->words[SAMPLED_AT] = event->previous;
		sample(event, passed, regs);
	}
}

void process_pmu_hit(struct process_thread *thread, uint64_t name, uint64_t count)
{
	for (struct tally_pmu_event *event = thread->trace_events; event; event = next_of(event))
		if (event->attr->config1 == name)
			tally_engine_pmu_count(event, count);
}
