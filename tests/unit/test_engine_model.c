/* Random opens, switches, ticks and controls, compared with a slow model: SPEC.md B4, B5, B7, H1,
 * H3, times, counts. */
#include "engine_counters.h"

/* --- random schedules against a model ------------------------------------- */

enum { MODEL_EVENTS = 40, MODEL_TASKS = 6, MODEL_CPUS = 3 };

/* The expected state of an event, computed from its PMU's counters at each step. */
struct expected {
	int fd; /* -1: free */
	bool enabled, pinned;
	int leader; /* index of the leader */
	int task, cpu; /* index or -1; CPU or -1 */
	uint64_t value, time_enabled, time_running;
};

struct model {
	struct machine machine;
	struct expected events[MODEL_EVENTS];
	struct tally_engine_task *tasks[MODEL_TASKS];
	uint64_t seed;
};

static bool is_on(struct model *model, const struct expected *expected)
{
	return event_of(&model->machine, expected->fd)->hw.index >= 0;
}

static int cpu_of(struct model *model, const struct expected *expected)
{
	if (expected->task < 0)
		return expected->cpu;
	for (unsigned cpu = 0; cpu < MODEL_CPUS; cpu++)
		if (model->machine.fixture.current[cpu] == model->tasks[expected->task])
			return (int)cpu;
	return -1;
}

/* Checks the conditions that hold at every moment. */
static void check(struct model *model)
{
	for (unsigned i = 0; i < MODEL_EVENTS; i++) {
		struct expected *expected = &model->events[i],
				*leader = &model->events[expected->leader];
		if (expected->fd < 0)
			continue;
		struct engine_event *event = event_of(&model->machine, expected->fd);
		bool on = is_on(model, expected);
		assert_int_equal(on, event->state == ENGINE_EVENT_ACTIVE);
		int cpu = cpu_of(model, expected);
		bool may = cpu >= 0 && (expected->cpu < 0 || expected->cpu == cpu);
		assert_true(!on || (may && expected->enabled && leader->enabled));
		/* Members are on together with their leader. */
		assert_true(!expected->enabled || on == is_on(model, leader));
		assert_true(expected->enabled || !on);
		if (expected->pinned && expected->enabled && may)
			assert_true(on || event->state == ENGINE_EVENT_ERROR);
		if (on)
			assert_int_equal(event->on_cpu, cpu);
	}
}

static void model_pass(struct model *model)
{
	uint64_t ns = 1 + random_below(&model->seed, 1000);
	for (unsigned i = 0; i < MODEL_EVENTS; i++) {
		struct expected *expected = &model->events[i],
				*leader = &model->events[expected->leader];
		if (expected->fd < 0)
			continue;
		bool error = event_of(&model->machine, leader->fd)->state == ENGINE_EVENT_ERROR;
		if (expected->enabled && leader->enabled && !error && cpu_of(model, expected) >= 0)
			expected->time_enabled += ns;
		if (is_on(model, expected)) {
			expected->time_running += ns;
			expected->value += ns;
		}
	}
	pass(&model->machine, ns);
}

static void model_open(struct model *model)
{
	unsigned free = 0;
	while (free < MODEL_EVENTS && model->events[free].fd >= 0)
		free++;
	if (free == MODEL_EVENTS)
		return;
	struct expected *expected = &model->events[free];
	*expected = (struct expected){ .fd = -1, .leader = (int)free, .task = -1, .cpu = -1 };
	unsigned other = random_below(&model->seed, MODEL_EVENTS);
	bool joins = random_below(&model->seed, 2) && model->events[other].fd >= 0 &&
		     model->events[other].leader == (int)other && !model->events[other].pinned;
	if (joins) {
		expected->leader = (int)other;
		expected->task = model->events[other].task;
		expected->cpu = model->events[other].cpu;
	} else {
		expected->task = (int)random_below(&model->seed, MODEL_TASKS + 2);
		expected->task = expected->task < MODEL_TASKS ? expected->task : -1;
		if (expected->task < 0 || !random_below(&model->seed, 3))
			expected->cpu = (int)random_below(&model->seed, MODEL_CPUS);
		expected->pinned = !random_below(&model->seed, 5);
	}
	expected->enabled = random_below(&model->seed, 3);
	uint64_t flags = (expected->enabled ? 0 : TALLY_ATTR_DISABLED) |
			 (expected->pinned ? TALLY_ATTR_PINNED : 0);
	struct counters *pmu;
	if (joins)
		pmu = ENGINE_CONTAINER(event_of(&model->machine, model->events[other].fd)->hw.pmu,
				       struct counters, pmu);
	else
		pmu = random_below(&model->seed, 3) ? &model->machine.cpu : &model->machine.other;
	int32_t pid = expected->task < 0
			      ? -1
			      : tally_engine_task_identity(model->tasks[expected->task])->tid;
	expected->fd = open_at(&model->machine, pmu, flags, pid, expected->cpu,
			       joins ? model->events[other].fd : -1);
	assert_true(expected->fd >= 0);
}

