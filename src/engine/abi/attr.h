/* Helpers for attributes, which tally/perf_event.h defines.  Freestanding. */
#ifndef TALLY_ABI_ATTR_H
#define TALLY_ABI_ATTR_H

#include "tally/perf_event.h"

#include <stdbool.h>

/* Returns the smallest known size that holds every non-zero field.  Recordings are written with it,
 * since perf 6.1 refuses more than 128 bytes. */
uint32_t tally_attr_size_needed(const struct tally_attr *attr);

/* Returns the period of samples without PERF_SAMPLE_PERIOD: the fixed period, or 1 with a
 * frequency. */
static inline uint64_t tally_attr_period(const struct tally_attr *attr)
{
	return attr->flags & TALLY_ATTR_FREQ ? 1 : attr->sample_period;
}

/* True if the event counts time on a CPU, in ns. */
static inline bool tally_attr_is_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK);
}

/* Removes PERF_SAMPLE_PERIOD if it would undo a fixed period.  If the flag is set, the kernel makes
 * one sample of every hit of a software event, tracepoint or breakpoint, and the sample has the
 * hit's weight (SPEC C7).  That suits a period of 1: a hit with a weight of a million is one
 * sample.  A larger period would have no effect; without the flag, readers take the period from the
 * attribute. */
static inline void tally_attr_honour_period(struct tally_attr *attr)
{
	if (!(attr->flags & TALLY_ATTR_FREQ) && attr->sample_period > 1)
		attr->sample_type &= ~TALLY_SAMPLE_PERIOD;
}

#endif
