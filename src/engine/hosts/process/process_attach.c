/* The life of programs, processes and threads under the preloaded object.
 *
 * - A program begins: the constructor takes the plan out of the environment, maps it, and attaches
 *   the main thread.  The CPU time until then (the dynamic linker's) is the program's: it is counted,
 *   and sampled at the linker's entry.  What the object itself needs until the end of the constructor
 *   is not counted.
 * - A thread begins: pthread_create(3) and thrd_create(3) reserve a slot and start the thread in this
 *   object, which attaches it and goes on to its function by a jump, so that no frame of this object
 *   is in its stack.
 * - A thread ends: a destructor of thread-specific data, the last of its round.
 * - fork(2): the child forgets all engines and makes one for its only thread.  A child of vfork(2) or
 *   posix_spawn(3) shares the parent's memory: nothing is done there.
 * - exec: the wrappers (process_exec.c) call process_exec_begins(); the program that is executed goes
 *   on from what its thread had used.
 * - The process ends: a destructor, or a wrapper of _exit(2).  What no thread has told is added then.
 *   A process that a signal kills loses what its threads have not told yet: 20 ms of each.
 *
 * If something fails (no memory, no timers), the thread is not counted, and the program runs on. */
#include "process/process_agent.h"
#include "process/process_call.h"
#include "process/process_next.h"
#include "process/process_signals.h"
#include "process/process_usage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <threads.h>
#include <unistd.h>

enum {
	RESERVED = -1,
	/* bytes in which the kernel maps nothing but the first thread's stack, if the program doesn't
	 * choose the address itself */
	MAIN_STACK = 64 << 20,
	FEW_THREADS = 64
};

struct process_agent process_agent;
__thread struct process_thread *process_own;
static pthread_key_t end_key;

static int32_t own_tid(void)
{
	return (int32_t)process_call(SYS_gettid);
}

static void note_pid(void)
{
	struct stat about;
	process_agent.pid = own_tid();
	process_agent.pid_namespace = 0;
	if (!process_call(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &about, 0))
		process_agent.pid_namespace = (uint32_t)about.st_ino;
}

struct process_thread *process_self(void)
{
	struct process_thread *thread = process_own;
	/* first: at the end a filter of the program's own may forbid the call */
	if (process_agent.is_ending)
		return NULL;
	if (!thread || !thread->task || thread->tid != own_tid())
		return NULL;
	return thread;
}

/* --- the plan ------------------------------------------------------------- */

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static bool is_plan(const struct tally_plan *plan, uint64_t file_size)
{
	if (plan->magic != TALLY_PLAN_MAGIC || plan->version != TALLY_PLAN_VERSION ||
	    plan->size > file_size || plan->event_count > TALLY_PLAN_EVENTS)
		return false;
	if (!plan->ring_pages)
		return true;
	return is_power_of_two(plan->ring_pages) && plan->ring_pages <= 1u << 16 &&
	       plan->rings_offset >= sizeof(*plan) && plan->rings_offset % TALLY_PLAN_PAGE == 0 &&
	       tally_plan_ring_offset(plan, TALLY_PLAN_RINGS) <= plan->size;
}

static void *map_file(int fd, uint64_t offset, size_t size)
{
	long map = process_call(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_NORESERVE, fd, offset);
	if (map < 0 && map > -TALLY_PLAN_PAGE)
		return NULL;
	return (void *)map;
}

/* Maps all rings at once, since the file is closed then; under a limit of memory, as many as fit.
 * Pages that are never written cost nothing. */
static void map_rings(int fd)
{
	const struct tally_plan *plan = process_agent.plan;
	size_t each = (1 + (size_t)plan->ring_pages) * TALLY_PLAN_PAGE;
	unsigned count = TALLY_PLAN_RINGS;
	process_agent.ring_count = count;
	if (!plan->ring_pages)
		return;
	for (; count; count /= 2) {
		process_agent.rings = map_file(fd, plan->rings_offset, count * each);
		if (process_agent.rings)
			break;
	}
	process_agent.ring_count = count;
	if (count)
		process_call(SYS_madvise, process_agent.rings, count * each, MADV_DONTDUMP);
}

