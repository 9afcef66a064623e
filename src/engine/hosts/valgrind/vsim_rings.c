/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The plan's file in this process: the plan itself, and one of its rings.
 *
 * The engine writes a ring as any other.  Nothing is lost, because the process writes only when
 * there is room for the largest possible record.  Until then the program waits, which costs it time
 * but no counts.  tally wakes it.  While waiting, it checks every WAIT_NS whether tally still runs.
 * If tally has exited, the engine drops and counts records as usual. */
#include "valgrind/vsim_host.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_vkiscnums.h"

#include <limits.h>

/* These are in the core's library, but in none of its public headers. */
extern SysRes VG_(do_syscall)(UWord number, RegWord a, RegWord b, RegWord c, RegWord d, RegWord e,
			      RegWord f, RegWord g, RegWord h);
extern SysRes VG_(am_shared_mmap_file_float_valgrind)(SizeT length, UInt prot, Int fd,
						      Off64T offset);
extern Int VG_(safe_fd)(Int old_fd);

enum { FUTEX_SLEEP = 0, FUTEX_AWAKEN = 1 };
enum { WAIT_NS = 50000000, FREE_RING_TRIES = 40 };
enum { RECORD_MAX = 65536, MMAP2_MAX = 4096 + 256, SAMPLE_FIXED = 1024 };

static void futex(uint32_t *word, int operation, uint32_t value)
{
	const struct vki_timespec slice = { 0, WAIT_NS };
	VG_(do_syscall)
	(__NR_futex, (RegWord)word, (RegWord)operation, value, (RegWord)&slice, 0, 0, 0, 0);
}

void vsim_news(struct vsim *sim)
{
	__atomic_fetch_add(&sim->plan->shared.news, 1, __ATOMIC_SEQ_CST);
	futex(&sim->plan->shared.news, FUTEX_AWAKEN, INT_MAX);
}

/* --- the plan ------------------------------------------------------------- */

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static int check_plan(const struct vsim_plan *plan, uint64_t file_size)
{
	if (plan->shared.magic != TALLY_PLAN_MAGIC || plan->shared.version != TALLY_PLAN_VERSION ||
	    plan->shared.size > file_size)
		return -VKI_EINVAL;
	if (plan->shared.event_count > TALLY_PLAN_EVENTS || plan->function_count > VSIM_FUNCTIONS ||
	    vsim_geometry_problem(&plan->geometry))
		return -VKI_EINVAL;
	if (!plan->shared.ring_pages)
		return 0;
	if (!is_power_of_two(plan->shared.ring_pages) || plan->shared.ring_pages > 1u << 20 ||
	    plan->shared.rings_offset % TALLY_PLAN_PAGE)
		return -VKI_EINVAL;
	if (plan->shared.rings_offset < sizeof(*plan) ||
	    tally_plan_ring_offset(&plan->shared, TALLY_PLAN_RINGS) > plan->shared.size)
		return -VKI_EINVAL;
	return 0;
}

int vsim_plan_open(struct vsim *sim, const char *path)
{
	SysRes opened = VG_(open)(path, VKI_O_RDWR, 0);
	if (sr_isError(opened))
		return -(int)sr_Err(opened);
	/* A high number, out of reach of programs that close all descriptors they know.  exec
	 * closes it. */
	int fd = sim->host->plan_fd = VG_(safe_fd)((Int)sr_Res(opened));
	struct vg_stat about;
	if (fd < 0 || VG_(fstat)(fd, &about) || (uint64_t)about.size < sizeof(struct vsim_plan))
		return -VKI_EINVAL;
	SysRes mapped = VG_(am_shared_mmap_file_float_valgrind)(
		sizeof(struct vsim_plan), VKI_PROT_READ | VKI_PROT_WRITE, fd, 0);
	if (sr_isError(mapped))
		return -(int)sr_Err(mapped);
	sim->plan = (struct vsim_plan *)sr_Res(mapped);
	return check_plan(sim->plan, (uint64_t)about.size);
}

/* --- taking and leaving a ring -------------------------------------------- */

static bool tally_listens(const struct vsim_plan *plan)
{
	if (__atomic_load_n(&plan->shared.closed, __ATOMIC_SEQ_CST))
		return false;
	SysRes alive = VG_(do_syscall)(__NR_kill, (RegWord)plan->shared.tally_pid, 0, 0, 0, 0, 0, 0,
				       0);
	return !sr_isError(alive) || sr_Err(alive) != VKI_ESRCH;
}

/* Marks the rings finished that belonged to this pid: of programs that this process ran before, and
 * of killed processes with the same pid. */
