/* SPEC part E in the engine: counting, recording and sampling hits. */
#include "shop_fixture.h"

/* --- counting: E2, E4 ----------------------------------------------------- */

static void e2_a_hit_adds_one(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	int fd = open_on(&shop, &tally_trace_event_order_placed),
	    other = open_on(&shop, &tally_trace_event_order_paid);
	for (int i = 0; i < 10; i++)
		place_order(1);
	assert_int_equal(value(&shop, fd), 10);
	assert_int_equal(value(&shop, other), 0);
	close_fd(&shop, fd);
	close_fd(&shop, other);
	end(&shop);
}

static void e2_a_hit_adds_the_declared_count(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	int fd = open_on(&shop, &tally_trace_event_work_done);
	TALLY_TRACE(work_done, 500, &shop, NULL);
	TALLY_TRACE(work_done, 7, &shop, NULL);
	assert_int_equal(value(&shop, fd), 507);
	close_fd(&shop, fd);
	end(&shop);
}

static void e2_the_declared_address_is_sampled(void **state)
{
	(void)state;
	struct shop shop;
	uint64_t words[2];
	uint16_t size = 0;
	start(&shop, 1);
	struct sampled sampled = sample(&shop, &tally_trace_event_work_done,
					TALLY_SAMPLE_ADDR | TALLY_SAMPLE_PERIOD);
	TALLY_TRACE(work_done, 3, &shop, NULL);
	const uint8_t *payload = next(&sampled, &size);
	assert_non_null(payload);
	assert_int_equal(size, sizeof(words));
	memcpy(words, payload, sizeof(words));
	assert_int_equal(words[0], (uintptr_t)&shop);
	assert_int_equal(words[1], 3);
	finish(&shop, &sampled);
	end(&shop);
}

/* Opens an event on another task, by tid. */
static int open_task(struct shop *shop, struct tally_engine_task *task, int cpu, uint64_t flags)
{
	struct tally_attr attr = attr_of(&tally_trace_event_work_done);
	attr.flags = flags;
	int fd = tally_engine_open(shop->engine, &attr, tally_engine_task_identity(task)->tid, cpu,
				   -1, 0);
	assert_true(fd >= 0);
	return fd;
}

static void e2_a_declared_task_gets_it_too(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 2);
	struct tally_engine_task *worker = fixture_stranger(&shop.fixture, "worker");
	int mine = open_on(&shop, &tally_trace_event_work_done);
	int any = open_task(&shop, worker, -1, 0), here = open_task(&shop, worker, 0, 0);
	int elsewhere = open_task(&shop, worker, 1, 0),
	    disabled = open_task(&shop, worker, 0, TALLY_ATTR_DISABLED);
	TALLY_TRACE(work_done, 5, NULL, worker);
	assert_int_equal(value(&shop, mine), 5);
	/* only events bound to the hit's CPU count it, as in Linux */
	assert_int_equal(value(&shop, any), 0);
	assert_int_equal(value(&shop, here), 5);
	assert_int_equal(value(&shop, elsewhere), 0);
	assert_int_equal(value(&shop, disabled), 0);
	/* It does not count twice for the running task. */
	TALLY_TRACE(work_done, 1, NULL, shop.fixture.task);
	assert_int_equal(value(&shop, mine), 6);
	/* Only the receiver's event listens. */
	close_fd(&shop, mine);
	TALLY_TRACE(work_done, 2, NULL, worker);
	assert_int_equal(value(&shop, here), 7);
	TALLY_TRACE(work_done, 2, NULL, NULL);
	assert_int_equal(value(&shop, here), 7);
	for (int *fd = (int[]){ any, here, elsewhere, disabled, -1 }; *fd >= 0; fd++)
		close_fd(&shop, *fd);
	end(&shop);
}

static int evaluated;

static uint64_t evaluate(void)
{
	return (uint64_t)++evaluated;
}

static void e4_nobody_listening_does_nothing(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	evaluated = 0;
	assert_false(TALLY_TRACE_ENABLED(order_placed));
	TALLY_TRACE(order_placed, evaluate(), 1, "pen", NULL, 0);
	assert_int_equal(evaluated, 0);
	int fd = open_on(&shop, &tally_trace_event_order_placed);
	assert_true(TALLY_TRACE_ENABLED(order_placed));
	TALLY_TRACE(order_placed, evaluate(), 1, "pen", NULL, 0);
	assert_int_equal(evaluated, 1);
	close_fd(&shop, fd);
	assert_false(TALLY_TRACE_ENABLED(order_placed));
	TALLY_TRACE(order_placed, evaluate(), 1, "pen", NULL, 0);
	assert_int_equal(evaluated, 1);
	end(&shop);
}

