/* Tasks: fork, exec, exit, and what they do to themselves between phases. */
#include "sim/sim_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sim_task **hash_place(struct sim_machine *machine, int32_t tid)
{
	return &machine->hash[(uint32_t)tid % machine->hash_size];
}

/* Doubles the hash table, to as many places as tasks; if out of memory the chains grow instead. */
static void grow_hash(struct sim_machine *machine)
{
	size_t old_size = machine->hash_size;
	struct sim_task **old = machine->hash,
			**hash = calloc(2 * old_size, sizeof(struct sim_task *));
	if (!hash)
		return;
	machine->hash = hash;
	machine->hash_size = 2 * old_size;
	for (size_t i = 0; i < old_size; i++)
		for (struct sim_task *task = old[i], *next; task; task = next) {
			next = task->hash_next;
			struct sim_task **place = hash_place(machine, task->identity.tid);
			task->hash_next = *place;
			*place = task;
		}
	free(old);
}

static void link_task(struct sim_machine *machine, struct sim_task *task)
{
	if (++machine->hashed > machine->hash_size)
		grow_hash(machine);
	struct sim_task **place = hash_place(machine, task->identity.tid);
	task->hash_next = *place;
	*place = task;
	task->all_next = machine->tasks;
	if (machine->tasks)
		machine->tasks->all_previous = task;
	machine->tasks = task;
	machine->task_count++;
}

static void unhash(struct sim_machine *machine, struct sim_task *task)
{
	struct sim_task **place = hash_place(machine, task->identity.tid);
	while (*place != task)
		place = &(*place)->hash_next;
	*place = task->hash_next;
	machine->hashed--;
}

static void unlink_task(struct sim_machine *machine, struct sim_task *task)
{
	if (task->all_previous)
		task->all_previous->all_next = task->all_next;
	else
		machine->tasks = task->all_next;
	if (task->all_next)
		task->all_next->all_previous = task->all_previous;
}

static void ring_sleep(struct sim_machine *machine, struct sim_alarm *alarm)
{
	sim_wake(machine, SIM_CONTAINER(alarm, struct sim_task, alarm));
}

static struct sim_process *process_new(struct sim_machine *machine, struct sim_task *parent,
				       int32_t pid)
{
	struct sim_process *process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	if (parent)
		process->engine_process = tally_engine_process_fork(parent->process->engine_process,
								    pid);
	else
		process->engine_process = tally_engine_process_new(machine->engine, pid);
	if (!process->engine_process) {
		free(process);
		return NULL;
	}
	return process;
}

static void process_put(struct sim_process *process)
{
	if (--process->tasks)
		return;
	tally_engine_process_exit(process->engine_process);
	free(process);
}

static void identify(struct sim_task *task, const struct sim_task *parent,
		     const struct sim_task_spec *spec, int32_t tid)
{
	task->identity.tid = tid;
	task->identity.pid = task->process->pid;
	/* The parent of a forked child is the caller's process; a thread has the parent of its
	 * process. */
	if (!parent) {
		task->identity.parent_pid = 1;
		task->identity.parent_tid = 1;
	} else if (spec->thread) {
		task->identity.parent_pid = parent->identity.parent_pid;
		task->identity.parent_tid = parent->identity.parent_tid;
	} else {
		task->identity.parent_pid = parent->identity.pid;
		task->identity.parent_tid = parent->identity.tid;
	}
	task->parent_tid = parent ? parent->identity.tid : 0;
	const char *comm = parent ? parent->identity.comm : "task";
	if (spec->comm)
		comm = spec->comm;
	snprintf(task->identity.comm, sizeof(task->identity.comm), "%s", comm);
}

static void set_defaults(struct sim_task *task, const struct sim_task *parent)
{
	task->state = SIM_BLOCKED; /* sim_wake() starts it */
	sim_alarm_init(&task->alarm, ring_sleep);
	task->pinned = -1;
	task->cgroup = 1;
	task->user_work = (struct sim_work){
		.mode = TALLY_MODE_USER,
		.address = 0x401000,
		.code_size = 4096,
	};
	if (parent) {
		task->pinned = parent->pinned;
		task->unprivileged = parent->unprivileged;
		task->cgroup = parent->cgroup;
		task->user_work = parent->user_work;
	}
}

/* net, uts, ipc, pid, user, mnt, cgroup: the same for all tasks, as on a machine without
 * containers. */
