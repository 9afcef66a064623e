/* The preloaded object's own interface: what its files share.
 *
 * tally loads this object into a command's programs by LD_PRELOAD.  The object maps the plan
 * (plan/plan.h) and counts and samples every thread of the program with the engine.
 *
 * One thread, one engine.  Each thread has an engine of its own, with one CPU, in memory of its own
 * (struct process_thread).  So no thread ever waits for another one, takes a lock of another one or
 * sends it a signal: what can hang a profiler in a program is not here.  A thread adds its counts to
 * the plan's totals as differences, and writes its records to a ring of its own.
 *
 * One signal, PROCESS_SIGNAL.  Its handler (process_timer.c) runs in the thread that it samples.  It
 * copies registers and the top of the stack (process_sample.c) and moves the engine's clock events
 * on.  It allocates nothing, unwinds nothing, calls no function of libc, and keeps errno.
 *
 * Regions.  Code outside of the handler that changes a thread's engine runs between process_enter()
 * and process_leave().  A signal meanwhile is noted, and handled at process_leave().
 *
 * The program must not notice.  So the object's descriptors are closed once a mapping exists, its
 * environment variables are hidden (process_environment.c), its signal is hidden from masks and
 * dispositions (process_signals.c), and interrupted calls go on (process_restart.c).
 *
 * fork(2).  The child makes everything anew (process_attach.c).  The memory that vfork(2) and
 * posix_spawn(3) share with the child must not be changed there: process_self() returns NULL in such
 * a child.
 *
 * All functions that are not said to be callable from the handler run in the thread that they
 * concern, outside of it. */
#ifndef TALLY_PROCESS_AGENT_H
#define TALLY_PROCESS_AGENT_H

#include "plan/plan.h"
#include "tally/engine.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/* The real-time signal that samples: near the end, where neither glibc (32, 33), nor Java, Go or
 * Valgrind (64) look for one. */
#define PROCESS_SIGNAL 61

/* A function that programs call instead of libc's. */
#define PROCESS_EXPORT __attribute__((visibility("default")))

enum {
	PROCESS_THREADS = 4096,          /* threads at the same time; more are not counted */
	PROCESS_HEAP = 1 << 20,          /* bytes for a thread's engine */
};

enum { PROCESS_HEAP_LISTS = 40 };

/* An engine's memory: process_heap.c. */
struct process_heap {
	uint8_t *memory;                    /* NULL: none yet */
	size_t size, used;                  /* bytes */
	void *released[PROCESS_HEAP_LISTS]; /* lists of pieces, by the logarithm of their size */
};

/* A thread's slot.  The array is anonymous memory: what was never touched costs nothing.  A slot
 * keeps its engine, its heap and its ring for the next thread. */
struct process_thread {
	/* the thread; 0: the slot is free, -1: it is reserved.  Atomic. */
	int32_t tid;
	int32_t pid;
	/* Depth of process_enter(): the handler only notes that it came. */
	volatile sig_atomic_t inside;
	volatile sig_atomic_t missed;
	uintptr_t entered_sp;               /* of the caller of the outermost process_enter() */
	volatile sig_atomic_t asked;     /* another thread wants something of its interface */
	/* How often the handler has run: tells wrappers of system calls that it interrupted them. */
	volatile sig_atomic_t interruptions;

	struct tally_engine *engine;
	struct tally_engine_process *process;
	struct tally_engine_task *task;     /* the thread */
	/* opens the events, so that prctl(2) of the thread does not reach them */
	struct tally_engine_task *observer;
	struct tally_engine_task *current;  /* the engine's caller: task or observer */
	enum tally_engine_level level;
	bool pending;                       /* the engine asked for run_pending() */
	bool frozen;                        /* the engine's clock stands still, at `frozen_ns` */
	uint64_t frozen_ns;
	uint64_t hidden_ns;                 /* CPU time that is not the program's */

	/* events of the plan */
	int events[TALLY_PLAN_EVENTS];      /* the engine's descriptors */
	unsigned open_events;
	bool enabled[TALLY_PLAN_EVENTS];
	struct tally_plan_total published[TALLY_PLAN_EVENTS];
	uint64_t published_at;              /* CPU time in ns of the last publishing */
	struct tally_plan_usage told;       /* what the engine knows of; cpu_ns: what totals have */
	uint64_t migrations;
	int last_cpu;                       /* number of the CPU at the last look */

	/* the ring */
	int ring;                           /* index in the plan; -1: none */
	struct tally_user_page *ring_page;  /* NULL: no records */
	int ring_fd;                        /* the engine's descriptor of its owner; -1: none */

