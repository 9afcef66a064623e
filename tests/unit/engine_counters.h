/* Tests of the engine's scheduling: a PMU with few counters, and a machine with two such PMUs.
 * Each change of an event's state is checked (H1); for that, the program is linked with
 * -Wl,--wrap=engine_event_set_state. */
#ifndef TALLY_TESTS_ENGINE_COUNTERS_H
#define TALLY_TESTS_ENGINE_COUNTERS_H

#include "test.h"

#include "engine/engine_schedule.h"
#include "engine_fixture.h"
#include "random.h"

enum { OFF = ENGINE_EVENT_OFF, INACTIVE = ENGINE_EVENT_INACTIVE, ACTIVE = ENGINE_EVENT_ACTIVE,
       ERROR = ENGINE_EVENT_ERROR, EXIT = ENGINE_EVENT_EXIT };
enum { TIMES = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING };

/* --- H1: every move of every event of every test -------------------------- */

void __real_engine_event_set_state(struct engine_event *event, enum engine_event_state state);
void __wrap_engine_event_set_state(struct engine_event *event, enum engine_event_state state);

void __wrap_engine_event_set_state(struct engine_event *event, enum engine_event_state state)
{
	static const struct { int from, to;
	} legal[] = {
		{ OFF, INACTIVE },    { INACTIVE, OFF },   { INACTIVE, ACTIVE },
		{ ACTIVE, INACTIVE }, { INACTIVE, ERROR }, { ERROR, INACTIVE },
		{ OFF, EXIT },        { INACTIVE, EXIT },  { ERROR, EXIT },
	};
	bool allowed = event->state == state;
	for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++)
		allowed |= legal[i].from == (int)event->state && legal[i].to == (int)state;
	if (!allowed)
		fail_msg("event %llu moved from %d to %d", (unsigned long long)event->id,
			 event->state, state);
	__real_engine_event_set_state(event, state);
}

/* --- a PMU of n counters -------------------------------------------------- */

enum { COUNTERS_MAX = 16 };

/* attr.config: a bit for each counter that may take the event; 0: any.  The counters count what
 * work() makes. */
struct counters {
	struct tally_engine_pmu pmu;
	struct tally_engine_pmu_ops ops;
	struct engine_fixture *fixture;
	unsigned count;
	bool together; /* decides at the commit, like PMUs with constraints */
	struct tally_pmu_event *on[FIXTURE_CPUS][COUNTERS_MAX];
	int disabled[FIXTURE_CPUS];
	struct tally_pmu_event *batch[COUNTERS_MAX * 4];
	unsigned batched;
	bool batching;
	unsigned adds, reads, commits, cancels, switches;
	uint64_t mask[1];
};

enum { WORD_PENDING, WORD_CPU };

static inline struct counters *counters_of(struct tally_engine_pmu *pmu)
{
	return ENGINE_CONTAINER(pmu, struct counters, pmu);
}

static inline int fake_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	if (event->attr->type != pmu->type)
		return -ENGINE_ENOENT;
	event->config = event->attr->config ? event->attr->config : ~0ull;
	return 0;
}

static inline bool place(struct counters *counters, struct tally_pmu_event *event)
{
	unsigned cpu = counters->fixture->cpu;
	for (unsigned i = 0; i < counters->count; i++)
		if (!counters->on[cpu][i] && event->config >> i & 1) {
			counters->on[cpu][i] = event;
			event->index = (int)i;
			event->words[WORD_CPU] = cpu;
			event->state = 0;
			return true;
		}
	return false;
}

static inline void displace(struct counters *counters, struct tally_pmu_event *event)
{
	assert_ptr_equal(counters->on[event->words[WORD_CPU]][event->index], event);
	counters->on[event->words[WORD_CPU]][event->index] = NULL;
	event->index = -1;
}

