/* What tally and the simulated PMU's tool share: one file of memory, mapped by tally and by each
 * simulated process.
 *
 * tally makes it (in /dev/shm, or where temporary files go), fills the plan, and starts the program
 * under the launcher with `--plan=PATH`.  Each process that runs under the tool opens it by that
 * path when it begins (after fork it has it already), opens the plan's events in an engine of its
 * own, and adds what it counted to the totals, by differences: when it exits, executes another
 * program, is about to die of a signal, and every VSIM_TOTALS_NS of the time that the totals are
 * looked at.  Descriptors are no way to hand it on: programs close what they don't know.
 *
 * Samples and side-band records come through rings, laid out as perf_event's: a user page, with the
 * data behind it.  Each process that records takes one for itself, writes it, and waits while it is
 * full: nothing is lost as long as tally drains.  tally gives a ring back when its process has
 * finished and all is read.  A process that was killed can't say so: tally looks whether the pid of
 * a ring that stays quiet lives.
 *
 * Words that more than one process writes are written atomically (GCC's __atomic, sequentially
 * consistent unless said otherwise).  What tally reads here comes from processes of the user's own;
 * it is checked all the same: indices and lengths are bounded by whoever reads.  Freestanding; MIT,
 * as it is tally's too. */
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
	VSIM_FUNCTIONS = 16,    /* --toggle */
	VSIM_FUNCTION_NAME = 256,
	VSIM_SELVES = 16,
	VSIM_PAGE = 4096
};
#define VSIM_PLAN_MAGIC 0x4d4953594c4c4154ull /* "TALLYSIM" */
#define VSIM_REGION_MARKED (1u << VSIM_FUNCTIONS)
#define VSIM_TOTALS_NS 50000000ull            /* how old totals of a running process may be */

/* Events that are counted as they happen, each by one number.  An event of the PMU "vsim" is a set
 * of these: its config has bit (1 << kind) for each; VSIM_EST_CYCLES stands alone, it is reckoned
 * from the others (vsim_geometry.h). "Exact" ones are so on Valgrind's CPU, in user mode; the
 * others are the model's. */
enum vsim_kind {
	VSIM_INSTRUCTIONS, /* exact; a `rep` counts once */
	/* exact: data reads, by instruction that reads; one that reads twice (cmps) counts twice */
	VSIM_LOADS,
	VSIM_STORES,       /* exact */
	VSIM_BRANCHES,     /* exact: all jumps, calls and returns, taken or not */
	VSIM_CONDITIONAL_MISSES,
	VSIM_INDIRECT_MISSES, /* indirect jumps and calls */
	VSIM_RETURN_MISSES,
	VSIM_L1D_LOAD_MISSES,
	VSIM_L1D_STORE_MISSES,
	/* lines fetched: one for each line that a straight run of instructions touches */
	VSIM_L1I_LOADS,
	VSIM_L1I_MISSES,
	VSIM_L2_LOADS,     /* data and code, what missed in the first level */
	VSIM_L2_STORES,
	VSIM_L2_LOAD_MISSES,
	VSIM_L2_STORE_MISSES,
	VSIM_LLC_LOADS,
	VSIM_LLC_STORES,
	VSIM_LLC_LOAD_MISSES,
	VSIM_LLC_STORE_MISSES,
	VSIM_DTLB_LOAD_MISSES, /* of the first level */
	VSIM_DTLB_STORE_MISSES,
	VSIM_DTLB_LOAD_WALKS,  /* of all levels: the page tables are walked */
	VSIM_DTLB_STORE_WALKS,
	VSIM_ITLB_LOADS,   /* as VSIM_L1I_LOADS */
	VSIM_ITLB_MISSES,
	VSIM_ITLB_WALKS,
	VSIM_EST_CYCLES,   /* estimate, for ranking */
	VSIM_KINDS
};
/* Known for each straight run of code before it runs; the others happen one by one. */
#define VSIM_STATIC_KINDS (VSIM_BRANCHES + 1)