static bool map_plan(int fd)
{
	struct stat about;
	if (process_call(SYS_fstat, fd, &about) || (uint64_t)about.st_size < sizeof(struct tally_plan))
		return false;
	struct tally_plan *plan = map_file(fd, 0, sizeof(*plan));
	if (!plan)
		return false;
	if (!is_plan(plan, (uint64_t)about.st_size)) {
		process_call(SYS_munmap, plan, sizeof(*plan));
		return false;
	}
	process_agent.plan = plan;
	map_rings(fd);
	process_interface_map(fd);
	return true;
}

/* Tries one way: a path, or "fd:N". */
static bool try_way(const char *way)
{
	bool is_number = !strncmp(way, "fd:", 3);
	int fd;
	if (is_number)
		fd = atoi(way + 3);
	else
		fd = (int)process_call(SYS_openat, AT_FDCWD, way, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool is_mapped = map_plan(fd);
	/* an inherited descriptor stays, for programs that are executed later */
	if (!is_number)
		process_call(SYS_close, fd);
	return is_mapped;
}

static bool open_plan(void)
{
	char ways[sizeof(process_agent.plan_name)];
	memcpy(ways, process_agent.plan_name, sizeof(ways));
	for (char *way = ways, *end; way; way = end) {
		end = strchr(way, '|');
		if (end)
			*end++ = '\0';
		if (try_way(way))
			return true;
	}
	return false;
}

static void look_at_events(void)
{
	const struct tally_plan *plan = process_agent.plan;
	for (unsigned i = 0; i < plan->event_count; i++) {
		const struct tally_attr *attr = &plan->events[i].attr;
		bool is_clock = attr->type == TALLY_TYPE_SOFTWARE &&
				(attr->config == TALLY_SW_CPU_CLOCK ||
				 attr->config == TALLY_SW_TASK_CLOCK);
		process_agent.samples |= is_clock && attr->sample_period;
		process_agent.counts_usage |= !is_clock;
		process_agent.counts_migrations |= attr->type == TALLY_TYPE_SOFTWARE &&
						   attr->config == TALLY_SW_CPU_MIGRATIONS;
		if (!plan->events[i].sampled)
			continue;
		process_agent.wants_data_maps |= attr->flags & TALLY_ATTR_MMAP_DATA ? true : false;
		process_agent.wants_maps |= attr->flags & (TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2) ?
						    true :
						    false;
	}
	process_agent.wants_maps |= process_agent.wants_data_maps;
}

/* --- slots ---------------------------------------------------------------- */

static bool make_slots(void)
{
	unsigned count = PROCESS_THREADS;
	for (; count >= FEW_THREADS; count /= 4) {
		long map = process_call(SYS_mmap, NULL, count * sizeof(struct process_thread),
					PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (map < 0 && map > -TALLY_PLAN_PAGE)
			continue;
		process_agent.threads = (struct process_thread *)map;
		process_agent.thread_slots = count;
		return true;
	}
	return false;
}

static struct process_thread *reserve_slot(void)
{
	for (unsigned i = 0; i < process_agent.thread_slots; i++) {
		struct process_thread *slot = &process_agent.threads[i];
		int32_t expected = 0;
		if (__atomic_load_n(&slot->tid, __ATOMIC_RELAXED))
			continue;
		if (!__atomic_compare_exchange_n(&slot->tid, &expected, RESERVED, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		unsigned used = __atomic_load_n(&process_agent.slots_used, __ATOMIC_SEQ_CST);
		while (used <= i &&
		       !__atomic_compare_exchange_n(&process_agent.slots_used, &used, i + 1, false,
						    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			;
		return slot;
	}
	return NULL;
}

static void free_slot(struct process_thread *slot)
{
	__atomic_store_n(&slot->tid, 0, __ATOMIC_SEQ_CST);
}

/* --- attaching and leaving ------------------------------------------------ */

enum beginning { OF_PROGRAM, OF_FORK, OF_THREAD };

/* Takes what the object itself used since `from` out of what the program has used. */
static void hide(struct process_thread *thread, const struct tally_plan_usage *from)
{
	struct tally_plan_usage now, hidden;
	process_usage_of_thread(&now);
	hidden = process_usage_since(&now, from);
	process_usage_add(&process_agent.told, &hidden);
	thread->hidden_ns += hidden.cpu_ns;
	thread->told.minor_faults += hidden.minor_faults;
	thread->told.major_faults += hidden.major_faults;
	thread->told.switches += hidden.switches;
	thread->told.cpu_ns += hidden.cpu_ns;
}

static int begin(struct process_thread *thread, enum beginning beginning,
		 const struct tally_engine_identity *parent)
{
	struct tally_engine_identity own = thread->identity;
	if (beginning == OF_PROGRAM)
		parent = &own;
	int error = process_host_start(thread, parent);
	if (!error)
		error = process_events_open(thread);
	if (error)
		return error;
	if (beginning == OF_PROGRAM) {
		tally_engine_task_exec(thread->task, own.comm);
		process_events_note_exec(thread);
	} else {
		tally_engine_task_forked(thread->task, &own);
	}
	if (beginning != OF_THREAD)
		process_maps_tell(thread, beginning == OF_PROGRAM);
	return 0;
}

/* Attaches the calling thread in its slot.  `used`: what it had used when its counting begins, `now`:
 * what it had used when this object began to attach it. */
static bool attach(struct process_thread *thread, enum beginning beginning,
		   const struct tally_engine_identity *parent, const struct tally_plan_usage *used,
		   const struct tally_plan_usage *now)
{
	unsigned cpu = 0;
	thread->pid = process_agent.pid;
	__atomic_store_n(&thread->tid, own_tid(), __ATOMIC_SEQ_CST);
	thread->inside = 1;
	thread->missed = 0;
	thread->level = TALLY_LEVEL_TASK;
	thread->told = *used;
	thread->hidden_ns = 0;
	thread->frozen = true;
	thread->frozen_ns = used->cpu_ns;
	thread->published_at = used->cpu_ns;
	thread->migrations = used->migrations;
	thread->timers = NULL;
	process_call(SYS_getcpu, &cpu, NULL, NULL);
	thread->last_cpu = (int)cpu;
	thread->random = (now->cpu_ns << 20 ^ (uint64_t)thread->tid << 40 ^
			  (uint64_t)(uintptr_t)&cpu) | 1;
	if (begin(thread, beginning, parent) || process_timer_start(thread)) {
		if (thread->task)
			process_host_end(thread);
		__atomic_fetch_add(&process_agent.plan->unrecorded, 1, __ATOMIC_SEQ_CST);
		free_slot(thread);
		return false;
	}
	process_own = thread;
	hide(thread, now);
	thread->frozen = false;
	const struct tally_plan_usage loading = process_usage_since(now, used);
	process_interface_thread_begin(thread, beginning == OF_PROGRAM ? &loading : NULL);
	return true;
}

static void leave(struct process_thread *thread)
{
	process_enter(thread);
	process_timer_last(thread);
	process_timer_stop(thread);
	process_interface_thread_end(thread);
	process_events_publish(thread, true);
	tally_engine_task_exit(thread->task);
	process_events_close(thread);
	process_host_end(thread);
	/* what this took since is not the program's */
	const struct tally_plan_usage from = thread->told;
	hide(thread, &from);
	process_own = NULL;
	thread->inside = 0;
	free_slot(thread);
}

/* --- threads -------------------------------------------------------------- */

static void set_comm(struct tally_engine_identity *identity)
{
	process_call(SYS_prctl, PR_GET_NAME, identity->comm, 0, 0, 0);
}

/* In the new thread.  `slot` was reserved, and knows the thread that made this one. */
static void attach_thread(struct process_thread *slot)
{
	static const struct tally_plan_usage none;
	struct tally_plan_usage now;
	process_usage_of_thread(&now);
	process_signals_thread(slot->signal_mask);
	struct tally_engine_identity parent = slot->identity;
	slot->identity.parent_pid = parent.pid;
	slot->identity.parent_tid = parent.tid;
	slot->identity.pid = process_agent.pid;
	slot->identity.tid = own_tid();
	if (!attach(slot, OF_THREAD, &parent, &none, &now))
		return;
	/* any value: what counts is that the destructor runs */
	pthread_setspecific(end_key, (void *)(uintptr_t)1);
	process_timer_run(slot, NULL);
	process_leave(slot);
}

/* Runs at each round of destructors; thread-specific data of others may still be used by theirs, so
 * this waits for the last round. */
static void thread_ends(void *value)
{
	uintptr_t round = (uintptr_t)value;
	struct process_thread *thread = process_self();
	if (!thread)
		return;
	if (round < PTHREAD_DESTRUCTOR_ITERATIONS - 1)
		pthread_setspecific(end_key, (void *)(round + 1));
	else
		leave(thread);
}

/* Returns an address above the frames of libc's that began the calling thread: they have less than
 * that, with guard words and the like. */
static inline __attribute__((always_inline)) uint64_t stack_top(void)
{
	enum { BEGINNING = 1024 };
	return (uint64_t)(uintptr_t)__builtin_frame_address(0) + BEGINNING;
}

static void *thread_start(void *argument)
{
	struct process_thread *slot = argument;
	void *(*start)(void *) = slot->start;
	void *own = slot->argument;
	slot->outermost = (uint64_t)(uintptr_t)start;
	slot->stack_top = stack_top();
	attach_thread(slot);
	return start(own); /* a jump */
}

static int c11_thread_start(void *argument)
{
	struct process_thread *slot = argument;
	thrd_start_t start = (thrd_start_t)(void (*)(void))slot->start;
	void *own = slot->argument;
	slot->outermost = (uint64_t)(uintptr_t)start;
	slot->stack_top = stack_top();
	attach_thread(slot);
	return start(own); /* a jump */
}

/* Returns the size in bytes of the stack that a thread with these attributes (NULL: the default ones)
 * gets. */
static size_t stack_size_of(const pthread_attr_t *attr)
{
	pthread_attr_t defaults;
	size_t size = 0;
	if (attr) {
		pthread_attr_getstacksize(attr, &size);
	} else if (!pthread_getattr_default_np(&defaults)) {
		pthread_attr_getstacksize(&defaults, &size);
		pthread_attr_destroy(&defaults);
	}
	return size;
}

static struct process_thread *prepare_thread(const pthread_attr_t *attr, void *(*start)(void *),
					     void *argument)
{
	struct process_thread *self = process_self(), *slot;
	if (!self || process_agent.is_ending || !(slot = reserve_slot()))
		return NULL;
	slot->start = start;
	slot->argument = argument;
	slot->stack_size = stack_size_of(attr);
	slot->signal_mask = process_signals_mask();
	slot->identity = *tally_engine_task_identity(self->task);
	slot->inherits_before = process_interface_moment(self);
	return slot;
}

/* A stack of the least size has little room for handlers: the frames of this object's and of the
 * program's, one in another, would not fit.  Returns `attr`, or *larger with more room. */
static const pthread_attr_t *with_room(const pthread_attr_t *attr, pthread_attr_t *larger)
{
	enum { SMALL = 64 << 10, MORE = 32 << 10 };
	void *address;
	size_t size;
	if (!attr || pthread_attr_getstack(attr, &address, &size) || !size || size >= SMALL)
		return attr;
	bool is_programs = (uintptr_t)address + size != 0; /* libc: NULL, less the size */
	*larger = *attr;
	if (is_programs || pthread_attr_setstacksize(larger, size + MORE))
		return attr;
	return larger;
}

PROCESS_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
				  void *(*start)(void *), void *argument)
{
	pthread_attr_t larger;
	if (process_agent.plan)
		attr = with_room(attr, &larger);
	struct process_thread *slot = prepare_thread(attr, start, argument);
	if (!slot)
		return PROCESS_NEXT(pthread_create)(thread, attr, start, argument);
	int error = PROCESS_NEXT(pthread_create)(thread, attr, thread_start, slot);
	if (error)
		free_slot(slot);
	else
		process_interface_made_child(process_own);
	return error;
}

PROCESS_EXPORT int thrd_create(thrd_t *thread, thrd_start_t start, void *argument)
{
	struct process_thread *slot = prepare_thread(NULL, (void *(*)(void *))(void (*)(void))start,
						     argument);
	if (!slot)
		return PROCESS_NEXT(thrd_create)(thread, start, argument);
	int error = PROCESS_NEXT(thrd_create)(thread, c11_thread_start, slot);
	if (error != thrd_success)
		free_slot(slot);
	else
		process_interface_made_child(process_own);
	return error;
}

static void renamed(const char *name)
{
	char comm[16] = { 0 };
	struct process_thread *thread = process_self();
	if (!thread)
		return;
	strncpy(comm, name, sizeof(comm) - 1);
	uint64_t mask = process_enter_alone(thread);
	tally_engine_comm(thread->task, comm);
	process_leave_alone(thread, mask);
	process_interface_renamed(thread, comm);
}

PROCESS_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	int error = PROCESS_NEXT(pthread_setname_np)(thread, name);
	if (!error && pthread_equal(thread, pthread_self()))
		renamed(name);
	return error;
}

PROCESS_EXPORT int prctl(int option, ...)
{
	va_list list;
	va_start(list, option);
	unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long),
		      c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
	va_end(list);
	/* a filter of the program's own may kill it for system calls that it doesn't make itself */
	if (option == PR_SET_SECCOMP)
		process_end();
	int result = PROCESS_NEXT(prctl)(option, a, b, c, d);
	if (option == PR_SET_NAME && !result)
		renamed((const char *)a);
	if (option == PR_TASK_PERF_EVENTS_ENABLE || option == PR_TASK_PERF_EVENTS_DISABLE)
		process_interface_prctl(option);
	return result;
}

/* A debugger would stop at each sample.  So it gets its program without them. */
PROCESS_EXPORT long ptrace(enum __ptrace_request request, ...)
{
	va_list list;
	va_start(list, request);
	unsigned long pid = va_arg(list, unsigned long), address = va_arg(list, unsigned long),
		      data = va_arg(list, unsigned long);
	va_end(list);
	if (request == PTRACE_TRACEME) {
		process_end();
		process_agent.traced_pid = (int32_t)process_call(SYS_getpid);
	}
	return PROCESS_NEXT(ptrace)(request, pid, address, data);
}

/* --- fork ----------------------------------------------------------------- */

static void before_fork(void)
{
	struct process_thread *thread = process_self();
	if (!thread)
		return;
	process_enter(thread);
	thread->inherits_before = process_interface_moment(thread);
	process_interface_fork_begins();
}

static void after_fork_in_parent(void)
{
	struct process_thread *thread = process_self();
	if (!thread)
		return;
	process_interface_fork_ends();
	process_leave(thread);
	process_interface_made_child(thread);
}

/* The timers and the rings are the parent's.  Other slots are of threads that don't exist here. */
static void after_fork_in_child(void)
{
	static const struct tally_plan_usage none;
	struct process_thread *thread = process_own;
	struct tally_plan_usage now;
	if (!process_agent.plan)
		return;
	process_usage_of_thread(&now);
	process_own = NULL;
	bool was_counted = thread && thread->task && !process_agent.is_ending;
	struct tally_engine_identity parent = { 0 };
	if (was_counted)
		parent = *tally_engine_task_identity(thread->task);
	uint64_t outermost = 0, top = 0, size = 0, moment = 0;
	if (thread) {
		outermost = thread->outermost;
		top = thread->stack_top;
		size = thread->stack_size;
		moment = thread->inherits_before;
	}
	process_agent.pid = own_tid();
	process_interface_forked();
	for (unsigned i = 0; i < process_agent.slots_used; i++)
		process_host_drop(&process_agent.threads[i]);
	process_agent.slots_used = 0;
	note_pid();
	process_agent.told = none;
	if (!was_counted)
		return;
	__atomic_fetch_add(&process_agent.plan->processes, 1, __ATOMIC_SEQ_CST);
	thread = reserve_slot();
	thread->outermost = outermost;
	thread->stack_top = top;
	thread->stack_size = size;
	thread->inherits_before = moment;
	thread->identity = parent;
	thread->identity.pid = thread->identity.tid = process_agent.pid;
	thread->identity.parent_pid = parent.pid;
	thread->identity.parent_tid = parent.tid;
	if (!attach(thread, OF_FORK, &parent, &none, &now))
		return;
	process_timer_run(thread, NULL);
	process_leave(thread);
}

PROCESS_EXPORT pid_t _Fork(void)
{
	before_fork();
	pid_t pid = PROCESS_NEXT(_Fork)();
	if (pid)
		after_fork_in_parent();
	else
		after_fork_in_child();
	return pid;
}

/* --- exec, and the end ---------------------------------------------------- */

void process_exec_begins(void)
{
	struct process_thread *thread = process_self();
	if (!thread || process_agent.is_ending)
		return;
	process_enter(thread);
	process_timer_last(thread);
	process_interface_exec_begins();
	process_events_publish(thread, true);
	if (thread->ring >= 0) {
		struct tally_plan_ring *ring = &process_agent.plan->rings[thread->ring];
		ring->used = thread->told;
		ring->used.migrations = thread->migrations;
		__atomic_store_n(&ring->executes, 1, __ATOMIC_SEQ_CST);
	}
}

void process_exec_failed(void)
{
	struct process_thread *thread = process_self();
	process_signals_exec_failed();
	if (!thread || process_agent.is_ending)
		return;
	if (thread->ring >= 0)
		__atomic_store_n(&process_agent.plan->rings[thread->ring].executes, 0,
				 __ATOMIC_SEQ_CST);
	process_interface_exec_failed();
	process_leave(thread);
}

void process_end(void)
{
	static int32_t by_pid; /* the process that has begun to end */
	if (!process_agent.plan || process_agent.is_ending || process_agent.pid != process_call(SYS_getpid) ||
	    __atomic_exchange_n(&by_pid, process_agent.pid, __ATOMIC_SEQ_CST) == process_agent.pid)
		return;
	struct process_thread *thread = process_self();
	if (thread) {
		process_enter(thread);
		process_timer_last(thread);
		process_timer_stop(thread);
		process_interface_end();
		process_events_publish(thread, true);
		process_agent.is_ending = true;
		process_events_publish_rest(thread);
		tally_engine_task_exit(thread->task);
	}
	process_agent.is_ending = true;
	process_host_leave_rings();
}

PROCESS_EXPORT void _exit(int status)
{
	process_end();
	for (;;)
		process_call(SYS_exit_group, status);
}

PROCESS_EXPORT void _Exit(int status)
{
	process_end();
	for (;;)
		process_call(SYS_exit_group, status);
}

__attribute__((destructor)) static void ends(void)
{
	process_end();
}

/* --- a program begins ----------------------------------------------------- */

/* Returns what the process had used when the program began: what its last program told, or what tally
 * did before it executed the command. */
static struct tally_plan_usage used_before(void)
{
	struct tally_plan *plan = process_agent.plan;
	struct tally_plan_usage used = { 0 };
	bool goes_on = false;
	for (unsigned i = 0; i < TALLY_PLAN_RINGS; i++) {
		struct tally_plan_ring *ring = &plan->rings[i];
		uint32_t taken = TALLY_PLAN_RING_TAKEN;
		if (__atomic_load_n(&ring->task, __ATOMIC_SEQ_CST) != process_agent.pid ||
		    __atomic_load_n(&ring->pid_namespace, __ATOMIC_SEQ_CST) !=
			    process_agent.pid_namespace ||
		    __atomic_load_n(&ring->state, __ATOMIC_SEQ_CST) != taken)
			continue;
		if (__atomic_exchange_n(&ring->executes, 0, __ATOMIC_SEQ_CST)) {
			used = ring->used;
			goes_on = true;
		}
		__atomic_compare_exchange_n(&ring->state, &taken, process_host_finished_state(),
					    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
	int32_t unclaimed = 0;
	bool is_first = __atomic_compare_exchange_n(&plan->first_pid, &unclaimed,
						    process_agent.pid, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST);
	process_agent.is_later_program = !is_first;
	if (is_first)
		used = plan->start;
	if (is_first || !goes_on)
		__atomic_fetch_add(&plan->processes, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&plan->executions, 1, __ATOMIC_SEQ_CST);
	return used;
}

/* Where the program began: the entry of the dynamic linker, which the kernel started. */
static uint64_t entry(void)
{
	const ElfW(Ehdr) *linker = (const void *)getauxval(AT_BASE);
	if (!linker)
		return getauxval(AT_ENTRY);
	return (uint64_t)(uintptr_t)linker + linker->e_entry;
}

static void attach_program(const struct tally_plan_usage *now, char **arguments)
{
	struct process_thread *thread = reserve_slot();
	struct tally_plan_usage used = used_before();
	process_usage_add(&process_agent.told, &used);
	thread->identity = (struct tally_engine_identity){
		.pid = process_agent.pid, .tid = process_agent.pid,
		.parent_pid = (int32_t)process_call(SYS_getppid),
		.parent_tid = (int32_t)process_call(SYS_getppid),
	};
	set_comm(&thread->identity);
	thread->outermost = getauxval(AT_ENTRY);
	/* the first frame ends where the kernel put the arguments */
	thread->stack_top = (uint64_t)(uintptr_t)(arguments + 2);
	thread->stack_size = MAIN_STACK;
	if (!attach(thread, OF_PROGRAM, NULL, &used, now))
		return;
	const struct tally_engine_regs regs = { .ip = entry(), .mode = TALLY_MODE_USER };
	process_timer_run(thread, &regs);
	/* so that a program which is killed soon is known to have been counted */
	process_events_publish(thread, false);
	process_leave(thread);
}

/* The first of all constructors, even of libc's (initfirst in meson.build), since constructors of
 * libraries start threads and look at the environment.  No library is ready, so this calls no
 * function that one may replace (fstat(), getpid()): it makes system calls. */
__attribute__((constructor)) static void begins(int count, char **arguments, char **environment)
{
	struct tally_plan_usage now;
	(void)count;
	process_usage_of_thread(&now);
	process_next_find();
	if (!process_environment_take(environment) || !open_plan())
		return;
	note_pid();
	look_at_events();
	if (!make_slots() || pthread_key_create(&end_key, thread_ends) ||
	    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child)) {
		process_agent.plan = NULL;
		return;
	}
	if (process_signals_start()) {
		process_agent.plan = NULL;
		return;
	}
	attach_program(&now, arguments);
}
