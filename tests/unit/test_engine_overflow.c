/* SPEC C1, C5, C6, C7, H4: periods, frequencies, limits, throttling, signals, and hits at nested
 * levels. */
#include "test.h"

#include "engine_driver.h"

enum { SIGIO_NUMBER = 29, POLL_IN_CODE = 1, POLL_HUP_CODE = 6, ASYNC = 020000, PER_TICK = 400 };
enum { SET_FLAGS = 4, SET_OWNER = 8, SET_SIGNAL = 10 }; /* fcntl's F_SETFL, F_SETOWN, F_SETSIG */

struct bench {
	struct engine_fixture fixture;
	struct driver_pmu driver;
	struct driver_ring ring;
	/* Seen by the test's own overflow handler. */
	unsigned overflows;
	uint64_t periods;
	/* An interrupt that comes inside a callback of the host. */
	unsigned nested_left;
	enum tally_sw nested_event;
	uint64_t random;
};

static tally_engine_overflow_handler count_overflow;
static unsigned chain_with_interrupt(void *host, const struct tally_engine_regs *regs, bool user,
				     uint64_t *addresses, unsigned max);
static void signal_with_interrupt(void *host, const struct tally_engine_signal *signal);

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));
	bench->random = 88172645463325252;
	fixture_init(&bench->fixture, 2);
	bench->fixture.host.callchain = chain_with_interrupt;
	bench->fixture.host.signal = signal_with_interrupt;
	assert_true(fixture_start(&bench->fixture));
	driver_register(&bench->driver, &bench->fixture);
	*state = bench;
	return 0;
}

static struct tally_attr faults_attr(uint64_t period, uint64_t sample_type)
{
	struct tally_attr attr = fixture_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	attr.sample_period = period;
	attr.sample_type = sample_type;
	return attr;
}

static int open_mapped(struct bench *bench, const struct tally_attr *attr)
{
	int fd = fixture_open(&bench->fixture, attr, -1);
	assert_true(fd >= 0);
	driver_map(&bench->fixture, fd, attr, &bench->ring);
	return fd;
}

static unsigned samples(struct bench *bench)
{
	return driver_count_records(&bench->ring, TALLY_RECORD_SAMPLE);
}

static void fault(struct bench *bench, uint64_t weight)
{
	fixture_hit(&bench->fixture, TALLY_SW_PAGE_FAULTS, weight);
}

/* Makes faults one by one, and checks at which counts samples come: `at`, terminated by 0. */
static void expect_samples_at(struct bench *bench, uint64_t *count, uint64_t until,
			      const uint64_t *at)
{
	while (*count < until) {
		fault(bench, 1);
		++*count;
		unsigned expected = *at == *count;
		at += expected;
		assert_int_equal(samples(bench), expected);
	}
	assert_int_equal(*at, 0);
}

static long control(struct bench *bench, int fd, unsigned request, uintptr_t argument)
{
	return tally_engine_ioctl(bench->fixture.engine, fd, request, argument);
}

static void set_period(struct bench *bench, int fd, uint64_t period)
{
	assert_int_equal(control(bench, fd, TALLY_IOC_PERIOD, (uintptr_t)&period), 0);
}

/* --- C1: periods ---------------------------------------------------------- */

/* The numbers are from Linux 6.18's page faults. */
static void ioc_period_begins_anew_as_in_the_kernel(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(100, TALLY_SAMPLE_IP);
	int fd = open_mapped(bench, &attr);
	uint64_t count = 0;
	expect_samples_at(bench, &count, 238, (uint64_t[]){ 100, 200, 0 });
	set_period(bench, fd, 50);
	expect_samples_at(bench, &count, 538, (uint64_t[]){ 239, 338, 388, 438, 488, 538, 0 });
	set_period(bench, fd, 20);
	expect_samples_at(bench, &count, 638, (uint64_t[]){ 539, 588, 608, 628, 0 });
	assert_int_equal(control(bench, fd, TALLY_IOC_DISABLE, 0), 0);
	set_period(bench, fd, 70);
	assert_int_equal(control(bench, fd, TALLY_IOC_ENABLE, 0), 0);
	expect_samples_at(bench, &count, 938, (uint64_t[]){ 708, 778, 848, 918, 0 });
}

