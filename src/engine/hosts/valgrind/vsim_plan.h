/* The plan: one file of memory that tally shares with the simulated PMU's tool.  tally and each
 * simulated process map it.
 *
 * tally creates the file (in /dev/shm, or where temporary files go), fills the plan, and starts the
 * program under the launcher with `--plan=PATH`.  Each process under the tool opens the file by
 * that path when it begins; after a fork it has it already.  It can't inherit a descriptor instead,
 * since programs close descriptors that they don't know.  The process opens the plan's events in an
 * engine of its own and adds its counts to the totals, as differences.  It does so at each tick of
 * simulated time, before system calls, when it exits or executes another program, and when it is
 * about to die of a signal.
 *
 * Samples and side-band records go through rings, laid out as perf_event's: a user page, then the
 * data.  Each process that records takes one ring and writes it, and waits while it is full:
 * nothing is lost as long as tally drains.  tally frees a ring when its process has finished and
 * all records are read.  A process that was killed can't mark its ring finished, so tally checks
 * whether the pid of a quiet ring is alive.
 *
 * Words that more than one process writes are written atomically (GCC's __atomic, sequentially
 * consistent unless said otherwise).  The processes belong to tally's own user, but tally checks
 * what it reads here all the same: the reader bounds each index and length.  Freestanding; MIT,
 * since it is part of tally too. */
#ifndef TALLY_VALGRIND_VSIM_PLAN_H
#define TALLY_VALGRIND_VSIM_PLAN_H

#include "tally/perf_event.h"
#include "valgrind/vsim_geometry.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	VSIM_PLAN_VERSION = 2,
	VSIM_EVENTS = 64,
	VSIM_RINGS = 512,       /* processes that record at the same time */
	VSIM_FUNCTIONS = 16,    /* names that --toggle may give */
	VSIM_FUNCTION_NAME = 256,
	VSIM_SELVES = 16,
	VSIM_PAGE = 4096
};
#define VSIM_PLAN_MAGIC 0x4d4953594c4c4154ull /* "TALLYSIM" */
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

struct vsim_total {
	uint64_t value;                 /* sum of all processes' parts so far */
	uint64_t enabled_ns, running_ns; /* simulated time */
	uint64_t lost;
};

struct vsim_event {
	struct tally_attr attr;  /* as tally opened it */
	int32_t leader;          /* index of the group's leader, or -1 */
	uint32_t sampled;        /* 1: its records go to the process's ring */
	/* The id in samples (PERF_SAMPLE_ID, IDENTIFIER): index + 1, as each engine numbers the
	 * events. */
	uint64_t id;
	/* 0 disabled, 1 enabled.  tally and the processes write it; each process follows at its
	 * next tick or system call. */
	uint32_t enabled;
	/* 1: enable_on_exec is set, and no program has been executed yet */
	uint32_t waits_for_exec;
	struct vsim_total total;
};

enum vsim_ring_state {
	VSIM_RING_FREE,     /* the process that replaces it by TAKEN owns the ring */
	VSIM_RING_TAKEN,
	/* No more records come.  tally reads the rest, zeroes the user page and sets FREE. */
	VSIM_RING_FINISHED
};

struct vsim_ring {
	uint32_t state;         /* enum vsim_ring_state */
	int32_t pid;            /* the writer's */
	/* 1: the writer sleeps on this futex.  After reading, tally sets 0 and wakes it. */
	uint32_t room_wanted;
};

/* A process that executes /proc/self/exe means its own program, but the kernel has the tool's file
 * there.  So the process leaves its program's path here for the launcher. */
struct vsim_self {
	int32_t pid;            /* 0: free */
	char path[1020];        /* ends with NUL */
};

struct vsim_plan {
	uint64_t magic;
	uint32_t version;
	uint32_t ring_pages;    /* data pages of each ring, a power of two; 0: no event records */
	uint64_t size;          /* size of the file in bytes */
	/* bytes, page-aligned; VSIM_RINGS rings of 1 + ring_pages pages begin there */
	uint64_t rings_offset;
	/* tally's pid.  When tally has exited, processes no longer wait for room; they count the
	 * records they lose. */
	int32_t tally_pid;
	uint32_t event_count;
	struct vsim_geometry geometry;

	/* Functions that begin a region.  Counting begins in one of them (or at tally_roi_begin())
	 * and ends when it returns. */
	uint32_t function_count;
	uint32_t region_only;   /* 1: events count only inside regions of either sort */
	/* Regions that began in any process: a bit for each function, and VSIM_REGION_MARKED. */
	uint32_t regions;
	char functions[VSIM_FUNCTIONS][VSIM_FUNCTION_NAME];

	uint32_t closed;        /* 1: tally has stopped reading, and no process waits for it */
	/* A futex.  A process increments it and wakes tally when its ring passes the wake-up mark,
	 * or when the process ends. */
	uint32_t news;
	uint32_t processes;     /* processes that began under the tool, including forked ones */
	uint32_t executions;    /* programs that began */
	/* Programs executed without the tool (set-user-ID, 32 bits). */
	uint32_t unsimulated;
	/* Processes that found no ring in time: they count, but do not record. */
	uint32_t unrecorded;
	/* The process that events without inherit count.  It sets this when it begins; 0 before. */
	int32_t first_pid;
	struct vsim_event events[VSIM_EVENTS];
	struct vsim_ring rings[VSIM_RINGS];
	struct vsim_self selves[VSIM_SELVES];
};

/* Returns the byte offset of ring `index` in the file. */
static inline uint64_t vsim_ring_offset(const struct vsim_plan *plan, unsigned index)
{
	return plan->rings_offset + (uint64_t)index * (1 + (uint64_t)plan->ring_pages) * VSIM_PAGE;
}

#endif