static void e4_listeners_follow_their_task(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 2);
	int fd = open_on(&shop, &tally_trace_event_order_placed);
	struct tally_engine_task *task = shop.fixture.task;
	place_order(1);
	fixture_switch(&shop.fixture, NULL);
	place_order(2); /* the task is away */
	fixture_on(&shop.fixture, 1);
	place_order(3); /* the task is not here yet */
	fixture_switch(&shop.fixture, task);
	place_order(4);
	fixture_on(&shop.fixture, 0);
	place_order(5); /* the task is not here any more */
	fixture_on(&shop.fixture, 1);
	assert_int_equal(value(&shop, fd), 2);
	close_fd(&shop, fd);
	fixture_switch(&shop.fixture, NULL);
	fixture_on(&shop.fixture, 0);
	fixture_switch(&shop.fixture, task);
	end(&shop);
}

static void e4_a_cpus_listener_hears_all_of_it(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 2);
	struct tally_attr attr = attr_of(&tally_trace_event_order_placed);
	int fd = tally_engine_open(shop.engine, &attr, -1, 1, -1, 0);
	assert_true(fd >= 0);
	place_order(1);
	fixture_on(&shop.fixture, 1);
	place_order(2);
	fixture_on(&shop.fixture, 0);
	assert_int_equal(value(&shop, fd), 1);
	close_fd(&shop, fd);
	end(&shop);
}

static void inherited_events_count_the_childs_hits(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	struct tally_attr attr = attr_of(&tally_trace_event_order_placed);
	attr.flags = TALLY_ATTR_INHERIT;
	int fd = fixture_open(&shop.fixture, &attr, -1);
	assert_int_equal(
		tally_engine_ioctl(shop.engine, fd, TALLY_IOC_SET_FILTER, (uintptr_t) "id > 1"), 0);
	struct tally_engine_task *parent = shop.fixture.task,
				 *child = fixture_fork(&shop.fixture, false);
	assert_non_null(child);
	fixture_switch(&shop.fixture, child);
	place_order(1); /* the filter also applies to children */
	place_order(2);
	fixture_exit(&shop.fixture, true);
	fixture_switch(&shop.fixture, parent);
	assert_int_equal(value(&shop, fd), 1);
	close_fd(&shop, fd);
	end(&shop);
}

/* --- nested hits: E4 ------------------------------------------------------ */

struct nested {
	struct shop *shop;
	unsigned lines, limit;
};

/* Hits the tracepoint whose hit is being delivered, at the same level, and at the next one. */
static void hit_again(void *data, const struct tally_trace_line *line)
{
	struct nested *nested = data;
	struct engine_fixture *fixture = &nested->shop->fixture;
	(void)line;
	if (++nested->lines > nested->limit)
		return;
	place_order(1);
	if (fixture->level[fixture->cpu] < TALLY_LEVEL_NMI) {
		fixture->level[fixture->cpu]++;
		place_order(2);
		fixture->level[fixture->cpu]--;
	}
}

static void e4_a_hit_inside_a_hit_of_its_level_is_dropped_and_counted(void **state)
{
	(void)state;
	struct shop shop;
	struct tally_engine_statistics statistics;
	struct tally_trace_listener *listener;
	start(&shop, 1);
	struct nested nested = { .shop = &shop, .limit = 100 };
	assert_int_equal(
		tally_trace_listen(&tally_trace_event_order_placed, hit_again, &nested, &listener),
		0);
	place_order(0);
	/* One line for each level; each level lost the hit inside it. */
	assert_int_equal(nested.lines, TALLY_LEVELS);
	tally_engine_statistics(shop.engine, &statistics);
	for (unsigned level = 0; level < TALLY_LEVELS; level++)
		assert_int_equal(statistics.hits_dropped[level], 1);
	tally_trace_unlisten(listener);
	end(&shop);
}

/* Makes a hit inside a sample of another tracepoint: at its level, and at the next one. */
static void pay_meanwhile(struct tally_pmu_event *event, const struct tally_engine_hit *hit,
			  const struct tally_engine_regs *regs, void *data)
{
	struct engine_fixture *fixture = data;
	(void)event, (void)hit, (void)regs;
	TALLY_TRACE(order_paid, 1, 2, "ink", parts, 1);
	fixture->level[fixture->cpu]++;
	TALLY_TRACE(order_paid, 1, 2, "ink", parts, 1);
	fixture->level[fixture->cpu]--;
}

