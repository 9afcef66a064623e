/* The machine's own tracepoints: when they hit, and the registers at that point. */
#define TALLY_TRACE_DEFINE
#include "sim/sim_tracepoints.h"

#include "sim/sim_state.h"

#include <errno.h>

/* Only one machine at a time has them, since a tracepoint belongs to one engine: a second machine
 * has none. */
int sim_trace_register(struct sim_machine *machine)
{
	tally_trace_group_syscalls.raw_for_anybody = true;
	struct tally_trace_group *const groups[] = { &tally_trace_group_sched,
						     &tally_trace_group_syscalls,
						     &tally_trace_group_exceptions };
	int code = 0;
	unsigned done = 0;
	while (done < 3 && !(code = tally_trace_register(machine->engine, groups[done])))
		done++;
	while (code && done)
		tally_trace_unregister(machine->engine, groups[--done]);
	machine->traces = !code;
	if (code == -EBUSY)
		return 0;
	return code;
}

static const uint64_t callers[] = { 0xffffffff81002000u, 0xffffffff81a00000u };
static const struct sim_work place = {
	.mode = TALLY_MODE_KERNEL,
	.address = 0xffffffff81100000u,
	.callers = callers,
	.caller_count = 2,
};

/* host.trace_regs: replaces the address of this program's code, which means nothing in the
 * machine. */
void sim_trace_regs(void *host, struct tally_engine_regs *regs)
{
	struct sim_machine *machine = host;
	if (machine->user_hit) {
		sim_cpu_regs(machine->cpu, regs);
		return;
	}
	*regs = (struct tally_engine_regs){ .ip = place.address,
					    .sp = 0xffffc90000003f00u,
					    .fp = 0xffffc90000003f40u,
					    .mode = TALLY_MODE_KERNEL,
					    .host = &place };
}

static const struct tally_engine_identity idle = { .comm = "swapper" };

static int64_t state_of(const struct sim_task *task, bool runnable)
{
	if (runnable || !task)
		return 0;
	if (task->state == SIM_DEAD)
		return 0x10;
	return 1;
}

void sim_trace_runtime(struct sim_task *task)
{
	struct sim_machine *machine = task->machine;
	uint64_t from = task->run_start;
	if (from < task->runtime_traced)
		from = task->runtime_traced;
	task->runtime_traced = machine->now;
	if (machine->traces && machine->now > from)
		TALLY_TRACE(sched_stat_runtime, &task->identity, task->engine_task,
			    machine->now - from);
}

bool sim_trace_wants_runtime(const struct sim_machine *machine)
{
	return machine->traces && TALLY_TRACE_ENABLED(sched_stat_runtime);
}

void sim_trace_fork(struct sim_machine *machine, struct sim_task *parent, struct sim_task *child)
{
	if (machine->traces)
		TALLY_TRACE(sched_process_fork, &parent->identity, &child->identity);
}

void sim_trace_switch(struct sim_machine *machine, struct sim_task *previous, struct sim_task *next,
		      bool runnable)
{
	if (!machine->traces)
		return;
	if (previous)
		sim_trace_runtime(previous);
	TALLY_TRACE(sched_switch, previous ? &previous->identity : &idle,
		    state_of(previous, runnable), next ? &next->identity : &idle);
}

void sim_trace_wakeup(struct sim_machine *machine, struct sim_task *task)
{
	if (machine->traces)
		TALLY_TRACE(sched_wakeup, &task->identity, task->engine_task,
			    (int32_t)task->cpu->number);
}

void sim_trace_fault(struct sim_machine *machine, uint64_t address, uint64_t ip)
{
	enum { USER_WRITE = 6 };
	if (machine->traces)
		TALLY_TRACE(page_fault_user, address, ip, USER_WRITE);
}

void sim_trace_syscall(struct sim_machine *machine, int number)
{
	/* in Linux the record has the task's registers at entry */
	machine->user_hit = true;
	if (machine->traces)
		TALLY_TRACE(sys_enter_getppid, number);
	machine->user_hit = false;
	sim_cpu_settle(machine->cpu);
}
