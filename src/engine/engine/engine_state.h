/* The engine's state, and the functions that its files share.
 *
 * Access rules:
 *   - System calls, fork, exec and exit run under the host's one sleeping lock, the "engine lock".
 *     It protects the lists of files, owners, children, PMUs and rings.
 *   - A context (struct engine_context) has a lock of its own, which is taken with interrupts off.
 *     Scheduling takes it.  A context that is on a CPU is changed on that CPU only: the surface
 *     goes there with engine_context_call(), as the kernel does with event_function_call().
 *   - A hit takes no lock.  It reads the CPU's listener lists, adds to counts, and writes to rings
 *     by the protocol of ring_buffer.c.  It leaves work that it can't do at that point (wake-ups,
 *     signals, disabling) to tally_engine_run_pending().
 *   - Memory that a hit may still use is not freed at once but retired: engine_retire() frees it
 *     once every CPU has been seen outside of any hit.
 *
 * [surface], [cpu], [hit] and [once] say in which context a function may be called: tally/engine.h
 * defines them.  "Context locked" means that the caller holds the lock of the event's context. */
#ifndef TALLY_ENGINE_STATE_H
#define TALLY_ENGINE_STATE_H

#include "engine/engine_atomic.h"
#include "engine/engine_error.h"
#include "engine/engine_list.h"
#include "tally/engine.h"

#define ENGINE_STACK_MAX 127u      /* the default of perf_event_max_stack */
#define ENGINE_STACK_LIMIT 640u    /* the largest value of perf_event_max_stack */
#define ENGINE_RECORD_MAX 65528u   /* header.size has 16 bits; records are multiples of 8 bytes */

/* Event states (H1).  Legal moves: OFF <-> INACTIVE <-> ACTIVE; INACTIVE -> ERROR (pinned and
 * without room) -> INACTIVE by ENABLE; any -> EXIT (its task has exited, or remove_on_exec), which
 * is final. */
enum engine_event_state {
	ENGINE_EVENT_EXIT = -3,
	ENGINE_EVENT_ERROR = -2,
	ENGINE_EVENT_OFF = -1,
	ENGINE_EVENT_INACTIVE = 0, /* enabled, but not counting now */
	ENGINE_EVENT_ACTIVE = 1    /* counting on its PMU */
};

struct engine_event;
struct engine_context;
struct engine_ring;

/* The lock of a context.  Taking it turns interrupts off, then spins. */
struct engine_lock {
	uint32_t held;
};

/* An object that is freed once no hit can use it any more.  First member of each such object. */
struct engine_retired {
	struct engine_retired *next;
	void (*free)(struct tally_engine *engine, struct engine_retired *retired);
};

#define ENGINE_FILE_ASYNC 020000u /* O_ASYNC as in asm-generic */

/* The file of an open descriptor. dup and fork share it. */
struct tally_engine_file {
	struct engine_event *event;
	unsigned references;
	unsigned flags;        /* O_NONBLOCK, ENGINE_FILE_ASYNC */
	int signal_number;     /* set by F_SETSIG; 0: SIGIO */
	int signal_fd;
	int32_t owner;         /* set by F_SETOWN: a pid, a negative process group, or 0 for none */
	int owner_type;        /* F_OWNER_… */
};

struct engine_event {
	struct tally_pmu_event hw; /* first member: PMUs hold a pointer to it */
	struct engine_retired retired;
	struct tally_engine *engine;
	struct tally_attr attr;    /* hw.attr points here */
	/* held by the file or, for an inherited event, by the parent's list; and by each of its
	 * children; under the engine lock */
	unsigned references;
	uint64_t id;

	/* The event's place. */
	struct engine_context *context; /* NULL once it is removed */
	int cpu;                   /* the only CPU where it counts, or -1 for any */
	int on_cpu;                /* the CPU where it is ACTIVE, or -1 */
	enum engine_event_state state;
	struct tally_engine_task *task; /* the task that it counts; NULL: a whole CPU */
	uint64_t cgroup;           /* valid with has_cgroup (PID_CGROUP) */
	bool has_cgroup;

