/* C1, C6, C7: periods, frequencies, throttling, weighted hits. */
#include "ring_walk.h"

#include <errno.h>

#define MILLISECOND 1000000ull

static int fault_samples(struct surface *surface, uint64_t period, unsigned faults, long *samples)
{
	struct tally_attr attr = ring_faults_attr(period, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 8);
	ring_run_faults(surface, ring.fd, faults);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), faults);
	*samples = ring_count(&ring, TALLY_RECORD_SAMPLE);
	return 0;
}

static int period_one_samples_each_event(struct surface *surface)
{
	long samples;
	int failed = fault_samples(surface, 1, 37, &samples);
	CHECK_EQUAL(failed, 0);
	CHECK_EQUAL(samples, 37);
	return 0;
}

static int period_n_samples_each_nth_event(struct surface *surface)
{
	long samples;
	int failed = fault_samples(surface, 7, 100, &samples);
	CHECK_EQUAL(failed, 0);
	CHECK_EQUAL(samples, 14);
	return 0;
}

static int period_left_is_kept_while_disabled(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(10, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 7);
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	ring_run_faults(surface, ring.fd, 2);
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	ring_run_faults(surface, ring.fd, 1);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 1);
	return 0;
}

static int reset_keeps_the_period_left(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(10, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 7);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_RESET, 0), 0);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 0);
	ring_run_faults(surface, ring.fd, 3);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 1);
	return 0;
}

static int samples_without_a_ring_are_counted_alone(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	int fd = CALL(open, &attr, 0, -1, -1, 0);
	CHECK(fd >= 0);
	ring_run_faults(surface, fd, 20);
	CHECK_EQUAL(ring_event_count(surface, fd), 20);
	return 0;
}

static int open_sampling(struct surface *surface, uint64_t flags, uint64_t period)
{
	struct tally_attr attr = ring_faults_attr(period, TALLY_SAMPLE_IP);
	attr.flags |= flags;
	return CALL(open, &attr, 0, -1, -1, 0);
}

static int frequency_above_the_maximum_einval(struct surface *surface)
{
	long most = CALL(sysctl, "perf_event_max_sample_rate");
	CHECK(most > 0);
	CHECK_ERROR(open_sampling(surface, TALLY_ATTR_FREQ, (uint64_t)most + 1), EINVAL);
	return 0;
}

static int frequency_at_the_maximum_is_taken(struct surface *surface)
{
	long most = CALL(sysctl, "perf_event_max_sample_rate");
	CHECK(most > 0);
	CHECK(open_sampling(surface, TALLY_ATTR_FREQ, (uint64_t)most) >= 0);
	return 0;
}

static int period_with_its_top_bit_set_einval(struct surface *surface)
{
	CHECK_ERROR(open_sampling(surface, 0, 1ull << 63), EINVAL);
	CHECK_ERROR(open_sampling(surface, 0, UINT64_MAX), EINVAL);
	return 0;
}

static int largest_period_is_taken(struct surface *surface)
{
	CHECK(open_sampling(surface, 0, (1ull << 63) - 1) >= 0);
	return 0;
}

static int set_period(struct surface *surface, int fd, uint64_t period)
{
	return (int)CALL(ioctl, fd, TALLY_IOC_PERIOD, (uintptr_t)&period);
}

static int ioc_period_zero_einval(struct surface *surface)
{
	int fd = open_sampling(surface, 0, 10);
	CHECK(fd >= 0);
	CHECK_ERROR(set_period(surface, fd, 0), EINVAL);
	return 0;
}

static int ioc_period_with_its_top_bit_set_einval(struct surface *surface)
{
	int fd = open_sampling(surface, 0, 10);
	CHECK(fd >= 0);
	CHECK_ERROR(set_period(surface, fd, 1ull << 63), EINVAL);
	return 0;
}

static int ioc_period_on_a_counting_event_einval(struct surface *surface)
{
	int fd = open_sampling(surface, 0, 0);
	CHECK(fd >= 0);
	CHECK_ERROR(set_period(surface, fd, 10), EINVAL);
	return 0;
}

static int ioc_period_bad_pointer_efault(struct surface *surface)
{
	int fd = open_sampling(surface, 0, 10);
	CHECK(fd >= 0);
	CHECK_ERROR(CALL(ioctl, fd, TALLY_IOC_PERIOD, (uintptr_t)SURFACE_BAD_POINTER), EFAULT);
	return 0;
}

