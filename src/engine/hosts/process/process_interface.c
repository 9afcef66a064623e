/* perf_event_open(2) inside a program: the system calls on emulated events, each from the program's
 * thread to the engine that has the event. */
#include "process/process_interface.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

enum { PAGE = 4096 };

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

int interface_ask_event(struct interface_event *event, uint64_t serial,
			struct process_interface *interface, struct interface_call *call)
{
	int error = -EAGAIN;
	call->serial = serial;
	/* the thread may execute another program meanwhile: another descriptor */
	while (error == -EAGAIN) {
		call->descriptor = event->descriptor;
		if (__atomic_load_n(&event->serial, __ATOMIC_SEQ_CST) != serial ||
		    __atomic_load_n(&event->gone, __ATOMIC_SEQ_CST))
			return -ESRCH;
		if (__atomic_load_n(&event->deferred, __ATOMIC_SEQ_CST) & INTERFACE_DEFERS_OPEN)
			return -EBUSY;
		error = interface_ask(interface, event->pid, event->tid, call);
	}
	if (!error && !call->serial)
		error = -ESRCH;
	return error;
}

/* Returns the call of this turn.  A thread that isn't counted makes no calls. */
struct interface_call *interface_call_of(const struct interface_turn *turn,
					 enum interface_operation operation)
{
	struct interface_call *call = &turn->interface->call;
	memset(call, 0, offsetof(struct interface_call, text));
	call->operation = operation;
	return call;
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
	interface_hold(event, true);
	long fd = process_call(SYS_memfd_create, "perf_event",
			       flags & TALLY_FLAG_FD_CLOEXEC ? CLOEXEC : 0);
	if (fd >= INTERFACE_DESCRIPTORS) {
		process_call(SYS_close, fd);
		fd = -EMFILE;
	}
	if (fd < 0) {
		interface_release(event);
		return (int)fd;
	}
	event->inode = interface_inode_of((int)fd);
	event->leader = interface_index(event) + 1;
	if (opening->group && !(flags & TALLY_FLAG_FD_NO_GROUP)) {
		event->leader = opening->group->leader;
		interface_pool->events[event->leader - 1].generation++;
	}
	interface_name_descriptor(event, (int)fd);
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
	struct interface_call *closing = interface_call_of(&opening->turn, INTERFACE_CLOSE);
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
	call->event = interface_index(opening->event);
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
		interface_ask_event(opening->event, opening->event->serial, opening->turn.interface,
				    interface_call_of(&opening->turn, INTERFACE_CLOSE));
	}
	interface_event_free(opening->event, opening->event->serial);
	return error;
}

/* The order of the checks is the kernel's as far as it shows. */
static int open_checked(struct opening *opening, const void *attr, int32_t pid, int cpu, int group,
			unsigned long flags)
{
	struct interface_call *call = interface_call_of(&opening->turn, INTERFACE_OPEN_EVENT);
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
	int result = opening.turn.interface ? interface_own_make() : -ENOSYS;
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
		uint64_t serial = interface_heir_serial(child, event);
		if (!serial)
			continue;
		struct interface_call *call = interface_call_of(turn, INTERFACE_IOCTL);
		call->arguments[0] = (int64_t)request;
		call->arguments[1] = (int64_t)argument;
		interface_ask_event(child, serial, turn->interface, call);
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
	     at = interface_next_member(at))
		at->enabled = enabled;
}

/* RESET: the counts of earlier programs, too; not the times. */
static void forget(struct interface_event *event, bool group)
{
	event->before.count = 0;
	for (struct interface_event *at = &interface_pool->events[event->leader - 1]; group && at;
	     at = interface_next_member(at))
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
	for (; at; at = group ? interface_next_member(at) : NULL) {
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
	if (event->ring.mappings)
		return event->ring.size;
	return interface_mapped_size(event);
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
		for (; at; at = argument & 1 ? interface_next_member(at) : NULL)
			at->own.count = 0;
	}
	if (interface_inherits(event))
		control_children(turn, event, request, argument);
	return 0;
}

static long control(struct interface_turn *turn, struct interface_event *event,
		    unsigned long request, uintptr_t argument)
{
	struct interface_call *call = interface_call_of(turn, INTERFACE_IOCTL);
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
	error = interface_ask_event(event, event->serial, turn->interface, call);
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
	if (plain && interface_inherits(event))
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
		struct interface_call *call = interface_call_of(&turn, INTERFACE_FCNTL);
		call->arguments[0] = command;
		call->arguments[1] = (int64_t)argument;
		call->arguments[2] = fd;
		result = 0;
		if (command == SET_OWNER_EX)
			result = interface_copy_in(call->text, (const void *)argument,
						   SIZE_OF_OWNER);
		if (!result)
			result = interface_ask_event(event, event->serial, turn.interface, call);
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
	if (!interface_has_own())
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

static void unmap(struct interface_turn *turn, struct interface_event *event, size_t size)
{
	struct interface_call *call = interface_call_of(turn, INTERFACE_UNMAP);
	call->arguments[0] = (int64_t)event->ring.address;
	call->arguments[1] = (int64_t)size;
	call->arguments[2] = process_agent.pid;
	int error = interface_ask_event(event, event->serial, turn->interface, call);
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
	    (event->cpu == -1 && interface_inherits(event)) || (present && present != size))
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
	int error = interface_ask_event(event, event->serial, turn->interface, call);
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
	struct interface_call *call = interface_call_of(turn, INTERFACE_MAP);
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
		error = interface_note_mapping(event, (uintptr_t)map, size);
	if (error) {
		unmap(turn, event, size);
		return error;
	}
	/* as the kernel's mappings: a child of fork(2) has none */
	process_call(SYS_madvise, map, size, MADV_DONTFORK);
	interface_hold(event, false);
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
	if (!interface_has_mappings())
		return false;
	interface_begin(&turn);
	size_t whole = 0;
	struct interface_event *event = interface_take_mapping((uintptr_t)address, size, &whole);
	if (event && turn.interface) {
		*result = (int)process_call(SYS_munmap, address, size);
		unmap(&turn, event, whole);
		interface_let_go(&turn, event);
	}
	interface_end(&turn);
	return event != NULL;
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
		struct interface_call *call = interface_call_of(&turn, INTERFACE_POLL);
		int error = interface_ask_event(event, event->serial, turn.interface, call);
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
void interface_tell_parent(const struct process_thread *thread)
{
	struct interface_turn turn;
	if (!wants_forks(thread->identity.parent_tid))
		return;
	interface_begin(&turn);
	if (turn.interface) {
		struct interface_call *call = interface_call_of(&turn, INTERFACE_FORKED);
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