	/* The event's group.  "Leader:" marks members that are valid in a leader only. */
	struct engine_event *leader; /* the event itself when it is in no group */
	struct engine_list siblings; /* leader: head of the members' sibling_link */
	struct engine_list sibling_link;
	unsigned sibling_count;      /* leader: number of members besides itself */
	/* leader: grows with each change of members; an inherited group has its original's as of
	 * the fork */
	unsigned group_generation;
	bool software_only;          /* leader: every event of the group is of SCOPE_SOFTWARE */
	/* leader: the PMUs of the group's hardware events as engine_pmu_bit(); only the software
	 * bit if it has none */
	uint64_t pmus;
	/* leader: the first PMU that is not a software PMU; NULL if software_only */
	struct tally_engine_pmu *group_pmu;

	/* Links in its context.  Every event is on context->events.  Leaders are also in a queue,
	 * and on an active list while they are on. */
	struct engine_list context_link, group_link, active_link;
	uint64_t held;               /* leader that is on: PMUs that it denies to other groups */
	uint64_t turn;               /* leader: position in the order of the context's groups */
	bool cgroup_away;            /* the CPU runs a task outside the event's cgroup */
	bool stranded;               /* its CPU was unplugged: never scheduled again */

	/* Times in ns as of `stamp`, which is in the context's time: see event_time.c. */
	uint64_t stamp, time_enabled, time_running;
	/* sums of the children that have ended; under the engine lock */
	uint64_t child_count, child_time_enabled, child_time_running;
	uint64_t count;              /* changed with engine_count64() */

	/* Inheritance. */
	struct engine_event *parent; /* the original; children of children point to it as well */
	/* original: head of its children's child_link; under the engine lock */
	struct engine_list children;
	struct engine_list child_link;

	/* The task that opened it, for prctl.  NULL after that task's exit. */
	struct tally_engine_task *owner;
	struct engine_list owner_link;
	struct tally_engine_file *file; /* of an original; NULL once it is closed */
	/* freed with the event: an overflow may still read the signal's owner from it */
	struct tally_engine_file *closed_file;

	/* Output. */
	struct engine_ring *ring;    /* atomic; children use their parent's */
	struct engine_list ring_link; /* on ring->events; under engine->ring_lock */
	/* number of mappings of its ring and AUX area.  Non-zero: the event owns the ring and its
	 * user page */
	unsigned mapped;
	/* true value of the user page's seqlock: a program that maps the page could overwrite the
	 * page's own */
	uint32_t page_lock;
	uint64_t lost_samples;       /* samples lost, for FORMAT_LOST */
	bool itrace_started;         /* of an original; atomic */
	uint32_t header_size, id_header_size; /* bytes; set by engine_event_sizes() */
	/* reads attr.clockid's clock; NULL: use the host's clock_ns() */
	uint64_t (*clock)(struct engine_event *event);
	tally_engine_overflow_handler *overflow_handler;
	void *overflow_data;

	/* Overflow. */
	int64_t event_limit;         /* REFRESH: overflows left before it is disabled; atomic */
	struct { /* for attr.freq: frequency.c */
		/* time_running (ns) and count at the last tick that looked */
		uint64_t running, count;
		/* start (ns) and number of overflows of the present burst */
		uint64_t burst_stamp;
		uint64_t burst_count;    /* events that those overflows stand for */
		uint32_t burst;
		uint32_t fraction;       /* carried part of a period, in 1/65536 */
		uint64_t period;         /* wanted period, in 1/65536 */
		uint32_t windows;        /* number of windows that the period is the mean of */
	} frequency;
	/* overflows in this tick; ENGINE_THROTTLED: stopped until the next tick */
	uint32_t interrupts;
	uint64_t interrupts_tick;    /* the tick that `interrupts` counts */
	uint32_t pending;            /* ENGINE_PENDING_…, atomic */
	int pending_code;            /* POLL_IN or POLL_HUP */
	uint64_t pending_address;    /* address for the sigtrap signal */
	struct engine_event *pending_next; /* link on engine_cpu.pending: see pending.c */
	uint32_t pending_queued;     /* 1 while it is on a CPU's pending list; atomic */
	unsigned pending_cpu;        /* the CPU whose pending list it is on */

	/* By kind of event. */
	/* software, tracepoint: on a CPU's listener list while active */
	struct engine_hit_link hit_link;
	struct engine_list breakpoint_link;   /* breakpoint: on engine->breakpoints */
	struct tally_engine_timer timer;      /* clocks */
	/* tracepoint: a hit only adds to `count`.  False if the event samples, has a filter or
	 * excludes modes */
	bool counts_only;
	struct tally_trace_event *tracepoint;
	/* tracepoint: on the list of events that count tasks */
	struct engine_hit_link of_task_link;
	struct tally_filter *filter;          /* atomic pointer */
};

