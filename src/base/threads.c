#include "base/threads.h"

#include <sched.h>
#include <signal.h>

unsigned tally_cpus_allowed(void)
{
	cpu_set_t set;
	/* Fails if there are more CPUs than the set has room for: then there are many. */
	return sched_getaffinity(0, sizeof(set), &set) ? CPU_SETSIZE : (unsigned)CPU_COUNT(&set);
}

int tally_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
	sigset_t all, before;
	sigfillset(&all);
	int result = -pthread_sigmask(SIG_SETMASK, &all, &before);
	if (result)
		return result;
	result = -pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}
