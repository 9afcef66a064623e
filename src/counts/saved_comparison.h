/* Two saved results, event by event, and the conditions that were asked. */
#ifndef TALLY_COUNTS_SAVED_COMPARISON_H
#define TALLY_COUNTS_SAVED_COMPARISON_H

#include "counts/comparison.h"
#include "counts/condition.h"
#include "counts/saved_counts.h"

struct tally_compared_row {
	const char *name;
	/* one of them may be NULL: only the other has it */
	const struct tally_saved_row *old, *new;
	bool has_change;                         /* both have a figure */
	struct tally_change change;
};

struct tally_judged_condition {
	struct tally_condition condition;
	const struct tally_compared_row *row; /* NULL: UNKNOWN, no such event */
	double scale; /* the row's figures × scale are in the limit's unit */
	enum tally_condition_result result;
};

struct tally_saved_comparison {
	const struct tally_saved_counts *old, *new;
	/* the new file's order, then what only the old one has */
	TALLY_VECTOR(struct tally_compared_row) rows;
	TALLY_VECTOR(struct tally_judged_condition) conditions;
	TALLY_VECTOR(const char *) notes; /* in what the two are not alike; the arena's */
	bool has_failed;                  /* a condition is TRUE */
};

/* 0 or -ENOMEM. */
int tally_saved_compare(const struct tally_saved_counts *old, const struct tally_saved_counts *new,
			struct tally_arena *arena, struct tally_saved_comparison *out);
/* Judges one more.  `past_noise`: NOISE counts as TRUE.  0; -ENOENT with words, and UNKNOWN in its
 * place, when either side has no figure for it or was killed: nothing may pass since it was not
 * counted; -ENOMEM. */
int tally_saved_compare_judge(struct tally_saved_comparison *comparison,
			      const struct tally_condition *condition, bool past_noise,
			      struct tally_error *err);
void tally_saved_comparison_release(struct tally_saved_comparison *comparison);

#endif
