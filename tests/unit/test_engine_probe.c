/* SPEC part E in the engine: classes, probe lists, the first and the last listener (E3),
 * registration (E8). */
#include "shop_fixture.h"

/* --- registration: E8 ----------------------------------------------------- */

static void e8_registered_events_are_listed_and_found(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	static const char *const names[] = { "order_placed", "order_paid", "every_kind",
					     "work_done", "bulk_sent" };
	size_t count = 0;
	for (struct tally_trace_event *event = NULL; (event = tally_trace_next(shop.engine, event));
	     count++) {
		assert_true(count < 5);
		assert_string_equal(event->name, names[count]);
		assert_string_equal(event->group, "shop");
		assert_ptr_equal(tally_trace_find(shop.engine, event->id), event);
	}
	assert_int_equal(count, 5);
	assert_null(tally_trace_find(shop.engine, 99));
	assert_int_equal(tally_trace_register(shop.engine, &tally_trace_group_shop), -EBUSY);
	end(&shop);
	assert_int_equal(tally_trace_event_order_placed.id, 0);
}

static void unregistering_waits_for_listeners(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	int fd = open_on(&shop, &tally_trace_event_order_paid);
	assert_int_equal(tally_trace_unregister(shop.engine, &tally_trace_group_shop), -EBUSY);
	assert_int_not_equal(tally_trace_event_order_placed.id, 0);
	close_fd(&shop, fd);
	end(&shop);
}

static void freeing_the_engine_unregisters(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	fixture_end(&shop.fixture);
	assert_null(tally_trace_event_order_placed.engine);
	place_order(1); /* without a listener, a hit touches nothing */
	start(&shop, 1);
	end(&shop);
}

/* --- probes: E3 ----------------------------------------------------------- */

struct calls {
	char order[32];
	unsigned count;
	uint64_t last_id;
};

struct probe_data {
	struct calls *calls;
	char name;
};

static void probe(void *data, uint64_t id, int32_t customer, const char *article,
		  const uint64_t *list, unsigned count)
{
	struct probe_data *mine = data;
	(void)customer;
	(void)article;
	(void)list;
	(void)count;
	if (mine->calls->count < sizeof(mine->calls->order) - 1)
		mine->calls->order[mine->calls->count++] = mine->name;
	mine->calls->last_id = id;
}

static void e3_probes_are_called_in_order_with_their_data(void **state)
{
	(void)state;
	struct shop shop;
	struct calls calls = { .count = 0 };
	struct probe_data a = { &calls, 'a' }, b = { &calls, 'b' }, c = { &calls, 'c' };
	start(&shop, 2);
	assert_int_equal(tally_trace_add_order_placed(probe, &a), 0);
	assert_int_equal(tally_trace_add_order_placed(probe, &b), 0);
	int fd = open_on(&shop, &tally_trace_event_order_placed);
	assert_int_equal(tally_trace_add_order_placed(probe, &c), 0);
	assert_int_equal(tally_trace_add_order_placed(probe, &b), -EEXIST);
	place_order(41);
	assert_int_equal(tally_trace_remove_order_placed(probe, &a), 0);
	assert_int_equal(tally_trace_remove_order_placed(probe, &a), -ENOENT);
	place_order(42);
	assert_int_equal(tally_trace_remove_order_placed(probe, &c), 0);
	assert_int_equal(tally_trace_remove_order_placed(probe, &b), 0);
	place_order(43);
	assert_string_equal(calls.order, "abcbc");
	assert_int_equal(calls.last_id, 42);
	assert_int_equal(value(&shop, fd), 3);
	assert_true(tally_trace_quiet(shop.engine));
	close_fd(&shop, fd);
	end(&shop);
}

/* A probe that removes itself during the walk of the list; the walked list stays unchanged. */
struct leaver {
	struct shop *shop;
	unsigned calls;
	bool quiet;
};

static void leave_list(void *data, uint64_t id, int32_t customer, const char *article,
		       const uint64_t *list, unsigned count)
{
	struct leaver *leaver = data;
	(void)id, (void)customer, (void)article, (void)list, (void)count;
	leaver->calls++;
	assert_int_equal(tally_trace_remove_order_placed(leave_list, data), 0);
	leaver->quiet = tally_trace_quiet(leaver->shop->engine);
}

static void e3_a_list_may_change_under_a_walk(void **state)
{
	(void)state;
	struct shop shop;
	struct calls calls = { .count = 0 };
	struct probe_data last = { &calls, 'l' };
	start(&shop, 2);
	struct leaver leaver = { .shop = &shop };
	assert_int_equal(tally_trace_add_order_placed(leave_list, &leaver), 0);
	assert_int_equal(tally_trace_add_order_placed(probe, &last), 0);
	place_order(1);
	place_order(2);
	assert_int_equal(leaver.calls, 1);
	assert_false(leaver.quiet);
	assert_true(tally_trace_quiet(shop.engine));
	assert_string_equal(calls.order, "ll");
	assert_int_equal(tally_trace_remove_order_placed(probe, &last), 0);
	end(&shop);
}

