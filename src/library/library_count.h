/* Converts the kernel's values to libtally's. */
#ifndef TALLY_LIBRARY_LIBRARY_COUNT_H
#define TALLY_LIBRARY_LIBRARY_COUNT_H

#include "tally/counter.h"

/* Returns the count.  If the counter was not always on the CPU, its value is scaled to the whole
 * time. */
static inline struct tally_count tally_library_count(uint64_t value, uint64_t enabled_ns,
						     uint64_t running_ns)
{
	struct tally_count count = { value, value, enabled_ns, running_ns };
	if (running_ns && running_ns < enabled_ns)
		count.value = (uint64_t)((double)value * (double)enabled_ns / (double)running_ns);
	return count;
}

#endif
