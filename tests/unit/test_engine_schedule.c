/* Which events are on, and when: SPEC.md B4 to B7, H3, F4. */
#include "engine_counters.h"

/* --- groups --------------------------------------------------------------------------------------------------------------------- */

/* B5 */
static void group_is_all_or_nothing(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 2);
	int leader = open_on(&machine, &machine.cpu, 0, 0, -1), second = open_on(&machine, &machine.cpu, 0, 0, leader);
	assert_int_equal(state_of(&machine, leader), ACTIVE);
	assert_int_equal(state_of(&machine, second), ACTIVE);
	int third = open_on(&machine, &machine.cpu, 0, 0, leader);
	assert_int_equal(state_of(&machine, leader), INACTIVE);
	assert_int_equal(state_of(&machine, second), INACTIVE);
	assert_int_equal(state_of(&machine, third), INACTIVE);
	assert_true(machine.cpu.cancels > 0);
	tick(&machine);
	assert_int_equal(read_of(&machine, second).running, 0);
	close_fd(&machine, third);
	tick(&machine);
	assert_int_equal(state_of(&machine, leader), ACTIVE);
	assert_int_equal(state_of(&machine, second), ACTIVE);
	pass(&machine, 1000);
	struct reading a = read_of(&machine, leader), b = read_of(&machine, second);
	assert_int_equal(a.running, 1000);
	assert_memory_equal(&a, &b, sizeof(a));
	end(&machine);
}

/* B5, on a PMU whose add() decides: what was added is deleted again, members of software too. */
static void group_without_a_transaction_is_undone(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 2);
	struct tally_attr software = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	int leader = fixture_open(&machine.fixture, &software, -1);
	int hardware[3];
	for (unsigned i = 0; i < 3; i++) {
		hardware[i] = open_on(&machine, &machine.other, 0, 0, leader);
		assert_int_equal(state_of(&machine, leader), i < 2 ? ACTIVE : INACTIVE);
	}
	fixture_hit(&machine.fixture, TALLY_SW_PAGE_FAULTS, 5);
	assert_int_equal(fixture_value(&machine.fixture, leader), 0);
	assert_null(machine.other.on[0][0]);
	assert_null(machine.other.on[0][1]);
	close_fd(&machine, hardware[0]);
	tick(&machine);
	fixture_hit(&machine.fixture, TALLY_SW_PAGE_FAULTS, 5);
	assert_int_equal(fixture_value(&machine.fixture, leader), 5);
	end(&machine);
}

/* B4 */
static void disabled_leader_stops_the_group(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	int leader = open_on(&machine, &machine.cpu, 0, 0, -1), member = open_on(&machine, &machine.cpu, 0, 0, leader);
	pass(&machine, 100);
	control(&machine, leader, TALLY_IOC_DISABLE);
	pass(&machine, 1000);
	assert_int_equal(state_of(&machine, leader), OFF);
	assert_int_equal(state_of(&machine, member), INACTIVE);
	struct reading reading = read_of(&machine, member);
	assert_int_equal(reading.value, 100);
	assert_int_equal(reading.enabled, 100);
	control(&machine, leader, TALLY_IOC_ENABLE);
	pass(&machine, 10);
	reading = read_of(&machine, member);
	assert_int_equal(reading.value, 110);
	assert_int_equal(reading.enabled, 110);
	assert_int_equal(reading.running, 110);
	end(&machine);
}

/* B4 */
static void disabled_member_stops_alone(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	int leader = open_on(&machine, &machine.cpu, 0, 0, -1), member = open_on(&machine, &machine.cpu, 0, 0, leader);
	pass(&machine, 100);
	control(&machine, member, TALLY_IOC_DISABLE);
	pass(&machine, 10);
	assert_int_equal(read_of(&machine, leader).value, 110);
	assert_int_equal(read_of(&machine, member).value, 100);
	assert_int_equal(read_of(&machine, member).enabled, 100);
	control(&machine, leader, TALLY_IOC_DISABLE);
	control(&machine, leader, TALLY_IOC_ENABLE);
	pass(&machine, 1);
	assert_int_equal(read_of(&machine, member).value, 100);
	control(&machine, member, TALLY_IOC_ENABLE);
	pass(&machine, 1);
	assert_int_equal(read_of(&machine, leader).value, 112);
	assert_int_equal(read_of(&machine, member).value, 101);
	end(&machine);
}

