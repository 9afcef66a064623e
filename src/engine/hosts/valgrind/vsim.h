/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The simulated PMU: tally's engine, hosted in a Valgrind tool.  The files:
 *
 *   vsim_plan.h        the memory that tally and the tool share
 *   vsim_main.c        registration with Valgrind's core, options, start and end
 *   vsim_instrument.c  adds counting to a program's code, one straight run at a time, and
 *                      comparisons that decide whether the model must be called
 *   vsim_decode.h      which instructions branch, which read memory: plain C, no Valgrind
 *   vsim_run.c         what generated code calls: finds the sampled instruction, feeds the model
 *   vsim_model.h       caches, TLBs, predictors: plain C, no Valgrind
 *   vsim_pmu.c         the PMU "vsim" for the engine: counters, periods, overflows
 *   vsim_host.c        the engine's host: clock, one CPU, memory
 *   vsim_events.c      opens the plan's events in this process and adds to their totals
 *   vsim_rings.c       maps the plan's file, takes a ring, waits for room in it
 *   vsim_life.c        turns programs, forks, threads and signals into the engine's tasks
 *   vsim_turns.c       gives threads the same order in each run
 *   vsim_sideband.c    reports mappings as records
 *   vsim_stack.c       call chains, registers, stacks
 *   vsim_region.c      counts a region only: --toggle, tally/roi.h
 *   vsim_core.c        replaces behaviour of Valgrind's core that tally does not want
 *
 * Valgrind runs one thread at a time, under a lock of its own.  So no function here is entered
 * twice at once, and no signal interrupts one.  All state of the folder is in one struct vsim,
 * which is static in vsim_main.c; vsim() returns it.  It can't be passed as an argument: Valgrind's
 * callbacks carry no pointer, and generated code holds the addresses of its fields. */
#ifndef TALLY_VALGRIND_VSIM_H
#define TALLY_VALGRIND_VSIM_H

#include "pub_tool_basics.h"
#include "pub_tool_tooliface.h"

#include "tally/engine.h"
#include "valgrind/vsim_model.h"
#include "valgrind/vsim_plan.h"

struct vsim_host;

/* The place at which an event was counted.  A straight run contains no call and no return, so the
 * callers of each of its instructions are those of the run's first one, however the run changes the
 * stack and frame pointers.  Unwinding therefore starts from the guest's registers as they are
 * during vsim_pmu_hit(), when ip, sp and fp have the values from the run's beginning.  Then `ip`
 * below replaces the chain's first entry. */
struct vsim_place {
	uint64_t ip;        /* the instruction that counted, without skid */
	uint64_t address;   /* address of the data, target of the branch, or 0 */
};

/* The simulated CPU.  `totals` and `left` are up to date after vsim_fold().  Between two calls of
 * it, generated code keeps the increments in the running thread's shadow registers. */
struct vsim_cpu {
	/* counts since the process began under the tool; est-cycles in whole cycles */
	uint64_t totals[VSIM_KINDS];
	/* How many more of each kind may happen before vsim_pmu.c must look; INT64_MAX / 2: no
	 * limit. */
	int64_t left[VSIM_KINDS];
	uint64_t wanted;               /* bit by kind: some event of the plan needs it */
	uint64_t sampled;              /* bit by kind: some event samples it */
	/* bit by static kind: it is counted down in `left`, to raise alarms */
	uint64_t alarmed;
	/* the values of `left` that the running thread was given */
	int64_t given[VSIM_STATIC_KINDS];
	uint64_t hundredths;           /* est-cycles so far, in hundredths of a cycle */
	/* each kind's part of est-cycles, in hundredths of a cycle */
	uint32_t weight[VSIM_KINDS];
	struct vsim_model *model;      /* NULL: no event needs it */
	/* The model owns these; their addresses stay the same. */
	struct vsim_recent data_recent, code_recent;
	const struct vsim_conditional *conditional;
	const struct vsim_returns *returns;
	/* false outside a region: no event counts, but the model keeps running */
	bool counting;
};

enum { VSIM_BELLS = 64 };

