/* The engine's state, and what its files give one another.
 *
 * Who may change what:
 *   - The system-call surface, fork, exec and exit run under the host's one sleeping lock ("the engine lock"): lists of
 *     files, owners, children, PMUs and rings are its.
 *   - A context (struct engine_context) has a lock of its own, taken with interrupts off; scheduling takes it.  A
 *     context that is on a CPU is changed on that CPU alone: the surface goes there (engine_context_call()), as the
 *     kernel's event_function_call() does.
 *   - Where an event hits no lock is taken.  A hit reads the CPU's listener lists, adds to counts, and writes to rings
 *     with the protocol of ring_buffer.c; what it can't do there (wake-ups, signals, disabling) it leaves to
 *     tally_engine_run_pending().
 *   - What a hit may still stand on is not freed but retired: engine_retire() frees it once every CPU has been seen
 *     outside of any hit.
 */
#ifndef TALLY_ENGINE_STATE_H
#define TALLY_ENGINE_STATE_H

#include "engine/engine_atomic.h"
#include "engine/engine_error.h"
#include "engine/engine_list.h"
#include "tally/engine.h"

#define ENGINE_STACK_MAX 127u      /* perf_event_max_stack's default */
#define ENGINE_STACK_LIMIT 640u    /* what it may be raised to */
#define ENGINE_RECORD_MAX 65528u   /* header.size is 16 bits, and records are multiples of 8 */

/* H1.  Legal moves: OFF <-> INACTIVE <-> ACTIVE; INACTIVE -> ERROR (pinned without room) ->
 * INACTIVE by ENABLE; any -> EXIT (its task has exited, or remove_on_exec) , never back. */
enum engine_event_state {
	ENGINE_EVENT_EXIT = -3,
	ENGINE_EVENT_ERROR = -2,
	ENGINE_EVENT_OFF = -1,
	ENGINE_EVENT_INACTIVE = 0, /* enabled, not counting now */
	ENGINE_EVENT_ACTIVE = 1    /* on its PMU */
};

struct engine_event;
struct engine_context;
struct engine_ring;

/* A lock of a context: interrupts off, then spun for. */
struct engine_lock {
	uint32_t held;
};

/* What is freed when no hit can stand on it any more: first member of what is retired. */
struct engine_retired {
	struct engine_retired *next;
	void (*free)(struct tally_engine *engine, struct engine_retired *retired);
};

#define ENGINE_FILE_ASYNC 020000u /* O_ASYNC, asm-generic */

/* An open descriptor's file: shared by dup, fork. */
struct tally_engine_file {
	struct engine_event *event;
	unsigned references;
	unsigned flags;        /* O_NONBLOCK, ENGINE_FILE_ASYNC */
	int signal_number;     /* F_SETSIG; 0: SIGIO */
	int signal_fd;
	int32_t owner;         /* F_SETOWN: negative for a process group; 0: none */
	int owner_type;        /* F_OWNER_… */
};

struct engine_event {
	struct tally_pmu_event hw; /* first: PMUs hold a pointer to it */
	struct engine_retired retired;
	struct tally_engine *engine;
	struct tally_attr attr;    /* hw.attr points here */
	unsigned references;       /* file, parent's children, ring output: under the engine lock */
	uint64_t id;

	/* Where it counts. */
	struct engine_context *context; /* NULL: removed */
	int cpu;                   /* bound to it, or -1 */
	int on_cpu;                /* where it is ACTIVE, or -1 */
	enum engine_event_state state;
	struct tally_engine_task *task; /* counts it; NULL: all of a CPU */
	uint64_t cgroup;           /* with PID_CGROUP */
	bool has_cgroup;

