/* PROCESS_SIGNAL is hidden from the program.
 *
 * Masks.  A thread that is sampled never blocks PROCESS_SIGNAL, yet the program reads back the mask
 * that it set.  Each thread remembers the mask that the program set last.  It holds as long as the
 * kernel's mask agrees with it in all other signals.  Otherwise something that is not replaced here
 * changed the mask: a handler began or returned, siglongjmp(3), setcontext(3), a new thread.  Then
 * PROCESS_SIGNAL is taken for blocked if both of its neighbours are: programs block it as one of
 * all signals.
 *
 * Dispositions.  The program's own action for PROCESS_SIGNAL is remembered and told.  It is taken
 * if kill(2) or sigqueue(3) sends the signal; all others count as the object's own.  The sa_mask of
 * other actions is installed without PROCESS_SIGNAL, except for handlers on alternate stacks: see
 * let_samples_through().
 *
 * All handlers go through relay(), so that process_restart.c knows when one begins.  Besides, the
 * kernel decides by the first of several signals whether a system call is restarted.  If
 * PROCESS_SIGNAL interrupts a read(2), and the program's SIGALRM arrives while the sample is taken,
 * then the read is restarted after both handlers, and a program that relies on alarm(2) to end it
 * waits forever.  So relay() ends the call if the handler is without SA_RESTART.
 *
 * Children of vfork(2) share this memory but have a mask and dispositions of their own.  There, and
 * in other processes and threads that are not counted, the kernel's state is the program's, and
 * nothing is remembered.
 *
 * Masks are words of 64 bits, as in the kernel: signal N is bit N - 1. */
#include "process/process_signals.h"
#include "process/process_call.h"
#include "process/process_next.h"
#include "process/process_restart.h"

#include <string.h>
#include <sys/signalfd.h>

#define SIGNALS 64
#define BIT(signal) (1ull << ((signal)-1))
/* glibc uses them for cancellation and for setuid(2) in all threads.  No mask can block them. */
#define LIBC_SIGNALS (BIT(32) | BIT(33))
#define UNBLOCKABLE (BIT(SIGKILL) | BIT(SIGSTOP))
#define NEIGHBOURS (BIT(PROCESS_SIGNAL - 1) | BIT(PROCESS_SIGNAL + 1))

/* A signal's action as the program has set it, as far as the kernel has another one. */
struct action {
	/* The handler's address, and whether it has SA_RESTART and SA_ONSTACK.  relay() reads them while
	 * another thread changes the action: so they are one atomic word.  0: relay() was never
	 * installed. */
	uint64_t relayed;
	bool lacks_siginfo; /* relay() has SA_SIGINFO, the program's has not */
	bool masks;         /* its sa_mask has PROCESS_SIGNAL */
};
/* user addresses have at most 56 bits */
#define RESTARTS (1ull << 62)
#define IS_ON_STACK (1ull << 63)

/* PROCESS_SIGNAL is used in this program */
static bool hides;
static struct action actions[SIGNALS + 1];
/* the program's action for PROCESS_SIGNAL */
static struct sigaction own_action;
/* siginterrupt(3) was called for these signals, with true */
static uint64_t interrupting;
/* pid of the process in which a thread changes actions; 0: none */
static int32_t changing;
/* the kernel's action for PROCESS_SIGNAL, while an exec sets it aside */
static struct sigaction sampling_action;
static bool is_aside; /* atomic */

#define OWN __attribute__((tls_model("initial-exec")))
/* the mask that the program set last */
static __thread uint64_t own_mask OWN;
/* where PROCESS_SIGNAL last interrupted the thread at a system call */
static __thread uint64_t sampled_pc OWN, sampled_sp OWN;
__thread unsigned process_signals_relayed OWN;

static uint64_t set_word(const sigset_t *set)
{
	uint64_t word;
	memcpy(&word, set, sizeof(word));
	return word;
}

static void set_word_to(sigset_t *set, uint64_t word)
{
	memcpy(set, &word, sizeof(word));
}