	/* process_timer.c */
	struct tally_engine_timer *timers;  /* started ones, by host_words[1] */
	bool has_timers;                    /* the two below exist */
	uint64_t tick_interval_ns;          /* of the tick; 0: it is off, or fires once */
	int shot, tick;                     /* the kernel's ids of the monotonic and the CPU-time timer */
	bool has_wall;                      /* this one exists */
	int wall;
	bool has_kick;                      /* this one exists */
	int kick;
	bool in_handler;
	uint64_t shot_cpu_ns;               /* the engine's clock when the shot was armed */
	uint64_t voluntary_switches;        /* at the last look */
	uint64_t stack_top;                 /* address above the thread's outermost frame */
	uint64_t stack_size;                /* bytes below stack_top that are this thread's */
	uint64_t readable_from, readable_to; /* the stack that is being copied */
	uint64_t surely_to;                 /* what is above may vanish while it is copied */
	uint64_t outermost;                 /* address of the thread's first function */
	uint64_t random;

	/* process_pmu.c */
	struct tally_engine_pmu pmu;
	struct tally_pmu_event *wall_events; /* that sample */
	struct tally_pmu_event *trace_events; /* that count */

	/* what pthread_create(3) was asked for */
	void *(*start)(void *);
	void *argument;
	uint64_t signal_mask;               /* its creator's, as the program sees it */
	struct tally_engine_identity identity;

	void *interface;                    /* process_interface.c; NULL: never used */
	unsigned forks_told;                /* of its interface, when it last made a child */
	uint64_t inherits_before;           /* process_interface_moment() when it was made */

	struct process_heap heap;           /* the engine's memory */
};

/* The process's state.  Written while it has one thread: at the start, and after a fork. */
struct process_agent {
	struct tally_plan *plan;            /* NULL: the object does nothing in this program */
	char plan_name[4096];               /* as in the environment variable TALLY_PLAN */
	char object[4096];                  /* the path of this object, as in LD_PRELOAD */
	int32_t pid;
	uint32_t pid_namespace;             /* inode number of /proc/self/ns/pid; 0: unknown */
	uint8_t *rings;                     /* the plan's rings; NULL: no records */
	unsigned ring_count;                /* how many of them are mapped */
	struct process_thread *threads;
	unsigned thread_slots;              /* at most PROCESS_THREADS */
	unsigned slots_used;                /* slots from here on were never used.  Atomic. */
	bool samples;                       /* some event samples by a clock */
	bool counts_usage;                  /* some event counts faults, switches or migrations */
	bool counts_migrations;
	bool wants_maps, wants_data_maps;   /* some event asks for MMAP records; of data as well */
	bool is_later_program;              /* not the command itself */
	/* a debugger's child before it executes the program, maybe one of vfork; 0: none */
	int32_t traced_pid;
	_Atomic bool is_ending; /* the process exits, or must not be followed further */
	/* What all threads have told, and what isn't the program's.  Atomic. */
	struct tally_plan_usage told;
};

extern struct process_agent process_agent;
/* The calling thread's slot; NULL: it is not counted. */
extern __thread struct process_thread *process_own
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Returns the calling thread's slot, or NULL if the thread is not counted, or if this is a child that
 * shares its parent's memory (vfork). */
struct process_thread *process_self(void);

/* Keep the handler out of the thread's engine.  They nest.  May be called in a handler of the
 * program's. */
void process_enter(struct process_thread *thread);
void process_leave(struct process_thread *thread);
/* The same with all signals blocked: for code that writes records.  A handler of the program's that
 * left it by siglongjmp(3) would leave a record half-written, and nothing could be written behind it.
 * The first returns the mask of before, for the second. */
uint64_t process_enter_alone(struct process_thread *thread);
void process_leave_alone(struct process_thread *thread, uint64_t mask);

/* --- process_heap.c ------------------------------------------------------- */

/* Returns zeroed memory, or NULL if there is not enough.  Release gets the size that was asked for. */
void *process_heap_allocate(struct process_heap *heap, size_t size);
void process_heap_release(struct process_heap *heap, void *memory, size_t size);

/* --- process_host.c ------------------------------------------------------- */

/* Returns what the tables of the thread's engines have in common: clocks, registers, stacks, and
 * exclusion, which needs nothing. */
struct tally_engine_host process_host_table(struct process_thread *thread);
/* Makes the slot's engine if it has none, and a task with that identity in it, and switches to it.
 * Returns 0 or -errno. */
int process_host_start(struct process_thread *thread,
		       const struct tally_engine_identity *identity);
/* Ends that. */
void process_host_end(struct process_thread *thread);
/* Forgets all but the heap: in a forked child. */
void process_host_drop(struct process_thread *thread);
/* Tells tally that the slot's ring gets no more records. */
/* Returns the state of a ring that gets no more records. */
uint32_t process_host_finished_state(void);
void process_host_finish_ring(struct process_thread *thread);
/* Tells tally that none of the process's rings gets more records: whatever its other threads still
 * write at this moment does not reach tally. */
