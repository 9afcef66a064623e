/* A deterministic machine to host the engine: CPUs, tasks, a scheduler that migrates, a tick, PMUs.
 *
 * One host thread runs all of it.  Time is simulated, in ns.  Everything depends only on the
 * configuration and the tasks, so two runs are the same to the last byte.  A task is a program that
 * returns *phases* one after another: an amount of work of some kind, sleep, exit.  Between phases
 * it runs at task level as the current task, and may do whatever a program can: open events, fork,
 * hit tracepoints.  A program is a function (scenarios: scenario.c) or a C body that runs as a
 * coroutine (sim_body.c, used by the conformance suite).
 *
 * CPUs are advanced lazily.  Each knows the time of its next happening (its phase ends, a counter
 * overflows), and a heap of alarms orders these, so the cost depends on the number of happenings,
 * not of CPUs.  Work is instructions.  All other metrics are given per thousand instructions,
 * exactly. */
#ifndef TALLY_SIM_H
#define TALLY_SIM_H

#include "tally/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The metrics of work, besides instructions. */
enum sim_metric {
	SIM_CYCLES,
	SIM_INSTRUCTIONS,
	SIM_CACHE_REFERENCES,
	SIM_CACHE_MISSES,
	SIM_BRANCHES,
	SIM_BRANCH_MISSES,
	SIM_BUS_CYCLES,
	SIM_STALLED_FRONTEND,
	SIM_STALLED_BACKEND,
	SIM_REFERENCE_CYCLES, /* a clock that never changes: 1 cycle per ns */
	SIM_L1D_LOADS,
	SIM_L1D_LOAD_MISSES,
	SIM_L1D_STORES,
	SIM_L1I_LOAD_MISSES,
	SIM_DTLB_LOAD_MISSES,
	SIM_ITLB_LOAD_MISSES,
	SIM_METRICS
};

struct sim_machine;
struct sim_process;
struct sim_task;
struct sim_cpu;

/* A stretch of instructions. */
struct sim_work {
	uint64_t instructions;
	/* each metric per 1000 instructions; [SIM_CYCLES] at least 1; [SIM_INSTRUCTIONS]
	 * and [SIM_REFERENCE_CYCLES] are filled in */
	uint32_t per_kilo[SIM_METRICS];
	enum tally_engine_mode mode;
	/* its code: ip walks through `code_size` bytes, 4 per instruction */
	uint64_t address;
	uint32_t code_size;
	/* return addresses, the leaf's caller first; owned by the program */
	const uint64_t *callers;
	unsigned caller_count;
};

enum sim_phase_kind {
	SIM_WORK,
	SIM_SLEEP, /* for `ns` */
	SIM_BLOCK, /* until sim_wake() */
	SIM_YIELD, /* to other tasks runnable on this CPU */
	SIM_EXIT   /* with `exit_code` */
};

struct sim_phase {
	enum sim_phase_kind kind;
	struct sim_work work;
	uint64_t ns;
	int exit_code;
};

/* Sets *phase to the task's next phase.  Called as the current task, at task level. */
typedef void sim_program(struct sim_machine *machine, struct sim_task *task, void *data,
			 struct sim_phase *phase);

enum sim_virtualisation { SIM_NOT_VIRTUAL, SIM_VHE, SIM_NON_VHE, SIM_IN_GUEST };

struct sim_config {
	unsigned cpus;          /* at least 1 */
	const char *model;      /* a name of SIM_PMU_MODELS in sim_state.h; NULL: "none" */
	uint64_t tick_ns;       /* 0: 4 ms */
	uint64_t slice_ns;      /* how long a task runs while others wait; 0: one tick */
	uint32_t megahertz;     /* of each CPU; 0: 1000 */
	uint64_t seed;          /* for the scheduler's choices */
	enum sim_virtualisation virtualisation;
	bool balance;           /* idle CPUs take tasks from others: migrations */
	/* Every `nmi_every`-th callback of the engine is interrupted by an NMI at that very
	 * instruction (0: never): sim_host.c. */
	unsigned nmi_every;
};

enum { SIM_PAGE_SIZE = 4096 };
#define SIM_SIGNALS 65

struct sim_signal_count {
	unsigned count;
	int last_code;
	uint64_t last_data;
};

/* --- the machine ---------------------------------------------------------- */

/* returns NULL if out of memory, or if there is no such model */
struct sim_machine *sim_new(const struct sim_config *config);
void sim_free(struct sim_machine *machine);
struct tally_engine *sim_engine(struct sim_machine *machine);
uint64_t sim_now(const struct sim_machine *machine);
/* Runs until every task has exited or is blocked for good, or the time is `until_ns`.  Returns the
 * number of tasks left. */
unsigned sim_run(struct sim_machine *machine, uint64_t until_ns);
/* Returns the number of simulated happenings handled so far, for benchmarks. */
uint64_t sim_events(const struct sim_machine *machine);
/* Takes a CPU offline, so that its tasks move, or online again.  Returns 0 or -errno: -EBUSY for
 * the last CPU.  Task level. */
