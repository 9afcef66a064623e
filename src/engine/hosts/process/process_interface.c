/* perf_event_open(2) inside a program: the process's descriptors, and the calls on them. */
#include "process/process_interface.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>

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

/* --- turns ---------------------------------------------------------------- */

void interface_begin(struct interface_turn *turn)
{
	const uint64_t all = ~0ull;
	turn->interface = NULL;
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &turn->mask, sizeof(all));
	struct process_thread *thread = process_self();
	if (!thread)
		return;
	turn->interface = interface_of(thread);
	if (!turn->interface)
		return;
	interface_catch_up(turn->interface);
	/* one moment for all that the turn reads and changes */
	turn->interface->was_frozen = process_clock_freeze(thread);
}

void interface_end(struct interface_turn *turn)
{
	struct process_interface *interface = turn->interface;
	if (interface) {
		interface_settle(interface);
		interface->thread->frozen = interface->was_frozen;
		if (interface->starts_timer)
			process_timer_run(interface->thread, NULL);
		interface->starts_timer = false;
	}
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &turn->mask, NULL, sizeof(turn->mask));
}

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

/* --- the program's memory ------------------------------------------------- */

static int copy(long number, void *to, const void *from, size_t size, const void *foreign)
{
	const struct iovec here = { foreign == from ? to : (void *)(uintptr_t)from, size },
			   there = { (void *)(uintptr_t)foreign, size };
	long length = size;
	if (size)
		length = process_call(number, process_agent.pid, &here, 1, &there, 1, 0);
	if (length == -ENOSYS || length == -EPERM) { /* a container forbids it */
		memcpy(to, from, size);
		return 0;
	}
	return length == (long)size ? 0 : -EFAULT;
}

int interface_copy_in(void *to, const void *from, size_t size)
{
	return copy(SYS_process_vm_readv, to, from, size, from);
}

int interface_copy_out(void *to, const void *from, size_t size)
{
	return copy(SYS_process_vm_writev, to, from, size, to);
}

/* --- descriptors ---------------------------------------------------------- */

static unsigned index_of(const struct interface_event *event)
{
	return (unsigned)(event - interface_pool->events);
}

static int tables_make(void)
{
	size_t bytes = INTERFACE_DESCRIPTORS * sizeof(*own.descriptors) +
		       INTERFACE_EVENTS * (sizeof(*own.references) + sizeof(*own.serials)) +
		       MAPPINGS * sizeof(*own.mappings);
	if (own.descriptors)
		return 0;
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

static uint64_t inode_of(int fd)
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
	if (inode_of(fd) == event->inode)
		return event;
	interface_closed(fd);
	return NULL;
}

static int ask(struct interface_event *event, struct process_interface *interface,
	       struct interface_call *call)
{
	int error = -EAGAIN;
	/* the thread may execute another program meanwhile: another descriptor */
	while (error == -EAGAIN) {
		call->descriptor = event->descriptor;
		if (__atomic_load_n(&event->gone, __ATOMIC_SEQ_CST))
			return -ESRCH;
		if (__atomic_load_n(&event->deferred, __ATOMIC_SEQ_CST) & INTERFACE_DEFERS_OPEN)
			return -EBUSY;
		error = interface_ask(interface, event->pid, event->tid, call);
	}
	return error;
}