static void bad_periods_are_einval(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(100, 0), counting = faults_attr(0, 0),
			  often = faults_attr(1000, 0);
	uint64_t zero = 0, huge = 1ull << 63, good = 5, too_often = 100001;
	int fd = fixture_open(&bench->fixture, &attr, -1),
	    counter = fixture_open(&bench->fixture, &counting, -1);
	often.flags = TALLY_ATTR_FREQ;
	int adapting = fixture_open(&bench->fixture, &often, -1);
	assert_int_equal(control(bench, fd, TALLY_IOC_PERIOD, (uintptr_t)&zero), -22);
	assert_int_equal(control(bench, fd, TALLY_IOC_PERIOD, (uintptr_t)&huge), -22);
	assert_int_equal(control(bench, counter, TALLY_IOC_PERIOD, (uintptr_t)&good), -22);
	assert_int_equal(control(bench, adapting, TALLY_IOC_PERIOD, (uintptr_t)&too_often), -22);
	assert_int_equal(control(bench, adapting, TALLY_IOC_PERIOD, (uintptr_t)&good), 0);
	assert_int_equal(control(bench, fd, TALLY_IOC_REFRESH, 1), 0);
	assert_int_equal(control(bench, counter, TALLY_IOC_REFRESH, 1), -22);
}

/* A period stays one period when the task runs in slices. */
static void a_period_outlives_switches(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(10, 0);
	open_mapped(bench, &attr);
	for (unsigned i = 1; i <= 100; i++) {
		fault(bench, 1);
		assert_int_equal(samples(bench), i % 10 == 0);
		fixture_switch(&bench->fixture, NULL);
		fault(bench, 1); /* no event is on */
		fixture_switch(&bench->fixture, bench->fixture.task);
	}
}

static unsigned overflows_of(struct bench *bench, uint64_t more)
{
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	bench->overflows = 0;
	driver_count(&bench->fixture, bench->driver.active[0], more, (struct tally_engine_hit){ 0 },
		     &regs);
	return bench->overflows;
}

/* When the interrupt arrives, a hardware counter has counted beyond its period.  The excess belongs
 * to the next period, unless it is a whole period itself. */
static void what_a_counter_is_past_belongs_to_the_next_period(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = fixture_attr(bench->driver.pmu.type, 0);
	attr.sample_period = 100;
	int fd = fixture_open(&bench->fixture, &attr, -1);
	assert_int_equal(
		tally_engine_set_overflow_handler(bench->fixture.engine, fd, count_overflow, bench),
		0);
	const struct { unsigned more, overflows; } steps[] = {
		{ 99, 0 }, { 4, 1 }, { 96, 0 }, { 1, 1 }, { 950, 1 }, { 99, 0 }, { 1, 1 },
	};
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		assert_int_equal(overflows_of(bench, steps[i].more), steps[i].overflows);
	assert_int_equal(fixture_value(&bench->fixture, fd), 1250);
}

/* --- C7: weights ---------------------------------------------------------- */

static void with_sample_period_each_hit_is_a_sample_of_its_weight(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(1000000, TALLY_SAMPLE_PERIOD);
	struct tally_record record;
	open_mapped(bench, &attr);
	for (uint64_t weight = 1; weight < 100; weight++) {
		fault(bench, weight);
		assert_true(driver_take(&bench->ring, &record));
		assert_int_equal(record.sample.period, weight);
		assert_false(driver_take(&bench->ring, &record));
	}
}

static void a_heavy_hit_is_a_sample_per_period(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(100, 0);
	open_mapped(bench, &attr);
	uint64_t count = 0;
	unsigned seen = 0;
	for (unsigned i = 1; i < 60; i++) {
		fault(bench, 7 * i % 331);
		count += 7 * i % 331;
		seen += samples(bench);
		assert_int_equal(seen, count / 100);
	}
}

