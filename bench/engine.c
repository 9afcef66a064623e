/* The engine's costs beside the kernel's on this machine: docs/performance.md, The engine.
 *
 *     bench_engine [ROUNDS [hits|reads|switches|opens|machine]...]
 *
 * The engine runs in this program, on a host of one CPU whose clock is the processor's cycle
 * counter.  The kernel is measured in turns with it, so that both meet the same conditions.  Prints
 * the median of ROUNDS short rounds, in ns, and the fastest round's. */
#define TALLY_TRACE_DEFINE
#include "tally/tracepoint.h"

#include "sim/sim.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

TALLY_TRACE_CLASS(bench_hit, TALLY_PROTO(uint64_t id, uint32_t size), TALLY_ARGS(id, size),
		  TALLY_FIELDS(TALLY_FIELD(uint64_t, id), TALLY_FIELD(uint32_t, size)),
		  TALLY_ASSIGN(entry->id = id; entry->size = size;),
		  TALLY_PRINT("id=%llu size=%u", (unsigned long long)REC->id, REC->size))
TALLY_TRACE_EVENT(bench_hit, bench_hit)
TALLY_TRACE_GROUP(bench, bench_hit)

enum {
	PAGE = 4096,
	HITS = 20000,
	SWITCHES = 2000,
	OPENS = 10000,
	ROUNDS = 201,
	ROUNDS_MAX = 10001
};

static uint64_t wall_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t value;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#else
	return wall_ns();
#endif
}

/* --- the host: one CPU, this thread --------------------------------------- */

struct bench {
	struct tally_engine *engine;
	struct tally_engine_process *process;
	struct tally_engine_task *tasks[2], *current;
};

static uint64_t host_clock(void *host) { (void)host; return cycles(); }
static unsigned host_cpu(void *host) { (void)host; return 0; }
static enum tally_engine_level host_level(void *host) { (void)host; return TALLY_LEVEL_TASK; }
static struct tally_engine_task *host_current(void *host)
{
	return ((struct bench *)host)->current;
}
static bool host_online(void *host, unsigned cpu) { (void)host; return cpu == 0; }
static uintptr_t host_save(void *host) { (void)host; return 0; }
static void host_restore(void *host, uintptr_t state) { (void)host, (void)state; }
static void host_nothing(void *host) { (void)host; }
static void host_wake(void *host, struct tally_engine_file *file) { (void)host, (void)file; }
static void *host_allocate(void *host, size_t size) { (void)host; return calloc(1, size); }
static void host_release(void *host, void *memory, size_t size)
{
	(void)host, (void)size;
	free(memory);
}
static int host_run_on(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	(void)host, (void)cpu;
	function(argument);
	return 0;
}
static void *host_pages(void *host, size_t pages)
{
	(void)host;
	void *memory = aligned_alloc(PAGE, pages * PAGE);
	return memory ? memset(memory, 0, pages * PAGE) : NULL;
}

static void switch_to(struct bench *bench, struct tally_engine_task *next)
{
	struct tally_engine_task *previous = bench->current;
	tally_engine_switch_out(bench->engine, previous, next, false);
	bench->current = next;
	tally_engine_switch_in(bench->engine, previous, next);
}

/* --- a PMU whose only counter is the cycle counter ------------------------ */

static int tsc_init(struct tally_engine_pmu *pmu, struct tally_pmu_event *event)
{
	if (event->attr->type != pmu->type)
		return -ENOENT;
	event->index = -1;
	return 0;
}

static void tsc_read(struct tally_pmu_event *event)
{
	uint64_t now = cycles();
	tally_engine_pmu_count(event, now - event->previous);
	event->previous = now;
}

static int tsc_add(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags;
	event->index = 0;
	event->state = 0;
	event->previous = cycles();
	tally_engine_user_page_changed(event);
	return 0;
}

static void tsc_del(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags;
	tsc_read(event);
	event->index = -1;
}
static void tsc_start(struct tally_pmu_event *event, unsigned flags) { (void)event, (void)flags; }
static void tsc_stop(struct tally_pmu_event *event, unsigned flags)
{
	(void)flags;
	tsc_read(event);
}
static int tsc_index(const struct tally_pmu_event *event) { return event->index; }
static void tsc_page(const struct tally_pmu_event *event, struct tally_user_page *page)
{
	(void)event;
	page->pmc_width = 64;
	page->capabilities |= TALLY_CAP_USER_RDPMC;
}

