/* One overflow: an event has counted a period, or each hit on it is a sample.
 *
 * Throttling (SPEC C6) bounds the cost of a period that is too short: after max_sample_rate's share
 * of a tick, the event's whole group is stopped until the tick.  REFRESH bounds the number of
 * overflows: event_limit counts down, and at its end the event is disabled.  Since that has to wait
 * for tally_engine_run_pending(), the event is stopped here. */
#include "engine/engine_state.h"
#include "engine/frequency.h"

#define NS_PER_S 1000000000ull
#define POLL_CODE_IN 1
#define POLL_CODE_HUP 6

int engine_hit_enter(struct tally_engine *engine, struct engine_cpu *cpu)
{
	int level = (int)engine->host.level(engine->host.host);

	if (engine_hit_under_way(cpu, level)) {
		engine_count64(&cpu->dropped[level], 1);
		return -1;
	}
	/* Need not be atomic: an interrupt in between restores the value that it found. */
	cpu->hits |= 1u << level;
	__atomic_signal_fence(__ATOMIC_ACQUIRE);
	return level;
}

static bool is_sampling(const struct engine_event *event)
{
	return event->attr.sample_period;
}

void tally_engine_pmu_count(struct tally_pmu_event *hw, uint64_t more)
{
	struct engine_event *event = engine_event_of(hw);

	engine_count64(&event->count, more);
	if (is_sampling(event))
		engine_count64((uint64_t *)&hw->period_left, -more);
}

bool tally_engine_period_elapsed(struct tally_pmu_event *hw)
{
	int64_t left = (int64_t)engine_load64((const uint64_t *)&hw->period_left),
		period = (int64_t)hw->sample_period;

	if (!period || left > 0)
		return false;
	/* Too far past it to catch up: begin a whole period. */
	if (left <= -period)
		left = period;
	else
		left += period;
	engine_store64((uint64_t *)&hw->period_left, (uint64_t)left);
	hw->last_period = hw->sample_period;
	return true;
}

/* --- throttling ----------------------------------------------------------- */

void engine_throttle_rate(struct tally_engine *engine)
{
	uint64_t rate = (uint64_t)engine->settings.max_sample_rate;
	engine->samples_per_tick = (uint32_t)((rate * engine->host.tick_ns + NS_PER_S - 1) /
					      NS_PER_S);
}

/* Throttles one event of the group.  The caller stops `hit`, the event that overflowed. */
static void throttle(struct engine_event *event, const struct engine_event *hit)
{
	event->interrupts = ENGINE_THROTTLED;
	if (event != hit && event->state == ENGINE_EVENT_ACTIVE &&
	    !(event->hw.state & TALLY_HES_STOPPED))
		event->hw.pmu->ops->stop(&event->hw, 0);
	if (event == event->leader)
		engine_output_throttle(event, true);
}

/* The walk is bounded, since the code that this interrupted may be changing the list. */
static void throttle_group(struct engine_event *event, struct engine_cpu *cpu)
{
	struct engine_event *leader = event->leader;
	unsigned left = leader->sibling_count;

	cpu->throttled_tick = cpu->tick;
	throttle(leader, event);
	for (struct engine_list *at = leader->siblings.next; left-- && at != &leader->siblings;
	     at = at->next)
		throttle(ENGINE_CONTAINER(at, struct engine_event, sibling_link), event);
}

void engine_event_unthrottle(struct engine_event *event, bool start)
{
	event->interrupts = 0;
	if (start)
		event->hw.pmu->ops->start(&event->hw, 0);
	if (event == event->leader)
		engine_output_throttle(event, false);
}

/* Returns true if the event was throttled: it had too many overflows in this tick. */
static bool account(struct engine_event *event, struct engine_cpu *cpu, bool may_throttle)
{
	bool throttled = false;

	if (event->interrupts_tick != cpu->tick) {
		event->interrupts_tick = cpu->tick;
		event->interrupts = 0;
	}
	event->interrupts++;
	if (may_throttle && event->interrupts >= event->engine->samples_per_tick) {
		throttle_group(event, cpu);
		throttled = true;
	}
	if (engine_event_flag(event, TALLY_ATTR_FREQ))
		engine_frequency_overflow(event);
	return throttled;
}

void engine_context_tick(struct engine_context *context, struct engine_cpu *cpu)
{
	/* True if an event was throttled before this tick, or just now by a hit that interrupted
	 * this. */
	bool throttled = cpu->throttled_tick + 1 >= cpu->tick;

	if (!throttled && !context->frequency_events)
		return;
	ENGINE_LIST_EACH(event, &context->events, struct engine_event, context_link) {
		if (event->state != ENGINE_EVENT_ACTIVE || event->on_cpu != (int)cpu->number)
			continue;
		if (event->interrupts == ENGINE_THROTTLED)
			engine_event_unthrottle(event, true);
		if (engine_event_flag(event, TALLY_ATTR_FREQ) && is_sampling(event))
			engine_frequency_tick(event);
	}
}

/* --- the overflow --------------------------------------------------------- */

