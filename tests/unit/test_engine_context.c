/* The contexts that hold events, and how calls reach them: SPEC.md A5, H3, F4. */
#include "engine_counters.h"

/* --- CPUs where events run and are changed -------------------------------- */

/* A5, and Linux's behaviour (measured): an event of a task and a CPU is enabled while the task runs
 * on any CPU, and runs only on its own CPU. */
static void task_event_of_one_cpu_runs_there_alone(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 2, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int here = open_at(&machine, &machine.cpu, 0, 0, 0, -1),
	    there = open_at(&machine, &machine.cpu, 0, 0, 1, -1);
	pass(&machine, 100);
	assert_int_equal(state_of(&machine, there), INACTIVE);
	fixture_switch(fixture, NULL);
	pass(&machine, 1000); /* the task runs nowhere */
	tally_engine_migrate(fixture->task, 1);
	fixture_on(fixture, 1);
	fixture_switch(fixture, fixture->task);
	pass(&machine, 10);
	struct reading a = read_of(&machine, here), b = read_of(&machine, there);
	assert_int_equal(a.value, 100);
	assert_int_equal(a.running, 100);
	assert_int_equal(a.enabled, 110);
	assert_int_equal(b.value, 10);
	assert_int_equal(b.running, 10);
	assert_int_equal(b.enabled, 110);
	end(&machine);
}

/* F4 */
static void pmu_of_some_cpus_counts_there_alone(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 2, 1);
	struct engine_fixture *fixture = &machine.fixture;
	machine.cpu.mask[0] = 2;
	machine.cpu.pmu.cpus = machine.cpu.mask;
	machine.cpu.pmu.cpu_words = 1;
	machine.cpu.pmu.capabilities = TALLY_PMU_HETEROGENEOUS;
	int little = open_on(&machine, &machine.cpu, 0, 0, -1),
	    also = open_on(&machine, &machine.other, 0, 0, -1);
	tick(&machine);
	assert_int_equal(state_of(&machine, little), INACTIVE);
	assert_int_equal(state_of(&machine, also), ACTIVE);
	assert_int_equal(machine.cpu.adds, 0);
	fixture_switch(fixture, NULL);
	fixture_on(fixture, 1);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(state_of(&machine, little), ACTIVE);
	end(&machine);
}

/* H3.  Enabling, disabling, opening or closing an event of a task that runs on another CPU takes
 * effect at once. */
static void changes_go_to_the_events_cpu(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 2, 4);
	struct engine_fixture *fixture = &machine.fixture;
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	int32_t tid = tally_engine_task_identity(other)->tid;
	fixture_on(fixture, 1);
	fixture_switch(fixture, other);
	fixture_on(fixture, 0);
	int fd = open_at(&machine, &machine.cpu, 0, tid, -1, -1),
	    cpu = open_at(&machine, &machine.cpu, 0, -1, 1, -1);
	assert_int_equal(event_of(&machine, fd)->on_cpu, 1);
	assert_int_equal(event_of(&machine, cpu)->on_cpu, 1);
	pass(&machine, 10);
	unsigned reads = machine.cpu.reads;
	assert_int_equal(read_of(&machine, fd).value, 10);
	assert_int_equal(read_of(&machine, cpu).value, 10);
	/* the read happened on that CPU: fake_read() checks it */
	assert_int_equal(machine.cpu.reads, reads + 2);
	control(&machine, fd, TALLY_IOC_DISABLE);
	reads = machine.cpu.reads;
	assert_int_equal(read_of(&machine, fd).value, 10);
	assert_int_equal(machine.cpu.reads, reads);
	control(&machine, fd, TALLY_IOC_ENABLE);
	assert_int_equal(event_of(&machine, fd)->on_cpu, 1);
	fixture_on(fixture, 1);
	fixture_switch(fixture, NULL);
	fixture_on(fixture, 0);
	assert_int_equal(event_of(&machine, fd)->on_cpu, -1);
	control(&machine, fd, TALLY_IOC_DISABLE);
	control(&machine, fd, TALLY_IOC_ENABLE);
	assert_int_equal(state_of(&machine, fd), INACTIVE);
	assert_int_equal(read_of(&machine, fd).value, 10);
	end(&machine);
}

