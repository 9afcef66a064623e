/* The plan's events in a thread's engine, and this thread's part of their totals.
 *
 * Each thread opens all events in the plan's order, as the observer, and gives them the plan's ids:
 * index + 1.  An event that doesn't count in this thread (it isn't inherited, or an exec ended it) is
 * opened on the observer, which never runs.
 *
 * All sampled events write to one ring.  It belongs to an event of the slot (`ring_fd`), a dummy
 * that lives as long as the slot's engine, so that the next thread in the slot goes on writing where
 * this one stopped.
 *
 * The kernel counts faults, switches and migrations of each thread by itself (getrusage(2), the
 * number of the CPU).  The engine is told of them when the totals are brought up to date. */
#include "process/process_agent.h"
#include "process/process_call.h"
#include "process/process_pmu.h"
#include "process/process_usage.h"

#include <errno.h>
#include <string.h>

#define TIMES (TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING)
enum { WORDS_MAX = 3 + 3 * TALLY_PLAN_EVENTS, THE_CPU = 0, NS_PER_S = 1000000000 };

/* --- opening -------------------------------------------------------------- */

static bool counts_here(const struct process_thread *thread, const struct tally_plan_event *event)
{
	int32_t first = __atomic_load_n(&process_agent.plan->first_pid, __ATOMIC_SEQ_CST);
	if (event->attr.flags & TALLY_ATTR_REMOVE_ON_EXEC && process_agent.is_later_program)
		return false;
	if (!(event->attr.flags & TALLY_ATTR_INHERIT))
		return thread->tid == first;
	if (event->attr.flags & TALLY_ATTR_INHERIT_THREAD)
		return thread->pid == first;
	return true;
}

/* Returns the attributes with the event's present state.  The threads' events are no children of
 * one another: they are not inherited here.  A read_format that no sample shows may contain more
 * than tally wanted. */
static struct tally_attr attr_of(const struct tally_plan_event *event)
{
	struct tally_attr attr = event->attr;
	attr.size = sizeof(attr);
	attr.flags &= ~(TALLY_ATTR_DISABLED | TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_THREAD |
			TALLY_ATTR_INHERIT_STAT | TALLY_ATTR_REMOVE_ON_EXEC);
	if (!__atomic_load_n(&event->waits_for_exec, __ATOMIC_SEQ_CST))
		attr.flags &= ~TALLY_ATTR_ENABLE_ON_EXEC;
	if (!__atomic_load_n(&event->enabled, __ATOMIC_SEQ_CST))
		attr.flags |= TALLY_ATTR_DISABLED;
	/* time passes evenly: a frequency is a period */
	if (attr.type == TALLY_PROCESS_PMU_TYPE && attr.flags & TALLY_ATTR_FREQ &&
	    attr.sample_period) {
		attr.sample_period = NS_PER_S / attr.sample_period;
		attr.flags &= ~TALLY_ATTR_FREQ;
	}
	if (!(attr.sample_type & TALLY_SAMPLE_READ))
		attr.read_format = TIMES | TALLY_FORMAT_LOST;
	return attr;
}

int process_events_open_ring(struct process_thread *thread)
{
	const struct tally_plan *plan = process_agent.plan;
	struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
				   .config = TALLY_SW_DUMMY,
				   .size = sizeof(attr),
				   .flags = TALLY_ATTR_DISABLED };
	thread->ring_fd = -1;
	if (!thread->ring_page)
		return 0;
	for (unsigned i = 0; i < plan->event_count; i++) {
		const struct tally_attr *sampled = &plan->events[i].attr;
		if (!plan->events[i].sampled)
			continue;
		/* events of one ring have the same clock */
		attr.flags |= sampled->flags & (TALLY_ATTR_USE_CLOCKID | TALLY_ATTR_WATERMARK);
		attr.clockid = sampled->clockid;
		attr.wakeup_events = sampled->wakeup_events;
		break;
	}
	int fd = tally_engine_open(thread->engine, &attr, 0, THE_CPU, -1, 0);
	void *page;
	if (fd < 0)
		return fd;
	thread->ring_fd = fd;
	return tally_engine_mmap(thread->engine, fd,
				 (1 + (size_t)plan->ring_pages) * TALLY_PLAN_PAGE, true, true, 0,
				 &page);
}

