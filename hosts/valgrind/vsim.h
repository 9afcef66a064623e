/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The simulated PMU: tally's engine, hosted in a Valgrind tool.  Who does what:
 *
 *   vsim_plan.h        the memory that tally and the tool share
 *   vsim_main.c        registration with Valgrind's core, options, life
 *   vsim_instrument.c  what is added to a program's code: counting by straight run
 *   vsim_ask.c         and comparisons that say whether the model is to be told
 *   vsim_decode.h      which instructions branch, which read memory: plain C, of no Valgrind
 *   vsim_run.c         what that code calls: to the instruction where a period ends, to the model
 *   vsim_model.h       caches, TLBs, predictors: plain C, of no Valgrind
 *   vsim_pmu.c         the PMU "vsim" for the engine: counters, periods, overflows
 *   vsim_host.c        the engine's host: clock, one CPU, memory
 *   vsim_events.c      the plan's events in this process, and its part of the totals
 *   vsim_rings.c       the plan's file; a ring of it, and waiting for room
 *   vsim_life.c        programs, forks, threads, signals, as processes and tasks
 *   vsim_turns.c       the same order of threads in each run
 *   vsim_sideband.c    maps as records
 *   vsim_stack.c       call chains, registers, stacks
 *   vsim_region.c      a region alone: --toggle, tally/roi.h
 *   vsim_core.c        ways of Valgrind's core that are not ours
 *
 * Valgrind runs one thread at a time, with a lock of its own: nothing here is entered twice, and no
 * signal comes within.  So what the folder keeps is in one struct vsim, static to vsim_main.c and
 * reached by vsim(): Valgrind's callbacks carry no pointer, and generated code takes addresses of
 * its fields. */
#ifndef TALLY_VALGRIND_VSIM_H
#define TALLY_VALGRIND_VSIM_H

#include "pub_tool_basics.h"
#include "pub_tool_tooliface.h"

#include "tally/engine.h"
#include "valgrind/vsim_model.h"
#include "valgrind/vsim_plan.h"

struct vsim_host;

/* Where something was counted, and from where to unwind.  Within a straight run nothing is called
 * and nothing returns, so the callers are those of its beginning, whatever the run's instructions
 * have done to stack and frame pointer since: the chain is unwound from the guest's registers as
 * they are during vsim_pmu_hit() — ip, sp and fp are those of the run's beginning — and then the
 * place's `ip` takes the leaf's place. */
struct vsim_place {
	uint64_t ip;        /* the instruction itself: no skid */
	uint64_t address;   /* of the data, the branch's target; 0 */
};

/* The simulated CPU.  `totals` and `left` are good after vsim_fold(); in between, generated code
 * keeps what is added to them in the running thread's shadow registers. */
struct vsim_cpu {
	/* since the process began under the tool; est-cycles in whole cycles */
	uint64_t totals[VSIM_KINDS];
	/* How many more of each kind may happen before vsim_pmu.c wants to look; INT64_MAX: it
	 * doesn't. */
	int64_t left[VSIM_KINDS];
	uint64_t wanted;               /* kinds that any event of the plan needs: bit by kind */
	uint64_t sampled;              /* kinds of which any event takes samples */
	/* static kinds that are counted by `left`, since someone wants alarms */
	uint64_t alarmed;
	int64_t given[VSIM_STATIC_KINDS]; /* `left` of these as the running thread was given it */
	uint64_t hundredths;           /* est-cycles */
	uint32_t weight[VSIM_KINDS];   /* of est-cycles: hundredths */
	struct vsim_model *model;      /* NULL: none is wanted */
	/* The model's own, which stay where they are. */
	struct vsim_recent data_recent, code_recent;
	const struct vsim_conditional *conditional;
	const struct vsim_returns *returns;
	bool counting;                 /* outside of a region nothing counts, the model runs on */
};

enum { VSIM_BELLS = 64 };