static int ioc_period_of_a_frequency_above_the_maximum_einval(struct surface *surface)
{
	int fd = open_sampling(surface, TALLY_ATTR_FREQ, 100);
	long most = CALL(sysctl, "perf_event_max_sample_rate");
	CHECK(fd >= 0 && most > 0);
	CHECK_ERROR(set_period(surface, fd, (uint64_t)most + 1), EINVAL);
	CHECK_EQUAL(set_period(surface, fd, 200), 0);
	return 0;
}

static int ioc_period_holds_from_the_next_enabling(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(10, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 20);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 2);
	CHECK_EQUAL(set_period(surface, ring.fd, 4), 0);
	ring_run_faults(surface, ring.fd, 20);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 5);
	return 0;
}

/* After the ioctl, the next hit is a sample, then one more follows after the old period, then the
 * new period holds (docs/conformance.md, quirks). */
static int ioc_period_of_an_active_software_event(struct surface *surface)
{
	static const struct {
		unsigned faults, samples;
	} steps[] = { { 1, 1 }, { 98, 0 }, { 1, 1 }, { 4, 0 }, { 1, 1 }, { 25, 5 } };
	struct tally_attr attr = ring_faults_attr(100, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(fault, 50);
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	CHECK_EQUAL(set_period(surface, ring.fd, 5), 0);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		CALL(fault, steps[i].faults);
		CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), steps[i].samples);
	}
	return 0;
}

static int modified_period(struct surface *surface, struct ring *ring)
{
	struct tally_attr attr = ring_faults_attr(10, TALLY_SAMPLE_IP);
	CHECK_RING(ring, surface, &attr, 0, -1, 1);
	return 0;
}

static int period_is_each_events_own(struct surface *surface)
{
	struct ring first, second;
	CHECK_EQUAL(modified_period(surface, &first), 0);
	CHECK_EQUAL(modified_period(surface, &second), 0);
	CHECK_EQUAL(set_period(surface, second.fd, 5), 0);
	CALL(ioctl, first.fd, TALLY_IOC_ENABLE, 0);
	ring_run_faults(surface, second.fd, 30);
	CALL(ioctl, first.fd, TALLY_IOC_DISABLE, 0);
	/* The warm-up fault counts for the first event. */
	CHECK_EQUAL(ring_count(&first, TALLY_RECORD_SAMPLE), 3);
	CHECK_EQUAL(ring_count(&second, TALLY_RECORD_SAMPLE), 6);
	return 0;
}

/* A clock has nothing to adapt to: its frequency becomes a fixed period in ns. */
static int clock_frequency_is_a_fixed_period(struct surface *surface)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_TASK_CLOCK, 1000,
					   TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	unsigned samples = 0;
	attr.flags |= TALLY_ATTR_FREQ;
	CHECK_RING(&ring, surface, &attr, 0, -1, 8);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 40 * MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	for (; ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1; samples++)
		CHECK_EQUAL(record.sample.period, MILLISECOND);
	CHECK_BETWEEN(samples, 5, ring_event_count(surface, ring.fd) / MILLISECOND + 2);
	return 0;
}

static int clock_period_samples(struct surface *surface, enum tally_sw clock)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_SOFTWARE, clock, MILLISECOND,
					   TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 8);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 40 * MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	CHECK_BETWEEN(ring_count(&ring, TALLY_RECORD_SAMPLE), 5,
		      ring_event_count(surface, ring.fd) / MILLISECOND + 2);
	return 0;
}

static int cpu_clock_samples_by_time(struct surface *surface)
{
	return clock_period_samples(surface, TALLY_SW_CPU_CLOCK);
}

static int task_clock_samples_by_time(struct surface *surface)
{
	return clock_period_samples(surface, TALLY_SW_TASK_CLOCK);
}

static int clock_period_below_ten_microseconds_is_ten(struct surface *surface)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_CPU_CLOCK, 1,
					   TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 10 * MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	CHECK_BETWEEN(ring_count(&ring, TALLY_RECORD_SAMPLE), 20,
		      ring_event_count(surface, ring.fd) / 10000 + 2);
	return 0;
}