static void members_of_a_closed_leader_count_on_alone(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	int leader = open_on(&machine, &machine.cpu, 0, 0, -1), a = open_on(&machine, &machine.cpu, 0, 0, leader),
	    b = open_on(&machine, &machine.other, 0, TALLY_ATTR_DISABLED, -1);
	pass(&machine, 10);
	close_fd(&machine, leader);
	assert_int_equal(state_of(&machine, a), ACTIVE);
	pass(&machine, 10);
	assert_int_equal(read_of(&machine, a).value, 20);
	control(&machine, a, TALLY_IOC_DISABLE);
	control(&machine, a, TALLY_IOC_ENABLE);
	pass(&machine, 10);
	assert_int_equal(read_of(&machine, a).value, 30);
	/* Measured on Linux: the time of a disabled leader's member begins when it is let go, the count when it is next
	 * scheduled. */
	int member = open_on(&machine, &machine.other, 0, 0, b);
	pass(&machine, 10);
	assert_int_equal(read_of(&machine, member).enabled, 0);
	close_fd(&machine, b);
	pass(&machine, 10);
	assert_int_equal(read_of(&machine, member).enabled, 10);
	assert_int_equal(read_of(&machine, member).running, 0);
	tick(&machine);
	pass(&machine, 10);
	assert_int_equal(read_of(&machine, member).running, 10);
	end(&machine);
}

/* A constraint that shows only when all members are known. */
static void group_is_placed_whole_by_constraint(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 2);
	int first = open_on(&machine, &machine.cpu, 1, 0, -1), fits = open_on(&machine, &machine.cpu, 2, 0, first);
	assert_int_equal(state_of(&machine, fits), ACTIVE);
	int leader = open_on(&machine, &machine.cpu, 1, 0, -1), clash = open_on(&machine, &machine.cpu, 1, 0, leader);
	close_fd(&machine, first);
	close_fd(&machine, fits);
	tick(&machine);
	assert_int_equal(state_of(&machine, leader), INACTIVE);
	assert_int_equal(state_of(&machine, clash), INACTIVE);
	control(&machine, clash, TALLY_IOC_DISABLE);
	tick(&machine);
	assert_int_equal(state_of(&machine, leader), ACTIVE);
	end(&machine);
}

/* --- scarcity ---------------------------------------------------------------------------------------------------------------------- */

/* B6 */
static void rotation_is_fair(void **state)
{
	(void)state;
	enum { EVENTS = 5, COUNTERS = 2, TICKS = 500 };
	for (unsigned of_cpu = 0; of_cpu < 2; of_cpu++) {
		struct machine machine;
		start(&machine, 1, COUNTERS);
		int fd[EVENTS];
		for (unsigned i = 0; i < EVENTS; i++)
			fd[i] = open_at(&machine, &machine.cpu, 0, of_cpu ? -1 : 0, of_cpu ? 0 : -1, -1);
		uint64_t begin = machine.fixture.now_ns;
		for (unsigned i = 0; i < TICKS; i++)
			tick(&machine);
		uint64_t passed = machine.fixture.now_ns - begin, turn = machine.fixture.host.tick_ns;
		for (unsigned i = 0; i < EVENTS; i++) {
			struct reading reading = read_of(&machine, fd[i]);
			assert_int_equal(reading.enabled, passed);
			assert_in_range(reading.running, passed * COUNTERS / EVENTS - 2 * turn,
					passed * COUNTERS / EVENTS + 2 * turn);
			assert_int_equal(reading.value, reading.running);
		}
		end(&machine);
	}
}

/* B6 */
static void only_the_pmu_without_room_rotates(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 2);
	int fd[3], calm[2], pinned = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_PINNED, -1);
	for (unsigned i = 0; i < 3; i++)
		fd[i] = open_on(&machine, &machine.cpu, 0, 0, -1);
	for (unsigned i = 0; i < 2; i++)
		calm[i] = open_on(&machine, &machine.other, 0, 0, -1);
	struct reading before = read_of(&machine, pinned);
	unsigned adds = machine.other.adds;
	for (unsigned i = 0; i < 30; i++)
		tick(&machine);
	assert_int_equal(machine.other.adds, adds); /* not even taken off */
	for (unsigned i = 0; i < 2; i++) {
		struct reading reading = read_of(&machine, calm[i]);
		assert_int_equal(reading.enabled, reading.running);
	}
	struct reading reading = read_of(&machine, pinned);
	assert_int_equal(reading.running - before.running, 30 * machine.fixture.host.tick_ns);
	uint64_t sum = 0;
	for (unsigned i = 0; i < 3; i++)
		sum += read_of(&machine, fd[i]).running;
	assert_int_equal(sum, 30 * machine.fixture.host.tick_ns); /* the one counter that is left */
	end(&machine);
}

