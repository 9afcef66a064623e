/* Events of tasks that are created, execute another program, and exit: SPEC.md B9, B11. */
#include "engine_counters.h"

/* --- inheritance ---------------------------------------------------------- */

static struct engine_event *only_child(struct machine *machine, int fd)
{
	struct engine_event *event = event_of(machine, fd);
	assert_false(engine_list_empty(&event->children));
	assert_ptr_equal(event->children.next, event->children.previous);
	return ENGINE_CONTAINER(event->children.next, struct engine_event, child_link);
}

/* B9 */
static void whole_groups_are_inherited(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int leader = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT, -1),
	    member = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT, leader);
	int own = open_on(&machine, &machine.cpu, 0, 0, -1);
	struct tally_engine_task *child = fixture_fork(fixture, false);
	struct engine_event *l = only_child(&machine, leader), *m = only_child(&machine, member);
	assert_ptr_equal(m->leader, l);
	assert_ptr_equal(l->task, child);
	assert_true(engine_list_empty(&event_of(&machine, own)->children));
	pass(&machine, 100);
	fixture_switch(fixture, child);
	assert_int_equal(l->state, ACTIVE);
	assert_int_equal(m->state, ACTIVE);
	pass(&machine, 10);
	/* The event of a grandchild is a child of the original event. */
	struct tally_engine_task *grandchild = fixture_fork(fixture, true);
	assert_ptr_equal(ENGINE_CONTAINER(event_of(&machine, leader)->children.previous,
					  struct engine_event, child_link)
				 ->parent,
			 event_of(&machine, leader));
	fixture_switch(fixture, grandchild);
	pass(&machine, 1);
	fixture_exit(fixture, false);
	fixture_switch(fixture, child);
	fixture_exit(fixture, true);
	fixture_switch(fixture, fixture->task);
	assert_true(engine_list_empty(&event_of(&machine, leader)->children));
	struct reading a = read_of(&machine, leader), b = read_of(&machine, member);
	assert_int_equal(a.value, 111);
	assert_int_equal(a.running, 111);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(read_of(&machine, own).value, 100);
	end(&machine);
}

static void inherited_state_is_the_parents(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int fd = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT | TALLY_ATTR_DISABLED, -1);
	control(&machine, fd, TALLY_IOC_ENABLE);
	struct tally_engine_task *child = fixture_fork(fixture, false);
	fixture_switch(fixture, child);
	pass(&machine, 10);
	assert_int_equal(only_child(&machine, fd)->state, ACTIVE);
	fixture_switch(fixture, fixture->task);
	/* ENABLE and DISABLE reach children. */
	control(&machine, fd, TALLY_IOC_DISABLE);
	assert_int_equal(only_child(&machine, fd)->state, OFF);
	fixture_switch(fixture, child);
	pass(&machine, 100);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(read_of(&machine, fd).value, 10);
	assert_int_equal(read_of(&machine, fd).enabled, 10);
	control(&machine, fd, TALLY_IOC_ENABLE);
	fixture_switch(fixture, child);
	pass(&machine, 5);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(read_of(&machine, fd).value, 15);
	/* It is off when the fork comes, although it was opened enabled. */
	int off = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT, -1);
	control(&machine, off, TALLY_IOC_DISABLE);
	fixture_switch(fixture, fixture_fork(fixture, true));
	pass(&machine, 5);
	assert_int_equal(only_child(&machine, off)->state, OFF);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(read_of(&machine, off).value, 0);
	end(&machine);
}

static void inherit_thread_spares_processes(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	int fd = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_THREAD,
			 -1);
	assert_non_null(fixture_fork(&machine.fixture, false));
	assert_true(engine_list_empty(&event_of(&machine, fd)->children));
	assert_non_null(fixture_fork(&machine.fixture, true));
	assert_false(engine_list_empty(&event_of(&machine, fd)->children));
	end(&machine);
}

/* B9: neither older descendants nor their later children inherit. */
static void older_descendants_do_not_inherit(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	struct engine_fixture *fixture = &machine.fixture;
	struct tally_engine_task *older = fixture_fork(fixture, false);
	int fd = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT, -1);
	fixture_switch(fixture, older);
	struct tally_engine_task *its_child = fixture_fork(fixture, false);
	fixture_switch(fixture, its_child);
	pass(&machine, 10);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(read_of(&machine, fd).value, 0);
	assert_true(engine_list_empty(&event_of(&machine, fd)->children));
	end(&machine);
}

/* B11 */
static void exit_of_the_target_ends_counting_alone(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	struct engine_fixture *fixture = &machine.fixture;
	struct tally_engine_task *target = fixture_stranger(fixture, "target");
	int32_t tid = tally_engine_task_identity(target)->tid;
	int leader = open_at(&machine, &machine.cpu, 0, tid, -1, -1),
	    member = open_at(&machine, &machine.cpu, 0, tid, -1, leader);
	fixture_switch(fixture, target);
	pass(&machine, 10);
	unsigned wakes = fixture->wakes;
	fixture_exit(fixture, true);
	assert_true(fixture->wakes >= wakes + 2);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(state_of(&machine, leader), EXIT);
	struct tally_engine_file *file;
	assert_int_equal(tally_engine_poll(fixture->engine, member, &file) & 16, 16);
	control(&machine, leader, TALLY_IOC_ENABLE);
	control(&machine, leader, TALLY_IOC_DISABLE);
	assert_int_equal(state_of(&machine, leader), EXIT);
	assert_int_equal(read_of(&machine, leader).value, 10);
	assert_int_equal(read_of(&machine, member).running, 10);
	control(&machine, member, TALLY_IOC_RESET);
	assert_int_equal(read_of(&machine, member).value, 0);
	close_fd(&machine, leader);
	assert_int_equal(read_of(&machine, member).running, 10);
	end(&machine);
}

