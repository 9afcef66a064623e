/* Decides where tasks run: a queue for each CPU, slices, waking, and idle CPUs that take tasks from
 * others. */
#include "sim/sim_state.h"

#include <errno.h>

static void enqueue(struct sim_cpu *cpu, struct sim_task *task)
{
	task->state = SIM_RUNNABLE;
	task->queue_next = NULL;
	if (cpu->queue_last)
		cpu->queue_last->queue_next = task;
	else
		cpu->queue_first = task;
	cpu->queue_last = task;
	cpu->queue_length++;
	sim_cpu_rearm(cpu);
}

static void dequeue(struct sim_task *task)
{
	struct sim_cpu *cpu = task->cpu;
	struct sim_task *previous = NULL;
	for (struct sim_task *t = cpu->queue_first; t != task; t = t->queue_next)
		previous = t;
	if (previous)
		previous->queue_next = task->queue_next;
	else
		cpu->queue_first = task->queue_next;
	if (cpu->queue_last == task)
		cpu->queue_last = previous;
	cpu->queue_length--;
}

static bool may_run_on(const struct sim_task *task, const struct sim_cpu *cpu)
{
	return cpu->online && (task->pinned < 0 || (unsigned)task->pinned == cpu->number);
}

static struct sim_cpu *any_online(struct sim_machine *machine)
{
	for (unsigned i = 0; i < machine->config.cpus; i++)
		if (machine->cpus[i].online)
			return &machine->cpus[i];
	return machine->cpus;
}

static bool idle(const struct sim_cpu *cpu)
{
	return cpu->online && !cpu->current && !cpu->queue_length;
}

static struct sim_cpu *choose_cpu(struct sim_machine *machine, struct sim_task *task)
{
	if (task->pinned >= 0 && machine->cpus[task->pinned].online)
		return &machine->cpus[task->pinned];
	struct sim_cpu *last = task->cpu;
	if (last && (idle(last) || (!machine->config.balance && last->online)))
		return last;
	for (unsigned probe = 0; machine->config.balance && probe < 4; probe++) {
		struct sim_cpu *cpu = &machine->cpus[sim_random(machine) % machine->config.cpus];
		if (idle(cpu))
			return cpu;
	}
	if (last && last->online)
		return last;
	return any_online(machine);
}

static uintptr_t migrating(struct sim_cpu *cpu)
{
	return cpu->irq_off++;
}

/* For a task that neither runs nor is queued. */
static void move(struct sim_task *task, struct sim_cpu *to)
{
	if (task->cpu == to)
		return;
	if (task->cpu) {
		struct sim_cpu *here = task->machine->cpu;
		uintptr_t before = migrating(here);
		tally_engine_migrate(task->engine_task, to->number);
		here->irq_off = before;
	}
	task->cpu = to;
}

/* Takes a task from a CPU that has more than it can run. */
static struct sim_task *take_from_others(struct sim_cpu *cpu)
{
	struct sim_machine *machine = cpu->machine;
	for (unsigned probe = 0; machine->config.balance && probe < 4; probe++) {
		struct sim_cpu *other = &machine->cpus[sim_random(machine) % machine->config.cpus];
		if (other == cpu || !other->queue_first || !may_run_on(other->queue_first, cpu))
			continue;
		struct sim_task *task = other->queue_first;
		dequeue(task);
		move(task, cpu);
		return task;
	}
	return NULL;
}

static struct sim_task *choose_task(struct sim_cpu *cpu, struct sim_task *previous, bool runnable)
{
	struct sim_task *next = cpu->queue_first;
	if (next) {
		dequeue(next);
		return next;
	}
	if (runnable && may_run_on(previous, cpu))
		return previous;
	return take_from_others(cpu);
}

