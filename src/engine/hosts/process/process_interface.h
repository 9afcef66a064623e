/* perf_event_open(2) inside a program: what the files process_interface*.c share.
 *
 * An emulated event lives in the engine of the thread that it counts.  This engine is the
 * interface's own, apart from the one that counts the plan's events: so the program's prctl(2), its
 * limits and its privileges concern only what the program opened.  It is made when the thread's
 * first event is opened.
 *
 * The descriptor that the program gets is a memfd.  dup(2), fork(2) and exec(2) keep its inode, and
 * its memory holds the event's ring, so that the program's mmap(2) is the kernel's own.
 *
 * The pool.  Memory that all processes of the command share has an entry for each event (struct
 * interface_event) and for each thread (struct interface_task).  A thread that uses another
 * thread's event leaves its call in the other thread's entry, sends it PROCESS_SIGNAL and waits:
 * each engine is used only by its own thread.  While it waits, it serves others.  If a thread has
 * ended, its events' last values are in the pool.
 *
 * Turns.  All of this runs with every signal blocked, from interface_begin() to interface_end(): so
 * neither the program's handlers nor ours meet an engine or a lock in the middle of a change. */
#ifndef TALLY_PROCESS_INTERFACE_H
#define TALLY_PROCESS_INTERFACE_H

#include "process/process_agent.h"
#include "process/process_call.h"

enum {
	INTERFACE_EVENTS = 4096,       /* events at the same time, in all processes */
	INTERFACE_TASKS = 2048,        /* threads at the same time */
	INTERFACE_DESCRIPTORS = 65536, /* descriptors from here up are never events */
	INTERFACE_OPEN = 4096,         /* events of one thread */
	INTERFACE_HEAP = 8 << 20,      /* bytes for one thread's engine; only used pages cost */
	INTERFACE_PLACES = 1024,       /* mappings of code; more may be told twice */
	INTERFACE_TEXT = 4096,         /* bytes: the largest argument behind a pointer */
	INTERFACE_ANSWER = 24576,      /* bytes: the largest read(2) */
	INTERFACE_SIGNALS = 16         /* signals that wait to be sent */
};

enum interface_operation {
	/* arguments: cpu, leader's descriptor or -1, flags, -1 for a whole CPU, and then pid; text:
	 * attr */
	INTERFACE_OPEN_EVENT,
	INTERFACE_READ,  /* arguments: size */
	INTERFACE_IOCTL, /* arguments: request, argument unless it is a pointer */
	INTERFACE_POLL,
	INTERFACE_FCNTL, /* arguments: command, argument, the program's descriptor */
	INTERFACE_MAP,   /* arguments: size, writable, shared, offset, memfd: pid and descriptor */
	INTERFACE_UNMAP, /* arguments: address from MAP, size, pid of the process that maps */
	INTERFACE_CLOSE,
	INTERFACE_FORKED, /* arguments: pid and tid of a task that this thread has made */
	INTERFACE_PUBLISH /* brings the entry in the pool up to date */
};

/* A call that a thread carries out on an event of its own engine. */
struct interface_call {
	uint32_t operation;
	int32_t descriptor; /* of the engine */
	int64_t arguments[6];
	int64_t result;    /* or -errno */
	uint64_t event_id; /* OPEN_EVENT: the id to give */
	uint32_t event;    /* OPEN_EVENT: index in the pool */
	uint64_t
		serial; /* of the descriptor's event, or 0; 0 in the answer: there is no such event */
	uint64_t address; /* MAP: where the engine has the ring */
	uint8_t text[INTERFACE_TEXT] __attribute__((aligned(8)));
	uint8_t answer[INTERFACE_ANSWER] __attribute__((aligned(8)));
};

enum interface_call_state {
	INTERFACE_IDLE,
	INTERFACE_ASKED,
	INTERFACE_SERVING,
	INTERFACE_ANSWERED
};

/* A thread that can be asked; interface_pool->names says which it is. */
struct interface_task {
	uint32_t asker; /* tid of the thread that uses `call`; 0: none */
	uint32_t state; /* enum interface_call_state; a futex */
	struct interface_call call;
};

enum interface_deferral {
	INTERFACE_DEFERS_OPEN = 1,
	INTERFACE_DEFERS_STATE = 2, /* interface_event.enabled tells which */
	INTERFACE_DEFERS_RESET = 4
};