#define ENGINE_THROTTLED UINT32_MAX
#define ENGINE_PENDING_WAKEUP 1u
#define ENGINE_PENDING_DISABLE \
	2u /* cleared, with a move to OFF, when the event is scheduled out first */
#define ENGINE_PENDING_SIGTRAP 4u
#define ENGINE_PENDING_SIGNAL 8u

/* Groups in the order in which they are tried: leaders, linked by group_link. */
struct engine_queue {
	struct engine_list pinned, flexible;
};

/* The events of a task, or of a CPU.  One context holds the events of all PMUs. */
struct engine_context {
	struct engine_retired retired;
	struct engine_lock lock;
	struct tally_engine *engine;
	struct tally_engine_task *task; /* NULL: a CPU's context */
	/* a CPU's context: its number; a task's: the CPU where it is scheduled in, or -1.
	 * Atomic. */
	int cpu;
	/* linked by context_link, newest first: the order in which side-band records and exits
	 * visit them */
	struct engine_list events;
	struct engine_queue any;   /* groups bound to no CPU; in a CPU's context: all groups */
	/* task's context: groups bound to a CPU, indexed by cpu % by_cpu_size; NULL: they are in
	 * `any` */
	struct engine_queue *by_cpu;
	unsigned by_cpu_size, bound_groups;
	uint64_t next_turn;
	/* groups that are on: leaders, linked by active_link */
	struct engine_list active_pinned, active_flexible;
	unsigned event_count;
	uint64_t time; /* ns that it has been on a CPU, as of the operation in progress */
	uint64_t offset;           /* host's clock minus `time`, in ns; valid while `running` */
	bool running, dead;
	/* PMUs of its groups, and of its pinned groups, since it was last empty */
	uint64_t pmus, pinned_pmus;
	/* PMUs on which some flexible group found no room at its last turn */
	uint64_t rotate;
	unsigned frequency_events; /* number of events with attr.freq, which a tick must visit */
	unsigned references;
};

/* State of one CPU. */
struct engine_cpu {
	struct engine_context context;
	unsigned number;
	bool up;
	uint32_t hits;                     /* hits in progress, a bit for each level */
	uint64_t dropped[TALLY_LEVELS];
	/* walks in progress of tracepoint probes and of counting listeners */
	unsigned walks;
	struct engine_hits software[TALLY_SW_MAX];
	/* number of events with a cgroup in the context, which a switch must visit */
	unsigned cgroup_events;
	/* context of the current task while it is scheduled in, or NULL */
	struct engine_context *task_context;
	/* PMUs of SCOPE_HARDWARE that an exclusive group holds: see group.c */
	uint64_t exclusive;
	uint32_t active[64];               /* number of events that are on, by the PMU's bit */
	uint64_t tick;                     /* number of ticks so far */
	uint64_t throttled_tick;           /* the last tick in which an event was throttled */
	struct engine_event *pending;      /* list of events with pending work: pending.c; atomic */
	/* call chain scratch for each level, max_stack + max_contexts_per_stack + 1 words;
	 * allocated for the first event with CALLCHAIN */
	uint64_t *chains[TALLY_LEVELS];
	struct engine_event **breakpoints; /* indexed by slot */
};

struct tally_engine_process {
	struct tally_engine *engine;
	int32_t pid;
	unsigned references;       /* number of tasks, + 1 until process_exit */
	struct tally_engine_file **files;
	bool *close_on_exec;
	unsigned file_capacity, descriptor_limit; /* RLIMIT_NOFILE */
	unsigned used_below;       /* every descriptor below this one is in use */
};

struct tally_engine_task {
	struct engine_retired retired;
	struct tally_engine *engine;
	struct tally_engine_process *process;
	struct tally_engine_identity identity;
	struct engine_context *context; /* NULL: it never had an event */
	struct engine_list owned;  /* events that it opened, linked by owner_link */
	struct engine_list link;   /* on engine->tasks */
	unsigned references;
	bool exited;
	bool migrated;             /* it has changed CPU since it last ran */
	/* the CPU that tally_engine_switch_in() put it on, or -1.  Atomic. */
	int cpu;
	void *host_task;
};

struct engine_settings {
	long paranoid, max_sample_rate, mlock_kb, max_stack, max_contexts_per_stack, user_access;
};

