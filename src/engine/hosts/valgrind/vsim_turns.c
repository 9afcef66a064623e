/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Gives threads the same order in each run.
 *
 * Valgrind's threads take turns with a lock that a thread holds while it runs.  A turn ends after a
 * fixed number of blocks of code, or in a system call.  The thread that came to the lock first runs
 * next.  But the kernel decides when a thread *comes*: a new thread, or one that was woken, may
 * come before the waker's turn ends, or after.  Also, the kernel decides when it clears the word of
 * a thread that has exited, which a joining thread reads.  Each of these changes what the other
 * threads execute: a mutex that is contended or not, a wait that is needed or not.
 *
 * So a queue stands before the core's lock, and the tool can tell which threads are in it.  A
 * thread that causes another to come waits until the other is in the queue:
 * - After clone(2), the caller waits for the new thread.
 * - A turn begins only when an exited thread has ended in the kernel and the thread that joins it
 *   is in the queue.
 * - A thread that leaves only for a moment (its turn is over, or its system call waits for no other
 *   thread) reserves its place in the queue before it goes.
 * - Threads that futex(2) should wake are woken one by one, in the order of their waits, each to
 *   its place.
 * - Before the next turn begins, a thread that goes to sleep on a futex sleeps, so that a wake
 *   finds it, and a woken thread is in the queue.
 *
 * Outside influence remains: input, time (a wait with a timeout), signals.
 *
 * This is best effort and must never stop a program: each wait ends after WAIT_NS. */
#include "valgrind/vsim_host.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_vkiscnums.h"

#include <libvex_guest_amd64.h>

/* These are in the core's library, but in none of its public headers. */
struct sched_lock;
extern SysRes VG_(do_syscall)(UWord number, RegWord a, RegWord b, RegWord c, RegWord d, RegWord e,
			      RegWord f, RegWord g, RegWord h);
void __wrap_vgPlain_acquire_BigLock(ThreadId tid, const HChar *who);
void __real_vgPlain_acquire_BigLock(ThreadId tid, const HChar *who);
void __wrap_vgModuleLocal_acquire_sched_lock(struct sched_lock *lock);
void __real_vgModuleLocal_acquire_sched_lock(struct sched_lock *lock);
void __wrap_vgModuleLocal_release_sched_lock(struct sched_lock *lock);
void __real_vgModuleLocal_release_sched_lock(struct sched_lock *lock);

/* linux/futex.h */
enum {
	WAIT_OPERATION = 0,
	WAKE_OPERATION = 1,
	REQUEUE = 3,
	COMPARE_REQUEUE = 4,
	WAKE_AND_CHANGE = 5,
	WAIT_BITS = 9,
	WAKE_BITS = 10,
	PRIVATE = 128,
	FLAGS = PRIVATE | 256 /* CLOCK_REALTIME */
};
enum { NEAR_BYTES = 4096 }; /* distance on one stack to the frame of a caller */
enum { WAIT_NS = 20000000, LOOK_NS = 20000, EVERYBODY = 0x7fffffff };

/* --- the queue ------------------------------------------------------------ */

static void wait_for_turn(struct vsim_queue *queue, uint32_t ticket)
{
	uint32_t *bell = &queue->bells[ticket % VSIM_BELLS];
	for (;;) {
		uint32_t rung = __atomic_load_n(bell, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&queue->serving, __ATOMIC_SEQ_CST) == ticket)
			return;
		VG_(do_syscall)(__NR_futex, (RegWord)bell, WAIT_OPERATION, rung, 0, 0, 0, 0, 0);
	}
}

static uint32_t take_ticket(struct vsim_queue *queue, struct vsim_thread *thread)
{
	if (!thread || !thread->reserved)
		return __atomic_fetch_add(&queue->tail, 1, __ATOMIC_SEQ_CST);
	thread->reserved = False;
	return thread->ticket;
}

