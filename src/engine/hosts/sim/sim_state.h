/* The machine's internals: shared by the files of hosts/sim, and by its PMU models. */
#ifndef TALLY_SIM_STATE_H
#define TALLY_SIM_STATE_H

#include "sim/sim.h"

#define SIM_NEVER UINT64_MAX
#define SIM_COUNTERS_MAX 64
#define SIM_TRACE_COUNTER (SIM_COUNTERS_MAX - 1) /* used by no counting PMU */
#define SIM_STACK_SIZE (256u << 10) /* of a C body, in bytes */
#define SIM_CONTAINER(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* --- alarms: the order of happenings (sim_alarm.c) ------------------------ */

struct sim_alarm {
	uint64_t at;    /* ns */
	uint64_t order; /* orders alarms of equal times: as they were set */
	size_t slot;    /* index in the heap; SIM_NO_SLOT: not set */
	bool is_tick;   /* goes into the list of ticks; set it before the first sim_alarms_set() */
	struct sim_alarm *next, *previous;
	void (*ring)(struct sim_machine *machine, struct sim_alarm *alarm);
};
#define SIM_NO_SLOT SIZE_MAX

struct sim_heap_entry {
	uint64_t at, order;
	struct sim_alarm *alarm;
};

struct sim_alarms {
	struct sim_heap_entry *heap;
	size_t used, size;
	bool root_is_empty; /* the root's entry is unused */
	uint64_t order;
	struct sim_alarm *first_tick, *last_tick;
};

void sim_alarm_init(struct sim_alarm *alarm,
		    void (*ring)(struct sim_machine *machine, struct sim_alarm *alarm));
/* Sets or moves an alarm; SIM_NEVER clears it. */
void sim_alarms_set(struct sim_alarms *alarms, struct sim_alarm *alarm, uint64_t at);
struct sim_alarm *sim_alarms_first(struct sim_alarms *alarms); /* NULL: none is set */
/* returns the first, and clears it */
struct sim_alarm *sim_alarms_take(struct sim_alarms *alarms);
void sim_alarms_release(struct sim_alarms *alarms);

/* --- counters that PMU models program ------------------------------------- */

/* Modes as bits: 1 << TALLY_MODE_…. */
struct sim_counter {
	bool counting;
	enum sim_metric metric;
	uint32_t modes;      /* modes in which it counts */
	uint64_t value;      /* raw: the model masks it to its width */
	uint64_t until;      /* counts left until its overflow; SIM_NEVER: no overflow wanted */
};

struct sim_pmu_model {
	const char *name;
	const struct sim_architecture *architecture;
	enum tally_engine_level level; /* level of its interrupt */
	unsigned counters;             /* number of programmable counters, without fixed ones */
	unsigned core_types;           /* 0: all CPUs are of one type */
	bool hosts_guests;             /* the machine may be a host: "vhe", "non-vhe" */
	uint64_t raw_instructions;     /* config of its RAW event that counts instructions */
	/* Registers PMUs with the machine's engine.  Returns 0 or -errno.  Its state is
	 * machine->pmu. */
	int (*init)(struct sim_machine *machine);
	void (*release)(struct sim_machine *machine);
	/* Counter `index` of this CPU has used up its `until`, which is now SIM_NEVER.  Called at
	 * `level`. */
	void (*overflow)(struct sim_machine *machine, struct sim_cpu *cpu, unsigned index,
			 const struct tally_engine_regs *regs);
	/* Host and guest are switched on this CPU.  May be NULL. */
	void (*guest)(struct sim_machine *machine, struct sim_cpu *cpu, bool entering);
	/* Reads a counter by the user instruction (rdpmc, mrs), by the user page's index - 1.
	 * Returns 0, or -errno if the instruction traps.  May be NULL. */
	int (*user_counter)(struct sim_machine *machine, unsigned index, uint64_t *value);
	/* See sim_metric_of().  May be NULL: no event has a true count beside it. */
	bool (*metric_of)(uint32_t type, uint64_t config, enum sim_metric *metric);
};

