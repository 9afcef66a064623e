/* What this house does with attributes; their definition is the public header's.  Freestanding. */
#ifndef TALLY_ABI_ATTR_H
#define TALLY_ABI_ATTR_H

#include "tally/perf_event.h"

#include <stdbool.h>

/* The smallest known size that holds every non-zero field: what a recording is written with, since
 * perf 6.1 refuses more than 128 bytes. */
uint32_t tally_attr_size_needed(const struct tally_attr *attr);

/* What a sample stands for that does not say it itself: the fixed period; 1 of a frequency. */
static inline uint64_t tally_attr_period(const struct tally_attr *attr)
{
	return attr->flags & TALLY_ATTR_FREQ ? 1 : attr->sample_period;
}

/* Whether what it counts is time on a CPU, in ns. */
static inline bool tally_attr_is_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK);
}

/* Leaves PERF_SAMPLE_PERIOD out where it would undo a fixed period: of what is told of each hit
 * (software events, tracepoints, breakpoints) the kernel then takes every one for a sample, with
 * its weight (SPEC C7).  Of a period of 1 that is what is wanted: a weight of a million is one
 * sample.  The others' periods are the attribute's to tell. */
static inline void tally_attr_honour_period(struct tally_attr *attr)
{
	if (!(attr->flags & TALLY_ATTR_FREQ) && attr->sample_period > 1)
		attr->sample_type &= ~TALLY_SAMPLE_PERIOD;
}

#endif