	/* Its group. */
	struct engine_event *leader; /* itself when alone */
	struct engine_list siblings; /* leader: head of members' sibling_link */
	struct engine_list sibling_link;
	unsigned sibling_count;      /* leader: without itself */
	/* leader: changes with its members; an inherited group's is what it was then */
	unsigned group_generation;
	bool software_only;          /* leader: every event of the group is of SCOPE_SOFTWARE */
	/* leader: the group's PMUs, as engine_pmu_bit(): the hardware's, or the software bit */
	uint64_t pmus;
	/* leader: the first that is no software; NULL: software_only */
	struct tally_engine_pmu *group_pmu;

	/* In its context: every event on context->events, leaders in a queue too, and on an active
	 * list while on. */
	struct engine_list context_link, group_link, active_link;
	uint64_t held;               /* leader, on: PMUs that it excludes others from */
	uint64_t turn;               /* leader: its place among the queues' groups */
	bool cgroup_away;            /* the CPU runs a task outside the event's cgroup */
	bool stranded;               /* its CPU was unplugged: never scheduled again */

	/* Times, ns: as of `stamp`, which is in the context's time; see event_time.c. */
	uint64_t stamp, time_enabled, time_running;
	/* of children that are gone; engine lock */
	uint64_t child_count, child_time_enabled, child_time_running;
	uint64_t count;              /* engine_count64 */

	/* Inheritance. */
	struct engine_event *parent; /* the original: children of children point to it as well */
	struct engine_list children; /* of the original: head of child_link. Engine lock */
	struct engine_list child_link;

	/* Who opened it: prctl. NULL after the owner's exit. */
	struct tally_engine_task *owner;
	struct engine_list owner_link;
	struct tally_engine_file *file; /* of originals; NULL: closed */
	/* freed with it: an overflow may be looking whom to signal */
	struct tally_engine_file *closed_file;

	/* Output. */
	struct engine_ring *ring;    /* atomic; children use their parent's */
	struct engine_list ring_link; /* on ring->events: engine->ring_lock */
	/* mappings of its ring and AUX area: it owns the ring, and the user page is its */
	unsigned mapped;
	/* the user page's seqlock: the page's own could be overwritten by who maps it */
	uint32_t page_lock;
	uint64_t lost_samples;       /* FORMAT_LOST */
	bool itrace_started;         /* of an original; atomic */
	uint32_t header_size, id_header_size; /* bytes: engine_event_sizes() */
	/* attr.clockid's; NULL: the host's clock_ns() */
	uint64_t (*clock)(struct engine_event *event);
	tally_engine_overflow_handler *overflow_handler;
	void *overflow_data;

	/* Overflow. */
	int64_t event_limit;         /* REFRESH: overflows left; atomic */
	struct { /* attr.freq: overflow.c */
		uint64_t running, count; /* time_running and count when a tick last looked */
		/* when the present burst of overflows began, and how many they are */
		uint64_t burst_stamp;
		uint64_t burst_count;    /* … and the events that they stand for */
		uint32_t burst;
		uint32_t fraction;       /* of a period: carried, in 1/65536 */
		uint64_t period;         /* wanted, in 1/65536 */
		uint32_t windows;        /* that it was reckoned from */
	} frequency;
	uint32_t interrupts;         /* since the tick; ENGINE_THROTTLED: stopped until it */
	uint64_t interrupts_tick;    /* the tick they belong to */
	uint32_t pending;            /* ENGINE_PENDING_…, atomic */
	int pending_code;            /* POLL_IN or POLL_HUP */
	uint64_t pending_address;    /* sigtrap's */
	struct engine_event *pending_next; /* on engine_cpu.pending; see overflow.c */
	uint32_t pending_queued;     /* atomic */
	unsigned pending_cpu;        /* on whose queue it is */

	/* By kind. */
	/* software, tracepoint: on a CPU's list while active */
	struct engine_hit_link hit_link;
	struct engine_list breakpoint_link;   /* breakpoint: on engine->breakpoints */
	struct tally_engine_timer timer;      /* clock events */
	/* tracepoints: a hit but adds to `count`: no samples, filter or modes left out */
	bool counts_only;
	struct tally_trace_event *tracepoint;
	/* tracepoints: on the list of events that count tasks */
	struct engine_hit_link of_task_link;
	struct tally_filter *filter;          /* atomic pointer */
};