/* --- C1: frequency -------------------------------------------------------- */

static void count_overflow(struct tally_pmu_event *event, const struct tally_engine_hit *hit,
			   const struct tally_engine_regs *regs, void *data)
{
	struct bench *bench = data;
	(void)event, (void)regs;
	bench->overflows++;
	bench->periods += hit->period;
}

static double uniform(struct bench *bench)
{
	bench->random ^= bench->random << 13;
	bench->random ^= bench->random >> 7;
	bench->random ^= bench->random << 17;
	return (double)(bench->random >> 11) / 9007199254740992.0;
}

/* Computes ln(x) for 0 < x < 1, enough for waiting times, without libm. */
static double logarithm(double x)
{
	double sum = 0;
	for (; x < 0.5; x *= 2)
		sum -= 0.693147180559945;
	double y = (x - 1) / (x + 1), power = y, series = 0;
	for (unsigned i = 1; i < 30; i += 2, power *= y * y)
		series += power / i;
	return sum + 2 * series;
}

/* Counts at `rate` per second for `ns`: evenly, or (`random`) with a random waiting time before
 * each occurrence. */
static void run_at(struct bench *bench, double rate, uint64_t ns, bool random)
{
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	struct tally_pmu_event *event = bench->driver.active[0];
	uint64_t end = fixture->now_ns + ns, tick = fixture->host.tick_ns, done = 0;
	double at = (double)fixture->now_ns, start = at;

	while (fixture->now_ns < end) {
		uint64_t next_tick = (fixture->now_ns / tick + 1) * tick;
		uint64_t left = random || event->state ? 1 : (uint64_t)event->period_left;
		at = random ? at - logarithm(1 - uniform(bench)) * 1e9 / rate
			    : start + (double)(done + left) * 1e9 / rate;
		while (next_tick <= (uint64_t)at && next_tick <= end) {
			fixture->now_ns = next_tick;
			/* Adds the counts since the last overflow, so that the tick finds them. */
			if (!random) {
				uint64_t counted = (uint64_t)(((double)next_tick - start) * rate /
							      1e9);
				uint64_t more = counted > done ? counted - done : 0;
				driver_count(fixture, event, more, (struct tally_engine_hit){ 0 },
					     &regs);
				done += more;
			}
			fixture_tick(fixture);
			next_tick += tick;
			if (!random) {
				left = event->state ? 1 : (uint64_t)event->period_left;
				at = start + (double)(done + left) * 1e9 / rate;
			}
		}
		if ((uint64_t)at >= end)
			break;
		fixture->now_ns = (uint64_t)at;
		driver_count(fixture, event, left, (struct tally_engine_hit){ 0 }, &regs);
		done += left;
	}
	fixture->now_ns = end;
}

static int open_adapting(struct bench *bench, uint64_t frequency)
{
	struct tally_attr attr = fixture_attr(bench->driver.pmu.type, 0);
	attr.sample_period = frequency;
	attr.flags = TALLY_ATTR_FREQ;
	int fd = fixture_open(&bench->fixture, &attr, -1);
	assert_true(fd >= 0);
	assert_int_equal(
		tally_engine_set_overflow_handler(bench->fixture.engine, fd, count_overflow, bench),
		0);
	return fd;
}

/* Checks the samples of the next second against the frequency. */
static void expect_frequency(struct bench *bench, double rate, uint64_t frequency, bool random)
{
	bench->overflows = 0;
	run_at(bench, rate, 1000000000, random);
	if (bench->overflows < frequency * 95 / 100 || bench->overflows > frequency * 105 / 100)
		fail_msg("%.0f events a second, %u samples instead of %u", rate, bench->overflows,
			 (unsigned)frequency);
}

