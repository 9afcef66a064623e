/* What changed between two sides' stacks: the rows of `tally diff`. */
#ifndef TALLY_PROFILE_DIFF_MODEL_H
#define TALLY_PROFILE_DIFF_MODEL_H

#include "profile/share_difference.h"
#include "profile/stack_match.h"

struct tally_diff_options {
	bool by_comm, by_object, by_symbol;
	/* totals: each sample once for each row that is in its stack; else the leaf's alone */
	bool children;
	enum tally_share_measure measure;
	double percent_min; /* rows whose shares are both below are left out and counted */
	size_t limit;       /* rows at most; 0: all that changed, and noise_limit of the others */
	size_t noise_limit;
};

enum tally_diff_presence { TALLY_DIFF_BOTH, TALLY_DIFF_ONLY_OLD, TALLY_DIFF_ONLY_NEW };

struct tally_diff_entry {
	/* strings of the match's names; TALLY_STRING_NONE where they are no key or not known */
	uint32_t comm, object, symbol;
	/* the symbol's whole name, likewise; TALLY_STRING_NONE: not known, of text */
	uint32_t full;
	/* what they were called on the old side, else TALLY_STRING_NONE */
	uint32_t was_object, was_symbol;
	enum tally_diff_presence presence;
	uint64_t old_weight, new_weight, old_samples, new_samples; /* of all runs */
	double old_percent, new_percent;
	struct tally_share_difference change;
	struct tally_share_difference weight; /* the same in weight, where `has_weight` */
	bool is_change; /* chance does as much in no row in 95 of 100 comparisons */
};

struct tally_diff_side {
	size_t runs;
	uint64_t weight, samples; /* of all runs */
	const char *event, *unit, *title; /* of the first */
};

struct tally_diff {
	/* changes first, then by size */
	struct { struct tally_diff_entry *items; size_t count, capacity; } entries;
	struct tally_diff_side old, new;
	bool has_weight;     /* both sides are of one event and unit, so that weights compare */
	size_t compared;     /* rows before any were left out */
	size_t changes;      /* of those */
	/* rows left out: by percent_min, noise by noise_limit, by limit */
	size_t below, noise, beyond;
	size_t below_changes;        /* changes among those below */
};

/* 0, -ENOMEM, or -EINVAL for a measure of weights that don't compare. */
int tally_diff_build(const struct tally_match *match, const struct tally_diff_options *options,
		     struct tally_diff *out);
void tally_diff_release(struct tally_diff *diff);

#endif
