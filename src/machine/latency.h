/* How soon this thread is run when it wakes. */
#ifndef TALLY_MACHINE_LATENCY_H
#define TALLY_MACHINE_LATENCY_H

/* Asks the scheduler for short slices: beside tasks with longer ones this thread is run sooner when it wakes, and no
 * more in all (sched_setattr(2); since Linux 6.12 sched_runtime is the slice of an ordinary task, 0.1 ms at least).
 * What can't be had is left: older kernels, threads of another policy.  Children that are forked later inherit it.
 * Needs no privilege. */
void tally_latency_ask_low(void);

#endif