/* A task that moves between the decision to call its CPU and the arrival there. */
struct mover {
	struct machine *machine;
	struct tally_engine_task *task;
	unsigned from, to, moves;
};

static struct mover *mover; /* run_on() only has the fixture as an argument */

static void move_away(struct mover *moving)
{
	struct engine_fixture *fixture = &moving->machine->fixture;
	unsigned back = fixture->cpu;
	moving->moves--;
	fixture_on(fixture, moving->from);
	fixture_switch(fixture, NULL);
	fixture_on(fixture, moving->to);
	fixture_switch(fixture, moving->task);
	unsigned from = moving->from;
	moving->from = moving->to;
	moving->to = from;
	fixture_on(fixture, back);
}

static int run_on_late(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	if (mover && mover->moves && cpu == mover->from)
		move_away(mover);
	return fixture_run_on(host, cpu, function, argument);
}

static void a_task_that_moves_is_followed(void **state)
{
	(void)state;
	struct machine machine;
	fixture_init(&machine.fixture, 3);
	struct engine_fixture *fixture = &machine.fixture;
	fixture->host.run_on = run_on_late;
	assert_true(fixture_start(fixture));
	counters_init(&machine.cpu, fixture, "counters", 4, true);
	counters_init(&machine.other, fixture, "other", 2, false);
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	int32_t tid = tally_engine_task_identity(other)->tid;
	fixture_on(fixture, 1);
	fixture_switch(fixture, other);
	fixture_on(fixture, 0);
	struct mover moving = { &machine, other, 1, 2, 3 };
	mover = &moving;
	int fd = open_at(&machine, &machine.cpu, 0, tid, -1, -1);
	assert_int_equal(moving.moves, 0);
	assert_int_equal(event_of(&machine, fd)->on_cpu, moving.from);
	pass(&machine, 5);
	moving.moves = 2;
	assert_int_equal(read_of(&machine, fd).value, 5);
	moving.moves = 1;
	control(&machine, fd, TALLY_IOC_DISABLE);
	assert_int_equal(state_of(&machine, fd), OFF);
	moving.moves = 1;
	control(&machine, fd, TALLY_IOC_ENABLE);
	pass(&machine, 5);
	assert_int_equal(read_of(&machine, fd).value, 10);
	moving.moves = 1;
	close_fd(&machine, fd);
	mover = NULL;
	end(&machine);
}

/* A task that starts to run after the check that it doesn't, and before the lock. */
static uintptr_t irq_save_late(void *host)
{
	struct mover *moving = mover;
	if (moving && moving->moves) {
		struct engine_fixture *fixture = host;
		unsigned back = fixture->cpu;
		moving->moves = 0;
		fixture_on(fixture, moving->to);
		fixture_switch(fixture, moving->task);
		fixture_on(fixture, back);
	}
	return fixture_irq_save(host);
}

static void a_task_that_comes_to_run_is_met_there(void **state)
{
	(void)state;
	struct machine machine;
	fixture_init(&machine.fixture, 2);
	struct engine_fixture *fixture = &machine.fixture;
	fixture->host.irq_save = irq_save_late;
	assert_true(fixture_start(fixture));
	counters_init(&machine.cpu, fixture, "counters", 4, true);
	counters_init(&machine.other, fixture, "other", 2, false);
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	int32_t tid = tally_engine_task_identity(other)->tid;
	struct mover moving = { &machine, other, 0, 1, 1 };
	mover = &moving;
	int fd = open_at(&machine, &machine.cpu, 0, tid, -1, -1);
	assert_int_equal(moving.moves, 0);
	mover = NULL;
	assert_int_equal(event_of(&machine, fd)->on_cpu, 1);
	assert_non_null(machine.cpu.on[1][0]);
	pass(&machine, 5);
	assert_int_equal(read_of(&machine, fd).value, 5);
	end(&machine);
}

