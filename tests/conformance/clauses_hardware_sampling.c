/* Clauses of part C for hardware events: the overflow of a counter makes the sample.
 *
 * Periods count cycles, which every PMU has; the loops run in user mode, and only user mode is
 * counted. */
#include "hardware.h"
#include "ring_walk.h"

#include <errno.h>
#include <poll.h>

#define MILLISECOND 1000000ull

enum { PERIOD = 100000, LOOP_ITERATIONS = 1000000, DATA_PAGES = 64, SAMPLES_MAX = 4096 };

static struct tally_attr cycles_attr(uint64_t period, uint64_t sample_type)
{
	struct tally_attr attr = ring_attr(TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES, period,
					   sample_type);
	attr.flags |= TALLY_ATTR_EXCLUDE_HV;
	return attr;
}

static void run_loop(struct surface *surface, int fd, uint64_t iterations)
{
	CALL(ioctl, fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, iterations);
	CALL(ioctl, fd, TALLY_IOC_DISABLE, 0);
}

/* --- C1 ------------------------------------------------------------------- */

static int period_is_exact(struct surface *surface)
{
	struct tally_attr attr = cycles_attr(PERIOD, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	CHECK_RING(&ring, surface, &attr, 0, -1, DATA_PAGES);
	for (unsigned round = 1; round <= 3; round++) {
		run_loop(surface, ring.fd, LOOP_ITERATIONS);
		uint64_t samples = 0;
		while (ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1) {
			CHECK_EQUAL(record.sample.period, PERIOD);
			samples++;
		}
		CHECK(samples > 0);
		CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_RESET, 0), 0);
	}
	/* Stopping the event keeps the rest of a period, so no sample is lost over many stops. */
	uint64_t samples = 0;
	for (unsigned round = 0; round < 20; round++) {
		run_loop(surface, ring.fd, LOOP_ITERATIONS / 10);
		samples += (uint64_t)ring_count(&ring, TALLY_RECORD_SAMPLE);
	}
	CHECK_BETWEEN(samples, ring_event_count(surface, ring.fd) / PERIOD,
		      ring_event_count(surface, ring.fd) / PERIOD + 1);
	return 0;
}

static int new_period_holds(struct surface *surface)
{
	struct tally_attr attr = cycles_attr(PERIOD, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	const uint64_t period = 3 * PERIOD;
	CHECK_RING(&ring, surface, &attr, 0, -1, DATA_PAGES);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(loop, LOOP_ITERATIONS);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_PERIOD, (uintptr_t)&period), 0);
	uint64_t before = ring_event_count(surface, ring.fd), samples = 0;
	CHECK(ring_count(&ring, TALLY_RECORD_SAMPLE) > 0);
	CALL(loop, 3 * LOOP_ITERATIONS);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	while (ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1) {
		CHECK_EQUAL(record.sample.period, period);
		samples++;
	}
	uint64_t expected = (ring_event_count(surface, ring.fd) - before) / period;
	CHECK(expected > 1);
	CHECK_BETWEEN(samples, expected - 1, expected + 1);
	return 0;
}

/* After settling, the event takes as many samples a second as its frequency says. */
static int frequency_is_reached(struct surface *surface)
{
	enum { FREQUENCY = 1000 };
	struct tally_attr attr = cycles_attr(FREQUENCY, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	attr.flags |= TALLY_ATTR_FREQ;
	CHECK_RING(&ring, surface, &attr, 0, -1, DATA_PAGES);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 200 * MILLISECOND);
	ring_count(&ring, TALLY_RECORD_SAMPLE);
	uint64_t times[2][3];
	struct tally_attr clock = ring_attr(TALLY_TYPE_SOFTWARE, TALLY_SW_TASK_CLOCK, 0, 0);
	clock.flags = 0;
	clock.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING;
	int fd = CALL(open, &clock, 0, -1, -1, 0);
	CHECK(fd >= 0);
	CHECK_EQUAL(CALL(read, fd, times[0], sizeof(times[0])), sizeof(times[0]));
	CALL(burn, 200 * MILLISECOND);
	CHECK_EQUAL(CALL(read, fd, times[1], sizeof(times[1])), sizeof(times[1]));
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	uint64_t expected = (times[1][0] - times[0][0]) / (1000 * MILLISECOND / FREQUENCY);
	CHECK_BETWEEN(ring_count(&ring, TALLY_RECORD_SAMPLE), expected / 2, expected * 3 / 2);
	return 0;
}

/* --- C2, C3 --------------------------------------------------------------- */