static const struct tally_engine_namespace namespaces[] = {
	{ 3, 4026531840 }, { 3, 4026531838 }, { 3, 4026531839 }, { 3, 4026531836 },
	{ 3, 4026531837 }, { 3, 4026531841 }, { 3, 4026531835 },
};

struct sim_task *sim_spawn(struct sim_machine *machine, struct sim_task *parent,
			   const struct sim_task_spec *spec)
{
	struct sim_task *task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	int32_t tid = machine->next_tid++;
	task->machine = machine;
	task->program = spec->program;
	task->data = spec->data;
	task->release = spec->release;
	task->is_waited_for = spec->waited_for;
	if (parent && spec->thread)
		task->process = parent->process;
	else
		task->process = process_new(machine, parent, tid);
	if (!task->process) {
		free(task);
		return NULL;
	}
	task->process->tasks++;
	identify(task, parent, spec, tid);
	set_defaults(task, parent);
	if (spec->cpu >= 0)
		task->cpu = &machine->cpus[spec->cpu];
	else if (parent)
		task->cpu = parent->cpu;
	task->engine_task = tally_engine_task_new(task->process->engine_process, &task->identity,
						  task);
	if (!task->engine_task ||
	    (parent &&
	     tally_engine_task_fork(parent->engine_task, task->engine_task, spec->thread))) {
		if (task->engine_task)
			tally_engine_task_free(task->engine_task);
		process_put(task->process);
		free(task);
		return NULL;
	}
	if (parent)
		tally_engine_namespaces(task->engine_task, namespaces,
					sizeof(namespaces) / sizeof(namespaces[0]));
	if (parent)
		sim_trace_fork(machine, parent, task);
	link_task(machine, task);
	machine->waiting++;
	sim_wake(machine, task);
	return task;
}

void sim_set_comm(struct sim_machine *machine, const char *comm)
{
	struct sim_task *task = sim_current(machine);
	snprintf(task->identity.comm, sizeof(task->identity.comm), "%s", comm);
	tally_engine_comm(task->engine_task, comm);
}

void sim_exec(struct sim_machine *machine, const char *comm)
{
	struct sim_task *task = sim_current(machine);
	snprintf(task->identity.comm, sizeof(task->identity.comm), "%s", comm);
	tally_engine_task_exec(task->engine_task, comm);
}

void sim_task_exit(struct sim_task *task)
{
	struct sim_machine *machine = task->machine;
	task->exit_code = task->phase.exit_code;
	task->state = SIM_DEAD;
	tally_engine_task_exit(task->engine_task);
	task->zombie_wanted = task->is_waited_for && sim_find_task(machine, task->parent_tid);
	if (!task->zombie_wanted)
		unhash(machine, task);
	machine->task_count--;
	struct sim_exit *exit = malloc(sizeof(*exit));
	if (exit) {
		*exit = (struct sim_exit){ task->identity.tid, task->exit_code, machine->exits };
		machine->exits = exit;
	}
	process_put(task->process);
	struct sim_task *parent = sim_find_task(machine, task->parent_tid);
	if (parent && parent->state == SIM_BLOCKED)
		sim_wake(machine, parent);
}

static void task_release(struct sim_task *task)
{
	if (task->release)
		task->release(task->data);
	free(task->signals);
	free(task);
}

void sim_reap(struct sim_machine *machine, int32_t tid)
{
	struct sim_task *task = sim_find_task(machine, tid);
	if (!task || task->state != SIM_DEAD)
		return;
	task->zombie_wanted = false;
	unhash(machine, task);
	if (task->left)
		sim_task_free(task);
}

void sim_task_free(struct sim_task *task)
{
	task->left = true;
	if (task->zombie_wanted)
		return;
	tally_engine_task_free(task->engine_task);
	unlink_task(task->machine, task);
	task_release(task);
}

/* The machine ends before its tasks: each leaves as if it were killed. */
void sim_tasks_release(struct sim_machine *machine)
{
	while (machine->tasks) {
		struct sim_task *task = machine->tasks;
		struct sim_cpu *cpu = task->cpu;
		if (task->state != SIM_DEAD) {
			sim_alarm_set(machine, &task->alarm, SIM_NEVER);
			if (cpu && cpu->current == task) {
				cpu->current = NULL;
				cpu->irq_off = 1;
				machine->cpu = cpu;
				tally_engine_switch_out(machine->engine, task->engine_task, NULL,
							false);
				cpu->irq_off = 0;
			}
			tally_engine_task_exit(task->engine_task);
			process_put(task->process);
		}
		task->zombie_wanted = false;
		sim_task_free(task);
	}
}

