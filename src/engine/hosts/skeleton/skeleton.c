/* The smallest host of the engine: one CPU, two tasks, no PMU, no interrupts. docs/porting.md
 * explains it.
 *
 * The first task watches itself and the other one, as a program does with perf_event_open(2): the
 * context switches of the other, and its own page faults, with a sample of each in a mapped
 * ring. */
#include "tally/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096 };

struct machine {
	struct tally_engine *engine;
	struct tally_engine_task *current;
	bool pending;
	unsigned wakes;
};

static uint64_t clock_ns(void *host)
{
	struct timespec now;
	(void)host;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned this_cpu(void *host) { (void)host; return 0; }
static bool cpu_online(void *host, unsigned cpu) { (void)host; return cpu == 0; }
static enum tally_engine_level level(void *host) { (void)host; return TALLY_LEVEL_TASK; }
static struct tally_engine_task *current_task(void *host)
{
	return ((struct machine *)host)->current;
}

/* There are no interrupts and no other CPUs, so nothing has to be locked out. */
static uintptr_t irq_save(void *host) { (void)host; return 0; }
static void irq_restore(void *host, uintptr_t state) { (void)host, (void)state; }
static void nothing(void *host) { (void)host; }

static int run_on(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	if (!cpu)
		function(argument);
	return (void)host, cpu ? -6 : 0; /* ENXIO */
}

static void *allocate(void *host, size_t size) { (void)host; return calloc(1, size); }
static void release(void *host, void *memory, size_t size) { (void)host, (void)size; free(memory); }

static void *allocate_pages(void *host, size_t pages)
{
	(void)host;
	void *memory = aligned_alloc(PAGE, pages * PAGE);
	if (memory)
		return memset(memory, 0, pages * PAGE);
	return NULL;
}

/* Work that the engine wants to do once the level allows it: main() calls run_pending(). */
static void pend(void *host) { ((struct machine *)host)->pending = true; }
static void wake(void *host, struct tally_engine_file *file)
{
	(void)file;
	((struct machine *)host)->wakes++;
}

static void run_pending(struct machine *machine)
{
	while (machine->pending) {
		machine->pending = false;
		tally_engine_run_pending(machine->engine);
	}
}

static void switch_to(struct machine *machine, struct tally_engine_task *next)
{
	struct tally_engine_task *previous = machine->current;
	tally_engine_switch_out(machine->engine, previous, next, false);
	machine->current = next;
	tally_engine_switch_in(machine->engine, previous, next);
	run_pending(machine);
}

static void page_fault(struct machine *machine, uint64_t ip, uint64_t address)
{
	struct tally_engine_regs regs = { .ip = ip, .mode = TALLY_MODE_USER };
	tally_engine_software(machine->engine, TALLY_SW_PAGE_FAULTS, 1, &regs, address);
	run_pending(machine);
}

static int open_event(struct machine *machine, enum tally_sw event, int pid, bool sampled)
{
	const struct tally_attr attr = { .type = TALLY_TYPE_SOFTWARE,
					 .size = sizeof(attr),
					 .config = event,
					 .sample_period = sampled,
					 .wakeup_events = sampled,
					 .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_ADDR };
	return tally_engine_open(machine->engine, &attr, pid, -1, -1, TALLY_FLAG_FD_CLOEXEC);
}

static unsigned long long value(struct machine *machine, int fd)
{
	uint64_t count;
	if (tally_engine_read(machine->engine, fd, &count, sizeof(count)) == sizeof(count))
		return count;
	return 0;
}

int main(void)
{
	struct machine machine = { 0 };
	const struct tally_engine_host host = {
		.host = &machine,
		.cpus = 1,
		.page_size = PAGE,
		.tick_ns = 4000000,
		.clock_ns = clock_ns,
		.this_cpu = this_cpu,
		.cpu_online = cpu_online,
		.level = level,
		.current_task = current_task,
		.irq_save = irq_save,
		.irq_restore = irq_restore,
		.lock = nothing,
		.unlock = nothing,
		.run_on = run_on,
		.allocate = allocate,
		.release = release,
		.allocate_pages = allocate_pages,
		.release_pages = release,
		.pend = pend,
		.wake = wake,
	};
	struct tally_engine *engine = machine.engine = tally_engine_new(&host);
	struct tally_engine_process *process = NULL;
	if (engine)
		process = tally_engine_process_new(engine, 1);
	if (!process)
		return 1;
	const struct tally_engine_identity one = { 1, 1, 0, 0, "first" },
					   two = { 1, 2, 0, 0, "second" };
	struct tally_engine_task *first = tally_engine_task_new(process, &one, NULL);
	struct tally_engine_task *second = tally_engine_task_new(process, &two, NULL);
	if (!first || !second)
		return 1;
	switch_to(&machine, first);
	int switches = open_event(&machine, TALLY_SW_CONTEXT_SWITCHES, 2, false);
	int faults = open_event(&machine, TALLY_SW_PAGE_FAULTS, 0, true);
	void *map;
	if (tally_engine_mmap(engine, faults, 2 * PAGE, true, true, 0, &map))
		return 1;
	const struct tally_user_page *page = map;

	page_fault(&machine, 0x401000, 0x7000);
	switch_to(&machine, second);
	page_fault(&machine, 0x402000, 0x8000); /* the other task's: not counted */
	switch_to(&machine, first);
	page_fault(&machine, 0x403000, 0x9000);

	printf("switches %llu\n", value(&machine, switches));
	printf("faults %llu, wakes %u\n", value(&machine, faults), machine.wakes);
	for (uint64_t at = 0; at < __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);) {
		const uint64_t *record = (const uint64_t *)(const void *)((const char *)page +
									  PAGE + at);
		printf("sample at %llx of %llx\n", (unsigned long long)record[1],
		       (unsigned long long)record[2]);
		at += ((const struct tally_record_header *)record)->size;
	}

	tally_engine_munmap(engine, map, 2 * PAGE);
	tally_engine_task_exit(first);
	switch_to(&machine, second);
	tally_engine_task_exit(second);
	switch_to(&machine, NULL);
	tally_engine_process_exit(process);
	tally_engine_task_free(first);
	tally_engine_task_free(second);
	tally_engine_free(engine);
	return 0;
}
