/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the files that host the engine keep between them: vsim_host.c, vsim_events.c, vsim_rings.c,
 * vsim_life.c, vsim_sideband.c, vsim_stack.c, vsim_region.c.
 *
 * Two tasks are in each engine that the program doesn't have.  The *observer* stands for tally: it
 * has the events' files, maps the ring, reads; so that an exec or an exit of the program's takes
 * none of that away, as with perf_event's.  And in a process that was forked a *parent*, from which
 * what is to be inherited is inherited. */
#ifndef TALLY_VALGRIND_VSIM_HOST_H
#define TALLY_VALGRIND_VSIM_HOST_H

#include "valgrind/vsim.h"

enum { VSIM_STACK_MAX = 640 };    /* frames of a call chain: the most that the engine takes */
#define VSIM_TICK_NS 1000000ull /* of simulated time: rotation, frequency, totals */

/* A thread's place in Valgrind's table, by its ThreadId. */
struct vsim_thread {
	struct tally_engine_task *task; /* NULL: none */
	ThreadId creating;              /* by a system call that is under way; 0: none */
	Bool executing;                 /* likewise: an exec */
	Bool unsimulated;               /* it is of a program that will run without the tool */
	Bool came;                      /* it has come to the core's lock */
	UWord woken;                    /* by its call of futex(2), before it */
	UWord waits_for;                /* address of a futex; 0: it doesn't wait for one */
	UWord marks;                    /* regions that it is in */
	/* stack pointer at the beginning of the function that counts alone, or 0 */
	Addr entered_sp;
	Bool in_call, brief;            /* in a system call; one that waits for no other thread */
	Bool left;                      /* it has run for the last time */
	Bool reserved;                  /* `ticket` is its place in the queue, when it comes back */
	uint32_t ticket;
	int32_t kernel_tid;
	UWord cleared;                  /* the word that the kernel clears when it exits, or 0 */
};

struct vsim_exit {
	int32_t tid;
	UWord cleared;
};

/* What is known of a descriptor, until a system call that may change what it is. */
enum vsim_file { VSIM_FILE_UNKNOWN, VSIM_FILE_REGULAR, VSIM_FILE_OTHER };
enum { VSIM_FILES = 64 };

struct vsim_host {
	struct tally_engine_process *process; /* the program's */
	struct tally_engine_task *observer, *current;
	/* of a forked process, until its program executes another; NULL */
	struct tally_engine_task *parent;
	bool observing;            /* who calls is the observer, whoever runs */
	bool pending;              /* tally_engine_run_pending() was asked for */
	bool first_program;        /* the one that tally started, or a fork of it: no exec since */
	uint64_t tick_at, totals_at; /* simulated time */

	struct vsim_thread *threads; /* VG_N_THREADS */
	unsigned thread_count;
	ThreadId thread_top;       /* the highest that there was */
	ThreadId running;          /* who has the core's lock, or had it last */
	/* address of a futex on which somebody is about to sleep or to wake, or 0 */
	UWord sleeps_on, sleep_flags;
	ThreadId waker;            /* who is, or 0 */
	uint8_t files[VSIM_FILES]; /* enum vsim_file, of the first descriptors */
	struct vsim_exit exit;     /* of a thread that will not run again; tid 0: none */

	int events[VSIM_EVENTS];   /* the engine's descriptors, in the plan's order */
	bool enabled[VSIM_EVENTS]; /* as told to the engine */
	struct vsim_total told[VSIM_EVENTS]; /* the part of the plan's totals that is ours */

	const char *plan_path;
	int plan_fd;
	int ring;                  /* index, -1: none */
	struct tally_user_page *ring_page;
	bool alone;                /* tally is gone, or listens no more: nobody is waited for */
	uint64_t ring_room;        /* bytes that the largest record takes */

	uint64_t entries[2];       /* of dynamic linker and program: their callers are nobody */
	unsigned entry_count;
};

/* --- vsim_host.c ---------------------------------------------------------- */

/* A new engine in the place of any old one, with its observer and no other task. */
int vsim_engine_start(struct vsim *sim);
/* The running task from now on; NULL: none. */
void vsim_host_switch(struct vsim *sim, struct tally_engine_task *next);
/* Between these the observer calls the engine. */
void vsim_observe(struct vsim *sim);
void vsim_observe_end(struct vsim *sim);
void vsim_host_run_pending(struct vsim *sim);

/* --- vsim_events.c -------------------------------------------------------- */

/* Opens the plan's events on `task`, which runs.  0, or -errno of the first that is refused. */
int vsim_events_open(struct vsim *sim, struct tally_engine_task *task);
/* Adds to the plan's totals what was counted since, and lets the events be enabled or not, as the
 * plan says. */
void vsim_events_tell(struct vsim *sim);
/* What was counted until now is nobody's. */
void vsim_events_forget(struct vsim *sim);

/* --- vsim_rings.c --------------------------------------------------------- */

/* Maps the plan. 0 or -errno. */
int vsim_plan_open(struct vsim *sim, const char *path);
/* Takes a ring for this process, if the plan has any; those that programs before it had, with its
 * pid, are finished.  After a fork the parent's is forgotten first. */
void vsim_ring_take(struct vsim *sim);
/* Nothing will be written any more. */
void vsim_ring_finish(struct vsim *sim);
/* Something is to be read, or has ended: tally looks. */
void vsim_news(struct vsim *sim);

/* --- vsim_life.c ---------------------------------------------------------- */

/* Asks Valgrind's core to be told of processes and threads. Before it reads options. */
void vsim_life_register(void);
/* The first task of a program that was just executed. */
int vsim_life_start(struct vsim *sim);
/* The program is about to end, by itself or of a signal. */
void vsim_life_finish(struct vsim *sim);

/* --- vsim_turns.c: the essay there says what for -------------------------- */

/* Around a fork: before it, and in the parent. */
void vsim_turns_fork(ThreadId tid);
void vsim_turns_forked(ThreadId tid);
/* Until this new thread waits for its turn. */
void vsim_turns_await(struct vsim *sim, ThreadId child);
/* Around a system call. */
void vsim_turns_call(struct vsim *sim, ThreadId tid, UInt number, const UWord *arguments);
void vsim_turns_call_done(struct vsim *sim, ThreadId tid, UInt number, SysRes result);
/* Until who is about to sleep on a futex does, and whom one wakes has come. */
void vsim_turns_await_futex(struct vsim *sim);
/* A thread is about to end; and until it has. */
void vsim_turns_exit(struct vsim *sim, ThreadId tid, int32_t kernel_tid);
void vsim_turns_await_exit(struct vsim *sim);

/* --- vsim_region.c -------------------------------------------------------- */

/* This thread's turn begins: its region counts, or nothing. */
void vsim_region_switch(struct vsim *sim, ThreadId tid);

/* --- vsim_sideband.c ------------------------------------------------------ */

void vsim_sideband_register(void);

/* --- vsim_stack.c --------------------------------------------------------- */

/* The engine's callbacks: see tally/engine.h. */
unsigned vsim_callchain(void *host, const struct tally_engine_regs *regs, bool user,
			uint64_t *addresses, unsigned max);
uint64_t vsim_user_register(void *host, const struct tally_engine_regs *regs, unsigned number,
			    uint64_t *abi);
uint64_t vsim_user_stack_pointer(void *host, const struct tally_engine_regs *regs);
size_t vsim_user_stack(void *host, const struct tally_engine_regs *regs, size_t offset, void *to,
		       size_t size);
#define VSIM_REGISTERS \
	0xff0fffull /* asm/perf_regs.h: all but the segment registers that nobody uses */

#endif
