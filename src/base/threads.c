/* Starts threads with a large stack and most signals blocked.  If a limit may keep this thread's
 * own stack from growing, functions run on mapped memory instead, by makecontext(3). */
#include "base/threads.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

unsigned tally_cpus_allowed(void)
{
	cpu_set_t set;
	/* Fails if there are more CPUs than the set has room for: then there are many. */
	if (sched_getaffinity(0, sizeof(set), &set))
		return CPU_SETSIZE;
	return (unsigned)CPU_COUNT(&set);
}

/* Signals that an instruction of the thread raises.  If it blocks them, they end the process, in spite
 * of a handler (base/lost_pages.h has one). */
static const int OWN_SIGNALS[] = { SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGXFSZ };

int tally_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
	sigset_t others, before;
	pthread_attr_t attributes;
	int result = -pthread_attr_init(&attributes);
	if (result)
		return result;
	sigfillset(&others);
	for (size_t i = 0; i < sizeof(OWN_SIGNALS) / sizeof(*OWN_SIGNALS); i++)
		sigdelset(&others, OWN_SIGNALS[i]);
	result = -pthread_attr_setstacksize(&attributes, TALLY_STACK_BYTES);
	if (result)
		goto out;
	result = -pthread_sigmask(SIG_SETMASK, &others, &before);
	if (result)
		goto out;
	result = -pthread_create(thread, &attributes, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
out:
	pthread_attr_destroy(&attributes);
	return result;
}

struct stack_call {
	void (*run)(void *argument);
	void *argument;
	ucontext_t back, there;
};

/* makecontext(3) passes only ints. */
static void enter(unsigned high, unsigned low)
{
	struct stack_call *call = (void *)((uintptr_t)high << 16 << 16 | low);
	call->run(call->argument);
}

/* True if the thread's own stack can grow to that size.  Where address space is limited, it may be
 * used up before, and a stack that can't grow ends the process with SIGSEGV. */
static bool has_room(void)
{
	struct rlimit stack, space;
	return getrlimit(RLIMIT_STACK, &stack) < 0 || getrlimit(RLIMIT_AS, &space) < 0 ||
	       (stack.rlim_cur >= TALLY_STACK_BYTES && space.rlim_cur == RLIM_INFINITY);
}

int tally_call_with_stack(void (*run)(void *argument), void *argument)
{
	struct stack_call call = { .run = run, .argument = argument };
	size_t guard = (size_t)sysconf(_SC_PAGESIZE), size = TALLY_STACK_BYTES + guard;
	uintptr_t at = (uintptr_t)&call;
	if (has_room()) {
		run(argument);
		return 0;
	}
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return -ENOMEM;
	int result = -ENOMEM;
	if (mprotect(stack, guard, PROT_NONE) == 0 && getcontext(&call.there) == 0) {
		call.there.uc_stack.ss_sp = stack + guard;
		call.there.uc_stack.ss_size = TALLY_STACK_BYTES;
		call.there.uc_link = &call.back;
		makecontext(&call.there, (void (*)(void))enter, 2, (unsigned)(at >> 16 >> 16),
			    (unsigned)at);
		if (swapcontext(&call.back, &call.there) == 0)
			result = 0;
	}
	munmap(stack, size);
	return result;
}