void process_host_leave_rings(void);
/* Does what the engine asked for.  Also for the handler. */
void process_host_settle(struct process_thread *thread);
/* Returns the CPU time of the calling thread in ns.  Also for the handler. */
uint64_t process_cpu_ns(void);
/* Returns the engine's clock: the thread's CPU time without what is hidden, in ns.  Also for the
 * handler, as the next one. */
uint64_t process_clock_ns(const struct process_thread *thread);
/* Makes the engine's clock stand still at this moment, until `frozen` is set to the result. */
bool process_clock_freeze(struct process_thread *thread);
/* Set and clear that the observer calls the engine. */
void process_observe(struct process_thread *thread);
void process_observe_end(struct process_thread *thread);

/* --- process_events.c ----------------------------------------------------- */

/* Makes the event that owns the slot's ring.  Returns 0 or -errno. */
int process_events_open_ring(struct process_thread *thread);
/* Opens the plan's events for the thread.  Returns 0 or -errno. */
int process_events_open(struct process_thread *thread);
void process_events_close(struct process_thread *thread);
/* A program began: events that waited for that are enabled. */
void process_events_note_exec(struct process_thread *thread);
/* Tells the engine what the kernel counted, adds the differences to the totals, and follows the
 * plan's `enabled`.  `last`: the thread ends or executes another program.  Without `last` also for
 * the handler. */
void process_events_publish(struct process_thread *thread, bool last);
/* Adds what the process used and no thread has told: that of threads which this exit ends, and of
 * those that were never counted. */
void process_events_publish_rest(struct process_thread *thread);

/* --- process_timer.c ------------------------------------------------------ */

/* Installs the handler of PROCESS_SIGNAL.  Returns 0 or -errno. */
int process_timer_install(void);
/* Creates the calling thread's timers.  Returns 0 or -errno. */
int process_timer_start(struct process_thread *thread);
void process_timer_stop(struct process_thread *thread);
/* The engine's timers: struct tally_engine_host's timer_start and timer_cancel. */
void process_timer_engine_start(void *host, struct tally_engine_timer *timer);
void process_timer_engine_cancel(void *host, struct tally_engine_timer *timer);
/* Fires what is due, at `regs` (NULL: nothing), and arms the timers for what comes next. */
void process_timer_run(struct process_thread *thread, const struct tally_engine_regs *regs);
/* Samples of wall-clock each `period_ns`; 0: none. */
void process_timer_wall(struct process_thread *thread, uint64_t period_ns);
/* Sends PROCESS_SIGNAL to the calling thread in `ns`, for process_restart.c; 0: never. */
void process_timer_kick(struct process_thread *thread, uint64_t ns);
/* The thread ends: what is due has a sample of the thread's outermost function. */
void process_timer_last(struct process_thread *thread);

/* --- process_pmu.c -------------------------------------------------------- */

/* Registers the PMU "process" with the slot's engine.  Returns 0 or -errno. */
int process_pmu_register(struct process_thread *thread);
/* Samples wall-clock.  For the handler. */
void process_wall_sample(struct process_thread *thread, const struct tally_engine_regs *regs);
/* A tracepoint was hit whose name has this hash. */
void process_pmu_hit(struct process_thread *thread, uint64_t name, uint64_t count);

/* --- process_sample.c: for the engine's table; called by the handler ------- */

uint64_t process_sample_registers(void);
uint64_t process_sample_register(void *host, const struct tally_engine_regs *regs, unsigned number,
				 uint64_t *abi);
size_t process_sample_stack_size(void *host, const struct tally_engine_regs *regs, size_t most);
size_t process_sample_stack(void *host, const struct tally_engine_regs *regs, size_t offset,
			    void *to, size_t size);
uint64_t process_sample_stack_pointer(void *host, const struct tally_engine_regs *regs);
/* The first has the place alone, since tally unwinds; the second follows frame pointers, for events of
 * the program's own. */
unsigned process_sample_chain(void *host, const struct tally_engine_regs *regs, bool user,
			      uint64_t *addresses, unsigned max);
unsigned process_sample_frames(void *host, const struct tally_engine_regs *regs, bool user,
			       uint64_t *addresses, unsigned max);
/* Fills in the interrupted state. */
void process_sample_regs(struct tally_engine_regs *regs, const ucontext_t *context);

/* --- process_attach.c: threads, fork, exec, the end ------------------------ */

/* Ends the counting of this process: before it exits, or before a filter of its own may forbid what
 * this object does. */
void process_end(void);
/* Before the calling thread executes another program: adds its counts, so that the next program goes
 * on from there.  Does nothing in a child of vfork.  If the exec fails, process_exec_failed()
 * follows. */
void process_exec_begins(void);
void process_exec_failed(void);

/* --- process_environment.c ------------------------------------------------- */

