/* Live samples, summed by thread and function or by stack, and slowly forgotten: the data behind
 * `tally top`.
 *
 * A sample weighs its period when it comes, and less with each decay.  Threads and functions whose
 * samples have faded are dropped, so memory depends on what runs now, not on all that ever ran.
 * Not thread-safe.
 */
#ifndef TALLY_REPORT_LIVE_SUMS_H
#define TALLY_REPORT_LIVE_SUMS_H

#include "profile/language_frames.h"
#include "report/report_model.h"

struct tally_live_sum {
	uint32_t event, pid, tid;
	uint32_t comm;     /* string id in the tasks' strings: the thread's last name */
	/* the leaf, as indices into the names' functions: by the source, and by its symbol */
	uint32_t function, symbol;
	/* range in `frames`: the functions of the stack, inlined ones included, leaf first; count
	 * 0: without stacks */
	uint32_t first, count;
	double weight, samples;
};

/* The functions of a place that was named: functions.items[first] … [first + count), innermost
 * first. */
struct tally_live_place {
	uint32_t first, count;
};

struct tally_live_sums {
	struct tally_names *names;
	/* with stacks: leave out the frames of runtimes that functions of a language called */
	bool joins_runtimes;
	bool with_stacks; /* keep sums by call chain; set before the first sample */
	/* number of innermost frames to keep of a chain, not counting inlined ones; 0: all */
	uint32_t frames_max;
	struct { struct tally_live_sum *items; size_t count, capacity; } sums;
	struct { uint32_t *items; size_t count, capacity; } frames;
	/* hash of event, tid and functions → index into `sums`; equal hashes take the next free
	 * key */
	struct tally_map index;
	struct tally_runtimes runtimes;
	struct { bool *items; size_t count, capacity; } left_out; /* used by _add */
	/* the places that were named, and their functions; emptied from time to time */
	struct tally_place_table places;
	struct { struct tally_live_place *items; size_t count, capacity; } named;
	struct { uint32_t *items; size_t count, capacity; } functions;
};

/* Adds a sample of event number `event` (the caller numbers events).  `has_skid`: the event's
 * samples point to the instruction behind the one that caused them.  The tasks of `names` must be as
 * they were when the sample was taken.  Returns 0 or -ENOMEM. */
int tally_live_sums_add(struct tally_live_sums *sums, uint32_t event, bool has_skid,
			const struct tally_record *sample);

/* Multiplies all weights by `factor`; 0 starts afresh.  Returns 0 or -ENOMEM. */
int tally_live_sums_decay(struct tally_live_sums *sums, double factor);

/* Makes the entries of options->event like tally_report_build(), with these
 * differences.  `percent_min` applies to the weight that entries are sorted by, since a screen has
 * no room for all callers.  `children` and `tree` need stacks, and a tree always has all that
 * passes through its entry.  Returns 0 or -ENOMEM. */
int tally_live_sums_report(const struct tally_live_sums *sums,
			   const struct tally_report_options *options, struct tally_report *report);

void tally_live_sums_release(struct tally_live_sums *sums);

#endif