/* Returns the call of this turn.  A thread that isn't counted makes no calls. */
static struct interface_call *call_of(const struct interface_turn *turn,
				      enum interface_operation operation)
{
	struct interface_call *call = &turn->interface->call;
	memset(call, 0, offsetof(struct interface_call, text));
	call->operation = operation;
	return call;
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
static bool hold(struct interface_event *event, bool is_new)
{
	unsigned at = index_of(event);
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
	unsigned used = interface_pool->events_used, own_number = index_of(event) + 1;
	uint64_t serial = event->serial;
	if (turn->interface)
		ask(event, turn->interface, call_of(turn, INTERFACE_CLOSE));
	if (event->leader != own_number)
		member_leaves(&interface_pool->events[event->leader - 1]);
	for (unsigned i = 0; i < used; i++) {
		struct interface_event *other = &interface_pool->events[i];
		uint64_t other_serial = other->serial;
		if (!interface_is_used(other) || other == event)
			continue;
		if (other->leader == own_number)
			other->leader = i + 1;
		if (other->output == own_number)
			other->output = 0;
		if (!interface_is_heir(other, event))
			continue;
		if (turn->interface)
			ask(other, turn->interface, call_of(turn, INTERFACE_CLOSE));
		interface_event_free(other, other_serial);
	}
	interface_event_free(event, serial);
}

/* Returns true if that was the last holder of all processes. */
static bool release(struct interface_event *event)
{
	unsigned at = index_of(event);
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

static void let_go(struct interface_turn *turn, struct interface_event *event)
{
	if (release(event))
		close_event(turn, event);
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
		let_go(&turn, &interface_pool->events[at - 1]);
	interface_end(&turn);
}

void interface_duplicated(struct interface_event *event, int fd)
{
	struct interface_turn turn;
	interface_closed(fd);
	if (!event || fd < 0 || fd >= INTERFACE_DESCRIPTORS)
		return;
	interface_begin(&turn);
	if (hold(event, false))
		__atomic_store_n(&own.descriptors[fd], (uint16_t)(index_of(event) + 1),
				 __ATOMIC_SEQ_CST);
	interface_end(&turn);
}

/* --- open ----------------------------------------------------------------- */

static int copy_attr(struct interface_call *call, const void *attr)
{
	uint32_t size;
	int error = interface_copy_in(&size, (const char *)attr + 4, sizeof(size));
	if (error)
		return error;
	if (!size)
		size = TALLY_ATTR_SIZE_VER0;
	memset(call->text, 0, sizeof(struct tally_attr));
	if (size < TALLY_ATTR_SIZE_VER0 || size > sizeof(call->text)) {
		memcpy(call->text + 4, &size, sizeof(size)); /* the engine refuses it */
		return 0;
	}
	return interface_copy_in(call->text, attr, size);
}

/* May this thread observe that one?  The kernel asks ptrace's rules. */
static int may_observe(int32_t pid)
{
	char byte;
	const struct iovec here = { &byte, 1 }, there = { (void *)16, 1 };
	long result = process_call(SYS_process_vm_readv, pid, &here, 1, &there, 1, 0);
	if (result == -ESRCH)
		return -ESRCH;
	return result == -EPERM ? -EACCES : 0;
}

struct opening {
	struct interface_turn turn;
	struct interface_event *event, *group;
	struct interface_task *target;
	int32_t pid, tid; /* of the thread that is counted */
};

/* A child that was just made may not have its entry yet. */
static bool wait_for_entry(int32_t tid, int32_t *pid)
{
	enum { TRIES = 1000, PAUSE_NS = 500000 };
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	for (unsigned i = 0; i < TRIES; i++) {
		if (interface_task_find(tid, pid))
			return true;
		if (process_call(SYS_kill, tid, 0))
			return false;
		process_call(SYS_nanosleep, &pause, NULL);
	}
	return false;
}

static int find_target(struct opening *opening, int32_t pid, unsigned long flags)
{
	const struct process_thread *thread = opening->turn.interface->thread;
	opening->pid = thread->pid;
	opening->tid = thread->tid;
	if (pid == 0 || pid == -1 || pid == thread->tid || flags & TALLY_FLAG_PID_CGROUP)
		return 0;
	if (pid < 0 || process_call(SYS_kill, pid, 0) == -ESRCH)
		return -ESRCH;
	if (!wait_for_entry(pid, &opening->pid)) {
		int error = may_observe(pid);
		return error ? error : -EACCES; /* it has no engine of ours */
	}
	opening->tid = pid;
	if (opening->pid == thread->pid)
		return 0;
	return may_observe(opening->pid);
}

static int find_group(struct opening *opening, struct interface_call *call, int group)
{
	call->arguments[1] = -1;
	if (group == -1)
		return 0;
	opening->group = interface_event_of(group);
	call->arguments[1] = INTERFACE_OPEN; /* no event of the engine: EBADF */
	if (!opening->group)
		return 0;
	call->arguments[1] = opening->group->descriptor;
	return opening->group->gone ? -ENODEV : 0;
}

/* The memfd gets the lowest free number, as the kernel's descriptor would. */
static int install(struct opening *opening, unsigned long flags)
{
	struct interface_event *event = opening->event;
	enum { CLOEXEC = 1 };
	/* before others can find it by its memfd: a child that is made now has that too */
	hold(event, true);
	long fd = process_call(SYS_memfd_create, "perf_event",
			       flags & TALLY_FLAG_FD_CLOEXEC ? CLOEXEC : 0);
	if (fd >= INTERFACE_DESCRIPTORS) {
		process_call(SYS_close, fd);
		fd = -EMFILE;
	}
	if (fd < 0) {
		release(event);
		return (int)fd;
	}
	event->inode = inode_of((int)fd);
	event->leader = index_of(event) + 1;
	if (opening->group && !(flags & TALLY_FLAG_FD_NO_GROUP)) {
		event->leader = opening->group->leader;
		interface_pool->events[event->leader - 1].generation++;
	}
	__atomic_store_n(&own.descriptors[fd], (uint16_t)(index_of(event) + 1), __ATOMIC_SEQ_CST);
	return (int)fd;
}

/* The thread is stopped: it opens the event when it goes on, or executes another program.  This
 * thread's engine tells whether the attributes are right. */
static int defer_open(struct opening *opening, struct interface_call *call)
{
	struct interface_event *event = opening->event;
	struct process_interface *interface = opening->turn.interface;
	int64_t leader = call->arguments[1];
	if (leader != INTERFACE_OPEN)
		call->arguments[1] = -1;
	interface_execute(interface, call);
	if (call->result < 0)
		return 0;
	struct interface_call *closing = call_of(&opening->turn, INTERFACE_CLOSE);
	closing->descriptor = event->descriptor;
	interface_execute(interface, closing);
	event->pid = opening->pid;
	event->tid = opening->tid;
	event->descriptor = -1;
	interface_defer(event, INTERFACE_DEFERS_OPEN);
	return 0;
}

static int open_event(struct opening *opening, struct interface_call *call, unsigned long flags)
{
	int error = 0;
	opening->event = interface_event_new();
	if (!opening->event)
		return -EMFILE;
	call->event = index_of(opening->event);
	call->event_id = opening->event->id;
	call->arguments[2] = (int64_t)flags;
	error = interface_ask(opening->turn.interface, opening->pid, opening->tid, call);
	if (error == -EBUSY)
		error = defer_open(opening, call);
	if (!error && call->result < 0)
		error = (int)call->result;
	if (!error) {
		error = install(opening, flags);
		if (error >= 0)
			return error;
		ask(opening->event, opening->turn.interface,
		    call_of(&opening->turn, INTERFACE_CLOSE));
	}
	interface_event_free(opening->event, opening->event->serial);
	return error;
}

/* The order of the checks is the kernel's as far as it shows. */
static int open_checked(struct opening *opening, const void *attr, int32_t pid, int cpu, int group,
			unsigned long flags)
{
	struct interface_call *call = call_of(&opening->turn, INTERFACE_OPEN_EVENT);
	int error = copy_attr(call, attr);
	if (error)
		return error;
	error = find_group(opening, call, group);
	if (!error)
		error = find_target(opening, pid, flags);
	if (error) {
		/* errors of the attributes come first: the engine tells, with no such group */
		call->arguments[0] = -1;
		call->arguments[1] = INTERFACE_OPEN;
		call->arguments[2] = (int64_t)flags;
		interface_execute(opening->turn.interface, call);
		return call->result != -EBADF ? (int)call->result : error;
	}
	if (pid == -1 || flags & TALLY_FLAG_PID_CGROUP)
		call->arguments[3] = -1;
	call->arguments[4] = pid;
	call->arguments[0] = cpu;
	bool is_foreign = opening->group && opening->group->tid != opening->tid;
	if (!is_foreign)
		return open_event(opening, call, flags);
	/* a leader or an output of another thread: errors of the event itself come first */
	call->arguments[1] = -1;
	if (flags & TALLY_FLAG_FD_NO_GROUP && !(flags & TALLY_FLAG_FD_OUTPUT))
		return open_event(opening, call, flags);
	call->arguments[2] = (int64_t)flags;
	error = interface_try_open(opening->turn.interface, call);
	return error ? error : -EINVAL;
}

long interface_open(const void *attr, int32_t pid, int cpu, int group, unsigned long flags)
{
	struct opening opening = { .event = NULL, .group = NULL };
	uint32_t size = 0;
	interface_begin(&opening.turn);
	int result = opening.turn.interface ? tables_make() : -ENOSYS;
	if (!result)
		result = open_checked(&opening, attr, pid, cpu, group, flags);
	interface_end(&opening.turn);
	/* the size that this kernel knows */
	if (result == -E2BIG && !interface_copy_in(&size, (const char *)attr + 4, sizeof(size))) {
		size = sizeof(struct tally_attr);
		interface_copy_out((char *)(uintptr_t)attr + 4, &size, sizeof(size));
	}
	return result;
}

/* --- read ----------------------------------------------------------------- */

static void add_values(struct interface_values *sum, const struct interface_values *more)
{
	sum->count += more->count;
	sum->enabled_ns += more->enabled_ns;
	sum->running_ns += more->running_ns;
	sum->lost += more->lost;
}

static bool inherits(const struct interface_event *event)
{
	return event->flags & TALLY_ATTR_INHERIT;
}

/* Brings the entries of an event and of those that inherited it up to date. */
static void publish(struct interface_turn *turn, struct interface_event *event)
{
	if (turn->interface)
		ask(event, turn->interface, call_of(turn, INTERFACE_PUBLISH));
	if (!inherits(event))
		return;
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		struct interface_event *child = &interface_pool->events[i];
		if (interface_is_heir(child, event) && turn->interface)
			ask(child, turn->interface, call_of(turn, INTERFACE_PUBLISH));
	}
}

static void add_child(struct interface_values *sum, const struct interface_event *child)
{
	add_values(sum, &child->own);
	add_values(sum, &child->before);
}

/* The engine alone knows all of such an event's values. */
static bool is_plain(const struct interface_event *event)
{
	return !inherits(event) && !event->goes_on &&
	       !interface_pool->events[event->leader - 1].goes_on;
}

static struct interface_values sum_of(const struct interface_event *event)
{
	struct interface_values sum = event->own;
	add_values(&sum, &event->children);
	add_values(&sum, &event->before);
	for (unsigned i = 0; inherits(event) && i < interface_pool->events_used; i++) {
		const struct interface_event *child = &interface_pool->events[i];
		if (interface_is_heir(child, event))
			add_child(&sum, child);
	}
	return sum;
}

/* A thread that was killed while it moved values never ends that: then these are what there is. */
static struct interface_values values_of(const struct interface_event *event)
{
	enum { TRIES = 1000 };
	struct interface_values sum = { 0 };
	for (unsigned i = 0; i < TRIES; i++) {
		uint32_t moves = __atomic_load_n(&event->moves, __ATOMIC_SEQ_CST);
		bool waits = __atomic_load_n(&event->moving, __ATOMIC_SEQ_CST) != 0;
		sum = sum_of(event);
		if (!waits && !__atomic_load_n(&event->moving, __ATOMIC_SEQ_CST) &&
		    moves == __atomic_load_n(&event->moves, __ATOMIC_SEQ_CST))
			break;
		process_call(SYS_sched_yield);
	}
	return sum;
}

static unsigned put_times(uint64_t *words, uint64_t format, const struct interface_values *values)
{
	unsigned n = 0;
	if (format & TALLY_FORMAT_TOTAL_TIME_ENABLED)
		words[n++] = values->enabled_ns;
	if (format & TALLY_FORMAT_TOTAL_TIME_RUNNING)
		words[n++] = values->running_ns;
	return n;
}

static unsigned put_ids(uint64_t *words, uint64_t format, const struct interface_event *event,
			const struct interface_values *values)
{
	unsigned n = 0;
	if (format & TALLY_FORMAT_ID)
		words[n++] = event->id;
	if (format & TALLY_FORMAT_LOST)
		words[n++] = values->lost;
	return n;
}

/* Returns the member of the group that comes after `event`, or NULL. */
static struct interface_event *next_member(const struct interface_event *event)
{
	struct interface_event *next = NULL;
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		struct interface_event *other = &interface_pool->events[i];
		if (interface_is_used(other) && other->leader == event->leader && !other->parent &&
		    other->order > event->order && (!next || other->order < next->order))
			next = other;
	}
	return next;
}