/* The models: each NAME is a `const struct sim_pmu_model sim_pmu_NAME`. */
#define SIM_PMU_MODELS(MODEL) \
	MODEL(none) \
	MODEL(x86) \
	MODEL(x86_8) \
	MODEL(arm64) \
	MODEL(arm64_32) \
	MODEL(big_little)

#define SIM_PMU_DECLARE(name) extern const struct sim_pmu_model sim_pmu_##name;
SIM_PMU_MODELS(SIM_PMU_DECLARE)
#undef SIM_PMU_DECLARE

extern const struct sim_architecture sim_x86_64, sim_aarch64; /* sim_pmu.c */

/* sim_pmu.c; returns NULL if there is no such model */
const struct sim_pmu_model *sim_pmu_model(const char *name);
/* Writes what a scenario may say, for errors: "a model: none, x86 or arm64". */
void sim_pmu_describe(char *text, size_t size);

struct sim_cpu {
	unsigned number;
	bool online;
	uint32_t megahertz;
	struct sim_machine *machine;
	struct sim_task *current;  /* NULL: idle */
	struct sim_task *queue_first, *queue_last; /* tasks that are runnable but not current */
	unsigned queue_length;
	/* switch at the next opportunity; the current task is still runnable */
	bool resched;
	struct sim_alarm work, tick;
	uint64_t slice_start, next_tick;
	/* The work in progress began at `work_start` (ns) with `work_done` instructions. */
	uint64_t work_start, work_base;
	unsigned level, irq_off;   /* values for the engine's callbacks */
	bool in_guest;
	bool pend;                 /* tally_engine_run_pending() is requested */
	struct sim_counter counters[SIM_COUNTERS_MAX];
	unsigned counters_used;    /* highest index + 1 */
	struct { uint64_t address, length; uint32_t type; } watch[4];
	uint64_t selector;         /* arm64's PMSELR_EL0 */
};

enum sim_task_state { SIM_RUNNABLE, SIM_RUNNING, SIM_SLEEPING, SIM_BLOCKED, SIM_DEAD };

struct sim_task {
	struct sim_machine *machine;
	struct sim_process *process;
	struct tally_engine_task *engine_task;
	struct tally_engine_identity identity;
	sim_program *program;
	void *data;
	void (*release)(void *data);
	enum sim_task_state state;
	struct sim_cpu *cpu;       /* the CPU where it runs, waits to run, or ran last */
	int pinned;                /* a CPU, or -1 */
	struct sim_task *queue_next;
	struct sim_task *all_next, *all_previous, *hash_next;
	struct sim_phase phase;    /* the phase in progress */
	bool in_phase;
	/* preempted within its guest; it returns there when it runs again */
	bool left_guest;
	uint64_t work_done;        /* instructions done of the phase's work */
	struct sim_alarm alarm;    /* end of sleep */
	bool unprivileged;
	uint64_t truth[SIM_METRICS][TALLY_MODE_GUEST_USER + 1];
	/* the last work in user mode: the work that kernel code interrupts */
	struct sim_work user_work;
	uint64_t user_done;
	uintptr_t stack_pointer, stack_top; /* of a C body's real stack; 0: it has none */
	uint64_t cgroup;
	uint64_t runtime, run_start, runtime_traced;
	bool is_waited_for, zombie_wanted; /* can be found after its exit, until sim_reap() */
	bool left;                         /* it has exited and is current on no CPU */
	struct sim_signal_count *signals; /* SIM_SIGNALS of them; allocated on demand */
	int exit_code;
	int32_t parent_tid;
};

struct sim_process {
	struct tally_engine_process *engine_process;
	int32_t pid;
	unsigned tasks;
};

struct sim_exit { int32_t tid; int code; struct sim_exit *next; };