static void frequency_holds_over_six_orders_of_magnitude(void **state)
{
	struct bench *bench = *state;
	const uint64_t frequencies[] = { 100, 997, 4000, 25000 };
	for (unsigned i = 0; i < 4; i++)
		for (double ratio = 1.5; ratio < 2e6; ratio *= 3.7) {
			uint64_t frequency = frequencies[i];
			int fd = open_adapting(bench, frequency);
			run_at(bench, ratio * (double)frequency, 1000000000, false);
			expect_frequency(bench, ratio * (double)frequency, frequency, false);
			assert_int_equal(tally_engine_close(bench->fixture.engine, fd), 0);
		}
}

/* The rate of one event changes a thousandfold, up and down. */
static void frequency_follows_the_rate(void **state)
{
	struct bench *bench = *state;
	const double rates[] = { 1e4, 1e7, 1e4, 1e9, 2e3, 1.7e6, 1e3, 1e9 };
	open_adapting(bench, 1000);
	for (unsigned i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		run_at(bench, rates[i], 1000000000, false);
		if (rates[i] > 1000)
			expect_frequency(bench, rates[i], 1000, false);
	}
}

/* The first tick sees that a period is a hundred thousand times too long; it is not waited out. */
static void a_rate_that_falls_is_seen_at_the_tick(void **state)
{
	struct bench *bench = *state;
	open_adapting(bench, 1000);
	run_at(bench, 1e9, 1000000000, false);
	run_at(bench, 1e4, 3 * bench->fixture.host.tick_ns, false);
	expect_frequency(bench, 1e4, 1000, false);
}

static void frequency_holds_for_events_at_random(void **state)
{
	struct bench *bench = *state;
	open_adapting(bench, 4000);
	for (double rate = 6000; rate < 3e6; rate *= 7) {
		run_at(bench, rate, 1000000000, true);
		expect_frequency(bench, rate, 4000, true);
	}
}

/* A new event's period of 1 must not flood the ring before the first tick. */
static void a_burst_is_caught_between_ticks(void **state)
{
	struct bench *bench = *state;
	open_adapting(bench, 1000);
	run_at(bench, 1e9, bench->fixture.host.tick_ns - 1, false);
	assert_true(bench->overflows < 200);
}

/* --- C6: throttling ------------------------------------------------------- */

static void expect_throttled(struct bench *bench, unsigned expected_samples)
{
	struct tally_record record;
	unsigned seen = 0, throttles = 0;
	while (driver_take(&bench->ring, &record)) {
		seen += record.header.type == TALLY_RECORD_SAMPLE;
		throttles += record.header.type == TALLY_RECORD_THROTTLE;
	}
	assert_int_equal(seen, expected_samples);
	assert_int_equal(throttles, 1);
}

static void hardware_is_throttled_until_the_tick(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = fixture_attr(bench->driver.pmu.type, 0);
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	struct tally_record record;
	attr.sample_period = 1;
	attr.sample_type = TALLY_SAMPLE_IP;
	int fd = open_mapped(bench, &attr);
	for (unsigned tick = 0; tick < 3; tick++) {
		for (unsigned i = 0; i < 1000; i++)
			driver_count(fixture, bench->driver.active[0], 1,
				     (struct tally_engine_hit){ 0 }, &regs);
		expect_throttled(bench, PER_TICK);
		fixture_tick(fixture);
		assert_true(driver_take(&bench->ring, &record));
		assert_int_equal(record.header.type, TALLY_RECORD_UNTHROTTLE);
		assert_int_equal(record.throttle.id, driver_id(fixture, fd));
		assert_int_equal(record.throttle.time, fixture->now_ns);
	}
	assert_int_equal(fixture_value(fixture, fd), 3 * PER_TICK);
}

/* Measured on 6.18, with and without PERF_SAMPLE_PERIOD: only a second overflow by the same hit
 * throttles. */
static void plain_hits_are_never_throttled(void **state)
{
	struct bench *bench = *state;
	const struct tally_attr attrs[] = { faults_attr(1, 0), faults_attr(10, 0),
					    faults_attr(1, TALLY_SAMPLE_PERIOD) };
	for (unsigned k = 0; k < 3; k++) {
		int fd = open_mapped(bench, &attrs[k]);
		unsigned seen = 0;
		for (unsigned i = 0; i < 20000; i++) {
			fault(bench, 1);
			seen += samples(bench);
		}
		assert_int_equal(seen, 20000 / attrs[k].sample_period);
		assert_int_equal(fixture_value(&bench->fixture, fd), 20000);
	}
}