/* The kernel's call.  `old` may be NULL.  Returns 0 or -errno. */
static int kernel_mask(int how, const uint64_t *set, uint64_t *old)
{
	return (int)process_call(SYS_rt_sigprocmask, how, set, old, sizeof(*set));
}

/* Returns false also once the counting has ended: a filter of the program's own may then kill it
 * for system calls that it doesn't make itself. */
static bool is_counted(void)
{
	return hides && !process_agent.is_ending && process_self();
}

static void kernel_let(bool through)
{
	const uint64_t bit = PROCESS_SIGNAL_BIT;
	kernel_mask(through ? SIG_UNBLOCK : SIG_BLOCK, &bit, NULL);
}

/* --- masks ------------------------------------------------------------------ */

/* Guesses what the program sees of a mask whose PROCESS_SIGNAL doesn't tell anything. */
static uint64_t guessed_mask(uint64_t kernel)
{
	if ((kernel & NEIGHBOURS) == NEIGHBOURS)
		return kernel | PROCESS_SIGNAL_BIT;
	return kernel & ~PROCESS_SIGNAL_BIT;
}

/* Returns the program's view of the kernel's mask. */
static uint64_t seen_mask(uint64_t kernel, bool counted)
{
	if (!counted && (kernel & PROCESS_SIGNAL_BIT))
		return kernel;
	if (((own_mask ^ kernel) & ~PROCESS_SIGNAL_BIT) == 0)
		return own_mask;
	return guessed_mask(kernel);
}

static uint64_t changed_mask(int how, uint64_t mask, uint64_t set)
{
	switch (how) {
	case SIG_BLOCK:
		mask |= set;
		break;
	case SIG_UNBLOCK:
		mask &= ~set;
		break;
	default:
		mask = set;
		break;
	}
	return mask & ~UNBLOCKABLE;
}

/* sigprocmask(2).  `never` can't be blocked.  Returns 0 or a number of errno. */
static int change_mask(int how, const sigset_t *set, sigset_t *old, uint64_t never)
{
	uint64_t kernel, before, after, wanted = 0, given;
	bool counted = is_counted();
	int result;
	if (set)
		wanted = set_word(set) & ~never;
	given = wanted;
	if (counted && how != SIG_UNBLOCK)
		given &= ~PROCESS_SIGNAL_BIT;
	result = kernel_mask(how, set ? &given : NULL, &kernel);
	if (result)
		return -result;
	before = seen_mask(kernel, counted);
	if (set) {
		after = changed_mask(how, before, wanted);
		if (counted) {
			own_mask = after;
			/* by a context of the program's, with a mask of its own */
			if ((kernel & PROCESS_SIGNAL_BIT) && how == SIG_BLOCK)
				kernel_let(true);
		} else if (after & ~kernel & PROCESS_SIGNAL_BIT) {
			kernel_let(false);
		}
	}
	if (old)
		set_word_to(old, before);
	return 0;
}

uint64_t process_signals_mask(void)
{
	uint64_t kernel = 0;
	kernel_mask(SIG_BLOCK, NULL, &kernel);
	return seen_mask(kernel, is_counted());
}

void process_signals_thread(uint64_t inherited)
{
	const uint64_t bit = PROCESS_SIGNAL_BIT;
	uint64_t kernel = 0;
	kernel_mask(SIG_UNBLOCK, &bit, &kernel);
	own_mask = kernel;
	if (kernel == (inherited & ~PROCESS_SIGNAL_BIT))
		own_mask = inherited;
}

long process_signals_call_mask(int how, const void *set, void *old, size_t size)
{
	if (!hides || size != sizeof(uint64_t))
		return process_call(SYS_rt_sigprocmask, how, set, old, size);
	return -change_mask(how, set, old, 0);
}

PROCESS_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	if (!hides)
		return PROCESS_NEXT(pthread_sigmask)(how, set, old);
	return change_mask(how, set, old, LIBC_SIGNALS);
}

PROCESS_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	int result = pthread_sigmask(how, set, old);
	if (!result)
		return 0;
	errno = result;
	return -1;
}

