/* Which events are on, and which wait: SPEC.md B4 to B7. */
#include "engine_counters.h"

/* --- groups --------------------------------------------------------------- */

/* B5 */
static void group_is_all_or_nothing(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 2);
	int leader = open_on(&machine, &machine.cpu, 0, 0, -1),
	    second = open_on(&machine, &machine.cpu, 0, 0, leader);
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

/* B5, on a PMU whose add() decides: events already added are deleted again, software members
 * too. */
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
	int leader = open_on(&machine, &machine.cpu, 0, 0, -1),
	    member = open_on(&machine, &machine.cpu, 0, 0, leader);
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
	int leader = open_on(&machine, &machine.cpu, 0, 0, -1),
	    member = open_on(&machine, &machine.cpu, 0, 0, leader);
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
	int leader = open_on(&machine, &machine.cpu, 0, 0, -1),
	    a = open_on(&machine, &machine.cpu, 0, 0, leader),
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
	/* Measured on Linux: a disabled leader's member becomes a leader when the leader closes;
	 * its time begins then, its count when it is next scheduled. */
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

/* The constraint shows only when all members are known. */
static void group_is_placed_whole_by_constraint(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 2);
	int first = open_on(&machine, &machine.cpu, 1, 0, -1),
	    fits = open_on(&machine, &machine.cpu, 2, 0, first);
	assert_int_equal(state_of(&machine, fits), ACTIVE);
	int leader = open_on(&machine, &machine.cpu, 1, 0, -1),
	    clash = open_on(&machine, &machine.cpu, 1, 0, leader);
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

/* --- scarcity ------------------------------------------------------------- */

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
			fd[i] = open_at(&machine, &machine.cpu, 0, of_cpu ? -1 : 0, of_cpu ? 0 : -1,
					-1);
		uint64_t begin = machine.fixture.now_ns;
		for (unsigned i = 0; i < TICKS; i++)
			tick(&machine);
		uint64_t passed = machine.fixture.now_ns - begin,
			 turn = machine.fixture.host.tick_ns;
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
	assert_int_equal(machine.other.adds, adds); /* it was not even removed and added again */
	for (unsigned i = 0; i < 2; i++) {
		struct reading reading = read_of(&machine, calm[i]);
		assert_int_equal(reading.enabled, reading.running);
	}
	struct reading reading = read_of(&machine, pinned);
	assert_int_equal(reading.running - before.running, 30 * machine.fixture.host.tick_ns);
	uint64_t sum = 0;
	for (unsigned i = 0; i < 3; i++)
		sum += read_of(&machine, fd[i]).running;
	assert_int_equal(sum, 30 * machine.fixture.host.tick_ns); /* the one counter that is free */
	end(&machine);
}

/* Small groups must not starve a large one that waits: after it fails, no other group of that PMU
 * is tried. */
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
	assert_in_range(read_of(&machine, large).running, 60 / 6 * machine.fixture.host.tick_ns / 2,
			UINT64_MAX);
	assert_true(read_of(&machine, small[4]).running > 0);
	end(&machine);
}

static void nobody_overtakes_who_waits(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 2);
	int first = open_on(&machine, &machine.cpu, 0, 0, -1);
	int leader = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_DISABLED, -1);
	open_on(&machine, &machine.cpu, 0, 0, leader);
	control(&machine, leader, TALLY_IOC_ENABLE);
	int last = open_on(&machine, &machine.cpu, 0, 0, -1);
	assert_int_equal(state_of(&machine, first), ACTIVE);
	assert_int_equal(state_of(&machine, leader), INACTIVE);
	/* a counter is free, but it is not this group's turn */
	assert_int_equal(state_of(&machine, last), INACTIVE);
	end(&machine);
}

static void what_fits_is_left_alone(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 2);
	open_on(&machine, &machine.cpu, 0, 0, -1);
	open_on(&machine, &machine.cpu, 0, 0, -1);
	int third = open_on(&machine, &machine.cpu, 0, 0, -1);
	tick(&machine);
	close_fd(&machine, third);
	tick(&machine); /* finds room for all events */
	unsigned adds = machine.cpu.adds;
	tick(&machine);
	tick(&machine);
	assert_int_equal(machine.cpu.adds, adds);
	end(&machine);
}

/* A mixed group that loses its hardware event becomes a software group again: it needs no
 * counter. */
static void group_without_hardware_always_fits(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 1);
	struct tally_attr software = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	open_on(&machine, &machine.cpu, 0, TALLY_ATTR_PINNED, -1);
	int waits = open_on(&machine, &machine.cpu, 0, 0, -1),
	    leader = fixture_open(&machine.fixture, &software, -1);
	int hardware = open_on(&machine, &machine.cpu, 0, 0, leader);
	assert_int_equal(state_of(&machine, leader), INACTIVE);
	close_fd(&machine, hardware);
	fixture_switch(&machine.fixture, NULL);
	fixture_switch(&machine.fixture, machine.fixture.task);
	assert_int_equal(state_of(&machine, waits), INACTIVE);
	assert_int_equal(state_of(&machine, leader), ACTIVE);
	fixture_hit(&machine.fixture, TALLY_SW_PAGE_FAULTS, 3);
	assert_int_equal(fixture_value(&machine.fixture, leader), 3);
	end(&machine);
}

/* B6: value × enabled / running approaches the truth, whatever is multiplexed. */
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
				int member = open_at(&machine, &machine.cpu, 0, of_cpu ? -1 : 0,
						     of_cpu ? 0 : -1, leader);
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
			/* the CPU's groups never leave room for this task's group */
			if (!reading.running)
				continue;
			double scaled = (double)reading.value * (double)reading.enabled /
					(double)reading.running;
			double share = (double)reading.running / (double)reading.enabled;
			double tolerance = share > 0.05 ? 0.1 : 0.5;
			assert_true(scaled > (1 - tolerance) * (double)truth &&
				    scaled < (1 + tolerance) * (double)truth);
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
	/* it gave way to a pinned event */
	assert_int_equal(state_of(&machine, flexible), INACTIVE);
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
	/* DISABLE does not leave ERROR, but ENABLE does; without room, the event enters ERROR
	 * again. */
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
	assert_int_equal(reading.enabled, 7); /* not counted in ERROR */
	end(&machine);
}

/* Checks the order of the four lists. */
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
	/* At the tick, the CPU's event takes the counter again when the task is away. */
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
	int ordinary = open_on(&machine, &machine.cpu, 0, 0, -1),
	    exclusive = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_EXCLUSIVE, -1);
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
	/* Closing it while it is active frees the PMU. */
	while (state_of(&machine, exclusive) != ACTIVE)
		tick(&machine);
	close_fd(&machine, exclusive);
	tick(&machine);
	assert_int_equal(state_of(&machine, ordinary), ACTIVE);
	int another = open_on(&machine, &machine.cpu, 0, 0, -1);
	assert_int_equal(state_of(&machine, another), ACTIVE);
	end(&machine);
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
		cmocka_unit_test(nobody_overtakes_who_waits),
		cmocka_unit_test(what_fits_is_left_alone),
		cmocka_unit_test(group_without_hardware_always_fits),
		cmocka_unit_test(scaled_counts_converge),
		cmocka_unit_test(pinned_is_on_or_in_error),
		cmocka_unit_test(ranks_are_kept),
		cmocka_unit_test(exclusive_is_alone_on_its_pmu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
