/* One CPU: the work it does as time passes, the counters that count it, and the interrupts when
 * they overflow.
 *
 * A CPU's work alarm rings when its phase ends or a counter with a wanted overflow reaches it,
 * whichever is first.  In between its counters are behind; sim_cpu_advance() brings them up to the
 * machine's time before they are read. */
#include "sim/sim_state.h"

typedef unsigned __int128 wide;

/* Returns number * factor / divisor.  Most numbers are small, and a wide division is slow. */
static uint64_t scaled(uint64_t number, uint32_t factor, uint32_t divisor)
{
	if (number <= UINT32_MAX)
		return number * factor / divisor;
	return (uint64_t)((wide)number * factor / divisor);
}

/* The same, rounded up; SIM_NEVER if the result is larger than that. */
static uint64_t scaled_up(uint64_t number, uint32_t factor, uint32_t divisor)
{
	if (number < UINT32_MAX)
		return (number * factor + divisor - 1) / divisor;
	wide result = ((wide)number * factor + divisor - 1) / divisor;
	if (result > SIM_NEVER)
		return SIM_NEVER;
	return (uint64_t)result;
}

/* Returns the metric's value after `instructions` of this work. */
static uint64_t metric_at(const struct sim_cpu *cpu, const struct sim_work *work,
			  enum sim_metric metric, uint64_t instructions)
{
	if (metric == SIM_INSTRUCTIONS)
		return instructions;
	if (metric == SIM_REFERENCE_CYCLES)
		return scaled(instructions, work->per_kilo[SIM_CYCLES], cpu->megahertz);
	if (work->per_kilo[metric])
		return scaled(instructions, work->per_kilo[metric], 1000);
	return 0;
}

/* Returns the number of instructions after which the metric reaches `count`; SIM_NEVER if it never
 * does. */
static uint64_t instruction_of(const struct sim_cpu *cpu, const struct sim_work *work,
			       enum sim_metric metric, uint64_t count)
{
	if (metric == SIM_INSTRUCTIONS)
		return count;
	uint32_t rate = work->per_kilo[metric == SIM_REFERENCE_CYCLES ? SIM_CYCLES : metric];
	if (!rate)
		return SIM_NEVER;
	return scaled_up(count, metric == SIM_REFERENCE_CYCLES ? cpu->megahertz : 1000, rate);
}

static bool counts(const struct sim_counter *counter, const struct sim_work *work)
{
	return counter->counting && (counter->modes & 1u << work->mode);
}

/* Returns the instruction, at most `limit`, at which the first counter overflows. */
static uint64_t next_stop(const struct sim_cpu *cpu, const struct sim_task *task, uint64_t limit)
{
	const struct sim_work *work = &task->phase.work;
	for (unsigned i = 0; i < cpu->counters_used; i++) {
		const struct sim_counter *counter = &cpu->counters[i];
		if (counter->until == SIM_NEVER || !counts(counter, work))
			continue;
		uint64_t reached = metric_at(cpu, work, counter->metric, task->work_done);
		uint64_t stop = instruction_of(cpu, work, counter->metric,
					       reached + counter->until);
		if (stop < limit)
			limit = stop;
	}
	return limit;
}

static void account(struct sim_cpu *cpu, struct sim_task *task, uint64_t to)
{
	const struct sim_work *work = &task->phase.work;
	uint64_t delta[SIM_METRICS];
	for (unsigned m = 0; m < SIM_METRICS; m++) {
		delta[m] = metric_at(cpu, work, m, to) - metric_at(cpu, work, m, task->work_done);
		task->truth[m][work->mode] += delta[m];
	}
	for (unsigned i = 0; i < cpu->counters_used; i++) {
		struct sim_counter *counter = &cpu->counters[i];
		if (!counts(counter, work))
			continue;
		counter->value += delta[counter->metric];
		if (counter->until == SIM_NEVER)
			continue;
		if (counter->until > delta[counter->metric])
			counter->until -= delta[counter->metric];
		else
			counter->until = 0;
	}
	task->work_done = to;
	if (work->mode == TALLY_MODE_USER)
		task->user_done = to;
}

struct overflow {
	struct sim_cpu *cpu;
	unsigned index;
};

static void overflow_body(void *argument)
{
	struct overflow *overflow = argument;
	struct sim_cpu *cpu = overflow->cpu;
	struct tally_engine_regs regs;
	if (overflow->index == SIM_TRACE_COUNTER) {
		sim_tracer_overflow(cpu->machine, cpu);
		return;
	}
	sim_cpu_regs(cpu, &regs);
	cpu->machine->model->overflow(cpu->machine, cpu, overflow->index, &regs);
}

static void deliver_overflows(struct sim_cpu *cpu)
{
	for (unsigned i = 0; i < cpu->counters_used; i++) {
		if (cpu->counters[i].until != 0)
			continue;
		cpu->counters[i].until = SIM_NEVER;
		struct overflow overflow = { cpu, i };
		sim_at_level(cpu,
			     i == SIM_TRACE_COUNTER ? TALLY_LEVEL_NMI : cpu->machine->model->level,
			     overflow_body, &overflow);
	}
}

void sim_cpu_advance(struct sim_cpu *cpu)
{
	struct sim_task *task = cpu->current;
	if (!task || !task->in_phase || task->phase.kind != SIM_WORK)
		return;
	const struct sim_work *work = &task->phase.work;
	uint64_t done = scaled(cpu->machine->now - cpu->work_start, cpu->megahertz,
			       work->per_kilo[SIM_CYCLES]);
	uint64_t left = work->instructions - cpu->work_base,
		 reached = cpu->work_base + (done < left ? done : left);
	while (task->work_done < reached) {
		account(cpu, task, next_stop(cpu, task, reached));
		deliver_overflows(cpu);
	}
}

