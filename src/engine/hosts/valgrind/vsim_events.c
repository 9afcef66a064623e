/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Opens the plan's events in this process's engine, and adds this process's part to their totals.
 *
 * Each process and each program opens all events, in the plan's order.  The engine numbers events
 * in the order of opening, so an event has the same id everywhere: its index in the plan + 1.  An
 * event that does not count here (it isn't inherited, or an exec ended it) is opened on the
 * observer, which never runs. */
#include "valgrind/vsim_host.h"

#include "pub_tool_libcbase.h"
#include "pub_tool_libcproc.h"

#define TIMES (TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING)
enum { WORDS_MAX = 3 + 3 * TALLY_PLAN_EVENTS };

static bool counts_here(const struct vsim *sim, const struct tally_plan_event *event)
{
	if (event->attr.flags & TALLY_ATTR_REMOVE_ON_EXEC && !sim->host->first_program)
		return false;
	bool forks = event->attr.flags & TALLY_ATTR_INHERIT &&
		     !(event->attr.flags & TALLY_ATTR_INHERIT_THREAD);
	/* A program that a child executes has no parent task to inherit from.  The first process
	 * keeps its events. */
	return forks || sim->host->parent || sim->plan->shared.first_pid == VG_(getpid)();
}

/* Returns the attributes with the event's current state.  A read_format that no sample or record
 * shows may contain more than tally wanted. */
static struct tally_attr attr_of(const struct tally_plan_event *event)
{
	struct tally_attr attr = event->attr;
	attr.size = sizeof(attr);
	attr.flags &= ~TALLY_ATTR_DISABLED;
	if (!event->waits_for_exec)
		attr.flags &= ~TALLY_ATTR_ENABLE_ON_EXEC;
	if (!event->enabled)
		attr.flags |= TALLY_ATTR_DISABLED;
	if (!(attr.sample_type & TALLY_SAMPLE_READ) && !(attr.flags & TALLY_ATTR_INHERIT_STAT))
		attr.read_format = TIMES | TALLY_FORMAT_LOST;
	return attr;
}

/* Gives the process's ring to the first event that samples; the others share it. */
static int give_ring(struct vsim *sim, int fd, int *first)
{
	void *page;
	if (sim->host->ring < 0)
		return 0;
	if (*first >= 0)
		return (int)tally_engine_ioctl(sim->engine, fd, TALLY_IOC_SET_OUTPUT,
					       (uintptr_t)*first);
	*first = fd;
	return tally_engine_mmap(sim->engine, fd,
				 (1 + (size_t)sim->plan->shared.ring_pages) * TALLY_PLAN_PAGE, true,
				 true, 0, &page);
}

static int open_event(struct vsim *sim, unsigned index, int32_t tid, int *ring)
{
	struct vsim_host *host = sim->host;
	const struct tally_plan_event *event = &sim->plan->shared.events[index];
	if (event->leader >= (int32_t)index)
		return -VKI_EINVAL;
	const struct tally_attr attr = attr_of(event);
	int leader = event->leader < 0 ? -1 : host->events[event->leader];
	int32_t target = counts_here(sim, event) ? tid : 0;
	/* Inherited events need a CPU to have a ring; there is one CPU. */
	int fd = tally_engine_open(sim->engine, &attr, target, 0, leader, 0);
	if (fd < 0)
		return fd;
	host->events[index] = fd;
	host->enabled[index] = event->enabled;
	uint64_t id = 0;
	int error = (int)tally_engine_ioctl(sim->engine, fd, TALLY_IOC_ID, (uintptr_t)&id);
	if (!error && id != event->id)
		error = -VKI_EINVAL;
	if (error || !event->sampled)
		return error;
	return give_ring(sim, fd, ring);
}

int vsim_events_open(struct vsim *sim, struct tally_engine_task *task)
{
	int32_t tid = tally_engine_task_identity(task)->tid;
	int error = 0, ring = -1;
	VG_(memset)(sim->host->published, 0, sizeof(sim->host->published));
	vsim_observe(sim);
	for (unsigned i = 0; i < sim->plan->shared.event_count && !error; i++)
		error = open_event(sim, i, tid, &ring);
	vsim_observe_end(sim);
	return error;
}

/* --- totals --------------------------------------------------------------- */

/* Returns the position of the event's value among its group's values. */
static unsigned place_in_group(const struct vsim_plan *plan, unsigned index)
{
	unsigned place = 1;
	if (plan->shared.events[index].leader < 0)
		return 0;
	for (unsigned i = 0; i < index; i++)
		place += plan->shared.events[i].leader == plan->shared.events[index].leader;
	return place;
}

static bool read_event(struct vsim *sim, unsigned index, struct tally_plan_total *total)
{
	uint64_t words[WORDS_MAX], format = attr_of(&sim->plan->shared.events[index]).read_format;
	*total = (struct tally_plan_total){ 0 };
	if (tally_engine_read(sim->engine, sim->host->events[index], words, sizeof(words)) <= 0)
		return false;
	unsigned at = 1, value = 0,
		 each = 1 + !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		total->enabled_ns = words[at++];
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		total->running_ns = words[at++];
	if (format & TALLY_FORMAT_GROUP)
		value = at + each * place_in_group(sim->plan, index);
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

static void publish(struct vsim *sim, unsigned index)
{
	struct tally_plan_total now, *published = &sim->host->published[index],
				     *total = &sim->plan->shared.events[index].total;
	if (!read_event(sim, index, &now))
		return;
	add(&total->value, now.value, &published->value);
	add(&total->enabled_ns, now.enabled_ns, &published->enabled_ns);
	add(&total->running_ns, now.running_ns, &published->running_ns);
	add(&total->lost, now.lost, &published->lost);
}

static void follow(struct vsim *sim, unsigned index)
{
	bool enabled = __atomic_load_n(&sim->plan->shared.events[index].enabled, __ATOMIC_RELAXED);
	if (enabled == sim->host->enabled[index])
		return;
	sim->host->enabled[index] = enabled;
	unsigned long request = enabled ? TALLY_IOC_ENABLE : TALLY_IOC_DISABLE;
	tally_engine_ioctl(sim->engine, sim->host->events[index], request, 0);
}

void vsim_events_update(struct vsim *sim)
{
	vsim_observe(sim);
	for (unsigned i = 0; i < sim->plan->shared.event_count; i++) {
		publish(sim, i);
		follow(sim, i);
	}
	vsim_observe_end(sim);
	sim->host->totals_at = vsim_host_now(sim) + VSIM_TICK_NS / 8;
}

void vsim_events_forget(struct vsim *sim)
{
	vsim_observe(sim);
	for (unsigned i = 0; i < sim->plan->shared.event_count; i++)
		read_event(sim, i, &sim->host->published[i]);
	vsim_observe_end(sim);
}
