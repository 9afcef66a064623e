/* Reduces the delay before this thread runs after a wake-up. */
#ifndef TALLY_MACHINE_LATENCY_H
#define TALLY_MACHINE_LATENCY_H

#include <stdbool.h>

/* The thread's earlier scheduling.  Zeroed: nothing to restore. */
struct tally_latency {
	bool is_raised;
	int nice;
};

/* Makes this thread run soon after it wakes.  With the privilege (CAP_SYS_NICE, RLIMIT_RTPRIO) it
 * becomes a real-time thread of the lowest priority (SCHED_FIFO, priority 1; sched(7)). nice alone
 * is not enough: a thousand runnable tasks delay a thread that has run longer than its share by the
 * better part of a second (Linux 6.12 and later).  Without the privilege it requests short slices:
 * beside tasks with longer slices it then runs sooner after waking, but gets no larger share in all
 * (sched_setattr(2); since Linux 6.12 sched_runtime is the slice of an ordinary task, at least 0.1
 * ms).  A thread that already has another policy stays unchanged, as does one that gets neither
 * real-time priority nor short slices.  Children forked later are ordinary ones.  The earlier state
 * is stored in *before, for tally_latency_end(). */
void tally_latency_begin(struct tally_latency *before);

/* Restores the earlier state.  Called by the same thread. */
void tally_latency_end(const struct tally_latency *before);

#endif