/* Runs without the lock, so it touches only this thread's state and atomic words. */
void __wrap_vgPlain_acquire_BigLock(ThreadId tid, const HChar *who)
{
	struct vsim *sim = vsim();
	if (sim->host) {
		struct vsim_thread *thread = &sim->host->threads[tid];
		uint32_t ticket = take_ticket(&sim->queue, thread);
		__atomic_store_n(&thread->waits_for, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&thread->came, True, __ATOMIC_SEQ_CST);
		wait_for_turn(&sim->queue, ticket);
		sim->queue.admitted = (Addr)__builtin_frame_address(0);
		sim->host->running = tid;
	}
	__real_vgPlain_acquire_BigLock(tid, who);
}

static struct vsim_thread *find_reserved(const struct vsim_host *host, int32_t kernel_tid)
{
	for (ThreadId tid = 1; host && tid <= host->thread_top; tid++)
		if (host->threads[tid].reserved && host->threads[tid].kernel_tid == kernel_tid)
			return &host->threads[tid];
	return NULL;
}

/* The core calls this from the function above, and directly for threads between two turns.  In the
 * child of a fork, the one thread holds the lock and the queue starts empty. */
void __wrap_vgModuleLocal_acquire_sched_lock(struct sched_lock *lock)
{
	struct vsim_queue *queue = &vsim()->queue;
	if ((!queue->pid || queue->forking) && queue->pid != VG_(getpid)())
		*queue = (struct vsim_queue){ .pid = VG_(getpid)() };
	/* The admitted thread is recognized by its stack; its tid would cost a system call. */
	if (queue->admitted - (Addr)__builtin_frame_address(0) >= NEAR_BYTES)
		wait_for_turn(queue,
			      take_ticket(queue, find_reserved(vsim()->host, VG_(gettid)())));
	queue->admitted = 0;
	__real_vgModuleLocal_acquire_sched_lock(lock);
}

void vsim_turns_fork(ThreadId tid)
{
	(void)tid;
	vsim()->queue.forking = true;
}

void vsim_turns_forked(ThreadId tid)
{
	(void)tid;
	vsim()->queue.forking = false;
}

static void reserve(struct vsim_queue *queue, struct vsim_thread *thread)
{
	if (thread->left || (thread->in_call && !thread->brief))
		return;
	thread->ticket = __atomic_fetch_add(&queue->tail, 1, __ATOMIC_SEQ_CST);
	if (!thread->kernel_tid)
		thread->kernel_tid = VG_(gettid)();
	thread->reserved = True;
}

void __wrap_vgModuleLocal_release_sched_lock(struct sched_lock *lock)
{
	struct vsim_queue *queue = &vsim()->queue;
	const struct vsim_host *host = vsim()->host;
	if (host && host->running)
		reserve(queue, &host->threads[host->running]);
	__real_vgModuleLocal_release_sched_lock(lock);
	uint32_t next = __atomic_add_fetch(&queue->serving, 1, __ATOMIC_SEQ_CST),
		 *bell = &queue->bells[next % VSIM_BELLS];
	__atomic_fetch_add(bell, 1, __ATOMIC_SEQ_CST);
	if (next != __atomic_load_n(&queue->tail, __ATOMIC_SEQ_CST))
		VG_(do_syscall)
		(__NR_futex, (RegWord)bell, WAKE_OPERATION, EVERYBODY, 0, 0, 0, 0, 0);
}

/* --- waiting for a thread to enter the queue ------------------------------ */

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
	for (uint64_t waited = 0;
	     waited < WAIT_NS &&
	     !__atomic_load_n(&sim->host->threads[child].came, __ATOMIC_ACQUIRE);)
		pause_for(&waited);
}

/* --- wakes ---------------------------------------------------------------- */

static unsigned waiters(const struct vsim *sim, UWord address)
{
	unsigned count = 0;
	for (ThreadId tid = 1; address && tid <= sim->host->thread_top; tid++)
		count += __atomic_load_n(&sim->host->threads[tid].waits_for, __ATOMIC_ACQUIRE) ==
			 address;
	return count;
}

