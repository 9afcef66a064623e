/* A host for tests of the engine: any number of CPUs, all in this one thread, and a clock that
 * moves only when the test says so.
 *
 * One CPU at a time is "this CPU" (fixture_on()); run_on() changes to another for the call.  The
 * fixture counts all requests of the engine to its host and checks them against the host's
 * contract.  The test fails at once if a lock is taken twice, if memory is requested with
 * interrupts off or in a hit, or if a timer is cancelled on another CPU.  Allocations can be made
 * to fail, each in turn. */
#ifndef TALLY_TESTS_ENGINE_FIXTURE_H
#define TALLY_TESTS_ENGINE_FIXTURE_H

#include "tally/engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIXTURE_CPUS = 8,
	FIXTURE_TASKS = 64,
	FIXTURE_TIMERS = 64,
	FIXTURE_SIGNALS = 1024,
	FIXTURE_PAGE = 4096
};

#define FIXTURE_BAD_POINTER ((void *)16) /* copy_in and copy_out refuse the first page */

struct engine_fixture {
	struct tally_engine *engine;
	struct tally_engine_host host; /* a test may change it before fixture_start() */
	uint64_t now_ns;

	unsigned cpu;
	bool offline[FIXTURE_CPUS];
	enum tally_engine_level level[FIXTURE_CPUS];
	struct tally_engine_task *current[FIXTURE_CPUS];
	bool pending[FIXTURE_CPUS];
	unsigned interrupts_off[FIXTURE_CPUS], locked;
	struct tally_engine_timer *timers[FIXTURE_TIMERS];

	/* The privileges of current_task(); all true at the start. */
	bool perfmon, sys_admin, ipc_lock, observer;

	/* The first process and its first task, which runs on CPU 0. */
	struct tally_engine_process *process;
	struct tally_engine_task *task;
	struct tally_engine_task *tasks[FIXTURE_TASKS];
	unsigned task_count;
	int32_t next_tid;

	/* Allocations of any kind: how many so far, the number of the one that fails (0: none; 1:
	 * the next), and the memory held. */
	unsigned allocations, fail_at;
	size_t held_bytes, held_blocks;
	size_t locked_pages, locked_budget; /* charge_locked(); -EPERM above the budget */

	unsigned wakes;
	struct tally_engine_file *last_woken;
	struct tally_engine_signal signals[FIXTURE_SIGNALS];
	unsigned signal_count;
};

/* --- the host's functions ------------------------------------------------- */

static inline uint64_t fixture_clock_ns(void *host)
{
	return ((struct engine_fixture *)host)->now_ns;
}

/* CLOCK_REALTIME is an hour ahead; the other clocks equal the monotonic one. */
static inline int fixture_clock_of(void *host, int32_t clockid, uint64_t *ns)
{
	if (clockid < 0 || clockid > 11)
		return -22;
	*ns = ((struct engine_fixture *)host)->now_ns + (clockid ? 0 : 3600ull * 1000000000);
	return 0;
}

static inline unsigned fixture_this_cpu(void *host)
{
	return ((struct engine_fixture *)host)->cpu;
}

static inline enum tally_engine_level fixture_level(void *host)
{
	struct engine_fixture *fixture = host;
	return fixture->level[fixture->cpu];
}

static inline struct tally_engine_task *fixture_current_task(void *host)
{
	struct engine_fixture *fixture = host;
	return fixture->current[fixture->cpu];
}

static inline bool fixture_cpu_online(void *host, unsigned cpu)
{
	return !((struct engine_fixture *)host)->offline[cpu];
}

static inline uintptr_t fixture_irq_save(void *host)
{
	struct engine_fixture *fixture = host;
	return fixture->interrupts_off[fixture->cpu]++;
}

static inline void fixture_irq_restore(void *host, uintptr_t state)
{
	struct engine_fixture *fixture = host;
	assert(fixture->interrupts_off[fixture->cpu] == state + 1);
	fixture->interrupts_off[fixture->cpu] = (unsigned)state;
}