/* Blocks or unblocks one signal.  Returns 0, or -1 and sets errno.  `before` may be NULL. */
static int change_one(int how, int signal, sigset_t *before)
{
	sigset_t set;
	sigemptyset(&set);
	if (sigaddset(&set, signal))
		return -1;
	return sigprocmask(how, &set, before);
}

PROCESS_EXPORT int sighold(int signal)
{
	return change_one(SIG_BLOCK, signal, NULL);
}

PROCESS_EXPORT int sigrelse(int signal)
{
	return change_one(SIG_UNBLOCK, signal, NULL);
}

const sigset_t *process_signals_without(const sigset_t *set, sigset_t *copy)
{
	if (!hides || !set)
		return set;
	*copy = *set;
	set_word_to(copy, set_word(set) & ~PROCESS_SIGNAL_BIT);
	return copy;
}

/* --- relayed handlers --------------------------------------------------------- */

/* Calls that end with EINTR if a handler without SA_RESTART interrupts them. */
static bool is_restarted(long number, uint64_t second_argument)
{
	switch (number) {
	case SYS_futex: {
		unsigned operation = second_argument & 0x7f;
		/* FUTEX_WAIT, FUTEX_WAIT_BITSET */
		return operation == 0 || operation == 9;
	}
#ifdef SYS_open
	case SYS_open:
#endif
	case SYS_openat:
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_ioctl:
	case SYS_fcntl:
	case SYS_flock:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_connect:
	case SYS_accept:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_mq_timedsend:
	case SYS_mq_timedreceive:
	case SYS_getrandom:
		return true;
	default:
		return false;
	}
}

#if defined(__x86_64__)
#define CONTEXT_PC(c) ((c)->uc_mcontext.gregs[REG_RIP])
#define CONTEXT_SP(c) ((c)->uc_mcontext.gregs[REG_RSP])
#define CONTEXT_NUMBER(c) ((c)->uc_mcontext.gregs[REG_RAX])
#define CONTEXT_SECOND(c) ((c)->uc_mcontext.gregs[REG_RSI])
#define CONTEXT_RESULT(c) ((c)->uc_mcontext.gregs[REG_RAX])
static const unsigned char call_instruction[] = { 0x0f, 0x05 };
#elif defined(__aarch64__)
#define CONTEXT_PC(c) ((c)->uc_mcontext.pc)
#define CONTEXT_SP(c) ((c)->uc_mcontext.sp)
#define CONTEXT_NUMBER(c) ((c)->uc_mcontext.regs[8])
#define CONTEXT_SECOND(c) ((c)->uc_mcontext.regs[1])
#define CONTEXT_RESULT(c) ((c)->uc_mcontext.regs[0])
static const unsigned char call_instruction[] = { 0x01, 0x00, 0x00, 0xd4 };
#elif defined(__riscv)
#define CONTEXT_PC(c) ((c)->uc_mcontext.__gregs[REG_PC])
#define CONTEXT_SP(c) ((c)->uc_mcontext.__gregs[REG_SP])
#define CONTEXT_NUMBER(c) ((c)->uc_mcontext.__gregs[17])
#define CONTEXT_SECOND(c) ((c)->uc_mcontext.__gregs[11])
#define CONTEXT_RESULT(c) ((c)->uc_mcontext.__gregs[10])
static const unsigned char call_instruction[] = { 0x73, 0x00, 0x00, 0x00 };
#else
#error "process_signals.c lacks this architecture"
#endif

/* Byte by byte: a shorter instruction may be the last thing in memory. */
static bool is_call(uint64_t pc)
{
	const unsigned char *bytes = (const unsigned char *)(uintptr_t)pc;
	/* the kernel's vsyscall page can't be read */
	if ((int64_t)pc < 0)
		return false;
	for (size_t i = 0; i < sizeof(call_instruction); i++)
		if (bytes[i] != call_instruction[i])
			return false;
	return true;
}

/* A second sample may come before a handler that is about to begin: it must not replace the note of
 * the first. */
void process_signals_sampled(const ucontext_t *context)
{
	uint64_t pc = (uint64_t)CONTEXT_PC(context);
	if (!is_call(pc))
		return;
	sampled_pc = pc;
	sampled_sp = (uint64_t)CONTEXT_SP(context);
}