static void e4_a_hit_that_is_counted_alone_is_dropped_inside_another_too(void **state)
{
	(void)state;
	struct shop shop;
	struct tally_engine_statistics statistics;
	start(&shop, 1);
	int counts = open_on(&shop, &tally_trace_event_order_paid);
	struct sampled sampled = sample(&shop, &tally_trace_event_order_placed, TALLY_SAMPLE_IP);
	assert_int_equal(tally_engine_set_overflow_handler(shop.engine, sampled.fd, pay_meanwhile,
							   &shop.fixture),
			 0);
	assert_int_equal(tally_trace_event_order_paid.perf_alone, TALLY_TRACE_COUNTED);
	place_order(1);
	assert_int_equal(value(&shop, counts), 1);
	tally_engine_statistics(shop.engine, &statistics);
	assert_int_equal(statistics.hits_dropped[TALLY_LEVEL_TASK], 1);
	assert_int_equal(statistics.hits_dropped[TALLY_LEVEL_SOFTIRQ], 0);
	finish(&shop, &sampled);
	close_fd(&shop, counts);
	end(&shop);
}

static void count_call(void *data, uint64_t id, int32_t customer, const char *article,
		       const uint64_t *list, unsigned count)
{
	(void)id, (void)customer, (void)article, (void)list, (void)count;
	++*(unsigned *)data;
}

/* A tracepoint whose events only count has a faster path, which ends when a listener needs more. */
static void counting_is_the_same_alone_and_in_company(void **state)
{
	(void)state;
	const struct tally_trace_event *event = &tally_trace_event_order_placed;
	struct shop shop;
	unsigned called = 0;
	start(&shop, 1);
	int first = open_on(&shop, event), second = open_on(&shop, event);
	assert_int_equal(event->perf_alone, TALLY_TRACE_COUNTED);
	place_order(1);
	struct sampled sampled = sample(&shop, event, TALLY_SAMPLE_RAW);
	assert_int_equal(event->perf_alone, TALLY_TRACE_ALONE);
	place_order(2);
	assert_int_equal(value(&shop, sampled.fd), 1);
	finish(&shop, &sampled);
	assert_int_equal(event->perf_alone, TALLY_TRACE_COUNTED);
	place_order(3);
	assert_int_equal(tally_trace_add_order_placed(count_call, &called), 0);
	assert_int_equal(event->perf_alone, 0);
	place_order(4);
	assert_int_equal(called, 1);
	assert_int_equal(tally_trace_remove_order_placed(count_call, &called), 0);
	assert_int_equal(event->perf_alone, TALLY_TRACE_COUNTED);
	place_order(5);
	assert_int_equal(tally_engine_ioctl(shop.engine, second, TALLY_IOC_SET_FILTER,
					    (uintptr_t) "id == 7"),
			 0);
	assert_int_equal(event->perf_alone, TALLY_TRACE_ALONE);
	place_order(6);
	place_order(7);
	assert_int_equal(value(&shop, first), 7);
	assert_int_equal(value(&shop, second), 6);
	close_fd(&shop, second);
	assert_int_equal(event->perf_alone, TALLY_TRACE_COUNTED);
	place_order(8);
	assert_int_equal(value(&shop, first), 8);
	close_fd(&shop, first);
	assert_int_equal(event->perf_alone, 0);
	end(&shop);
}

/* --- raw records: E1, E5 -------------------------------------------------- */

static void e5_a_record_begins_with_the_common_fields(void **state)
{
	(void)state;
	struct shop shop;
	struct tally_trace_common common;
	uint32_t size = 0;
	static const uint8_t flags[TALLY_LEVELS] = { 0, 0x10, 0x08, 0x48 };
	start(&shop, 1);
	struct sampled sampled = sample(&shop, &tally_trace_event_order_paid, TALLY_SAMPLE_RAW);
	for (unsigned level = 0; level < TALLY_LEVELS; level++) {
		shop.fixture.level[0] = level;
		TALLY_TRACE(order_paid, 9, 8, "ink", NULL, 0);
		shop.fixture.level[0] = TALLY_LEVEL_TASK;
		memcpy(&common, next_raw(&sampled, &size), sizeof(common));
		assert_int_equal(common.common_type, tally_trace_event_order_paid.id);
		assert_int_equal(common.common_flags, flags[level]);
		assert_int_equal(common.common_preempt_count, 0);
		assert_int_equal(common.common_pid,
				 tally_engine_task_identity(shop.fixture.task)->tid);
	}
	finish(&shop, &sampled);
	end(&shop);
}