/* Small groups must not starve a large one that waits: after it, nobody of that PMU is tried. */
static void large_group_is_not_starved(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	int large = -1, small[5];
	for (unsigned i = 0; i < 5; i++)
		small[i] = open_on(&machine, &machine.cpu, 0, 0, -1);
	for (unsigned i = 0; i < 4; i++) {
		int fd = open_on(&machine, &machine.cpu, 0, 0, large);
		large = large < 0 ? fd : large;
	}
	for (unsigned i = 0; i < 60; i++)
		tick(&machine);
	assert_in_range(read_of(&machine, large).running, 60 / 6 * machine.fixture.host.tick_ns / 2, UINT64_MAX);
	assert_true(read_of(&machine, small[4]).running > 0);
	end(&machine);
}

/* B6: value × enabled / running comes to the truth, whatever is multiplexed with what. */
static void scaled_counts_converge(void **state)
{
	(void)state;
	uint64_t seed = 20240229;
	for (unsigned round = 0; round < 20; round++) {
		struct machine machine;
		start(&machine, 1, 1 + random_below(&seed, 6));
		int fd[40];
		unsigned events = 0;
		for (unsigned group = 0; group < 8; group++) {
			int leader = -1;
			for (unsigned i = random_below(&seed, machine.cpu.count) + 1; i; i--) {
				bool of_cpu = group & 1;
				int member = open_at(&machine, &machine.cpu, 0, of_cpu ? -1 : 0, of_cpu ? 0 : -1, leader);
				leader = leader < 0 ? member : leader;
				fd[events++] = member;
			}
		}
		uint64_t truth = 0;
		struct reading first[40];
		for (unsigned i = 0; i < events; i++)
			first[i] = read_of(&machine, fd[i]);
		for (unsigned i = 0; i < 4000; i++) {
			uint64_t n = random_below(&seed, 2000);
			work(&machine.cpu, n);
			truth += n;
			fixture_advance(&machine.fixture, machine.fixture.host.tick_ns);
			fixture_tick(&machine.fixture);
		}
		for (unsigned i = 0; i < events; i++) {
			struct reading reading = read_of(&machine, fd[i]);
			assert_int_equal(first[i].value, 0);
			if (!reading.running) /* a task's group that the CPU's leave no room ever */
				continue;
			double scaled = (double)reading.value * (double)reading.enabled / (double)reading.running;
			double share = (double)reading.running / (double)reading.enabled;
			double tolerance = share > 0.05 ? 0.1 : 0.5;
			assert_true(scaled > (1 - tolerance) * (double)truth && scaled < (1 + tolerance) * (double)truth);
		}
		end(&machine);
	}
}

/* B7 */
static void pinned_is_on_or_in_error(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 1);
	struct engine_fixture *fixture = &machine.fixture;
	int flexible = open_on(&machine, &machine.cpu, 0, 0, -1);
	int first = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_PINNED, -1);
	assert_int_equal(state_of(&machine, flexible), INACTIVE); /* gave way */
	assert_int_equal(state_of(&machine, first), ACTIVE);
	pass(&machine, 10);
	int second = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_PINNED, -1);
	fixture_run_pending(fixture);
	assert_int_equal(state_of(&machine, first), ACTIVE);
	assert_int_equal(state_of(&machine, second), ERROR);
	struct reading reading;
	struct tally_engine_file *file;
	assert_int_equal(tally_engine_read(fixture->engine, second, &reading, sizeof(reading)), 0);
	assert_int_equal(tally_engine_poll(fixture->engine, second, &file) & 16, 16);
	/* DISABLE does not leave ERROR, ENABLE does: into ERROR again as long as there is no room. */
	control(&machine, second, TALLY_IOC_DISABLE);
	assert_int_equal(state_of(&machine, second), ERROR);
	control(&machine, second, TALLY_IOC_ENABLE);
	assert_int_equal(state_of(&machine, second), ERROR);
	close_fd(&machine, first);
	tick(&machine);
	assert_int_equal(state_of(&machine, second), ERROR);
	control(&machine, second, TALLY_IOC_ENABLE);
	assert_int_equal(state_of(&machine, second), ACTIVE);
	pass(&machine, 7);
	reading = read_of(&machine, second);
	assert_int_equal(reading.value, 7);
	assert_int_equal(reading.enabled, 7); /* not while in ERROR */
	end(&machine);
}