static void leave(struct sim_cpu *cpu, struct sim_task *previous, bool runnable)
{
	struct sim_machine *machine = cpu->machine;
	previous->runtime += machine->now - previous->run_start;
	if (runnable) {
		struct sim_cpu *to = cpu;
		if (!may_run_on(previous, cpu))
			to = choose_cpu(machine, previous);
		move(previous, to);
		enqueue(to, previous);
	} else if (previous->state == SIM_DEAD) {
		sim_task_free(previous);
	}
}

void sim_schedule(struct sim_cpu *cpu)
{
	struct sim_machine *machine = cpu->machine;
	struct sim_task *previous = cpu->current;
	bool runnable = previous && previous->state == SIM_RUNNING;
	cpu->resched = false;
	struct sim_task *next = choose_task(cpu, previous, runnable);
	if (next == previous) {
		cpu->slice_start = machine->now;
		return;
	}
	if (cpu->in_guest) { /* an interrupt ends the guest's turn before the kernel can switch */
		previous->left_guest = true;
		sim_guest_switch(machine, false);
	}
	struct tally_engine_task *out = previous ? previous->engine_task : NULL;
	struct tally_engine_task *in = next ? next->engine_task : NULL;
	uintptr_t before = migrating(cpu);
	sim_trace_switch(machine, previous, next, runnable);
	tally_engine_switch_out(machine->engine, out, in, runnable);
	cpu->current = next;
	tally_engine_switch_in(machine->engine, out, in);
	cpu->irq_off = before;
	if (next) {
		next->state = SIM_RUNNING;
		next->run_start = cpu->work_start = cpu->slice_start = machine->now;
		cpu->work_base = next->work_done;
		if (next->left_guest)
			sim_guest_switch(machine, true);
		next->left_guest = false;
	}
	if (previous)
		leave(cpu, previous, runnable);
}

void sim_wake(struct sim_machine *machine, struct sim_task *task)
{
	if (task->state != SIM_SLEEPING && task->state != SIM_BLOCKED)
		return;
	if (task->state == SIM_BLOCKED)
		machine->waiting--;
	sim_alarm_set(machine, &task->alarm, SIM_NEVER);
	if (task->cpu && task->cpu->current == task) { /* woken before it was switched out */
		task->state = SIM_RUNNING;
		return;
	}
	struct sim_cpu *cpu = choose_cpu(machine, task);
	move(task, cpu);
	sim_trace_wakeup(machine, task);
	enqueue(cpu, task);
}

int sim_pin(struct sim_machine *machine, struct sim_task *task, int cpu)
{
	if (cpu >= 0 && !sim_cpu_online(machine, (unsigned)cpu))
		return -EINVAL;
	task->pinned = cpu;
	if (cpu < 0 || task->cpu == &machine->cpus[cpu])
		return 0;
	if (task->state == SIM_RUNNABLE) {
		dequeue(task);
		move(task, &machine->cpus[cpu]);
		enqueue(&machine->cpus[cpu], task);
	} else if (task->state == SIM_RUNNING) {
		task->cpu->resched = true;
		sim_cpu_rearm(task->cpu);
	}
	return 0;
}

/* Moves all tasks off a CPU that goes offline.  Tasks pinned to it may then run anywhere, as in
 * Linux. */
void sim_cpu_evacuate(struct sim_cpu *cpu)
{
	struct sim_machine *machine = cpu->machine;
	cpu->online = false; /* so that it is not chosen */
	while (cpu->queue_first || cpu->current) {
		struct sim_task *task = cpu->queue_first;
		if (!task) {
			if (cpu->current->pinned == (int)cpu->number)
				cpu->current->pinned = -1;
			struct sim_cpu *before = machine->cpu;
			machine->cpu = cpu;
			sim_schedule(cpu);
			machine->cpu = before;
			continue;
		}
		dequeue(task);
		if (task->pinned == (int)cpu->number)
			task->pinned = -1;
		struct sim_cpu *to = choose_cpu(machine, task);
		move(task, to);
		enqueue(to, task);
	}
	cpu->online = true;
}
