/* Events whose hits the engine counts one by one, instead of hardware: software events, tracepoints
 * and breakpoints.
 *
 * SPEC C7.  A hit has a weight.  In period mode with PERF_SAMPLE_PERIOD, every hit is one sample
 * that carries its weight, whatever the period.  Otherwise period_left counts down, and a hit
 * heavier than the period gives one sample for each period that it passed.  The first sample of
 * such a hit never throttles, the others may (C6). */
#include "engine/engine_state.h"

/* Returns the number of periods that ended; the part of the next one that is used up stays in
 * period_left.  A changed period takes effect with the next one, as in the kernel (measured with
 * IOC_PERIOD). */
static uint64_t periods_ended(struct engine_event *event)
{
	uint64_t *at = (uint64_t *)&event->hw.period_left, old = engine_load64(at), ended;
	uint64_t period = event->hw.last_period;

	event->hw.last_period = event->hw.sample_period;
	do {
		if ((int64_t)old > 0)
			return 0;
		ended = (0 - old) / period + 1;
	} while (!engine_compare_exchange64(at, &old, old + ended * period));
	return ended;
}

static void overflow(struct engine_event *event, struct engine_cpu *cpu, uint64_t times,
		     const struct tally_engine_hit *hit, const struct tally_engine_regs *regs)
{
	bool throttle = false;

	if (event->interrupts == ENGINE_THROTTLED)
		return;
	for (; times; times--) {
		if (engine_overflow(event, cpu, throttle, hit, regs)) {
			event->hw.state |= TALLY_HES_STOPPED;
			return;
		}
		throttle = true;
	}
}

/* Measured: exclude_kernel keeps tracepoints out, exclude_user does not. */
static bool excluded(const struct engine_event *event, const struct tally_engine_regs *regs)
{
	bool user = regs->mode == TALLY_MODE_USER;

	if (engine_event_flag(event, TALLY_ATTR_EXCLUDE_KERNEL) && !user)
		return true;
	return engine_event_flag(event, TALLY_ATTR_EXCLUDE_USER) && user &&
	       event->attr.type != TALLY_TYPE_TRACEPOINT;
}

static inline bool count(struct engine_event *event, uint64_t weight,
			 const struct tally_engine_regs *regs)
{
	if (event->attr.flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER) &&
	    excluded(event, regs))
		return false;
	engine_count64(&event->count, weight);
	return true;
}

bool engine_swevent_count(struct engine_event *event, uint64_t weight,
			  const struct tally_engine_regs *regs)
{
	return count(event, weight, regs);
}

void engine_swevent_hit(struct engine_event *event, struct engine_cpu *cpu, uint64_t weight,
			struct tally_engine_hit *hit, const struct tally_engine_regs *regs)
{
	uint64_t *left = (uint64_t *)&event->hw.period_left;
	bool period_mode = !engine_event_flag(event, TALLY_ATTR_FREQ);

	if (event->hw.state & TALLY_HES_STOPPED || !count(event, weight, regs) ||
	    !event->attr.sample_period)
		return;
	if (period_mode && event->attr.sample_type & TALLY_SAMPLE_PERIOD) {
		hit->period = weight;
		overflow(event, cpu, 1, hit, regs);
		return;
	}
	hit->period = event->hw.last_period;
	if (period_mode && weight == 1 && event->hw.sample_period == 1) {
		overflow(event, cpu, 1, hit, regs);
		return;
	}
	/* A hit that comes between the two may end the period that this one has run down: exactly
	 * one of them does. */
	engine_count64(left, 0 - weight);
	if ((int64_t)engine_load64(left) > 0)
		return;
	overflow(event, cpu, periods_ended(event), hit, regs);
}

int engine_swevent_add(struct engine_event *event, unsigned flags, struct engine_hits *hits)
{
	if (event->attr.sample_period) {
		event->hw.last_period = event->hw.sample_period;
		periods_ended(event);
	}
	event->hw.state = flags & TALLY_EF_START ? 0 : TALLY_HES_STOPPED;
	if (hits)
		engine_hits_add(hits, &event->hit_link);
	return 0;
}

void engine_swevent_del(struct tally_pmu_event *hw, unsigned flags)
{
	(void)flags;
	engine_hits_remove(&engine_event_of(hw)->hit_link);
}

void engine_swevent_start(struct tally_pmu_event *hw, unsigned flags)
{
	(void)flags;
	hw->state = 0;
}

void engine_swevent_stop(struct tally_pmu_event *hw, unsigned flags)
{
	(void)flags;
	hw->state = TALLY_HES_STOPPED;
}

void engine_swevent_read(struct tally_pmu_event *hw)
{
	(void)hw; /* each hit has been counted already */
}