/* With exclude_kernel, the task must not learn an address from within the kernel. */
static void pend_trap(struct engine_event *event, const struct tally_engine_hit *hit,
		      const struct tally_engine_regs *regs)
{
	bool hidden = engine_event_flag(event, TALLY_ATTR_EXCLUDE_KERNEL) &&
		      regs->mode != TALLY_MODE_USER;
	event->pending_address = hidden ? 0 : hit->address;
	engine_event_pend(event, ENGINE_PENDING_SIGTRAP);
}

/* Counts down REFRESH's limit.  Returns true if this overflow was the last. */
static bool limit_reached(struct engine_event *event)
{
	uint64_t *limit = (uint64_t *)&event->event_limit;

	if (!engine_load64(limit) || engine_add64(limit, (uint64_t)-1))
		return false;
	engine_event_pend(event, ENGINE_PENDING_DISABLE);
	return true;
}

bool engine_overflow(struct engine_event *event, struct engine_cpu *cpu, bool may_throttle,
		     const struct tally_engine_hit *hit, const struct tally_engine_regs *regs)
{
	if (!is_sampling(event))
		return false;
	bool stop = account(event, cpu, may_throttle);
	int code = POLL_CODE_IN;
	if (limit_reached(event)) {
		stop = true;
		code = POLL_CODE_HUP;
	}
	if (engine_event_flag(event, TALLY_ATTR_SIGTRAP))
		pend_trap(event, hit, regs);
	if (event->overflow_handler)
		event->overflow_handler(&event->hw, hit, regs, event->overflow_data);
	else
		engine_output_sample(event, cpu, hit, regs);
	const struct tally_engine_file *file = event->parent ? event->parent->file : event->file;
	if (file && file->flags & ENGINE_FILE_ASYNC) {
		event->pending_code = code;
		engine_event_pend(event, ENGINE_PENDING_SIGNAL);
	}
	return stop;
}

bool tally_engine_overflow(struct tally_pmu_event *hw, const struct tally_engine_hit *hit,
			   const struct tally_engine_regs *regs)
{
	struct engine_event *event = engine_event_of(hw);
	struct engine_cpu *cpu = engine_this_cpu(event->engine);
	int level = engine_hit_enter(event->engine, cpu);

	if (level < 0)
		return false;
	bool stop = engine_overflow(event, cpu, true, hit, regs);
	engine_hit_leave(cpu, level);
	return stop;
}

/* --- control -------------------------------------------------------------- */

int engine_event_refresh(struct engine_event *event, uint64_t overflows)
{
	if (engine_event_flag(event, TALLY_ATTR_INHERIT) || !is_sampling(event))
		return -ENGINE_EINVAL;
	engine_add64((uint64_t *)&event->event_limit, overflows);
	engine_event_enable(event);
	return 0;
}

/* Like the kernel: the present period is dropped, and the next event on an active one is an
 * overflow (measured). */
static void set_period(struct engine_event *event, void *argument)
{
	const uint64_t *period = argument;
	const struct tally_engine_pmu_ops *ops = event->hw.pmu->ops;
	bool active = event->state == ENGINE_EVENT_ACTIVE;

	event->attr.sample_period = *period;
	if (!engine_event_flag(event, TALLY_ATTR_FREQ))
		event->hw.sample_period = *period;
	if (active) {
		engine_pmu_disable(event->hw.pmu);
		if (event->interrupts == ENGINE_THROTTLED)
			engine_event_unthrottle(event, false);
		ops->stop(&event->hw, TALLY_EF_UPDATE);
	}
	engine_store64((uint64_t *)&event->hw.period_left, 0);
	if (active) {
		ops->start(&event->hw, TALLY_EF_RELOAD);
		engine_pmu_enable(event->hw.pmu);
	}
}

int engine_event_period(struct engine_event *event, uint64_t period)
{
	const struct tally_engine_pmu_ops *ops = event->hw.pmu->ops;

	if (!is_sampling(event) || !period)
		return -ENGINE_EINVAL;
	if (engine_event_flag(event, TALLY_ATTR_FREQ)) {
		if (period > (uint64_t)event->engine->settings.max_sample_rate)
			return -ENGINE_EINVAL;
	} else if (period >> 63 || (ops->check_period && ops->check_period(&event->hw, period))) {
		return -ENGINE_EINVAL;
	}
	/* after an exit it keeps its period, as MODIFY_ATTRIBUTES shows */
	if (engine_event_state(event) != ENGINE_EVENT_EXIT)
		engine_context_call(event, set_period, &period);
	return 0;
}

int tally_engine_set_id(struct tally_engine *engine, int fd, uint64_t id)
{
	engine_enter(engine);
	struct tally_engine_file *file = engine_file(engine, fd);
	if (file)
		file->event->id = id;
	engine_leave(engine);
	return file ? 0 : -ENGINE_EBADF;
}

int tally_engine_set_overflow_handler(struct tally_engine *engine, int fd,
				      tally_engine_overflow_handler *handler, void *data)
{
	int result = -ENGINE_EBADF;

	engine_enter(engine);
	struct tally_engine_file *file = engine_file(engine, fd);
	if (file) {
		file->event->overflow_data = data;
		__atomic_store_n(&file->event->overflow_handler, handler, __ATOMIC_RELEASE);
		result = 0;
	}
	engine_leave(engine);
	return result;
}