/* Which thread has an entry: its pid above its tid, in one atomic word, so that no thread sees a new
 * tid with the pid of the entry's last owner.  0: the entry is free. */
struct interface_name {
	uint64_t thread;
};

struct interface_values {
	uint64_t count, enabled_ns, running_ns, lost;
};

enum interface_event_state {
	INTERFACE_FREE,
	INTERFACE_CHANGES, /* it is being made or freed */
	INTERFACE_USED
};

/* An event. */
struct interface_event {
	uint32_t state;   /* enum interface_event_state; atomic */
	uint32_t holders; /* processes that have descriptors or mappings of it */
	/* pids of the first of them: if all have been killed, the entry is free */
	int32_t holder_pids[8];
	uint32_t gone;              /* 1: its thread has ended, `own` is final */
	int32_t pid, tid;           /* the thread that it counts */
	int32_t opener, opener_tid; /* the process and the thread that opened it */
	int32_t executes;           /* pid of a holder that is executing another program; 0: none */
	uint32_t generation;        /* of a leader: grows with each change of its group */
	int32_t descriptor;         /* in that thread's engine */
	uint32_t parent;            /* of an inherited event: index + 1 of the original, and */
	uint64_t parent_serial;     /* the original's serial */
	uint32_t leader;            /* index + 1 of its group's leader, perhaps itself */
	uint64_t id;
	uint64_t serial; /* never the same again: tells whether the entry was used anew */
	uint64_t order;  /* grows: members of a group are in this order */
	uint64_t inode;  /* of the memfd */
	uint64_t flags, read_format, sample_period; /* of attr */
	int32_t cpu;                                /* as it was opened */
	uint32_t enabled;                           /* as the last call left it */
	/* as of the last PUBLISH; sums of inherited events whose threads have ended */
	struct interface_values own, children;
	/* what it counted in earlier programs of its thread */
	struct interface_values before;
	bool goes_on; /* `before` counts */
	/* moves of values between these, or from inherited events: those in progress, and all */
	uint32_t moving, moves;
	/* What the event has again in its thread's next program: the mappings that other processes
	 * have of its ring, with a memfd of theirs; settings of its file; index + 1 of the event
	 * whose ring it writes to. */
	struct {
		uint32_t mappings;
		int32_t pid, fd;
		uint64_t size;    /* bytes */
		uint64_t address; /* in the thread's engine */
		bool writable;
	} ring;
	struct {
		bool set;
		int32_t flags, signal, owner_type, owner, signal_fd;
	} file;
	uint32_t output;
	struct tally_attr attr;
	/* Its thread was stopped when it was opened or changed: it opens and changes the event when
	 * it goes on.  enum interface_deferral. */
	uint32_t deferred;
	/* Threads that wait in poll(2): PROCESS_SIGNAL wakes them. */
	int32_t waiters[4]; /* tids */
	int32_t waiter_pids[4];
};

struct interface_pool {
	uint64_t next_id; /* atomic, like all of this */
	uint64_t next_order;
	uint32_t deferrals;   /* events with `deferred` */
	uint32_t events_used; /* entries from here on were never used */
	struct interface_event events[INTERFACE_EVENTS];
	struct interface_name names[INTERFACE_TASKS];
	struct interface_task tasks[INTERFACE_TASKS];
};

/* Mappings of code that the thread's events know. */
struct interface_place {
	uint64_t start, end, offset, inode;
};
struct interface_object {
	uint64_t base, name, dynamic, next; /* as struct link_map begins */
};
struct interface_maps {
	struct interface_place at[INTERFACE_PLACES], next[INTERFACE_PLACES];
	unsigned count;
	uint64_t read_ns;     /* CPU time of the last reading */
	uint64_t last_object; /* the last of ld.so's list, as it was then; 0: unknown */
	struct interface_object last;
};

