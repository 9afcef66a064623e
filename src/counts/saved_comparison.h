/* Compares two saved results event by event, and judges conditions on them. */
#ifndef TALLY_COUNTS_SAVED_COMPARISON_H
#define TALLY_COUNTS_SAVED_COMPARISON_H

#include "counts/comparison.h"
#include "counts/condition.h"
#include "counts/saved_counts.h"

struct tally_compared_row {
	const char *name;
	/* one is NULL if only the other side has the row */
	const struct tally_saved_row *old, *new;
	bool has_change;                         /* both sides have a figure */
	struct tally_change change;
};

struct tally_judged_condition {
	struct tally_condition condition;
	const struct tally_compared_row *row; /* NULL: UNKNOWN, there is no such event */
	double scale; /* the row's figures times `scale` are in the limit's unit */
	enum tally_condition_result result;
};

struct tally_saved_comparison {
	const struct tally_saved_counts *old, *new;
	/* in the order of the new file, then those that only the old one has */
	TALLY_VECTOR(struct tally_compared_row) rows;
	TALLY_VECTOR(struct tally_judged_condition) conditions;
	TALLY_VECTOR(const char *) notes; /* how the two sides differ; in the arena */
	bool has_failed;                  /* a condition is TRUE */
};

/* Compares two results.  Returns 0 or -ENOMEM. */
int tally_saved_compare(const struct tally_saved_counts *old, const struct tally_saved_counts *new,
			struct tally_arena *arena, struct tally_saved_comparison *out);
/* Judges one more condition.  With `past_noise`, NOISE counts as TRUE.  Returns 0 or -ENOMEM; or
 * -ENOENT with a message, and the result UNKNOWN, if a side has no figure for it or its command was
 * killed: a condition must not pass because nothing was counted. */
int tally_saved_compare_judge(struct tally_saved_comparison *comparison,
			      const struct tally_condition *condition, bool past_noise,
			      struct tally_error *err);
void tally_saved_comparison_release(struct tally_saved_comparison *comparison);

#endif
