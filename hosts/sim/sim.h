/* A deterministic machine for the engine to live in: CPUs, tasks, a scheduler that migrates, a
 * tick, PMUs.
 *
 * One host thread runs it all.  Time is simulated, in ns; what happens depends on the configuration
 * and the tasks alone, so that two runs are the same to the last byte.  A task is a program that
 * hands out *phases* — so much work of this kind, sleep, exit — one after another; between phases,
 * at task level and as the current task, it may do whatever a program can: open events, fork, hit
 * tracepoints.  A program is a function (scenarios: scenario.c) or a C body that runs as a
 * coroutine (sim_body.c, the conformance suite).
 *
 * CPUs are advanced lazily: each knows when something will next happen on it (its phase ends, a
 * counter overflows), and a heap of alarms orders these, so that the cost is by events, not by
 * CPUs.  Work is instructions; all that counters count is so many per thousand of them, exactly.
 */
#ifndef TALLY_SIM_H
#define TALLY_SIM_H

#include "tally/engine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What work consists of, besides instructions. */
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
	SIM_REFERENCE_CYCLES, /* of a clock that never changes: 1 a ns */
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
	uint32_t per_kilo
		[SIM_METRICS]; /* of each metric in 1000 instructions; [SIM_CYCLES] at least 1;
					   [SIM_INSTRUCTIONS] and [SIM_REFERENCE_CYCLES] are filled in */
	enum tally_engine_mode mode;
	/* of its code: ip walks through `code_size` bytes, 4 an instruction */
	uint64_t address;
	uint32_t code_size;
	/* return addresses, leaf's caller first; kept by the program */
	const uint64_t *callers;
	unsigned caller_count;
};

enum sim_phase_kind {
	SIM_WORK,
	SIM_SLEEP, /* for `ns` */
	SIM_BLOCK, /* until sim_wake() */
	SIM_YIELD, /* to who else is runnable here */
	SIM_EXIT   /* with `exit_code` */
};

struct sim_phase {
	enum sim_phase_kind kind;
	struct sim_work work;
	uint64_t ns;
	int exit_code;
};

/* What comes next? Called as the current task, at task level. */
typedef void sim_program(struct sim_machine *machine, struct sim_task *task, void *data,
			 struct sim_phase *phase);

enum sim_virtualisation { SIM_NOT_VIRTUAL, SIM_VHE, SIM_NON_VHE, SIM_IN_GUEST };

struct sim_config {
	unsigned cpus;          /* 1 … */
	const char
		*model; /* "none", "x86", "x86-8", "arm64", "arm64-32", "big.LITTLE": sim_pmu.h */
	uint64_t tick_ns;       /* 0: 4 ms */
	uint64_t slice_ns;      /* how long a task runs while others wait; 0: a tick */
	uint32_t megahertz;     /* of every CPU; 0: 1000 */
	uint64_t seed;          /* of the scheduler's choices */
	enum sim_virtualisation virtualisation;
	bool balance;           /* CPUs without work take tasks from others: migrations */
	/* Makes every so many callbacks of the engine an NMI at that very instruction (0: never):
	 * sim_nmi.c. */
	unsigned nmi_every;
};

enum { SIM_PAGE_SIZE = 4096 };
#define SIM_SIGNALS 65

struct sim_signal_count {
	unsigned count;
	int last_code;
	uint64_t last_data, last_address;
};

/* --- the machine ---------------------------------------------------------- */

/* NULL: out of memory, or no such model */
struct sim_machine *sim_new(const struct sim_config *config);
void sim_free(struct sim_machine *machine);
struct tally_engine *sim_engine(struct sim_machine *machine);
const struct sim_config *sim_configuration(const struct sim_machine *machine);
uint64_t sim_now(const struct sim_machine *machine);
/* Runs until every task has exited or blocked for good, or the time is `until_ns`.  The number of
 * tasks left. */
unsigned sim_run(struct sim_machine *machine, uint64_t until_ns);
/* Simulated events handled so far: what benchmarks count. */
uint64_t sim_events(const struct sim_machine *machine);
/* Takes a CPU away or brings it back; its tasks move.  -EBUSY for the last one. Task level. */
int sim_set_online(struct sim_machine *machine, unsigned cpu, bool online);
bool sim_cpu_online(const struct sim_machine *machine, unsigned cpu);
unsigned sim_cpus_online(const struct sim_machine *machine);

