/* Contexts under real concurrency.  CPUs are threads; tasks move between them while other tasks
 * open, read, enable, disable and close events on them (the rules in context.c).  Nothing is lost:
 * inherited events count exactly what their tasks did.  Run it under ThreadSanitizer too, which
 * checks that only one CPU touches a CPU's data. */
#include "test.h"

#include "engine/engine_state.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { CPUS = 3, TASKS = 5, TASKS_MAX = 400, COUNTERS = 8, SLOTS = 12, TURNS = 20000 };

struct request {
	void (*function)(void *);
	void *argument;
	atomic_bool done;
};

struct cpu {
	_Atomic(struct request *) mailbox;
	struct tally_engine_task *current;
	struct tally_pmu_event *on[COUNTERS];
	unsigned interrupts_off, number;
	bool pending;
	uint64_t seed;
	pthread_t thread;
};

struct slot {
	pthread_mutex_t mutex;
	int fd;
};

static struct world {
	struct tally_engine *engine;
	struct tally_engine_process *process;
	struct cpu cpus[CPUS];
	pthread_mutex_t engine_lock, pool_lock;
	struct tally_engine_task *pool[TASKS_MAX]; /* ready to run */
	unsigned pooled;
	/* All tasks ever, never reused; protected by the engine's lock. */
	struct tally_engine_task *tasks[TASKS_MAX];
	atomic_uint task_count;
	struct slot slots[SLOTS];
	int roots[TASKS]; /* leaders and members: groups of two */
	atomic_uint_fast64_t truth;
	atomic_uint finished;
	bool alone; /* one thread plays all CPUs */
	struct tally_engine_pmu pmu;
} world;

static _Thread_local struct cpu *here;

/* --- the host ------------------------------------------------------------- */

static void serve(void)
{
	struct request *request = atomic_exchange(&here->mailbox, NULL);
	if (!request)
		return;
	here->interrupts_off++;
	request->function(request->argument);
	here->interrupts_off--;
	atomic_store(&request->done, true);
}

static uint64_t clock_ns(void *host)
{
	(void)host;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned this_cpu(void *host)
{
	(void)host;
	return here->number;
}

static enum tally_engine_level level(void *host)
{
	(void)host;
	return TALLY_LEVEL_TASK;
}

static struct tally_engine_task *current_task(void *host)
{
	(void)host;
	return here->current;
}

static uintptr_t irq_save(void *host)
{
	(void)host;
	return here->interrupts_off++;
}

static void irq_restore(void *host, uintptr_t state)
{
	(void)host;
	here->interrupts_off = (unsigned)state;
}

/* Sleeps with interrupts on, so that other CPUs' calls are served. */
static void lock(void *host)
{
	(void)host;
	while (pthread_mutex_trylock(&world.engine_lock)) {
		serve();
		sched_yield();
	}
}

static void unlock(void *host)
{
	(void)host;
	pthread_mutex_unlock(&world.engine_lock);
}

static int run_on(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	(void)host;
	struct request request = { .function = function, .argument = argument };
	if (cpu == here->number) {
		here->interrupts_off++;
		function(argument);
		here->interrupts_off--;
		return 0;
	}
	if (world.alone) {
		struct cpu *back = here;
		here = &world.cpus[cpu];
		int code = run_on(host, cpu, function, argument);
		here = back;
		return code;
	}
	struct request *none = NULL;
	while (!atomic_compare_exchange_strong(&world.cpus[cpu].mailbox, &none, &request)) {
		none = NULL;
		sched_yield();
	}
	while (!atomic_load(&request.done))
		sched_yield();
	return 0;
}

static void relax(void *host)
{
	(void)host;
	if (!here->interrupts_off)
		serve();
	sched_yield();
}

static void *allocate(void *host, size_t size)
{
	(void)host;
	return calloc(1, size);
}

static void release(void *host, void *memory, size_t size)
{
	(void)host;
	(void)size;
	free(memory);
}

static struct tally_engine_task *find_task(void *host, int32_t tid)
{
	(void)host;
	return (unsigned)tid - 1 < TASKS_MAX ? world.tasks[tid - 1] : NULL;
}

static void pend(void *host)
{
	(void)host;
	here->pending = true;
}

static void wake(void *host, struct tally_engine_file *file)
{
	(void)host;
	(void)file;
}

/* --- a PMU: counters of each CPU, touched on that CPU alone --------------- */

static int event_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	return event->attr->type == pmu->type ? 0 : -ENGINE_ENOENT;
}