static const struct tally_engine_pmu_ops tsc_ops = {
	.event_init = tsc_init,
	.add = tsc_add,
	.del = tsc_del,
	.start = tsc_start,
	.stop = tsc_stop,
	.read = tsc_read,
	.user_index = tsc_index,
	.user_page = tsc_page,
};

/* --- measuring ------------------------------------------------------------ */

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* ns of one of many repetitions. */
struct cost {
	double median, least; /* over the rounds */
};

static struct cost measure(unsigned rounds, unsigned count,
			   void (*run)(void *argument, unsigned count), void *argument)
{
	double ns[ROUNDS_MAX];
	run(argument, count / 10 + 1);
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t start = wall_ns();
		run(argument, count);
		ns[i] = (double)(wall_ns() - start) / count;
	}
	qsort(ns, rounds, sizeof(ns[0]), ascending);
	return (struct cost){ ns[rounds / 2], ns[0] };
}

static struct cost less(struct cost cost, struct cost what)
{
	return (struct cost){ cost.median - what.median, cost.least - what.least };
}

static void die(const char *what, long code)
{
	fprintf(stderr, "bench_engine: %s: %s\n", what, strerror(code < 0 ? (int)-code : errno));
	exit(1);
}

static int open_event(struct bench *bench, const struct tally_attr *attr)
{
	int fd = tally_engine_open(bench->engine, attr, 0, -1, -1, 0);
	if (fd < 0)
		die("open", fd);
	return fd;
}

static struct tally_attr hit_attr(uint64_t period, uint64_t sample_type)
{
	return (struct tally_attr){ .type = TALLY_TYPE_TRACEPOINT,
				    .size = sizeof(struct tally_attr),
				    .config = tally_trace_event_bench_hit.id,
				    .sample_period = period,
				    .sample_type = sample_type };
}

__attribute__((noinline)) static void hit(void *argument, unsigned count)
{
	(void)argument;
	for (unsigned i = 0; i < count; i++) {
		TALLY_TRACE(bench_hit, i, 17);
		__asm__ volatile("" : : : "memory");
	}
}

struct sampled {
	struct tally_user_page *page;
};

/* A reader that only gives the room back, so that writing is measured, not reading. */
static void hit_sampled(void *argument, unsigned count)
{
	struct sampled *sampled = argument;
	for (unsigned done = 0; done < count; done += 500) {
		hit(NULL, 500);
		sampled->page->data_tail = sampled->page->data_head;
	}
}

static void read_page(void *argument, unsigned count)
{
	const volatile struct tally_user_page *page = argument;
	static volatile uint64_t sink;
	for (unsigned i = 0; i < count; i++) {
		uint32_t sequence;
		uint64_t value;
		do {
			sequence = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
			value = (uint64_t)page->offset + (page->index ? cycles() : 0);
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
		} while (page->lock != sequence || sequence & 1);
		sink = value;
	}
	(void)sink;
}

static void read_cycles(void *argument, unsigned count)
{
	static volatile uint64_t sink;
	(void)argument;
	for (unsigned i = 0; i < count; i++)
		sink = cycles();
	(void)sink;
}

static void switch_tasks(void *argument, unsigned count)
{
	struct bench *bench = argument;
	for (unsigned i = 0; i < count; i++)
		switch_to(bench, bench->tasks[(i + 1) & 1]);
	switch_to(bench, bench->tasks[0]);
}

static void engine_read(void *argument, unsigned count)
{
	struct bench *bench = argument;
	uint64_t values[16];
	for (unsigned i = 0; i < count; i++)
		tally_engine_read(bench->engine, 3, values, sizeof(values));
}

static int opened[OPENS];

/* Opens all events at once, then closes them. */
static void open_and_close(void *argument, unsigned count)
{
	struct bench *bench = argument;
	const struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
					 .size = sizeof(attr),
					 .config = TALLY_SW_PAGE_FAULTS };
	for (unsigned i = 0; i < count; i++)
		opened[i] = open_event(bench, &attr);
	for (unsigned i = 0; i < count; i++)
		tally_engine_close(bench->engine, opened[i]);
}

/* --- the kernel's --------------------------------------------------------- */

static void getppids(void *argument, unsigned count)
{
	(void)argument;
	for (unsigned i = 0; i < count; i++)
		syscall(SYS_getppid);
}

