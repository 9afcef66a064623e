/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The simulated PMU: tally's engine, hosted in a Valgrind tool.  Who does what:
 *
 *   vsim_plan.h        the memory that tally and the tool share
 *   vsim_main.c        registration with Valgrind's core, options, life
 *   vsim_instrument.c  what is added to a program's code: counting by straight run, calls into the model
 *   vsim_model.h       caches, TLBs, predictors: plain C, of no Valgrind
 *   vsim_pmu.c         the PMU "vsim" for the engine: counters, periods, overflows
 *   vsim_host.c        the engine's host: clock, one CPU, memory, processes and threads as tasks
 *   vsim_life.c        fork, exec, exit, signals: totals and rings follow
 *   vsim_sideband.c    maps and names as records
 *   vsim_region.c      a region alone: --toggle, tally_roi_begin()
 *
 * Valgrind runs one thread at a time, with a lock of its own: nothing here is entered twice, and no signal comes within.
 * So what the folder keeps is in one struct vsim, static to vsim_main.c and reached by vsim(): Valgrind's callbacks carry no pointer,
 * and generated code takes addresses of its fields. */
#ifndef TALLY_VALGRIND_VSIM_H
#define TALLY_VALGRIND_VSIM_H

#include "pub_tool_basics.h"

#include "tally/engine.h"
#include "valgrind/vsim_plan.h"

struct vsim_model;

/* Where something was counted. */
struct vsim_place {
	uint64_t ip;        /* the instruction itself: no skid */
	uint64_t address;   /* of the data, the branch's target; 0 */
	int64_t sp_delta;   /* the stack pointer at the instruction less the one in the guest's state (push, call: +8) */
	bool at_run_start;  /* guest's ip and sp are those of the straight run's beginning, not of `ip` */
};

/* The simulated CPU.  Generated code addresses it; the rest of the folder reads `totals` after vsim_fold(). */
struct vsim_cpu {
	uint32_t packed[4] __attribute__((aligned(16))); /* instructions, loads, stores, branches since the last fold */
	uint64_t totals[VSIM_KINDS];                     /* since the process began under the tool */
	/* What is left of each static kind before someone is to be told; INT64_MAX: nobody. */
	int64_t left[VSIM_STATIC_KINDS];
	uint64_t wanted;                                 /* kinds that any event of the plan needs: bit by kind */
	uint64_t sampled;                                /* kinds of which any event takes samples */
	struct vsim_model *model;                        /* NULL: none is wanted */
	bool counting;                                   /* outside of a region nothing counts, the model runs on */
};

struct vsim {
	struct vsim_cpu cpu;
	struct vsim_plan *plan;
	struct tally_engine *engine;
	struct tally_engine_pmu *pmu;
};

struct vsim *vsim(void);

/* --- vsim_instrument.c ------------------------------------------------------------------------------------ */

/* Once, before any code is translated: cpu->wanted and ->sampled say what for. */
void vsim_instrument_start(void);
/* Brings `packed` into `totals`; cheap. To be called at least at each end of a thread's turn. */
void vsim_fold(struct vsim_cpu *cpu);

/* --- vsim_pmu.c -------------------------------------------------------------------------------------------- */

/* Registers the PMU.  0 or -errno. */
int vsim_pmu_register(struct vsim *sim);
/* Told by generated code and the model's callers.  Static kind: `left[kind]` went below 0, in a run whose instructions
 * say where (called once for each place at which a period ended); others: it has just happened. */
void vsim_pmu_hit(struct vsim *sim, enum vsim_kind kind, const struct vsim_place *place);

/* --- vsim_host.c ------------------------------------------------------------------------------------------- */

/* Engine, first process and task of this program; opens the plan's events. 0 or -errno. */
int vsim_host_start(struct vsim *sim);
/* Registers of the running thread at `place`, for the engine. */
void vsim_host_regs(const struct vsim_place *place, struct tally_engine_regs *regs);
/* Before an overflow: waits until the ring has room for a record of the largest size. */
void vsim_host_make_room(struct vsim *sim);
/* est-cycles so far as nanoseconds; instructions stand for cycles without a model. */
uint64_t vsim_host_now(const struct vsim *sim);

#endif
