/* How long a counter's sample stands for when one was taken every so many events (record -c).  Not
 * thread-safe. */
#ifndef TALLY_TIMELINE_ACTIVITY_SPANS_H
#define TALLY_TIMELINE_ACTIVITY_SPANS_H

#include "timeline/activity.h"

/* Sets `start` of each sample in `ran` (sorted by end) that has start == end and an `event`.  The
 * samples of an event stay as they are if no thread has two of them on one CPU.  Returns 0 or
 * -ENOMEM. */
int tally_spans_fill(struct tally_ran *ran, size_t count);

#endif
