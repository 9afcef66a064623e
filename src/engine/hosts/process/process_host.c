/* The engine's host: a table for each thread's engine, and its ring.
 *
 * The engine has one CPU, number 0, on which the thread is always current: it is switched in when
 * the engine is told about it, and out when it ends.  "Interrupts" are the handler of
 * PROCESS_SIGNAL.  It stays out between process_enter() and process_leave(), so irq_save() and the
 * lock need not do anything.
 *
 * The engine's clock is the thread's CPU time, so all that the engine measures in its clock (times
 * enabled and running, both clock events, periods) passes only while the thread runs.  That is what
 * the kernel measures, too.  Records carry CLOCK_MONOTONIC.
 *
 * Two things are kept out of that clock: `hidden_ns` is what this object itself needed to attach,
 * and while `frozen` the clock shows where the thread's counting begins.
 *
 * Memory comes from a heap of the slot, which is mapped once and kept for the next thread in the
 * slot. */
#include "process/process_agent.h"
#include "process/process_call.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { NS_PER_S = 1000000000, TICK_NS = 4000000 };

uint64_t process_cpu_ns(void)
{
	struct timespec now = { 0 };
	process_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t process_clock_ns(const struct process_thread *thread)
{
	if (thread->frozen)
		return thread->frozen_ns;
	return process_cpu_ns() - thread->hidden_ns;
}

bool process_clock_freeze(struct process_thread *thread)
{
	bool was_frozen = thread->frozen;
	thread->frozen_ns = process_clock_ns(thread);
	thread->frozen = true;
	return was_frozen;
}

/* --- the engine's table --------------------------------------------------- */

static uint64_t clock_ns(void *host)
{
	return process_clock_ns(host);
}

static int clock_of(void *host, int32_t clockid, uint64_t *ns)
{
	struct timespec now;
	(void)host;
	/* not by libc's function, which a library may replace: libfaketime */
	if (process_call(SYS_clock_gettime, clockid, &now))
		return -EINVAL;
	*ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
	return 0;
}

static unsigned this_cpu(void *host)
{
	(void)host;
	return 0;
}

static unsigned cpu_number(void *host)
{
	(void)host;
	/* libc's function makes no system call, and is safe in handlers */
	return (unsigned)sched_getcpu();
}

static enum tally_engine_level level(void *host)
{
	return ((const struct process_thread *)host)->level;
}

static struct tally_engine_task *current_task(void *host)
{
	return ((const struct process_thread *)host)->current;
}

static uintptr_t irq_save(void *host)
{
	(void)host;
	return 0;
}

static void irq_restore(void *host, uintptr_t state)
{
	(void)host, (void)state;
}

static void nothing(void *host)
{
	(void)host;
}

static int run_on(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	(void)host;
	if (cpu)
		return -ENXIO;
	function(argument);
	return 0;
}

static bool capable(void *host, enum tally_engine_capability capability)
{
	const struct process_thread *thread = host;
	(void)capability;
	return thread->current == thread->observer; /* tally may; the program is unprivileged */
}

static void pend(void *host)
{
	((struct process_thread *)host)->pending = true;
}

static void wake(void *host, struct tally_engine_file *file)
{
	(void)host, (void)file;
	/* tally looks at it in short slices, so nobody sleeps on the word */
	__atomic_fetch_add(&process_agent.plan->news, 1, __ATOMIC_SEQ_CST);
}

/* --- memory --------------------------------------------------------------- */

static void *allocate(void *host, size_t size)
{
	return process_heap_allocate(&((struct process_thread *)host)->heap, size);
}

static void release(void *host, void *memory, size_t size)
{
	process_heap_release(&((struct process_thread *)host)->heap, memory, size);
}

/* The plan's events share one ring, which is mapped already. */
static void *allocate_pages(void *host, size_t pages)
{
	struct process_thread *thread = host;
	if (thread->ring_page && pages == 1 + (size_t)process_agent.plan->ring_pages)
		return thread->ring_page;
	return NULL;
}

static void release_pages(void *host, void *memory, size_t pages)
{
	(void)host, (void)memory, (void)pages;
}

/* --- the ring ------------------------------------------------------------- */

/* A slot keeps its ring for the next thread: each record says which thread wrote it. */
static void take_ring(struct process_thread *thread)
{
	struct tally_plan *plan = process_agent.plan;
	thread->ring = -1;
	for (unsigned i = 0; i < process_agent.ring_count; i++) {
		struct tally_plan_ring *ring = &plan->rings[i];
		uint32_t expected = TALLY_PLAN_RING_FREE;
		if (__atomic_load_n(&ring->state, __ATOMIC_RELAXED) != TALLY_PLAN_RING_FREE)
			continue;
		if (!__atomic_compare_exchange_n(&ring->state, &expected, TALLY_PLAN_RING_TAKEN,
						 false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		__atomic_store_n(&ring->executes, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&ring->pid_namespace, process_agent.pid_namespace,
				 __ATOMIC_SEQ_CST);
		__atomic_store_n(&ring->task, process_agent.pid, __ATOMIC_SEQ_CST);
		thread->ring = (int)i;
		break;
	}
	if (thread->ring < 0 && plan->ring_pages)
		__atomic_fetch_add(&plan->unrecorded, 1, __ATOMIC_SEQ_CST);
	if (thread->ring < 0 || !process_agent.rings)
		return;
	thread->ring_page = (struct tally_user_page *)(
		process_agent.rings + (size_t)thread->ring * (1 + (size_t)plan->ring_pages) *
					      TALLY_PLAN_PAGE);
	memset(thread->ring_page, 0, TALLY_PLAN_PAGE);
}

uint32_t process_host_finished_state(void)
{
	if (process_agent.plan->ring_pages)
		return TALLY_PLAN_RING_FINISHED;
	return TALLY_PLAN_RING_FREE;
}

void process_host_finish_ring(struct process_thread *thread)
{
	/* without an engine the slot was never used, and `ring` says nothing */
	if (!__atomic_load_n(&thread->engine, __ATOMIC_ACQUIRE) || thread->ring < 0)
		return;
	__atomic_store_n(&process_agent.plan->rings[thread->ring].state,
			 process_host_finished_state(), __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&process_agent.plan->news, 1, __ATOMIC_SEQ_CST);
}

/* Other threads may be writing, and tally gives finished rings to other processes.  So memory of this
 * process alone takes the rings' place first. */
void process_host_leave_rings(void)
{
	const struct process_thread *own = process_own;
	size_t size = process_agent.ring_count * (1 + (size_t)process_agent.plan->ring_pages) *
		      TALLY_PLAN_PAGE;
	bool is_left = !process_agent.rings;
	if (process_agent.rings) {
		long map = process_call(SYS_mmap, process_agent.rings, size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
					0);
		is_left = map >= 0 || map <= -TALLY_PLAN_PAGE;
	}
	for (unsigned i = 0; i < process_agent.slots_used; i++) {
		/* tally frees the others when the process is dead */
		if (is_left || &process_agent.threads[i] == own)
			process_host_finish_ring(&process_agent.threads[i]);
	}
}

/* --- life ----------------------------------------------------------------- */

void process_observe(struct process_thread *thread)
{
	thread->current = thread->observer;
}

void process_observe_end(struct process_thread *thread)
{
	thread->current = thread->task;
}

void process_host_settle(struct process_thread *thread)
{
	while (thread->pending) {
		thread->pending = false;
		tally_engine_run_pending(thread->engine);
	}
}

struct tally_engine_host process_host_table(struct process_thread *thread)
{
	return (struct tally_engine_host){
		.host = thread,
		.cpus = 1,
		.page_size = TALLY_PLAN_PAGE,
		.tick_ns = TICK_NS,
		.counts_cpu_time = true,
		.clock_ns = clock_ns,
		.clock_of = clock_of,
		.cpu_number = cpu_number,
		.level = level,
		.irq_save = irq_save,
		.irq_restore = irq_restore,
		.lock = nothing,
		.unlock = nothing,
		.timer_start = process_timer_engine_start,
		.timer_cancel = process_timer_engine_cancel,
		.callchain = process_sample_chain,
		.user_register = process_sample_register,
		.interrupted_register = process_sample_register,
		.register_mask = process_sample_registers(),
		.user_stack = process_sample_stack,
		.user_stack_pointer = process_sample_stack_pointer,
	};
}

static int new_engine(struct process_thread *thread)
{
	struct tally_engine_host table = process_host_table(thread);
	table.this_cpu = this_cpu;
	table.current_task = current_task;
	table.run_on = run_on;
	table.allocate = allocate;
	table.release = release;
	table.allocate_pages = allocate_pages;
	table.release_pages = release_pages;
	table.capable = capable;
	table.pend = pend;
	table.wake = wake;
	table.user_stack_size = process_sample_stack_size;
	const struct tally_engine_identity tally = { .comm = "tally" };
	/* process_host_finish_ring() reads it in another thread, and then `ring` */
	__atomic_store_n(&thread->engine, tally_engine_new(&table), __ATOMIC_RELEASE);
	if (!thread->engine)
		return -ENOMEM;
	struct tally_engine_process *owner = tally_engine_process_new(thread->engine, 0);
	if (owner)
		thread->observer = tally_engine_task_new(owner, &tally, NULL);
	if (!thread->observer)
		return -ENOMEM;
	thread->current = thread->observer;
	/* The limit protects a machine from events that are too fast; a clock's period has a least
	 * length. */
	int error = tally_engine_sysctl_set(thread->engine, "perf_event_max_sample_rate", INT32_MAX);
	if (!error)
		error = process_pmu_register(thread);
	return error;
}

/* Makes what the slot's next threads use again: the heap, the ring, the engine. */
static int prepare(struct process_thread *thread)
{
	if (!thread->heap.memory) {
		long map = process_call(SYS_mmap, NULL, PROCESS_HEAP, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (map < 0 && map > -4096)
			return (int)map;
		thread->heap.memory = (uint8_t *)map;
		thread->heap.size = PROCESS_HEAP;
	}
	take_ring(thread);
	int error = new_engine(thread);
	if (!error)
		error = process_events_open_ring(thread);
	return error;
}

int process_host_start(struct process_thread *thread, const struct tally_engine_identity *identity)
{
	int error = thread->engine ? 0 : prepare(thread);
	if (error)
		return error;
	thread->process = tally_engine_process_new(thread->engine, identity->pid);
	if (thread->process)
		thread->task = tally_engine_task_new(thread->process, identity, NULL);
	if (!thread->task)
		return -ENOMEM;
	thread->current = thread->task;
	tally_engine_switch_in(thread->engine, NULL, thread->task);
	return 0;
}

void process_host_end(struct process_thread *thread)
{
	tally_engine_switch_out(thread->engine, thread->task, NULL, false);
	thread->current = thread->observer;
	tally_engine_process_exit(thread->process);
	tally_engine_task_free(thread->task);
	thread->process = NULL;
	thread->task = NULL;
}

void process_host_drop(struct process_thread *thread)
{
	uint8_t *heap = thread->heap.memory;
	memset(thread, 0, sizeof(*thread));
	thread->heap.memory = heap;
	if (heap)
		thread->heap.size = PROCESS_HEAP;
	thread->ring = -1;
}