/* Measured on 6.18: 400 samples in a tick, and later hits are not counted. */
static void the_second_overflow_of_a_hit_throttles(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(100, 0);
	int fd = open_mapped(bench, &attr);
	for (unsigned i = 0; i < 100; i++)
		fault(bench, 1000);
	expect_throttled(bench, PER_TICK);
	assert_int_equal(fixture_value(&bench->fixture, fd), 40000);
	fixture_tick(&bench->fixture);
	fault(bench, 1000);
	assert_int_equal(fixture_value(&bench->fixture, fd), 41000);
}

static void throttling_stops_the_whole_group(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(100, 0), member = faults_attr(0, 0);
	member.config = TALLY_SW_PAGE_FAULTS_MIN;
	int fd = open_mapped(bench, &attr), other = fixture_open(&bench->fixture, &member, fd);
	for (unsigned i = 0; i < 100; i++) {
		fault(bench, 1000);
		fixture_hit(&bench->fixture, TALLY_SW_PAGE_FAULTS_MIN, 1);
	}
	expect_throttled(bench, PER_TICK);
	assert_int_equal(fixture_value(&bench->fixture, fd), 40000);
	assert_int_equal(fixture_value(&bench->fixture, other), 39);
	fixture_tick(&bench->fixture);
	fixture_hit(&bench->fixture, TALLY_SW_PAGE_FAULTS_MIN, 1);
	assert_int_equal(fixture_value(&bench->fixture, other), 40);
}

static void a_switch_unthrottles(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(100, 0);
	int fd = open_mapped(bench, &attr);
	for (unsigned i = 0; i < 100; i++)
		fault(bench, 1000);
	expect_throttled(bench, PER_TICK);
	fixture_switch(&bench->fixture, NULL);
	fixture_switch(&bench->fixture, bench->fixture.task);
	assert_int_equal(driver_count_records(&bench->ring, TALLY_RECORD_UNTHROTTLE), 1);
	fault(bench, 1);
	assert_int_equal(fixture_value(&bench->fixture, fd), 40001);
}

/* --- C5: REFRESH, signals ------------------------------------------------- */

static void make_async(struct bench *bench, int fd)
{
	struct engine_fixture *fixture = &bench->fixture;
	assert_int_equal(tally_engine_fcntl(fixture->engine, fd, SET_OWNER, 1000), 0);
	assert_int_equal(tally_engine_fcntl(fixture->engine, fd, SET_SIGNAL, 35), 0);
	assert_int_equal(tally_engine_fcntl(fixture->engine, fd, SET_FLAGS, ASYNC), 0);
}

static void each_overflow_signals_whatever_wakes_readers(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(1, 0);
	attr.wakeup_events = 10;
	int fd = open_mapped(bench, &attr);
	make_async(bench, fd);
	for (unsigned i = 0; i < 100; i++)
		fault(bench, 1);
	assert_int_equal(bench->fixture.signal_count, 100);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(bench->fixture.signals[i].number, 35);
		assert_int_equal(bench->fixture.signals[i].code, POLL_IN_CODE);
		assert_int_equal(bench->fixture.signals[i].fd, fd);
		assert_int_equal(bench->fixture.signals[i].owner, 1000);
	}
}

static void without_an_owner_nobody_is_signalled(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(1, 0);
	int fd = open_mapped(bench, &attr);
	assert_int_equal(tally_engine_fcntl(bench->fixture.engine, fd, SET_FLAGS, ASYNC), 0);
	fault(bench, 1);
	assert_int_equal(bench->fixture.signal_count, 0);
	assert_int_equal(tally_engine_fcntl(bench->fixture.engine, fd, SET_OWNER, 1000), 0);
	fault(bench, 1);
	assert_int_equal(bench->fixture.signal_count, 1);
	assert_int_equal(bench->fixture.signals[0].number, SIGIO_NUMBER);
}