struct tally_engine {
	struct tally_engine_host host;
	struct engine_cpu *cpus;   /* array of host.cpus */
	/* in the order in which engine_pmu_init_event() tries them */
	struct tally_engine_pmu *pmus;
	struct tally_engine_pmu *numbered[62]; /* PMUs with a bit of their own: pmu_set.c */
	uint32_t next_type;
	uint64_t next_id;          /* atomic */
	struct engine_settings settings;
	uint32_t samples_per_tick; /* max_sample_rate per tick */
	struct engine_list tasks;
	/* Objects that wait to be freed, oldest first.  Those on `departing` are freed once every
	 * CPU has been seen outside of hits; the first `cpus_seen` CPUs have been.  Those on
	 * `retired` are next.  Engine lock. */
	struct engine_retired *retired, **retired_end, *departing;
	unsigned retired_count, cpus_seen;
	struct tally_engine_statistics statistics; /* events, bytes: under the engine lock */
	/* How many events ask for side-band records, by kind: a kind that no event wants costs
	 * nothing (sideband.c). */
	struct {
		unsigned mmap, comm, task, switches, namespaces, ksymbol, cgroup, text_poke;
	} wanted;
	/* events that hold a slot, linked by breakpoint_link; under the engine lock */
	struct engine_list breakpoints;
	struct engine_tracepoints *tracepoints; /* state of tracepoint.c */
	/* number of events with CALLCHAIN; while there are some, max_stack can't change */
	unsigned stack_users;
	size_t locked_pages;       /* pages charged to mlock_kb */
	struct engine_mapping *mappings; /* of all processes; under the engine lock */
	/* protects the assignment of events to rings: event->ring, ring->events */
	struct engine_lock ring_lock;
	struct tally_engine_pmu software_pmu, tracepoint_pmu, breakpoint_pmu;
};

static inline struct engine_event *engine_event_of(struct tally_pmu_event *hw)
{
	return ENGINE_CONTAINER(hw, struct engine_event, hw);
}

static inline uint64_t engine_now(struct tally_engine *engine)
{
	return engine->host.clock_ns(engine->host.host);
}

static inline struct engine_cpu *engine_this_cpu(struct tally_engine *engine)
{
	return &engine->cpus[engine->host.this_cpu(engine->host.host)];
}

static inline bool engine_cpu_online(struct tally_engine *engine, unsigned cpu)
{
	return !engine->host.cpu_online || engine->host.cpu_online(engine->host.host, cpu);
}

/* Reads the state without the context's lock: it may change at any moment. */
static inline enum engine_event_state engine_event_state(const struct engine_event *event)
{
	return __atomic_load_n(&event->state, __ATOMIC_ACQUIRE);
}

static inline bool engine_event_flag(const struct engine_event *event, uint64_t flag)
{
	return (event->attr.flags & flag) != 0;
}

/* --- engine.c: life, memory, tasks, sysctls ------------------------------- */

void *engine_allocate(struct tally_engine *engine, size_t size); /* zeroed; counted in statistics */
void engine_release(struct tally_engine *engine, void *memory, size_t size);
/* Frees the object by retired->free once no hit can use it, and after everything that was retired
 * before it. [surface] */
void engine_retire(struct tally_engine *engine, struct engine_retired *retired,
		   void (*free)(struct tally_engine *engine, struct engine_retired *retired));
/* Taken around each system call: the host's lock.  Leaving frees the retired objects whose
 * time has come. */
void engine_enter(struct tally_engine *engine);
void engine_leave(struct tally_engine *engine);
/* Copy from and to the caller's memory.  Return 0 or -EFAULT. */
int engine_copy_in(struct tally_engine *engine, void *to, const void *from, size_t size);
int engine_copy_out(struct tally_engine *engine, void *to, const void *from, size_t size);
bool engine_capable(struct tally_engine *engine, enum tally_engine_capability capability);
/* turns interrupts off, then spins. [cpu] */
uintptr_t engine_lock(struct tally_engine *engine, struct engine_lock *lock);
void engine_unlock(struct tally_engine *engine, struct engine_lock *lock, uintptr_t state);

/* --- engine_task.c: tasks and processes ----------------------------------- */

/* Returns the calling task, or NULL. */
struct tally_engine_task *engine_current(struct tally_engine *engine);
/* Returns the task with that tid, or NULL. */
struct tally_engine_task *engine_find_task(struct tally_engine *engine, int32_t tid);
void engine_task_get(struct tally_engine_task *task);
void engine_task_put(struct tally_engine_task *task);