static int open_event(struct process_thread *thread, unsigned index)
{
	const struct tally_plan_event *event = &process_agent.plan->events[index];
	if (event->leader >= (int32_t)index)
		return -EINVAL;
	const struct tally_attr attr = attr_of(event);
	int leader = event->leader < 0 ? -1 : thread->events[event->leader];
	/* until the FORK record is written, the task has the identity of its parent */
	int32_t target = 0;
	if (counts_here(thread, event))
		target = tally_engine_task_identity(thread->task)->tid;
	int fd = tally_engine_open(thread->engine, &attr, target, THE_CPU, leader, 0);
	if (fd < 0)
		return fd;
	thread->events[index] = fd;
	thread->enabled[index] = !(attr.flags & TALLY_ATTR_DISABLED);
	int error = tally_engine_set_id(thread->engine, fd, event->id);
	if (!error && event->sampled && thread->ring_fd >= 0)
		error = (int)tally_engine_ioctl(thread->engine, fd, TALLY_IOC_SET_OUTPUT,
						(uintptr_t)thread->ring_fd);
	return error;
}

int process_events_open(struct process_thread *thread)
{
	int error = 0;
	memset(thread->published, 0, sizeof(thread->published));
	thread->open_events = 0;
	process_observe(thread);
	for (unsigned i = 0; i < process_agent.plan->event_count && !error; i++) {
		error = open_event(thread, i);
		thread->open_events += !error;
	}
	process_observe_end(thread);
	return error;
}

void process_events_close(struct process_thread *thread)
{
	process_observe(thread);
	while (thread->open_events)
		tally_engine_close(thread->engine, thread->events[--thread->open_events]);
	process_observe_end(thread);
}

