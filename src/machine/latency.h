/* How soon this thread is run when it wakes. */
#ifndef TALLY_MACHINE_LATENCY_H
#define TALLY_MACHINE_LATENCY_H

#include <stdbool.h>

/* What a thread had before.  Zeroed: nothing to give back. */
struct tally_latency {
	bool is_raised;
	int nice;
};

/* Makes this thread one that needn't wait for its turn.  With the privilege (CAP_SYS_NICE,
 * RLIMIT_RTPRIO) it becomes the last among the real-time ones (SCHED_FIFO, priority 1; sched(7)):
 * by nice alone a thousand that want to run keep one that has run longer than its share waiting for
 * the better part of a second (Linux 6.12 and later).  Without, it asks for short slices: beside
 * tasks with longer ones it is run sooner when it wakes, and no more in all (sched_setattr(2);
 * since Linux 6.12 sched_runtime is the slice of an ordinary task, 0.1 ms at least).  A thread of
 * another policy than the ordinary one, or that can have neither, is left as it is.  Children
 * forked later are ordinary ones.  What was is left in *before, for tally_latency_end(). */
void tally_latency_begin(struct tally_latency *before);

/* By the thread that began. */
void tally_latency_end(const struct tally_latency *before);

#endif
