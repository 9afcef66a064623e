/* The sample signal: when it comes, and what its handler does.
 *
 * A clock event samples each PERIOD of CPU time.  The kernel's CPU-time timers are looked at by the
 * scheduler's tick, CONFIG_HZ times a second (250 mostly): alone, they would give 250 samples where
 * 4,000 are asked for.  Monotonic timers are exact, but go on while the thread sleeps.  So each
 * thread has one of each:
 *
 * - the *shot*, monotonic, fires once, when the CPU time until the next sample has passed if the
 *   thread runs all the while.  The handler looks how much CPU time has passed indeed, samples what
 *   is due, and arms the shot again: a chain.  A thread that was preempted is sampled later, by its
 *   CPU time.
 * - If hardly any CPU time has passed since the shot was armed, and the thread has given up its CPU by
 *   itself, it sleeps.  Then the chain ends, and the *tick*, a CPU-time timer for the next deadline,
 *   begins a new one once the thread has run that long.  So a thread that sleeps gets at most two
 *   signals.
 *
 * A late sample weighs all the periods that it stands for (struct tally_engine_host's
 * counts_cpu_time), so the weights' sum is the CPU time however rough the timers are.  An event's
 * first deadline is random within its period: otherwise threads that live shorter than a period
 * would never be seen.
 *
 * While nothing samples, the tick comes every PUBLISH_NS of CPU time, brings the totals up to date and
 * looks whether tally has enabled or disabled events; every FOLLOW_NS if one is off.
 *
 * The handler runs with all signals blocked, on the stack that the thread has then, or on its
 * alternate one (SA_ONSTACK): its frame is that of any handler, some kilobytes. */
#include "process/process_agent.h"
#include "process/process_call.h"
#include "process/process_restart.h"
#include "process/process_signals.h"
#include "process/process_usage.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#ifndef SIGEV_THREAD_ID
#define SIGEV_THREAD_ID 4
#endif
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum {
	NS_PER_S = 1000000000,
	PUBLISH_NS = 20000000,
	FOLLOW_NS = 4000000,
	SHORTEST_NS = 20000,  /* between two signals */
	LATER_NS = 1000000,   /* the alternate stack is nearly full: tries again then */
	STACK_NEEDED = 4096,  /* bytes below the handler's frame: it takes 2.5 kB */
	SLEEPING_NS = 30000,  /* less CPU time than this between two shots: the thread sleeps */
	KERNEL_SET = 8        /* bytes of the kernel's sigset_t */
};
enum which { SHOT, TICK, WALL, KICK };

#if defined(__x86_64__)
void process_signal_return(void);
#endif

/* --- the engine's timers -------------------------------------------------- */

/* host_words of an engine's timer. */
enum { STARTED_BEFORE, NEXT };

static struct tally_engine_timer *next_of(const struct tally_engine_timer *timer)
{
	return (struct tally_engine_timer *)timer->host_words[NEXT];
}

static uint64_t random_below(struct process_thread *thread, uint64_t limit)
{
	uint64_t x = thread->random;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	thread->random = x;
	if (!limit)
		return 0;
	return x % limit;
}

static void remove_timer(struct process_thread *thread, struct tally_engine_timer *timer)
{
	struct tally_engine_timer *before = NULL;
	for (struct tally_engine_timer *at = thread->timers; at; before = at, at = next_of(at)) {
		if (at != timer)
			continue;
		if (before)
			before->host_words[NEXT] = timer->host_words[NEXT];
		else
			thread->timers = next_of(timer);
		return;
	}
}

static void arm(struct process_thread *thread, bool sleeps);

void process_timer_engine_start(void *host, struct tally_engine_timer *timer)
{
	struct process_thread *thread = host;
	uint64_t now = process_clock_ns(thread);
	remove_timer(thread, timer);
	if (!timer->host_words[STARTED_BEFORE] && timer->deadline_ns > now)
		timer->deadline_ns = now + 1 + random_below(thread, timer->deadline_ns - now);
	timer->host_words[STARTED_BEFORE] = 1;
	timer->host_words[NEXT] = (uintptr_t)thread->timers;
	thread->timers = timer;
	if (!thread->in_handler && !thread->frozen)
		arm(thread, false);
}

