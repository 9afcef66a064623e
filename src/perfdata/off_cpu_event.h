/* The event whose samples are the switches away from a CPU, and stand for the time until their task
 * is on one again (`tally record --off-cpu`).  It is told by its name, which a file keeps; perf
 * calls its own so. */
#ifndef TALLY_PERFDATA_OFF_CPU_EVENT_H
#define TALLY_PERFDATA_OFF_CPU_EVENT_H

#include "tally/perf_event.h"

#include <stdbool.h>
#include <string.h>

#define TALLY_OFF_CPU_NAME "offcpu-time"

/* Its hits tell who wakes whom: recorded beside, where the kernel lets the user. */
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