/* Asserts task level with interrupts on, where a host may sleep. */
static inline void fixture_may_sleep(const struct engine_fixture *fixture)
{
	assert(fixture->level[fixture->cpu] == TALLY_LEVEL_TASK);
	assert(!fixture->interrupts_off[fixture->cpu]);
}

static inline void fixture_lock(void *host)
{
	struct engine_fixture *fixture = host;
	fixture_may_sleep(fixture);
	assert(!fixture->locked);
	fixture->locked = 1;
}

static inline void fixture_unlock(void *host)
{
	struct engine_fixture *fixture = host;
	assert(fixture->locked);
	fixture->locked = 0;
}

static inline void fixture_run_pending(struct engine_fixture *fixture);

static inline int fixture_run_on(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	struct engine_fixture *fixture = host;
	fixture_may_sleep(fixture);
	assert(cpu < fixture->host.cpus);
	if (fixture->offline[cpu])
		return -6;
	unsigned back = fixture->cpu;
	fixture->cpu = cpu;
	enum tally_engine_level level = fixture->level[cpu];
	fixture->level[cpu] = TALLY_LEVEL_HARDIRQ;
	uintptr_t state = fixture_irq_save(fixture);
	function(argument);
	fixture_irq_restore(fixture, state);
	fixture->level[cpu] = level;
	fixture->cpu = back;
	return 0;
}

static inline bool fixture_allocation_fails(struct engine_fixture *fixture)
{
	fixture_may_sleep(fixture);
	fixture->allocations++;
	return fixture->fail_at && !--fixture->fail_at;
}

static inline void *fixture_allocate(void *host, size_t size)
{
	struct engine_fixture *fixture = host;
	if (fixture_allocation_fails(fixture))
		return NULL;
	fixture->held_blocks++;
	fixture->held_bytes += size;
	return calloc(1, size);
}

static inline void fixture_release(void *host, void *memory, size_t size)
{
	struct engine_fixture *fixture = host;
	if (!memory)
		return;
	assert(fixture->held_blocks && fixture->held_bytes >= size);
	fixture->held_blocks--;
	fixture->held_bytes -= size;
	free(memory);
}

static inline void *fixture_allocate_pages(void *host, size_t pages)
{
	struct engine_fixture *fixture = host;
	if (fixture_allocation_fails(fixture))
		return NULL;
	fixture->held_blocks++;
	fixture->held_bytes += pages * FIXTURE_PAGE;
	void *memory = aligned_alloc(FIXTURE_PAGE, pages * FIXTURE_PAGE);
	memset(memory, 0, pages * FIXTURE_PAGE);
	return memory;
}

static inline void fixture_release_pages(void *host, void *memory, size_t pages)
{
	fixture_release(host, memory, pages * FIXTURE_PAGE);
}

static inline int fixture_charge_locked(void *host, size_t pages)
{
	struct engine_fixture *fixture = host;
	if (fixture->locked_pages + pages > fixture->locked_budget)
		return -1;
	fixture->locked_pages += pages;
	return 0;
}

static inline void fixture_uncharge_locked(void *host, size_t pages)
{
	struct engine_fixture *fixture = host;
	assert(fixture->locked_pages >= pages);
	fixture->locked_pages -= pages;
}

static inline int fixture_copy_in(void *host, void *to, const void *from, size_t size)
{
	(void)host;
	if ((uintptr_t)from < FIXTURE_PAGE)
		return -14;
	memcpy(to, from, size);
	return 0;
}

static inline int fixture_copy_out(void *host, void *to, const void *from, size_t size)
{
	(void)host;
	if ((uintptr_t)to < FIXTURE_PAGE)
		return -14;
	memcpy(to, from, size);
	return 0;
}