void process_timer_engine_cancel(void *host, struct tally_engine_timer *timer)
{
	remove_timer(host, timer);
}

static uint64_t next_deadline(const struct process_thread *thread)
{
	uint64_t least = UINT64_MAX;
	for (const struct tally_engine_timer *at = thread->timers; at; at = next_of(at))
		if (at->deadline_ns < least)
			least = at->deadline_ns;
	return least;
}

/* --- the kernel's timers -------------------------------------------------- */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* `ns` 0 stops the timer. */
static void set_timer(int timer, int flags, uint64_t ns, uint64_t interval_ns)
{
	const struct itimerspec when = { .it_value = timespec_of(ns),
					 .it_interval = timespec_of(interval_ns) };
	process_call(SYS_timer_settime, timer, flags, &when, NULL);
}

/* Returns the time between two publications of the thread, in ns of CPU time. */
static uint64_t publish_ns(const struct process_thread *thread)
{
	for (unsigned i = 0; i < thread->open_events; i++)
		if (!thread->enabled[i])
			return FOLLOW_NS;
	return PUBLISH_NS;
}

static void arm_tick(struct process_thread *thread)
{
	uint64_t interval = publish_ns(thread);
	if (thread->tick_interval_ns == interval)
		return;
	set_timer(thread->tick, 0, interval, interval);
	thread->tick_interval_ns = interval;
}

static void arm(struct process_thread *thread, bool sleeps)
{
	uint64_t deadline = next_deadline(thread);
	if (!thread->has_timers)
		return;
	if (deadline == UINT64_MAX) {
		arm_tick(thread);
		return;
	}
	uint64_t now = process_clock_ns(thread), left = SHORTEST_NS;
	if (deadline > now + SHORTEST_NS)
		left = deadline - now;
	thread->shot_cpu_ns = now;
	if (sleeps) {
		set_timer(thread->tick, 0, left, 0);
		thread->tick_interval_ns = 0;
	} else {
		set_timer(thread->shot, 0, left, 0);
	}
}

static int create(struct process_thread *thread, clockid_t clock, enum which which, int *timer)
{
	struct sigevent event;
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = PROCESS_SIGNAL;
	event.sigev_value.sival_int = which;
	event.sigev_notify_thread_id = thread->tid;
	return (int)process_call(SYS_timer_create, clock, &event, timer);
}

int process_timer_start(struct process_thread *thread)
{
	int error = create(thread, CLOCK_MONOTONIC, SHOT, &thread->shot);
	if (error)
		return error;
	error = create(thread, CLOCK_THREAD_CPUTIME_ID, TICK, &thread->tick);
	if (error) {
		process_call(SYS_timer_delete, thread->shot);
		return error;
	}
	thread->has_timers = true;
	if (!process_agent.samples && process_agent.plan->event_count)
		set_timer(thread->tick, 0, PUBLISH_NS, PUBLISH_NS);
	return 0;
}

void process_timer_wall(struct process_thread *thread, uint64_t period_ns)
{
	if (!thread->has_wall && period_ns)
		thread->has_wall = !create(thread, CLOCK_MONOTONIC, WALL, &thread->wall);
	if (thread->has_wall)
		set_timer(thread->wall, 0, period_ns ? 1 + random_below(thread, period_ns) : 0,
			  period_ns);
}

void process_timer_kick(struct process_thread *thread, uint64_t ns)
{
	if (!thread->has_kick && ns)
		thread->has_kick = !create(thread, CLOCK_MONOTONIC, KICK, &thread->kick);
	if (thread->has_kick)
		set_timer(thread->kick, 0, ns, 0);
}

void process_timer_stop(struct process_thread *thread)
{
	if (thread->has_kick)
		process_call(SYS_timer_delete, thread->kick);
	thread->has_kick = false;
	if (thread->has_wall)
		process_call(SYS_timer_delete, thread->wall);
	thread->has_wall = false;
	if (!thread->has_timers)
		return;
	process_call(SYS_timer_delete, thread->shot);
	process_call(SYS_timer_delete, thread->tick);
	thread->has_timers = false;
	thread->timers = NULL;
}

/* --- the handler ---------------------------------------------------------- */