static void e3_removing_never_fails_for_want_of_memory(void **state)
{
	(void)state;
	struct shop shop;
	struct calls calls = { .count = 0 };
	struct probe_data data[5] = {
		{ &calls, '0' }, { &calls, '1' }, { &calls, '2' }, { &calls, '3' }, { &calls, '4' }
	};
	start(&shop, 1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(tally_trace_add_order_placed(probe, &data[i]), 0);
	unsigned allocations = shop.fixture.allocations;
	for (int i = 0; i < 5; i++)
		assert_int_equal(tally_trace_remove_order_placed(probe, &data[(i * 2 + 1) % 5]), 0);
	assert_int_equal(shop.fixture.allocations, allocations);
	end(&shop);
}

static void probes_need_a_registered_event(void **state)
{
	(void)state;
	assert_int_equal(tally_trace_add_order_placed(probe, NULL), -ENODEV);
	assert_int_equal(tally_trace_remove_order_placed(probe, NULL), -ENODEV);
}

/* --- operations, first and last listener: E3 ------------------------------ */

static char operations[64];
static enum tally_trace_operation fails;
static bool failing;

static int note_operation(struct tally_trace_event *event, enum tally_trace_operation operation,
			  void *data)
{
	size_t length = strlen(operations);
	if (length + 1 < sizeof(operations))
		operations[length] = "RUruocad"[operation];
	if (failing && operation == fails)
		return -EIO;
	return tally_trace_operate(event, operation, data);
}

static void note_operations(bool on)
{
	memset(operations, 0, sizeof(operations));
	failing = false;
	tally_trace_class_order.operate = on ? note_operation : NULL;
}

static void e3_a_class_is_asked_for_its_operations(void **state)
{
	(void)state;
	struct shop shop;
	struct lines lines = { .count = 0 };
	struct tally_trace_listener *listener;
	start(&shop, 1);
	note_operations(true);
	int first = open_on(&shop, &tally_trace_event_order_placed);
	assert_string_equal(operations, "roa"); /* PERF_REGISTER, PERF_OPEN, PERF_ADD */
	int second = open_on(&shop, &tally_trace_event_order_placed);
	close_fd(&shop, first);
	assert_string_equal(operations, "roaoadc"); /* PERF_DEL, PERF_CLOSE */
	close_fd(&shop, second);
	assert_string_equal(operations, "roaoadcdcu");
	assert_int_equal(
		tally_trace_listen(&tally_trace_event_order_placed, keep_line, &lines, &listener),
		0);
	tally_trace_unlisten(listener);
	assert_string_equal(operations, "roaoadcdcuRU");
	note_operations(false);
	end(&shop);
}

static void e3_a_class_that_refuses_unwinds(void **state)
{
	(void)state;
	struct shop shop;
	struct lines lines = { .count = 0 };
	struct tally_trace_listener *listener;
	start(&shop, 2);
	struct tally_attr attr = attr_of(&tally_trace_event_order_placed);
	/* the task's context stays from now on */
	close_fd(&shop, open_on(&shop, &tally_trace_event_order_paid));
	note_operations(true);
	size_t bytes = shop.fixture.held_bytes;
	failing = true;
	fails = TALLY_TRACE_PERF_REGISTER;
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EIO);
	assert_string_equal(operations, "r");
	assert_int_equal(shop.fixture.held_bytes, bytes);
	fails = TALLY_TRACE_PERF_OPEN;
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EIO);
	assert_string_equal(operations, "rrou");
	assert_int_equal(shop.fixture.held_bytes, bytes);
	fails = TALLY_TRACE_REGISTER;
	assert_int_equal(
		tally_trace_listen(&tally_trace_event_order_placed, keep_line, &lines, &listener),
		-EIO);
	assert_int_equal(shop.fixture.held_bytes, bytes);
	assert_false(TALLY_TRACE_ENABLED(order_placed));
	note_operations(false);
	end(&shop);
}

/* 1 means that the class has placed the event itself. */
static int keep_from_list(struct tally_trace_event *event, enum tally_trace_operation operation,
			  void *data)
{
	if (operation == TALLY_TRACE_PERF_ADD || operation == TALLY_TRACE_PERF_DEL)
		return 1;
	return tally_trace_operate(event, operation, data);
}