static void refresh_counts_down_to_a_hang_up(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(10, 0);
	attr.flags = TALLY_ATTR_DISABLED;
	int fd = open_mapped(bench, &attr);
	make_async(bench, fd);
	for (unsigned turn = 1; turn <= 2; turn++) {
		assert_int_equal(control(bench, fd, TALLY_IOC_REFRESH, 3), 0);
		for (unsigned i = 0; i < 100; i++)
			fault(bench, 1);
		assert_int_equal(samples(bench), 3);
		assert_int_equal(fixture_value(&bench->fixture, fd), 30 * turn);
		assert_int_equal(bench->fixture.signal_count, 3 * turn);
		assert_int_equal(bench->fixture.signals[3 * turn - 3].code, POLL_IN_CODE);
		assert_int_equal(bench->fixture.signals[3 * turn - 2].code, POLL_IN_CODE);
		assert_int_equal(bench->fixture.signals[3 * turn - 1].code, POLL_HUP_CODE);
	}
}

/* The task is switched out before the pending work ran: the event must not count where the task
 * runs next. */
static void refresh_ends_though_the_task_is_switched_first(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = faults_attr(1, 0);
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	attr.flags = TALLY_ATTR_DISABLED;
	int fd = open_mapped(bench, &attr);
	assert_int_equal(control(bench, fd, TALLY_IOC_REFRESH, 1), 0);
	tally_engine_software(fixture->engine, TALLY_SW_PAGE_FAULTS, 1, &regs, 0);
	assert_true(fixture->pending[0]);
	fixture->pending[0] = false;
	fixture_switch(fixture, NULL);
	fixture_on(fixture, 1);
	fixture_switch(fixture, fixture->task);
	fault(bench, 1);
	assert_int_equal(samples(bench), 1);
	assert_int_equal(fixture_value(fixture, fd), 1);
	fixture_switch(fixture, NULL);
	fixture_on(fixture, 0);
	fixture->pending[0] = true;
	fixture_switch(fixture, fixture->task);
	fault(bench, 1);
	assert_int_equal(fixture_value(fixture, fd), 1);
	assert_int_equal(control(bench, fd, TALLY_IOC_REFRESH, 1), 0);
	fault(bench, 1);
	assert_int_equal(fixture_value(fixture, fd), 2);
}

static void sigtrap_tells_who_and_where(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(1, TALLY_SAMPLE_ADDR);
	attr.flags = TALLY_ATTR_SIGTRAP | TALLY_ATTR_REMOVE_ON_EXEC;
	attr.sig_data = 0xfeedface;
	assert_true(fixture_open(&bench->fixture, &attr, -1) >= 0);
	fault(bench, 1);
	assert_int_equal(bench->fixture.signal_count, 1);
	const struct tally_engine_signal *signal = &bench->fixture.signals[0];
	assert_int_equal(signal->number, 5);
	assert_int_equal(signal->code, 6);
	assert_int_equal(signal->data, 0xfeedface);
	assert_int_equal(signal->type, TALLY_TYPE_SOFTWARE);
	assert_int_equal(signal->address, 0x7000);
	assert_ptr_equal(signal->task, bench->fixture.task);
}

/* --- H4 ------------------------------------------------------------------- */

static void a_handler_of_ones_own_replaces_the_ring(void **state)
{
	struct bench *bench = *state;
	struct tally_attr attr = faults_attr(10, 0);
	attr.flags = TALLY_ATTR_DISABLED;
	int fd = open_mapped(bench, &attr);
	assert_int_equal(
		tally_engine_set_overflow_handler(bench->fixture.engine, 99, count_overflow, bench),
		-9);
	assert_int_equal(
		tally_engine_set_overflow_handler(bench->fixture.engine, fd, count_overflow, bench),
		0);
	assert_int_equal(control(bench, fd, TALLY_IOC_ENABLE, 0), 0);
	for (unsigned i = 0; i < 55; i++)
		fault(bench, 1);
	assert_int_equal(bench->overflows, 5);
	assert_int_equal(bench->periods, 50);
	assert_int_equal(samples(bench), 0);
	assert_int_equal(tally_engine_set_overflow_handler(bench->fixture.engine, fd, NULL, NULL),
			 0);
	for (unsigned i = 0; i < 5; i++)
		fault(bench, 1);
	assert_int_equal(bench->overflows, 5);
	assert_int_equal(samples(bench), 1);
}