static int periods_add_up(struct surface *surface)
{
	struct tally_attr attr = cycles_attr(2000, TALLY_SAMPLE_PERIOD);
	struct ring ring;
	struct tally_record record;
	uint64_t sum = 0, most = 0;
	attr.flags |= TALLY_ATTR_FREQ;
	CHECK_RING(&ring, surface, &attr, 0, -1, DATA_PAGES);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 200 * MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	while (ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1) {
		sum += record.sample.period;
		most = record.sample.period > most ? record.sample.period : most;
	}
	/* The period at the tick that changes it may have begun with another length. */
	uint64_t count = ring_event_count(surface, ring.fd);
	CHECK_BETWEEN(sum, count - count / 10 - 2 * most, count + count / 10 + most);
	return 0;
}

static int sample_is_where_it_was_counted(struct surface *surface)
{
	struct tally_attr attr = cycles_attr(PERIOD, TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
							     TALLY_SAMPLE_CALLCHAIN);
	struct ring ring;
	struct tally_record record;
	unsigned samples = 0;
	attr.flags |= TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL;
	CHECK_RING(&ring, surface, &attr, 0, -1, DATA_PAGES);
	run_loop(surface, ring.fd, LOOP_ITERATIONS);
	for (; ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1; samples++) {
		CHECK_EQUAL(record.header.misc & TALLY_MISC_CPUMODE_MASK, TALLY_MISC_USER);
		/* precise_ip 0: the address has skid */
		CHECK_EQUAL(record.header.misc & TALLY_MISC_EXACT_IP, 0);
		CHECK(record.sample.ip > 0 && record.sample.ip >> 63 == 0);
		CHECK_EQUAL(record.sample.tid, CALL(self));
		CHECK(record.sample.chain_length >= 2);
		CHECK_EQUAL(record.sample.chain[0], TALLY_CONTEXT_USER);
		CHECK_EQUAL(record.sample.chain[1], record.sample.ip);
	}
	CHECK(samples > 0);
	return 0;
}

/* A leader samples and its members count: each sample has the group's values at that moment. */
static int group_sampling_reads_members(struct surface *surface)
{
	struct tally_attr attr = cycles_attr(PERIOD, TALLY_SAMPLE_IP | TALLY_SAMPLE_READ);
	struct tally_attr member = ring_attr(TALLY_TYPE_HARDWARE, TALLY_HW_INSTRUCTIONS, 0, 0);
	struct ring ring;
	struct tally_record record;
	attr.read_format = member.read_format = TALLY_FORMAT_GROUP | TALLY_FORMAT_ID;
	member.flags = attr.flags & ~TALLY_ATTR_DISABLED;
	CHECK_RING(&ring, surface, &attr, 0, -1, DATA_PAGES);
	int fds[2];
	for (unsigned i = 0; i < 2; i++) {
		fds[i] = CALL(open, &member, 0, -1, ring.fd, 0);
		CHECK(fds[i] >= 0);
	}
	run_loop(surface, ring.fd, LOOP_ITERATIONS);
	uint64_t before[3] = { 0 }, samples = 0, last[1 + 2 * 3];
	for (; ring_find(&ring, TALLY_RECORD_SAMPLE, &record) == 1; samples++) {
		const struct tally_read_values *read = &record.sample.read;
		CHECK_EQUAL(read->count, 3);
		CHECK_EQUAL(read->values[1], ring_event_id(surface, ring.fd));
		for (unsigned i = 0; i < 3; i++) {
			CHECK(read->values[i * read->stride] >= before[i]);
			before[i] = read->values[i * read->stride];
			if (i)
				CHECK_EQUAL(read->values[i * read->stride + 1],
					    ring_event_id(surface, fds[i - 1]));
		}
		CHECK(before[0] >= (samples + 1) * PERIOD);
		CHECK(before[1] > 0);
		/* both count the same event, at the same moment */
		CHECK_EQUAL(before[2], before[1]);
	}
	CHECK(samples > 0);
	CHECK_EQUAL(CALL(read, ring.fd, last, sizeof(last)), sizeof(last));
	for (unsigned i = 0; i < 3; i++)
		CHECK(last[1 + 2 * i] >= before[i]);
	return 0;
}

/* --- C5, C6 --------------------------------------------------------------- */

