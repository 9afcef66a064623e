/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The engine's host.  It has one CPU, whose tasks are the program's threads.  Valgrind runs one
 * thread at a time and nothing interrupts it, so locks and interrupt levels do nothing.  Only the
 * running thread finds that something was counted.
 *
 * There are two clocks.  The engine's clock is simulated: est-cycles at the geometry's MHz
 * (instructions, if there is no model).  So the times enabled and running, the rotation of counters
 * and frequencies are the same in each run.  Records carry the clock that tally chose,
 * CLOCK_MONOTONIC, because tally merges them with other processes' records.
 *
 * A tick comes when a thread's turn begins and a millisecond of simulated time has passed.  A turn
 * is some 100,000 blocks of code, or less if there are system calls. */
#include "valgrind/vsim_host.h"

#include "pub_tool_libcbase.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_threadstate.h"

#include <libvex_guest_amd64.h>

uint64_t vsim_host_now(const struct vsim *sim)
{
	uint64_t mhz = sim->plan->geometry.mhz ? sim->plan->geometry.mhz : 1000;
	return sim->cpu.totals[sim->cpu.model ? VSIM_EST_CYCLES : VSIM_INSTRUCTIONS] * 1000 / mhz;
}

/* --- the engine's table --------------------------------------------------- */

static uint64_t clock_ns(void *host)
{
	return vsim_host_now(host);
}

static int clock_of(void *host, int32_t clockid, uint64_t *ns)
{
	(void)host;
	struct vki_timespec now = { 0, 0 };
	VG_(clock_gettime)(&now, clockid);
	*ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	if (!*ns)
		return -VKI_EINVAL;
	return 0;
}

static unsigned this_cpu(void *host) { (void)host; return 0; }
static enum tally_engine_level level(void *host) { (void)host; return TALLY_LEVEL_TASK; }
static uintptr_t irq_save(void *host) { (void)host; return 0; }
static void irq_restore(void *host, uintptr_t state) { (void)host, (void)state; }
static void nothing(void *host) { (void)host; }

static struct tally_engine_task *current_task(void *host)
{
	const struct vsim_host *own = ((struct vsim *)host)->host;
	if (own->observing)
		return own->observer;
	return own->current;
}

static int run_on(void *host, unsigned cpu, void (*function)(void *), void *argument)
{
	(void)host;
	if (cpu)
		return -VKI_ENXIO;
	function(argument);
	return 0;
}

static void *allocate(void *host, size_t size)
{
	(void)host;
	return VG_(calloc)("vsim.engine", 1, size);
}

static void release(void *host, void *memory, size_t size)
{
	(void)host, (void)size;
	VG_(free)(memory);
}

/* The engine requests one area only: the ring that this process has in the plan's file. */
static void *allocate_pages(void *host, size_t pages)
{
	struct vsim *sim = host;
	if (sim->host->ring_page && pages == 1 + (size_t)sim->plan->shared.ring_pages)
		return sim->host->ring_page;
	return NULL;
}

static void release_pages(void *host, void *memory, size_t pages)
{
	(void)host, (void)memory, (void)pages;
}

static void pend(void *host)
{
	((struct vsim *)host)->host->pending = true;
}

static void wake(void *host, struct tally_engine_file *file)
{
	(void)file;
	vsim_news(host);
}

void vsim_host_run_pending(struct vsim *sim)
{
	while (sim->host->pending) {
		sim->host->pending = false;
		tally_engine_run_pending(sim->engine);
	}
}

void vsim_host_regs(const struct vsim_place *place, struct tally_engine_regs *regs)
{
	ThreadId tid = VG_(get_running_tid)();
	Addr fp = 0;
	VG_(get_shadow_regs_area)
	(tid, (UChar *)&fp, 0, offsetof(VexGuestAMD64State, guest_RBP), sizeof(fp));
	*regs = (struct tally_engine_regs){ .ip = place->ip, .sp = VG_(get_SP)(tid), .fp = fp,
					    .mode = TALLY_MODE_USER, .host = place };
}

/* --- tasks on the CPU ----------------------------------------------------- */

void vsim_observe(struct vsim *sim)
{
	sim->host->observing = true;
}

void vsim_observe_end(struct vsim *sim)
{
	sim->host->observing = false;
}

void vsim_host_switch(struct vsim *sim, struct tally_engine_task *next)
{
	struct vsim_host *host = sim->host;
	struct tally_engine_task *previous = host->current;
	if (previous == next)
		return;
	tally_engine_switch_out(sim->engine, previous, next, false);
	host->current = next;
	tally_engine_switch_in(sim->engine, previous, next);
}

/* --- start ---------------------------------------------------------------- */

/* The limit on the sample rate protects a real machine, but a simulated program takes as long as it
 * takes.  The limit can't be removed.  So this sets its highest value and claims a longer tick,
 * which puts it beyond the reach of any simulated CPU. */
static int lift_limits(struct tally_engine *engine)
{
	int error = tally_engine_sysctl_set(engine, "perf_event_max_sample_rate", INT32_MAX);
	if (error)
		return error;
	return tally_engine_sysctl_set(engine, "perf_event_max_stack", VSIM_STACK_MAX);
}

int vsim_engine_start(struct vsim *sim)
{
	const struct tally_engine_host table = {
		.host = sim,
		.cpus = 1,
		.page_size = TALLY_PLAN_PAGE,
		.tick_ns = 4 * VSIM_TICK_NS,
		.clock_ns = clock_ns,
		.clock_of = clock_of,
		.this_cpu = this_cpu,
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
		.release_pages = release_pages,
		.pend = pend,
		.wake = wake,
		.callchain = vsim_callchain,
		.user_register = vsim_user_register,
		.interrupted_register = vsim_user_register,
		.register_mask = VSIM_REGISTERS,
		.user_stack = vsim_user_stack,
		.user_stack_pointer = vsim_user_stack_pointer,
	};
	struct vsim_host *host = sim->host;
	sim->engine = tally_engine_new(&table);
	host->current = host->observer = NULL;
	host->observing = host->pending = false;
	host->tick_at = host->totals_at = 0;
	if (!sim->engine)
		return -VKI_ENOMEM;
	struct tally_engine_process *tally = tally_engine_process_new(sim->engine, 0);
	const struct tally_engine_identity identity = { .comm = "tally" };
	if (tally)
		host->observer = tally_engine_task_new(tally, &identity, NULL);
	if (!host->observer)
		return -VKI_ENOMEM;
	int error = lift_limits(sim->engine);
	if (error)
		return error;
	return vsim_pmu_register(sim);
}

int vsim_host_open(struct vsim *sim, const char *plan)
{
	sim->host = VG_(calloc)("vsim.host", 1, sizeof(*sim->host));
	sim->host->threads = VG_(calloc)("vsim.threads", VG_N_THREADS, sizeof(*sim->host->threads));
	sim->host->ring = -1;
	sim->host->plan_path = plan;
	return vsim_plan_open(sim, plan);
}

void vsim_host_register(void)
{
	vsim_life_register();
	vsim_sideband_register();
}

int vsim_host_start(struct vsim *sim)
{
	return vsim_life_start(sim);
}

void vsim_host_finish(struct vsim *sim)
{
	if (sim->host)
		vsim_life_finish(sim);
}