/* --- hits within hits ----------------------------------------------------- */

/* Makes an interrupt one level above this one, in which the event is hit. */
static void interrupt(struct bench *bench)
{
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_engine_regs regs = fixture_kernel_regs(0xffffffff81000000);
	enum tally_engine_level level = fixture->level[fixture->cpu];
	if (!bench->nested_left || level == TALLY_LEVEL_NMI)
		return;
	bench->nested_left--;
	fixture->level[fixture->cpu] = level + 1;
	tally_engine_software(fixture->engine, bench->nested_event, 1, &regs, 0);
	fixture->level[fixture->cpu] = level;
}

/* The host is the first member of the bench. */
static unsigned chain_with_interrupt(void *host, const struct tally_engine_regs *regs, bool user,
				     uint64_t *addresses, unsigned max)
{
	struct bench *bench = host;
	(void)max;
	if (user)
		return 0;
	addresses[0] = regs->ip + 16 * bench->fixture.level[bench->fixture.cpu];
	interrupt(bench);
	return 1;
}

static void signal_with_interrupt(void *host, const struct tally_engine_signal *signal)
{
	fixture_signal(host, signal);
	interrupt(host);
}

/* Nests four levels in one event: each has its sample and its own call chain, and the count
 * includes all. */
static void each_level_has_its_sample(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_attr attr = faults_attr(1, TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_PERIOD);
	struct tally_engine_regs regs = fixture_kernel_regs(0xffffffff81000000);
	struct tally_record record;
	int fd = open_mapped(bench, &attr);
	bench->nested_left = 3;
	bench->nested_event = TALLY_SW_PAGE_FAULTS;
	tally_engine_software(fixture->engine, TALLY_SW_PAGE_FAULTS, 1, &regs, 0);
	for (int level = TALLY_LEVEL_NMI; level >= TALLY_LEVEL_TASK; level--) {
		assert_true(driver_take(&bench->ring, &record));
		assert_int_equal(record.sample.chain[1], regs.ip + 16 * (unsigned)level);
	}
	assert_false(driver_take(&bench->ring, &record));
	assert_int_equal(fixture_value(fixture, fd), 4);
}

static void hit_again(struct tally_pmu_event *event, const struct tally_engine_hit *hit,
		      const struct tally_engine_regs *regs, void *data)
{
	struct bench *bench = data;
	(void)event, (void)hit;
	bench->overflows++;
	tally_engine_software(bench->fixture.engine, TALLY_SW_PAGE_FAULTS, 1, regs, 0);
}

static void a_hit_in_a_hit_of_its_level_is_dropped(void **state)
{
	struct bench *bench = *state;
	struct tally_engine_statistics statistics;
	struct tally_attr attr = faults_attr(1, 0);
	int fd = fixture_open(&bench->fixture, &attr, -1);
	assert_int_equal(
		tally_engine_set_overflow_handler(bench->fixture.engine, fd, hit_again, bench), 0);
	for (unsigned i = 0; i < 5; i++)
		fault(bench, 1);
	assert_int_equal(bench->overflows, 5);
	assert_int_equal(fixture_value(&bench->fixture, fd), 5);
	tally_engine_statistics(bench->fixture.engine, &statistics);
	assert_int_equal(statistics.hits_dropped[TALLY_LEVEL_TASK], 5);
}

/* Each signal that the drain delivers is interrupted by a hit that pends again, on an event just
 * handled or on one that the drain has not reached yet.  Every overflow is signalled, and the drain
 * ends. */