static void e5_its_size_is_aligned_with_the_size_word_and_the_tail_zeroed(void **state)
{
	(void)state;
	struct shop shop;
	uint32_t size = 0;
	uint8_t dirt[64];
	memset(dirt, 0xff, sizeof(dirt));
	start(&shop, 1);
	struct sampled sampled = sample(&shop, &tally_trace_event_bulk_sent, TALLY_SAMPLE_RAW);
	for (unsigned bytes = 0; bytes < 24; bytes++) {
		TALLY_TRACE(bulk_sent, 40); /* its bytes stay in the scratch memory */
		TALLY_TRACE(bulk_sent, bytes);
		next_raw(&sampled, &size);
		const uint8_t *raw = next_raw(&sampled, &size);
		size_t used = sizeof(struct tally_trace_record_bulk) + bytes;
		assert_int_equal(size, (used + 4 + 7) / 8 * 8 - 4);
		for (size_t i = used; i < size; i++)
			assert_int_equal(raw[i], 0);
		for (size_t i = used - bytes; i < used; i++)
			assert_int_equal(raw[i], 'x');
	}
	finish(&shop, &sampled);
	end(&shop);
}

static void e5_a_record_over_the_maximum_is_dropped_and_counted(void **state)
{
	(void)state;
	struct shop shop;
	struct tally_engine_statistics statistics;
	const unsigned fits = TALLY_TRACE_SIZE_MAX - 4 - sizeof(struct tally_trace_record_bulk);
	uint32_t size = 0;
	start(&shop, 1);
	struct sampled sampled = sample(&shop, &tally_trace_event_bulk_sent, TALLY_SAMPLE_RAW);
	int counting = open_on(&shop, &tally_trace_event_bulk_sent);
	TALLY_TRACE(bulk_sent, fits);
	assert_non_null(next_raw(&sampled, &size));
	assert_int_equal(size, TALLY_TRACE_SIZE_MAX - 4);
	TALLY_TRACE(bulk_sent, fits + 1);
	TALLY_TRACE(bulk_sent, 70000);
	TALLY_TRACE(bulk_sent, UINT32_MAX);
	assert_null(next_raw(&sampled, &size));
	tally_engine_statistics(shop.engine, &statistics);
	assert_int_equal(statistics.raw_too_large, 3);
	assert_int_equal(value(&shop, counting), 1);
	finish(&shop, &sampled);
	close_fd(&shop, counting);
	end(&shop);
}

/* Equal hits give equal bytes: gaps between dynamic arrays are zero. */
static void records_hold_nothing_of_what_was_before(void **state)
{
	(void)state;
	struct shop shop;
	uint32_t first_size = 0, second_size = 0;
	start(&shop, 1);
	struct sampled sampled = sample(&shop, &tally_trace_event_order_placed, TALLY_SAMPLE_RAW);
	TALLY_TRACE(order_placed, 1, 2, "pen", parts, 1);
	TALLY_TRACE(order_placed, UINT64_MAX, -1, "a pen of another kind altogether", parts, 3);
	TALLY_TRACE(order_placed, 1, 2, "pen", parts, 1);
	const void *first = next_raw(&sampled, &first_size);
	next_raw(&sampled, &second_size);
	const void *again = next_raw(&sampled, &second_size);
	assert_int_equal(first_size, second_size);
	assert_memory_equal(first, again, first_size);
	finish(&shop, &sampled);
	end(&shop);
}

/* --- opening: E6 ---------------------------------------------------------- */

static void e6_an_unknown_id_is_einval(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	struct tally_attr attr = fixture_attr(TALLY_TYPE_TRACEPOINT, 999999);
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EINVAL);
	attr.config = 0;
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EINVAL);
	attr.config = tally_trace_event_order_placed.id | 1ull << 32;
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EINVAL);
	end(&shop);
}

static void e6_a_branch_stack_is_eopnotsupp(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	struct tally_attr attr = attr_of(&tally_trace_event_order_placed);
	attr.sample_period = 1;
	attr.sample_type = TALLY_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = 8;
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EOPNOTSUPP);
	attr.config = 999999; /* the kernel checks that first too */
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EOPNOTSUPP);
	end(&shop);
}