static inline int fake_add(struct tally_pmu_event *event, unsigned flags)
{
	struct counters *counters = counters_of(event->pmu);
	assert_true(flags & TALLY_EF_START);
	assert_int_equal(event->index, -1);
	assert_true(counters->disabled[counters->fixture->cpu] > 0);
	counters->adds++;
	if (counters->batching) {
		if (counters->batched == counters->count)
			return -ENGINE_EAGAIN;
		counters->batch[counters->batched++] = event;
		return 0;
	}
	return place(counters, event) ? 0 : -ENGINE_EAGAIN;
}

static inline void fake_read(struct tally_pmu_event *event)
{
	struct counters *counters = counters_of(event->pmu);
	assert_int_equal(counters->fixture->cpu, event->words[WORD_CPU]); /* H3 */
	counters->reads++;
	tally_engine_pmu_count(event, event->words[WORD_PENDING]);
	event->words[WORD_PENDING] = 0;
}

static inline void fake_stop(struct tally_pmu_event *event, unsigned flags)
{
	if (flags & TALLY_EF_UPDATE)
		fake_read(event);
	event->state = TALLY_HES_STOPPED | TALLY_HES_UPTODATE;
}

static inline void fake_start(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags;
	event->state = 0;
}

static inline void fake_del(struct tally_pmu_event *event, unsigned flags)
{
	assert_true(flags & TALLY_EF_UPDATE);
	fake_stop(event, flags);
	displace(counters_of(event->pmu), event);
}

static inline void fake_disable(struct tally_engine_pmu *pmu)
{
	struct counters *counters = counters_of(pmu);
	counters->disabled[counters->fixture->cpu]++;
}

static inline void fake_enable(struct tally_engine_pmu *pmu)
{
	struct counters *counters = counters_of(pmu);
	assert_true(counters->disabled[counters->fixture->cpu]-- > 0);
}

static inline void fake_group_start(struct tally_engine_pmu *pmu)
{
	struct counters *counters = counters_of(pmu);
	assert_false(counters->batching);
	counters->batching = true;
	counters->batched = 0;
}

static inline int fake_group_commit(struct tally_engine_pmu *pmu)
{
	struct counters *counters = counters_of(pmu);
	assert_true(counters->batching);
	counters->commits++;
	for (unsigned i = 0; i < counters->batched; i++)
		if (!place(counters, counters->batch[i])) {
			while (i--)
				displace(counters, counters->batch[i]);
			return -ENGINE_EAGAIN;
		}
	counters->batching = false;
	return 0;
}

static inline void fake_group_cancel(struct tally_engine_pmu *pmu)
{
	struct counters *counters = counters_of(pmu);
	assert_true(counters->batching);
	counters->cancels++;
	counters->batching = false;
}

static inline void fake_switched(struct tally_engine_pmu *pmu, struct tally_engine_task *task,
				 bool in)
{
	(void)task;
	(void)in;
	counters_of(pmu)->switches++;
}

static inline void counters_init(struct counters *counters, struct engine_fixture *fixture,
				 const char *name, unsigned count, bool together)
{
	*counters = (struct counters){
		.pmu = { .name = name, .scope = TALLY_SCOPE_HARDWARE },
		.ops = { .event_init = fake_init,
			 .add = fake_add,
			 .del = fake_del,
			 .start = fake_start,
			 .stop = fake_stop,
			 .read = fake_read,
			 .disable = fake_disable,
			 .enable = fake_enable,
			 .switched = fake_switched },
		.fixture = fixture,
		.count = count,
		.together = together,
	};
	if (together) {
		counters->ops.group_start = fake_group_start;
		counters->ops.group_commit = fake_group_commit;
		counters->ops.group_cancel = fake_group_cancel;
	}
	counters->pmu.ops = &counters->ops;
	assert_int_equal(tally_engine_pmu_register(fixture->engine, &counters->pmu), 0);
}