static inline bool fixture_capable(void *host, enum tally_engine_capability capability)
{
	struct engine_fixture *fixture = host;
	if (capability == TALLY_CAPABLE_PERFMON)
		return fixture->perfmon;
	return capability == TALLY_CAPABLE_SYS_ADMIN ? fixture->sys_admin : fixture->ipc_lock;
}

static inline bool fixture_may_observe(void *host, struct tally_engine_task *task)
{
	struct engine_fixture *fixture = host;
	return fixture->observer || task == fixture->current[fixture->cpu];
}

static inline struct tally_engine_task *fixture_find_task(void *host, int32_t tid)
{
	struct engine_fixture *fixture = host;
	for (unsigned i = 0; i < fixture->task_count; i++)
		if (fixture->tasks[i] && tally_engine_task_identity(fixture->tasks[i])->tid == tid)
			return fixture->tasks[i];
	return NULL;
}

static inline void fixture_pend(void *host)
{
	struct engine_fixture *fixture = host;
	fixture->pending[fixture->cpu] = true;
}

static inline void fixture_wake(void *host, struct tally_engine_file *file)
{
	struct engine_fixture *fixture = host;
	assert(fixture->level[fixture->cpu] < TALLY_LEVEL_NMI);
	fixture->wakes++;
	fixture->last_woken = file;
}

static inline void fixture_signal(void *host, const struct tally_engine_signal *signal)
{
	struct engine_fixture *fixture = host;
	assert(fixture->level[fixture->cpu] < TALLY_LEVEL_NMI);
	if (fixture->signal_count < FIXTURE_SIGNALS)
		fixture->signals[fixture->signal_count] = *signal;
	fixture->signal_count++;
}

static inline void fixture_timer_start(void *host, struct tally_engine_timer *timer)
{
	struct engine_fixture *fixture = host;
	timer->cpu = fixture->cpu;
	for (unsigned i = 0; i < FIXTURE_TIMERS; i++)
		if (fixture->timers[i] == timer)
			return;
	for (unsigned i = 0; i < FIXTURE_TIMERS; i++)
		if (!fixture->timers[i]) {
			fixture->timers[i] = timer;
			return;
		}
	assert(!"more timers than the fixture holds");
}

static inline void fixture_timer_cancel(void *host, struct tally_engine_timer *timer)
{
	struct engine_fixture *fixture = host;
	for (unsigned i = 0; i < FIXTURE_TIMERS; i++)
		if (fixture->timers[i] == timer) {
			assert(timer->cpu == fixture->cpu);
			fixture->timers[i] = NULL;
		}
}

/* --- what tests do with it ------------------------------------------------ */

static inline struct tally_engine_regs fixture_user_regs(uint64_t ip)
{
	return (struct tally_engine_regs){
		.ip = ip, .sp = 0x7fff0000, .fp = 0x7fff0010, .mode = TALLY_MODE_USER
	};
}

static inline struct tally_engine_regs fixture_kernel_regs(uint64_t ip)
{
	return (struct tally_engine_regs){ .ip = ip, .mode = TALLY_MODE_KERNEL };
}

/* Runs what the engine requested with pend() on this CPU. */
static inline void fixture_run_pending(struct engine_fixture *fixture)
{
	for (unsigned turn = 0; fixture->pending[fixture->cpu]; turn++) {
		assert(turn < 1000);
		fixture->pending[fixture->cpu] = false;
		uintptr_t state = fixture_irq_save(fixture);
		tally_engine_run_pending(fixture->engine);
		fixture_irq_restore(fixture, state);
	}
}

/* Makes `cpu` this CPU. */
static inline void fixture_on(struct engine_fixture *fixture, unsigned cpu)
{
	assert(cpu < fixture->host.cpus);
	fixture->cpu = cpu;
}

/* Returns the timer that is due first, up to `end`. */
static inline struct tally_engine_timer **fixture_next_timer(struct engine_fixture *fixture,
							     uint64_t end)
{
	struct tally_engine_timer **first = NULL;
	for (unsigned i = 0; i < FIXTURE_TIMERS; i++) {
		struct tally_engine_timer *timer = fixture->timers[i];
		if (timer && timer->deadline_ns <= end &&
		    (!first || timer->deadline_ns < (*first)->deadline_ns))
			first = &fixture->timers[i];
	}
	return first;
}