/* --- tasks ---------------------------------------------------------------- */

struct sim_task_spec {
	const char *comm;
	sim_program *program;
	void *data;
	void (*release)(void *data); /* when the task is gone; NULL: nothing */
	int cpu;                     /* starts there (-1: anywhere) */
	bool thread;                 /* of the parent's process */
	/* a zombie after its exit, until the parent calls sim_reap() */
	bool waited_for;
};

/* A task: `parent` NULL for one that nobody forked.  NULL: out of memory. */
struct sim_task *sim_spawn(struct sim_machine *machine, struct sim_task *parent,
			   const struct sim_task_spec *spec);
/* Of the current task: prctl(PR_SET_NAME), exec(2). */
void sim_set_comm(struct sim_machine *machine, const char *comm);
void sim_exec(struct sim_machine *machine, const char *comm);
struct sim_task *sim_current(struct sim_machine *machine);
struct tally_engine_task *sim_engine_task(struct sim_task *task);
int32_t sim_tid(const struct sim_task *task);
int32_t sim_pid(const struct sim_task *task);
/* 0, or -EINVAL when no such CPU is online.  -1: anywhere.  Moves it at once if it is the current
 * task. */
int sim_pin(struct sim_machine *machine, struct sim_task *task, int cpu);
unsigned sim_task_cpu(const struct sim_task *task);
/* Makes a blocked or sleeping task runnable. */
void sim_wake(struct sim_machine *machine, struct sim_task *task);
/* True once it exited: *exit_code.  A task's exit wakes those blocked in its parent's process. */
bool sim_exited(struct sim_machine *machine, int32_t tid, int *exit_code);
void sim_reap(struct sim_machine *machine, int32_t tid);
/* By tid; NULL once it has exited and was reaped. */
struct sim_task *sim_find_task(struct sim_machine *machine, int32_t tid);
/* Work that a task did in a mode: the truth that counts are held to. */
uint64_t sim_truth(const struct sim_task *task, enum sim_metric metric,
		   enum tally_engine_mode mode);
uint64_t sim_task_runtime(const struct sim_task *task); /* ns on a CPU */
struct sim_signal_count *sim_signals(struct sim_task *task, int number);
void sim_drop_privileges(struct sim_task *task);
bool sim_privileged(const struct sim_task *task);

/* --- what a task does between phases -------------------------------------- */

/* Page faults at consecutive pages from `address`; major: from disk. */
void sim_fault(struct sim_machine *machine, uint64_t address, unsigned count, bool major);
/* A software event of another kind, in user mode at `address`. */
void sim_software(struct sim_machine *machine, enum tally_sw event, unsigned count);
/* The current task reads (1), writes (2) or executes (4) at an address: breakpoints that watch it
 * are hit. */
void sim_touch(struct sim_machine *machine, uint64_t address, unsigned length, unsigned access);
/* A system call begins: the tracepoint syscalls:sys_enter_getppid, whatever its number. */
void sim_trace_syscall(struct sim_machine *machine, int number);
/* The hypervisor's switch of counters between host and guest, at entry and exit: work in guest
 * modes comes between. config.virtualisation says which kind of host it is. */
void sim_guest_switch(struct sim_machine *machine, bool entering);
/* The registers of the current task, as user code would have them. */
void sim_user_regs(struct sim_machine *machine, struct tally_engine_regs *regs);

/* --- C bodies ------------------------------------------------------------- */

/* A task whose program is a C function with a stack of its own; what it returns is its exit code.
 * For sim_task_spec: program = sim_body_program, data = sim_body_new(…), release =
 * sim_body_release. */
struct sim_body;
typedef int sim_body_function(struct sim_machine *machine, void *argument);
struct sim_body *sim_body_new(sim_body_function *function, void *argument);
sim_program sim_body_program;
void sim_body_release(void *body);
/* Called within a body: performs the phase, returns when it is over. */
void sim_do(struct sim_machine *machine, const struct sim_phase *phase);

#endif