/* A thread's part. */
struct process_interface {
	struct process_thread *thread;
	struct interface_task *self; /* its entry in the pool; NULL: there is none */
	struct tally_engine *engine; /* NULL: it has no event yet */
	struct tally_engine_process *process;
	struct tally_engine_task *task;
	bool pending;     /* the engine asked for run_pending() */
	bool cpu_event;   /* an event of a whole CPU is being opened */
	bool inherits;    /* events are inherited or go on: without privilege */
	uint64_t tick_ns; /* CPU time of the last tick */
	/* what the engine has been told of rusage and CPUs */
	uint64_t minor_faults, major_faults, switches, migrations;
	unsigned migration_events; /* open events that count migrations */
	/* the CPU that the engine takes the thread to be on, and the one that it runs for */
	unsigned on_cpu, this_cpu;
	unsigned cpus;
	unsigned usage_events;  /* open events that count those */
	unsigned usage_samples; /* … that sample them */
	unsigned open_events;
	unsigned mapping_events, comm_events; /* open events that want MMAP or COMM records */
	struct interface_maps maps;           /* valid if there are mapping_events */
	unsigned forks_told;                  /* FORK records of children */
	unsigned renames, renames_told;       /* other names that were seen; at the last prctl(2) */
	bool is_traced;                       /* by ptrace(2), at the last look */
	bool awaits_switch;                   /* events wait until the thread is scheduled in */
	bool starts_timer;                    /* a timer was started in this turn */
	bool was_frozen;
	uint32_t events[INTERFACE_OPEN];  /* by the engine's descriptor: index in the pool + 1 */
	uint64_t serials[INTERFACE_OPEN]; /* of those entries */
	int signal_fds[INTERFACE_OPEN];   /* the program's descriptor of F_SETFL with O_ASYNC */
	int ring_fd;                      /* the memfd of the MAP in progress */
	bool ring_goes_on;                /* it has records already */
	struct {
		int32_t pid, tid;
		int type, owner, number, code, fd;
		uint64_t data, address; /* of SIGTRAP */
		uint32_t event_type;
	} signals[INTERFACE_SIGNALS];
	unsigned signal_count;
	struct interface_call call;           /* of this thread to itself */
	uint64_t words[INTERFACE_ANSWER / 8]; /* of the read in progress */
	char path[4096];                      /* of the mapping in progress */
	size_t locked_pages;                  /* charged beyond perf_event_mlock_kb */
	struct process_heap heap;             /* the engine's memory */
};

/* What a thread does with events, from interface_begin() to interface_end(). */
struct interface_turn {
	uint64_t mask;                       /* signals that were blocked */
	struct process_interface *interface; /* NULL: the thread is not counted */
};

/* --- process_interface_pool.c --------------------------------------------- */

/* NULL until interface_pool_make() has succeeded. */
extern struct interface_pool *interface_pool __attribute__((visibility("hidden")));
/* Maps the pool, in memory of this process and its children, unless process_interface_map() has
 * done that.  Returns 0 or -errno. */
int interface_pool_make(void);
/* Has `event` inherited `original`? */
static inline bool interface_is_heir(const struct interface_event *event,
				     const struct interface_event *original)
{
	return __atomic_load_n(&event->state, __ATOMIC_SEQ_CST) == INTERFACE_USED &&
	       event->parent == (uint32_t)(original - interface_pool->events) + 1 &&
	       event->parent_serial == original->serial;
}
/* Returns the serial of `event` if it has inherited `original`, otherwise 0.  The entry may be used
 * anew at any moment: its thread ends and frees it. */
static inline uint64_t interface_heir_serial(const struct interface_event *event,
					     const struct interface_event *original)
{
	uint64_t serial = __atomic_load_n(&event->serial, __ATOMIC_SEQ_CST);
	if (!interface_is_heir(event, original) ||
	    __atomic_load_n(&event->serial, __ATOMIC_SEQ_CST) != serial)
		return 0;
	return serial;
}
/* Around a move of values to where readers of `original` find them, too: meanwhile they wait. */
static inline void interface_move_begin(struct interface_event *original)
{
	__atomic_fetch_add(&original->moving, 1, __ATOMIC_SEQ_CST);
}
static inline void interface_move_end(struct interface_event *original)
{
	__atomic_fetch_add(&original->moves, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&original->moving, 1, __ATOMIC_SEQ_CST);
}
struct interface_event *interface_event_new(void); /* NULL: there are too many */
/* Frees the entries of events whose holders have all been killed. */
void interface_reap(void);
/* Frees the entry if it has that serial still. */
void interface_event_free(struct interface_event *event, uint64_t serial);
static inline bool interface_is_used(const struct interface_event *event)
{
	return __atomic_load_n(&event->state, __ATOMIC_SEQ_CST) == INTERFACE_USED;
}
/* Returns the entry of a thread, and its process; NULL: it can't be asked. */
struct interface_task *interface_task_find(int32_t tid, int32_t *pid);
/* Makes the entry of a thread, if there is none; NULL: there are too many. */
struct interface_task *interface_task_new(int32_t pid, int32_t tid);
void interface_task_end(int32_t tid);