/* Faults come much faster than the frequency, so the period must grow from 1. */
static int frequency_adapts_the_period(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(100, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	uint64_t most = 0, end = CALL(now) + 2000 * MILLISECOND;
	attr.flags |= TALLY_ATTR_FREQ;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	while (most < 50 && CALL(now) < end) {
		CALL(fault, 1000);
		while (ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1)
			most = record.sample.period > most ? record.sample.period : most;
	}
	CHECK_BETWEEN(most, 50, UINT64_MAX);
	return 0;
}

static int hardware_frequency_adapts(struct surface *surface)
{
	struct tally_attr attr =
		ring_attr(TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES, 1000, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	uint64_t first = 0, last = 0;
	attr.flags |= TALLY_ATTR_FREQ;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 200 * MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	while (ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1) {
		first = first ? first : record.sample.period;
		last = record.sample.period;
	}
	CHECK_BETWEEN(last, 1000, UINT64_MAX);
	CHECK(last > first);
	return 0;
}

static int hardware_period_gives_count_over_period_samples(struct surface *surface)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES, 100000,
					   TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, 5000000);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	uint64_t periods = ring_event_count(surface, ring.fd) / 100000;
	CHECK_BETWEEN(periods, 10, UINT64_MAX);
	CHECK_BETWEEN(ring_count(&ring, TALLY_RECORD_SAMPLE), periods - periods / 10 - 1,
		      periods + 1);
	return 0;
}

/* --- C6 ------------------------------------------------------------------- */

static int plain_hits_are_never_throttled(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(1, TALLY_SAMPLE_IP);
	struct ring ring;
	long samples = 0;
	CHECK_RING(&ring, surface, &attr, 0, -1, 8);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	for (unsigned round = 0; round < 100; round++) {
		struct tally_record record;
		int got;
		CALL(fault, 1000);
		while ((got = ring_next(&ring, &record)) == 1) {
			CHECK(record.header.type != TALLY_RECORD_THROTTLE);
			samples += record.header.type == TALLY_RECORD_SAMPLE;
		}
		CHECK_EQUAL(got, 0);
	}
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	CHECK_EQUAL(samples, 100000);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), 100000);
	return 0;
}

/* A clock event whose unit is a nanosecond: one hit causes thousands of overflows. */
static struct tally_attr weighted_attr(struct surface *surface, uint64_t period,
				       uint64_t sample_type)
{
	struct tally_attr attr = ring_attr(
		TALLY_TYPE_TRACEPOINT, (uint64_t)CALL(tracepoint, "weighted"), period, sample_type);
	attr.flags &= ~TALLY_ATTR_EXCLUDE_KERNEL;
	return attr;
}

/* Makes few hits, each of several milliseconds: at ticks, and when the task switches out. */
static void run_weighted(struct surface *surface, int fd)
{
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, 20000000);
	CALL(sleep, MILLISECOND);
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
}

struct throttling {
	/* `most_samples`: the most between two UNTHROTTLE records */
	unsigned throttles, unthrottles, most_samples;
	uint64_t first_throttle, first_unthrottle;
	uint64_t id, stream_id;
};

static int throttling_of(struct ring *ring, struct throttling *seen)
{
	struct tally_record record;
	unsigned samples = 0;
	int got;
	*seen = (struct throttling){ 0 };
	while ((got = ring_next(ring, &record)) == 1) {
		if (record.header.type == TALLY_RECORD_SAMPLE && ++samples > seen->most_samples)
			seen->most_samples = samples;
		if (record.header.type == TALLY_RECORD_THROTTLE && !seen->throttles++) {
			seen->first_throttle = record.throttle.time;
			seen->id = record.throttle.id;
			seen->stream_id = record.throttle.stream_id;
		}
		if (record.header.type == TALLY_RECORD_UNTHROTTLE) {
			if (!seen->unthrottles++)
				seen->first_unthrottle = record.throttle.time;
			samples = 0;
		}
	}
	return got;
}

static int throttle_weighted(struct surface *surface, struct ring *ring, struct throttling *seen)
{
	struct tally_attr attr = weighted_attr(surface, 100, TALLY_SAMPLE_IP);
	CHECK_RING(ring, surface, &attr, 0, -1, 256);
	CALL(ioctl, ring->fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 40 * MILLISECOND);
	CALL(ioctl, ring->fd, TALLY_IOC_DISABLE, 0);
	CHECK_EQUAL(throttling_of(ring, seen), 0);
	return 0;
}

