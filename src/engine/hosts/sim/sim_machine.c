/* The machine's life: goes from one alarm to the next. */
#include "sim/sim_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- life ----------------------------------------------------------------- */

static void tick_body(void *argument)
{
	struct sim_cpu *cpu = argument;
	struct tally_engine_regs regs;
	sim_cpu_regs(cpu, &regs);
	tally_engine_tick(cpu->machine->engine, &regs);
}

static void runtime_body(void *argument)
{
	struct sim_cpu *cpu = argument;
	sim_trace_runtime(cpu->current);
}

/* Linux accounts a task's run time more often than at ticks.  If the tracepoint has listeners, it
 * is reported four times per tick. */
enum { ACCOUNTS_PER_TICK = 4 };

static void ring_tick(struct sim_machine *machine, struct sim_alarm *alarm)
{
	struct sim_cpu *cpu = SIM_CONTAINER(alarm, struct sim_cpu, tick);
	sim_cpu_advance(cpu);
	if (cpu->current)
		sim_at_level(cpu, TALLY_LEVEL_HARDIRQ, runtime_body, cpu);
	if (machine->now >= cpu->next_tick) {
		cpu->next_tick = machine->now + machine->config.tick_ns;
		sim_at_level(cpu, TALLY_LEVEL_HARDIRQ, tick_body, cpu);
		if (cpu->current && cpu->queue_length &&
		    machine->now - cpu->slice_start >= machine->config.slice_ns)
			cpu->resched = true;
	}
	uint64_t step = machine->config.tick_ns;
	if (sim_trace_wants_runtime(machine))
		step /= ACCOUNTS_PER_TICK;
	uint64_t next = machine->now + (step ? step : 1);
	sim_alarm_set(machine, alarm, next < cpu->next_tick ? next : cpu->next_tick);
	sim_cpu_rearm(cpu);
}

static void ring_work(struct sim_machine *machine, struct sim_alarm *alarm)
{
	struct sim_cpu *cpu = SIM_CONTAINER(alarm, struct sim_cpu, work);
	(void)machine;
	sim_cpu_advance(cpu);
	sim_cpu_continue(cpu);
}

static void cpu_init(struct sim_machine *machine, unsigned number)
{
	struct sim_cpu *cpu = &machine->cpus[number];
	cpu->number = number;
	cpu->machine = machine;
	cpu->megahertz = machine->config.megahertz;
	sim_alarm_init(&cpu->work, ring_work);
	sim_alarm_init(&cpu->tick, ring_tick);
	cpu->tick.is_tick = true;
	for (unsigned i = 0; i < SIM_COUNTERS_MAX; i++)
		cpu->counters[i].until = SIM_NEVER;
}

static void cpu_up(void *argument)
{
	struct sim_cpu *cpu = argument;
	tally_engine_cpu_up(cpu->machine->engine, cpu->number);
}

static void cpu_down(void *argument)
{
	struct sim_cpu *cpu = argument;
	tally_engine_cpu_down(cpu->machine->engine, cpu->number);
}

static void bring_up(struct sim_cpu *cpu)
{
	struct sim_machine *machine = cpu->machine;
	cpu->online = true;
	sim_at_level(cpu, TALLY_LEVEL_HARDIRQ, cpu_up, cpu);
	cpu->next_tick = machine->now + machine->config.tick_ns;
	sim_alarm_set(machine, &cpu->tick, cpu->next_tick);
}