static unsigned members(const struct interface_event *leader)
{
	unsigned count = 0;
	for (const struct interface_event *at = leader; at; at = next_member(at))
		count++;
	return count;
}

/* Inherited groups must have the members that the original has now. */
static bool heirs_are_alike(const struct interface_event *leader)
{
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		const struct interface_event *child = &interface_pool->events[i];
		if (interface_is_heir(child, leader) && child->generation != leader->generation)
			return false;
	}
	return true;
}

/* The words of read(2) from the pool: for events whose thread has ended, and for inherited ones. */
static long compose(struct interface_turn *turn, struct interface_event *event, uint64_t *words,
		    size_t size)
{
	uint64_t format = event->read_format;
	bool group = format & TALLY_FORMAT_GROUP;
	struct interface_event *first = group ? &interface_pool->events[event->leader - 1] : event;
	unsigned times = !!(format & TALLY_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & TALLY_FORMAT_TOTAL_TIME_RUNNING);
	unsigned each = 1 + !!(format & TALLY_FORMAT_ID) + !!(format & TALLY_FORMAT_LOST);
	unsigned count = group ? members(first) : 1, n = 0;
	if (group && !heirs_are_alike(first))
		return -ECHILD;
	if (size < (group + times + (size_t)count * each) * sizeof(*words))
		return -ENOSPC;
	if ((group + times + (size_t)count * each) * sizeof(*words) > INTERFACE_ANSWER)
		return -ENOMEM;
	for (struct interface_event *at = first; at; at = group ? next_member(at) : NULL) {
		publish(turn, at);
		struct interface_values values = values_of(at);
		if (at == first && group)
			words[n++] = count;
		if (at == first && group)
			n += put_times(&words[n], format, &values);
		words[n++] = values.count;
		if (!group)
			n += put_times(&words[n], format, &values);
		n += put_ids(&words[n], format, at, &values);
	}
	return (long)(n * sizeof(*words));
}