/* Takes TALLY_PLAN and this object out of the program's environment, so that the program doesn't
 * see them, and notes them in process_agent.  Called once, by the constructor, with the array that
 * becomes `environ`.  Returns true if there is a plan. */
bool process_environment_take(char **environment);

/* --- process_signals.c, process_restart.c ---------------------------------- */

/* Called once at the start, while there is one thread, before process_timer_install(): from here on,
 * PROCESS_SIGNAL is hidden.  process_signals.h has more. */
int process_signals_start(void);

/* --- process_maps.c -------------------------------------------------------- */

/* Tells the thread's engine (tally_engine_mmap_record) of the process's mappings that no thread has
 * told yet.  With `all`, of every one: at the start of a program.  Called between process_enter() and
 * process_leave(). */
void process_maps_tell(struct process_thread *thread, bool all);
/* Calls the function for each mapping of code, with `with_data` of anything, if there is /proc and no
 * other thread reads it. */
typedef void process_maps_taker(void *data, const struct tally_engine_mapping *mapping);
void process_maps_list(process_maps_taker *taker, void *data, bool with_data);
/* For the handler, before it samples: the same, if the code at `ip` is not known yet, or ld.so or the
 * program has made mappings since. */
void process_maps_sampled(struct process_thread *thread, uint64_t ip);
/* After a call of the program's own made or changed a mapping: mmap(2) with its flags; mprotect(2) with
 * the flags 0. */
void process_maps_changed(const void *address, size_t size, int protection, int flags);
/* After mremap(2). */
void process_maps_moved(const void *from, const void *to, size_t size);

/* --- process_interface.c ---------------------------------------------------
 * perf_event_open(2) inside the program.  process_interface_calls.c replaces syscall(), read(), readv(),
 * ioctl(), close(), dup(), fcntl(), prctl() and their kin.  Calls that another file replaces ask here
 * first: each function returns true if an emulated event was concerned; then *result is the call's
 * result, or -errno. */

struct pollfd;
struct timespec;
/* The whole of poll(2), ppoll(2).  `timeout` NULL: none; `mask` NULL: the present one. */
bool process_interface_poll(struct pollfd *fds, unsigned long count, const struct timespec *timeout,
			    const sigset_t *mask, int *result);
/* The whole of select(2), pselect(2).  The sets are of the type fd_set, or NULL. */
bool process_interface_select(int count, void *read, void *write, void *except,
			      const struct timespec *timeout, const sigset_t *mask, int *result);
/* The whole of epoll_wait(2), epoll_pwait(2), epoll_pwait2(2). */
struct epoll_event;
bool process_interface_epoll(int epoll, struct epoll_event *events, int count,
			     const struct timespec *timeout, const sigset_t *mask, int *result);
bool process_interface_mmap(void *address, size_t size, int protection, int flags, int fd,
			    uint64_t offset, void **mapped, int *result);
bool process_interface_munmap(void *address, size_t size, int *result);
/* Moments at which the thread's counts may be brought up to date; cheap if it has no events. */
void process_interface_safe_point(void);
/* For the handler, before it samples: tells the program's events of new mappings. */
void process_interface_sampled(struct process_thread *thread, uint64_t ip);
/* Does what the events' engine asked for, and serves calls of other threads: for the handler. */
void process_interface_settle(struct process_thread *thread);
void process_interface_serve(struct process_thread *thread);
/* The thread has another name: COMM records. */
void process_interface_renamed(struct process_thread *thread, const char *comm);
/* prctl(2) with PR_TASK_PERF_EVENTS_ENABLE or _DISABLE. */
void process_interface_prctl(int option);
/* Returns the moment, for the thread or process that is about to be made: it inherits the events that
 * exist now. */
uint64_t process_interface_moment(struct process_thread *thread);
/* Around fork(2): meanwhile no other thread opens or closes an event.  In the child,
 * process_interface_forked() ends that. */
void process_interface_fork_begins(void);
void process_interface_fork_ends(void);
/* The thread has made a thread or a process. */
void process_interface_made_child(struct process_thread *thread);
/* The process ends, before its thread's last counts are told. */
void process_interface_end(void);
/* A thread begins: after it was attached, in the thread.  `loading`: with a new program, what the thread
 * used from execve(2) to the program's first constructor; otherwise NULL. */
void process_interface_thread_begin(struct process_thread *thread,
				    const struct tally_plan_usage *loading);
/* Maps the part of the plan's file that is the interface's. */
void process_interface_map(int fd);
/* Another program is about to be executed; that has failed. */
void process_interface_exec_begins(void);
void process_interface_exec_failed(void);

/* In a forked child: before its thread is attached anew. */
void process_interface_forked(void);
/* The thread ends. */
void process_interface_thread_end(struct process_thread *thread);

#endif