struct sim_task *sim_current(struct sim_machine *machine)
{
	return machine->cpu->current;
}

struct tally_engine_task *sim_engine_task(struct sim_task *task)
{
	return task->engine_task;
}

int32_t sim_tid(const struct sim_task *task)
{
	return task->identity.tid;
}

int32_t sim_pid(const struct sim_task *task)
{
	return task->identity.pid;
}

unsigned sim_task_cpu(const struct sim_task *task)
{
	return task->cpu->number;
}

bool sim_exited(struct sim_machine *machine, int32_t tid, int *exit_code)
{
	for (struct sim_exit *exit = machine->exits; exit; exit = exit->next)
		if (exit->tid == tid) {
			*exit_code = exit->code;
			return true;
		}
	return false;
}

struct sim_task *sim_find_task(struct sim_machine *machine, int32_t tid)
{
	struct sim_task *task = NULL;
	if (tid > 0)
		task = *hash_place(machine, tid);
	while (task && task->identity.tid != tid)
		task = task->hash_next;
	return task;
}

uint64_t sim_truth(const struct sim_task *task, enum sim_metric metric, enum tally_engine_mode mode)
{
	return task->truth[metric][mode];
}

struct sim_signal_count *sim_signals(struct sim_task *task, int number)
{
	if (!task->signals)
		task->signals = calloc(SIM_SIGNALS, sizeof(*task->signals));
	if (task->signals && number >= 0 && number < SIM_SIGNALS)
		return &task->signals[number];
	return NULL;
}

void sim_drop_privileges(struct sim_task *task)
{
	task->unprivileged = true;
}

/* --- what happens to a task between phases -------------------------------- */

/* Sets `regs` to the current task's registers as user code would have them. */
static void user_regs(struct sim_machine *machine, struct tally_engine_regs *regs)
{
	sim_cpu_regs(machine->cpu, regs);
}

struct happening {
	struct sim_machine *machine;
	uint64_t address;
	unsigned slot;
};

void sim_fault(struct sim_machine *machine, uint64_t address, unsigned count, bool major)
{
	struct tally_engine_regs regs;
	user_regs(machine, &regs);
	for (unsigned i = 0; i < count; i++, address += 4096) {
		sim_trace_fault(machine, address, regs.ip);
		tally_engine_software(machine->engine, TALLY_SW_PAGE_FAULTS, 1, &regs, address);
		tally_engine_software(machine->engine,
				      major ? TALLY_SW_PAGE_FAULTS_MAJ : TALLY_SW_PAGE_FAULTS_MIN,
				      1, &regs, address);
		sim_cpu_settle(machine->cpu);
	}
}

void sim_software(struct sim_machine *machine, enum tally_sw event, unsigned count)
{
	struct tally_engine_regs regs;
	user_regs(machine, &regs);
	for (unsigned i = 0; i < count; i++) {
		tally_engine_software(machine->engine, event, 1, &regs, regs.ip);
		sim_cpu_settle(machine->cpu);
	}
}

static void breakpoint_body(void *argument)
{
	struct happening *happening = argument;
	struct tally_engine_regs regs;
	user_regs(happening->machine, &regs);
	tally_engine_breakpoint_hit(happening->machine->engine, happening->slot, &regs,
				    happening->address);
}

void sim_touch(struct sim_machine *machine, uint64_t address, unsigned length, unsigned access)
{
	struct sim_cpu *cpu = machine->cpu;
	for (unsigned slot = 0; slot < sizeof(cpu->watch) / sizeof(cpu->watch[0]); slot++) {
		if (!cpu->watch[slot].length || !(cpu->watch[slot].type & access) ||
		    address >= cpu->watch[slot].address + cpu->watch[slot].length ||
		    cpu->watch[slot].address >= address + length)
			continue;
		struct happening happening = { .machine = machine,
					       .slot = slot,
					       .address = cpu->watch[slot].address };
		sim_at_level(cpu, TALLY_LEVEL_NMI, breakpoint_body, &happening);
	}
	sim_cpu_settle(cpu);
}