/* --- pmu.c ---------------------------------------------------------------- */

/* H2: finds the event's PMU: first the one of attr.type, then, for HARDWARE and HW_CACHE, the
 * generic ones.  A PMU that returns -ENOENT passes the event to the next.  Checks capabilities and
 * scope against attr. */
int engine_pmu_init_event(struct engine_event *event);
void engine_pmu_disable(struct tally_engine_pmu *pmu); /* these ops are optional */
void engine_pmu_enable(struct tally_engine_pmu *pmu);
void engine_pmu_release_event(struct engine_event *event); /* calls its event_release */
bool engine_pmu_counts_on(const struct tally_engine_pmu *pmu, unsigned cpu);

/* --- pmu_set.c: sets of PMUs, a bit each ---------------------------------- */

#define ENGINE_PMU_SOFTWARE (1ull << 62) /* all PMUs of SCOPE_SOFTWARE */
#define ENGINE_PMU_OTHERS (1ull << 63)   /* hardware PMUs past the 62nd, treated as one */
/* Give the PMU a bit at registration (before it gets any events), and take it back at
 * unregistration. */
void engine_pmu_number(struct tally_engine *engine, struct tally_engine_pmu *pmu);
void engine_pmu_unnumber(struct tally_engine *engine, struct tally_engine_pmu *pmu);
uint64_t engine_pmu_bit(const struct tally_engine_pmu *pmu);
/* Call engine_pmu_disable(), engine_pmu_enable() or ops->switched() for each hardware PMU of the
 * set. [cpu] */
void engine_pmus_disable(struct tally_engine *engine, uint64_t set);
void engine_pmus_enable(struct tally_engine *engine, uint64_t set);
void engine_pmus_switched(struct tally_engine *engine, uint64_t set, struct tally_engine_task *task,
			  bool in);

/* --- attr_check.c --------------------------------------------------------- */

/* Copies an attr of any size from the caller (A2) and makes the checks of perf_copy_attr().  For
 * -E2BIG, writes the supported size back. */
int engine_attr_copy(struct tally_engine *engine, const void *user, struct tally_attr *attr);

/* Check what perf_event_paranoid lets the caller do.  Return 0 or -EACCES. */
int engine_allow_kernel(struct tally_engine *engine);
int engine_allow_cpu(struct tally_engine *engine);

/* --- open.c: events' life ------------------------------------------------- */

/* Allocates an event and finds its PMU.  Installs nothing yet.  `parent` is the original of an
 * inherited event, otherwise NULL. */
int engine_event_new(struct tally_engine *engine, const struct tally_attr *attr,
		     struct tally_engine_task *task, int cpu, struct engine_event *leader,
		     struct engine_event *parent, struct engine_event **out);
void engine_event_get(struct engine_event *event);
/* Drops a reference.  The last one detaches the event from its PMU and ring and retires it; it must
 * be in no context by then. [surface] */
void engine_event_put(struct engine_event *event);
/* At the last close of the descriptor: removes the event and its children from their contexts.  The
 * siblings of a leader become single events. [surface] */
void engine_event_close(struct engine_event *event);

/* --- file.c --------------------------------------------------------------- */

/* Returns the file of the caller's descriptor, or NULL. */
struct tally_engine_file *engine_file(struct tally_engine *engine, int fd);
/* Makes sure that the next install finds a free descriptor, the lowest one.  Returns 0, -EMFILE or
 * -ENOMEM. */
int engine_files_room(struct tally_engine_process *process);
int engine_file_install(struct tally_engine_process *process, struct tally_engine_file *file,
			bool close_on_exec);
void engine_file_put(struct tally_engine_file *file);
void engine_files_release(struct tally_engine_process *process);
int engine_files_fork(const struct tally_engine_process *parent,
		      struct tally_engine_process *child);
void engine_files_exec(struct tally_engine_process *process);

/* --- context.c: contexts, and what the surface does to the events in them ---- */

/* context_schedule.c defines the public functions tally_engine_switch_out, _switch_in, _migrate,
 * _tick, _cpu_up and _cpu_down. */

void engine_context_init(struct engine_context *context, struct tally_engine *engine,
			 struct tally_engine_task *task, int cpu);
/* Finds the context for an event of this task (of that CPU if `task` is NULL), and makes it if
 * there is none.  Returns 0, -ENOMEM, or -ESRCH if the task has exited.  Takes no reference: events
 * take theirs when they are installed. [surface] */