/* A deadline that is nearer than a 128th of its distance from the last look counts as reached: the
 * shot's clock and the CPU's differ by little.  A shot that fires while the thread waits for a CPU is
 * handled where the thread goes on, often at the end of a system call.  So a larger part would give
 * system calls more samples than they have time. */
static bool is_due(const struct process_thread *thread, const struct tally_engine_timer *timer,
		   uint64_t now)
{
	if (timer->deadline_ns <= now)
		return true;
	uint64_t slack = (timer->deadline_ns - thread->shot_cpu_ns) / 128;
	return timer->deadline_ns - now <= slack;
}

static void fire(struct process_thread *thread, const struct tally_engine_regs *regs, uint64_t now)
{
	/* `fired` starts the timer again, at the list's head: so this goes through a list of those
	 * that are due now. */
	struct tally_engine_timer *due = NULL;
	for (struct tally_engine_timer *at = thread->timers, *next; at; at = next) {
		next = next_of(at);
		if (!is_due(thread, at, now))
			continue;
		remove_timer(thread, at);
		at->host_words[NEXT] = (uintptr_t)due;
		due = at;
	}
	while (due) {
		struct tally_engine_timer *timer = due;
		due = next_of(due);
		timer->fired(timer, regs);
	}
}

enum reason { GOES_ON, SLEEPS, WALL_CLOCK };

static void run(struct process_thread *thread, const struct tally_engine_regs *regs,
		enum reason reason)
{
	bool was_frozen = process_clock_freeze(thread);
	thread->in_handler = true;
	thread->level = TALLY_LEVEL_HARDIRQ;
	if (reason == WALL_CLOCK)
		process_wall_sample(thread, regs);
	else if (regs)
		fire(thread, regs, thread->frozen_ns);
	process_host_settle(thread);
	process_interface_settle(thread);
	/* the tick may come a little early */
	if (thread->frozen_ns + thread->hidden_ns - thread->published_at >=
	    publish_ns(thread) / 8 * 7)
		process_events_publish(thread, false);
	if (reason != WALL_CLOCK)
		arm(thread, reason == SLEEPS);
	thread->level = TALLY_LEVEL_TASK;
	thread->in_handler = false;
	thread->frozen = was_frozen;
}

void process_timer_last(struct process_thread *thread)
{
	const struct tally_engine_regs regs = { .ip = thread->outermost, .mode = TALLY_MODE_USER };
	bool was_frozen = process_clock_freeze(thread);
	thread->in_handler = true;
	thread->shot_cpu_ns = thread->frozen_ns; /* no slack */
	fire(thread, &regs, thread->frozen_ns);
	process_host_settle(thread);
	thread->in_handler = false;
	thread->frozen = was_frozen;
}

void process_timer_run(struct process_thread *thread, const struct tally_engine_regs *regs)
{
	run(thread, regs, GOES_ON);
}

static bool is_asleep(struct process_thread *thread)
{
	uint64_t passed = process_clock_ns(thread) - thread->shot_cpu_ns,
		 wanted = next_deadline(thread) - thread->shot_cpu_ns;
	if (passed >= SLEEPING_NS || wanted <= 2 * SLEEPING_NS)
		return false;
	uint64_t before = thread->voluntary_switches;
	thread->voluntary_switches = process_usage_voluntary_switches();
	return thread->voluntary_switches != before;
}

/* Programs' alternate stacks may have the 8 kB of an older kernel's SIGSTKSZ, of which one handler's
 * frame takes 3.4 kB.  A second one within, and what this object needs, would not fit: it would
 * overwrite what lies below. */
static bool has_room(const ucontext_t *context)
{
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp,
		  left = (uintptr_t)__builtin_frame_address(0) - low;
	if (left >= context->uc_stack.ss_size)
		return true; /* another stack */
	return left >= STACK_NEEDED;
}

/* A handler of the program's may have interrupted code between process_enter() and process_leave(),
 * and have left by siglongjmp(3).  Then the stack has been unwound beyond the frame that entered.  On
 * an alternate stack that can't be seen. */
