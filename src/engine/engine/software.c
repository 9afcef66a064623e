/* The "software" PMU: events that the host reports (faults, switches, migrations), one that never
 * happens (dummy), and clocks. */
#include "engine/engine_state.h"

/* cpu-clock and task-clock: they count nanoseconds, and sample by a timer of the host.
 *
 * Both count while they are on a CPU.  A task's clock counts only while the task runs, since its
 * context is on a CPU only then.  With attr.freq the period is computed once: time passes
 * evenly. */

void engine_clock_init(struct engine_event *event); /* when it is opened */
void engine_clock_start(struct engine_event *event);
void engine_clock_stop(struct engine_event *event);
void engine_clock_read(struct engine_event *event);

#define PERIOD_MIN_NS 10000u
#define NS_PER_S 1000000000ull

/* Safe against a sample that interrupts it and reads the event: each of the two may then add a
 * wrong amount, but the sum is right. */
static void update(struct engine_event *event)
{
	uint64_t now = engine_now(event->engine);
	engine_count64(&event->count, now - engine_exchange64(&event->hw.previous, now));
}

static uint64_t timer_period(const struct engine_event *event)
{
	if (event->hw.sample_period < PERIOD_MIN_NS)
		return PERIOD_MIN_NS;
	return event->hw.sample_period;
}

static void fired(struct tally_engine_timer *timer, const struct tally_engine_regs *regs);

static bool samples(const struct engine_event *event)
{
	return event->attr.sample_period && event->engine->host.timer_start;
}

/* Starts the timer for period_left, which is what was left of it when it was stopped; 0: for a
 * whole period. */
static void start_timer(struct engine_event *event)
{
	const struct tally_engine_host *host = &event->engine->host;
	uint64_t left = (uint64_t)event->hw.period_left;

	event->hw.period_left = 0;
	event->timer.fired = fired;
	event->timer.cpu = engine_this_cpu(event->engine)->number;
	event->timer.deadline_ns = engine_now(event->engine) + (left ? left : timer_period(event));
	host->timer_start(host->host, &event->timer);
}

static void cancel_timer(struct engine_event *event)
{
	const struct tally_engine_host *host = &event->engine->host;
	uint64_t now = engine_now(event->engine), deadline = event->timer.deadline_ns;

	if (host->timer_cancel)
		host->timer_cancel(host->host, &event->timer);
	event->hw.period_left = 0;
	if (deadline > now)
		event->hw.period_left = (int64_t)(deadline - now);
}

static bool excluded(const struct engine_event *event, const struct tally_engine_regs *regs)
{
	const struct tally_engine_host *host = &event->engine->host;
	bool user = regs->mode == TALLY_MODE_USER;

	if (engine_event_flag(event, user ? TALLY_ATTR_EXCLUDE_USER : TALLY_ATTR_EXCLUDE_KERNEL))
		return true;
	return engine_event_flag(event, TALLY_ATTR_EXCLUDE_IDLE) && !host->current_task(host->host);
}

/* Returns how many periods the sample stands for.  CPU time can pass without a timer's notice. */
static uint64_t periods_passed(const struct engine_event *event)
{
	uint64_t now = engine_now(event->engine), deadline = event->timer.deadline_ns;

	if (!event->engine->host.counts_cpu_time || now < deadline)
		return 1;
	return 1 + (now - deadline) / timer_period(event);
}

/* Returns true if the event must stop. */
static bool sample(struct engine_event *event, const struct tally_engine_regs *regs)
{
	struct tally_engine_hit hit = {
		.period = event->hw.last_period * periods_passed(event),
	};
	struct engine_cpu *cpu = engine_this_cpu(event->engine);
	int level = engine_hit_enter(event->engine, cpu);

	if (level < 0)
		return false;
	bool stop = engine_overflow(event, cpu, true, &hit, regs);
	engine_hit_leave(cpu, level);
	return stop;
}

static void fired(struct tally_engine_timer *timer, const struct tally_engine_regs *regs)
{
	struct engine_event *event = ENGINE_CONTAINER(timer, struct engine_event, timer);
	const struct tally_engine_host *host = &event->engine->host;

	if (event->state != ENGINE_EVENT_ACTIVE || event->hw.state & TALLY_HES_STOPPED)
		return;
	update(event);
	if (!excluded(event, regs) && sample(event, regs)) {
		event->hw.state = TALLY_HES_STOPPED;
		return;
	}
	/* Deadlines stay a whole number of periods apart.  Missed ones are not made up for. */
	uint64_t now = engine_now(event->engine), period = timer_period(event);
	timer->deadline_ns += period;
	if (timer->deadline_ns <= now)
		timer->deadline_ns += (now - timer->deadline_ns) / period * period + period;
	host->timer_start(host->host, timer);
}

