/* Threads that share work out. */
#ifndef TALLY_BASE_THREADS_H
#define TALLY_BASE_THREADS_H

#include <pthread.h>

/* On how many CPUs this thread may run, at least 1: sched_getaffinity(2), so that taskset(1) and
 * cpusets count. */
unsigned tally_cpus_allowed(void);

/* pthread_create(3), but signals stay with the threads that there are.  0 or -errno. */
int tally_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