static void forget_left(struct process_thread *thread, const ucontext_t *context)
{
	enum { STACK = 64 << 20 }; /* a thread's whole stack */
	struct tally_engine_regs regs;
	uintptr_t low = (uintptr_t)context->uc_stack.ss_sp;
	process_sample_regs(&regs, context);
	bool is_aside = regs.sp - low < context->uc_stack.ss_size;
	if (!thread->inside || is_aside || regs.sp <= thread->entered_sp ||
	    regs.sp - thread->entered_sp >= STACK)
		return;
	thread->inside = 0;
	thread->frozen = thread->in_handler = false;
	thread->level = TALLY_LEVEL_TASK;
	thread->current = thread->task;
}

static void handle(int number, siginfo_t *info, void *context)
{
	struct process_thread *thread = process_own;
	(void)number;
	if (!thread)
		return;
	thread->interruptions++;
	forget_left(thread, context);
	process_signals_sampled(context);
	if (info->si_code == SI_USER || info->si_code == SI_QUEUE) {
		process_signals_received(info, context);
		return;
	}
	if (info->si_code != SI_TIMER && info->si_code != SI_TKILL)
		return;
	if (info->si_code == SI_TKILL) {
		if (thread->inside || !has_room(context))
			thread->asked = 1;
		else if (thread->task)
			process_interface_serve(thread);
		return;
	}
	if (info->si_value.sival_int == KICK) {
		process_restart_kicked(thread);
		return;
	}
	if (process_agent.is_ending || !thread->task)
		return;
	if (thread->inside || !has_room(context)) {
		thread->missed = thread->inside;
		if (process_agent.samples)
			set_timer(thread->shot, 0, LATER_NS, 0);
		return;
	}
	thread->inside = 1;
	/* one look at the clock: all that is read until the end is this moment */
	bool was_frozen = process_clock_freeze(thread);
	enum reason reason = GOES_ON;
	if (info->si_value.sival_int == WALL)
		reason = WALL_CLOCK;
	else if (info->si_value.sival_int == SHOT && is_asleep(thread))
		reason = SLEEPS;
	struct tally_engine_regs regs;
	process_sample_regs(&regs, context);
	process_maps_sampled(thread, regs.ip);
	process_interface_sampled(thread, regs.ip);
	run(thread, &regs, reason);
	thread->frozen = was_frozen;
	thread->inside = 0;
}

int process_timer_install(void)
{
	struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
#if defined(__x86_64__)
		void (*restorer)(void);
#endif
		uint64_t mask;
	} action = { .handler = handle, .flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK, .mask = ~0ull };
#if defined(__x86_64__)
	enum { RESTORER = 0x04000000 };
	action.flags |= RESTORER;
	action.restorer = process_signal_return;
#endif
	return (int)process_call(SYS_rt_sigaction, PROCESS_SIGNAL, &action, NULL, KERNEL_SET);
}

#if defined(__x86_64__)
/* Where the kernel returns to from the handler.  Unwinders and debuggers know a signal's frame by
 * these very instructions. */
__asm__(".pushsection .text\n"
	".globl process_signal_return\n"
	".hidden process_signal_return\n"
	".type process_signal_return, @function\n"
	"process_signal_return:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	".size process_signal_return, . - process_signal_return\n"
	".popsection\n");
#endif

__attribute__((noinline)) void process_enter(struct process_thread *thread)
{
	if (!thread->inside)
		thread->entered_sp = (uintptr_t)__builtin_dwarf_cfa();
	thread->inside++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void process_leave(struct process_thread *thread)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (--thread->inside)
		return;
	if (thread->asked) {
		thread->asked = 0;
		process_interface_serve(thread);
	}
	if (!thread->missed)
		return;
	thread->missed = 0;
	/* The program's code that runs a moment later stands for the missed one. */
	if (thread->has_timers && process_agent.samples)
		set_timer(thread->shot, 0, SHORTEST_NS, 0);
}

uint64_t process_enter_alone(struct process_thread *thread)
{
	const uint64_t all = ~0ull;
	uint64_t mask = 0;
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &mask, KERNEL_SET);
	process_enter(thread);
	return mask;
}

void process_leave_alone(struct process_thread *thread, uint64_t mask)
{
	process_leave(thread);
	process_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, KERNEL_SET);
}