/* Makes `n` occurrences that all counters of this CPU count. */
static inline void work(struct counters *counters, uint64_t n)
{
	unsigned cpu = counters->fixture->cpu;
	for (unsigned i = 0; i < counters->count; i++)
		if (counters->on[cpu][i] && !counters->on[cpu][i]->state)
			counters->on[cpu][i]->words[WORD_PENDING] += n;
}

/* --- the tests' machine --------------------------------------------------- */

struct machine {
	struct engine_fixture fixture;
	struct counters cpu, other; /* two PMUs */
};

static inline void start(struct machine *machine, unsigned cpus, unsigned counters)
{
	fixture_init(&machine->fixture, cpus);
	assert_true(fixture_start(&machine->fixture));
	counters_init(&machine->cpu, &machine->fixture, "counters", counters, true);
	counters_init(&machine->other, &machine->fixture, "other", 2, false);
}

static inline void end(struct machine *machine)
{
	for (unsigned cpu = 0; cpu < machine->fixture.host.cpus; cpu++) {
		assert_int_equal(machine->cpu.disabled[cpu], 0);
		assert_int_equal(machine->other.disabled[cpu], 0);
	}
	fixture_end(&machine->fixture);
}

static inline struct engine_event *event_of(struct machine *machine, int fd)
{
	assert_true(fd >= 0);
	return engine_file(machine->fixture.engine, fd)->event;
}

static inline int state_of(struct machine *machine, int fd)
{
	return event_of(machine, fd)->state;
}

static inline struct tally_attr attr_of(const struct counters *counters, uint64_t config,
					uint64_t flags)
{
	struct tally_attr attr = fixture_attr(counters->pmu.type, config);
	attr.flags = flags;
	attr.read_format = TIMES;
	return attr;
}

/* Opens an event on the calling task. */
static inline int open_on(struct machine *machine, const struct counters *counters, uint64_t config,
			  uint64_t flags, int group)
{
	struct tally_attr attr = attr_of(counters, config, flags);
	return fixture_open(&machine->fixture, &attr, group);
}

static inline int open_at(struct machine *machine, const struct counters *counters, uint64_t flags,
			  int32_t pid, int cpu, int group)
{
	struct tally_attr attr = attr_of(counters, 0, flags);
	return tally_engine_open(machine->fixture.engine, &attr, pid, cpu, group, 0);
}

struct reading {
	uint64_t value, enabled, running;
};

static inline struct reading read_of(struct machine *machine, int fd)
{
	struct reading reading = { 0 };
	assert_int_equal(tally_engine_read(machine->fixture.engine, fd, &reading, sizeof(reading)),
			 sizeof(reading));
	return reading;
}

static inline void control(struct machine *machine, int fd, unsigned request)
{
	assert_int_equal(tally_engine_ioctl(machine->fixture.engine, fd, request, 0), 0);
}

static inline void close_fd(struct machine *machine, int fd)
{
	assert_int_equal(tally_engine_close(machine->fixture.engine, fd), 0);
}

/* Lets `ns` pass in the current tasks; each CPU counts one occurrence in each nanosecond. */
static inline void pass(struct machine *machine, uint64_t ns)
{
	struct engine_fixture *fixture = &machine->fixture;
	unsigned back = fixture->cpu;
	for (unsigned cpu = 0; cpu < fixture->host.cpus; cpu++) {
		fixture->cpu = cpu;
		work(&machine->cpu, ns);
		work(&machine->other, ns);
	}
	fixture->cpu = back;
	fixture_advance(fixture, ns);
}

static inline void tick(struct machine *machine)
{
	struct engine_fixture *fixture = &machine->fixture;
	unsigned back = fixture->cpu;
	pass(machine, fixture->host.tick_ns);
	for (unsigned cpu = 0; cpu < fixture->host.cpus; cpu++) {
		fixture->cpu = cpu;
		if (!fixture->offline[cpu])
			fixture_tick(fixture);
	}
	fixture->cpu = back;
}

static inline unsigned random_below(uint64_t *state, unsigned limit)
{
	return (unsigned)(next_random(state) >> 33) % limit;
}

#endif