/* Measured on 6.18, as an unprivileged user: with exclude_kernel, counting and sampling are
 * allowed; RAW is EPERM even without a period; at paranoid -1 it is allowed. */
static void e6_raw_needs_privilege(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	shop.fixture.perfmon = shop.fixture.sys_admin = false;
	struct tally_attr attr = attr_of(&tally_trace_event_order_placed);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	int fd = fixture_open(&shop.fixture, &attr, -1);
	assert_true(fd >= 0);
	close_fd(&shop, fd);
	attr.sample_type = TALLY_SAMPLE_RAW;
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EPERM);
	assert_int_equal(tally_engine_sysctl_set(shop.engine, "perf_event_paranoid", 0), 0);
	assert_int_equal(fixture_open(&shop.fixture, &attr, -1), -EPERM);
	assert_int_equal(tally_engine_sysctl_set(shop.engine, "perf_event_paranoid", -1), 0);
	fd = fixture_open(&shop.fixture, &attr, -1);
	assert_true(fd >= 0);
	close_fd(&shop, fd);
	end(&shop);
}

/* --- sampling and filters: E7 --------------------------------------------- */

static unsigned samples_of(struct sampled *sampled)
{
	unsigned count = 0;
	uint16_t size = 0;
	while (next(sampled, &size))
		count++;
	return count;
}

static void e7_a_period_samples_every_nth_hit(void **state)
{
	(void)state;
	struct shop shop;
	start(&shop, 1);
	struct tally_attr attr = attr_of(&tally_trace_event_order_placed);
	struct sampled sampled = { 0 };
	void *memory;
	attr.sample_period = 10;
	attr.sample_type = TALLY_SAMPLE_IP;
	sampled.fd = fixture_open(&shop.fixture, &attr, -1);
	assert_int_equal(
		tally_engine_mmap(shop.engine, sampled.fd, RING_SIZE, true, true, 0, &memory), 0);
	sampled.page = memory;
	for (int i = 0; i < 105; i++)
		place_order(1);
	assert_int_equal(samples_of(&sampled), 10);
	assert_int_equal(value(&shop, sampled.fd), 105);
	finish(&shop, &sampled);
	end(&shop);
}

static void samples_name_the_code_that_hit(void **state)
{
	(void)state;
	struct shop shop;
	uint16_t size = 0;
	uint64_t ip[2];
	start(&shop, 1);
	struct sampled sampled = sample(&shop, &tally_trace_event_order_placed, TALLY_SAMPLE_IP);
	struct lines lines = { .count = 0 };
	struct tally_trace_listener *listener;
	place_order(1);
	/* If another probe is on the list, perf's is called in another way. */
	assert_int_equal(
		tally_trace_listen(&tally_trace_event_order_placed, keep_line, &lines, &listener),
		0);
	place_order(1);
	memcpy(&ip[0], next(&sampled, &size), 8);
	memcpy(&ip[1], next(&sampled, &size), 8);
	assert_in_range(ip[0] - (uintptr_t)place_order, 1, 400);
	assert_int_equal(ip[0], ip[1]);
	tally_trace_unlisten(listener);
	finish(&shop, &sampled);
	end(&shop);
}

static void place_in_kernel(void *host, struct tally_engine_regs *regs)
{
	(void)host;
	regs->ip = 0xffffffff81000000;
	regs->mode = TALLY_MODE_KERNEL;
}

static void a_host_says_where_a_hit_is(void **state)
{
	(void)state;
	struct shop shop;
	uint16_t size = 0;
	uint64_t ip;
	fixture_init(&shop.fixture, 1);
	shop.fixture.host.trace_regs = place_in_kernel;
	assert_true(fixture_start(&shop.fixture));
	shop.engine = shop.fixture.engine;
	assert_int_equal(tally_trace_register(shop.engine, &tally_trace_group_shop), 0);
	struct sampled sampled = sample(&shop, &tally_trace_event_order_placed, TALLY_SAMPLE_IP);
	struct tally_attr attr = attr_of(&tally_trace_event_order_placed);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL;
	int users = fixture_open(&shop.fixture, &attr, -1);
	place_order(1);
	memcpy(&ip, next(&sampled, &size), 8);
	assert_int_equal(ip, 0xffffffff81000000);
	assert_int_equal(value(&shop, users), 0);
	close_fd(&shop, users);
	finish(&shop, &sampled);
	end(&shop);
}

