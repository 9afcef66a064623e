/* A program with tracepoints of its own (tracepoints.h).  It lists, prints and counts them with an
 * engine inside the program.  The engine (libtallyengine.a) needs a host: here the smallest, with
 * one CPU and one task (docs/porting.md). */
#define TALLY_TRACE_DEFINE
#include "tracepoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct tally_engine_task *task;

static uint64_t clock_ns(void *host)
{
	struct timespec now;
	(void)host;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static unsigned this_cpu(void *host) { return (void)host, 0; }
static bool cpu_online(void *host, unsigned cpu) { return (void)host, cpu == 0; }
static enum tally_engine_level level(void *host) { return (void)host, TALLY_LEVEL_TASK; }
static struct tally_engine_task *current_task(void *host) { return (void)host, task; }
static uintptr_t irq_save(void *host) { return (void)host, 0; }
static void irq_restore(void *host, uintptr_t state) { (void)host, (void)state; }
static void nothing(void *host) { (void)host; }
static int run_here(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	(void)host, (void)cpu;
	function(argument);
	return 0;
}
static void *allocate(void *host, size_t size) { return (void)host, calloc(1, size); }
static void release(void *host, void *memory, size_t size) { (void)host, (void)size, free(memory); }
static void wake(void *host, struct tally_engine_file *file) { (void)host, (void)file; }

static const struct tally_engine_host host = {
	.cpus = 1,
	.page_size = 4096,
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
	.run_on = run_here,
	.allocate = allocate,
	.release = release,
	.pend = nothing,
	.wake = wake,
};

/* --- the shop ------------------------------------------------------------- */

static void trade(void)
{
	TALLY_TRACE(order_changed, 1, SHOP_PLACED, "pen", 250);
	TALLY_TRACE(order_changed, 2, SHOP_PLACED, "ink", 1200);
	TALLY_TRACE(order_changed, 1, SHOP_PAID, "pen", 250);
	TALLY_TRACE(order_lost, 2, SHOP_PLACED, "ink", 1200);
	TALLY_TRACE(order_changed, 1, SHOP_SENT, "pen", 250);
}

/* --- what looks at it ----------------------------------------------------- */

static void print_line(void *data, const struct tally_trace_line *line)
{
	(void)data;
	printf("%s:%s: %s\n", line->event->group, line->event->name, line->text);
}

static int count(struct tally_engine *engine, const struct tally_trace_event *event,
		 const char *filter)
{
	const struct tally_attr attr = { .type = TALLY_TYPE_TRACEPOINT,
					 .size = sizeof(attr),
					 .config = event->id };
	int fd = tally_engine_open(engine, &attr, 0, -1, -1, 0);
	if (fd >= 0 && tally_engine_ioctl(engine, fd, TALLY_IOC_SET_FILTER, (uintptr_t)filter))
		return -1;
	return fd;
}

static int watch(struct tally_engine *engine)
{
	struct tally_trace_listener *listener;
	struct tally_trace_event *event = NULL;
	uint64_t cents = 0;
	printf("tracepoints:");
	while ((event = tally_trace_next(engine, event)))
		printf(" %s:%s", event->group, event->name);
	printf("\n");

	int paid = count(engine, &tally_trace_event_order_changed,
			 "state == 1 && article ~ \"p*\"");
	if (paid < 0 ||
	    tally_trace_listen(&tally_trace_event_order_changed, print_line, NULL, &listener))
		return 1;
	trade();
	tally_trace_unlisten(listener);
	if (tally_engine_read(engine, paid, &cents, sizeof(cents)) != sizeof(cents))
		return 1;
	printf("%llu cents were paid for what begins with p\n", (unsigned long long)cents);
	return tally_engine_close(engine, paid) ? 1 : 0;
}

int main(void)
{
	struct tally_engine *engine = tally_engine_new(&host);
	struct tally_engine_process *process = engine ? tally_engine_process_new(engine, 1) : NULL;
	const struct tally_engine_identity identity = { 1, 1, 0, 0, "shop" };
	task = process ? tally_engine_task_new(process, &identity, NULL) : NULL;
	if (!task || tally_trace_register(engine, &tally_trace_group_shop))
		return 1;
	tally_engine_switch_in(engine, NULL, task);
	int status = watch(engine);

	struct tally_engine_task *last = task;
	tally_engine_task_exit(last);
	tally_engine_switch_out(engine, last, NULL, false);
	task = NULL;
	tally_engine_switch_in(engine, last, NULL);
	tally_engine_process_exit(process);
	tally_engine_task_free(last);
	tally_engine_free(engine);
	return status;
}
