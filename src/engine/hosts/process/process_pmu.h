/* The PMU "process": what the preloaded object counts beside perf_event's software events.  tally's
 * provider and the object agree on these numbers.  Freestanding. */
#ifndef TALLY_PROCESS_PMU_H
#define TALLY_PROCESS_PMU_H

#include <stdint.h>

/* attr.type, the same in every process.  The engine gives its own numbers above it. */
#define TALLY_PROCESS_PMU_TYPE 0x70726f63 /* "proc" */

/* attr.config */
enum tally_process_event {
	/* ns of the thread's life, whether it runs or sleeps; sampled in both */
	TALLY_PROCESS_WALL_CLOCK = 1,
	/* hits of a program's own tracepoint; attr.config1: tally_process_name() */
	TALLY_PROCESS_TRACEPOINT = 2
};

/* Returns a hash of "group:name" (FNV-1a, 63 bits).  It is larger than any id of the kernel's
 * tracepoints. */
static inline uint64_t tally_process_name(const char *group, const char *name)
{
	const uint64_t prime = 1099511628211u, largest_id = 65535;
	uint64_t hash = 14695981039346656037u;
	for (const char *at = group; *at; at++)
		hash = (hash ^ (unsigned char)*at) * prime;
	hash = (hash ^ ':') * prime;
	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * prime;
	hash &= INT64_MAX;
	if (hash <= largest_id)
		hash += largest_id + 1;
	return hash;
}

#endif
