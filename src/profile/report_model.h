/* A profile, summed by keys: the rows of `tally report` and the call tree below each.
 *
 * `self` is what was sampled in a function itself, `total` what was sampled in it or in anything
 * that it called: each sample counts once for each distinct key in its stack, however deep a
 * recursion.  Entries are of functions that have a symbol; what was inlined into them
 * (TALLY_FRAME_INLINED) is in call trees.  Source files and lines are those of the innermost frame.
 */
#ifndef TALLY_PROFILE_REPORT_MODEL_H
#define TALLY_PROFILE_REPORT_MODEL_H

#include "profile/profile.h"
#include "profile/share_error.h"
#include "profile/sort_keys.h"

enum tally_tree_order {
	TALLY_TREE_NONE,
	TALLY_TREE_CALLER, /* from the caller down: what an entry called */
	TALLY_TREE_CALLEE  /* from the callee up: who called an entry */
};

struct tally_report_options {
	bool by[TALLY_SORT_KEYS];
	bool children; /* totals, and rows for functions that were never at the leaf */
	bool by_self;  /* heaviest self first; else total */
	enum tally_tree_order tree;
	/* rows whose total (without children: self) is below are left out and counted */
	double percent_min;
	double tree_percent_min; /* branches below are left out, though not those within rounding */
	bool leaves_out_idle;    /* of live sums; a profile has or has not left it out */
	size_t limit;            /* rows at most; 0: all */
	uint32_t event;
};

/* A frame of an entry's call tree; siblings are sorted by weight, equal ones by name. */
struct tally_branch_node {
	uint32_t function; /* of names */
	uint64_t weight;   /* period of all below, itself included */
	struct tally_branch_node *child, *sibling;
};

struct tally_report_entry {
	uint32_t key[TALLY_SORT_KEYS]; /* sort_keys.h says what of; 0 what is not sorted by */
	uint32_t function;             /* one of its functions: of names */
	uint64_t self, total;          /* periods */
	uint64_t self_samples, total_samples;
	uint64_t self_longest, total_longest; /* of a report of waits: the longest of them, ns */
	struct tally_branch_node *tree; /* first branch, or NULL */
};

struct tally_report {
	struct tally_arena arena;
	/* sorted, heaviest first */
	struct { struct tally_report_entry *items; size_t count, capacity; } entries;
	size_t hidden; /* entries left out by percent_min and limit */
	uint64_t period, samples;
	struct tally_left_out idle; /* besides */
	bool of_waits; /* periods are how long tasks waited, entries tell the longest */
	double spread; /* of the samples' periods: struct tally_share */
	bool trees_cut; /* they grew beyond a bound: branches are missing */
	size_t comms, threads; /* distinct ones in this event */
};

/* The sampling error of a part of the report's period, of so many samples: percentage points. */
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

/* 0, or -ENOMEM. */
int tally_report_build(const struct tally_profile *profile,
		       const struct tally_report_options *options, struct tally_report *report);
void tally_report_release(struct tally_report *report);

#endif