static void exec_enables_and_removes(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 1, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int enabled = open_on(&machine, &machine.cpu, 0,
			      TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC, -1);
	int pinned = open_on(&machine, &machine.cpu, 0,
			     TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_PINNED,
			     -1);
	int leader = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_REMOVE_ON_EXEC, -1),
	    member = open_on(&machine, &machine.cpu, 0, 0, leader);
	pass(&machine, 10);
	tally_engine_task_exec(fixture->task, "new");
	pass(&machine, 5);
	assert_int_equal(read_of(&machine, enabled).value, 5);
	assert_int_equal(read_of(&machine, pinned).running, 5);
	assert_int_equal(state_of(&machine, leader), EXIT);
	assert_int_equal(read_of(&machine, leader).value, 10);
	assert_int_equal(state_of(&machine, member), ACTIVE); /* the former member is a leader */
	assert_int_equal(read_of(&machine, member).running, 15);
	control(&machine, enabled, TALLY_IOC_DISABLE);
	tally_engine_task_exec(fixture->task, "newer");
	assert_int_equal(state_of(&machine, enabled), OFF); /* enabled only by the first exec */
	end(&machine);
}

/* A fork that runs out of memory leaves nothing behind, wherever it stops. */
static void failed_fork_leaves_nothing(void **state)
{
	(void)state;
	struct machine machine;
	start(&machine, 2, 4);
	struct engine_fixture *fixture = &machine.fixture;
	int leader = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT, -1);
	open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT, leader);
	open_at(&machine, &machine.cpu, TALLY_ATTR_INHERIT, 0, 1, -1);
	uint64_t events = fixture_events(fixture);
	for (unsigned at = 1; at < 100; at++) {
		fixture->fail_at = at;
		struct tally_engine_task *child = fixture_fork(fixture, false);
		bool failed = !fixture->fail_at;
		fixture->fail_at = 0;
		if (child) {
			/* The fork needs memory for the context, but works without faster
			 * queues. */
			fixture_switch(fixture, child);
			pass(&machine, 1);
			fixture_exit(fixture, true);
			fixture_switch(fixture, fixture->task);
		}
		assert_int_equal(fixture_events(fixture), events);
		assert_true(engine_list_empty(&event_of(&machine, leader)->children));
		if (!failed) {
			assert_true(at > 5);
			end(&machine);
			return;
		}
	}
	fail_msg("a fork never succeeded");
}

/* True if it is the last task of its process. */
static bool is_last(struct engine_fixture *fixture, struct tally_engine_task *task)
{
	for (unsigned i = 0; i < fixture->task_count; i++)
		if (fixture->tasks[i] && fixture->tasks[i] != task &&
		    tally_engine_task_process(fixture->tasks[i]) == tally_engine_task_process(task))
			return false;
	return true;
}

/* B9: the sum of an inherited tree is exactly what its tasks did. */
static void sum_of_a_tree_is_exact(void **state)
{
	(void)state;
	uint64_t seed = 77;
	for (unsigned round = 0; round < 30; round++) {
		struct machine machine;
		start(&machine, 4, 8);
		struct engine_fixture *fixture = &machine.fixture;
		int leader = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT, -1),
		    member = open_on(&machine, &machine.cpu, 0, TALLY_ATTR_INHERIT, leader);
		uint64_t truth = 0;
		for (unsigned step = 0; step < 300; step++) {
			fixture_on(fixture, random_below(&seed, 4));
			struct tally_engine_task *current = fixture->current[fixture->cpu];
			unsigned what = random_below(&seed, 10);
			if (what < 3 && current && fixture->task_count < 60)
				fixture_fork(fixture, what & 1);
			else if (what == 3 && current && current != fixture->task)
				fixture_exit(fixture, is_last(fixture, current));
			else if (what < 8) {
				struct tally_engine_task *next =
					fixture->tasks[random_below(&seed, fixture->task_count)];
				for (unsigned cpu = 0; cpu < 4; cpu++)
					if (fixture->current[cpu] == next)
						next = current;
				fixture_switch(fixture, next);
			}
			uint64_t n = random_below(&seed, 1000);
			work(&machine.cpu, fixture->current[fixture->cpu] ? n : 0);
			fixture_advance(fixture, 10);
			truth += fixture->current[fixture->cpu] ? n : 0;
			if (step % 7 && step != 299)
				continue;
			/* Only the descriptor's owner reads it, and must have a CPU for that. */
			for (unsigned cpu = 0; cpu < 4; cpu++)
				if (fixture->current[cpu] == fixture->task)
					fixture_on(fixture, cpu);
			if (fixture->current[fixture->cpu] != fixture->task)
				fixture_switch(fixture, fixture->task);
			struct reading a = read_of(&machine, leader), b = read_of(&machine, member);
			assert_int_equal(a.value, truth);
			assert_memory_equal(&a, &b, sizeof(a));
			assert_int_equal(a.enabled, a.running);
		}
		end(&machine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_groups_are_inherited),
		cmocka_unit_test(inherited_state_is_the_parents),
		cmocka_unit_test(inherit_thread_spares_processes),
		cmocka_unit_test(older_descendants_do_not_inherit),
		cmocka_unit_test(exit_of_the_target_ends_counting_alone),
		cmocka_unit_test(exec_enables_and_removes),
		cmocka_unit_test(failed_fork_leaves_nothing),
		cmocka_unit_test(sum_of_a_tree_is_exact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
