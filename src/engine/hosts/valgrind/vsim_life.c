/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Processes, programs and threads: translates the events of Valgrind's core for the engine.
 *
 * - A program begins.  Each program has a tool and an engine of its own, which open the plan.  The
 *   process may have counted before under another program; it added that part to the plan before
 *   the exec.
 * - Fork.  The child has a copy of the engine, but the copy's events belong to the parent.  So the
 *   child creates a new engine.  In it, a task that never runs stands for the parent: it has the
 *   events, and the child inherits them from it as in a fork.
 * - Exec.  The totals are added before it is tried.  If it fails, the program continues; nothing is
 *   counted twice, since only differences are added.  A program that can't be simulated
 *   (set-user-ID, other machines, AVX-512, or without access to the plan) is executed without the
 *   tool.
 * - Threads.  The core reuses its ThreadIds; tasks have the kernel's tids.  A new thread's tid is
 *   known when the system call that created it has returned, before the thread has run.
 * - The end.  Threads exit one by one, also when a signal kills all.  A process can't catch
 *   SIGKILL: the counts since the last tick or system call are lost. */
#include "valgrind/vsim_host.h"
#include "valgrind/vsim_program.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_clientstate.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vkiscnums.h"

/* It is in the core's library, but in none of its public headers. */
extern Int VG_(access)(const HChar *path, Bool may_read, Bool may_write, Bool may_execute);

/* Options of the core, in its library, but in none of its public headers. */
extern Bool VG_(clo_trace_children);
extern Int VG_(clo_vgdb);

enum { MAIN_THREAD = 1, NAME_OPTION = 15 /* PR_SET_NAME */, NAME_MAX = 16 };

static struct vsim_thread *thread_of(ThreadId tid)
{
	return &vsim()->host->threads[tid];
}

/* --- a program begins ----------------------------------------------------- */

static struct tally_engine_task *new_task(struct vsim *sim,
					  const struct tally_engine_identity *identity)
{
	return tally_engine_task_new(sim->host->process, identity, NULL);
}

static void set_comm(struct tally_engine_identity *identity, const char *path)
{
	VG_(strncpy)(identity->comm, VG_(basename)(path), sizeof(identity->comm) - 1);
	identity->comm[sizeof(identity->comm) - 1] = '\0';
}

