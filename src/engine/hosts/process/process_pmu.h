/* The PMU "process": what the preloaded object counts beside perf_event's software events.  tally's
 * provider and the object agree on these numbers.  Freestanding. */
#ifndef TALLY_PROCESS_PMU_H
#define TALLY_PROCESS_PMU_H

/* attr.type, the same in every process.  The engine gives its own numbers above it. */
#define TALLY_PROCESS_PMU_TYPE 0x70726f63 /* "proc" */

/* attr.config */
enum tally_process_event {
	/* ns of the thread's life, whether it runs or sleeps; sampled in both */
	TALLY_PROCESS_WALL_CLOCK = 1
};

#endif