static int add(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags;
	for (int i = 0; i < COUNTERS; i++)
		if (!here->on[i]) {
			here->on[i] = event;
			event->index = i;
			event->state = 0;
			return 0;
		}
	return -ENGINE_EAGAIN;
}

static void read_event(struct tally_pmu_event *event)
{
	assert(here->on[event->index] == event);
	tally_engine_pmu_count(event, event->words[0]);
	event->words[0] = 0;
}

static void stop(struct tally_pmu_event *event, unsigned flags)
{
	if (flags & TALLY_EF_UPDATE)
		read_event(event);
	event->state = TALLY_HES_STOPPED;
}

static void begin(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags;
	event->state = 0;
}

static void del(struct tally_pmu_event *event, unsigned flags)
{
	stop(event, flags);
	here->on[event->index] = NULL;
	event->index = -1;
}

static const struct tally_engine_pmu_ops pmu_ops = {
	.event_init = event_init,
	.add = add,
	.del = del,
	.start = begin,
	.stop = stop,
	.read = read_event,
};

/* --- what a CPU does ------------------------------------------------------ */

static unsigned below(unsigned limit)
{
	uint64_t *state = &here->seed;
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (unsigned)(*state >> 33) % limit;
}

static void switch_to(struct tally_engine_task *next, bool preempted)
{
	struct tally_engine_task *previous = here->current;
	here->interrupts_off++;
	tally_engine_switch_out(world.engine, previous, next, preempted);
	here->current = next;
	tally_engine_switch_in(world.engine, previous, next);
	here->interrupts_off--;
}

static void to_pool(struct tally_engine_task *task)
{
	pthread_mutex_lock(&world.pool_lock);
	world.pool[world.pooled++] = task;
	pthread_mutex_unlock(&world.pool_lock);
}

static struct tally_engine_task *from_pool(void)
{
	struct tally_engine_task *task = NULL;
	pthread_mutex_lock(&world.pool_lock);
	if (world.pooled) {
		unsigned i = below(world.pooled);
		task = world.pool[i];
		world.pool[i] = world.pool[--world.pooled];
	}
	pthread_mutex_unlock(&world.pool_lock);
	return task;
}

static void change_task(void)
{
	struct tally_engine_task *previous = here->current;
	switch_to(from_pool(), true);
	if (previous)
		to_pool(previous);
}

static void work(void)
{
	unsigned n = below(100);
	here->interrupts_off++;
	if (here->current) {
		for (unsigned i = 0; i < COUNTERS; i++)
			if (here->on[i])
				here->on[i]->words[0] += n;
		atomic_fetch_add(&world.truth, n);
	}
	here->interrupts_off--;
}

static struct tally_engine_task *new_task(void)
{
	unsigned i = atomic_fetch_add(&world.task_count, 1);
	if (i >= TASKS_MAX)
		return NULL;
	struct tally_engine_identity identity = { .pid = 1, .tid = (int32_t)i + 1, .comm = "task" };
	struct tally_engine_task *task = tally_engine_task_new(world.process, &identity, NULL);
	lock(NULL);
	world.tasks[i] = task;
	unlock(NULL);
	return task;
}

static void fork_thread(void)
{
	if (atomic_load(&world.task_count) >= TASKS_MAX - CPUS)
		return;
	struct tally_engine_task *child = new_task();
	assert(tally_engine_task_fork(here->current, child, true) == 0);
	to_pool(child);
}