static int weighted_hits_are_throttled(struct surface *surface)
{
	struct ring ring;
	struct throttling seen;
	CHECK_EQUAL(throttle_weighted(surface, &ring, &seen), 0);
	CHECK_BETWEEN(seen.throttles, 1, 1000);
	return 0;
}

static int throttled_event_goes_on_at_the_tick(struct surface *surface)
{
	struct ring ring;
	struct throttling seen;
	CHECK_EQUAL(throttle_weighted(surface, &ring, &seen), 0);
	CHECK_BETWEEN(seen.unthrottles, seen.throttles - 1, seen.throttles);
	CHECK_BETWEEN(seen.unthrottles, 1, 1000);
	/* A tick is 1 to 10 ms of CPU time; other tasks may run in between. */
	CHECK_BETWEEN(seen.first_unthrottle - seen.first_throttle, 0, 1000 * MILLISECOND);
	return 0;
}

static int throttle_names_the_event(struct surface *surface)
{
	struct ring ring;
	struct throttling seen;
	CHECK_EQUAL(throttle_weighted(surface, &ring, &seen), 0);
	CHECK_BETWEEN(seen.throttles, 1, 1000);
	CHECK_EQUAL(seen.id, ring_event_id(surface, ring.fd));
	CHECK_EQUAL(seen.stream_id, seen.id);
	return 0;
}

/* 100,000 a second are 400 in a tick of 4 ms; a tick of 10 ms would allow 1,000. */
static int samples_of_a_tick_are_limited(struct surface *surface)
{
	struct ring ring;
	struct throttling seen;
	long rate = CALL(sysctl, "perf_event_max_sample_rate");
	CHECK_EQUAL(throttle_weighted(surface, &ring, &seen), 0);
	CHECK_BETWEEN(seen.most_samples, 1, (unsigned long long)rate / 100 + 1);
	return 0;
}

static int throttled_count_is_too_low(struct surface *surface)
{
	struct tally_attr attr = weighted_attr(surface, 100, TALLY_SAMPLE_IP);
	struct tally_attr plain = weighted_attr(surface, 0, 0);
	int throttled = CALL(open, &attr, 0, -1, -1, 0);
	int counted = CALL(open, &plain, 0, -1, -1, 0);
	CHECK(throttled >= 0 && counted >= 0);
	CALL(ioctl, counted, TALLY_IOC_ENABLE, 0);
	CALL(ioctl, throttled, TALLY_IOC_ENABLE, 0);
	CALL(burn, 40 * MILLISECOND);
	CALL(ioctl, throttled, TALLY_IOC_DISABLE, 0);
	CALL(ioctl, counted, TALLY_IOC_DISABLE, 0);
	CHECK(ring_event_count(surface, counted) >= 20 * MILLISECOND);
	if (ring_kernel_is_old(surface) &&
	    ring_event_count(surface, throttled) == ring_event_count(surface, counted))
		return CLAUSE_NOT_APPLICABLE + NA_OLD_KERNEL; /* 6.1 only withholds the samples */
	CHECK(ring_event_count(surface, throttled) < ring_event_count(surface, counted));
	return 0;
}

/* Only a second overflow by the same hit throttles, so a period above every weight never
 * throttles. */
static int single_overflows_of_weighted_hits_are_not_throttled(struct surface *surface)
{
	struct tally_attr attr = weighted_attr(surface, 1, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct throttling seen;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	run_weighted(surface, ring.fd);
	CHECK_EQUAL(throttling_of(&ring, &seen), 0);
	CHECK(seen.most_samples > 0);
	CHECK_EQUAL(seen.throttles, 0);
	return 0;
}

static int hardware_is_throttled(struct surface *surface)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES, 100,
					   TALLY_SAMPLE_IP);
	struct ring ring;
	struct throttling seen;
	CHECK_RING(&ring, surface, &attr, 0, -1, 256);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 100 * MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	CHECK_EQUAL(throttling_of(&ring, &seen), 0);
	CHECK_BETWEEN(seen.throttles, 1, 100000);
	CHECK_BETWEEN(seen.unthrottles, seen.throttles - 1, seen.throttles);
	return 0;
}

/* --- C7 ------------------------------------------------------------------- */