#define ENGINE_THROTTLED UINT32_MAX
#define ENGINE_PENDING_WAKEUP 1u
#define ENGINE_PENDING_DISABLE \
	2u /* who schedules the event out meanwhile clears it, and moves the event to OFF */
#define ENGINE_PENDING_SIGTRAP 4u
#define ENGINE_PENDING_SIGNAL 8u

/* Groups in the order in which they are tried: leaders, by group_link. */
struct engine_queue {
	struct engine_list pinned, flexible;
};

/* A task's events, or a CPU's.  One context holds the events of all PMUs. */
struct engine_context {
	struct engine_retired retired;
	struct engine_lock lock;
	struct tally_engine *engine;
	struct tally_engine_task *task; /* NULL: a CPU's */
	/* a CPU's: its number; a task's: where it is scheduled in, or -1.  Atomic. */
	int cpu;
	/* context_link; the newest first, as side-band and exits go through them */
	struct engine_list events;
	struct engine_queue any;   /* groups that are bound to no CPU; a CPU's: all */
	/* a task's groups that are bound to one, by cpu % by_cpu_size; NULL: in `any` */
	struct engine_queue *by_cpu;
	unsigned by_cpu_size, bound_groups;
	uint64_t next_turn;
	/* groups that are on: leaders, by active_link */
	struct engine_list active_pinned, active_flexible;
	unsigned event_count, active_count;
	uint64_t time;             /* ns that it was on a CPU, as of the operation under way */
	uint64_t offset;           /* while `running`: the host's clock less the time */
	bool running, dead;
	uint64_t pmus, pinned_pmus; /* of its groups, of its pinned ones, since it was last empty */
	/* PMUs that some flexible group found no room on at its last turn */
	uint64_t rotate;
	unsigned frequency_events; /* with attr.freq: a tick has to look at them */
	unsigned references;
};

/* What each CPU has. */
struct engine_cpu {
	struct engine_context context;
	unsigned number;
	bool up;
	uint32_t hits;                     /* in progress: a bit for each level */
	uint64_t dropped[TALLY_LEVELS];
	/* walks of tracepoints' probes, and of listeners that count, in progress */
	unsigned walks;
	struct engine_hits software[TALLY_SW_MAX];
	unsigned cgroup_events;            /* in the context: a switch has to look at them */
	/* of the current task while it is scheduled in, or NULL */
	struct engine_context *task_context;
	/* PMUs of SCOPE_HARDWARE that an exclusive group holds: see group.c */
	uint64_t exclusive;
	uint32_t active[64];               /* events that are on, by the PMU's bit */
	uint64_t tick;                     /* ticks so far */
	uint64_t throttled_tick;           /* the last in which an event was throttled */
	struct engine_event *pending;      /* overflow.c; atomic */
	uint64_t *chains
		[TALLY_LEVELS]; /* call chain scratch: ENGINE_STACK_LIMIT + contexts words; made at the first
	                                      event with CALLCHAIN */
	struct engine_event **breakpoints; /* by slot */
};

struct tally_engine_process {
	struct tally_engine *engine;
	int32_t pid;
	unsigned references;       /* tasks + 1 until process_exit */
	struct tally_engine_file **files;
	bool *close_on_exec;
	unsigned file_capacity, descriptor_limit; /* RLIMIT_NOFILE */
	unsigned used_below;       /* no descriptor below it is free */
};

struct tally_engine_task {
	struct engine_retired retired;
	struct tally_engine *engine;
	struct tally_engine_process *process;
	struct tally_engine_identity identity;
	struct engine_context *context; /* NULL: it never had an event */
	struct engine_list owned;  /* events that it opened: owner_link */
	struct engine_list link;   /* on engine->tasks */
	unsigned references;
	bool exited;
	bool migrated;             /* since it last ran */
	/* where it runs, as tally_engine_switch_in() said, or -1.  Atomic. */
	int cpu;
	void *host_task;
};