static void finish_predecessors(struct vsim *sim)
{
	for (unsigned i = 0; i < TALLY_PLAN_RINGS; i++) {
		struct tally_plan_ring *ring = &sim->plan->shared.rings[i];
		uint32_t taken = TALLY_PLAN_RING_TAKEN;
		if (__atomic_load_n(&ring->task, __ATOMIC_SEQ_CST) == VG_(getpid)())
			__atomic_compare_exchange_n(&ring->state, &taken, TALLY_PLAN_RING_FINISHED,
						    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	}
}

static int take_free(struct vsim_plan *plan)
{
	for (unsigned i = 0; i < TALLY_PLAN_RINGS; i++) {
		uint32_t expected = TALLY_PLAN_RING_FREE;
		if (__atomic_compare_exchange_n(&plan->shared.rings[i].state, &expected,
						TALLY_PLAN_RING_TAKEN, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			return (int)i;
	}
	return -1;
}

/* Takes a free ring, and waits a while if there is none: more processes than rings may record at a
 * time, or tally may be behind.  Returns the index, or -1. */
static int wait_for_free(struct vsim *sim)
{
	int index = take_free(sim->plan);
	for (unsigned tries = 0; index < 0 && tries < FREE_RING_TRIES && tally_listens(sim->plan);
	     tries++) {
		vsim_news(sim);
		VG_(poll)(NULL, 0, WAIT_NS / 1000000);
		index = take_free(sim->plan);
	}
	return index;
}

/* Returns the most bytes that one record of the plan's events may take. */
static uint64_t largest_record(const struct vsim_plan *plan)
{
	uint64_t most = MMAP2_MAX;
	for (unsigned i = 0; i < plan->shared.event_count; i++) {
		const struct tally_attr *attr = &plan->shared.events[i].attr;
		uint64_t size = SAMPLE_FIXED,
			 chain = attr->sample_max_stack ? attr->sample_max_stack : VSIM_STACK_MAX;
		if (attr->sample_type & TALLY_SAMPLE_CALLCHAIN)
			size += 8 * (chain + 16);
		if (attr->sample_type & TALLY_SAMPLE_STACK_USER)
			size += attr->sample_stack_user;
		if (attr->sample_type & TALLY_SAMPLE_READ)
			size += 24ull * TALLY_PLAN_EVENTS;
		if (size > most)
			most = size;
	}
	uint64_t ring = (uint64_t)plan->shared.ring_pages * TALLY_PLAN_PAGE;
	if (most > RECORD_MAX)
		most = RECORD_MAX;
	if (most < ring)
		return most;
	return ring - 8; /* a ring is never filled completely */
}

static void forget_ring(struct vsim *sim)
{
	if (sim->host->ring_page)
		VG_(am_munmap_valgrind)
	((Addr)sim->host->ring_page, (1 + (SizeT)sim->plan->shared.ring_pages) * TALLY_PLAN_PAGE);
	sim->host->ring_page = NULL;
	sim->host->ring = -1;
}

void vsim_ring_take(struct vsim *sim)
{
	struct vsim_host *host = sim->host;
	forget_ring(sim);
	if (!sim->plan->shared.ring_pages)
		return;
	finish_predecessors(sim);
	int index = wait_for_free(sim);
	if (index < 0) {
		__atomic_fetch_add(&sim->plan->shared.unrecorded, 1, __ATOMIC_SEQ_CST);
		return;
	}
	SysRes mapped = VG_(am_shared_mmap_file_float_valgrind)(
		(1 + (SizeT)sim->plan->shared.ring_pages) * TALLY_PLAN_PAGE,
		VKI_PROT_READ | VKI_PROT_WRITE, host->plan_fd,
		(Off64T)tally_plan_ring_offset(&sim->plan->shared, (unsigned)index));
	if (sr_isError(mapped)) {
		__atomic_store_n(&sim->plan->shared.rings[index].state, TALLY_PLAN_RING_FREE,
				 __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&sim->plan->shared.unrecorded, 1, __ATOMIC_SEQ_CST);
		return;
	}
	host->ring = index;
	host->ring_page = (struct tally_user_page *)sr_Res(mapped);
	host->ring_room = largest_record(sim->plan);
	VG_(memset)(host->ring_page, 0, TALLY_PLAN_PAGE);
	__atomic_store_n(&sim->plan->shared.rings[index].task, VG_(getpid)(), __ATOMIC_SEQ_CST);
}

void vsim_ring_finish(struct vsim *sim)
{
	if (sim->host->ring >= 0)
		__atomic_store_n(&sim->plan->shared.rings[sim->host->ring].state,
				 TALLY_PLAN_RING_FINISHED, __ATOMIC_SEQ_CST);
	vsim_news(sim);
}

/* --- room ----------------------------------------------------------------- */

static bool has_room(const struct vsim *sim)
{
	const struct tally_user_page *page = sim->host->ring_page;
	uint64_t used = page->data_head - __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	return used + sim->host->ring_room <
	       (uint64_t)sim->plan->shared.ring_pages * TALLY_PLAN_PAGE;
}

/* Sets room_wanted before it looks again: tally clears it after moving data_tail. */
static void wait_for_room(struct vsim *sim)
{
	struct tally_plan_ring *ring = &sim->plan->shared.rings[sim->host->ring];
	while (!sim->host->alone) {
		sim->host->alone = !tally_listens(sim->plan);
		__atomic_store_n(&ring->room_wanted, 1, __ATOMIC_SEQ_CST);
		if (has_room(sim))
			break;
		vsim_news(sim);
		futex(&ring->room_wanted, FUTEX_SLEEP, 1);
	}
	__atomic_store_n(&ring->room_wanted, 0, __ATOMIC_SEQ_CST);
}

void vsim_host_make_room(struct vsim *sim)
{
	vsim_host_run_pending(sim);
	if (sim->host->ring >= 0 && !sim->host->alone && !has_room(sim))
		wait_for_room(sim);
}