struct sim_machine *sim_new(const struct sim_config *config)
{
	struct sim_machine *machine = calloc(1, sizeof(*machine));
	if (!machine)
		return NULL;
	machine->config = *config;
	if (!config->tick_ns)
		machine->config.tick_ns = 4000000;
	if (!config->slice_ns)
		machine->config.slice_ns = machine->config.tick_ns;
	if (!config->megahertz)
		machine->config.megahertz = 1000;
	machine->random = config->seed * 2 + 1;
	machine->now = 1000000000; /* so that no time is 0 */
	machine->next_tid = 1000;
	machine->model = sim_pmu_model(config->model ? config->model : "none");
	machine->cpus = calloc(config->cpus, sizeof(*machine->cpus));
	machine->hash_size = 1024;
	machine->hash = calloc(machine->hash_size, sizeof(struct sim_task *));
	if (!machine->model || !machine->cpus || !machine->hash)
		goto fail;
	for (unsigned i = 0; i < config->cpus; i++)
		cpu_init(machine, i);
	machine->cpu = machine->cpus;
	struct tally_engine_host host;
	sim_host_table(machine, &host);
	machine->engine = tally_engine_new(&host);
	if (!machine->engine || (machine->model->init && machine->model->init(machine)))
		goto fail;
	if (sim_tracer_init(machine) || sim_trace_register(machine))
		goto fail;
	for (unsigned i = 0; i < config->cpus; i++)
		bring_up(&machine->cpus[i]);
	return machine;
fail:
	sim_free(machine);
	return NULL;
}

void sim_free(struct sim_machine *machine)
{
	if (!machine)
		return;
	sim_tasks_release(machine);
	if (machine->model && machine->model->release && machine->pmu)
		machine->model->release(machine);
	sim_tracer_release(machine);
	if (machine->engine)
		tally_engine_free(machine->engine);
	while (machine->exits) {
		struct sim_exit *exit = machine->exits;
		machine->exits = exit->next;
		free(exit);
	}
	free(machine->hash);
	sim_alarms_release(&machine->alarms);
	free(machine->cpus);
	free(machine);
}

unsigned sim_run(struct sim_machine *machine, uint64_t until_ns)
{
	while (machine->task_count > machine->waiting) {
		struct sim_alarm *alarm = sim_alarms_first(&machine->alarms);
		if (!alarm || alarm->at > until_ns)
			break;
		sim_alarms_take(&machine->alarms);
		if (alarm->at > machine->now)
			machine->now = alarm->at;
		machine->events++;
		alarm->ring(machine, alarm);
		if (machine->after)
			machine->after(machine);
	}
	if (machine->task_count > machine->waiting && until_ns > machine->now &&
	    until_ns != SIM_NEVER)
		machine->now = until_ns;
	return machine->task_count;
}

int sim_set_online(struct sim_machine *machine, unsigned number, bool online)
{
	if (number >= machine->config.cpus)
		return -EINVAL;
	struct sim_cpu *cpu = &machine->cpus[number];
	if (cpu->online == online)
		return 0;
	if (online) {
		bring_up(cpu);
		return 0;
	}
	if (sim_cpus_online(machine) == 1 || (cpu->current && cpu == machine->cpu))
		return -EBUSY; /* the caller itself runs there */
	sim_cpu_advance(cpu);
	sim_cpu_evacuate(cpu);
	sim_at_level(cpu, TALLY_LEVEL_HARDIRQ, cpu_down, cpu);
	cpu->online = false;
	sim_alarm_set(machine, &cpu->tick, SIM_NEVER);
	sim_alarm_set(machine, &cpu->work, SIM_NEVER);
	return 0;
}

bool sim_cpu_online(const struct sim_machine *machine, unsigned cpu)
{
	return cpu < machine->config.cpus && machine->cpus[cpu].online;
}

unsigned sim_cpus_online(const struct sim_machine *machine)
{
	unsigned count = 0;
	for (unsigned i = 0; i < machine->config.cpus; i++)
		count += machine->cpus[i].online;
	return count;
}

struct tally_engine *sim_engine(struct sim_machine *machine)
{
	return machine->engine;
}

uint64_t sim_now(const struct sim_machine *machine)
{
	return machine->now;
}

uint64_t sim_events(const struct sim_machine *machine)
{
	return machine->events;
}

uint64_t sim_random(struct sim_machine *machine) /* splitmix64 */
{
	uint64_t z = machine->random += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}