static void kernel_reads(void *argument, unsigned count)
{
	uint64_t value;
	for (unsigned i = 0; i < count; i++)
		if (read(*(int *)argument, &value, sizeof(value)) != sizeof(value))
			return;
}

static void kernel_open_and_close(void *argument, unsigned count)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr),
					.config = PERF_COUNT_SW_PAGE_FAULTS, .exclude_kernel = 1 };
	(void)argument;
	for (unsigned i = 0; i < count; i++)
		close((int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int kernel_event(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = { .type = type, .size = sizeof(attr), .config = config,
					.exclude_kernel = type == PERF_TYPE_SOFTWARE };
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static long getppid_tracepoint(void)
{
	long id = -1;
	FILE *file = fopen("/sys/kernel/tracing/events/syscalls/sys_enter_getppid/id", "r");
	if (file && fscanf(file, "%ld", &id) != 1)
		id = -1;
	if (file)
		fclose(file);
	return id;
}

/* --- tables --------------------------------------------------------------- */

static const struct cost none, refused = { -1, -1 };

static void row(const char *what, struct cost engine, const char *goal, struct cost kernel)
{
	printf("| %s | %.1f ns | %.1f ns | %s | ", what, engine.median, engine.least, goal);
	if (kernel.median > 0)
		printf("%.0f ns |\n", kernel.median);
	else
		printf("%s |\n", kernel.median < 0 ? "not measured: this user may not" : "");
	fflush(stdout);
}

static void bench_samples(struct bench *bench, unsigned rounds, int cpu, const char *what,
			  struct cost off)
{
	struct tally_attr attr = hit_attr(1,
					  TALLY_SAMPLE_RAW | TALLY_SAMPLE_TIME | TALLY_SAMPLE_TID);
	int fd = tally_engine_open(bench->engine, &attr, 0, cpu, -1, 0);
	if (fd < 0)
		die("open", fd);
	struct sampled sampled;
	void *address;
	int code = tally_engine_mmap(bench->engine, fd, 65 * PAGE, true, true, 0, &address);
	if (code < 0)
		die("mmap", code);
	sampled.page = address;
	uint64_t before = sampled.page->data_head;
	struct cost written = measure(rounds, HITS, hit_sampled, &sampled);
	if (sampled.page->data_head - before < (uint64_t)HITS * 40)
		die("samples were lost", -EIO);
	row(what, less(written, off), "≤ 40", none);
	tally_engine_munmap(bench->engine, address, 65 * PAGE);
	tally_engine_close(bench->engine, fd);
}

static void bench_hits(struct bench *bench, unsigned rounds)
{
	struct cost off = measure(rounds, HITS, hit, NULL),
		    kernel_off = measure(rounds, HITS / 10, getppids, NULL);
	struct tally_attr attr = hit_attr(0, 0);
	int fd = open_event(bench, &attr);
	struct cost counted = measure(rounds, HITS, hit, NULL);
	tally_engine_close(bench->engine, fd);
	long id = getppid_tracepoint();
	int kernel = id < 0 ? -1 : kernel_event(PERF_TYPE_TRACEPOINT, (uint64_t)id);
	struct cost kernel_counted = kernel < 0 ? refused
						: less(measure(rounds, HITS / 10, getppids, NULL),
						       kernel_off);
	if (kernel >= 0)
		close(kernel);
	row("tracepoint hit, nobody listening (loop and branch)", off, "", none);
	row("tracepoint hit, counted", less(counted, off), "≤ 5", kernel_counted);
	bench_samples(bench, rounds, -1, "tracepoint hit, sampled: RAW, TIME, TID", off);
	bench_samples(bench, rounds, 0, "… into the ring of an event that is bound to a CPU", off);
}

static void bench_reads(struct bench *bench, unsigned rounds, uint32_t tsc_type)
{
	const struct tally_attr attr = { .type = tsc_type, .size = sizeof(attr) };
	int fd = open_event(bench, &attr);
	void *address;
	int code = tally_engine_mmap(bench->engine, fd, PAGE, true, true, 0, &address);
	if (code < 0)
		die("mmap", code);
	const struct tally_user_page *page = address;
	if (!page->index)
		die("the user page has no index", -EIO);
	row("cycle counter alone", measure(rounds, HITS, read_cycles, NULL), "", none);
	row("user-page read", measure(rounds, HITS, read_page, address), "≤ 12", none);
	int kernel = kernel_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS);
	row("read() of an event", measure(rounds, HITS / 10, engine_read, bench), "",
	    kernel < 0 ? refused : measure(rounds, HITS / 10, kernel_reads, &kernel));
	if (kernel >= 0)
		close(kernel);
	tally_engine_munmap(bench->engine, address, PAGE);
	tally_engine_close(bench->engine, fd);
}

static void bench_switches(struct bench *bench, unsigned rounds)
{
	static const unsigned counts[] = { 0, 1, 8, 64 };
	int fds[64];
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		const struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE, .size = sizeof(attr),
						 .config = TALLY_SW_PAGE_FAULTS };
		char what[80];
		for (unsigned k = 0; k < counts[i]; k++)
			fds[k] = open_event(bench, &attr);
		snprintf(what, sizeof(what), "context switch, %u events on one of the two tasks",
			 counts[i]);
		row(what, measure(rounds, SWITCHES, switch_tasks, bench), "", none);
		for (unsigned k = 0; k < counts[i]; k++)
			tally_engine_close(bench->engine, fds[k]);
	}
}