/* Lets time pass.  Timers fire at their deadlines, on their CPUs, in user code. */
static inline void fixture_advance(struct engine_fixture *fixture, uint64_t ns)
{
	uint64_t end = fixture->now_ns + ns;
	for (struct tally_engine_timer **due; (due = fixture_next_timer(fixture, end));) {
		struct tally_engine_timer *timer = *due;
		struct tally_engine_regs regs = fixture_user_regs(0x401000);
		unsigned back = fixture->cpu;
		*due = NULL;
		if (fixture->now_ns < timer->deadline_ns)
			fixture->now_ns = timer->deadline_ns;
		fixture->cpu = timer->cpu;
		fixture->level[fixture->cpu] = TALLY_LEVEL_HARDIRQ;
		uintptr_t state = fixture_irq_save(fixture);
		timer->fired(timer, &regs);
		fixture_irq_restore(fixture, state);
		fixture->level[fixture->cpu] = TALLY_LEVEL_TASK;
		fixture_run_pending(fixture);
		fixture->cpu = back;
	}
	fixture->now_ns = end;
}

/* Makes one tick on this CPU now. */
static inline void fixture_tick(struct engine_fixture *fixture)
{
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	fixture->level[fixture->cpu] = TALLY_LEVEL_HARDIRQ;
	uintptr_t state = fixture_irq_save(fixture);
	tally_engine_tick(fixture->engine, &regs);
	fixture_irq_restore(fixture, state);
	fixture->level[fixture->cpu] = TALLY_LEVEL_TASK;
	fixture_run_pending(fixture);
}

/* Makes `count` ticks on every online CPU, a tick's time apart. */
static inline void fixture_ticks(struct engine_fixture *fixture, unsigned count)
{
	unsigned back = fixture->cpu;
	while (count--) {
		fixture_advance(fixture, fixture->host.tick_ns);
		for (fixture->cpu = 0; fixture->cpu < fixture->host.cpus; fixture->cpu++)
			if (!fixture->offline[fixture->cpu])
				fixture_tick(fixture);
		fixture->cpu = back;
	}
}

/* Switches this CPU to `next` (NULL: idle).  The previous task is preempted, or else sleeps. */
static inline void fixture_switch_from(struct engine_fixture *fixture,
				       struct tally_engine_task *next, bool preempted)
{
	struct tally_engine_task *previous = fixture->current[fixture->cpu];
	uintptr_t state = fixture_irq_save(fixture);
	tally_engine_switch_out(fixture->engine, previous, next, preempted);
	fixture->current[fixture->cpu] = next;
	tally_engine_switch_in(fixture->engine, previous, next);
	fixture_irq_restore(fixture, state);
	fixture_run_pending(fixture);
}

static inline void fixture_switch(struct engine_fixture *fixture, struct tally_engine_task *next)
{
	fixture_switch_from(fixture, next, false);
}

/* Makes a software event in the current task of this CPU, in user code. */
static inline void fixture_hit(struct engine_fixture *fixture, enum tally_sw event, uint64_t count)
{
	struct tally_engine_regs regs = fixture_user_regs(0x401000);
	tally_engine_software(fixture->engine, event, count, &regs, 0x7000);
	fixture_run_pending(fixture);
}

static inline struct tally_engine_task *fixture_add_task(struct engine_fixture *fixture,
							 struct tally_engine_process *process,
							 int32_t pid, const char *comm)
{
	struct tally_engine_identity identity = {
		.pid = pid, .tid = fixture->next_tid++, .parent_pid = 1, .parent_tid = 1
	};
	snprintf(identity.comm, sizeof(identity.comm), "%s", comm);
	assert(fixture->task_count < FIXTURE_TASKS);
	struct tally_engine_task *task = tally_engine_task_new(process, &identity, fixture);
	if (task)
		fixture->tasks[fixture->task_count++] = task;
	return task;
}

