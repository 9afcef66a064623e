/* Conditions on changes, for scripts: `instructions > +1%`.
 *
 *     NAME OP LIMIT     OP: > >= < <=
 *     LIMIT             +1%, -1%, 1%: the change relative to the old figure; +1000, -1000: the
 *                       change itself; 1000: the new figure. K, M, G, T: thousands, millions, …;
 *                       clocks in milliseconds, elapsed, user, system in seconds, as they are shown
 * Pure. */
#ifndef TALLY_COUNTS_CONDITION_H
#define TALLY_COUNTS_CONDITION_H

#include "base/error.h"
#include "counts/comparison.h"

#include <stdbool.h>

enum tally_limit_kind { TALLY_LIMIT_RELATIVE, TALLY_LIMIT_DIFFERENCE, TALLY_LIMIT_VALUE };

struct tally_condition {
	const char *text;   /* as given; the caller's */
	/* of the event, or "elapsed", "user", "system"; for diff, of the function */
	char name[512];
	bool is_above, or_equal;
	enum tally_limit_kind kind;
	double limit;       /* RELATIVE: 0.01 for 1 % */
};

/* Parses a condition.  Returns 0, or -EINVAL with a position in `text`. */
int tally_condition_parse(const char *text, struct tally_condition *out, struct tally_error *err);

enum tally_condition_result {
	TALLY_CONDITION_FALSE,
	TALLY_CONDITION_TRUE,
	TALLY_CONDITION_NOISE, /* the figures fulfil it, but chance may do as much */
	TALLY_CONDITION_UNKNOWN /* a figure is missing */
};

/* Judges a condition.  The figures times `scale` are in the limit's unit. */
enum tally_condition_result tally_condition_judge(const struct tally_condition *condition,
						  const struct tally_figure *new,
						  const struct tally_change *change, double scale);

#endif
