/* Samples as they come, summed by thread and function, or by stack, and forgotten by and by: what
 * `tally top` shows.
 *
 * A sample weighs its period when it comes, and less with each decay.  Threads and functions whose
 * samples have faded are dropped, so that memory follows what is running, not what ever ran.  Not
 * thread-safe.
 */
#ifndef TALLY_PROFILE_LIVE_SUMS_H
#define TALLY_PROFILE_LIVE_SUMS_H

#include "profile/report_model.h"

struct tally_live_sum {
	uint32_t event, pid, tid;
	uint32_t comm;     /* string id of tasks: what the thread was called last */
	uint32_t function; /* of names: the leaf */
	/* of `frames`: the functions of its stack, leaf first; count 0: stacks are not told
	 * apart */
	uint32_t first, count;
	double weight, samples;
};

struct tally_live_sums {
	struct tally_names *names;
	bool with_stacks; /* by the samples' call chains, set before the first, */
	uint32_t frames_max; /* … by so many of their innermost frames; 0: all */
	struct { struct tally_live_sum *items; size_t count, capacity; } sums;
	struct { uint32_t *items; size_t count, capacity; } frames;
	/* hash of event, tid and functions → item; equal hashes stand behind one another */
	struct tally_map index;
};

/* A sample of an event of the caller's numbering.  The tasks of `names` must be as they were when
 * it was taken. 0 or -ENOMEM. */
int tally_live_sums_add(struct tally_live_sums *sums, uint32_t event,
			const struct tally_record *sample);

/* All weights times `factor` (0: begins again).  0 or -ENOMEM. */
int tally_live_sums_decay(struct tally_live_sums *sums, double factor);

/* live_report.c: the entries of options->event, as tally_report_build() would make them, but that
 * `percent_min` is of what they are sorted by: a screen has no room for all that calls.  `children`
 * and `tree` go with stacks alone, and a tree is always of all that passes through its entry.  0 or
 * -ENOMEM. */
int tally_live_sums_report(const struct tally_live_sums *sums,
			   const struct tally_report_options *options, struct tally_report *report);

void tally_live_sums_release(struct tally_live_sums *sums);

#endif