static void exit_thread(void)
{
	struct tally_engine_task *task = here->current;
	int32_t tid = tally_engine_task_identity(task)->tid;
	if (tid <= TASKS)
		return; /* root tasks stay */
	tally_engine_task_exit(task);
	lock(NULL);
	world.tasks[tid - 1] = NULL;
	unlock(NULL);
	switch_to(NULL, false);
	tally_engine_task_free(task);
}

/* Makes one call on an event of any task, which may be running anywhere, ending, or ended. */
static void call(void)
{
	struct slot *slot = &world.slots[below(SLOTS)];
	uint64_t words[3];
	if (pthread_mutex_trylock(&slot->mutex))
		return;
	if (slot->fd < 0) {
		struct tally_attr attr = { .type = world.pmu.type,
					   .size = sizeof(attr),
					   .read_format = 3 };
		if (below(2))
			attr.flags = TALLY_ATTR_INHERIT;
		else if (below(2))
			attr.flags = TALLY_ATTR_DISABLED;
		int32_t tid = 1 + (int32_t)below(atomic_load(&world.task_count));
		int cpu = below(4) ? -1 : (int)below(CPUS);
		if (cpu >= 0 && below(3) == 0)
			tid = -1;
		slot->fd = tally_engine_open(world.engine, &attr, tid, cpu, -1, 0);
		assert(slot->fd >= 0 || slot->fd == -ENGINE_ESRCH);
	} else
		switch (below(4)) {
		case 0:
			tally_engine_close(world.engine, slot->fd);
			slot->fd = -1;
			break;
		case 1:
			assert(tally_engine_ioctl(world.engine, slot->fd, TALLY_IOC_ENABLE, 0) ==
			       0);
			break;
		case 2:
			assert(tally_engine_ioctl(world.engine, slot->fd, TALLY_IOC_DISABLE, 0) ==
			       0);
			break;
		default:
			assert(tally_engine_read(world.engine, slot->fd, words, sizeof(words)) ==
			       (long)sizeof(words));
			assert(words[1] >= words[2]);
		}
	pthread_mutex_unlock(&slot->mutex);
}

/* Reads a tree's group, which counts on other CPUs meanwhile: for each task, the members' sums must
 * be from one moment. */
static void read_tree(void)
{
	uint64_t words[3];
	long size = tally_engine_read(world.engine, world.roots[below(TASKS)], words,
				      sizeof(words));
	assert(size == (long)sizeof(words));
	assert(words[0] == 2 && words[1] == words[2]);
}

static void turn(void)
{
	serve();
	unsigned what = below(20);
	if (what < 8 || !here->current)
		change_task();
	else if (what < 11)
		call();
	else if (what == 11)
		read_tree();
	else if (what == 12)
		fork_thread();
	else if (what == 13)
		exit_thread();
	else if (what == 14) {
		here->interrupts_off++;
		tally_engine_tick(world.engine, NULL);
		here->interrupts_off--;
	}
	if (here->pending) {
		here->pending = false;
		here->interrupts_off++;
		tally_engine_run_pending(world.engine);
		here->interrupts_off--;
	}
	work();
}

static void *cpu_main(void *argument)
{
	here = argument;
	for (unsigned i = 0; i < TURNS; i++)
		turn();
	switch_to(NULL, true); /* idle, but able to serve the others' calls */
	for (atomic_fetch_add(&world.finished, 1); atomic_load(&world.finished) < CPUS;
	     sched_yield())
		serve();
	return NULL;
}

/* --- the test ------------------------------------------------------------- */