/* Puts the words into the thread's part: a stack may be small. */
static long read_event(struct interface_turn *turn, struct interface_event *event, size_t size)
{
	struct process_interface *interface = turn->interface;
	struct interface_call *call = call_of(turn, INTERFACE_READ);
	call->arguments[0] = (int64_t)(size < INTERFACE_ANSWER ? size : INTERFACE_ANSWER);
	int error = ask(event, interface, call);
	if (error || (call->result > 0 && !is_plain(event)))
		return compose(turn, event, interface->words, size);
	if (call->result > 0)
		memcpy(interface->words, call->answer, (size_t)call->result);
	return call->result;
}

long interface_read(int fd, void *bytes, size_t size)
{
	struct interface_turn turn;
	interface_begin(&turn);
	struct interface_event *event = interface_event_of(fd);
	long length = -EBADF;
	if (event && turn.interface)
		length = read_event(&turn, event, size);
	if (length > 0 && interface_copy_out(bytes, turn.interface->words, (size_t)length))
		length = -EFAULT;
	interface_end(&turn);
	return length;
}

/* --- ioctl ---------------------------------------------------------------- */

/* Copies what the argument points to into the call.  Returns 0 or -errno. */
static int copy_argument(struct interface_call *call, unsigned long request, uintptr_t argument)
{
	const char *from = (const char *)argument;
	size_t length = 0;
	switch (request) {
	case TALLY_IOC_PERIOD:
		return interface_copy_in(call->text, from, sizeof(uint64_t));
	case TALLY_IOC_QUERY_BPF:
		return interface_copy_in(call->text, from, 2 * sizeof(uint32_t));
	case TALLY_IOC_MODIFY_ATTRIBUTES:
		return copy_attr(call, from);
	case TALLY_IOC_SET_FILTER:
		do
			if (interface_copy_in(call->text + length, from + length, 1))
				return -EFAULT;
		while (call->text[length] && ++length < sizeof(call->text));
		return 0;
	default:
		return 0;
	}
}

/* Changes of an original reach the events that inherited it. */
static void control_children(struct interface_turn *turn, const struct interface_event *event,
			     unsigned long request, uintptr_t argument)
{
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		struct interface_event *child = &interface_pool->events[i];
		if (!interface_is_heir(child, event))
			continue;
		struct interface_call *call = call_of(turn, INTERFACE_IOCTL);
		call->arguments[0] = (int64_t)request;
		call->arguments[1] = (int64_t)argument;
		ask(child, turn->interface, call);
	}
}

static void note_enabled(struct interface_event *event, unsigned long request, bool group)
{
	bool enabled = request == TALLY_IOC_ENABLE || request == TALLY_IOC_REFRESH;
	if (!enabled && request != TALLY_IOC_DISABLE)
		return;
	if (!group) {
		event->enabled = enabled;
		return;
	}
	for (struct interface_event *at = &interface_pool->events[event->leader - 1]; at;
	     at = next_member(at))
		at->enabled = enabled;
}