/* Handlers with SA_ONSTACK begin with PROCESS_SIGNAL blocked.  On a small alternate stack they stay
 * so: a second signal's frame would not fit, and the kernel kills the program for that.  The time
 * there counts for the next sample. */
static void let_samples_through(const ucontext_t *context)
{
	enum { LARGE = 32 << 10 };
	uintptr_t above = (uintptr_t)__builtin_frame_address(0) -
			  (uintptr_t)context->uc_stack.ss_sp;
	bool is_alternate = above < context->uc_stack.ss_size;
	if (!process_agent.is_ending && (!is_alternate || context->uc_stack.ss_size >= LARGE))
		kernel_let(true);
}

/* A handler without SA_RESTART begins: ends the system call that is about to be restarted only because
 * PROCESS_SIGNAL interrupted it. */
static void end_call(ucontext_t *context)
{
	if (!sampled_pc || sampled_pc != (uint64_t)CONTEXT_PC(context) ||
	    sampled_sp != (uint64_t)CONTEXT_SP(context) ||
	    !is_restarted((long)CONTEXT_NUMBER(context), (uint64_t)CONTEXT_SECOND(context)))
		return;
	CONTEXT_PC(context) += sizeof(call_instruction);
	CONTEXT_RESULT(context) = -EINTR;
	sampled_pc = 0;
}

typedef void (*program_handler)(int, siginfo_t *, void *);

static program_handler handler_of(uint64_t relayed)
{
	return (program_handler)(uintptr_t)(relayed & ~(RESTARTS | IS_ON_STACK));
}

/* The handler that the kernel knows in place of the program's.  The program's is called last, by a
 * jump: it finds the stack as if the kernel had called it. */
static void relay(int signal, siginfo_t *info, void *context)
{
	uint64_t relayed = __atomic_load_n(&actions[signal].relayed, __ATOMIC_SEQ_CST);
	process_signals_relayed++;
	process_restart_handler();
	if (!(relayed & RESTARTS))
		end_call(context);
	if (relayed & IS_ON_STACK)
		let_samples_through(context);
	handler_of(relayed)(signal, info, context);
}

/* Kills the process, as PROCESS_SIGNAL does where no handler is. */
static void end_by_signal(void)
{
	const uint64_t none[4] = { 0 }; /* the kernel's struct sigaction */
	process_call(SYS_rt_sigaction, PROCESS_SIGNAL, none, NULL, sizeof(uint64_t));
	process_call(SYS_tgkill, process_call(SYS_getpid), process_call(SYS_gettid),
		     PROCESS_SIGNAL);
}

void process_signals_received(siginfo_t *info, ucontext_t *context)
{
	struct sigaction action = own_action;
	uint64_t mask = set_word(&context->uc_sigmask);
	if (action.sa_handler == SIG_IGN || (seen_mask(mask, is_counted()) & PROCESS_SIGNAL_BIT))
		return;
	if (action.sa_handler == SIG_DFL) {
		end_by_signal();
		return;
	}
	process_signals_relayed++;
	process_restart_handler();
	if (!(action.sa_flags & SA_RESTART))
		end_call(context);
	if (action.sa_flags & (int)SA_RESETHAND)
		own_action.sa_handler = SIG_DFL;
	mask = (mask | set_word(&action.sa_mask)) & ~PROCESS_SIGNAL_BIT;
	kernel_mask(SIG_SETMASK, &mask, NULL);
	action.sa_sigaction(PROCESS_SIGNAL, info, context);
}

/* --- dispositions ------------------------------------------------------------- */

/* Keeps other threads and all handlers out of `actions`.  A fork in another thread may have left
 * the lock with the parent's pid. */