/* The queue of threads that wait for their turn: see vsim_turns.c. */
struct vsim_queue {
	uint32_t tail, serving; /* tickets: the next to give out; the one whose turn it is */
	/* Stack address of the thread that has its turn and now takes the core's lock, or 0. */
	Addr admitted;
	int32_t pid;            /* the process whose threads queue here */
	/* A fork is under way, or this process is its child: the queue may be another process's. */
	bool forking;
	uint32_t bells[VSIM_BELLS]; /* futexes, by ticket modulo VSIM_BELLS */
};

struct vsim {
	struct vsim_cpu cpu;
	struct vsim_queue queue;
	struct vsim_plan *plan;
	struct tally_engine *engine;
	struct tally_engine_pmu *pmu;
	struct vsim_host *host;
	/* Stack pointer of the running thread when it entered the function being counted
	 * (vsim_region.c).  UINT64_MAX: none. */
	uint64_t region_sp;
	struct _VgHashTable *blocks; /* owned by vsim_instrument.c */
};

struct vsim *vsim(void);

/* --- vsim_instrument.c, vsim_run.c ---------------------------------------- */

/* Sets up the CPU for the plan's events.  Call it once, before any code is translated. */
void vsim_cpu_start(struct vsim *sim);
/* Valgrind's callback: returns a copy of the block `in` with counting added. */
IRSB *vsim_instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
		      const VexGuestExtents *extents, const VexArchInfo *arch, IRType guest_word,
		      IRType host_word);
/* Valgrind's callback: frees what was kept for a block of code that Valgrind has dropped. */
void vsim_instrument_discard(Addr address, VexGuestExtents extents);
/* Adds the running thread's counts to `totals`.  Cheap.  Must be called at each end of a thread's
 * turn (Valgrind's stop_client_code), before another thread runs; may be called at any time. */
void vsim_fold(struct vsim_cpu *cpu);
/* Prepares the running thread's shadow registers.  Call it at each beginning of a thread's turn
 * (start_client_code), after the engine has switched to the thread's task. */
void vsim_resume(struct vsim_cpu *cpu);

/* --- vsim_pmu.c ----------------------------------------------------------- */

/* Registers the PMU with sim->engine.  Returns 0 or -errno.  After a fork, call it again with the
 * child's new engine: it forgets the old engine's events and keeps the totals. */
int vsim_pmu_register(struct vsim *sim);
/* Returns the kinds that an event with these attributes counts, bit by kind.  The event is a config
 * of type VSIM_PMU_TYPE or a generic event.  Returns 0 if this PMU does not count it. */
uint64_t vsim_pmu_kinds(const struct tally_attr *attr);
/* Handles an alarm in cpu->left that went off at `place`: overflows each event whose period is
 * over.  The totals must be those of that moment. */
void vsim_pmu_hit(struct vsim *sim, const struct vsim_place *place);
/* Sets cpu->left from the events that are on. */
void vsim_pmu_arm(struct vsim *sim);
/* Sets cpu->counting when a region begins or ends, and brings the events up to date.  The totals
 * must be folded. */
void vsim_pmu_counting(struct vsim *sim, bool counting);

/* --- vsim_host.c ---------------------------------------------------------- */

/* Asks Valgrind's core for callbacks about processes, threads and memory.  Call it before options
 * are read. */
void vsim_host_register(void);
/* Maps the plan and sets sim->plan.  Returns 0 or -errno. */
int vsim_host_open(struct vsim *sim, const char *plan);
/* Creates the engine, the first process and the first task of this program, and opens the plan's
 * events.  Call it when the CPU and its model are ready.  Returns 0 or -errno. */
int vsim_host_start(struct vsim *sim);
/* Call it when the program has ended. */
void vsim_host_finish(struct vsim *sim);
/* Fills `regs` with the running thread's registers at `place`.  `place` must live as long as
 * `regs`. */
void vsim_host_regs(const struct vsim_place *place, struct tally_engine_regs *regs);
/* Waits until the ring has room for the largest record.  Call it before tally_engine_overflow().
 * The place in its `regs` must live until that returns: call chains are made from it. */
void vsim_host_make_room(struct vsim *sim);
/* Returns the simulated time in ns: est-cycles so far at the geometry's clock rate.  Without a
 * model, instructions take the place of cycles. */
uint64_t vsim_host_now(const struct vsim *sim);

/* --- vsim_core.c ---------------------------------------------------------- */

/* Restores the descriptor and the environment that the program would have without the core.  Call
 * it before the program begins. */
void vsim_core_restore(void);

#endif