void engine_clock_init(struct engine_event *event)
{
	struct tally_attr *attr = &event->attr;

	if (!engine_event_flag(event, TALLY_ATTR_FREQ) || !attr->sample_period)
		return;
	attr->sample_period = NS_PER_S / attr->sample_period;
	attr->flags &= ~TALLY_ATTR_FREQ;
	event->hw.sample_period = event->hw.last_period = attr->sample_period;
	event->hw.period_left = (int64_t)attr->sample_period;
}

void engine_clock_start(struct engine_event *event)
{
	engine_store64(&event->hw.previous, engine_now(event->engine));
	event->hw.state = 0;
	if (samples(event))
		start_timer(event);
}

void engine_clock_stop(struct engine_event *event)
{
	if (event->hw.state & TALLY_HES_STOPPED)
		return;
	if (samples(event))
		cancel_timer(event);
	update(event);
	event->hw.state = TALLY_HES_STOPPED;
}

void engine_clock_read(struct engine_event *event)
{
	if (!(event->hw.state & TALLY_HES_STOPPED))
		update(event);
}

static int software_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *hw)
{
	const struct tally_attr *attr = hw->attr;

	if (attr->type != pmu->type)
		return -ENGINE_ENOENT;
	if (attr->sample_type & TALLY_SAMPLE_BRANCH_STACK)
		return -ENGINE_EOPNOTSUPP;
	if (attr->config >= TALLY_SW_MAX)
		return -ENGINE_ENOENT;
	if (engine_is_clock(attr))
		engine_clock_init(engine_event_of(hw));
	return 0;
}

static int software_add(struct tally_pmu_event *hw, unsigned flags)
{
	struct engine_event *event = engine_event_of(hw);

	if (!engine_is_clock(hw->attr))
		return engine_swevent_add(event, flags,
					  &engine_this_cpu(hw->engine)->software[hw->attr->config]);
	if (flags & TALLY_EF_START)
		engine_clock_start(event);
	else
		hw->state = TALLY_HES_STOPPED;
	return 0;
}

static void software_del(struct tally_pmu_event *hw, unsigned flags)
{
	if (engine_is_clock(hw->attr))
		engine_clock_stop(engine_event_of(hw));
	else
		engine_swevent_del(hw, flags);
}

static void software_start(struct tally_pmu_event *hw, unsigned flags)
{
	if (engine_is_clock(hw->attr))
		engine_clock_start(engine_event_of(hw));
	else
		engine_swevent_start(hw, flags);
}

static void software_stop(struct tally_pmu_event *hw, unsigned flags)
{
	if (engine_is_clock(hw->attr))
		engine_clock_stop(engine_event_of(hw));
	else
		engine_swevent_stop(hw, flags);
}

static void software_read(struct tally_pmu_event *hw)
{
	if (engine_is_clock(hw->attr))
		engine_clock_read(engine_event_of(hw));
}

static const struct tally_engine_pmu_ops software_ops = {
	.event_init = software_init,
	.add = software_add,
	.del = software_del,
	.start = software_start,
	.stop = software_stop,
	.read = software_read,
};

int engine_software_register(struct tally_engine *engine)
{
	engine->software_pmu = (struct tally_engine_pmu){
		.name = "software",
		.type = TALLY_TYPE_SOFTWARE,
		.scope = TALLY_SCOPE_SOFTWARE,
		.capabilities = TALLY_PMU_NO_NMI,
		.ops = &software_ops,
	};
	return tally_engine_pmu_register(engine, &engine->software_pmu);
}

/* Without listeners this costs one look at the list. */
void tally_engine_software(struct tally_engine *engine, enum tally_sw which, uint64_t count,
			   const struct tally_engine_regs *regs, uint64_t address)
{
	static const struct tally_engine_regs in_kernel = { .mode = TALLY_MODE_KERNEL };
	struct engine_cpu *cpu = engine_this_cpu(engine);

	if ((unsigned)which >= TALLY_SW_MAX ||
	    !__atomic_load_n(&cpu->software[which].first, __ATOMIC_RELAXED))
		return;
	int level = engine_hit_enter(engine, cpu);
	if (level < 0)
		return;
	ENGINE_HITS_EACH(link, &cpu->software[which]) {
		struct tally_engine_hit hit = { .address = address };
		engine_swevent_hit(ENGINE_CONTAINER(link, struct engine_event, hit_link), cpu,
				   count, &hit, regs ? regs : &in_kernel);
	}
	engine_hit_leave(cpu, level);
}