int engine_context_find(struct tally_engine *engine, struct tally_engine_task *task, int cpu,
			struct engine_context **out);
void engine_context_put(struct engine_context *context);
/* Runs function(event, argument) where event->context may be changed: on the CPU where it is on,
 * otherwise here.  Either way the context is locked and interrupts are off.  For an event without a
 * context the function runs here, with interrupts off only. [surface] */
void engine_context_call(struct engine_event *event,
			 void (*function)(struct engine_event *event, void *argument),
			 void *argument);
/* Adds the event, whose state is OFF or INACTIVE, to the context and to its leader's group, and
 * schedules it in if possible.  If the CPU has gone offline meanwhile, event->context stays NULL.
 * [surface] */
void engine_context_install(struct engine_context *context, struct engine_event *event);
/* Removes the event from its context: folds its counts in, sets its state to EXIT or OFF (ERROR
 * stays), and sets event->context to NULL.  With `detach`, a member leaves its group and a leader's
 * siblings become single events. [surface] */
void engine_context_remove(struct engine_event *event, bool detach, bool exiting);
/* ioctl ENABLE and DISABLE of one event and its children (B3, B4, B7). [surface] */
void engine_event_enable(struct engine_event *event);
void engine_event_disable(struct engine_event *event);
/* The same without its children. */
void engine_event_enable_alone(struct engine_event *event);
void engine_event_disable_alone(struct engine_event *event);
/* Disables the event if it is active on this CPU.  For tally_engine_run_pending(). [cpu] */
void engine_event_disable_here(struct engine_event *event);
/* H3: brings count and times up to date, on the event's CPU if it is ACTIVE.  With `group`, all of
 * the leader's group.  Then calls `look` (optional) at once, with the context locked and interrupts
 * off, so that all it reads is of one moment.  Values read later may be of different moments if the
 * event counts another task. [surface] */
void engine_event_sync(struct engine_event *event, bool group,
		       void (*look)(struct engine_event *event, void *argument), void *argument);

/* --- event_time.c: states and times --------------------------------------- */

/* Moves an event to a state (H1) and brings its times, and those of its group, up to context->time.
 * Context locked. */
void engine_event_set_state(struct engine_event *event, enum engine_event_state state);
/* Brings the event's times up to context->time.  Context locked. */
void engine_event_update_times(struct engine_event *event);
/* Computes the times as of now without changing the event, for user pages and samples. *now is the
 * host's clock.  All in ns. [hit] */
void engine_event_times(struct engine_event *event, uint64_t *now, uint64_t *enabled,
			uint64_t *running);
/* Returns the count, with the counts of children that have ended. */
uint64_t engine_event_count(struct engine_event *event);

/* --- group.c -------------------------------------------------------------- */

/* B5, B7: adds the leader and its members to their PMUs, all or none.  Returns 0 or -EAGAIN.
 * Context locked, its time up to date. [cpu] */
int engine_group_schedule_in(struct engine_event *leader, struct engine_cpu *cpu);
void engine_group_schedule_out(struct engine_event *leader, struct engine_cpu *cpu);
/* True if this event's group may run on this CPU: by the event's CPU, the PMU's CPUs and the
 * cgroup. */
bool engine_event_fits(const struct engine_event *event, const struct engine_cpu *cpu);

/* --- read.c --------------------------------------------------------------- */

/* read(2) by read_format, with the children summed in.  Returns the number of bytes, 0 for an event
 * in ERROR, or -ENOSPC. [surface] */
long engine_event_read(struct engine_event *event, void *bytes, size_t size);

/* --- control.c: ioctls ---------------------------------------------------- */

long engine_event_ioctl(struct engine_event *event, unsigned long request, uintptr_t argument);

/* --- inherit.c ------------------------------------------------------------ */

int engine_inherit_fork(struct tally_engine_task *parent, struct tally_engine_task *child,
			bool thread);
void engine_inherit_exit(struct tally_engine_task *task);
/* handles enable_on_exec and remove_on_exec */
void engine_inherit_exec(struct tally_engine_task *task);

/* --- overflow.c ----------------------------------------------------------- */

/* This file and pending.c define the public functions tally_engine_pmu_count, _period_elapsed,
 * _overflow, _run_pending and _set_overflow_handler. */

/* Enters a hit on this CPU, `cpu`, at its present level.  Returns the level, or -1 if a hit of that
 * level is in progress; then the drop is counted. [hit] */