/* The order of the four lists. */
static void ranks_are_kept(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 1);
	struct engine_fixture *fixture = &machine.fixture;
	int task = open_at(&machine, &machine.cpu, 0, 0, -1, -1);
	assert_int_equal(state_of(&machine, task), ACTIVE);
	int cpu = open_at(&machine, &machine.cpu, 0, -1, 0, -1);
	assert_int_equal(state_of(&machine, cpu), ACTIVE);
	assert_int_equal(state_of(&machine, task), INACTIVE);
	int pinned_task = open_at(&machine, &machine.cpu, TALLY_ATTR_PINNED, 0, -1, -1);
	assert_int_equal(state_of(&machine, pinned_task), ACTIVE);
	assert_int_equal(state_of(&machine, cpu), INACTIVE);
	/* The CPU's takes the place again when the task is away, at the tick. */
	const struct engine_event *event = event_of(&machine, cpu);
	fixture_switch(fixture, NULL);
	assert_int_equal(event->state, INACTIVE);
	tick(&machine);
	assert_int_equal(event->state, ACTIVE);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(state_of(&machine, pinned_task), ACTIVE);
	assert_int_equal(state_of(&machine, cpu), INACTIVE);
	int pinned_cpu = open_at(&machine, &machine.cpu, TALLY_ATTR_PINNED, -1, 0, -1);
	assert_int_equal(state_of(&machine, pinned_cpu), ACTIVE);
	assert_int_equal(state_of(&machine, pinned_task), ERROR);
	end(&machine);
}

/* B7 */
static void exclusive_is_alone_on_its_pmu(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	int ordinary = open_on(&machine, &machine.cpu, 0, 0, -1), exclusive = open_on(&machine, &machine.cpu, 0,
										      TALLY_ATTR_EXCLUSIVE, -1);
	int elsewhere = open_on(&machine, &machine.other, 0, 0, -1);
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	int software = fixture_open(&machine.fixture, &attr, -1);
	unsigned together = 0;
	for (unsigned i = 0; i < 20; i++) {
		int a = state_of(&machine, ordinary), b = state_of(&machine, exclusive);
		together += a == ACTIVE && b == ACTIVE;
		assert_true(a == ACTIVE || b == ACTIVE);
		assert_int_equal(state_of(&machine, elsewhere), ACTIVE);
		assert_int_equal(state_of(&machine, software), ACTIVE);
		tick(&machine);
	}
	assert_int_equal(together, 0);
	uint64_t running = read_of(&machine, exclusive).running;
	assert_int_equal(running, read_of(&machine, ordinary).running);
	/* Its last leave frees the PMU. */
	while (state_of(&machine, exclusive) != ACTIVE)
		tick(&machine);
	close_fd(&machine, exclusive);
	tick(&machine);
	assert_int_equal(state_of(&machine, ordinary), ACTIVE);
	int another = open_on(&machine, &machine.cpu, 0, 0, -1);
	assert_int_equal(state_of(&machine, another), ACTIVE);
	end(&machine);
}

/* --- where ----------------------------------------------------------------------------------------------------------------------------- */