/* After the first exec, enable_on_exec is done for all later programs. */
void process_events_note_exec(struct process_thread *thread)
{
	struct tally_plan *plan = process_agent.plan;
	for (unsigned i = 0; i < plan->event_count; i++) {
		struct tally_plan_event *event = &plan->events[i];
		uint32_t waits = 1;
		if (!__atomic_compare_exchange_n(&event->waits_for_exec, &waits, 0, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		__atomic_store_n(&event->enabled, 1, __ATOMIC_SEQ_CST);
		thread->enabled[i] = true;
	}
}

/* --- what the kernel counts ----------------------------------------------- */

static void tell(struct process_thread *thread, enum tally_sw event, uint64_t count)
{
	static const struct tally_engine_regs in_kernel = { .mode = TALLY_MODE_KERNEL };
	static const struct tally_engine_regs in_user = { .mode = TALLY_MODE_USER };
	bool is_fault = event == TALLY_SW_PAGE_FAULTS || event == TALLY_SW_PAGE_FAULTS_MIN ||
			event == TALLY_SW_PAGE_FAULTS_MAJ;
	if (count)
		tally_engine_software(thread->engine, event, count,
				      is_fault ? &in_user : &in_kernel, 0);
}

static void tell_usage(struct process_thread *thread, const struct tally_plan_usage *more)
{
	tell(thread, TALLY_SW_PAGE_FAULTS, more->minor_faults + more->major_faults);
	tell(thread, TALLY_SW_PAGE_FAULTS_MIN, more->minor_faults);
	tell(thread, TALLY_SW_PAGE_FAULTS_MAJ, more->major_faults);
	tell(thread, TALLY_SW_CONTEXT_SWITCHES, more->switches);
	process_usage_add(&process_agent.told, more);
}

static void tell_migrations(struct process_thread *thread, bool last)
{
	unsigned cpu = 0;
	uint64_t migrations = thread->migrations;
	process_call(SYS_getcpu, &cpu, NULL, NULL);
	if ((int)cpu != thread->last_cpu)
		migrations++;
	thread->last_cpu = (int)cpu;
	if (last)
		migrations = process_usage_migrations(migrations);
	if (migrations > thread->migrations)
		tell(thread, TALLY_SW_CPU_MIGRATIONS, migrations - thread->migrations);
	thread->migrations = migrations;
}

static void tell_news(struct process_thread *thread, bool last)
{
	struct tally_plan_usage now, more;
	process_usage_of_thread(&now);
	now.cpu_ns = thread->frozen_ns + thread->hidden_ns;
	more = process_usage_since(&now, &thread->told);
	thread->told = now;
	if (process_agent.counts_usage)
		tell_usage(thread, &more);
	else
		process_usage_add(&process_agent.told, &more);
	if (process_agent.counts_migrations)
		tell_migrations(thread, last);
}

/* --- totals --------------------------------------------------------------- */

/* Returns the position of the event's value among its group's values. */
static unsigned place_in_group(unsigned index)
{
	const struct tally_plan *plan = process_agent.plan;
	unsigned place = 1;
	if (plan->events[index].leader < 0)
		return 0;
	for (unsigned i = 0; i < index; i++)
		place += plan->events[i].leader == plan->events[index].leader;
	return place;
}

static bool read_event(struct process_thread *thread, unsigned index,
		       struct tally_plan_total *total)
{
	uint64_t words[WORDS_MAX],
		format = attr_of(&process_agent.plan->events[index]).read_format;
	*total = (struct tally_plan_total){ 0 };
	if (tally_engine_read(thread->engine, thread->events[index], words, sizeof(words)) <= 0)
		return false;
	unsigned at = 1, value = 0,
		 each = 1 + !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		total->enabled_ns = words[at++];
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		total->running_ns = words[at++];
	if (format & TALLY_FORMAT_GROUP)
		value = at + each * place_in_group(index);
	else
		each = each + at - 1;
	total->value = words[value];
	if (format & TALLY_FORMAT_LOST)
		total->lost = words[value + each - 1];
	return true;
}

static void add(uint64_t *to, uint64_t now, uint64_t *published)
{
	if (now != *published)
		__atomic_fetch_add(to, now - *published, __ATOMIC_SEQ_CST);
	*published = now;
}

static void publish(struct process_thread *thread, unsigned index)
{
	struct tally_plan_total now, *published = &thread->published[index],
				     *total = &process_agent.plan->events[index].total;
	if (!read_event(thread, index, &now))
		return;
	add(&total->value, now.value, &published->value);
	add(&total->enabled_ns, now.enabled_ns, &published->enabled_ns);
	add(&total->running_ns, now.running_ns, &published->running_ns);
	add(&total->lost, now.lost, &published->lost);
}

static void follow(struct process_thread *thread, unsigned index)
{
	bool enabled = __atomic_load_n(&process_agent.plan->events[index].enabled,
				       __ATOMIC_RELAXED);
	if (enabled == thread->enabled[index])
		return;
	thread->enabled[index] = enabled;
	tally_engine_ioctl(thread->engine, thread->events[index],
			   enabled ? TALLY_IOC_ENABLE : TALLY_IOC_DISABLE, 0);
}

/* The clock stands still meanwhile, so that all events have the same moment. */
void process_events_publish(struct process_thread *thread, bool last)
{
	if (process_agent.is_ending)
		return;
	bool was_frozen = process_clock_freeze(thread);
	tell_news(thread, last);
	thread->published_at = thread->told.cpu_ns;
	process_observe(thread);
	for (unsigned i = 0; i < thread->open_events; i++) {
		publish(thread, i);
		if (!last)
			follow(thread, i);
	}
	process_observe_end(thread);
	process_host_settle(thread);
	thread->frozen = was_frozen;
}

/* Clocks and times of an event that was enabled at the end are taken as enabled all the while. */
static void publish_time(struct tally_plan_event *event, uint64_t ns)
{
	bool is_clock = event->attr.type == TALLY_TYPE_SOFTWARE &&
			(event->attr.config == TALLY_SW_CPU_CLOCK ||
			 event->attr.config == TALLY_SW_TASK_CLOCK);
	if (!(event->attr.flags & TALLY_ATTR_INHERIT) ||
	    !__atomic_load_n(&event->enabled, __ATOMIC_SEQ_CST))
		return;
	if (is_clock)
		__atomic_fetch_add(&event->total.value, ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&event->total.enabled_ns, ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&event->total.running_ns, ns, __ATOMIC_SEQ_CST);
}

void process_events_publish_rest(struct process_thread *thread)
{
	struct tally_plan_usage now, rest, told;
	process_usage_of_process(&now);
	process_usage_load(&process_agent.told, &told);
	rest = process_usage_since(&now, &told);
	if (rest.cpu_ns)
		for (unsigned i = 0; i < process_agent.plan->event_count; i++)
			publish_time(&process_agent.plan->events[i], rest.cpu_ns);
	if (process_agent.counts_usage)
		tell_usage(thread, &rest);
}