int engine_hit_enter(struct tally_engine *engine, struct engine_cpu *cpu);
static inline void engine_hit_leave(struct engine_cpu *cpu, int level)
{
	__atomic_signal_fence(__ATOMIC_RELEASE);
	cpu->hits &= ~(1u << level);
}

static inline bool engine_hit_under_way(const struct engine_cpu *cpu, int level)
{
	return cpu->hits & 1u << level;
}
/* Ends the throttling of an event whose `interrupts` are ENGINE_THROTTLED, and writes UNTHROTTLE
 * for a leader.  With `start`, starts it on its PMU.  Without: for an event that is about to be
 * added to its PMU again, since it may have missed ticks while it was off. [cpu] */
void engine_event_unthrottle(struct engine_event *event, bool start);
/* The tick's work for one of the CPU's two contexts, after cpu->tick has been incremented: adapts
 * periods and unthrottles.  Visits no event if there is nothing to do.  Context locked. [cpu] */
void engine_context_tick(struct engine_context *context, struct engine_cpu *cpu);
/* Handles one overflow: throttling if `throttle`, frequency, REFRESH, the overflow handler,
 * signals.  Returns true if the event must be stopped. [hit] */
bool engine_overflow(struct engine_event *event, struct engine_cpu *cpu, bool throttle,
		     const struct tally_engine_hit *hit, const struct tally_engine_regs *regs);
/* Sets engine->samples_per_tick from the settings. */
void engine_throttle_rate(struct tally_engine *engine);
int engine_event_refresh(struct engine_event *event, uint64_t overflows); /* IOC_REFRESH */
int engine_event_period(struct engine_event *event, uint64_t period);     /* IOC_PERIOD */
/* Queues ENGINE_PENDING_… work of this event for tally_engine_run_pending(). [hit] */
void engine_event_pend(struct engine_event *event, uint32_t what);
/* Takes the event off every pending list, before it is freed. [surface] */
void engine_event_unpend(struct engine_event *event);

/* --- sample.c: records ---------------------------------------------------- */

/* Sets header_size and id_header_size from attr. */
void engine_event_sizes(struct engine_event *event);
/* A7: true if every member of the group can still be read, by its own read_format, when
 * `new_siblings` more join. */
bool engine_event_size_fits(const struct engine_event *event, unsigned new_siblings);
/* The default overflow handler: writes a sample. [hit] */
void engine_output_sample(struct engine_event *event, struct engine_cpu *cpu,
			  const struct tally_engine_hit *hit, const struct tally_engine_regs *regs);
/* Fills the sample_id trailer of records other than samples.  Returns its size:
 * event->id_header_size, at most 48 bytes. [hit] */
size_t engine_sample_id(struct engine_event *event, uint8_t *bytes);

/* --- sideband.c ----------------------------------------------------------- */

/* counts the event in (+1) or out (-1) of engine->wanted */
void engine_sideband_account(struct engine_event *event, int more);
void engine_output_fork(const struct tally_engine_task *child, struct tally_engine_task *parent);
void engine_output_exit(struct tally_engine_task *task);
/* also sets the task's name */
void engine_output_comm(struct tally_engine_task *task, const char *comm, bool exec);
/* for inherit_stat */
void engine_output_read(struct engine_event *event, struct tally_engine_task *task);
void engine_output_switch(struct tally_engine *engine, struct tally_engine_task *previous,
			  struct tally_engine_task *next, bool out, bool preempted);
/* Writes ITRACE_START if the PMU is of that kind and has not yet said that its trace began.
 * [cpu] */
void engine_output_itrace_start(struct engine_event *event);
void engine_output_throttle(struct engine_event *event, bool throttled); /* [hit] */

/* --- software.c, breakpoint.c, tracepoint.c ------------------------------- */

int engine_software_register(struct tally_engine *engine);
int engine_breakpoint_register(struct tally_engine *engine);
int engine_tracepoint_register(struct tally_engine *engine); /* undone at free by: */
void engine_tracepoint_unregister(struct tally_engine *engine);
/* C7: one hit of `weight` on an active event of a software kind.  Counts it and samples by period.
 * Checks exclude_*; the caller has checked the filter. [hit], between engine_hit_enter() and
 * engine_hit_leave() */
void engine_swevent_hit(struct engine_event *event, struct engine_cpu *cpu, uint64_t weight,
			struct tally_engine_hit *hit, const struct tally_engine_regs *regs);