static void e3_a_class_may_keep_its_events_off_the_list(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	tally_trace_class_order.operate = keep_from_list;
	int fd = open_on(&shop, &tally_trace_event_order_placed);
	place_order(1);
	assert_int_equal(value(&shop, fd), 0);
	close_fd(&shop, fd);
	tally_trace_class_order.operate = NULL;
	fd = open_on(&shop, &tally_trace_event_order_placed);
	place_order(1);
	assert_int_equal(value(&shop, fd), 1);
	close_fd(&shop, fd);
	end(&shop);
}

static void e3_the_first_listener_allocates_and_the_last_frees(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 4);
	const size_t scratch = 4 * 4 * TALLY_TRACE_SIZE_MAX; /* levels, CPUs */
	/* The task's context comes with its first event, and stays. */
	close_fd(&shop, open_on(&shop, &tally_trace_event_order_paid));
	size_t before = shop.fixture.held_bytes;
	int first = open_on(&shop, &tally_trace_event_order_placed);
	size_t one = shop.fixture.held_bytes;
	assert_true(one >= before + scratch);
	int second = open_on(&shop, &tally_trace_event_order_placed);
	size_t event = shop.fixture.held_bytes - one;
	assert_true(event < 8192);
	/* it has lists of its own, but shares the scratch memory */
	int other = open_on(&shop, &tally_trace_event_order_paid);
	assert_true(shop.fixture.held_bytes - one - event < scratch);
	close_fd(&shop, first);
	close_fd(&shop, other);
	assert_true(shop.fixture.held_bytes >= before + scratch);
	close_fd(&shop, second);
	assert_int_equal(shop.fixture.held_bytes, before);
	end(&shop);
}

static void e3_any_failure_half_way_unwinds(void **state)
{
	(void)state;
	struct shop shop;
	struct tally_trace_listener *listener;
	struct lines lines = { .count = 0 };
	start(&shop, 2);
	struct tally_attr attr = attr_of(&tally_trace_event_order_placed);
	close_fd(&shop, open_on(&shop, &tally_trace_event_order_paid));
	size_t bytes = shop.fixture.held_bytes;
	int fd = -1;
	unsigned failures = 0;
	while (fd < 0 && failures < 50) {
		shop.fixture.fail_at = failures + 1;
		fd = fixture_open(&shop.fixture, &attr, -1);
		shop.fixture.fail_at = 0;
		if (fd < 0) {
			assert_int_equal(fd, -ENOMEM);
			assert_int_equal(shop.fixture.held_bytes, bytes);
			assert_false(TALLY_TRACE_ENABLED(order_placed));
			failures++;
		}
	}
	/* lists, the scratch memory and its four parts, the probe list */
	assert_in_range(failures, 7, 49);
	close_fd(&shop, fd);
	assert_int_equal(shop.fixture.held_bytes, bytes);

	int error = -ENOMEM;
	for (failures = 0; error && failures < 50; failures++) {
		shop.fixture.fail_at = failures + 1;
		error = tally_trace_listen(&tally_trace_event_order_placed, keep_line, &lines,
					   &listener);
		shop.fixture.fail_at = 0;
		if (error) {
			assert_int_equal(error, -ENOMEM);
			assert_int_equal(shop.fixture.held_bytes, bytes);
		}
	}
	assert_in_range(failures, 12, 49);
	tally_trace_unlisten(listener);
	assert_int_equal(shop.fixture.held_bytes, bytes);
	end(&shop);
}

static void many_openings_leave_nothing_behind(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 2);
	close_fd(&shop, open_on(&shop, &tally_trace_event_order_paid));
	size_t bytes = shop.fixture.held_bytes;
	for (int i = 0; i < 1000; i++) {
		int fd = open_on(&shop, &tally_trace_event_order_placed);
		assert_int_equal(tally_engine_ioctl(shop.engine, fd, TALLY_IOC_SET_FILTER,
						    (uintptr_t) "id == 3"),
				 0);
		place_order(3);
		close_fd(&shop, fd);
	}
	assert_int_equal(shop.fixture.held_bytes, bytes);
	end(&shop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e8_registered_events_are_listed_and_found),
		cmocka_unit_test(unregistering_waits_for_listeners),
		cmocka_unit_test(freeing_the_engine_unregisters),
		cmocka_unit_test(e3_probes_are_called_in_order_with_their_data),
		cmocka_unit_test(e3_a_list_may_change_under_a_walk),
		cmocka_unit_test(e3_removing_never_fails_for_want_of_memory),
		cmocka_unit_test(probes_need_a_registered_event),
		cmocka_unit_test(e3_a_class_is_asked_for_its_operations),
		cmocka_unit_test(e3_a_class_that_refuses_unwinds),
		cmocka_unit_test(e3_a_class_may_keep_its_events_off_the_list),
		cmocka_unit_test(e3_the_first_listener_allocates_and_the_last_frees),
		cmocka_unit_test(e3_any_failure_half_way_unwinds),
		cmocka_unit_test(many_openings_leave_nothing_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
