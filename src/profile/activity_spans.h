/* For how long samples of counters stand that were taken each so many events (record -c).  Not
 * thread-safe. */
#ifndef TALLY_PROFILE_ACTIVITY_SPANS_H
#define TALLY_PROFILE_ACTIVITY_SPANS_H

#include "profile/activity.h"

/* Gives those of `ran`, in order of their ends, a start whose start is their end and whose `event`
 * is set.  An event whose samples are never two of one thread on one CPU keeps them as they are.  0
 * or -ENOMEM. */
int tally_spans_fill(struct tally_ran *ran, size_t count);

#endif
