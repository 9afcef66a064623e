/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Declarations shared by the files that host the engine: vsim_host.c, vsim_events.c, vsim_rings.c,
 * vsim_life.c, vsim_sideband.c, vsim_stack.c, vsim_region.c.
 *
 * Each engine has up to two tasks that the program doesn't have.  The *observer* stands for tally:
 * it owns the events' files, maps the ring and reads.  So an exec or exit of the program doesn't
 * close them, as with perf_event.  In a forked process, the *parent* task holds the events that the
 * child inherits. */
#ifndef TALLY_VALGRIND_VSIM_HOST_H
#define TALLY_VALGRIND_VSIM_HOST_H

#include "valgrind/vsim.h"

enum { VSIM_STACK_MAX = 640 };    /* the most frames of a call chain that the engine takes */
#define VSIM_TICK_NS 1000000ull /* ns of simulated time between ticks */

/* A thread of the program, indexed by Valgrind's ThreadId. */
struct vsim_thread {
	struct tally_engine_task *task; /* NULL: none */
	/* the thread that its current system call creates; 0: none */
	ThreadId creating;
	Bool executing;                 /* its current system call is an exec */
	Bool unsimulated;               /* it executes a program that will run without the tool */
	Bool came;                      /* it has queued for the core's lock */
	/* threads that the tool woke for its futex(2) call, before that call */
	UWord woken;
	UWord waits_for;                /* address of the futex that it waits for; 0: none */
	UWord marks;                    /* nesting depth of the marked regions that it is in */
	/* Stack pointer at the beginning of the function that begins its region, or 0. */
	Addr entered_sp;
	/* in a system call; in one that waits for no other thread */
	Bool in_call, brief;
	Bool left;                      /* it has run for the last time */
	/* `ticket` holds its place in the queue for when it comes back */
	Bool reserved;
	uint32_t ticket;
	int32_t kernel_tid;
	/* address of the word that the kernel clears when it exits, or 0 */
	UWord cleared;
};

struct vsim_exit {
	int32_t tid;
	UWord cleared;
};

/* The kind of a descriptor, as known until a system call that may change it. */
enum vsim_file { VSIM_FILE_UNKNOWN, VSIM_FILE_REGULAR, VSIM_FILE_OTHER };
enum { VSIM_FILES = 64 };

struct vsim_host {
	struct tally_engine_process *process; /* the program's */
	struct tally_engine_task *observer, *current;
	/* in a forked process, until its program executes another; else NULL */
	struct tally_engine_task *parent;
	bool observing;            /* the observer calls the engine, whichever task runs */
	bool pending;              /* the engine wants tally_engine_run_pending() called */
	/* no exec since the program that tally started: it, or a fork of it */
	bool first_program;
	uint64_t tick_at, totals_at; /* simulated time */

	struct vsim_thread *threads; /* VG_N_THREADS */
	unsigned thread_count;
	ThreadId thread_top;       /* highest ThreadId so far */
	ThreadId running;          /* the thread that holds the core's lock, or held it last */
	/* Address of a futex on which a thread is about to sleep or to wake others, or 0. */
	UWord sleeps_on, sleep_flags;
	ThreadId waker;            /* the thread that is about to wake others, or 0 */
	uint8_t files[VSIM_FILES]; /* enum vsim_file of the first descriptors */
	struct vsim_exit exit;     /* a thread that will not run again; tid 0: none */

	int events[TALLY_PLAN_EVENTS];   /* the engine's descriptors, in the plan's order */
	bool enabled[TALLY_PLAN_EVENTS]; /* the state that the engine has */
	/* this process's part of the plan's totals */
	struct tally_plan_total published[TALLY_PLAN_EVENTS];

	const char *plan_path;
	int plan_fd;
	int ring;                  /* index of the ring, -1: none */
	struct tally_user_page *ring_page;
	bool alone;                /* tally has exited or reads no more: don't wait for it */
	uint64_t ring_room;        /* size of the largest record in bytes */

	/* entry points of dynamic linker and program: call chains end there */
	uint64_t entries[2];
	unsigned entry_count;
};

/* --- vsim_host.c ---------------------------------------------------------- */

/* Creates a new engine, in place of any old one, with its observer and no other task.  Returns 0 or
 * -errno. */
int vsim_engine_start(struct vsim *sim);
/* Makes `next` the running task; NULL: none. */
void vsim_host_switch(struct vsim *sim, struct tally_engine_task *next);
/* Between these two calls, the observer is the engine's current task. */
void vsim_observe(struct vsim *sim);
void vsim_observe_end(struct vsim *sim);
void vsim_host_run_pending(struct vsim *sim);

/* --- vsim_events.c -------------------------------------------------------- */

/* Opens the plan's events on `task`, which runs.  Returns 0, or -errno of the first event that is
 * refused. */
int vsim_events_open(struct vsim *sim, struct tally_engine_task *task);
/* Adds the counts since the last call to the plan's totals, then enables or disables events as the
 * plan says. */
void vsim_events_update(struct vsim *sim);
/* Leaves out of the totals what was counted until now. */
void vsim_events_forget(struct vsim *sim);

/* --- vsim_rings.c --------------------------------------------------------- */

/* Maps the plan.  Returns 0 or -errno. */
int vsim_plan_open(struct vsim *sim, const char *path);
/* Takes a ring for this process if the plan has rings.  Rings that earlier programs with this pid
 * had are marked finished.  After a fork, the parent's ring is forgotten first. */
void vsim_ring_take(struct vsim *sim);
/* Marks this process's ring finished: no more records come. */
void vsim_ring_finish(struct vsim *sim);
/* Wakes tally: records wait, or a process has ended. */
void vsim_news(struct vsim *sim);

/* --- vsim_life.c ---------------------------------------------------------- */

/* Asks Valgrind's core for callbacks about processes and threads.  Call it before the core reads
 * its options. */
void vsim_life_register(void);
/* Creates the first task of a program that was just executed.  Returns 0 or -errno. */
int vsim_life_start(struct vsim *sim);
/* Call it when the program is about to end, by itself or of a signal. */
void vsim_life_finish(struct vsim *sim);

/* --- vsim_turns.c: the essay there says what for -------------------------- */

/* Call these around a fork: before it, and after it in the parent. */
void vsim_turns_fork(ThreadId tid);
void vsim_turns_forked(ThreadId tid);
/* Waits until this new thread is in the queue. */
void vsim_turns_await(struct vsim *sim, ThreadId child);
/* Call these around each system call. */
void vsim_turns_call(struct vsim *sim, ThreadId tid, UInt number, const UWord *arguments);
void vsim_turns_call_done(struct vsim *sim, ThreadId tid, UInt number, SysRes result);
/* Waits until a thread that is about to sleep on a futex sleeps, and a thread that is being woken
 * stands in the queue. */
void vsim_turns_await_futex(struct vsim *sim);
/* The first notes that a thread is about to end, the second waits until it has ended. */
void vsim_turns_exit(struct vsim *sim, ThreadId tid, int32_t kernel_tid);
void vsim_turns_await_exit(struct vsim *sim);

/* --- vsim_region.c -------------------------------------------------------- */

/* Call it when this thread's turn begins: events count if its region counts. */
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
	0xff0fffull /* asm/perf_regs.h: all but the unused segment registers */

#endif