/* RESET: the counts of earlier programs, too; not the times. */
static void forget(struct interface_event *event, bool group)
{
	event->before.count = 0;
	for (struct interface_event *at = &interface_pool->events[event->leader - 1]; group && at;
	     at = next_member(at))
		at->before.count = 0;
}

/* The event's thread is stopped. */
static long defer_change(struct interface_event *event, unsigned long request, bool group)
{
	enum interface_deferral what = INTERFACE_DEFERS_STATE;
	struct interface_event *at = event;
	if (request == TALLY_IOC_RESET)
		what = INTERFACE_DEFERS_RESET;
	if (group)
		at = &interface_pool->events[event->leader - 1];
	for (; at; at = group ? next_member(at) : NULL) {
		note_enabled(at, request, false);
		interface_defer(at, what);
		if (request == TALLY_IOC_RESET)
			forget(at, false);
	}
	return 0;
}

/* Returns the bytes of the event's ring; 0: neither this process nor another one maps it. */
static uint64_t ring_size(const struct interface_event *event)
{
	uint64_t size = 0;
	if (event->ring.mappings)
		return event->ring.size;
	lock();
	for (unsigned i = 0; own.mapping_count && i < MAPPINGS && !size; i++)
		if (own.mappings[i].address && own.mappings[i].event == index_of(event) + 1)
			size = (own.mappings[i].size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	unlock();
	return size;
}

/* The event's thread has ended.  The kernel keeps the event: it checks the arguments, and nothing
 * else comes of them but a reset count and changes of the events that inherited it. */
static long control_gone(struct interface_turn *turn, struct interface_event *event,
			 struct interface_call *call, bool plain)
{
	unsigned long request = (unsigned long)call->arguments[0];
	uintptr_t argument = (uintptr_t)call->arguments[1];
	struct interface_event *at = event;
	if (request == TALLY_IOC_SET_OUTPUT && (argument != (uintptr_t)-1 || ring_size(event)))
		return -EINVAL;
	if (request == TALLY_IOC_PAUSE_OUTPUT)
		return ring_size(event) > PAGE ? 0 : -EINVAL;
	if (!plain)
		return interface_stand_in(turn->interface, event, call);
	if (request == TALLY_IOC_RESET) {
		forget(event, argument & 1);
		if (argument & 1)
			at = &interface_pool->events[event->leader - 1];
		for (; at; at = argument & 1 ? next_member(at) : NULL)
			at->own.count = 0;
	}
	if (inherits(event))
		control_children(turn, event, request, argument);
	return 0;
}

static long control(struct interface_turn *turn, struct interface_event *event,
		    unsigned long request, uintptr_t argument)
{
	struct interface_call *call = call_of(turn, INTERFACE_IOCTL);
	bool plain = request == TALLY_IOC_ENABLE || request == TALLY_IOC_DISABLE ||
		     request == TALLY_IOC_RESET;
	int error = copy_argument(call, request, argument);
	if (error)
		return error;
	call->arguments[0] = (int64_t)request;
	call->arguments[1] = (int64_t)argument;
	if (request == TALLY_IOC_SET_OUTPUT && argument != (uintptr_t)-1) {
		const struct interface_event *target = interface_event_of((int)argument);
		if (!target)
			return -EBADF;
		if (target->tid != event->tid)
			return -EINVAL;
		call->arguments[1] = target->descriptor;
	}
	if (request == TALLY_IOC_SET_BPF && interface_event_of((int)argument))
		call->arguments[1] = event->descriptor;
	else if (request == TALLY_IOC_SET_BPF)
		call->arguments[1] = INTERFACE_OPEN; /* no event, so no descriptor that it knows */
	error = ask(event, turn->interface, call);
	if (error && request == TALLY_IOC_ID)
		return interface_copy_out((void *)argument, &event->id, sizeof(event->id));
	if (error == -EBUSY && plain)
		return defer_change(event, request, argument & 1);
	if (error == -ESRCH)
		return control_gone(turn, event, call, plain);
	if (error)
		return plain ? 0 : error;
	if (call->result)
		return call->result;
	note_enabled(event, request, plain && argument & 1);
	if (request == TALLY_IOC_RESET)
		forget(event, argument & 1);
	if (plain && inherits(event))
		control_children(turn, event, request, argument);
	if (request == TALLY_IOC_ID)
		return interface_copy_out((void *)argument, call->answer, sizeof(uint64_t));
	return 0;
}

long interface_ioctl(int fd, unsigned long request, uintptr_t argument)
{
	struct interface_turn turn;
	interface_begin(&turn);
	struct interface_event *event = interface_event_of(fd);
	long result = -EBADF;
	if (event && turn.interface)
		result = control(&turn, event, request & 0xffffffff, argument);
	interface_end(&turn);
	return result;
}

/* --- fcntl, prctl --------------------------------------------------------- */

/* The event's thread is stopped, and the settings wait for it; or it has ended. */
static long defer_fcntl(struct interface_event *event, int command, uintptr_t argument,
			const int32_t *owner_ex, int fd)
{
	enum { READ_WRITE = 2, SET_SIGNAL = 10, GET_SIGNAL = 11, SET_OWNER_EX = 15, PID = 1 };
	enum { LAST_SIGNAL = 64 };
	event->file.set = true;
	switch (command) {
	case F_GETFL:
		return event->file.flags | READ_WRITE;
	case F_SETFL:
		event->file.flags = (int32_t)argument;
		event->file.signal_fd = fd;
		return 0;
	case SET_SIGNAL:
		if (argument > LAST_SIGNAL)
			return -EINVAL;
		event->file.signal = (int32_t)argument;
		return 0;
	case GET_SIGNAL:
		return event->file.signal;
	case F_SETOWN:
		event->file.owner_type = PID;
		event->file.owner = (int32_t)argument;
		return 0;
	case SET_OWNER_EX:
		event->file.owner_type = owner_ex[0];
		event->file.owner = owner_ex[1];
		return 0;
	default:
		return -EINVAL;
	}
}

long interface_fcntl(int fd, int command, uintptr_t argument)
{
	struct interface_turn turn;
	enum { SIZE_OF_OWNER = 8, SET_OWNER_EX = 15, GET_OWNER_EX = 16 };
	interface_begin(&turn);
	struct interface_event *event = interface_event_of(fd);
	long result = -EBADF;
	if (event && turn.interface) {
		struct interface_call *call = call_of(&turn, INTERFACE_FCNTL);
		call->arguments[0] = command;
		call->arguments[1] = (int64_t)argument;
		call->arguments[2] = fd;
		result = 0;
		if (command == SET_OWNER_EX)
			result = interface_copy_in(call->text, (const void *)argument,
						   SIZE_OF_OWNER);
		if (!result)
			result = ask(event, turn.interface, call);
		if (!result)
			result = call->result;
		else if (result == -EBUSY || result == -ESRCH)
			result = defer_fcntl(event, command, argument,
					     (const int32_t *)(void *)call->text, fd);
		if (!result && command == GET_OWNER_EX)
			result = interface_copy_out((void *)argument, call->answer, SIZE_OF_OWNER);
	}
	interface_end(&turn);
	return result;
}

/* Concerns what this thread opened, on whatever task. */
void process_interface_prctl(int option)
{
	struct interface_turn turn;
	unsigned long request = TALLY_IOC_DISABLE;
	if (!own.descriptors)
		return;
	if (option == TALLY_PR_TASK_PERF_EVENTS_ENABLE)
		request = TALLY_IOC_ENABLE;
	interface_begin(&turn);
	for (unsigned i = 0; turn.interface && i < interface_pool->events_used; i++) {
		struct interface_event *event = &interface_pool->events[i];
		if (interface_is_used(event) && !event->parent &&
		    event->opener_tid == turn.interface->thread->tid)
			control(&turn, event, request, 0);
	}
	interface_end(&turn);
}

/* --- mmap ----------------------------------------------------------------- */

static int note_mapping(struct interface_event *event, uintptr_t address, size_t size)
{
	int error = -ENOMEM;
	lock();
	for (unsigned i = 0; i < MAPPINGS && error; i++) {
		if (own.mappings[i].address)
			continue;
		own.mappings[i] = (struct mapping){ address, size, index_of(event) + 1 };
		own.mapping_count++;
		error = 0;
	}
	unlock();
	return error;
}

static void unmap(struct interface_turn *turn, struct interface_event *event, size_t size)
{
	struct interface_call *call = call_of(turn, INTERFACE_UNMAP);
	call->arguments[0] = (int64_t)event->ring.address;
	call->arguments[1] = (int64_t)size;
	call->arguments[2] = process_agent.pid;
	int error = ask(event, turn->interface, call);
	if ((error == -EBUSY || error == -ESRCH) && event->ring.mappings)
		event->ring.mappings--;
}

/* The event's thread is stopped, and makes the ring later; or it has ended, and the ring stays
 * empty. Readers need to know now where the data will be. */
static int defer_ring(struct interface_event *event, const struct interface_call *call, int fd)
{
	struct tally_user_page page = { .data_offset = PAGE };
	uint64_t size = ((uint64_t)call->arguments[0] + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	uint64_t data = size - PAGE, present = ring_size(event);
	if (!call->arguments[2] || call->arguments[3] || size < PAGE || data & (data - 1) ||
	    (event->cpu == -1 && inherits(event)) || (present && present != size))
		return -EINVAL;
	event->ring.mappings += event->ring.mappings != 0;
	if (present)
		return 0;
	page.data_size = data;
	if (process_call(SYS_ftruncate, fd, 0) || process_call(SYS_ftruncate, fd, size))
		return -ENOMEM;
	process_call(SYS_pwrite64, fd, &page, sizeof(page), 0);
	event->ring.mappings = 1;
	event->ring.pid = process_agent.pid;
	event->ring.fd = fd;
	event->ring.size = size;
	event->ring.writable = call->arguments[1];
	return 0;
}

static int make_ring(struct interface_turn *turn, struct interface_event *event,
		     struct interface_call *call, int fd)
{
	int error = ask(event, turn->interface, call);
	if (error == -ESRCH || (error == -EBUSY && event->deferred & INTERFACE_DEFERS_OPEN))
		error = defer_ring(event, call, fd);
	else if (error == -EBUSY)
		error = -EINVAL;
	else if (!error)
		error = (int)call->result;
	return error;
}

static int map(struct interface_turn *turn, struct interface_event *event, void *address,
	       size_t size, int protection, int flags, int fd, uint64_t offset, void **mapped)
{
	struct interface_call *call = call_of(turn, INTERFACE_MAP);
	if (protection & PROT_EXEC)
		return -EPERM;
	call->arguments[0] = (int64_t)size;
	call->arguments[1] = (protection & PROT_WRITE) != 0;
	call->arguments[2] = (flags & MAP_TYPE) == MAP_SHARED;
	call->arguments[3] = (int64_t)offset;
	call->arguments[4] = process_agent.pid;
	call->arguments[5] = fd;
	int error = make_ring(turn, event, call, fd);
	if (error)
		return error;
	long map = process_call(SYS_mmap, address, size, protection, flags, fd, offset);
	if (map < 0 && map > -4096)
		error = (int)map;
	if (!error)
		error = note_mapping(event, (uintptr_t)map, size);
	if (error) {
		unmap(turn, event, size);
		return error;
	}
	/* as the kernel's mappings: a child of fork(2) has none */
	process_call(SYS_madvise, map, size, MADV_DONTFORK);
	hold(event, false);
	*mapped = (void *)map;
	return 0;
}

bool process_interface_mmap(void *address, size_t size, int protection, int flags, int fd,
			    uint64_t offset, void **mapped, int *result)
{
	struct interface_turn turn;
	if (flags & MAP_ANONYMOUS || !interface_event_of(fd))
		return false;
	interface_begin(&turn);
	struct interface_event *event = interface_event_of(fd);
	*result = -EBADF;
	if (event && turn.interface)
		*result = map(&turn, event, address, size, protection, flags, fd, offset, mapped);
	interface_end(&turn);
	if (!*result)
		interface_mapped(*mapped, size, protection, flags, fd, offset);
	return true;
}

bool process_interface_munmap(void *address, size_t size, int *result)
{
	struct interface_turn turn;
	struct mapping mapping = { 0 };
	size_t rounded = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
	if (!__atomic_load_n(&own.mapping_count, __ATOMIC_RELAXED))
		return false;
	interface_begin(&turn);
	lock();
	for (unsigned i = 0; i < MAPPINGS && !mapping.address; i++) {
		struct mapping *at = &own.mappings[i];
		size_t whole = (at->size + PAGE - 1) & ~(size_t)(PAGE - 1);
		if (!at->address || at->address != (uintptr_t)address || whole != rounded)
			continue;
		mapping = *at;
		at->address = 0;
		own.mapping_count--;
	}
	unlock();
	if (mapping.address && turn.interface) {
		struct interface_event *event = &interface_pool->events[mapping.event - 1];
		*result = (int)process_call(SYS_munmap, address, size);
		unmap(&turn, event, mapping.size);
		let_go(&turn, event);
	}
	interface_end(&turn);
	return mapping.address != 0;
}

/* --- moments -------------------------------------------------------------- */

/* The thread of an event has ended: not yet those that inherited it. */
static bool has_heirs(const struct interface_event *event)
{
	for (unsigned i = 0; i < interface_pool->events_used; i++)
		if (interface_is_heir(&interface_pool->events[i], event))
			return true;
	return false;
}

int interface_poll(struct interface_event *event)
{
	enum { HANG_UP = 16 };
	struct interface_turn turn;
	interface_begin(&turn);
	int result = HANG_UP;
	if (turn.interface) {
		struct interface_call *call = call_of(&turn, INTERFACE_POLL);
		int error = ask(event, turn.interface, call);
		if (!error)
			result = (int)call->result;
		else if (error == -ETIMEDOUT || has_heirs(event) ||
			 (error == -EBUSY && event->ring.mappings))
			result = 0;
	}
	interface_end(&turn);
	return result < 0 ? HANG_UP : result;
}

/* True if others have left something for this thread. */
static bool has_deferred(const struct process_thread *thread)
{
	if (!interface_pool || !__atomic_load_n(&interface_pool->deferrals, __ATOMIC_RELAXED))
		return false;
	for (unsigned i = 0; i < interface_pool->events_used; i++)
		if (interface_pool->events[i].tid == thread->tid &&
		    interface_pool->events[i].deferred &&
		    interface_is_used(&interface_pool->events[i]))
			return true;
	return false;
}

void process_interface_safe_point(void)
{
	struct interface_turn turn;
	struct process_thread *thread = process_self();
	if (!thread)
		return;
	const struct process_interface *interface = thread->interface;
	bool deferred = has_deferred(thread);
	if (!deferred && (!interface || !interface->open_events))
		return;
	interface_begin(&turn);
	if (deferred && turn.interface)
		interface_take_deferred(turn.interface);
	interface_end(&turn);
}

void process_interface_sampled(struct process_thread *thread, uint64_t ip)
{
	struct process_interface *interface = thread->interface;
	if (interface && interface->engine && interface->mapping_events)
		interface_maps_look(interface, ip);
}

void process_interface_settle(struct process_thread *thread)
{
	struct process_interface *interface = thread->interface;
	if (!interface || !interface->engine)
		return;
	interface_run_pending(interface);
}

void process_interface_serve(struct process_thread *thread)
{
	struct interface_turn turn;
	if (!interface_pool || !thread->task)
		return;
	interface_begin(&turn);
	if (turn.interface)
		interface_serve(turn.interface);
	interface_end(&turn);
}

static bool wants_forks(int32_t tid)
{
	const uint64_t wanting = TALLY_ATTR_TASK | TALLY_ATTR_COMM | TALLY_ATTR_MMAP |
				 TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA;
	for (unsigned i = 0; i < interface_pool->events_used; i++) {
		const struct interface_event *event = &interface_pool->events[i];
		if (interface_is_used(event) && event->tid == tid && event->flags & wanting)
			return true;
	}
	return false;
}

/* The kernel writes a FORK record before the call that makes the child returns.  So this waits
 * until the child has told, a moment at most. */
void process_interface_made_child(struct process_thread *thread)
{
	enum { TRIES = 200, PAUSE_NS = 100000 };
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct process_interface *interface = thread->interface;
	struct interface_turn turn;
	if (!interface || !interface->engine || !wants_forks(thread->tid))
		return;
	unsigned before = thread->forks_told;
	for (unsigned i = 0; i < TRIES && interface->forks_told == before; i++) {
		interface_begin(&turn);
		interface_serve(interface);
		interface_end(&turn);
		if (interface->forks_told == before)
			process_call(SYS_nanosleep, &pause, NULL);
	}
}

/* The events of the thread that made this one may want a FORK record. */
static void tell_parent(const struct process_thread *thread)
{
	struct interface_turn turn;
	if (!wants_forks(thread->identity.parent_tid))
		return;
	interface_begin(&turn);
	if (turn.interface) {
		struct interface_call *call = call_of(&turn, INTERFACE_FORKED);
		call->arguments[0] = thread->pid;
		call->arguments[1] = thread->tid;
		interface_ask(turn.interface, thread->identity.parent_pid,
			      thread->identity.parent_tid, call);
	}
	interface_end(&turn);
}

void process_interface_renamed(struct process_thread *thread, const char *comm)
{
	struct interface_turn turn;
	process_interface_safe_point();
	struct process_interface *interface = thread->interface;
	if (!interface || !interface->engine)
		return;
	interface_begin(&turn);
	/* catching up has told of another name already */
	if (interface->renames == interface->renames_told)
		tally_engine_comm(interface->task, comm);
	interface->renames_told = interface->renames;
	interface_end(&turn);
}

/* --- records of mappings --------------------------------------------------- */

static size_t path_of(int fd, char *path, size_t size)
{
	char link[32] = "/proc/self/fd/", digits[12];
	unsigned count = 0, at = sizeof("/proc/self/fd/") - 1;
	for (int left = fd; left || !count; left /= 10)
		digits[count++] = (char)('0' + left % 10);
	while (count)
		link[at++] = digits[--count];
	link[at] = '\0';
	long length = process_call(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
	path[length > 0 ? length : 0] = '\0';
	return length > 0 ? (size_t)length : 0;
}

/* What the kernel backs by memory files: anonymous memory that is shared, also /dev/zero's. */
static bool is_shared_memory(int flags, const struct stat *about)
{
	enum { MEMORY_DEVICES = 1, ZERO = 5 };
	if ((flags & MAP_TYPE) == MAP_PRIVATE)
		return false;
	return flags & MAP_ANONYMOUS ||
	       (S_ISCHR(about->st_mode) && about->st_rdev == makedev(MEMORY_DEVICES, ZERO));
}

/* Names the mapping's file, as the kernel does. */
static void name_mapping(struct tally_engine_mapping *mapping, int fd, char *path, size_t size)
{
	struct stat about = { 0 };
	int flags = (int)mapping->flags;
	mapping->path = "//anon";
	if (!(flags & MAP_ANONYMOUS) && process_call(SYS_fstat, fd, &about))
		return;
	if (is_shared_memory(flags, &about)) {
		mapping->path = "/dev/zero (deleted)";
		return;
	}
	if (flags & MAP_ANONYMOUS || !path_of(fd, path, size))
		return;
	mapping->path = path;
	mapping->major = major(about.st_dev);
	mapping->minor = minor(about.st_dev);
	mapping->inode = about.st_ino;
}

void interface_mapped(void *address, size_t size, int protection, int flags, int fd,
		      uint64_t offset)
{
	struct interface_turn turn;
	struct process_thread *thread = process_self();
	struct process_interface *interface = thread ? thread->interface : NULL;
	if (!interface || !interface->mapping_events)
		return;
	char *path = interface->path;
	struct tally_engine_mapping mapping = {
		.address = (uintptr_t)address,
		.length = (size + PAGE - 1) & ~(size_t)(PAGE - 1),
		.file_offset = offset,
		.protection = (uint32_t)protection,
		.flags = (uint32_t)flags,
		.path = "anon_inode:[perf_event]",
	};
	interface_begin(&turn);
	if (flags & MAP_ANONYMOUS || !interface_event_of(fd))
		name_mapping(&mapping, fd, path, sizeof(interface->path));
	tally_engine_mmap_record(interface->task, &mapping);
	if (protection & PROT_EXEC)
		interface_maps_add(interface, &mapping);
	interface_end(&turn);
}

/* --- the life of threads -------------------------------------------------- */

/* The descriptors that the program has from its process's earlier program, or from its parent. */
static void adopt_descriptor(int fd)
{
	uint64_t inode = inode_of(fd);
	for (unsigned i = 0; inode && i < interface_pool->events_used; i++) {
		struct interface_event *event = &interface_pool->events[i];
		if (!interface_is_used(event) || event->inode != inode)
			continue;
		/* held already by the earlier program */
		if (event->executes == process_agent.pid && !own.references[i]) {
			own.references[i] = 1;
			own.serials[i] = event->serial;
		} else if (!hold(event, false)) {
			return;
		}
		__atomic_store_n(&own.descriptors[fd], (uint16_t)(i + 1), __ATOMIC_SEQ_CST);
		return;
	}
}

static void adopt(struct interface_turn *turn)
{
	struct rlimit limit = { .rlim_cur = 0 };
	process_call(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	int end = limit.rlim_cur < ADOPTED_MAX ? (int)limit.rlim_cur : ADOPTED_MAX;
	if (tables_make())
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
		tell_parent(thread);
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
		let_go(&turn, &interface_pool->events[event - 1]);
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