/* A5, and what Linux does (measured): such an event is enabled while its task runs anywhere, and runs on its CPU. */
static void task_event_of_one_cpu_runs_there_alone(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 2, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int here = open_at(&machine, &machine.cpu, 0, 0, 0, -1), there = open_at(&machine, &machine.cpu, 0, 0, 1, -1);
	pass(&machine, 100);
	assert_int_equal(state_of(&machine, there), INACTIVE);
	fixture_switch(fixture, NULL);
	pass(&machine, 1000); /* nowhere */
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
	int little = open_on(&machine, &machine.cpu, 0, 0, -1), also = open_on(&machine, &machine.other, 0, 0, -1);
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

/* H3; and what is enabled, disabled, opened or closed on a running task of another CPU is so at once. */
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
	int fd = open_at(&machine, &machine.cpu, 0, tid, -1, -1), cpu = open_at(&machine, &machine.cpu, 0, -1, 1, -1);
	assert_int_equal(event_of(&machine, fd)->on_cpu, 1);
	assert_int_equal(event_of(&machine, cpu)->on_cpu, 1);
	pass(&machine, 10);
	unsigned reads = machine.cpu.reads;
	assert_int_equal(read_of(&machine, fd).value, 10);
	assert_int_equal(read_of(&machine, cpu).value, 10);
	assert_int_equal(machine.cpu.reads, reads + 2); /* the PMU was asked, there: fake_read() looks where */
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

/* A task that moves between the decision to go to its CPU and the arrival there. */
struct mover {
	struct machine *machine;
	struct tally_engine_task *task;
	unsigned from, to, moves;
};

static struct mover *mover; /* run_on() gets the fixture alone */

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

static void unplugged_cpu_keeps_its_events_counts(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 2, 1);
	struct engine_fixture *fixture = &machine.fixture;
	int fd = open_at(&machine, &machine.cpu, 0, -1, 1, -1), waiting = open_at(&machine, &machine.cpu, 0, -1, 1, -1);
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
	control(&machine, fd, TALLY_IOC_ENABLE); /* is no error, and of no use: as Linux */
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

static uint64_t cgroup_ids[FIXTURE_TASKS]; /* by task, as the fixture has them */

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

/* The bit of a PMU that went belongs to another: contexts must not take one for the other. */
static void unregistered_pmu_is_forgotten(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int kept = open_on(&machine, &machine.cpu, 0, 0, -1), gone = open_on(&machine, &machine.other, 0, 0, -1);
	assert_int_equal(tally_engine_pmu_unregister(fixture->engine, &machine.other.pmu), -ENGINE_EBUSY);
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

/* More PMUs than have bits of their own: the rest rotate and exclude as one, and all count. */
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

/* --- queues ---------------------------------------------------------------------------------------------------------------------------------- */

/* A task with a group for each of a thousand CPUs: a CPU sees those that it may run, in the order of their turns. */
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
		*event = (struct engine_event){ .engine = &engine, .context = &context, .leader = event };
		event->cpu = i % 100 ? (int)random_below(&seed, CPUS) : -1;
		struct engine_queue_table table;
		fixture.fail_at = i % 50 == 0; /* goes on with the table that it has */
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
		cmocka_unit_test(group_is_all_or_nothing),
		cmocka_unit_test(group_without_a_transaction_is_undone),
		cmocka_unit_test(disabled_leader_stops_the_group),
		cmocka_unit_test(disabled_member_stops_alone),
		cmocka_unit_test(members_of_a_closed_leader_count_on_alone),
		cmocka_unit_test(group_is_placed_whole_by_constraint),
		cmocka_unit_test(rotation_is_fair),
		cmocka_unit_test(only_the_pmu_without_room_rotates),
		cmocka_unit_test(large_group_is_not_starved),
		cmocka_unit_test(scaled_counts_converge),
		cmocka_unit_test(pinned_is_on_or_in_error),
		cmocka_unit_test(ranks_are_kept),
		cmocka_unit_test(exclusive_is_alone_on_its_pmu),
		cmocka_unit_test(task_event_of_one_cpu_runs_there_alone),
		cmocka_unit_test(pmu_of_some_cpus_counts_there_alone),
		cmocka_unit_test(changes_go_to_the_events_cpu),
		cmocka_unit_test(a_task_that_moves_is_followed),
		cmocka_unit_test(unplugged_cpu_keeps_its_events_counts),
		cmocka_unit_test(cgroup_event_counts_its_tasks_alone),
		cmocka_unit_test(pmu_hears_of_switches_where_it_has_events),
		cmocka_unit_test(unregistered_pmu_is_forgotten),
		cmocka_unit_test(pmus_without_number_count_too),
		cmocka_unit_test(a_cpu_walks_its_own_groups_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