/* --- a large simulated machine -------------------------------------------- */

/* Works and sleeps in turn, a hundred times: about half of the time each. */
static void restless(struct sim_machine *machine, struct sim_task *task, void *data,
		     struct sim_phase *phase)
{
	unsigned *turn = data;
	(void)task, (void)machine;
	if (++*turn > 100) {
		*phase = (struct sim_phase){ .kind = SIM_EXIT };
	} else if (*turn & 1) {
		*phase = (struct sim_phase){
			.kind = SIM_WORK,
			.work = { .instructions = 1000000,
				  .mode = TALLY_MODE_USER,
				  .address = 0x400000,
				  .code_size = 1024,
				  .per_kilo = { [SIM_CYCLES] = 1000, [SIM_CACHE_MISSES] = 3 } }
		};
	} else {
		*phase = (struct sim_phase){ .kind = SIM_SLEEP, .ns = 1000000 };
	}
}

struct crowd {
	unsigned cpus, tasks, started;
	uint64_t *counts;
	uint64_t bytes, events, value;
};

/* Starts all tasks with two events each, and waits. */
static int starter(struct sim_machine *machine, void *argument)
{
	struct crowd *crowd = argument;
	struct tally_engine *engine = sim_engine(machine);
	struct tally_engine_statistics before, after;
	tally_engine_process_limit(tally_engine_task_process(sim_engine_task(sim_current(machine))),
				   4 * crowd->tasks);
	tally_engine_statistics(engine, &before);
	unsigned *turns = calloc(crowd->tasks, sizeof(*turns));
	int *fds = calloc(2 * crowd->tasks, sizeof(*fds));
	for (unsigned i = 0; i < crowd->tasks; i++) {
		struct sim_task_spec spec = { .comm = "restless",
					      .program = restless,
					      .data = &turns[i],
					      .cpu = (int)(i % crowd->cpus) };
		struct sim_task *task = sim_spawn(machine, NULL, &spec);
		struct tally_attr attr = { .type = TALLY_TYPE_HARDWARE, .size = sizeof(attr),
					   .config = TALLY_HW_INSTRUCTIONS };
		fds[2 * i] = tally_engine_open(engine, &attr, sim_tid(task), -1, -1, 0);
		attr.config = TALLY_HW_CACHE_MISSES;
		attr.sample_period = 1000;
		fds[2 * i + 1] = tally_engine_open(engine, &attr, sim_tid(task), -1, -1, 0);
		if (fds[2 * i] < 0 || fds[2 * i + 1] < 0)
			die("open in the simulated machine", fds[2 * i]);
	}
	tally_engine_statistics(engine, &after);
	crowd->bytes = after.bytes - before.bytes;
	crowd->events = after.events - before.events;
	struct sim_phase sleep = { .kind = SIM_SLEEP, .ns = 10000000000u };
	sim_do(machine, &sleep);
	for (unsigned i = 0; i < crowd->tasks; i++) {
		uint64_t value = 0;
		tally_engine_read(engine, fds[2 * i], &value, sizeof(value));
		crowd->value += value;
	}
	free(turns);
	free(fds);
	return 0;
}