static int refresh_stops_after_so_many(struct surface *surface)
{
	struct tally_attr attr = cycles_attr(PERIOD, TALLY_SAMPLE_IP);
	struct ring ring;
	attr.wakeup_events = 3;
	CHECK_RING(&ring, surface, &attr, 0, -1, DATA_PAGES);
	struct pollfd ready = { .fd = ring.fd, .events = POLLIN };
	CHECK_EQUAL(CALL(poll, &ready, 1, 0), 0);
	CHECK_EQUAL(CALL(ioctl, ring.fd, TALLY_IOC_REFRESH, 3), 0);
	CALL(loop, LOOP_ITERATIONS);
	CHECK_EQUAL(ring_count(&ring, TALLY_RECORD_SAMPLE), 3);
	CHECK_EQUAL(CALL(poll, &ready, 1, 0), 1);
	CHECK(ready.revents & POLLIN);
	uint64_t count = ring_event_count(surface, ring.fd);
	/* the event stopped after the third overflow */
	CHECK_BETWEEN(count, 3 * PERIOD, 3 * PERIOD + PERIOD / 2);
	CALL(loop, LOOP_ITERATIONS);
	CHECK_EQUAL(ring_event_count(surface, ring.fd), count);
	return 0;
}

/* A sampler overflows 20 times as often as the tick allows, beside an event that only counts.  It
 * is stopped most of the time, which its count shows. */
static int throttled_until_the_tick(struct surface *surface)
{
	CHECK_EQUAL(CALL(set_sysctl, "perf_event_max_sample_rate", 5000), 0);
	struct tally_attr attr = cycles_attr(10000, TALLY_SAMPLE_TIME);
	struct ring ring;
	struct tally_record record;
	int plain = hardware_open(
		surface, TALLY_HW_CPU_CYCLES,
		TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_DISABLED, -1);
	CHECK(plain >= 0);
	CHECK_RING(&ring, surface, &attr, 0, -1, DATA_PAGES);
	CALL(ioctl, plain, TALLY_IOC_ENABLE, 0);
	CALL(ioctl, ring.fd, TALLY_IOC_ENABLE, 0);
	CALL(burn, 100 * MILLISECOND);
	CALL(ioctl, ring.fd, TALLY_IOC_DISABLE, 0);
	CALL(ioctl, plain, TALLY_IOC_DISABLE, 0);
	uint64_t id = ring_event_id(surface, ring.fd);
	unsigned throttles = 0, unthrottles = 0, samples_while = 0;
	while (ring_next(&ring, &record) == 1) {
		if (record.header.type == TALLY_RECORD_THROTTLE) {
			CHECK_EQUAL(throttles, unthrottles);
			throttles++;
			CHECK_EQUAL(record.throttle.id, id);
		} else if (record.header.type == TALLY_RECORD_UNTHROTTLE) {
			unthrottles++;
			CHECK_EQUAL(unthrottles, throttles);
		} else if (record.header.type == TALLY_RECORD_SAMPLE) {
			samples_while += throttles > unthrottles;
		}
	}
	CHECK(throttles > 2);
	/* The overflow that exceeds the limit still makes a sample, after THROTTLE. */
	CHECK_BETWEEN(samples_while, 0, throttles);
	struct hardware_values counted;
	CHECK_EQUAL(hardware_read(surface, plain, &counted), 0);
	CHECK(ring_event_count(surface, ring.fd) < counted.value / 2);
	return 0;
}

enum { HARDWARE = SURFACE_HARDWARE };

const struct clause clauses_hardware_sampling[] = {
	{ "C1.hardware_period_is_exact",
	  "count / period samples of a cycle counter, over stops, too", HARDWARE, period_is_exact },
	{ "C1.hardware_new_period_holds",
	  "IOC_PERIOD on a running event holds from the next sample on", HARDWARE,
	  new_period_holds },
	{ "C1.hardware_frequency_is_reached", "as many samples a second as sample_freq says",
	  HARDWARE, frequency_is_reached },
	{ "C2.hardware_periods_add_up", "the samples' periods add up to the count", HARDWARE,
	  periods_add_up },
	{ "C2.hardware_sample_is_of_user_mode",
	  "a user-only event's samples are user mode's, chain and all", HARDWARE,
	  sample_is_where_it_was_counted },
	{ "C2.hardware_group_sampling",
	  "READ in a leader's sample has the members' values of that moment", HARDWARE,
	  group_sampling_reads_members },
	{ "C5.hardware_refresh", "REFRESH n: n samples, then the event stands still", HARDWARE,
	  refresh_stops_after_so_many },
	{ "C6.hardware_throttled_until_the_tick",
	  "too many overflows in a tick: THROTTLE, stopped, UNTHROTTLE",
	  HARDWARE | SURFACE_MAY_SET_SYSCTLS, throttled_until_the_tick },
	{ 0 }
};
