/* What this process has of the events: descriptors, and mappings of rings.
 *
 * An event lives as long as some process has one of these.  So the pool counts an event's holders,
 * and each process counts its own references.  A forked child holds what its parent holds, except for
 * mappings; a program that is executed finds its descriptors by their memfds. */
#include "process/process_interface.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { MAPPINGS = 4096, PAGE = 4096, ADOPTED_MAX = 4096 };

/* A mapping of the program's. */
struct mapping {
	uintptr_t address;
	size_t size;
	uint32_t event; /* index + 1 */
};

/* The process's part. */
static struct {
	/* by descriptor: index of the event + 1; NULL: the process never had an event */
	uint16_t *descriptors;
	uint16_t *references; /* by event: descriptors and mappings of this process */
	uint64_t *serials;    /* by event: the one that `references` are of */
	struct mapping *mappings;
	unsigned mapping_count;
	int32_t lock;       /* tid of the holder */
	unsigned depth;     /* how often the holder has it besides */
	uint64_t fork_mask; /* signals that were blocked before fork(2) */
	bool forks;
} own;

/* Signals are blocked, so the holder goes on: waiters only need to let it.  The holder may take it
 * again: handlers of pthread_atfork(3) run while fork(2) holds it. */
static void lock(void)
{
	int32_t self = (int32_t)process_call(SYS_gettid), holder = 0;
	if (__atomic_load_n(&own.lock, __ATOMIC_RELAXED) == self) {
		own.depth++;
		return;
	}
	while (!__atomic_compare_exchange_n(&own.lock, &holder, self, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		holder = 0;
		process_call(SYS_sched_yield);
	}
}

static void unlock(void)
{
	if (own.depth)
		own.depth--;
	else
		__atomic_store_n(&own.lock, 0, __ATOMIC_RELEASE);
}

/* --- descriptors ---------------------------------------------------------- */

static int make_tables(void)
{
	size_t bytes = INTERFACE_DESCRIPTORS * sizeof(*own.descriptors) +
		       INTERFACE_EVENTS * (sizeof(*own.references) + sizeof(*own.serials)) +
		       MAPPINGS * sizeof(*own.mappings);
	long map = process_call(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map < 0 && map > -4096)
		return (int)map;
	own.mappings = (struct mapping *)map;
	own.serials = (uint64_t *)(own.mappings + MAPPINGS);
	own.references = (uint16_t *)(own.serials + INTERFACE_EVENTS);
	__atomic_store_n(&own.descriptors, own.references + INTERFACE_EVENTS, __ATOMIC_RELEASE);
	return 0;
}

/* Several threads may open the first event at the same time: one makes the tables. */
int interface_own_make(void)
{
	int error = 0;
	lock();
	if (!own.descriptors)
		error = make_tables();
	unlock();
	return error;
}

uint64_t interface_inode_of(int fd)
{
	struct stat about;
	if (process_call(SYS_fstat, fd, &about))
		return 0;
	return about.st_ino;
}

/* A program may have closed the descriptor by a call that is not replaced: its file tells. */
struct interface_event *interface_event_of(int fd)
{
	uint16_t *descriptors = __atomic_load_n(&own.descriptors, __ATOMIC_ACQUIRE);
	if (!descriptors || fd < 0 || fd >= INTERFACE_DESCRIPTORS)
		return NULL;
	unsigned at = __atomic_load_n(&descriptors[fd], __ATOMIC_RELAXED);
	if (!at)
		return NULL;
	struct interface_event *event = &interface_pool->events[at - 1];
	if (interface_inode_of(fd) == event->inode)
		return event;
	interface_closed(fd);
	return NULL;
}

/* An event that its last holder closes at this moment can't be held again. */
static bool share(struct interface_event *event)
{
	uint32_t holders = __atomic_load_n(&event->holders, __ATOMIC_SEQ_CST);
	while (holders && !__atomic_compare_exchange_n(&event->holders, &holders, holders + 1,
						       false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	return holders != 0;
}

/* Replaces a pid among the holders: 0 is a free place. */
static void note_holder(struct interface_event *event, int32_t from, int32_t to)
{
	for (unsigned i = 0; i < sizeof(event->holder_pids) / sizeof(event->holder_pids[0]); i++) {
		int32_t present = from;
		if (__atomic_compare_exchange_n(&event->holder_pids[i], &present, to, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return;
	}
}

/* `is_new`: this process has just made it.  Returns false if it is being closed. */
bool interface_hold(struct interface_event *event, bool is_new)
{
	unsigned at = interface_index(event);
	bool is_held = true;
	lock();
	if (own.serials[at] != event->serial)
		own.references[at] = 0;
	if (!own.references[at] && is_new)
		__atomic_fetch_add(&event->holders, 1, __ATOMIC_SEQ_CST);
	else if (!own.references[at])
		is_held = share(event);
	if (!own.references[at] && is_held)
		note_holder(event, 0, process_agent.pid);
	own.references[at] += is_held;
	own.serials[at] = event->serial;
	unlock();
	return is_held;
}

/* Does this process hold the event that has the entry now? */
static bool holds(unsigned at)
{
	const struct interface_event *event = &interface_pool->events[at];
	return own.references[at] && interface_is_used(event) && event->serial == own.serials[at];
}

/* Inherited groups lose the heir of that member too: they stay like the original. */
static void member_leaves(struct interface_event *leader)
{
	leader->generation++;
	for (unsigned i = 0; i < interface_pool->events_used; i++)
		if (interface_is_used(&interface_pool->events[i]) &&
		    interface_is_heir(&interface_pool->events[i], leader))
			interface_pool->events[i].generation++;
}

/* Closes an event, and those that inherited it.  The members of a group go on alone. */
static void close_event(struct interface_turn *turn, struct interface_event *event)
{
	unsigned used = interface_pool->events_used, own_number = interface_index(event) + 1;
	uint64_t serial = event->serial;
	if (turn->interface)
		interface_ask_event(event, serial, turn->interface,
				    interface_call_of(turn, INTERFACE_CLOSE));
	if (event->leader != own_number)
		member_leaves(&interface_pool->events[event->leader - 1]);
	for (unsigned i = 0; i < used; i++) {
		struct interface_event *other = &interface_pool->events[i];
		if (!interface_is_used(other) || other == event)
			continue;
		if (other->leader == own_number)
			other->leader = i + 1;
		if (other->output == own_number)
			other->output = 0;
		uint64_t heir = interface_heir_serial(other, event);
		if (!heir)
			continue;
		if (turn->interface)
			interface_ask_event(other, heir, turn->interface,
					    interface_call_of(turn, INTERFACE_CLOSE));
		interface_event_free(other, heir);
	}
	interface_event_free(event, serial);
}

/* Returns true if that was the last holder of all processes. */
bool interface_release(struct interface_event *event)
{
	unsigned at = interface_index(event);
	bool last = false;
	lock();
	if (holds(at) && own.references[at] == 1) {
		note_holder(event, process_agent.pid, 0);
		last = __atomic_sub_fetch(&event->holders, 1, __ATOMIC_SEQ_CST) == 0;
	}
	if (own.references[at])
		own.references[at]--;
	unlock();
	return last;
}

void interface_let_go(struct interface_turn *turn, struct interface_event *event)
{
	if (interface_release(event))
		close_event(turn, event);
}

void interface_name_descriptor(struct interface_event *event, int fd)
{
	__atomic_store_n(&own.descriptors[fd], (uint16_t)(interface_index(event) + 1),
			 __ATOMIC_SEQ_CST);
}

bool interface_has_own(void)
{
	return own.descriptors != NULL;
}

void interface_closed(int fd)
{
	struct interface_turn turn;
	interface_epoll_closed(fd);
	if (!own.descriptors || fd < 0 || fd >= INTERFACE_DESCRIPTORS || !own.descriptors[fd])
		return;
	interface_begin(&turn);
	unsigned at = __atomic_exchange_n(&own.descriptors[fd], 0, __ATOMIC_SEQ_CST);
	if (at)
		interface_let_go(&turn, &interface_pool->events[at - 1]);
	interface_end(&turn);
}

void interface_duplicated(struct interface_event *event, int fd)
{
	struct interface_turn turn;
	interface_closed(fd);
	if (!event || fd < 0 || fd >= INTERFACE_DESCRIPTORS)
		return;
	interface_begin(&turn);
	if (interface_hold(event, false))
		interface_name_descriptor(event, fd);
	interface_end(&turn);
}

/* --- mappings ------------------------------------------------------------- */

static size_t pages_of(size_t size)
{
	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

int interface_note_mapping(struct interface_event *event, uintptr_t address, size_t size)
{
	int error = -ENOMEM;
	lock();
	for (unsigned i = 0; i < MAPPINGS && error; i++) {
		if (own.mappings[i].address)
			continue;
		own.mappings[i] = (struct mapping){ address, size, interface_index(event) + 1 };
		own.mapping_count++;
		error = 0;
	}
	unlock();
	return error;
}

/* Forgets a mapping; *whole is its size.  Returns its event, or NULL if there is none like that. */
struct interface_event *interface_take_mapping(uintptr_t address, size_t size, size_t *whole)
{
	struct interface_event *event = NULL;
	lock();
	for (unsigned i = 0; i < MAPPINGS && !event; i++) {
		struct mapping *at = &own.mappings[i];
		if (!at->address || at->address != address || pages_of(at->size) != pages_of(size))
			continue;
		event = &interface_pool->events[at->event - 1];
		*whole = at->size;
		at->address = 0;
		own.mapping_count--;
	}
	unlock();
	return event;
}

bool interface_has_mappings(void)
{
	return __atomic_load_n(&own.mapping_count, __ATOMIC_RELAXED) != 0;
}

/* Returns the bytes of the event's ring in this process; 0: it doesn't map it. */
uint64_t interface_mapped_size(const struct interface_event *event)
{
	uint64_t size = 0;
	lock();
	for (unsigned i = 0; own.mapping_count && i < MAPPINGS && !size; i++)
		if (own.mappings[i].address && own.mappings[i].event == interface_index(event) + 1)
			size = pages_of(own.mappings[i].size);
	unlock();
	return size;
}

/* --- the life of threads -------------------------------------------------- */

/* The descriptors that the program has from its process's earlier program, or from its parent. */
static void adopt_descriptor(int fd)
{
	uint64_t inode = interface_inode_of(fd);
	for (unsigned i = 0; inode && i < interface_pool->events_used; i++) {
		struct interface_event *event = &interface_pool->events[i];
		if (!interface_is_used(event) || event->inode != inode)
			continue;
		/* held already by the earlier program */
		if (event->executes == process_agent.pid && !own.references[i]) {
			own.references[i] = 1;
			own.serials[i] = event->serial;
		} else if (!interface_hold(event, false)) {
			return;
		}
		interface_name_descriptor(event, fd);
		return;
	}
}

static void adopt(struct interface_turn *turn)
{
	struct rlimit limit = { .rlim_cur = 0 };
	process_call(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	int end = limit.rlim_cur < ADOPTED_MAX ? (int)limit.rlim_cur : ADOPTED_MAX;
	if (interface_own_make())
		return;
	for (int fd = 0; fd < end; fd++)
		if (process_call(SYS_fcntl, fd, F_GETFD) >= 0)
			adopt_descriptor(fd);
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		struct interface_event *event = &interface_pool->events[i];
		if (!interface_is_used(event) || event->executes != process_agent.pid)
			continue;
		event->executes = 0;
		if (!own.references[i] &&
		    __atomic_sub_fetch(&event->holders, 1, __ATOMIC_SEQ_CST) == 0)
			close_event(turn, event);
	}
}

/* A program that was executed has its thread's events; one that a child of vfork(2) has executed
 * inherits its parent's. */
static void program_begins(struct process_thread *thread, bool was_counted,
			   const struct tally_plan_usage *loading)
{
	struct interface_turn turn;
	if (!interface_pool->events_used)
		return;
	interface_begin(&turn);
	if (turn.interface) {
		interface_go_on(turn.interface, loading);
		adopt(&turn);
	}
	interface_end(&turn);
	if (!was_counted)
		thread->inherits_before = UINT64_MAX;
}

/* Each thread has an entry from its beginning on: others may open events on it. */
void process_interface_thread_begin(struct process_thread *thread,
				    const struct tally_plan_usage *loading)
{
	struct interface_turn turn;
	if (interface_pool_make())
		return;
	bool was_counted = interface_task_find(thread->tid, NULL) != NULL;
	if (loading)
		program_begins(thread, was_counted, loading);
	struct interface_task *task = interface_task_new(thread->pid, thread->tid);
	if (thread->interface)
		((struct process_interface *)thread->interface)->self = task;
	if (!task)
		return;
	if (!loading)
		interface_tell_parent(thread);
	uint64_t limit = thread->inherits_before;
	if (!limit || !interface_inherits_any(thread->identity.parent_tid, limit))
		return;
	interface_begin(&turn);
	if (turn.interface)
		interface_inherit(turn.interface, limit);
	interface_end(&turn);
}

static void note_execution(int32_t from, int32_t to)
{
	for (unsigned i = 0; own.descriptors && i < interface_pool->events_used; i++)
		if (holds(i) && interface_pool->events[i].executes == from)
			interface_pool->events[i].executes = to;
}

void process_interface_exec_begins(void)
{
	struct interface_turn turn;
	const struct process_thread *thread = process_self();
	if (!thread || !interface_pool || (!thread->interface && !own.descriptors))
		return;
	interface_begin(&turn);
	if (turn.interface && turn.interface->engine)
		interface_publish(turn.interface);
	note_execution(0, process_agent.pid);
	interface_end(&turn);
}

void process_interface_exec_failed(void)
{
	if (interface_pool)
		note_execution(process_agent.pid, 0);
}

uint64_t process_interface_moment(struct process_thread *thread)
{
	const struct process_interface *interface = thread->interface;
	if (!interface_pool)
		return 0;
	thread->forks_told = interface ? interface->forks_told : 0;
	return 1 + __atomic_load_n(&interface_pool->next_order, __ATOMIC_SEQ_CST);
}

void process_interface_thread_end(struct process_thread *thread)
{
	const uint64_t all = ~0ull;
	uint64_t mask;
	if (!interface_pool)
		return;
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(all));
	if (thread->interface)
		interface_engine_end(thread->interface);
	interface_task_end(thread->tid);
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* The child will hold what this process holds.  This is noted before it exists, so that no event
 * closes between. */
void process_interface_fork_begins(void)
{
	const uint64_t all = ~0ull;
	uint64_t mask;
	if (!own.descriptors)
		return;
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, sizeof(all));
	lock();
	own.fork_mask = mask;
	own.forks = true;
	for (unsigned i = 0; i < interface_pool->events_used; i++)
		if (holds(i))
			__atomic_fetch_add(&interface_pool->events[i].holders, 1, __ATOMIC_SEQ_CST);
}

void process_interface_fork_ends(void)
{
	uint64_t mask = own.fork_mask;
	if (!own.forks)
		return;
	own.forks = false;
	unlock();
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* The child has its parent's descriptors, but not its mappings, and its parent's engine is of no
 * use here. */
void process_interface_forked(void)
{
	struct interface_turn turn = { .interface = NULL };
	for (unsigned i = 0; i < process_agent.slots_used; i++)
		if (process_agent.threads[i].interface)
			interface_engine_drop(process_agent.threads[i].interface);
	if (!own.descriptors)
		return;
	if (own.forks)
		process_call(SYS_rt_sigprocmask, SIG_SETMASK, &own.fork_mask, NULL,
			     sizeof(own.fork_mask));
	own.forks = false;
	own.lock = 0;
	own.depth = 0;
	interface_epoll_forked();
	for (unsigned i = 0; i < interface_pool->events_used; i++)
		if (holds(i))
			note_holder(&interface_pool->events[i], 0, process_agent.pid);
	for (unsigned i = 0; i < MAPPINGS && own.mapping_count; i++) {
		uint32_t event = own.mappings[i].event;
		if (!own.mappings[i].address)
			continue;
		own.mappings[i].address = 0;
		own.mapping_count--;
		interface_let_go(&turn, &interface_pool->events[event - 1]);
	}
}

/* The process ends: events that no other process holds are closed. */
void process_interface_end(void)
{
	struct interface_turn turn;
	struct process_thread *thread = process_self();
	if (!own.descriptors) {
		if (thread)
			process_interface_thread_end(thread); /* other processes' events */
		return;
	}
	interface_begin(&turn);
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		struct interface_event *event = &interface_pool->events[i];
		bool is_held = holds(i);
		own.references[i] = 0;
		if (!is_held)
			continue;
		note_holder(event, process_agent.pid, 0);
		if (__atomic_sub_fetch(&event->holders, 1, __ATOMIC_SEQ_CST) == 0)
			close_event(&turn, event);
	}
	memset(own.descriptors, 0, INTERFACE_DESCRIPTORS * sizeof(*own.descriptors));
	interface_end(&turn);
	if (turn.interface)
		process_interface_thread_end(turn.interface->thread);
}
