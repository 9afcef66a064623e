/* A profile, summed by keys: the rows of `tally report`, and the call tree below each.
 *
 * `self` counts samples in a function itself, `total` samples in it or in anything that it called.
 * Each sample counts once for each distinct key in its stack, even in a deep recursion.  Entries
 * are functions of the source: one that was inlined into others is an entry as well, and its
 * samples are not in the `self` of the functions around it.  The copies of a function, inlined or
 * not, are one entry.
 */
#ifndef TALLY_REPORT_MODEL_H
#define TALLY_REPORT_MODEL_H

#include "profile/profile.h"
#include "profile/share_error.h"
#include "profile/sort_keys.h"

enum tally_tree_order {
	TALLY_TREE_NONE,
	TALLY_TREE_CALLER, /* from the caller down: the callees of the entry */
	TALLY_TREE_CALLEE  /* from the callee up: the callers of the entry */
};

struct tally_report_options {
	bool by[TALLY_SORT_KEYS];
	bool children; /* show totals, and rows for functions that were never the leaf */
	bool by_self;  /* sort by self; false: by total */
	enum tally_tree_order tree;
	/* rows with a lower total (without children: self) are left out and counted */
	double percent_min;
	double tree_percent_min; /* lighter branches are left out, except within rounding */
	/* for live sums: leave out idle samples; a profile has its own option */
	bool leaves_out_idle;
	size_t limit;            /* maximum number of rows; 0: all */
	uint32_t event;
};

/* A frame in an entry's call tree.  Siblings are sorted by weight, then by name. */
struct tally_branch_node {
	uint32_t function; /* index into the names' functions */
	uint64_t weight;   /* period of everything below, including itself */
	struct tally_branch_node *child, *sibling;
};

/* Which of an entry's sampled copies were inlined (TALLY_FRAME_INLINED). */
enum tally_inlining { TALLY_INLINED_NONE, TALLY_INLINED_SOME, TALLY_INLINED_ALL };

struct tally_report_entry {
	/* in the terms of sort_keys.h; 0 for keys that the report is not sorted by */
	uint32_t key[TALLY_SORT_KEYS];
	/* index into the names' functions: one of the entry's; its symbol unless all were inlined */
	uint32_t function;
	enum tally_inlining inlining;
	uint64_t self, total;          /* periods */
	uint64_t self_samples, total_samples;
	uint64_t self_longest, total_longest; /* in a report of waits: the longest wait, ns */
	struct tally_branch_node *tree; /* first branch, or NULL */
};

struct tally_report {
	struct tally_arena arena;
	/* sorted, heaviest first */
	struct { struct tally_report_entry *items; size_t count, capacity; } entries;
	size_t hidden; /* entries left out by percent_min and limit */
	uint64_t period, samples;
	bool is_saturated; /* sums ended at the limit (base/weight_sum.h): they are not exact */
	struct tally_left_out idle; /* left out as idle; not part of the sums above */
	bool of_waits; /* periods are times that tasks waited; entries have the longest wait */
	double spread; /* of the samples' periods: see struct tally_share */
	bool trees_cut; /* the trees were too large: branches are missing */
	size_t comms, threads; /* number of distinct ones in this event */
};

/* Returns the sampling error of a part of the report with this period and number of samples, in
 * percentage points. */
static inline double tally_report_error(const struct tally_report *report, uint64_t period,
					uint64_t samples)
{
	const struct tally_share share = { .part = (double)period,
					   .whole = (double)report->period,
					   .part_samples = samples,
					   .samples = report->samples,
					   .spread = report->spread };
	return tally_share_error(&share);
}

/* Makes the report.  Returns 0 or -ENOMEM. */
int tally_report_build(const struct tally_profile *profile,
		       const struct tally_report_options *options, struct tally_report *report);
void tally_report_release(struct tally_report *report);

#endif
