/* The plan (plan/plan.h) of the simulated PMU, whose first member is the part that all plans have.
 *
 * tally starts the program under the launcher with `--plan=PATH`.  Each process under the tool opens
 * the file by that path when it begins; after a fork it has it already.  It can't inherit a
 * descriptor instead, since programs close descriptors that they don't know.  A process adds its
 * counts at each tick of simulated time, before system calls, when it exits or executes another
 * program, and when it is about to die of a signal.
 *
 * Each process that records takes one ring, and waits while it is full: nothing is lost as long as
 * tally drains.  Freestanding; MIT, since it is part of tally too. */
#ifndef TALLY_VALGRIND_VSIM_PLAN_H
#define TALLY_VALGRIND_VSIM_PLAN_H

#include "plan/plan.h"
#include "tally/perf_event.h"
#include "valgrind/vsim_geometry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VSIM_FUNCTIONS = 16, /* names that --toggle may give */
	VSIM_FUNCTION_NAME = 256,
	VSIM_SELVES = 16
};
#define VSIM_REGION_MARKED (1u << VSIM_FUNCTIONS)

/* Kinds of events.  Each is counted as it happens, by one number.  An event of the PMU "vsim" is a
 * set of kinds: its config has bit (1 << kind) for each.  VSIM_EST_CYCLES can't be combined: it is
 * computed from the others (vsim_geometry.h).  "Exact" kinds are exact on Valgrind's CPU, in user
 * mode; the model makes the others. */
enum vsim_kind {
	VSIM_INSTRUCTIONS, /* exact; a `rep` counts once */
	/* exact: instructions that read data; one that reads twice (cmps) counts twice */
	VSIM_LOADS,
	VSIM_STORES,       /* exact */
	VSIM_BRANCHES,     /* exact: all jumps, calls and returns, taken or not */
	VSIM_CONDITIONAL_MISSES,
	VSIM_INDIRECT_MISSES, /* indirect jumps and calls */
	VSIM_RETURN_MISSES,
	VSIM_L1D_LOAD_MISSES,
	VSIM_L1D_STORE_MISSES,
	/* lines fetched: each line that a straight run of instructions touches counts once */
	VSIM_L1I_LOADS,
	VSIM_L1I_MISSES,
	VSIM_L2_LOADS,     /* data and code that missed in the first level */
	VSIM_L2_STORES,
	VSIM_L2_LOAD_MISSES,
	VSIM_L2_STORE_MISSES,
	VSIM_LLC_LOADS,
	VSIM_LLC_STORES,
	VSIM_LLC_LOAD_MISSES,
	VSIM_LLC_STORE_MISSES,
	VSIM_DTLB_LOAD_MISSES, /* misses of the first level */
	VSIM_DTLB_STORE_MISSES,
	VSIM_DTLB_LOAD_WALKS,  /* misses of all levels: the page tables are walked */
	VSIM_DTLB_STORE_WALKS,
	VSIM_ITLB_LOADS,   /* as VSIM_L1I_LOADS */
	VSIM_ITLB_MISSES,
	VSIM_ITLB_WALKS,
	VSIM_EST_CYCLES,   /* an estimate, for ranking */
	VSIM_KINDS
};
/* The kinds below this number are known for a straight run of code before it runs.  The others are
 * counted one by one. */
#define VSIM_STATIC_KINDS (VSIM_BRANCHES + 1)

/* attr.config1 of an event: how many counters its PMU has, to show the effects of multiplexing. 0:
 * no limit.  The smallest value of all events holds. */
#define VSIM_COUNTERS_MASK 0xffull

/* attr.type of the PMU "vsim", the same in every process.  The engine gives its own numbers above
 * it. */
#define VSIM_PMU_TYPE 0x76736d /* "vsm" */

/* A process that executes /proc/self/exe means its own program, but the kernel has the tool's file
 * there.  So the process leaves its program's path here for the launcher. */
struct vsim_self {
	int32_t pid;            /* 0: free */
	char path[1020];        /* ends with NUL */
};

struct vsim_plan {
	struct tally_plan shared; /* its rings_offset is behind this struct */
	struct vsim_geometry geometry;

	/* Functions that begin a region.  Counting begins in one of them (or at tally_roi_begin())
	 * and ends when it returns. */
	uint32_t function_count;
	uint32_t region_only;   /* 1: events count only inside regions of either sort */
	/* Regions that began in any process: a bit for each function, and VSIM_REGION_MARKED. */
	uint32_t regions;
	char functions[VSIM_FUNCTIONS][VSIM_FUNCTION_NAME];
	struct vsim_self selves[VSIM_SELVES];
};

#endif
