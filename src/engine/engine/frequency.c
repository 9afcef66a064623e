/* attr.freq: finds the period that gives the wanted frequency.
 *
 * There are two observers, since each sees what the other can't:
 *   - At the tick, the event's count and running time since the last look tell its rate, without
 *     bias and whatever the period is now.  A window closes when it holds enough events, or should
 *     hold enough, to tell a rate from chance.  The period is the mean of the last windows (from
 *     the eighth on a low pass).  A window whose rate is off by more than chance explains begins a
 *     new mean.
 *   - Between ticks, a period that is far too short would flood the ring: the period of a new event
 *     is 1.  So a burst of overflows that come several times too often lengthens the period at
 *     once.
 *
 * The wanted period is kept in 1/65536, and its fraction is carried from one period to the next.
 * So a rate of one and a half times the frequency gives periods of 1 and 2 in turn instead of half
 * as many samples again. */
#include "engine/frequency.h"

#define FRACTION_BITS 16
#define ONE (1ull << FRACTION_BITS)
#define WINDOW_EVENTS 64u  /* enough to tell a factor of two from chance */
#define WINDOWS_MAX 8u
#define BURST_OVERFLOWS 8u
#define NS_PER_S 1000000000ull

/* Returns a × b / c.  Loses low bits if the product exceeds 64 bits. */
static uint64_t multiply_divide(uint64_t a, uint64_t b, uint64_t c)
{
	while (a && b > UINT64_MAX / a) {
		if (a > b)
			a >>= 1;
		else
			b >>= 1;
		c >>= 1;
	}
	if (c)
		return a * b / c;
	return UINT64_MAX >> FRACTION_BITS;
}

/* Returns the period, in 1/65536, at which `count` events in `ns` give the frequency. */
static uint64_t period_for(const struct engine_event *event, uint64_t count, uint64_t ns)
{
	uint64_t period = multiply_divide(count, NS_PER_S << FRACTION_BITS,
					  ns * event->attr.sample_period);
	if (period < ONE)
		return ONE;
	return period;
}

static uint64_t wanted_period(const struct engine_event *event)
{
	uint64_t period = engine_load64(&event->frequency.period);
	if (period)
		return period;
	return ONE;
}

static void next_period(struct engine_event *event)
{
	uint64_t whole = wanted_period(event) + event->frequency.fraction;
	event->frequency.fraction = (uint32_t)(whole & (ONE - 1));
	event->hw.sample_period = whole >> FRACTION_BITS;
}

static void start_burst(struct engine_event *event, uint64_t now)
{
	event->frequency.burst_stamp = now;
	event->frequency.burst_count = 0;
	event->frequency.burst = 0;
}

void engine_frequency_overflow(struct engine_event *event)
{
	uint64_t now = engine_now(event->engine), elapsed = now - event->frequency.burst_stamp;

	event->frequency.burst++;
	event->frequency.burst_count += event->hw.last_period;
	if (!event->frequency.burst_stamp || elapsed >= 2 * event->engine->host.tick_ns) {
		start_burst(event, now);
	} else {
		uint64_t expected = elapsed * event->attr.sample_period / NS_PER_S;
		if (event->frequency.burst > BURST_OVERFLOWS + 4 * expected) {
			uint64_t old = wanted_period(event), period = 8 * old;
			if (elapsed)
				period = period_for(event, event->frequency.burst_count, elapsed);
			if (period > 8 * old) /* a few overflows are too few to tell a rate well */
				period = 8 * old;
			if (period > old) {
				engine_store64(&event->frequency.period, period);
				event->frequency.windows = 0;
			}
			start_burst(event, now);
		}
	}
	next_period(event);
}

/* Returns the count that the present period predicts for `ns`. */
static uint64_t expected_count(const struct engine_event *event, uint64_t ns)
{
	return multiply_divide(ns * event->attr.sample_period, wanted_period(event),
			       NS_PER_S << FRACTION_BITS);
}

/* If the old, longer period has put the next overflow far ahead, starts a new one, so that the new
 * period takes effect. */
static void restart(struct engine_event *event)
{
	if (event->hw.period_left <= (int64_t)(8 * event->hw.sample_period))
		return;
	const struct tally_engine_pmu_ops *ops = event->hw.pmu->ops;
	bool stopped = event->hw.state & TALLY_HES_STOPPED;
	if (!stopped)
		ops->stop(&event->hw, TALLY_EF_UPDATE);
	engine_store64((uint64_t *)&event->hw.period_left, event->hw.sample_period);
	event->hw.last_period = event->hw.sample_period;
	if (!stopped)
		ops->start(&event->hw, TALLY_EF_RELOAD);
}

void engine_frequency_tick(struct engine_event *event)
{
	uint64_t now, enabled, running;

	event->hw.pmu->ops->read(&event->hw);
	uint64_t count = engine_load64(&event->count);
	engine_event_times(event, &now, &enabled, &running);
	uint64_t more = count - event->frequency.count, ns = running - event->frequency.running;
	if (count < event->frequency.count || running < event->frequency.running) {
		/* after RESET: the count began anew */
		event->frequency.count = count;
		event->frequency.running = running;
		return;
	}
	uint64_t expected = expected_count(event, ns);
	if (ns < event->engine->host.tick_ns / 2 ||
	    (more < WINDOW_EVENTS && expected < WINDOW_EVENTS))
		return;
	event->frequency.count = count;
	event->frequency.running = running;
	uint64_t old = wanted_period(event), period = period_for(event, more, ns);
	if (period > 2 * old || period < old / 2)
		event->frequency.windows = 0;
	if (event->frequency.windows < WINDOWS_MAX)
		event->frequency.windows++;
	uint32_t weight = event->frequency.windows;
	if (period > old)
		period = old + (period - old) / weight;
	else
		period = old - (old - period) / weight;
	engine_store64(&event->frequency.period, period);
	next_period(event);
	restart(event);
}