static void bench_crowd(unsigned cpus, unsigned tasks)
{
	struct crowd crowd = { .cpus = cpus, .tasks = tasks };
	struct sim_config config = { .cpus = cpus, .model = "x86", .seed = 1, .balance = true };
	struct sim_machine *machine = sim_new(&config);
	if (!machine)
		die("a machine", -ENOMEM);
	struct sim_task_spec spec = { .comm = "starter",
				      .program = sim_body_program,
				      .data = sim_body_new(starter, &crowd),
				      .release = sim_body_release,
				      .cpu = 0 };
	uint64_t start = wall_ns();
	sim_spawn(machine, NULL, &spec);
	sim_run(machine, UINT64_MAX);
	double seconds = (double)(wall_ns() - start) / 1e9;
	printf("| %u CPUs, %u tasks, %llu events | %.2f s | %.2f million | %.0f B | %s |\n", cpus,
	       tasks, (unsigned long long)crowd.events, seconds,
	       (double)sim_events(machine) / seconds / 1e6,
	       (double)crowd.bytes / (double)crowd.events,
	       crowd.value == 50000000ull * tasks ? "exact" : "WRONG");
	fflush(stdout);
	sim_free(machine);
}

static void bench_opens(struct bench *bench, unsigned rounds)
{
	tally_engine_process_limit(bench->process, OPENS + 100);
	row("open and close, of 10,000 events",
	    measure(rounds / 16 + 1, OPENS, open_and_close, bench), "",
	    measure(rounds / 16 + 1, OPENS / 100, kernel_open_and_close, NULL));
}

/* Returns true if this part is to run. */
static bool wanted(const char *part, int argc, char **argv)
{
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], part))
			return true;
	return argc <= 2;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : ROUNDS;
	if (rounds < 1 || rounds > ROUNDS_MAX)
		rounds = ROUNDS;
	struct bench bench = { 0 };
	const struct tally_engine_host host = {
		.host = &bench,
		.cpus = 1,
		.page_size = PAGE,
		.tick_ns = 4000000,
		.clock_ns = host_clock,
		.this_cpu = host_cpu,
		.level = host_level,
		.current_task = host_current,
		.cpu_online = host_online,
		.irq_save = host_save,
		.irq_restore = host_restore,
		.lock = host_nothing,
		.unlock = host_nothing,
		.run_on = host_run_on,
		.allocate = host_allocate,
		.release = host_release,
		.allocate_pages = host_pages,
		.release_pages = host_release,
		.pend = host_nothing,
		.wake = host_wake,
	};
	bench.engine = tally_engine_new(&host);
	bench.process = bench.engine ? tally_engine_process_new(bench.engine, 1) : NULL;
	const struct tally_engine_identity first = { 1, 1, 0, 0, "first" },
					   second = { 1, 2, 0, 0, "second" };
	if (!bench.process ||
	    !(bench.tasks[0] = tally_engine_task_new(bench.process, &first, NULL)) ||
	    !(bench.tasks[1] = tally_engine_task_new(bench.process, &second, NULL)))
		die("the engine", -ENOMEM);
	struct tally_engine_pmu tsc = { .name = "tsc",
					.scope = TALLY_SCOPE_HARDWARE,
					.ops = &tsc_ops };
	int code = tally_engine_pmu_register(bench.engine, &tsc);
	if (!code)
		code = tally_trace_register(bench.engine, &tally_trace_group_bench);
	if (code)
		die("registering", code);
	tally_engine_sysctl_set(bench.engine, "perf_event_max_sample_rate", 1000000000);
	switch_to(&bench, bench.tasks[0]);

	printf("| what | engine | fastest round | goal | this kernel |\n|---|---|---|---|---|\n");
	if (wanted("hits", argc, argv))
		bench_hits(&bench, rounds);
	if (wanted("reads", argc, argv))
		bench_reads(&bench, rounds, tsc.type);
	if (wanted("switches", argc, argv))
		bench_switches(&bench, rounds);
	if (wanted("opens", argc, argv))
		bench_opens(&bench, rounds);
	if (!wanted("machine", argc, argv))
		return 0;
	printf("\n| simulated machine | wall | simulated events a second | memory an event | "
	       "counts |\n|---|---|---|---|---|\n");
	for (unsigned scale = 4; scale >= 1; scale /= 2)
		bench_crowd(1024 / scale, 10000 / scale);
	return 0;
}
