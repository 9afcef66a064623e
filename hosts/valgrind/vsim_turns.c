/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The same order of threads in each run.
 *
 * Valgrind's threads take turns, by a lock that each holds while it runs.  Turns end after so many blocks of code, which is
 * the same each time, or in a system call; who runs next is who came to the lock first.  (The core's fair lock is a queue:
 * it is chosen here.)  But when a thread *comes* is the kernel's affair: one that was just made, or was woken, may be there
 * before the waker's turn ends, or after.  And a thread that has exited clears the word that who joins it looks at when
 * the kernel gets to it.  Each of these changes what the others execute: a mutex that is contended or not, a wait that
 * is needed or not.
 *
 * So who causes such a thing waits until it has happened.  After clone(2) until the new thread stands at the lock; after a
 * wake by futex(2) until as many do as were woken; and a turn begins only when whoever exited before it is gone.  That
 * leaves what comes from outside: input, time, signals.  And when several are woken by one call, they come as they do.
 *
 * It is an attempt, and never worth a program that stands still: waits are over after WAIT_NS. */
#include "valgrind/vsim_host.h"

#include "pub_tool_libcproc.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vkiscnums.h"

/* In the core's library, and in none of the public headers. */
extern Int VG_(clo_fair_sched);
extern SysRes VG_(do_syscall)(UWord number, RegWord a, RegWord b, RegWord c, RegWord d, RegWord e, RegWord f, RegWord g,
			      RegWord h);
void __wrap_vgPlain_acquire_BigLock(ThreadId tid, const HChar *who);
void __real_vgPlain_acquire_BigLock(ThreadId tid, const HChar *who);

enum { FAIR_IF_POSSIBLE = 2 };
enum { WAIT_OPERATION = 0, WAKE_OPERATION = 1, WAIT_BITS = 9, WAKE_BITS = 10, PRIVATE = 128, CLOCK_REALTIME_FLAG = 256 };
enum { WAIT_NS = 20000000, LOOK_NS = 20000 };

/* Called without the lock: what is another's isn't touched. */
void __wrap_vgPlain_acquire_BigLock(ThreadId tid, const HChar *who)
{
	const struct vsim_host *host = vsim()->host;
	if (host) {
		__atomic_store_n(&host->threads[tid].waits_for, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&host->threads[tid].came, True, __ATOMIC_RELEASE);
	}
	__real_vgPlain_acquire_BigLock(tid, who);
}

static void pause_for(uint64_t *waited)
{
	const struct vki_timespec moment = { 0, LOOK_NS };
	if (*waited)
		VG_(do_syscall)(__NR_nanosleep, (RegWord)&moment, 0, 0, 0, 0, 0, 0, 0);
	else
		VG_(do_syscall)(__NR_sched_yield, 0, 0, 0, 0, 0, 0, 0, 0);
	*waited += LOOK_NS;
}

void vsim_turns_await(struct vsim *sim, ThreadId child)
{
	for (uint64_t waited = 0; waited < WAIT_NS && !__atomic_load_n(&sim->host->threads[child].came, __ATOMIC_ACQUIRE);)
		pause_for(&waited);
}

/* --- wakes ------------------------------------------------------------------------------------------------------------- */

static unsigned waiters(const struct vsim *sim, UWord address)
{
	unsigned count = 0;
	for (ThreadId tid = 1; tid < VG_N_THREADS; tid++)
		count += __atomic_load_n(&sim->host->threads[tid].waits_for, __ATOMIC_ACQUIRE) == address;
	return count;
}

void vsim_turns_futex(struct vsim *sim, ThreadId tid, const UWord *arguments)
{
	UWord operation = arguments[1] & ~(UWord)CLOCK_REALTIME_FLAG;
	if (operation == (WAIT_OPERATION | PRIVATE) || operation == (WAIT_BITS | PRIVATE))
		sim->host->threads[tid].waits_for = arguments[0];
	else if (operation == (WAKE_OPERATION | PRIVATE) || operation == (WAKE_BITS | PRIVATE))
		sim->host->waiters = waiters(sim, arguments[0]);
}

void vsim_turns_futex_done(struct vsim *sim, const UWord *arguments, UWord woken)
{
	unsigned before = sim->host->waiters;
	sim->host->waiters = 0;
	if (!before || !woken || woken > before)
		return;
	for (uint64_t waited = 0; waited < WAIT_NS && waiters(sim, arguments[0]) > before - woken;)
		pause_for(&waited);
}

/* --- exits -------------------------------------------------------------------------------------------------------------- */

void vsim_turns_await_exit(struct vsim *sim)
{
	int32_t tid = sim->host->exiting;
	sim->host->exiting = 0;
	for (uint64_t waited = 0; tid && waited < WAIT_NS; pause_for(&waited))
		if (sr_isError(VG_(do_syscall)(__NR_tgkill, (RegWord)VG_(getpid)(), (RegWord)tid, 0, 0, 0, 0, 0, 0)))
			return;
}

void vsim_turns_exit(struct vsim *sim, int32_t tid)
{
	vsim_turns_await_exit(sim);
	if (tid != VG_(getpid)()) /* which stays until the last is gone */
		sim->host->exiting = tid;
}

void vsim_turns_register(void)
{
	VG_(clo_fair_sched) = FAIR_IF_POSSIBLE;
}