static void pending_while_the_list_is_drained(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	const enum tally_sw kinds[] = { TALLY_SW_PAGE_FAULTS, TALLY_SW_ALIGNMENT_FAULTS,
					TALLY_SW_EMULATION_FAULTS };
	int fds[3];
	for (unsigned i = 0; i < 3; i++) {
		struct tally_attr attr = faults_attr(1, 0);
		attr.config = kinds[i];
		fds[i] = fixture_open(fixture, &attr, -1);
		make_async(bench, fds[i]);
	}
	for (unsigned nested = 0; nested < 3; nested++) {
		fixture->signal_count = 0;
		for (unsigned i = 0; i < 3; i++)
			tally_engine_software(fixture->engine, kinds[i], 1, &regs, 0);
		bench->nested_left = 5;
		bench->nested_event = kinds[nested];
		fixture_run_pending(fixture);
		assert_int_equal(bench->nested_left, 0);
		unsigned last[3] = { 0 };
		for (unsigned i = 0; i < fixture->signal_count; i++)
			for (unsigned k = 0; k < 3; k++)
				last[k] += fixture->signals[i].fd == fds[k];
		for (unsigned k = 0; k < 3; k++)
			assert_true(last[k] >= 1);
		/* The hit in the last signal's interrupt has been signalled too. */
		assert_true(last[nested] >= 2);
		assert_false(fixture->pending[0]);
		bench->nested_event = kinds[(nested + 1) % 3];
	}
}

/* An event queued on a CPU that never drains is removed before it is freed. */
static void a_queued_event_may_be_closed(void **state)
{
	struct bench *bench = *state;
	struct engine_fixture *fixture = &bench->fixture;
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	struct tally_attr attr = faults_attr(1, 0);
	int fd = fixture_open(fixture, &attr, -1);
	make_async(bench, fd);
	fixture_switch(fixture, NULL);
	fixture_on(fixture, 1);
	fixture_switch(fixture, fixture->task);
	tally_engine_software(fixture->engine, TALLY_SW_PAGE_FAULTS, 1, &regs, 0);
	fixture->pending[1] = false;
	fixture_switch(fixture, NULL);
	fixture->pending[1] = false;
	fixture_on(fixture, 0);
	fixture_switch(fixture, fixture->task);
	assert_int_equal(tally_engine_close(fixture->engine, fd), 0);
	assert_int_equal(fixture_events(fixture), 0);
	fixture_on(fixture, 1);
	fixture->pending[1] = true;
	fixture_run_pending(fixture);
	fixture_on(fixture, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(ioc_period_begins_anew_as_in_the_kernel),
		TEST(bad_periods_are_einval),
		TEST(a_period_outlives_switches),
		TEST(what_a_counter_is_past_belongs_to_the_next_period),
		TEST(with_sample_period_each_hit_is_a_sample_of_its_weight),
		TEST(a_heavy_hit_is_a_sample_per_period),
		TEST(frequency_holds_over_six_orders_of_magnitude),
		TEST(frequency_follows_the_rate),
		TEST(a_rate_that_falls_is_seen_at_the_tick),
		TEST(frequency_holds_for_events_at_random),
		TEST(a_burst_is_caught_between_ticks),
		TEST(hardware_is_throttled_until_the_tick),
		TEST(plain_hits_are_never_throttled),
		TEST(the_second_overflow_of_a_hit_throttles),
		TEST(throttling_stops_the_whole_group),
		TEST(a_switch_unthrottles),
		TEST(each_overflow_signals_whatever_wakes_readers),
		TEST(without_an_owner_nobody_is_signalled),
		TEST(refresh_counts_down_to_a_hang_up),
		TEST(refresh_ends_though_the_task_is_switched_first),
		TEST(sigtrap_tells_who_and_where),
		TEST(a_handler_of_ones_own_replaces_the_ring),
		TEST(each_level_has_its_sample),
		TEST(a_hit_in_a_hit_of_its_level_is_dropped),
		TEST(pending_while_the_list_is_drained),
		TEST(a_queued_event_may_be_closed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