/* Only counts the hit, whether the event is active or not.  Returns true if it was counted.
 * [hit] */
bool engine_swevent_count(struct engine_event *event, uint64_t weight,
			  const struct tally_engine_regs *regs);
/* add, del, start, stop and read for PMUs whose events are listeners on `hits` lists. */
int engine_swevent_add(struct engine_event *event, unsigned flags, struct engine_hits *hits);
void engine_swevent_del(struct tally_pmu_event *event, unsigned flags);
void engine_swevent_start(struct tally_pmu_event *event, unsigned flags);
void engine_swevent_stop(struct tally_pmu_event *event, unsigned flags);
void engine_swevent_read(struct tally_pmu_event *event);
/* IOC_SET_FILTER of a tracepoint.  `text` ends with NUL and is in the engine's memory. */
int engine_tracepoint_set_filter(struct engine_event *event, const char *text);
int engine_breakpoint_modify(struct engine_event *event, const struct tally_attr *attr);

/* --- ring_buffer.c -------------------------------------------------------- */

/* A record being written. */
struct engine_output {
	struct engine_ring *ring;
	struct engine_event *event;
	uint64_t offset;    /* position of the next byte; runs freely */
	uintptr_t wakeup;   /* value of ring->wakeup when this record began */
	bool owned;         /* this record owns a ring that is bound to no CPU: ring_buffer.c */
};

/* Reserves `size` bytes (a multiple of 8) in the ring of the event, or of its parent, preceded by a
 * LOST record if one is due.  Returns 0, or -ENOSPC if there is no ring, or if the ring is paused,
 * full or being written by another CPU; the last three count the record as lost.  Before the end,
 * the caller copies or skips exactly `size` bytes on the same CPU. [hit], between
 * engine_hit_enter() and engine_hit_leave() or with the engine lock held: otherwise the ring could
 * be freed meanwhile. */
int engine_output_begin(struct engine_output *output, struct engine_event *event, uint32_t size);
void engine_output_copy(struct engine_output *output, const void *bytes, size_t size);
void engine_output_skip(struct engine_output *output, size_t size); /* writes zeroes */
/* Says that the record is a SAMPLE: wakeup_events counts only those. */
void engine_output_sampled(struct engine_output *output);
void engine_output_end(struct engine_output *output);

/* --- ring_map.c: mmap, SET_OUTPUT ----------------------------------------- */

/* Maps the event's memory (D1, D4).  `offset` 0: the user page and the data behind it; otherwise
 * the AUX area that the user page's aux_offset and aux_size describe.  Like mmap(2), a mapping
 * holds a reference to event->file. [surface] */
int engine_event_map(struct engine_event *event, size_t size, bool writable, bool shared,
		     uint64_t offset, void **address);
/* Returns 0, or -EINVAL if there is no such mapping or the range is a part of one. [surface] */
int engine_event_unmap(struct tally_engine *engine, void *address, size_t size);
/* Releases all mappings of the process: its address space goes, at exec or exit. [surface] */
void engine_mappings_release(struct tally_engine_process *process);
/* Sends the event's output to the ring of `target` (D3); NULL: to none. [surface] */
int engine_event_set_output(struct engine_event *event, struct engine_event *target);
int engine_event_pause_output(struct engine_event *event, bool pause);
/* Takes the event off its ring.  Must be called before event->file is freed: the code that wakes a
 * ring's events holds ring_lock, not the engine lock. [surface] */
void engine_ring_detach(struct engine_event *event);
/* Returns true if the ring has something that poll must report, and takes it: the kernel's
 * atomic_xchg(&rb->poll, 0).  False without a ring; then poll reports POLLHUP. [surface] */
bool engine_ring_has_data(struct engine_event *event);
/* Calls host->wake() for every event that writes to the ring of this one.  For run_pending().
 * [cpu] */
void engine_ring_wakeup(struct engine_event *event);

/* --- userpage.c ----------------------------------------------------------- */

void engine_user_page_init(struct engine_event *event, struct tally_user_page *page,
			   uint64_t data_size);
/* Updates the user page (D5): lock, index, offset, times.  Does nothing if the event is not mapped.
 * Runs on the CPU where the event is active, or with its context locked. [hit] */
void engine_user_page_update(struct engine_event *event);

/* True for the two clocks among the software events. */
static inline bool engine_is_clock(const struct tally_attr *attr)
{
	return attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK;
}

#endif