/* --- process_interface_engine.c: the thread's engine ---------------------- */

/* Returns the thread's part, made if it is not there yet; NULL: no memory. */
struct process_interface *interface_of(struct process_thread *thread);
/* Gives an event that goes on its ring and its file's settings; then the ring of another event. */
void interface_restore(struct process_interface *interface, struct interface_event *event);
void interface_restore_output(struct process_interface *interface,
			      const struct interface_event *event);
void interface_look_for_tracer(struct process_interface *interface);
/* Brings the thread's entries up to date. */
void interface_publish(struct process_interface *interface);
/* Carries out a call on this thread's engine. */
void interface_execute(struct process_interface *interface, struct interface_call *call);
/* Carries out an ioctl(2) for an event whose thread has ended: on an event of this thread's engine
 * with the same attributes, which is made for that alone.  Returns the result or -errno. */
long interface_stand_in(struct process_interface *interface, const struct interface_event *event,
			struct interface_call *call);
/* Returns what OPEN_EVENT would say of the attributes and flags: 0 or -errno.  No event is left. */
int interface_try_open(struct process_interface *interface, const struct interface_call *call);
/* Tells the engine what has happened, and afterwards does what the engine asked for. */
void interface_catch_up(struct process_interface *interface);
void interface_settle(struct process_interface *interface);
/* Only the second, in a handler too: signals, wake-ups, disabling. */
void interface_run_pending(struct process_interface *interface);
/* The thread ends: its events' values stay in the pool. */
void interface_engine_end(struct process_interface *interface);
/* A forked child: the parent's engine is dropped. */
void interface_engine_drop(struct process_interface *interface);

/* --- process_interface_poll.c --------------------------------------------- */

/* Makes the threads look again that wait for the event. */
void interface_wake(struct interface_event *event);
/* Make this thread one that waits for the event; end that.  The first returns false if there are
 * too many: then it must look now and then. */
bool interface_wait_begin(struct interface_event *event, const struct process_thread *thread);
void interface_wait_end(struct interface_event *event, const struct process_thread *thread);

/* --- process_interface_epoll.c -------------------------------------------- */

struct epoll_event;
/* The whole of epoll_ctl(2), if `fd` is an event. */
bool interface_epoll_control(int epoll, int operation, int fd, struct epoll_event *event,
			     int *result);
/* A descriptor was closed: an event's or an epoll's. */
void interface_epoll_closed(int fd);
void interface_epoll_forked(void);

/* --- process_interface_inherit.c ------------------------------------------ */

/* Has the task `parent` events to hand on that were opened before the moment `limit`? */
bool interface_inherits_any(int32_t parent, uint64_t limit);
/* Opens them for this thread. */
void interface_inherit(struct process_interface *interface, uint64_t limit);
/* The thread has executed another program: opens the events that it had before.  `loading`: what it
 * used from execve(2) on. */
void interface_go_on(struct process_interface *interface, const struct tally_plan_usage *loading);
/* Does what others have left while the thread was stopped. */
void interface_take_deferred(struct process_interface *interface);
/* Leaves something for the event's thread. */
void interface_defer(struct interface_event *event, enum interface_deferral what);
/* The thread of an inherited event has ended: adds its values to the original's. */
void interface_fold(struct interface_event *event);

/* --- process_interface_maps.c --------------------------------------------- */

/* Reads the process's mappings.  `tells`: writes records of those that were not known. */
void interface_maps_read(struct process_interface *interface, bool tells);
/* The same, if there may be new ones.  `address`: of a sample, or 0. */
void interface_maps_look(struct process_interface *interface, uint64_t address);
/* A mapping has a record. */
void interface_maps_add(struct process_interface *interface,
			const struct tally_engine_mapping *mapping);

/* A mapping was made: for MMAP records.  `fd` -1: anonymous memory. */
void interface_mapped(void *address, size_t size, int protection, int flags, int fd,
		      uint64_t offset);