static int period_field_makes_each_hit_one_sample_of_its_weight(struct surface *surface)
{
	struct tally_attr attr = weighted_attr(surface, 1000 * MILLISECOND, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	uint64_t sum = 0;
	unsigned samples = 0;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	run_weighted(surface, ring.fd);
	for (; ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1; samples++)
		sum += record.sample.period;
	CHECK_BETWEEN(samples, 1, 10000);
	CHECK_EQUAL(sum, ring_event_count(surface, ring.fd));
	return 0;
}

static int period_field_makes_a_hit_of_one_a_sample(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(10, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_faults(surface, ring.fd, 25);
	for (unsigned i = 0; i < 25; i++) {
		CHECK_FOUND(&ring, TALLY_RECORD_SAMPLE, &record);
		CHECK_EQUAL(record.sample.period, 1);
	}
	CHECK_EQUAL(ring_count(&ring, 0), 0);
	return 0;
}

static int frequency_keeps_periods_with_the_period_field(struct surface *surface)
{
	struct tally_attr attr = ring_faults_attr(100, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	long samples = 0;
	attr.flags |= TALLY_ATTR_FREQ;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	for (unsigned round = 0; round < 40; round++) {
		CALL(fault, 1000);
		samples += ring_count(&ring, TALLY_RECORD_SAMPLE);
	}
	CHECK_BETWEEN(samples, 1, 30000);
	return 0;
}

static int heavier_hit_gives_one_sample_per_period(struct surface *surface)
{
	struct tally_attr attr = weighted_attr(surface, MILLISECOND, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 64);
	run_weighted(surface, ring.fd);
	uint64_t count = ring_event_count(surface, ring.fd);
	CHECK_BETWEEN(count / MILLISECOND, 2, UINT64_MAX);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), count / MILLISECOND);
	return 0;
}

static int period_one_weighted_by_one_samples_each_hit(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 1, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_hits(surface, ring.fd, 33);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 33);
	return 0;
}

static int period_left_runs_down_over_hits(struct surface *surface)
{
	struct tally_attr attr = ring_hits_attr(surface, 10, TALLY_SAMPLE_IP);
	struct ring ring;
	CHECK_RING(&ring, surface, &attr, 0, -1, 1);
	ring_run_hits(surface, ring.fd, 99);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 9);
	ring_run_hits(surface, ring.fd, 1);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 1);
	return 0;
}

enum { HARDWARE = SURFACE_HARDWARE, WEIGHTED = SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED };

const struct clause clauses_c[] = {
	{ "C1.period_one_samples_each_event", "With period 1 each event is a sample.", 0,
	  period_one_samples_each_event },
	{ "C1.period_n_samples_each_nth_event", "With period n each n-th event is a sample.", 0,
	  period_n_samples_each_nth_event },
	{ "C1.period_left_is_kept_while_disabled", "Disabling doesn't begin a new period.", 0,
	  period_left_is_kept_while_disabled },
	{ "C1.reset_keeps_the_period_left",
	  "RESET zeroes the value, not what is left of the period.", 0,
	  reset_keeps_the_period_left },
	{ "C1.sampling_event_counts_without_a_ring", "A sampling event without a ring counts.", 0,
	  samples_without_a_ring_are_counted_alone },
	{ "C1.period_is_each_events_own", "Two events sample by their own periods.", 0,
	  period_is_each_events_own },
	{ "C1.frequency_above_the_maximum_einval", "sample_freq above max_sample_rate: EINVAL.", 0,
	  frequency_above_the_maximum_einval },
	{ "C1.frequency_at_the_maximum_is_taken", "sample_freq of max_sample_rate is taken.", 0,
	  frequency_at_the_maximum_is_taken },
	{ "C1.period_top_bit_einval", "A period with its top bit set: EINVAL.", 0,
	  period_with_its_top_bit_set_einval },
	{ "C1.largest_period_is_taken", "A period of 2^63 - 1 is taken.", 0,
	  largest_period_is_taken },
	{ "C1.ioc_period_zero_einval", "IOC_PERIOD 0: EINVAL.", 0, ioc_period_zero_einval },
	{ "C1.ioc_period_top_bit_einval", "IOC_PERIOD with the top bit: EINVAL.", 0,
	  ioc_period_with_its_top_bit_set_einval },
	{ "C1.ioc_period_counting_einval", "IOC_PERIOD on an event that doesn't sample: EINVAL.", 0,
	  ioc_period_on_a_counting_event_einval },
	{ "C1.ioc_period_bad_pointer_efault", "IOC_PERIOD with a bad pointer: EFAULT.", 0,
	  ioc_period_bad_pointer_efault },
	{ "C1.ioc_period_of_a_frequency_is_limited",
	  "IOC_PERIOD sets a frequency where one was; the limit holds.", 0,
	  ioc_period_of_a_frequency_above_the_maximum_einval },
	{ "C1.ioc_period_changes_the_period", "IOC_PERIOD changes a disabled event's period.", 0,
	  ioc_period_holds_from_the_next_enabling },
	{ "C1.ioc_period_of_an_active_event",
	  "IOC_PERIOD on an active software event: the next hit is a sample.", 0,
	  ioc_period_of_an_active_software_event },
	{ "C1.cpu_clock_samples_by_time", "cpu-clock gives a sample per period of time.", 0,
	  cpu_clock_samples_by_time },
	{ "C1.task_clock_samples_by_time", "task-clock gives a sample per period of time.", 0,
	  task_clock_samples_by_time },
	{ "C1.clock_period_is_at_least_ten_microseconds",
	  "A clock's shorter periods are taken as 10 us.", 0,
	  clock_period_below_ten_microseconds_is_ten },
	{ "C1.clock_frequency_is_a_fixed_period",
	  "A clock's frequency is a fixed period of 1 s / frequency.", 0,
	  clock_frequency_is_a_fixed_period },
	{ "C1.frequency_adapts",
	  "The period grows until the samples come at the frequency asked for.", 0,
	  frequency_adapts_the_period },
	{ "C1.hardware_frequency_adapts", "A hardware counter's period grows to the frequency.",
	  HARDWARE, hardware_frequency_adapts },
	{ "C1.hardware_period", "A hardware counter gives count / period samples.", HARDWARE,
	  hardware_period_gives_count_over_period_samples },
	{ "C6.plain_hits_are_never_throttled",
	  "100,000 faults at period 1 are 100,000 samples, none throttled.", 0,
	  plain_hits_are_never_throttled },
	{ "C6.weighted_hits_are_throttled",
	  "Overflows of one hit, from the second on, throttle the event.", WEIGHTED,
	  weighted_hits_are_throttled },
	{ "C6.single_overflows_of_weighted_hits_are_not", "One overflow a hit never throttles.",
	  WEIGHTED, single_overflows_of_weighted_hits_are_not_throttled },
	{ "C6.throttled_event_goes_on_at_the_tick", "UNTHROTTLE comes at the next tick.", WEIGHTED,
	  throttled_event_goes_on_at_the_tick },
	{ "C6.throttle_names_the_event", "THROTTLE has the event's id and stream id.", WEIGHTED,
	  throttle_names_the_event },
	{ "C6.samples_of_a_tick_are_limited",
	  "No more samples in a tick than max_sample_rate / HZ.", WEIGHTED,
	  samples_of_a_tick_are_limited },
	{ "C6.throttled_count_is_too_low",
	  "A throttled event's own count misses what came meanwhile.", WEIGHTED,
	  throttled_count_is_too_low },
	{ "C6.hardware_is_throttled",
	  "A hardware counter is throttled at the first overflow too many.", HARDWARE,
	  hardware_is_throttled },
	{ "C7.period_field_one_sample_per_hit",
	  "With SAMPLE_PERIOD each hit is one sample, its period the weight.", WEIGHTED,
	  period_field_makes_each_hit_one_sample_of_its_weight },
	{ "C7.period_field_hits_of_one",
	  "With SAMPLE_PERIOD a hit of weight 1 is a sample whatever the period.", 0,
	  period_field_makes_a_hit_of_one_a_sample },
	{ "C7.period_field_with_frequency",
	  "In frequency mode SAMPLE_PERIOD doesn't make each hit a sample.", 0,
	  frequency_keeps_periods_with_the_period_field },
	{ "C7.heavier_hit_gives_one_sample_per_period",
	  "A heavy hit gives one sample per period elapsed.", WEIGHTED,
	  heavier_hit_gives_one_sample_per_period },
	{ "C7.unit_hits_at_period_one", "Period 1 and weight 1: each hit is a sample.",
	  SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED, period_one_weighted_by_one_samples_each_hit },
	{ "C7.period_left_runs_down", "Else period_left runs down over hits and enablings.",
	  SURFACE_TRACEPOINTS | SURFACE_PRIVILEGED, period_left_runs_down_over_hits },
	{ NULL, NULL, 0, NULL },
};