static void await_waiters(struct vsim *sim, UWord address, unsigned least)
{
	for (uint64_t waited = 0; waited < WAIT_NS && waiters(sim, address) > least;)
		pause_for(&waited);
}

static SysRes futex(UWord address, UWord operation, UWord value, UWord value_2, UWord address_2,
		    UWord bits)
{
	return VG_(do_syscall)(__NR_futex, address, operation, value, value_2, address_2, bits, 0,
			       0);
}

/* Wakes threads one by one while the waker has the lock, so that each takes its place in the queue.
 * The last one is left to the program's own call.  Returns how many were woken here; the caller
 * adds them to the call's result. */
static UWord wake(struct vsim *sim, const UWord *arguments)
{
	unsigned before = waiters(sim, arguments[0]), woken = 0;
	while (woken + 1 < before && woken + 1 < arguments[2]) {
		SysRes result = futex(arguments[0], arguments[1], 1, 0, 0, arguments[5]);
		if (sr_isError(result) || sr_Res(result) != 1)
			break;
		await_waiters(sim, arguments[0], before - ++woken);
	}
	return woken;
}

static void before_futex(struct vsim *sim, ThreadId tid, const UWord *arguments)
{
	UWord operation = arguments[1] & ~(UWord)FLAGS;
	struct vsim_thread *thread = &sim->host->threads[tid];
	thread->woken = 0;
	if (operation == WAIT_OPERATION || operation == WAIT_BITS) {
		__atomic_store_n(&thread->waits_for, arguments[0], __ATOMIC_SEQ_CST);
	} else if (operation == WAKE_OPERATION || operation == WAKE_BITS) {
		thread->woken = wake(sim, arguments);
		thread->came = False;
		sim->host->waker = tid;
	} else {
		return;
	}
	sim->host->sleeps_on = arguments[0];
	sim->host->sleep_flags = arguments[1] & PRIVATE;
}

static void after_futex(struct vsim *sim, ThreadId tid, UWord result)
{
	const PtrdiffT rax = offsetof(VexGuestAMD64State, guest_RAX);
	result += sim->host->threads[tid].woken;
	if (sim->host->threads[tid].woken)
		VG_(set_shadow_regs_area)(tid, 0, rax, sizeof(result), (UChar *)&result);
	sim->host->threads[tid].woken = 0;
}

/* Returns how many threads the kernel has in the list of this word: it moves them from the list to
 * the same list, which changes nothing, and returns their number. */
static unsigned sleepers(UWord address, UWord flags)
{
	SysRes result = futex(address, REQUEUE | flags, 0, EVERYBODY, address, 0);
	if (sr_isError(result))
		return EVERYBODY;
	return (unsigned)sr_Res(result);
}

/* Waits until the waker is back and all threads known to wait are asleep.  A thread that was woken,
 * or that found another value in its word, counts as back.  No thread has run that could change
 * this in between. */
void vsim_turns_await_futex(struct vsim *sim)
{
	UWord address = sim->host->sleeps_on;
	const struct vsim_thread *waker = NULL;
	if (sim->host->waker)
		waker = &sim->host->threads[sim->host->waker];
	sim->host->sleeps_on = sim->host->waker = 0;
	for (uint64_t waited = 0; waited < WAIT_NS; pause_for(&waited))
		if ((!waker || __atomic_load_n(&waker->came, __ATOMIC_SEQ_CST)) &&
		    sleepers(address, sim->host->sleep_flags) >= waiters(sim, address))
			return;
}

/* --- system calls that wait for no other thread --------------------------- */

static bool ask_if_regular(Int fd)
{
	struct vg_stat about;
	return !VG_(fstat)(fd, &about) && (about.mode & VKI_S_IFMT) == VKI_S_IFREG;
}

static bool is_regular(struct vsim_host *host, UWord fd)
{
	if (fd >= VSIM_FILES)
		return ask_if_regular((Int)fd);
	if (host->files[fd] == VSIM_FILE_UNKNOWN)
		host->files[fd] = ask_if_regular((Int)fd) ? VSIM_FILE_REGULAR : VSIM_FILE_OTHER;
	return host->files[fd] == VSIM_FILE_REGULAR;
}