void sim_cpu_rearm(struct sim_cpu *cpu)
{
	struct sim_machine *machine = cpu->machine;
	struct sim_task *task = cpu->current;
	uint64_t at = SIM_NEVER;
	if (cpu->resched || cpu->pend || (task && !task->in_phase) ||
	    (!task && cpu->queue_length)) {
		at = machine->now;
	} else if (task && task->phase.kind == SIM_WORK) {
		const struct sim_work *work = &task->phase.work;
		uint64_t stop = next_stop(cpu, task, work->instructions);
		at = cpu->work_start +
		     scaled_up(stop - cpu->work_base, work->per_kilo[SIM_CYCLES], cpu->megahertz);
		if (at < machine->now)
			at = machine->now;
	}
	if (cpu->online)
		sim_alarm_set(machine, &cpu->work, at);
}

static void fill_regs(struct tally_engine_regs *regs, const struct sim_work *work, uint64_t done)
{
	uint64_t span = work->code_size / 4;
	regs->ip = work->address + (span ? done % span * 4 : 0);
	regs->mode = work->mode;
	regs->sp = work->mode == TALLY_MODE_KERNEL ? 0xffffc90000003f00u : 0x7ffffffde000u;
	regs->fp = regs->sp + 64;
	regs->host = work;
}

void sim_cpu_regs(struct sim_cpu *cpu, struct tally_engine_regs *regs)
{
	static const struct sim_work idle = { .mode = TALLY_MODE_KERNEL,
					      .address = 0xffffffff81001000u };
	struct sim_task *task = cpu->current;
	if (!task)
		fill_regs(regs, &idle, 0);
	else if (task->in_phase && task->phase.kind == SIM_WORK)
		fill_regs(regs, &task->phase.work, task->work_done);
	else
		fill_regs(regs, &task->user_work, task->user_done);
}

void sim_at_level(struct sim_cpu *cpu, enum tally_engine_level level, void (*function)(void *),
		  void *argument)
{
	struct sim_machine *machine = cpu->machine;
	struct sim_cpu *before = machine->cpu;
	unsigned level_before = cpu->level, irq_before = cpu->irq_off;
	machine->cpu = cpu;
	if (level > cpu->level)
		cpu->level = level;
	cpu->irq_off = 1;
	function(argument);
	cpu->level = level_before;
	cpu->irq_off = irq_before;
	machine->cpu = before;
}

static void run_pending(void *argument)
{
	struct sim_cpu *cpu = argument;
	tally_engine_run_pending(cpu->machine->engine);
}

void sim_cpu_settle(struct sim_cpu *cpu)
{
	while (cpu->pend && cpu->level == TALLY_LEVEL_TASK && !cpu->irq_off) {
		cpu->pend = false;
		sim_at_level(cpu, TALLY_LEVEL_HARDIRQ, run_pending, cpu);
	}
}

void sim_guest_switch(struct sim_machine *machine, bool entering)
{
	struct sim_cpu *cpu = machine->cpu;
	cpu->in_guest = entering;
	if (machine->model->guest)
		machine->model->guest(machine, cpu, entering);
	sim_cpu_rearm(cpu);
}

static void begin_work(struct sim_cpu *cpu, struct sim_task *task)
{
	struct sim_work *work = &task->phase.work;
	if (!work->per_kilo[SIM_CYCLES])
		work->per_kilo[SIM_CYCLES] = 1000;
	work->per_kilo[SIM_INSTRUCTIONS] = 1000;
	task->work_done = 0;
	task->in_phase = work->instructions > 0;
	cpu->work_start = cpu->machine->now;
	cpu->work_base = 0;
	if (work->mode == TALLY_MODE_USER) {
		task->user_work = *work;
		task->user_done = 0;
	}
}

static void begin_phase(struct sim_cpu *cpu, struct sim_task *task)
{
	struct sim_machine *machine = cpu->machine;
	switch (task->phase.kind) {
	case SIM_WORK:
		begin_work(cpu, task);
		return;
	case SIM_SLEEP:
		task->state = SIM_SLEEPING;
		sim_alarm_set(machine, &task->alarm, machine->now + task->phase.ns);
		break;
	case SIM_BLOCK:
		task->state = SIM_BLOCKED;
		machine->waiting++;
		break;
	case SIM_YIELD:
		break;
	case SIM_EXIT:
		sim_task_exit(task);
		break;
	}
	cpu->resched = true;
}

void sim_cpu_continue(struct sim_cpu *cpu)
{
	struct sim_machine *machine = cpu->machine;
	struct sim_cpu *before = machine->cpu;
	machine->cpu = cpu;
	for (;;) {
		sim_cpu_settle(cpu);
		struct sim_task *task = cpu->current;
		if (cpu->resched || (!task && cpu->queue_length)) {
			sim_schedule(cpu);
			continue;
		}
		if (!task)
			break;
		if (task->in_phase && task->work_done < task->phase.work.instructions)
			break;
		task->in_phase = false;
		task->phase = (struct sim_phase){ .kind = SIM_EXIT };
		task->program(machine, task, task->data, &task->phase);
		begin_phase(cpu, task);
	}
	machine->cpu = before;
	sim_cpu_rearm(cpu);
}