/* The last overflow of a REFRESH comes with the switch itself: the event is off before it could run
 * elsewhere. */
static void what_a_hit_wants_off_goes_off_at_the_switch(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 1);
	struct engine_fixture *fixture = &machine.fixture;
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_CONTEXT_SWITCHES);
	attr.sample_period = 1;
	attr.flags = TALLY_ATTR_DISABLED;
	int fd = fixture_open(fixture, &attr, -1);
	const struct engine_event *event = event_of(&machine, fd);
	assert_int_equal(tally_engine_ioctl(fixture->engine, fd, TALLY_IOC_REFRESH, 1), 0);
	assert_int_equal(event->state, ACTIVE);
	uintptr_t irq = fixture_irq_save(fixture);
	tally_engine_switch_out(fixture->engine, fixture->task, NULL, false);
	assert_int_equal(event->state, OFF); /* run_pending() comes later */
	fixture->current[0] = NULL;
	tally_engine_switch_in(fixture->engine, fixture->task, NULL);
	fixture_irq_restore(fixture, irq);
	fixture_run_pending(fixture);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(event->state, OFF);
	assert_int_equal(fixture_value(fixture, fd), 1);
	end(&machine);
}

static void throttling_ends_with_the_turn(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 1);
	struct engine_event *event = event_of(&machine, open_on(&machine, &machine.cpu, 0, 0, -1));
	event->interrupts = ENGINE_THROTTLED;
	fixture_switch(&machine.fixture, NULL);
	assert_int_equal(event->interrupts, ENGINE_THROTTLED);
	fixture_switch(&machine.fixture, machine.fixture.task);
	assert_int_equal(event->state, ACTIVE);
	assert_int_not_equal(event->interrupts, ENGINE_THROTTLED);
	end(&machine);
}

static void unplugged_cpu_keeps_its_events_counts(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 2, 1);
	struct engine_fixture *fixture = &machine.fixture;
	int fd = open_at(&machine, &machine.cpu, 0, -1, 1, -1),
	    waiting = open_at(&machine, &machine.cpu, 0, -1, 1, -1);
	pass(&machine, 10);
	fixture_on(fixture, 1);
	tally_engine_cpu_down(fixture->engine, 1);
	fixture->offline[1] = true;
	fixture_on(fixture, 0);
	pass(&machine, 100);
	assert_int_equal(read_of(&machine, fd).value, 10);
	assert_int_equal(read_of(&machine, fd).enabled, 10);
	assert_int_equal(read_of(&machine, waiting).enabled, 10);
	assert_int_equal(state_of(&machine, fd), OFF);
	control(&machine, fd, TALLY_IOC_ENABLE); /* succeeds without effect, as in Linux */
	fixture->offline[1] = false;
	fixture_on(fixture, 1);
	tally_engine_cpu_up(fixture->engine, 1);
	fixture_on(fixture, 0);
	control(&machine, fd, TALLY_IOC_DISABLE);
	control(&machine, fd, TALLY_IOC_ENABLE);
	tick(&machine);
	assert_int_equal(read_of(&machine, fd).value, 10);
	int again = open_at(&machine, &machine.cpu, 0, -1, 1, -1);
	pass(&machine, 3);
	assert_int_equal(read_of(&machine, again).value, 3);
	close_fd(&machine, waiting);
	end(&machine);
}

static uint64_t cgroup_ids[FIXTURE_TASKS]; /* by task, as the fixture numbers them */

static uint64_t cgroup_of_task(void *host, struct tally_engine_task *task)
{
	struct engine_fixture *fixture = host;
	for (unsigned i = 0; i < fixture->task_count; i++)
		if (fixture->tasks[i] == task)
			return cgroup_ids[i];
	return 0;
}