/* True if descriptors keep their kind over this system call.  All other calls count as changing
 * them. */
static bool keeps_files(UInt number)
{
	return number == __NR_read || number == __NR_write || number == __NR_readv ||
	       number == __NR_writev || number == __NR_pread64 || number == __NR_pwrite64 ||
	       number == __NR_futex;
}

static bool is_brief_futex(const UWord *arguments)
{
	UWord operation = arguments[1] & ~(UWord)FLAGS;
	return operation == WAKE_OPERATION || operation == WAKE_BITS || operation == REQUEUE ||
	       operation == COMPARE_REQUEUE || operation == WAKE_AND_CHANGE;
}

static bool is_brief(struct vsim_host *host, UInt number, const UWord *arguments)
{
	switch (number) {
	case __NR_read:
	case __NR_write:
	case __NR_pread64:
	case __NR_pwrite64:
	case __NR_readv:
	case __NR_writev:
		return is_regular(host, arguments[0]);
	case __NR_madvise:
	case __NR_mmap:
	case __NR_munmap:
	case __NR_mprotect:
	case __NR_stat:
	case __NR_lstat:
	case __NR_fstat:
	case __NR_newfstatat:
	case __NR_statx:
	case __NR_access:
	case __NR_readlink:
	case __NR_getdents64:
	case __NR_unlink:
	case __NR_rename:
	case __NR_ftruncate:
	case __NR_getrandom:
		return true;
	case __NR_futex:
		return is_brief_futex(arguments);
	default:
		return false;
	}
}

void vsim_turns_call(struct vsim *sim, ThreadId tid, UInt number, const UWord *arguments)
{
	struct vsim_thread *thread = &sim->host->threads[tid];
	if (!keeps_files(number))
		VG_(memset)(sim->host->files, VSIM_FILE_UNKNOWN, sizeof(sim->host->files));
	thread->brief = sim->host->thread_count > 1 && is_brief(sim->host, number, arguments);
	thread->in_call = True;
	if (number == __NR_futex)
		before_futex(sim, tid, arguments);
}

void vsim_turns_call_done(struct vsim *sim, ThreadId tid, UInt number, SysRes result)
{
	sim->host->threads[tid].in_call = False;
	if (!keeps_files(number))
		VG_(memset)(sim->host->files, VSIM_FILE_UNKNOWN, sizeof(sim->host->files));
	if (number == __NR_futex && !sr_isError(result))
		after_futex(sim, tid, sr_Res(result));
}

/* --- exits ---------------------------------------------------------------- */

void vsim_turns_await_exit(struct vsim *sim)
{
	const struct vsim_exit exit = sim->host->exit;
	unsigned waiting = waiters(sim, exit.cleared);
	sim->host->exit = (struct vsim_exit){ 0 };
	for (uint64_t waited = 0; exit.tid && waited < WAIT_NS; pause_for(&waited))
		if (sr_isError(VG_(do_syscall)(__NR_tgkill, (RegWord)VG_(getpid)(),
					       (RegWord)exit.tid, 0, 0, 0, 0, 0, 0)))
			break;
	if (waiting && VG_(am_is_valid_for_client)(exit.cleared, sizeof(int32_t), VKI_PROT_READ) &&
	    !*(const volatile int32_t *)exit.cleared)
		await_waiters(sim, exit.cleared, waiting - 1);
}

void vsim_turns_exit(struct vsim *sim, ThreadId tid, int32_t kernel_tid)
{
	if (sim->host->exit.tid)
		vsim_turns_await_exit(sim);
	/* the kernel keeps the process's first thread until its last one is gone */
	if (kernel_tid != VG_(getpid)())
		sim->host->exit = (struct vsim_exit){ kernel_tid, sim->host->threads[tid].cleared };
}
