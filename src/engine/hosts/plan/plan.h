/* The plan: one file of memory that tally shares with the processes of a command in which the
 * engine runs.  Two hosts use it: the simulated PMU's tool and the preloaded object.
 *
 * tally creates the file, fills the plan, and starts the command.  Each process maps the file when
 * it begins, and again in each program that it executes.  It opens the plan's events in engines of
 * its own and adds its counts to the totals, as differences.
 *
 * Samples and side-band records go through rings, laid out as perf_event's: a user page, then the
 * data.  Each ring has one writer at a time: a process under the simulated PMU, a thread under the
 * preloaded object.  tally frees a ring when its writer has finished and all records are read.  A
 * writer that was killed can't mark its ring finished, so tally checks whether the task of a quiet
 * ring is alive.
 *
 * Words that more than one process writes are written atomically (GCC's __atomic, sequentially
 * consistent unless said otherwise).  The processes belong to tally's own user, but tally checks
 * what it reads here all the same: the reader bounds each index and length.  Freestanding; MIT,
 * since it is part of tally too. */
#ifndef TALLY_PLAN_H
#define TALLY_PLAN_H

#include "tally/perf_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TALLY_PLAN_VERSION = 3,
	TALLY_PLAN_EVENTS = 64,
	TALLY_PLAN_RINGS = 1024, /* writers at the same time */
	TALLY_PLAN_PAGE = 4096
};
/* Where the preloaded object's programs keep the events that they open themselves, in bytes.  They make
 * the file that long; pages that are never written cost nothing.  tally doesn't look there. */
#define TALLY_PLAN_INTERFACE (1ull << 40)
#define TALLY_PLAN_MAGIC 0x4e414c50594c4154ull /* "TALYPLAN" */

struct tally_plan_total {
	uint64_t value;                  /* sum of all writers' parts so far */
	uint64_t enabled_ns, running_ns; /* in the host's time */
	uint64_t lost;
};

/* What a task has used up to some moment, as getrusage(2) and its CPU clock say. */
struct tally_plan_usage {
	uint64_t cpu_ns, minor_faults, major_faults, switches;
	uint64_t migrations; /* 0 if no event counts them */
};

struct tally_plan_event {
	struct tally_attr attr;  /* as tally opened it */
	int32_t leader;          /* index of the group's leader, or -1 */
	uint32_t sampled;        /* 1: its records go to the writer's ring */
	/* The id in samples (PERF_SAMPLE_ID, IDENTIFIER): index + 1, as each engine numbers the
	 * events. */
	uint64_t id;
	/* 0 disabled, 1 enabled.  tally and the processes write it; each process follows soon. */
	uint32_t enabled;
	/* 1: enable_on_exec is set, and no program has been executed yet */
	uint32_t waits_for_exec;
	/* 1: some program has this tracepoint of its own.  Only the preloaded object uses it. */
	uint32_t published;
	uint32_t reserved;
	struct tally_plan_total total;
};

enum tally_plan_ring_state {
	TALLY_PLAN_RING_FREE,     /* the writer that replaces it by TAKEN owns the ring */
	TALLY_PLAN_RING_TAKEN,
	/* No more records come.  tally reads the rest, zeroes the user page and sets FREE.  Without
	 * records, the writer itself sets FREE. */
	TALLY_PLAN_RING_FINISHED
};

struct tally_plan_ring {
	uint32_t state;         /* enum tally_plan_ring_state */
	int32_t task;           /* the writer: a pid, or a tid */
	/* 1: the writer sleeps on this futex.  After reading, tally sets 0 and wakes it.  Writers in
	 * the preloaded object never wait. */
	uint32_t room_wanted;
	/* 1: the writer executes another program, which goes on from `used`.  Only the preloaded
	 * object uses these two. */
	uint32_t executes;
	/* inode number of the PID namespace that `task` belongs to; 0: unknown.  tally frees the ring
	 * of a killed task only if this is its own. */
	uint32_t pid_namespace;
	uint32_t reserved;
	struct tally_plan_usage used;
};

struct tally_plan {
	uint64_t magic;
	uint32_t version;
	uint32_t ring_pages;    /* data pages of each ring, a power of two; 0: no event records */
	uint64_t size;          /* size of the file in bytes */
	/* bytes, page-aligned; the rings of 1 + ring_pages pages begin there */
	uint64_t rings_offset;
	/* tally's pid.  When tally has exited, writers no longer wait for room; they count the
	 * records they lose. */
	int32_t tally_pid;
	uint32_t event_count;
	uint32_t closed;        /* 1: tally has stopped reading, and no writer waits for it */
	/* A futex.  A writer increments it and wakes tally when its ring passes the wake-up mark,
	 * or when it ends. */
	uint32_t news;
	uint32_t processes;     /* processes that began, including forked ones */
	uint32_t executions;    /* programs that began */
	uint32_t uncounted;     /* programs executed that the host can't enter (set-user-ID, …) */
	/* Writers that found no ring: they count, but do not record. */
	uint32_t unrecorded;
	/* The process that events without inherit count.  It sets this when it begins; 0 before. */
	int32_t first_pid;
	uint32_t reserved;
	/* What that process used before it executed the command: not the command's. */
	struct tally_plan_usage start;
	struct tally_plan_event events[TALLY_PLAN_EVENTS];
	struct tally_plan_ring rings[TALLY_PLAN_RINGS];
};

/* Returns the byte offset of ring `index` in the file. */
static inline uint64_t tally_plan_ring_offset(const struct tally_plan *plan, unsigned index)
{
	return plan->rings_offset +
	       (uint64_t)index * (1 + (uint64_t)plan->ring_pages) * TALLY_PLAN_PAGE;
}

#endif
