/* The rows of `tally diff`: the changes between two sides' stacks. */
#ifndef TALLY_DIFF_MODEL_H
#define TALLY_DIFF_MODEL_H

#include "diff/share_difference.h"
#include "diff/stack_match.h"

struct tally_diff_options {
	bool by_comm, by_object, by_symbol;
	/* totals: a sample counts once for each row in its stack; false: only for its leaf's row */
	bool children;
	enum tally_share_measure measure;
	double percent_min; /* rows with both shares below this are left out and counted */
	/* maximum number of rows; 0: all changes, and noise_limit of the others */
	size_t limit;
	size_t noise_limit;
};

enum tally_diff_presence { TALLY_DIFF_BOTH, TALLY_DIFF_ONLY_OLD, TALLY_DIFF_ONLY_NEW };

struct tally_diff_entry {
	/* string ids of the match's names; TALLY_STRING_NONE: not a key, or not known */
	uint32_t comm, object, symbol;
	/* string id of the symbol's whole name; TALLY_STRING_NONE: not known, or read from text */
	uint32_t full;
	/* string ids of the names on the old side if these differ, else TALLY_STRING_NONE */
	uint32_t was_object, was_symbol;
	enum tally_diff_presence presence;
	uint64_t old_samples, new_samples; /* sums over all runs */
	double old_percent, new_percent;
	struct tally_share_difference change;
	struct tally_share_difference weight; /* the change of the weight; only with `has_weight` */
	/* The change is significant: without any real change, 95 of 100 comparisons mark no row. */
	bool is_change;
};

struct tally_diff_side {
	size_t runs;
	uint64_t weight, samples; /* sums over all runs */
	bool is_saturated;        /* the weights add up to more (base/weight_sum.h) */
	const char *event, *unit, *title; /* of the first run */
};

struct tally_diff {
	/* changes first, then by size of the difference */
	struct { struct tally_diff_entry *items; size_t count, capacity; } entries;
	struct tally_diff_side old, new;
	/* both sides have the same event and unit, so weights can be compared */
	bool has_weight;
	size_t compared;     /* number of rows before any were left out */
	size_t changes;      /* number of these that are changes */
	/* rows left out: by percent_min, by noise_limit, by limit */
	size_t below, noise, beyond;
	size_t below_changes;        /* changes among the rows in `below` */
};

/* Compares the two sides.  Returns 0, -ENOMEM, or -EINVAL when the measure is the weight and
 * weights can't be compared. */
int tally_diff_build(const struct tally_match *match, const struct tally_diff_options *options,
		     struct tally_diff *out);
void tally_diff_release(struct tally_diff *diff);

#endif