/* Of threads, for their turn: vsim_turns.c. */
struct vsim_queue {
	uint32_t tail, serving; /* tickets: the next one's; whose turn it is */
	/* the place on its stack from where whose turn it is asks for the core's lock; or 0 */
	Addr admitted;
	int32_t pid;            /* whose threads queue */
	/* they are another's, perhaps: a fork is under way, or this is what came of it */
	bool forking;
	uint32_t bells[VSIM_BELLS]; /* futexes, by ticket */
};

struct vsim {
	struct vsim_cpu cpu;
	struct vsim_queue queue;
	struct vsim_plan *plan;
	struct tally_engine *engine;
	struct tally_engine_pmu *pmu;
	struct vsim_host *host;
	/* of the running thread's function that counts alone; UINT64_MAX: none: vsim_region.c */
	uint64_t region_sp;
	struct _VgHashTable *blocks; /* vsim_instrument.c's */
};

struct vsim *vsim(void);

/* --- vsim_instrument.c, vsim_run.c ---------------------------------------- */

/* Once, before any code is translated: sets the CPU up for what the plan's events want. */
void vsim_cpu_start(struct vsim *sim);
/* Valgrind's callback: adds what counts to a block of code. */
IRSB *vsim_instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
		      const VexGuestExtents *extents, const VexArchInfo *arch, IRType guest_word,
		      IRType host_word);
/* Valgrind's callback: a block of code is gone, and with it what was kept for it. */
void vsim_instrument_discard(Addr address, VexGuestExtents extents);
/* Brings what the running thread has counted into `totals`; cheap.  At least at each end of a
 * thread's turn (Valgrind's stop_client_code, before anybody else runs). */
void vsim_fold(struct vsim_cpu *cpu);
/* At each beginning of a thread's turn (start_client_code), once the engine has switched to its
 * task. */
void vsim_resume(struct vsim_cpu *cpu);

/* --- vsim_pmu.c ----------------------------------------------------------- */

/* Registers the PMU with sim->engine.  0 or -errno.  Again after a fork, with the child's new
 * engine: whatever the old one's events had is forgotten, totals go on. */
int vsim_pmu_register(struct vsim *sim);
/* Kinds that an event of these attributes counts: a config of type VSIM_PMU_TYPE, or a generic
 * event.  0: none of ours. */
uint64_t vsim_pmu_kinds(const struct tally_attr *attr);
/* Something was counted at `place`, and an alarm in cpu->left went off: overflows whose period is
 * over.  The totals are those of that moment. */
void vsim_pmu_hit(struct vsim *sim, const struct vsim_place *place);
/* Sets cpu->left by the events that are on. */
void vsim_pmu_arm(struct vsim *sim);
/* The region begins or ends: cpu->counting, and the events with it.  Totals are folded. */
void vsim_pmu_counting(struct vsim *sim, bool counting);

/* --- vsim_host.c ---------------------------------------------------------- */

/* Before options are read: asks Valgrind's core to be told of processes, threads, memory. */
void vsim_host_register(void);
/* Maps the plan, which is in sim->plan from then on. 0 or -errno. */
int vsim_host_open(struct vsim *sim, const char *plan);
/* Engine, first process and task of this program; opens the plan's events. When the CPU and its
 * model are ready. 0 or -errno. */
int vsim_host_start(struct vsim *sim);
/* The program has ended. */
void vsim_host_finish(struct vsim *sim);
/* Registers of the running thread at `place`, for the engine. */
void vsim_host_regs(const struct vsim_place *place, struct tally_engine_regs *regs);
/* Before tally_engine_overflow(): waits until the ring has room for the largest record.
 * The place of the regs must live through the overflow: call chains are made from it. */
void vsim_host_make_room(struct vsim *sim);
/* est-cycles so far as nanoseconds; instructions stand for cycles without a model. */
uint64_t vsim_host_now(const struct vsim *sim);

/* --- vsim_core.c ---------------------------------------------------------- */

/* Gives the program the descriptor and the environment that it has without the core.  Before it
 * begins. */
void vsim_core_restore(void);

#endif
