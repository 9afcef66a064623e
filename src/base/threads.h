/* Threads that share work, and the size of stacks. */
#ifndef TALLY_BASE_THREADS_H
#define TALLY_BASE_THREADS_H

#include <pthread.h>
#include <stddef.h>

/* The stack that tally's code needs at most; Linux's usual limit. */
#define TALLY_STACK_BYTES ((size_t)8 << 20)

/* Returns the number of CPUs on which this thread may run, at least 1.  Uses sched_getaffinity(2),
 * so that taskset(1) and cpusets count. */
unsigned tally_cpus_allowed(void);

/* pthread_create(3), but the new thread blocks all signals that others may send: existing threads get
 * them.  Its stack
 * has TALLY_STACK_BYTES, whatever the limit (ulimit -s).  Returns 0 or -errno. */
int tally_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

/* Calls run(argument) in this thread, with a stack of TALLY_STACK_BYTES at least: on memory of its
 * own if limits (ulimit -s, ulimit -v) may stop the thread's stack from growing.  Returns 0, or
 * -ENOMEM without calling `run`. */
int tally_call_with_stack(void (*run)(void *argument), void *argument);

#endif
