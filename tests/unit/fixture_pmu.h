/* A hardware PMU for the fixture's machine.  Each CPU has the same number of counters, and every
 * event counts the same thing, which fixture_pmu_happen() makes. */
#ifndef TALLY_TESTS_FIXTURE_PMU_H
#define TALLY_TESTS_FIXTURE_PMU_H

#include "engine_fixture.h"

enum { FIXTURE_COUNTERS = 16 };

struct fixture_pmu {
	/* a test may change scope, capabilities and cpus before registering it */
	struct tally_engine_pmu pmu;
	struct engine_fixture *fixture;
	unsigned counters; /* counters of each CPU */
	uint64_t raw[FIXTURE_CPUS][FIXTURE_COUNTERS];
	struct tally_pmu_event *on[FIXTURE_CPUS][FIXTURE_COUNTERS];
	int init_error;    /* result of event_init for its own events, normally 0 */
	unsigned events, adds, dels;
};

static inline struct fixture_pmu *fixture_pmu_of(const struct tally_pmu_event *event)
{
	return event->pmu->driver;
}

static inline int fixture_pmu_init_event(struct tally_engine_pmu *pmu,
					 struct tally_pmu_event *event)
{
	struct fixture_pmu *self = pmu->driver;
	bool generic = event->attr->type == TALLY_TYPE_HARDWARE &&
		       event->attr->config < TALLY_HW_MAX;
	if (event->attr->type != pmu->type && !generic)
		return -2;
	if (self->init_error)
		return self->init_error;
	event->config = event->attr->config;
	self->events++;
	return 0;
}

static inline void fixture_pmu_release_event(struct tally_pmu_event *event)
{
	assert(fixture_pmu_of(event)->events);
	fixture_pmu_of(event)->events--;
}

static inline void fixture_pmu_read(struct tally_pmu_event *event)
{
	struct fixture_pmu *self = fixture_pmu_of(event);
	uint64_t raw = self->raw[self->fixture->cpu][event->index], more = raw - event->previous;
	event->previous = raw;
	event->period_left -= (int64_t)more;
	tally_engine_pmu_count(event, more);
}

static inline void fixture_pmu_start(struct tally_pmu_event *event, unsigned flags)
{
	struct fixture_pmu *self = fixture_pmu_of(event);
	(void)flags;
	event->previous = self->raw[self->fixture->cpu][event->index];
	event->state = 0;
	tally_engine_user_page_changed(event);
}

static inline void fixture_pmu_stop(struct tally_pmu_event *event, unsigned flags)
{
	if (event->state & TALLY_HES_STOPPED)
		return;
	if (flags & TALLY_EF_UPDATE)
		fixture_pmu_read(event);
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
	tally_engine_user_page_changed(event);
}

static inline int fixture_pmu_add(struct tally_pmu_event *event, unsigned flags)
{
	struct fixture_pmu *self = fixture_pmu_of(event);
	unsigned cpu = self->fixture->cpu;
	for (unsigned i = 0; i < self->counters; i++)
		if (!self->on[cpu][i]) {
			self->on[cpu][i] = event;
			self->adds++;
			event->index = (int)i;
			event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
			if (flags & TALLY_EF_START)
				fixture_pmu_start(event, TALLY_EF_RELOAD);
			return 0;
		}
	return -11;
}

static inline void fixture_pmu_del(struct tally_pmu_event *event, unsigned flags)
{
	struct fixture_pmu *self = fixture_pmu_of(event);
	assert(self->on[self->fixture->cpu][event->index] == event);
	fixture_pmu_stop(event, flags | TALLY_EF_UPDATE);
	self->on[self->fixture->cpu][event->index] = NULL;
	self->dels++;
	event->index = -1;
	tally_engine_user_page_changed(event);
}

static inline int fixture_pmu_user_index(const struct tally_pmu_event *event)
{
	return event->index;
}

/* Makes `count` occurrences at once on this CPU; an overflow follows the last one. */
static inline void fixture_pmu_happen(struct fixture_pmu *self, uint64_t count)
{
	unsigned cpu = self->fixture->cpu;
	struct tally_engine_regs regs = fixture_user_regs(0x402000);
	enum tally_engine_level level = self->fixture->level[cpu];
	self->fixture->level[cpu] = TALLY_LEVEL_HARDIRQ;
	for (unsigned i = 0; i < self->counters; i++) {
		struct tally_pmu_event *event = self->on[cpu][i];
		self->raw[cpu][i] += count;
		if (!event || !event->sample_period || (event->state & TALLY_HES_STOPPED))
			continue;
		fixture_pmu_read(event);
		if (!tally_engine_period_elapsed(event))
			continue;
		struct tally_engine_hit hit = { .period = event->last_period };
		if (tally_engine_overflow(event, &hit, &regs))
			fixture_pmu_stop(event, 0);
	}
	self->fixture->level[cpu] = level;
	fixture_run_pending(self->fixture);
}

/* Registers the PMU as `name`, with a type of its own and so many counters. */
static inline int fixture_pmu_register(struct fixture_pmu *self, struct engine_fixture *fixture,
				       const char *name, unsigned counters)
{
	static const struct tally_engine_pmu_ops ops = {
		.event_init = fixture_pmu_init_event,
		.event_release = fixture_pmu_release_event,
		.add = fixture_pmu_add,
		.del = fixture_pmu_del,
		.start = fixture_pmu_start,
		.stop = fixture_pmu_stop,
		.read = fixture_pmu_read,
		.user_index = fixture_pmu_user_index,
	};
	assert(counters <= FIXTURE_COUNTERS);
	self->fixture = fixture;
	self->counters = counters;
	self->pmu.name = name;
	self->pmu.ops = &ops;
	self->pmu.driver = self;
	return tally_engine_pmu_register(fixture->engine, &self->pmu);
}

#endif