/* attr.config1 of an event: how many counters its PMU is to have, so that what multiplexing does
 * can be seen; 0: as many as it takes.  The least of all events' counts. */
#define VSIM_COUNTERS_MASK 0xffull

/* attr.type of the PMU "vsim", the same in every process: the first number that the engine gives is
 * above it. */
#define VSIM_PMU_TYPE 0x76736d /* "vsm" */

struct vsim_total {
	uint64_t value;                 /* of all processes so far, each its part */
	uint64_t enabled_ns, running_ns; /* of simulated time */
	uint64_t lost;
};

struct vsim_event {
	struct tally_attr attr;  /* as tally opened it */
	int32_t leader;          /* index of the group's leader, or -1 */
	uint32_t sampled;        /* 1: writes to the process's ring */
	/* in samples: PERF_SAMPLE_ID, IDENTIFIER. Its index + 1, as each engine numbers them */
	uint64_t id;
	/* written by both: 0 disabled, 1 enabled; processes follow within VSIM_TOTALS_NS */
	uint32_t enabled;
	uint32_t waits_for_exec; /* enable_on_exec, and nothing was executed yet */
	struct vsim_total total;
};

enum vsim_ring_state {
	VSIM_RING_FREE,     /* whoever sets TAKEN in its place has it */
	VSIM_RING_TAKEN,
	/* nobody will write: tally reads the rest, zeroes the user page, sets FREE */
	VSIM_RING_FINISHED
};

struct vsim_ring {
	uint32_t state;         /* enum vsim_ring_state */
	int32_t pid;            /* of the writer */
	/* 1: the writer sleeps on it (futex) until tally has read, which sets 0 and wakes */
	uint32_t room_wanted;
};

/* A process that executes /proc/self/exe means the program, and not the tool that it is to the
 * kernel: it leaves word here for the launcher. */
struct vsim_self {
	int32_t pid;            /* 0: free */
	char path[1020];        /* ends with NUL */
};

struct vsim_plan {
	uint64_t magic;
	uint32_t version;
	uint32_t ring_pages;    /* data pages of each ring, a power of two; 0: nothing records */
	uint64_t size;          /* of the file */
	uint64_t rings_offset;  /* page-aligned: VSIM_RINGS times 1 + ring_pages pages */
	/* when it is gone, nobody drains: processes stop waiting, and count what they lose */
	int32_t tally_pid;
	uint32_t event_count;
	struct vsim_geometry geometry;

	/* A region alone: counting begins in functions of these names (or in tally_roi_begin()) and
	 * ends when they return. */
	uint32_t function_count;
	uint32_t region_only;   /* 1: nothing is counted outside of a region, of either sort */
	/* which began, of any process: a bit for each function, and VSIM_REGION_MARKED */
	uint32_t regions;
	char functions[VSIM_FUNCTIONS][VSIM_FUNCTION_NAME];

	uint32_t closed;        /* 1: tally has stopped listening; nobody waits */
	/* futex: counted up, and woken, by a process whose ring passed its wake-up mark, or that
	 * ended */
	uint32_t news;
	uint32_t processes;     /* that began under the tool; forked ones too */
	uint32_t executions;    /* programs begun */
	/* programs that were executed without the tool (set-user-ID, 32 bits) */
	uint32_t unsimulated;
	/* processes that found no ring in time: they count, and don't record */
	uint32_t unrecorded;
	/* whom events that aren't inherited count; 0 until it begins: set by it */
	int32_t first_pid;
	struct vsim_event events[VSIM_EVENTS];
	struct vsim_ring rings[VSIM_RINGS];
	struct vsim_self selves[VSIM_SELVES];
};

/* Bytes of ring `index` from the file's beginning. */
static inline uint64_t vsim_ring_offset(const struct vsim_plan *plan, unsigned index)
{
	return plan->rings_offset + (uint64_t)index * (1 + (uint64_t)plan->ring_pages) * VSIM_PAGE;
}

#endif