/* --- process_interface_read.c --------------------------------------------- */

/* As read(2) on an event's descriptor: returns a number of bytes or -errno. */
long interface_read(int fd, void *bytes, size_t size);
/* Returns the member of the group that comes after `event`, or NULL. */
struct interface_event *interface_next_member(const struct interface_event *event);

/* --- process_interface_ask.c: calls to other threads ---------------------- */

/* Carries out the call in the thread that has the event: `interface` is the caller's own part, or
 * NULL.  `call` has the answer afterwards.  Returns 0; -ESRCH: that thread has ended; -EBUSY: it is
 * stopped; -ETIMEDOUT: it doesn't answer. */
int interface_ask(struct process_interface *interface, int32_t pid, int32_t tid,
		  struct interface_call *call);
/* Serves a call that another thread has left. */
void interface_serve(struct process_interface *interface);

/* Returns 0 if the thread can be asked; -EBUSY if it is stopped; -ESRCH if it has ended, though it
 * may not be waited for yet. */
int interface_check_state(int32_t tid);

/* --- process_interface_own.c: what this process has ------------------------ */

/* Makes the tables.  Returns 0 or -errno. */
int interface_own_make(void);
bool interface_has_own(void); /* are they there? */
static inline unsigned interface_index(const struct interface_event *event)
{
	return (unsigned)(event - interface_pool->events);
}
static inline bool interface_inherits(const struct interface_event *event)
{
	return event->flags & TALLY_ATTR_INHERIT;
}
/* Returns the inode of a descriptor's file; 0: there is none. */
uint64_t interface_inode_of(int fd);
/* Adds a reference of this process.  `is_new`: it has just made the event.  Returns false if the
 * event is being closed. */
bool interface_hold(struct interface_event *event, bool is_new);
/* Takes one away.  Returns true if that was the last of all processes; the second closes the event
 * then. */
bool interface_release(struct interface_event *event);
void interface_let_go(struct interface_turn *turn, struct interface_event *event);
/* The descriptor names the event from now on. */
void interface_name_descriptor(struct interface_event *event, int fd);
/* This process has mapped the event's ring.  Returns 0 or -ENOMEM. */
int interface_note_mapping(struct interface_event *event, uintptr_t address, size_t size);
/* Forgets a mapping; *whole is its size.  Returns its event, or NULL if there is none like that. */
struct interface_event *interface_take_mapping(uintptr_t address, size_t size, size_t *whole);
bool interface_has_mappings(void);
/* Returns the bytes of the event's ring in this process; 0: it doesn't map it. */
uint64_t interface_mapped_size(const struct interface_event *event);

/* --- process_interface.c -------------------------------------------------- */

void interface_begin(struct interface_turn *turn);
void interface_end(struct interface_turn *turn);

/* Returns the call of this turn, which isn't filled in yet.  A thread that isn't counted makes no
 * calls. */
struct interface_call *interface_call_of(const struct interface_turn *turn,
					 enum interface_operation operation);
/* Has the event's thread carry out the call: interface_ask().  `serial` is the event's: if the entry
 * is another event's by now, nothing is done, and the result is -ESRCH. */
int interface_ask_event(struct interface_event *event, uint64_t serial,
			struct process_interface *interface, struct interface_call *call);
/* The events of the thread that made this one may want a FORK record. */
void interface_tell_parent(const struct process_thread *thread);

/* Returns the event of a descriptor, or NULL.  Fast if it is none. */
struct interface_event *interface_event_of(int fd);

/* Copy from and to the program's memory.  Return 0 or -EFAULT. */
int interface_copy_in(void *to, const void *from, size_t size);
int interface_copy_out(void *to, const void *from, size_t size);

/* The system calls on emulated events; each returns a result or -errno. */
long interface_open(const void *attr, int32_t pid, int cpu, int group, unsigned long flags);
long interface_ioctl(int fd, unsigned long request, uintptr_t argument);
long interface_fcntl(int fd, int command, uintptr_t argument);
/* Returns POLLIN, POLLHUP, or 0. */
int interface_poll(struct interface_event *event);
/* A descriptor was closed, or now names what another one names.  `event` may be NULL. */
void interface_closed(int fd);
void interface_duplicated(struct interface_event *event, int fd);

#endif