struct sim_machine {
	struct sim_config config;
	struct tally_engine *engine;
	struct sim_cpu *cpus;
	struct sim_cpu *cpu;       /* the CPU on which everything happens now */
	uint64_t now, events, random;
	struct sim_alarms alarms;
	struct sim_task *tasks;    /* linked by all_next */
	struct sim_task **hash;    /* indexed by tid */
	size_t hash_size, hashed;
	/* tasks alive, and those of them that are blocked without an alarm */
	unsigned task_count, waiting;
	int32_t next_tid;
	struct sim_exit *exits;
	bool locked;               /* host.lock is held */
	const struct sim_pmu_model *model;
	void *pmu;                 /* for the model */
	struct tracer *tracer;     /* sim_pmu_trace.c */
	unsigned callbacks;        /* number of callbacks, for nmi_every */
	bool in_nmi, traces;
	/* the tracepoint is hit by the task's own code, not by the kernel's */
	bool user_hit;
	void (*after)(struct sim_machine *machine); /* called after each happening; may be NULL */
	struct sim_watch *watch;   /* for sim_watch.c */
	void *surface;             /* for the code that built the machine: tests, scenarios */
	/* Called by host.wake(): a file has changed. */
	void (*on_wake)(struct sim_machine *machine, struct tally_engine_file *file);
};

static inline void sim_alarm_set(struct sim_machine *machine, struct sim_alarm *alarm, uint64_t at)
{
	sim_alarms_set(&machine->alarms, alarm, at);
}

/* sim_cpu.c: brings a CPU up to the machine's time: counts its work, and delivers the overflows on
 * the way. */
void sim_cpu_advance(struct sim_cpu *cpu);
/* Recomputes the CPU's next happening after a change of its phase or counters. */
void sim_cpu_rearm(struct sim_cpu *cpu);
/* Sets `regs` to the registers of the work in progress. */
void sim_cpu_regs(struct sim_cpu *cpu, struct tally_engine_regs *regs);
/* Begins the next phase of the current task on this CPU, and further ones until one takes time. */
void sim_cpu_continue(struct sim_cpu *cpu);
/* Does the work that interrupts left behind: run_pending, rescheduling.  At task level of that
 * CPU. */
void sim_cpu_settle(struct sim_cpu *cpu);
/* Runs function(argument) at that level on that CPU, then restores the machine's present CPU. */
void sim_at_level(struct sim_cpu *cpu, enum tally_engine_level level, void (*function)(void *),
		  void *argument);

/* sim_scheduler.c */
void sim_schedule(struct sim_cpu *cpu); /* the current task leaves if it must; the next one comes */
uint64_t sim_random(struct sim_machine *machine);
void sim_cpu_evacuate(struct sim_cpu *cpu);

/* sim_task.c */
void sim_task_exit(struct sim_task *task); /* the current one */
void sim_task_free(struct sim_task *task); /* it has exited, and is current on no CPU */
void sim_tasks_release(struct sim_machine *machine);

/* sim_pmu_trace.c: the PMU "trace", which every machine has. */
int sim_tracer_init(struct sim_machine *machine);
void sim_tracer_release(struct sim_machine *machine);
/* Writes a word of another PMU into this CPU's trace.  NMI level. */
void sim_tracer_note(struct sim_machine *machine, uint64_t word);
/* The trace's counter has used up its `until`.  NMI level. */
void sim_tracer_overflow(struct sim_machine *machine, struct sim_cpu *cpu);

/* sim_trace.c: the machine's own tracepoints. */
int sim_trace_register(struct sim_machine *machine);
void sim_trace_regs(void *host, struct tally_engine_regs *regs);
void sim_trace_switch(struct sim_machine *machine, struct sim_task *previous, struct sim_task *next,
		      bool runnable);
/* reports how long a running task has run since the last report */
void sim_trace_runtime(struct sim_task *task);
bool sim_trace_wants_runtime(const struct sim_machine *machine);
void sim_trace_fork(struct sim_machine *machine, struct sim_task *parent, struct sim_task *child);
void sim_trace_wakeup(struct sim_machine *machine, struct sim_task *task);
void sim_trace_fault(struct sim_machine *machine, uint64_t address, uint64_t ip); /* in user mode */

/* sim_host.c */
void sim_host_table(struct sim_machine *machine, struct tally_engine_host *host);

#endif