static int cgroup_of_fd(void *host, int fd, uint64_t *id)
{
	(void)host;
	*id = (uint64_t)fd;
	return 0;
}

static bool in_cgroup(void *host, struct tally_engine_task *task, uint64_t id)
{
	return cgroup_of_task(host, task) == id;
}

static void cgroup_event_counts_its_tasks_alone(void **state)
{
	(void)state;
	struct machine machine;
	fixture_init(&machine.fixture, 1);
	struct engine_fixture *fixture = &machine.fixture;
	fixture->host.cgroup = cgroup_of_task;
	fixture->host.cgroup_of_fd = cgroup_of_fd;
	fixture->host.in_cgroup = in_cgroup;
	cgroup_ids[0] = 7;
	cgroup_ids[1] = 8;
	assert_true(fixture_start(fixture));
	counters_init(&machine.cpu, fixture, "counters", 1, true);
	counters_init(&machine.other, fixture, "other", 2, false);
	struct tally_engine_task *other = fixture_stranger(fixture, "other");
	struct tally_attr attr = attr_of(&machine.cpu, 0, 0);
	int seven = tally_engine_open(fixture->engine, &attr, 7, 0, -1, TALLY_FLAG_PID_CGROUP);
	int eight = tally_engine_open(fixture->engine, &attr, 8, 0, -1, TALLY_FLAG_PID_CGROUP);
	pass(&machine, 1);
	fixture_switch(fixture, other);
	pass(&machine, 10);
	fixture_switch(fixture, NULL);
	pass(&machine, 100);
	fixture_switch(fixture, fixture->task);
	pass(&machine, 1000);
	struct reading a = read_of(&machine, seven), b = read_of(&machine, eight);
	assert_int_equal(a.value, 1001);
	assert_int_equal(a.enabled, 1001);
	assert_int_equal(a.running, 1001);
	assert_int_equal(b.value, 10);
	assert_int_equal(b.enabled, 10);
	assert_int_equal(b.running, 10);
	end(&machine);
}

static void pmu_hears_of_switches_where_it_has_events(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int fd = open_on(&machine, &machine.cpu, 0, 0, -1);
	fixture_switch(fixture, NULL);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(machine.cpu.switches, 2);
	assert_int_equal(machine.other.switches, 0);
	close_fd(&machine, fd);
	fixture_switch(fixture, NULL);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(machine.cpu.switches, 2);
	end(&machine);
}

/* After a PMU is unregistered, another gets its bit: contexts must not confuse the two. */
static void unregistered_pmu_is_forgotten(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int kept = open_on(&machine, &machine.cpu, 0, 0, -1),
	    gone = open_on(&machine, &machine.other, 0, 0, -1);
	assert_int_equal(tally_engine_pmu_unregister(fixture->engine, &machine.other.pmu),
			 -ENGINE_EBUSY);
	close_fd(&machine, gone);
	assert_int_equal(tally_engine_pmu_unregister(fixture->engine, &machine.other.pmu), 0);
	counters_init(&machine.other, fixture, "another", 2, false);
	fixture_switch(fixture, NULL);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(machine.other.switches, 0);
	pass(&machine, 5);
	assert_int_equal(read_of(&machine, kept).value, 5);
	end(&machine);
}

/* There are more PMUs than bits: the rest rotate and exclude together, and all count. */
static void pmus_without_number_count_too(void **state)
{
	(void)state;
	enum { MANY = 70 };
	struct machine machine;
	start(&machine, 1, 4);
	static struct counters many[MANY];
	static char names[MANY][8];
	int fd[MANY];
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "pmu%u", i);
		counters_init(&many[i], &machine.fixture, names[i], 1, i & 1);
	}
	for (unsigned i = 0; i < MANY; i++)
		fd[i] = open_on(&machine, &many[i], 0, 0, -1);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(state_of(&machine, fd[i]), ACTIVE);
		work(&many[i], i);
		assert_int_equal(read_of(&machine, fd[i]).value, i);
	}
	int second = open_on(&machine, &many[MANY - 1], 0, 0, -1);
	for (unsigned i = 0; i < MANY; i++)
		tick(&machine);
	assert_true(read_of(&machine, second).running > 0);
	fixture_switch(&machine.fixture, NULL);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(many[i].disabled[0], 0);
	fixture_switch(&machine.fixture, machine.fixture.task);
	end(&machine);
}