static void make_world(void)
{
	struct tally_engine_host host = {
		.cpus = CPUS,
		.page_size = 4096,
		.tick_ns = 1000000,
		.clock_ns = clock_ns,
		.this_cpu = this_cpu,
		.level = level,
		.current_task = current_task,
		.irq_save = irq_save,
		.irq_restore = irq_restore,
		.lock = lock,
		.unlock = unlock,
		.run_on = run_on,
		.relax = relax,
		.allocate = allocate,
		.release = release,
		.find_task = find_task,
		.pend = pend,
		.wake = wake,
	};
	pthread_mutex_init(&world.engine_lock, NULL);
	pthread_mutex_init(&world.pool_lock, NULL);
	for (unsigned i = 0; i < CPUS; i++) {
		world.cpus[i].number = i;
		world.cpus[i].seed = 12345 + i;
	}
	here = &world.cpus[0];
	world.engine = tally_engine_new(&host);
	assert_non_null(world.engine);
	world.pmu = (struct tally_engine_pmu){ .name = "counters", .ops = &pmu_ops };
	assert_int_equal(tally_engine_pmu_register(world.engine, &world.pmu), 0);
	world.process = tally_engine_process_new(world.engine, 1);
	for (unsigned i = 0; i < SLOTS; i++) {
		pthread_mutex_init(&world.slots[i].mutex, NULL);
		world.slots[i].fd = -1;
	}
	for (unsigned i = 0; i < TASKS; i++)
		world.pool[world.pooled++] = new_task();
	world.alone = true;
	change_task();
	for (unsigned i = 0; i < TASKS; i++) {
		struct tally_attr attr = { .type = world.pmu.type, .size = sizeof(attr) };
		attr.read_format = TALLY_FORMAT_GROUP;
		attr.flags = TALLY_ATTR_INHERIT | TALLY_ATTR_PINNED;
		world.roots[i] = tally_engine_open(world.engine, &attr, (int32_t)i + 1, -1, -1, 0);
		assert_true(world.roots[i] >= 0);
		attr.flags = TALLY_ATTR_INHERIT;
		assert_true(tally_engine_open(world.engine, &attr, (int32_t)i + 1, -1,
					      world.roots[i], 0) >= 0);
	}
}

static void end_world(void)
{
	switch_to(world.tasks[0], false);
	for (unsigned i = 0; i < SLOTS; i++)
		if (world.slots[i].fd >= 0)
			tally_engine_close(world.engine, world.slots[i].fd);
	for (unsigned i = 0; i < TASKS_MAX; i++)
		if (world.tasks[i]) {
			switch_to(world.tasks[i], false);
			tally_engine_task_exit(world.tasks[i]);
			switch_to(NULL, false);
			tally_engine_task_free(world.tasks[i]);
		}
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		for (unsigned i = 0; i < COUNTERS; i++)
			assert_null(world.cpus[cpu].on[i]);
	tally_engine_process_exit(world.process);
	struct tally_engine_statistics statistics;
	tally_engine_statistics(world.engine, &statistics);
	assert_int_equal(statistics.events, 0);
	tally_engine_free(world.engine);
}

static void nothing_is_lost_between_cpus(void **state)
{
	(void)state;
	make_world();
	world.alone = false;
	for (unsigned i = 1; i < CPUS; i++)
		assert_int_equal(
			pthread_create(&world.cpus[i].thread, NULL, cpu_main, &world.cpus[i]), 0);
	cpu_main(&world.cpus[0]);
	for (unsigned i = 1; i < CPUS; i++)
		pthread_join(world.cpus[i].thread, NULL);
	world.alone = true;
	switch_to(world.tasks[0], false);
	uint64_t sum = 0, words[3];
	for (unsigned i = 0; i < TASKS; i++) {
		assert_int_equal(
			tally_engine_read(world.engine, world.roots[i], words, sizeof(words)),
			sizeof(words));
		assert_int_equal(words[1], words[2]);
		sum += words[1];
	}
	assert_int_equal(sum, atomic_load(&world.truth));
	assert_true(sum > 0);
	end_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(nothing_is_lost_between_cpus) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