/* Creates a task in a new process that no other task is related to.  It does not run. */
static inline struct tally_engine_task *fixture_stranger(struct engine_fixture *fixture,
							 const char *comm)
{
	struct tally_engine_process *process = tally_engine_process_new(fixture->engine,
									fixture->next_tid);
	return process ? fixture_add_task(fixture, process, fixture->next_tid, comm) : NULL;
}

/* fork(2) or pthread_create by the current task of this CPU.  Returns the child, which does not run
 * yet, or NULL for -ENOMEM. */
static inline struct tally_engine_task *fixture_fork(struct engine_fixture *fixture, bool thread)
{
	struct tally_engine_task *parent = fixture->current[fixture->cpu];
	struct tally_engine_process *process = tally_engine_task_process(parent), *own = NULL;
	int32_t pid = tally_engine_task_identity(parent)->pid;
	if (!thread) {
		pid = fixture->next_tid;
		process = own = tally_engine_process_fork(process, pid);
		if (!process)
			return NULL;
	}
	struct tally_engine_task *child = fixture_add_task(fixture, process, pid, "child");
	if (child && !tally_engine_task_fork(parent, child, thread))
		return child;
	if (child) {
		fixture->task_count--;
		tally_engine_task_free(child);
	}
	if (own)
		tally_engine_process_exit(own);
	return NULL;
}

/* Ends the current task of this CPU, and with `process` its process.  The CPU becomes idle. */
static inline void fixture_exit(struct engine_fixture *fixture, bool process)
{
	struct tally_engine_task *task = fixture->current[fixture->cpu];
	struct tally_engine_process *of = tally_engine_task_process(task);
	tally_engine_task_exit(task);
	fixture_run_pending(fixture);
	fixture_switch(fixture, NULL);
	if (process)
		tally_engine_process_exit(of);
	for (unsigned i = 0; i < fixture->task_count; i++)
		if (fixture->tasks[i] == task)
			fixture->tasks[i] = NULL;
	tally_engine_task_free(task);
}

static inline uint64_t fixture_bytes(struct engine_fixture *fixture)
{
	struct tally_engine_statistics statistics;
	tally_engine_statistics(fixture->engine, &statistics);
	return statistics.bytes;
}

static inline uint64_t fixture_events(struct engine_fixture *fixture)
{
	struct tally_engine_statistics statistics;
	tally_engine_statistics(fixture->engine, &statistics);
	return statistics.events;
}

/* Returns an attr of the current size. */
static inline struct tally_attr fixture_attr(uint32_t type, uint64_t config)
{
	return (struct tally_attr){ .type = type,
				    .size = sizeof(struct tally_attr),
				    .config = config };
}

/* Opens an event on the calling task, on any CPU. */
static inline int fixture_open(struct engine_fixture *fixture, const struct tally_attr *attr,
			       int group)
{
	return tally_engine_open(fixture->engine, attr, 0, -1, group, 0);
}

/* Returns the value of an event with read_format 0, or ~0 if the read fails. */
static inline uint64_t fixture_value(struct engine_fixture *fixture, int fd)
{
	uint64_t value = 0;
	return tally_engine_read(fixture->engine, fd, &value, sizeof(value)) == sizeof(value)
		       ? value
		       : UINT64_MAX;
}

/* --- life ----------------------------------------------------------------- */