struct engine_settings {
	long paranoid, max_sample_rate, mlock_kb, max_stack, max_contexts_per_stack, user_access;
};

struct tally_engine {
	struct tally_engine_host host;
	struct engine_cpu *cpus;   /* host.cpus of them */
	struct tally_engine_pmu *pmus; /* in the order in which they are asked */
	struct tally_engine_pmu *numbered[62]; /* those with a bit of their own: pmu_set.c */
	uint32_t next_type;
	uint64_t next_id;          /* atomic */
	struct engine_settings settings;
	uint32_t samples_per_tick; /* max_sample_rate's share of a tick */
	struct engine_list tasks;
	/* What is to be freed: those that wait, and the lot that goes when all CPUs were seen
	 * outside hits, `cpus_seen` of which, the first, were.  Engine lock. */
	struct engine_retired *retired, **retired_end, *departing; /* oldest first */
	unsigned retired_count, cpus_seen;
	struct tally_engine_statistics statistics; /* events, bytes: engine lock */
	/* Events that want side-band records, so that nobody else pays: counts by kind
	 * (sideband.c). */
	struct {
		unsigned mmap, comm, task, switches, namespaces, ksymbol, cgroup, text_poke;
	} wanted;
	struct engine_list breakpoints; /* breakpoint_link: who has a slot. Engine lock */
	struct engine_tracepoints *tracepoints; /* tracepoint.c's own */
	unsigned stack_users;      /* events with CALLCHAIN: max_stack can't change */
	size_t locked_pages;       /* charged under mlock_kb */
	struct engine_mapping *mappings; /* of all processes; engine lock */
	/* which events write to which ring: event->ring, ring->events */
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

/* Where the context is not locked: it may be another the next moment. */
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
/* Frees it by retired->free once no hit can stand on it, and after all that was retired before.
 * [surface] */
void engine_retire(struct tally_engine *engine, struct engine_retired *retired,
		   void (*free)(struct tally_engine *engine, struct engine_retired *retired));
/* Frees what can be by now: called at each surface call's end. */
void engine_reap(struct tally_engine *engine);
/* Around a system call: the host's lock; leaving reaps. */
void engine_enter(struct tally_engine *engine);
void engine_leave(struct tally_engine *engine);
/* Copies from and to the caller: -EFAULT. */
int engine_copy_in(struct tally_engine *engine, void *to, const void *from, size_t size);
int engine_copy_out(struct tally_engine *engine, void *to, const void *from, size_t size);
bool engine_capable(struct tally_engine *engine, enum tally_engine_capability capability);
/* interrupts off, spins. [cpu] */
uintptr_t engine_lock(struct tally_engine *engine, struct engine_lock *lock);
void engine_unlock(struct tally_engine *engine, struct engine_lock *lock, uintptr_t state);

/* --- engine_task.c: tasks and processes ----------------------------------- */

/* The calling task, or NULL. */
struct tally_engine_task *engine_current(struct tally_engine *engine);
/* The task of that tid, or NULL. */
struct tally_engine_task *engine_find_task(struct tally_engine *engine, int32_t tid);
void engine_task_get(struct tally_engine_task *task);
void engine_task_put(struct tally_engine_task *task);

/* --- pmu.c ---------------------------------------------------------------- */

/* H2: finds the PMU: the one of attr.type first, then (HARDWARE, HW_CACHE) the generic ones;
 * -ENOENT asks the next.  Checks capabilities and scope against attr. */
int engine_pmu_init_event(struct engine_event *event);
void engine_pmu_disable(struct tally_engine_pmu *pmu); /* optional ops */
void engine_pmu_enable(struct tally_engine_pmu *pmu);
void engine_pmu_release_event(struct engine_event *event); /* its event_release */
bool engine_pmu_counts_on(const struct tally_engine_pmu *pmu, unsigned cpu);

/* --- pmu_set.c: sets of PMUs, a bit each ---------------------------------- */

#define ENGINE_PMU_SOFTWARE (1ull << 62) /* all of SCOPE_SOFTWARE */
#define ENGINE_PMU_OTHERS (1ull << 63)   /* hardware PMUs past the 62nd: treated as one */
/* At registration (before it is asked for events) and unregistration: gives the PMU a bit, takes it
 * back. */
void engine_pmu_number(struct tally_engine *engine, struct tally_engine_pmu *pmu);
void engine_pmu_unnumber(struct tally_engine *engine, struct tally_engine_pmu *pmu);
uint64_t engine_pmu_bit(const struct tally_engine_pmu *pmu);
/* engine_pmu_disable(), engine_pmu_enable() and ops->switched() of the set's hardware PMUs.
 * [cpu] */
void engine_pmus_disable(struct tally_engine *engine, uint64_t set);
void engine_pmus_enable(struct tally_engine *engine, uint64_t set);
void engine_pmus_switched(struct tally_engine *engine, uint64_t set, struct tally_engine_task *task,
			  bool in);

/* --- attr_check.c --------------------------------------------------------- */

/* Copies an attr of any size from the caller (A2) and checks what perf_copy_attr() checks; -E2BIG
 * writes the supported size back. */
int engine_attr_copy(struct tally_engine *engine, const void *user, struct tally_attr *attr);

/* What perf_event_paranoid lets the caller do: 0 or -EACCES. */
int engine_allow_kernel(struct tally_engine *engine);
int engine_allow_cpu(struct tally_engine *engine);

/* --- open.c: events' life ------------------------------------------------- */

/* Allocates an event and finds its PMU; nothing is installed yet.  `parent` for inherited ones: the
 * original. */
int engine_event_new(struct tally_engine *engine, const struct tally_attr *attr,
		     struct tally_engine_task *task, int cpu, struct engine_event *leader,
		     struct engine_event *parent, struct engine_event **out);
void engine_event_get(struct engine_event *event);
/* The last reference: PMU's release, ring's detachment, then retired. Not in any context by then.
 * [surface] */
void engine_event_put(struct engine_event *event);
/* The descriptor's last close: removes it and its children from their contexts; a leader's siblings
 * become single events. [surface] */
void engine_event_close(struct engine_event *event);

/* --- file.c --------------------------------------------------------------- */

/* The file of the caller's descriptor, or NULL. */
struct tally_engine_file *engine_file(struct tally_engine *engine, int fd);
/* Makes sure that the next install finds a descriptor, the lowest free one: 0, -EMFILE, -ENOMEM. */
int engine_files_room(struct tally_engine_process *process);
int engine_file_install(struct tally_engine_process *process, struct tally_engine_file *file,
			bool close_on_exec);
void engine_file_put(struct tally_engine_file *file);
void engine_files_release(struct tally_engine_process *process);
int engine_files_fork(const struct tally_engine_process *parent,
		      struct tally_engine_process *child);
void engine_files_exec(struct tally_engine_process *process);

/* --- context.c: contexts, and what the surface does to the events in them ---- */

/* Of the public functions context_schedule.c has tally_engine_switch_out, _switch_in, _migrate,
 * _tick, _cpu_up and _cpu_down. */

void engine_context_init(struct engine_context *context, struct tally_engine *engine,
			 struct tally_engine_task *task, int cpu);
/* The context that an event of this task (NULL: of that CPU) belongs in, made when there is none:
 * -ENOMEM; -ESRCH: the task has exited.  No reference is taken: events hold theirs once they are
 * installed. [surface] */
int engine_context_find(struct tally_engine *engine, struct tally_engine_task *task, int cpu,
			struct engine_context **out);
void engine_context_put(struct engine_context *context);
/* Runs function(event, argument) where event->context may be changed: on the CPU where it is on, or
 * here with its lock held; in either case locked and with interrupts off.  An event that was
 * removed: here. [surface] */
void engine_context_call(struct engine_event *event,
			 void (*function)(struct engine_event *event, void *argument),
			 void *argument);
/* Adds the event (with its state OFF or INACTIVE) to the context, to its leader's group, and
 * schedules it in if it can.  A CPU that went offline meanwhile: event->context stays NULL.
 * [surface] */
void engine_context_install(struct engine_context *context, struct engine_event *event);
/* Takes it out: counts are folded in, its state becomes OFF (ERROR stays) or EXIT, event->context
 * NULL.  With `detach` a member leaves its group and a leader's siblings become single events.
 * [surface] */
void engine_context_remove(struct engine_event *event, bool detach, bool exiting);
/* ioctl ENABLE, DISABLE on one event (B3, B4, B7); children follow. [surface] */
void engine_event_enable(struct engine_event *event);
void engine_event_disable(struct engine_event *event);
/* The same without its children. */
void engine_event_enable_alone(struct engine_event *event);
void engine_event_disable_alone(struct engine_event *event);
/* From tally_engine_run_pending(): on this CPU, where it is active. [cpu] */
void engine_event_disable_here(struct engine_event *event);
/* H3: brings count and times up to date: on the event's CPU if ACTIVE.  `group`: the leader's whole
 * group.  Then `look` (optional) is called there and then, with the context locked and interrupts
 * off: what it reads is of one moment. What is read later may be of several, when the event is
 * another task's. [surface] */
void engine_event_sync(struct engine_event *event, bool group,
		       void (*look)(struct engine_event *event, void *argument), void *argument);

/* --- event_time.c: states and times --------------------------------------- */

/* Moves an event to a state (H1), accounting its times, and its group's, up to context->time.
 * Context locked. */
void engine_event_set_state(struct engine_event *event, enum engine_event_state state);
/* Times up to context->time. Context locked. */
void engine_event_update_times(struct engine_event *event);
/* Times as of now, without changing them: for user pages and samples.  *now: the host's clock.
 * [hit] */
void engine_event_times(struct engine_event *event, uint64_t *now, uint64_t *enabled,
			uint64_t *running);
/* Value with the counts of children that are gone. */
uint64_t engine_event_count(struct engine_event *event);

/* --- group.c -------------------------------------------------------------- */

/* B5, B7: adds leader and members to their PMUs, or none: 0 or -EAGAIN. Context locked, its time up
 * to date. [cpu] */
int engine_group_schedule_in(struct engine_event *leader, struct engine_cpu *cpu);
void engine_group_schedule_out(struct engine_event *leader, struct engine_cpu *cpu);
/* May this event's group run on this CPU (filter by cpu, PMU's CPUs, cgroup)? */
bool engine_event_fits(const struct engine_event *event, const struct engine_cpu *cpu);

/* --- read.c --------------------------------------------------------------- */

/* read(2) by read_format, children summed in: bytes, 0 in ERROR, -ENOSPC.  [surface] */
long engine_event_read(struct engine_event *event, void *bytes, size_t size);

/* --- control.c: ioctls ---------------------------------------------------- */

long engine_event_ioctl(struct engine_event *event, unsigned long request, uintptr_t argument);

/* --- inherit.c ------------------------------------------------------------ */

int engine_inherit_fork(struct tally_engine_task *parent, struct tally_engine_task *child,
			bool thread);
void engine_inherit_exit(struct tally_engine_task *task);
void engine_inherit_exec(struct tally_engine_task *task); /* enable_on_exec, remove_on_exec */

/* --- overflow.c ----------------------------------------------------------- */

/* Of the public functions: tally_engine_pmu_count, _period_elapsed, _overflow, _run_pending,
 * _set_overflow_handler. */

/* Enters a hit on this CPU, `cpu`, at its level: the level, or -1: one is in progress there, and
 * the drop is counted. [hit] */
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
/* Of an event whose `interrupts` are ENGINE_THROTTLED: before it is added to its PMU again (its
 * ticks may have been missed while it was away), without `start`. Writes UNTHROTTLE for a leader.
 * [cpu] */
void engine_event_unthrottle(struct engine_event *event, bool start);
/* At the tick, of both contexts of a CPU, cpu->tick being one more already: adapts periods,
 * unthrottles.  Looks at no event when there is nothing to do. Context locked. [cpu] */
void engine_context_tick(struct engine_context *context, struct engine_cpu *cpu);
/* One overflow: throttling when `throttle`, frequency, REFRESH, the handler, signals.  True: stop
 * the event. [hit] */
bool engine_overflow(struct engine_event *event, struct engine_cpu *cpu, bool throttle,
		     const struct tally_engine_hit *hit, const struct tally_engine_regs *regs);
/* engine->samples_per_tick from the settings. */
void engine_throttle_rate(struct tally_engine *engine);
int engine_event_refresh(struct engine_event *event, uint64_t overflows); /* IOC_REFRESH */
int engine_event_period(struct engine_event *event, uint64_t period);     /* IOC_PERIOD */
/* Asks tally_engine_run_pending() for ENGINE_PENDING_… of this event. [hit] */
void engine_event_pend(struct engine_event *event, uint32_t what);
/* Takes it off every queue before it is freed. [surface] */
void engine_event_unpend(struct engine_event *event);

/* --- sample.c: records ---------------------------------------------------- */

/* header_size and id_header_size from attr. */
void engine_event_sizes(struct engine_event *event);
/* A7: can every member of the group still be read, by its own format, when so many more join? */
bool engine_event_size_fits(const struct engine_event *event, unsigned new_siblings);
/* The default overflow handler: writes a sample, forward or backward. [hit] */
void engine_output_sample(struct engine_event *event, struct engine_cpu *cpu,
			  const struct tally_engine_hit *hit, const struct tally_engine_regs *regs);
/* The sample_id trailer of other records; fills at most 48 bytes, as long as event->id_header_size.
 * [hit] */
size_t engine_sample_id(struct engine_event *event, uint8_t *bytes);

/* --- sideband.c ----------------------------------------------------------- */

/* +1 at open, -1 at free: engine->wanted */
void engine_sideband_account(struct engine_event *event, int more);
void engine_output_fork(struct tally_engine_task *child, struct tally_engine_task *parent);
void engine_output_exit(struct tally_engine_task *task);
/* and names it so */
void engine_output_comm(struct tally_engine_task *task, const char *comm, bool exec);
/* inherit_stat */
void engine_output_read(struct engine_event *event, struct tally_engine_task *task);
void engine_output_switch(struct tally_engine *engine, struct tally_engine_task *previous,
			  struct tally_engine_task *next, bool out, bool preempted);
/* ITRACE_START, unless the PMU has said that the trace began, or isn't of that kind. [cpu] */
void engine_tell_itrace_start(struct engine_event *event);
void engine_output_throttle(struct engine_event *event, bool throttled); /* [hit] */

/* --- software.c, breakpoint.c, tracepoint.c ------------------------------- */

int engine_software_register(struct tally_engine *engine);
int engine_breakpoint_register(struct tally_engine *engine);
int engine_tracepoint_register(struct tally_engine *engine); /* and unregister at free: */
void engine_tracepoint_unregister(struct tally_engine *engine);
/* C7: one hit of `weight` on an active event of software kind: counts, and samples by period, with
 * exclude_* looked at; its filter was. [hit], between engine_hit_enter and leave */
void engine_swevent_hit(struct engine_event *event, struct engine_cpu *cpu, uint64_t weight,
			struct tally_engine_hit *hit, const struct tally_engine_regs *regs);
/* The count alone, active or not: was it counted? [hit] */
bool engine_swevent_count(struct engine_event *event, uint64_t weight,
			  const struct tally_engine_regs *regs);
/* add, del, start, stop, read of PMUs whose events are listeners on `hits` lists. */
int engine_swevent_add(struct engine_event *event, unsigned flags, struct engine_hits *hits);
void engine_swevent_del(struct tally_pmu_event *event, unsigned flags);
void engine_swevent_start(struct tally_pmu_event *event, unsigned flags);
void engine_swevent_stop(struct tally_pmu_event *event, unsigned flags);
void engine_swevent_read(struct tally_pmu_event *event);
/* IOC_SET_FILTER of a tracepoint: NULL-ended text already in the engine's memory. */
int engine_tracepoint_set_filter(struct engine_event *event, const char *text);
int engine_breakpoint_modify(struct engine_event *event, const struct tally_attr *attr);

/* --- ring_buffer.c -------------------------------------------------------- */

/* A record being written. */
struct engine_output {
	struct engine_ring *ring;
	struct engine_event *event;
	uint64_t offset;    /* where the next byte goes, free-running */
	uintptr_t wakeup;   /* wake-ups due when this began */
	bool owned;         /* took a ring without a CPU: ring_buffer.c */
};

/* Reserves `size` bytes (a multiple of 8) in the ring of the event (of its parent's), with a LOST
 * record before it when one is due.  0; -ENOSPC: no ring, paused, or full: lost is counted.
 * Exactly `size` bytes are to be copied or skipped before the end, on the same CPU.  [hit] between
 * engine_hit_enter() and leave(), or with the engine lock held: else the ring could be freed
 * meanwhile. */
int engine_output_begin(struct engine_output *output, struct engine_event *event, uint32_t size);
void engine_output_copy(struct engine_output *output, const void *bytes, size_t size);
void engine_output_skip(struct engine_output *output, size_t size); /* zeroes */
/* it was a SAMPLE: wakeup_events counts those alone */
void engine_output_sampled(struct engine_output *output);
void engine_output_end(struct engine_output *output);

/* --- ring_map.c: mmap, SET_OUTPUT ----------------------------------------- */

/* D1, D4.  `offset` 0: the user page and the data behind it; else the AUX area, as the user page's
 * aux_offset and aux_size say.  A mapping holds a reference to event->file, as mmap(2)'s does.
 * [surface] */
int engine_event_map(struct engine_event *event, size_t size, bool writable, bool shared,
		     uint64_t offset, void **address);
/* -EINVAL: no such mapping, or part of one. [surface] */
int engine_event_unmap(struct tally_engine *engine, void *address, size_t size);
/* Its address space goes: at exec and exit. [surface] */
void engine_mappings_release(struct tally_engine_process *process);
/* D3.  NULL: none. [surface] */
int engine_event_set_output(struct engine_event *event, struct engine_event *target);
int engine_event_pause_output(struct engine_event *event, bool pause);
/* Takes the event off its ring: before event->file is freed (who wakes a ring's events holds
 * ring_lock, not the engine lock). [surface] */
void engine_ring_detach(struct engine_event *event);
/* The ring has something that poll has to tell of, which this call takes: atomic_xchg(&rb->poll, 0)
 * in the kernel.  Without a ring false, and poll says POLLHUP. [surface] */
bool engine_ring_has_data(struct engine_event *event);
/* From run_pending(): host->wake() for every event that writes to the ring of this one. [cpu] */
void engine_ring_wakeup(struct engine_event *event);

/* --- userpage.c ----------------------------------------------------------- */

void engine_user_page_init(struct engine_event *event, struct tally_user_page *page,
			   uint64_t data_size);
/* D5: lock, index, offset, times; nothing when it is not mapped.  On the CPU where the event is
 * active, or with its context locked. [hit] */
void engine_user_page_update(struct engine_event *event);

#endif