static void model_close(struct model *model, unsigned i)
{
	struct expected *expected = &model->events[i];
	close_fd(&model->machine, expected->fd);
	expected->fd = -1;
	for (unsigned j = 0; j < MODEL_EVENTS; j++)
		if (model->events[j].fd >= 0 && model->events[j].leader == (int)i)
			model->events[j].leader = (int)j;
}

/* Reads as the first task, which owns the descriptors, wherever it runs. */
static void model_as_owner(struct model *model)
{
	struct engine_fixture *fixture = &model->machine.fixture;
	for (unsigned cpu = 0; cpu < MODEL_CPUS; cpu++)
		if (fixture->current[cpu] == fixture->task) {
			fixture_on(fixture, cpu);
			return;
		}
	fixture_on(fixture, 0);
	fixture_switch(fixture, fixture->task);
}

static void model_switch(struct model *model)
{
	struct engine_fixture *fixture = &model->machine.fixture;
	fixture_on(fixture, random_below(&model->seed, MODEL_CPUS));
	if (fixture->current[fixture->cpu] == fixture->task)
		return; /* the first task stays, to read */
	unsigned which = random_below(&model->seed, MODEL_TASKS + 1);
	struct tally_engine_task *next = which < MODEL_TASKS ? model->tasks[which] : NULL;
	for (unsigned cpu = 0; cpu < MODEL_CPUS; cpu++)
		if (next && fixture->current[cpu] == next)
			return;
	fixture_switch(fixture, next);
}

static void model_read(struct model *model, unsigned i)
{
	struct expected *expected = &model->events[i];
	if (event_of(&model->machine, expected->fd)->state == ENGINE_EVENT_ERROR) {
		uint64_t words[3];
		assert_int_equal(tally_engine_read(model->machine.fixture.engine, expected->fd,
						   words, sizeof(words)),
				 0);
		return;
	}
	struct reading reading = read_of(&model->machine, expected->fd);
	assert_int_equal(reading.value, expected->value);
	assert_int_equal(reading.enabled, expected->time_enabled);
	assert_int_equal(reading.running, expected->time_running);
}

static void model_step(struct model *model)
{
	unsigned what = random_below(&model->seed, 100),
		 i = random_below(&model->seed, MODEL_EVENTS);
	bool open = model->events[i].fd >= 0;
	model_as_owner(model);
	if (what < 20)
		model_open(model);
	else if (what < 50)
		model_switch(model);
	else if (what < 60)
		for (unsigned cpu = 0; cpu < MODEL_CPUS; cpu++) {
			fixture_on(&model->machine.fixture, cpu);
			fixture_tick(&model->machine.fixture);
		}
	else if (what < 70 && open)
		model_read(model, i);
	else if (what < 80 && open)
		model_close(model, i);
	else if (what < 90 && open) {
		control(&model->machine, model->events[i].fd, TALLY_IOC_ENABLE);
		model->events[i].enabled = true;
	} else if (open &&
		   event_of(&model->machine, model->events[i].fd)->state != ENGINE_EVENT_ERROR) {
		control(&model->machine, model->events[i].fd, TALLY_IOC_DISABLE);
		model->events[i].enabled = false;
	}
	model_as_owner(model);
	check(model);
	model_pass(model);
}

/* B4, B5, B7, H1, H3 and all times and counts. */
static void random_schedules_agree_with_a_model(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 12; round++) {
		static struct model model;
		memset(&model, 0, sizeof(model));
		start(&model.machine, MODEL_CPUS, 1 + round % 5);
		model.seed = 1000 + round;
		for (unsigned i = 0; i < MODEL_EVENTS; i++)
			model.events[i].fd = -1;
		for (unsigned i = 0; i < MODEL_TASKS; i++)
			model.tasks[i] = i ? fixture_stranger(&model.machine.fixture, "task")
					   : model.machine.fixture.task;
		for (unsigned step = 0; step < 3000; step++)
			model_step(&model);
		for (unsigned i = 0; i < MODEL_EVENTS; i++)
			if (model.events[i].fd >= 0)
				model_read(&model, i);
		end(&model.machine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_schedules_agree_with_a_model),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