static void e7_filters_decide_what_counts(void **state)
{
	(void)state;
	static const struct {
		const char *filter;
		uint64_t counts;
	} cases[] = {
		{ "id == 3", 1 },
		{ "id > 2 && customer == -5", 4 },
		{ "article == \"blue pen\"", 6 },
		{ "article ~ \"*ink\"", 0 },
		{ "!(article ~ \"b*\") || id == 1", 1 },
		{ "common_type == 1", 6 },
		{ "common_pid == 1000 && comm == \"first\" && cpu == 0", 6 },
	};
	struct shop shop;
	start(&shop, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int fd = open_on(&shop, &tally_trace_event_order_placed);
		assert_int_equal(tally_engine_ioctl(shop.engine, fd, TALLY_IOC_SET_FILTER,
						    (uintptr_t)cases[i].filter),
				 0);
		for (uint64_t id = 1; id <= 6; id++)
			place_order(id);
		if (value(&shop, fd) != cases[i].counts)
			fail_msg("%s: %llu", cases[i].filter, (unsigned long long)value(&shop, fd));
		close_fd(&shop, fd);
	}
	end(&shop);
}

/* Measured: an event gets one filter in its life; a bad one leaves it without a filter. */
static void e7_a_bad_filter_is_einval_with_the_reason(void **state)
{
	(void)state;
	struct shop shop;
	const char *reason;
	size_t position;
	start(&shop, 1);
	int fd = open_on(&shop, &tally_trace_event_order_placed);
	assert_int_equal(
		tally_engine_ioctl(shop.engine, fd, TALLY_IOC_SET_FILTER, (uintptr_t) "id = 3"),
		-EINVAL);
	assert_int_equal(tally_trace_check_filter(&tally_trace_event_order_placed, "id = 3",
						  &position, &reason),
			 -EINVAL);
	assert_int_equal(position, 3);
	assert_non_null(strstr(reason, "operator"));
	assert_int_equal(tally_trace_check_filter(&tally_trace_event_order_placed, "id == 3",
						  &position, &reason),
			 0);
	assert_int_equal(
		tally_engine_ioctl(shop.engine, fd, TALLY_IOC_SET_FILTER, (uintptr_t) "id == 3"),
		0);
	assert_int_equal(
		tally_engine_ioctl(shop.engine, fd, TALLY_IOC_SET_FILTER, (uintptr_t) "id == 4"),
		-EEXIST);
	place_order(3);
	place_order(4);
	assert_int_equal(value(&shop, fd), 1);
	close_fd(&shop, fd);
	end(&shop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e2_a_hit_adds_one),
		cmocka_unit_test(e2_a_hit_adds_the_declared_count),
		cmocka_unit_test(e2_the_declared_address_is_sampled),
		cmocka_unit_test(e2_a_declared_task_gets_it_too),
		cmocka_unit_test(e4_nobody_listening_does_nothing),
		cmocka_unit_test(e4_listeners_follow_their_task),
		cmocka_unit_test(e4_a_cpus_listener_hears_all_of_it),
		cmocka_unit_test(inherited_events_count_the_childs_hits),
		cmocka_unit_test(e4_a_hit_inside_a_hit_of_its_level_is_dropped_and_counted),
		cmocka_unit_test(e4_a_hit_that_is_counted_alone_is_dropped_inside_another_too),
		cmocka_unit_test(counting_is_the_same_alone_and_in_company),
		cmocka_unit_test(e5_a_record_begins_with_the_common_fields),
		cmocka_unit_test(e5_its_size_is_aligned_with_the_size_word_and_the_tail_zeroed),
		cmocka_unit_test(e5_a_record_over_the_maximum_is_dropped_and_counted),
		cmocka_unit_test(records_hold_nothing_of_what_was_before),
		cmocka_unit_test(e6_an_unknown_id_is_einval),
		cmocka_unit_test(e6_a_branch_stack_is_eopnotsupp),
		cmocka_unit_test(e6_raw_needs_privilege),
		cmocka_unit_test(e7_a_period_samples_every_nth_hit),
		cmocka_unit_test(samples_name_the_code_that_hit),
		cmocka_unit_test(a_host_says_where_a_hit_is),
		cmocka_unit_test(e7_filters_decide_what_counts),
		cmocka_unit_test(e7_a_bad_filter_is_einval_with_the_reason),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