int sim_set_online(struct sim_machine *machine, unsigned cpu, bool online);
bool sim_cpu_online(const struct sim_machine *machine, unsigned cpu);
unsigned sim_cpus_online(const struct sim_machine *machine);

/* What code outside the machine must know of the architecture of a model. */
struct sim_architecture {
	const char *name;                  /* as in uname -m: "aarch64" */
	uint16_t elf_machine;              /* EM_… */
	unsigned sp_register, pc_register; /* numbers of asm/perf_regs.h */
	uint64_t register_mask;            /* its registers, a bit for each of those numbers */
};
/* Returns NULL if there is no such model. */
const struct sim_architecture *sim_architecture_of(const char *model);

/* Sets *metric to what an event of type HARDWARE or HW_CACHE counts on this machine.  Returns false
 * if its model has no such event. */
bool sim_metric_of(const struct sim_machine *machine, uint32_t type, uint64_t config,
		   enum sim_metric *metric);

/* --- tasks ---------------------------------------------------------------- */

struct sim_task_spec {
	const char *comm;
	sim_program *program;
	void *data;
	void (*release)(void *data); /* called when the task has ended; may be NULL */
	int cpu;                     /* its first CPU; -1: any */
	bool thread;                 /* in the parent's process */
	/* stays a zombie after its exit, until the parent calls sim_reap() */
	bool waited_for;
};

/* Makes a task.  `parent` is NULL for a task without one.  Returns NULL if out of memory. */
struct sim_task *sim_spawn(struct sim_machine *machine, struct sim_task *parent,
			   const struct sim_task_spec *spec);
/* For the current task: prctl(PR_SET_NAME), exec(2). */
void sim_set_comm(struct sim_machine *machine, const char *comm);
void sim_exec(struct sim_machine *machine, const char *comm);
struct sim_task *sim_current(struct sim_machine *machine);
struct tally_engine_task *sim_engine_task(struct sim_task *task);
int32_t sim_tid(const struct sim_task *task);
int32_t sim_pid(const struct sim_task *task);
/* Pins the task to a CPU (-1: to none).  Moves it at once if it is the current task.  Returns 0, or
 * -EINVAL if no such CPU is online. */
int sim_pin(struct sim_machine *machine, struct sim_task *task, int cpu);
unsigned sim_task_cpu(const struct sim_task *task);
/* Makes a blocked or sleeping task runnable. */
void sim_wake(struct sim_machine *machine, struct sim_task *task);
/* Returns true once the task has exited, and sets *exit_code.  A task's exit wakes tasks that are
 * blocked in its parent's process. */
bool sim_exited(struct sim_machine *machine, int32_t tid, int *exit_code);
void sim_reap(struct sim_machine *machine, int32_t tid);
/* Finds a task by tid.  Returns NULL once it has exited and been reaped. */
struct sim_task *sim_find_task(struct sim_machine *machine, int32_t tid);
/* Returns the work that a task did in a mode: the truth that counts are compared with. */
uint64_t sim_truth(const struct sim_task *task, enum sim_metric metric,
		   enum tally_engine_mode mode);
struct sim_signal_count *sim_signals(struct sim_task *task, int number);
void sim_drop_privileges(struct sim_task *task);

/* --- what a task does between phases -------------------------------------- */

/* Faults on `count` consecutive pages from `address` on; major: from disk. */
void sim_fault(struct sim_machine *machine, uint64_t address, unsigned count, bool major);
/* Reports a software event of another kind, in user mode at the current instruction. */
void sim_software(struct sim_machine *machine, enum tally_sw event, unsigned count);
/* The current task reads (1), writes (2) or executes (4) at an address: hits the breakpoints that
 * watch it. */
void sim_touch(struct sim_machine *machine, uint64_t address, unsigned length, unsigned access);
/* A system call begins: hits the tracepoint syscalls:sys_enter_getppid, whatever `number` is. */
void sim_trace_syscall(struct sim_machine *machine, int number);
/* The hypervisor switches counters between host and guest, at entry and exit; work in guest modes
 * comes in between. config.virtualisation is the kind of host. */
void sim_guest_switch(struct sim_machine *machine, bool entering);

/* --- C bodies ------------------------------------------------------------- */

/* A task whose program is a C function with a stack of its own.  Its return value is the exit code.
 * In sim_task_spec: program = sim_body_program, data = sim_body_new(…), release =
 * sim_body_release. */
struct sim_body;
typedef int sim_body_function(struct sim_machine *machine, void *argument);
struct sim_body *sim_body_new(sim_body_function *function, void *argument);
sim_program sim_body_program;
void sim_body_release(void *body);
/* Called within a body: performs the phase, and returns when it is over. */
void sim_do(struct sim_machine *machine, const struct sim_phase *phase);

#endif
