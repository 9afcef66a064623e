/* Threads that share work. */
#ifndef TALLY_BASE_THREADS_H
#define TALLY_BASE_THREADS_H

#include <pthread.h>

/* Returns the number of CPUs on which this thread may run, at least 1.  Uses sched_getaffinity(2),
 * so that taskset(1) and cpusets count. */
unsigned tally_cpus_allowed(void);

/* pthread_create(3), but the new thread blocks all signals: existing threads get them.  Returns 0
 * or -errno. */
int tally_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