/* --- queues --------------------------------------------------------------- */

/* A task has a group for each of a thousand CPUs.  A CPU sees the groups that it may run, in the
 * order of their turns. */
static void a_cpu_walks_its_own_groups_in_order(void **state)
{
	(void)state;
	enum { GROUPS = 4000, CPUS = 1024 };
	struct engine_fixture fixture;
	fixture_init(&fixture, 1);
	static struct tally_engine engine;
	static struct tally_engine_task task;
	static struct engine_event events[GROUPS];
	static struct engine_context context;
	engine = (struct tally_engine){ .host = fixture.host };
	engine.host.cpus = CPUS;
	engine_context_init(&context, &engine, &task, -1);
	uint64_t seed = 5;
	for (unsigned i = 0; i < GROUPS; i++) {
		struct engine_event *event = &events[i];
		*event = (struct engine_event){ .engine = &engine,
						.context = &context,
						.leader = event };
		event->cpu = i % 100 ? (int)random_below(&seed, CPUS) : -1;
		struct engine_queue_table table;
		fixture.fail_at = i % 50 == 0; /* continues with the existing table */
		engine_queue_table_new(&context, event, &table);
		fixture.fail_at = 0;
		engine_queue_table_place(&context, &table);
		engine_queue_table_free(&engine, &table);
		engine_queue_insert(event);
	}
	assert_int_equal(context.by_cpu_size, CPUS);
	for (unsigned i = 0; i < GROUPS; i += 3)
		engine_queue_rotate(&events[i]);
	for (unsigned i = 0; i < GROUPS; i += 7)
		engine_queue_remove(&events[i]);
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		struct engine_queue_walk walk;
		unsigned seen = 0, expected = 0;
		uint64_t turn = 0;
		engine_queue_walk_begin(&walk, &context, cpu, false);
		for (struct engine_event *event; (event = engine_queue_walk_next(&walk)); seen++) {
			assert_true(event->cpu == -1 || event->cpu == (int)cpu);
			assert_true(event->turn > turn);
			turn = event->turn;
		}
		for (unsigned i = 0; i < GROUPS; i++)
			expected += i % 7 && (events[i].cpu == -1 || events[i].cpu == (int)cpu);
		assert_int_equal(seen, expected);
	}
	struct engine_queue_table table = { context.by_cpu, context.by_cpu_size };
	engine_queue_table_free(&engine, &table);
	assert_int_equal(fixture.held_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(task_event_of_one_cpu_runs_there_alone),
		cmocka_unit_test(pmu_of_some_cpus_counts_there_alone),
		cmocka_unit_test(changes_go_to_the_events_cpu),
		cmocka_unit_test(a_task_that_moves_is_followed),
		cmocka_unit_test(a_task_that_comes_to_run_is_met_there),
		cmocka_unit_test(what_a_hit_wants_off_goes_off_at_the_switch),
		cmocka_unit_test(throttling_ends_with_the_turn),
		cmocka_unit_test(unplugged_cpu_keeps_its_events_counts),
		cmocka_unit_test(cgroup_event_counts_its_tasks_alone),
		cmocka_unit_test(pmu_hears_of_switches_where_it_has_events),
		cmocka_unit_test(unregistered_pmu_is_forgotten),
		cmocka_unit_test(pmus_without_number_count_too),
		cmocka_unit_test(a_cpu_walks_its_own_groups_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
