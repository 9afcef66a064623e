/* The event of `tally record --off-cpu`.  It samples each switch away from a CPU; the sample stands
 * for the time until its task runs again.  Readers recognise it by its name, which the file keeps
 * and which perf uses as well. */
#ifndef TALLY_PERFDATA_OFF_CPU_EVENT_H
#define TALLY_PERFDATA_OFF_CPU_EVENT_H

#include "tally/perf_event.h"

#include <stdbool.h>
#include <string.h>

#define TALLY_OFF_CPU_NAME "offcpu-time"

/* The event whose samples say which task wakes which.  Recorded beside the off-CPU event when the
 * kernel permits it. */
#define TALLY_WAKING_NAME "sched:sched_waking"

static inline bool tally_is_off_cpu(const struct tally_attr *attr, const char *name)
{
	return attr->type == TALLY_TYPE_SOFTWARE && attr->config == TALLY_SW_CONTEXT_SWITCHES &&
	       attr->sample_period == 1 && !(attr->flags & TALLY_ATTR_FREQ) &&
	       !strcmp(name, TALLY_OFF_CPU_NAME);
}

static inline bool tally_is_waking(const struct tally_attr *attr, const char *name)
{
	return attr->type == TALLY_TYPE_TRACEPOINT && !strcmp(name, TALLY_WAKING_NAME);
}

#endif