/* Makes this process the plan's first one.  Returns true if it was unclaimed: tally started it. */
static bool claim_first(struct vsim_plan *plan)
{
	int32_t nobody = 0;
	return __atomic_compare_exchange_n(&plan->shared.first_pid, &nobody, VG_(getpid)(), false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* The first exec has happened, so enable_on_exec is done for all later programs. */
static void note_exec(struct vsim *sim)
{
	for (unsigned i = 0; i < sim->plan->shared.event_count; i++) {
		struct tally_plan_event *event = &sim->plan->shared.events[i];
		if (!event->waits_for_exec)
			continue;
		event->enabled = 1;
		event->waits_for_exec = 0;
		sim->host->enabled[i] = true;
	}
}

int vsim_life_start(struct vsim *sim)
{
	struct vsim_host *host = sim->host;
	int32_t pid = VG_(getpid)(), parent = VG_(getppid)();
	struct tally_engine_identity identity = {
		.pid = pid, .tid = pid, .parent_pid = parent, .parent_tid = parent
	};
	set_comm(&identity, VG_(args_the_exename));
	/* without this, observers see the tool's name */
	VG_(prctl)(NAME_OPTION, (ULong)(Addr)identity.comm, 0, 0, 0);
	host->first_program = claim_first(sim->plan);
	if (host->first_program)
		__atomic_fetch_add(&sim->plan->shared.processes, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&sim->plan->shared.executions, 1, __ATOMIC_SEQ_CST);
	vsim_ring_take(sim);
	int error = vsim_engine_start(sim);
	if (error)
		return error;
	host->process = tally_engine_process_new(sim->engine, pid);
	struct tally_engine_task *task = host->process ? new_task(sim, &identity) : NULL;
	if (!task)
		return -VKI_ENOMEM;
	host->threads[MAIN_THREAD].task = task;
	host->thread_top = MAIN_THREAD;
	host->thread_count = 1;
	vsim_host_switch(sim, task);
	error = vsim_events_open(sim, task);
	if (error)
		return error;
	vsim_host_make_room(sim);
	tally_engine_task_exec(task, identity.comm);
	note_exec(sim);
	return 0;
}

/* --- fork ----------------------------------------------------------------- */

static int start_forked(struct vsim *sim, ThreadId tid, const struct tally_engine_identity *forker)
{
	struct vsim_host *host = sim->host;
	struct tally_engine_identity identity = *forker;
	identity.pid = identity.tid = VG_(getpid)();
	identity.parent_pid = forker->pid;
	identity.parent_tid = forker->tid;
	vsim_ring_take(sim);
	int error = vsim_engine_start(sim);
	if (error)
		return error;
	struct tally_engine_process *parent = tally_engine_process_new(sim->engine, forker->pid);
	host->parent = parent ? tally_engine_task_new(parent, forker, NULL) : NULL;
	if (!host->parent)
		return -VKI_ENOMEM;
	vsim_host_switch(sim, host->parent);
	error = vsim_events_open(sim, host->parent);
	if (error)
		return error;
	host->process = tally_engine_process_fork(parent, identity.pid);
	struct tally_engine_task *task = host->process ? new_task(sim, &identity) : NULL;
	if (!task)
		return -VKI_ENOMEM;
	vsim_host_make_room(sim);
	error = tally_engine_task_fork(host->parent, task, false);
	host->threads[tid].task = task;
	host->thread_count = 1;
	vsim_host_switch(sim, task);
	vsim_events_forget(sim); /* don't count the parent's part again */
	return error;
}

/* Valgrind's callback in the child, which has one thread. */
static void forked(ThreadId tid)
{
	struct vsim *sim = vsim();
	if (!sim->engine)
		return;
	const struct tally_engine_identity forker = *tally_engine_task_identity(
		thread_of(tid)->task);
	sim->host->exit = (struct vsim_exit){ 0 };
	const struct vsim_thread own = { .marks = thread_of(tid)->marks,
					 .entered_sp = thread_of(tid)->entered_sp };
	VG_(memset)(sim->host->threads, 0, VG_N_THREADS * sizeof(*sim->host->threads));
	*thread_of(tid) = own;
	__atomic_fetch_add(&sim->plan->shared.processes, 1, __ATOMIC_SEQ_CST);
	int error = start_forked(sim, tid, &forker);
	tl_assert2(!error, "tally: the simulated PMU can't follow a fork: error %d\n", -error);
}

/* --- exec ----------------------------------------------------------------- */

/* These are in the core's library, but in none of its public headers. */
extern const HChar *VG_(name_of_launcher);
extern Int VG_(cl_exec_fd);

/* Reads up to `size` bytes of the file's beginning.  Returns how many there were. */
static Int read_head(const char *path, uint8_t *bytes, Int size)
{
	SysRes opened = VG_(open)(path, VKI_O_RDONLY, 0);
	VG_(memset)(bytes, 0, (SizeT)size);
	if (sr_isError(opened))
		return 0;
	Int count = VG_(read)((Int)sr_Res(opened), bytes, size);
	VG_(close)((Int)sr_Res(opened));
	return count;
}

/* Returns the interpreter of a `#! interpreter …` line, terminated in place, or NULL if it is no
 * script. */
static const char *interpreter_of(uint8_t *head, unsigned size)
{
	unsigned from = 2, to;
	if (head[0] != '#' || head[1] != '!')
		return NULL;
	while (from < size && (head[from] == ' ' || head[from] == '\t'))
		from++;
	for (to = from;
	     to < size - 1 && head[to] && head[to] != ' ' && head[to] != '\t' && head[to] != '\n';
	     to++)
		;
	head[to] = '\0';
	return (const char *)&head[from];
}

/* True if the tool can run the program.  Also true for a file that can't be examined: the core
 * reports that better. */
static bool can_simulate(const char *path)
{
	enum { LINE = 256 };
	uint8_t head[VSIM_PROGRAM_HEAD];
	for (unsigned depth = 0; depth < 2 && path; depth++) {
		struct vg_stat about;
		if (sr_isError(VG_(stat)(path, &about)))
			return true;
		if (about.mode & (VKI_S_ISUID | VKI_S_ISGID))
			return false;
		Int size = read_head(path, head, sizeof(head));
		if (size <= 0)
			return true;
		enum vsim_program kind = vsim_program_look(head, (SizeT)size);
		if (kind != VSIM_PROGRAM_NO_ELF)
			return kind == VSIM_PROGRAM_X86_64;
		path = interpreter_of(head, LINE);
	}
	return true;
}

/* After a chroot or a change of user, the new program's tool may not reach what it needs. */
static bool can_follow(const struct vsim *sim)
{
	return VG_(name_of_launcher) && !VG_(access)(VG_(name_of_launcher), False, False, True) &&
	       !VG_(access)(sim->host->plan_path, True, True, False);
}

static bool is_readable_string(Addr at)
{
	for (unsigned i = 0; i < VKI_PATH_MAX; i++) {
		if ((i == 0 || (at + i) % TALLY_PLAN_PAGE == 0) &&
		    !VG_(am_is_valid_for_client)(at + i, 1, VKI_PROT_READ))
			return false;
		if (!((const char *)at)[i])
			return true;
	}
	return false;
}

/* execveat() with only a descriptor runs the file that /proc shows for it. */
static const char *program_of(UInt number, const UWord *arguments, char *room, SizeT size)
{
	Addr at = number == __NR_execve ? arguments[0] : arguments[1];
	if (!is_readable_string(at))
		return NULL;
	const char *path = (const char *)at;
	if (number == __NR_execve || path[0] == '/' || (Int)arguments[0] == VKI_AT_FDCWD)
		return path;
	VG_(snprintf)
	(room, (Int)size, path[0] ? "/proc/self/fd/%d/%s" : "/proc/self/fd/%d", (Int)arguments[0],
	 path);
	return room;
}

static bool is_self(const char *path)
{
	char own[32];
	VG_(snprintf)(own, sizeof(own), "/proc/%d/exe", VG_(getpid)());
	return !VG_(strcmp)(path, "/proc/self/exe") ||
	       !VG_(strcmp)(path, "/proc/thread-self/exe") || !VG_(strcmp)(path, own);
}

/* Stores the program's path for the launcher.  If all places are taken by processes that do the
 * same at this moment, the launcher finds the tool, which can't run. */
static void leave_word(struct vsim_plan *plan)
{
	for (unsigned i = 0; i < VSIM_SELVES; i++) {
		struct vsim_self *self = &plan->selves[i];
		int32_t nobody = 0;
		if (!__atomic_compare_exchange_n(&self->pid, &nobody, VG_(getpid)(), false,
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		char link[32];
		VG_(snprintf)(link, sizeof(link), "/proc/self/fd/%d", VG_(cl_exec_fd));
		SSizeT length = VG_(readlink)(link, self->path, sizeof(self->path) - 1);
		self->path[length > 0 ? length : 0] = '\0';
		return;
	}
}

static void take_word_back(struct vsim_plan *plan)
{
	for (unsigned i = 0; i < VSIM_SELVES; i++)
		if (__atomic_load_n(&plan->selves[i].pid, __ATOMIC_SEQ_CST) == VG_(getpid)())
			__atomic_store_n(&plan->selves[i].pid, 0, __ATOMIC_SEQ_CST);
}

static void exec_begins(struct vsim *sim, ThreadId tid, UInt number, const UWord *arguments)
{
	char room[VKI_PATH_MAX + 32];
	const char *path = program_of(number, arguments, room, sizeof(room));
	struct vsim_thread *thread = thread_of(tid);
	thread->executing = True;
	thread->unsimulated = path && (!can_simulate(path) || !can_follow(sim));
	if (thread->unsimulated) {
		VG_(clo_trace_children) = False;
		__atomic_fetch_add(&sim->plan->shared.uncounted, 1, __ATOMIC_SEQ_CST);
	} else if (path && is_self(path)) {
		leave_word(sim->plan);
	}
	vsim_events_update(sim);
	vsim_news(sim);
}

static void exec_failed(struct vsim *sim, ThreadId tid)
{
	struct vsim_thread *thread = thread_of(tid);
	if (thread->unsimulated)
		__atomic_fetch_sub(&sim->plan->shared.uncounted, 1, __ATOMIC_SEQ_CST);
	thread->executing = thread->unsimulated = False;
	VG_(clo_trace_children) = True;
	take_word_back(sim->plan);
}

/* --- threads -------------------------------------------------------------- */

static void thread_made(ThreadId parent, ThreadId child)
{
	if (parent == VG_INVALID_THREADID || !vsim()->host)
		return;
	*thread_of(child) = (struct vsim_thread){ 0 };
	thread_of(parent)->creating = child;
	if (child > vsim()->host->thread_top)
		vsim()->host->thread_top = child;
}

static void thread_begins(struct vsim *sim, ThreadId parent, ThreadId child, int32_t tid,
			  const UWord *arguments)
{
	struct tally_engine_task *from = thread_of(parent)->task;
	struct tally_engine_identity identity = *tally_engine_task_identity(from);
	identity.parent_pid = identity.pid;
	identity.parent_tid = identity.tid;
	identity.tid = tid;
	struct tally_engine_task *task = new_task(sim, &identity);
	vsim_host_make_room(sim);
	int error = -VKI_ENOMEM;
	if (task)
		error = tally_engine_task_fork(from, task, true);
	tl_assert2(!error, "tally: the simulated PMU can't follow a thread: error %d\n", -error);
	thread_of(child)->task = task;
	sim->host->thread_count++;
	if (arguments[0] & VKI_CLONE_CHILD_CLEARTID)
		thread_of(child)->cleared = arguments[3];
	vsim_turns_await(sim, child);
}

static void thread_ends(ThreadId tid)
{
	struct vsim *sim = vsim();
	struct tally_engine_task *task = sim->engine ? thread_of(tid)->task : NULL;
	if (!task)
		return;
	vsim_turns_exit(sim, tid, tally_engine_task_identity(task)->tid);
	vsim_host_make_room(sim);
	vsim_host_switch(sim, task);
	tally_engine_task_exit(task);
	vsim_events_update(sim);
	vsim_host_switch(sim, NULL);
	tally_engine_task_free(task);
	*thread_of(tid) = (struct vsim_thread){ .left = True };
	sim->host->thread_count--;
}

/* Valgrind's callback: at each turn of each thread, and after each system call. */
static void turn_begins(ThreadId tid, ULong blocks)
{
	(void)blocks;
	struct vsim *sim = vsim();
	if (!sim->engine)
		return;
	struct vsim_host *host = sim->host;
	host->running = tid;
	if (host->sleeps_on)
		vsim_turns_await_futex(sim);
	if (host->exit.tid)
		vsim_turns_await_exit(sim);
	if (host->threads[tid].task != host->current)
		vsim_host_switch(sim, host->threads[tid].task);
	vsim_region_switch(sim, tid);
	vsim_host_run_pending(sim);
	uint64_t now = vsim_host_now(sim);
	if (now >= host->tick_at) {
		host->tick_at = (now / VSIM_TICK_NS + 1) * VSIM_TICK_NS;
		tally_engine_tick(sim->engine, NULL);
		vsim_events_update(sim);
	}
	vsim_resume(&sim->cpu);
}

static void turn_ends(ThreadId tid, ULong blocks)
{
	(void)tid, (void)blocks;
	vsim_fold(&vsim()->cpu);
}

/* --- system calls --------------------------------------------------------- */

/* Valgrind's callback.  The call may take long, so the counts are added to the totals before it. */
static void call_begins(ThreadId tid, UInt number, UWord *arguments, UInt count)
{
	(void)count;
	struct vsim *sim = vsim();
	if (!sim->engine)
		return;
	if (number == __NR_execve || number == __NR_execveat)
		exec_begins(sim, tid, number, arguments);
	else if (vsim_host_now(sim) >= sim->host->totals_at)
		vsim_events_update(sim);
	vsim_turns_call(sim, tid, number, arguments);
}

static void rename_thread(struct vsim *sim, ThreadId tid, Addr at)
{
	char comm[NAME_MAX] = { 0 };
	/* the kernel has read it, so it is readable */
	VG_(strncpy)(comm, (const char *)at, NAME_MAX - 1);
	vsim_host_make_room(sim);
	tally_engine_comm(thread_of(tid)->task, comm);
}

static void call_ends(ThreadId tid, UInt number, UWord *arguments, UInt count, SysRes result)
{
	(void)count;
	struct vsim *sim = vsim();
	if (!sim->engine)
		return;
	struct vsim_thread *thread = thread_of(tid);
	if (thread->executing)
		exec_failed(sim, tid);
	if (thread->creating) {
		ThreadId child = thread->creating;
		thread->creating = 0;
		if (!sr_isError(result))
			thread_begins(sim, tid, child, (int32_t)sr_Res(result), arguments);
	}
	vsim_turns_call_done(sim, tid, number, result);
	if (number == __NR_prctl && arguments[0] == NAME_OPTION && !sr_isError(result) &&
	    thread->task)
		rename_thread(sim, tid, arguments[1]);
}

/* --- registration, and the end -------------------------------------------- */

void vsim_life_register(void)
{
	VG_(clo_trace_children) = True;
	VG_(clo_verbosity) = 0; /* stdout and stderr are the program's */
	VG_(clo_vgdb) = 0;      /* no files and no polling for a debugger */
	VG_(atfork)(vsim_turns_fork, vsim_turns_forked, forked);
	VG_(needs_syscall_wrapper)(call_begins, call_ends);
	VG_(track_start_client_code)(turn_begins);
	VG_(track_stop_client_code)(turn_ends);
	VG_(track_pre_thread_ll_create)(thread_made);
	VG_(track_pre_thread_ll_exit)(thread_ends);
}

void vsim_life_finish(struct vsim *sim)
{
	if (!sim->engine)
		return;
	vsim_events_update(sim);
	vsim_ring_finish(sim);
}