/* Fills the host's table.  `fixture` is the caller's, with any content. */
static inline void fixture_init(struct engine_fixture *fixture, unsigned cpus)
{
	assert(cpus && cpus <= FIXTURE_CPUS);
	*fixture = (struct engine_fixture){
		.now_ns = 1000000000, .next_tid = 1000, .locked_budget = 1u << 20,
		.perfmon = true, .sys_admin = true, .ipc_lock = true, .observer = true,
		.host = {
			.host = fixture, .cpus = cpus,
			.page_size = FIXTURE_PAGE, .tick_ns = 4000000,
			.clock_ns = fixture_clock_ns, .clock_of = fixture_clock_of,
			.this_cpu = fixture_this_cpu,
			.level = fixture_level, .current_task = fixture_current_task,
			.cpu_online = fixture_cpu_online,
			.irq_save = fixture_irq_save, .irq_restore = fixture_irq_restore,
			.lock = fixture_lock, .unlock = fixture_unlock, .run_on = fixture_run_on,
			.allocate = fixture_allocate, .release = fixture_release,
			.allocate_pages = fixture_allocate_pages,
			.release_pages = fixture_release_pages,
			.charge_locked = fixture_charge_locked,
			.uncharge_locked = fixture_uncharge_locked,
			.copy_in = fixture_copy_in, .copy_out = fixture_copy_out,
			.capable = fixture_capable, .may_observe = fixture_may_observe,
			.find_task = fixture_find_task,
			.pend = fixture_pend, .wake = fixture_wake, .signal = fixture_signal,
			.timer_start = fixture_timer_start, .timer_cancel = fixture_timer_cancel,
		},
	};
}

/* Creates the engine and one process with one task, "first", which runs on CPU 0; the other CPUs
 * are idle.  Returns false if memory runs out. */
static inline bool fixture_start(struct engine_fixture *fixture)
{
	fixture->engine = tally_engine_new(&fixture->host);
	if (!fixture->engine)
		return false;
	fixture->process = tally_engine_process_new(fixture->engine, fixture->next_tid);
	if (fixture->process)
		fixture->task = fixture_add_task(fixture, fixture->process, fixture->next_tid,
						 "first");
	if (fixture->task) {
		fixture_switch(fixture, fixture->task);
		return true;
	}
	if (fixture->process)
		tally_engine_process_exit(fixture->process);
	tally_engine_free(fixture->engine);
	fixture->engine = NULL;
	return false;
}

/* Ends every task and process and frees the engine.  Asserts that it gave back everything. */
static inline void fixture_end(struct engine_fixture *fixture)
{
	struct tally_engine_process *processes[FIXTURE_TASKS];
	unsigned process_count = 0;
	fixture->cpu = 0;
	for (unsigned cpu = fixture->host.cpus; cpu-- > 0;) {
		fixture->offline[cpu] = false;
		fixture->cpu = cpu;
		if (fixture->current[cpu])
			fixture_switch(fixture, NULL);
	}
	for (unsigned i = 0; i < fixture->task_count; i++) {
		struct tally_engine_task *task = fixture->tasks[i];
		if (!task)
			continue;
		unsigned at = 0;
		while (at < process_count && processes[at] != tally_engine_task_process(task))
			at++;
		if (at == process_count)
			processes[process_count++] = tally_engine_task_process(task);
		fixture_switch(fixture, task);
		fixture_exit(fixture, false);
	}
	for (unsigned i = 0; i < process_count; i++)
		tally_engine_process_exit(processes[i]);
	tally_engine_free(fixture->engine);
	assert(!fixture->held_blocks && !fixture->held_bytes && !fixture->locked_pages &&
	       !fixture->locked);
	for (unsigned i = 0; i < FIXTURE_TIMERS; i++)
		assert(!fixture->timers[i]);
}

/* cmocka's set-up: *state becomes a started fixture with two CPUs. */
static inline int fixture_set_up(void **state)
{
	struct engine_fixture *fixture = malloc(sizeof(*fixture));
	fixture_init(fixture, 2);
	*state = fixture;
	return fixture_start(fixture) ? 0 : -1;
}

/* cmocka's tear-down: *state is on the heap, and is or begins with a fixture. */
static inline int fixture_tear_down(void **state)
{
	fixture_end(*state);
	free(*state);
	return 0;
}

#endif
