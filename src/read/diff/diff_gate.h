/* Conditions on the change between two sides' stacks, so that scripts can fail: `FUNCTION > +2`, in
 * the syntax of counts/condition.h.
 *
 * The name is that of a function (or of an object or command where rows are by these), or * for
 * any.  The figure is the compared measure: percent, with differences in points, or times, or
 * samples.
 */
#ifndef TALLY_DIFF_GATE_H
#define TALLY_DIFF_GATE_H

#include "base/error.h"
#include "counts/condition.h"
#include "diff/diff_model.h"

struct tally_diff_verdict {
	struct tally_condition condition;
	enum tally_condition_result result;
	/* the name of the row that decided, owned by the match; NULL: no row has the typed name, or
	 * no row passes the limit */
	const char *name;
	double old, new;  /* figures of the row that decided */
};

/* Judges each verdict's condition over all rows, including those that the options hide.  With
 * `past_noise`, a change that chance may have made fails as well.  Returns 0, an error of
 * tally_diff_build(), or -ENOENT with a message when no row has a condition's name; the verdict is
 * TALLY_CONDITION_UNKNOWN then. */
int tally_diff_judge(const struct tally_match *match, const struct tally_diff_options *options,
		     bool past_noise, struct tally_diff_verdict *verdicts, size_t count,
		     struct tally_error *err);

#endif