static uint64_t lock_actions(int32_t pid)
{
	const uint64_t all = ~0ull; /* a thread that is cancelled would keep the lock */
	uint64_t mask = 0;
	int32_t holder = 0;
	kernel_mask(SIG_BLOCK, &all, &mask);
	while (!__atomic_compare_exchange_n(&changing, &holder, pid, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (holder == pid) {
			process_call(SYS_sched_yield);
			holder = 0;
		}
	}
	return mask;
}

static void unlock_actions(uint64_t mask)
{
	__atomic_store_n(&changing, 0, __ATOMIC_RELEASE);
	kernel_mask(SIG_SETMASK, &mask, NULL);
}

static bool is_function(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* process_timer.c's action, which no program's resembles */
static bool is_sampling(const struct sigaction *action)
{
	const int flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
	const uint64_t all = ~(LIBC_SIGNALS | UNBLOCKABLE);
	return is_function(action) && (action->sa_flags & flags) == flags &&
	       (set_word(&action->sa_mask) & all) == all;
}

/* Turns the kernel's action into the program's. */
static void tell_action(const struct action *known, struct sigaction *action)
{
	if (action->sa_sigaction == relay)
		action->sa_sigaction = handler_of(known->relayed);
	if (known->lacks_siginfo)
		action->sa_flags &= ~SA_SIGINFO;
	uint64_t mask = set_word(&action->sa_mask) & ~PROCESS_SIGNAL_BIT;
	if (known->masks)
		mask |= PROCESS_SIGNAL_BIT;
	set_word_to(&action->sa_mask, mask);
}

/* sigaction(2) for PROCESS_SIGNAL, whose action the kernel isn't told. */
static void exchange_own_action(const struct sigaction *action, struct sigaction *old)
{
	struct sigaction before = own_action, kernel;
	if (action) {
		/* the kernel drops flags that it doesn't know */
		const unsigned known = SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK |
				       SA_RESTART | SA_NODEFER | SA_RESETHAND;
		own_action = *action;
		own_action.sa_flags &= (int)known;
		set_word_to(&own_action.sa_mask, set_word(&action->sa_mask) & ~UNBLOCKABLE);
		/* libc adds these */
		if (!PROCESS_NEXT(sigaction)(PROCESS_SIGNAL, NULL, &kernel)) {
#ifdef __x86_64__
			own_action.sa_flags |= kernel.sa_flags & 0x04000000; /* SA_RESTORER */
#endif
			own_action.sa_restorer = kernel.sa_restorer;
		}
	}
	if (old) {
		old->sa_handler = before.sa_handler;
		old->sa_flags = before.sa_flags;
		old->sa_restorer = before.sa_restorer;
		set_word_to(&old->sa_mask, set_word(&before.sa_mask));
	}
}

/* Installs `action` so that PROCESS_SIGNAL gets through.  The lock is held. */
static int exchange_action(int signal, const struct sigaction *action, struct sigaction *old)
{
	struct action *known = &actions[signal], before = *known, next = *known;
	struct sigaction installed, previous;
	int result;
	if (!old)
		old = &previous;
	if (!action) {
		result = PROCESS_NEXT(sigaction)(signal, NULL, old);
		if (!result)
			tell_action(known, old);
		return result;
	}
	installed = *action;
	next.lacks_siginfo = false;
	next.masks = set_word(&action->sa_mask) & PROCESS_SIGNAL_BIT;
	set_word_to(&installed.sa_mask, set_word(&action->sa_mask) & ~PROCESS_SIGNAL_BIT);
	if (is_function(action)) {
		program_handler relayed = action->sa_sigaction;
		/* a program may give back what it read by a system call */
		if (relayed == relay)
			relayed = handler_of(before.relayed);
		next.relayed = (uintptr_t)relayed;
		if (action->sa_flags & SA_RESTART)
			next.relayed |= RESTARTS;
		if (action->sa_flags & SA_ONSTACK)
			next.relayed |= IS_ON_STACK;
		next.lacks_siginfo = !(action->sa_flags & SA_SIGINFO);
		if (next.relayed & IS_ON_STACK)
			set_word_to(&installed.sa_mask,
				    set_word(&installed.sa_mask) | PROCESS_SIGNAL_BIT);
		installed.sa_sigaction = relay;
		/* the context is not passed without it on some machines */
		installed.sa_flags |= SA_SIGINFO;
	}
	/* before the kernel calls relay() for it, maybe in another thread */
	__atomic_store_n(&known->relayed, next.relayed, __ATOMIC_SEQ_CST);
	result = PROCESS_NEXT(sigaction)(signal, &installed, old);
	if (result) {
		__atomic_store_n(&known->relayed, before.relayed, __ATOMIC_SEQ_CST);
		return result;
	}
	known->lacks_siginfo = next.lacks_siginfo;
	known->masks = next.masks;
	tell_action(&before, old);
	return 0;
}

/* In a child of vfork(2), and where the counting has ended: the kernel's action is the program's,
 * except where it was installed before. */
static int pass_action(int signal, const struct sigaction *action, struct sigaction *old)
{
	int result = PROCESS_NEXT(sigaction)(signal, action, old);
	if (result || !old)
		return result;
	if (signal != PROCESS_SIGNAL)
		tell_action(&actions[signal], old);
	else if (is_sampling(old))
		exchange_own_action(NULL, old);
	return 0;
}

PROCESS_EXPORT int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	int32_t pid;
	uint64_t mask;
	int result = 0;
	if (!hides || signal < 1 || signal > SIGNALS)
		return PROCESS_NEXT(sigaction)(signal, action, old);
	/* other threads' timers may go on after the end */
	if (process_agent.is_ending && signal != PROCESS_SIGNAL)
		return pass_action(signal, action, old);
	pid = (int32_t)process_call(SYS_getpid);
	if (pid != process_agent.pid)
		return pass_action(signal, action, old);
	mask = lock_actions(pid);
	if (signal == PROCESS_SIGNAL)
		exchange_own_action(action, old);
	else
		result = exchange_action(signal, action, old);
	unlock_actions(mask);
	return result;
}

static bool is_valid(int signal)
{
	if (signal >= 1 && signal <= SIGNALS && !(BIT(signal) & LIBC_SIGNALS))
		return true;
	errno = EINVAL;
	return false;
}

static sighandler_t install(int signal, sighandler_t handler, int flags, uint64_t mask)
{
	struct sigaction action = { .sa_flags = flags }, old;
	action.sa_handler = handler;
	set_word_to(&action.sa_mask, mask);
	if (sigaction(signal, &action, &old))
		return SIG_ERR;
	return old.sa_handler;
}

PROCESS_EXPORT sighandler_t signal(int signal, sighandler_t handler)
{
	int flags = SA_RESTART;
	if (handler == SIG_ERR || !is_valid(signal)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (__atomic_load_n(&interrupting, __ATOMIC_RELAXED) & BIT(signal))
		flags = 0;
	return install(signal, handler, flags, BIT(signal));
}

PROCESS_EXPORT sighandler_t sysv_signal(int signal, sighandler_t handler)
{
	const int interrupt = 0x20000000; /* SA_INTERRUPT */
	if (handler == SIG_ERR || !is_valid(signal)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	return install(signal, handler, (int)SA_RESETHAND | SA_NODEFER | interrupt, 0);
}

PROCESS_EXPORT sighandler_t sigset(int signal, sighandler_t disposition)
{
	struct sigaction old;
	sighandler_t before;
	sigset_t blocked;
	if (disposition == SIG_ERR || !is_valid(signal)) {
		errno = EINVAL;
		return SIG_ERR;
	}
	if (disposition == SIG_HOLD) {
		if (change_one(SIG_BLOCK, signal, &blocked))
			return SIG_ERR;
		if (sigismember(&blocked, signal))
			return SIG_HOLD;
		if (sigaction(signal, NULL, &old))
			return SIG_ERR;
		return old.sa_handler;
	}
	before = install(signal, disposition, 0, 0);
	if (before == SIG_ERR || change_one(SIG_UNBLOCK, signal, &blocked))
		return SIG_ERR;
	if (sigismember(&blocked, signal))
		return SIG_HOLD;
	return before;
}

PROCESS_EXPORT int sigignore(int signal)
{
	if (install(signal, SIG_IGN, 0, 0) == SIG_ERR)
		return -1;
	return 0;
}

PROCESS_EXPORT int siginterrupt(int signal, int flag)
{
	struct sigaction action;
	if (sigaction(signal, NULL, &action))
		return -1;
	if (flag) {
		__atomic_fetch_or(&interrupting, BIT(signal), __ATOMIC_RELAXED);
		action.sa_flags &= ~SA_RESTART;
	} else {
		__atomic_fetch_and(&interrupting, ~BIT(signal), __ATOMIC_RELAXED);
		action.sa_flags |= SA_RESTART;
	}
	return sigaction(signal, &action, NULL);
}

int __sigaction(int, const struct sigaction *, struct sigaction *) SAME_AS(sigaction);
sighandler_t bsd_signal(int, sighandler_t) SAME_AS(signal);
sighandler_t ssignal(int, sighandler_t) SAME_AS(signal);
sighandler_t __sysv_signal(int, sighandler_t) SAME_AS(sysv_signal);

/* --- signals that are taken without a handler ---------------------------------- */

PROCESS_EXPORT int sigpending(sigset_t *set)
{
	int result;
	result = PROCESS_NEXT(sigpending)(set);
	if (!result && hides)
		set_word_to(set, set_word(set) & ~PROCESS_SIGNAL_BIT);
	return result;
}

PROCESS_EXPORT int signalfd(int fd, const sigset_t *mask, int flags)
{
	sigset_t copy;
	return PROCESS_NEXT(signalfd)(fd, process_signals_without(mask, &copy), flags);
}

PROCESS_EXPORT int sigwait(const sigset_t *restrict set, int *restrict signal)
{
	sigset_t copy;
	return PROCESS_NEXT(sigwait)(process_signals_without(set, &copy), signal);
}

/* --- start and exec ------------------------------------------------------------ */

int process_signals_start(void)
{
	const uint64_t bit = PROCESS_SIGNAL_BIT;
	uint64_t mask = 0;
	struct sigaction action;
	PROCESS_NEXT(sigaction)(PROCESS_SIGNAL, NULL, &own_action);
	hides = true;
	/* constructors that ran before this object's may have installed handlers */
	for (int signal = 1; signal <= SIGNALS; signal++) {
		if (signal != PROCESS_SIGNAL && !(BIT(signal) & LIBC_SIGNALS) &&
		    !PROCESS_NEXT(sigaction)(signal, NULL, &action) && is_function(&action))
			sigaction(signal, &action, NULL);
	}
	/* the handler comes before the signal: one may wait already */
	int error = process_timer_install();
	if (error)
		return error;
	/* The program before this one may have blocked the signal while it executed this one. */
	kernel_mask(SIG_UNBLOCK, &bit, &mask);
	own_mask = guessed_mask(mask);
	return 0;
}

void process_signals_exec_begins(bool entered)
{
	struct sigaction kernel, ignore = { .sa_handler = SIG_IGN };
	bool blocks;
	if (!hides)
		return;
	/* after the end, a filter of the program's may be in force: no call that isn't needed */
	if (process_agent.is_ending)
		blocks = own_mask & PROCESS_SIGNAL_BIT;
	else
		blocks = process_signals_mask() & PROCESS_SIGNAL_BIT;
	if (blocks || !process_agent.is_ending)
		kernel_let(!blocks && !(entered && is_counted()));
	if (own_action.sa_handler != SIG_IGN ||
	    PROCESS_NEXT(sigaction)(PROCESS_SIGNAL, NULL, &kernel) || !is_sampling(&kernel))
		return;
	if (is_counted()) {
		sampling_action = kernel;
		__atomic_store_n(&is_aside, true, __ATOMIC_SEQ_CST);
	}
	PROCESS_NEXT(sigaction)(PROCESS_SIGNAL, &ignore, NULL);
}

void process_signals_exec_failed(void)
{
	if (!is_counted())
		return;
	if (__atomic_exchange_n(&is_aside, false, __ATOMIC_SEQ_CST))
		PROCESS_NEXT(sigaction)(PROCESS_SIGNAL, &sampling_action, NULL);
	kernel_let(true);
}
