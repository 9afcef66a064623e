/* Whether a script is to stop for what changed between two sides' stacks: `FUNCTION > +2`, the
 * conditions of counts/condition.h.
 *
 * The name is a function's (with other keys than functions: an object's, a command's), or * for
 * any; the figure is what is compared: percent, with differences in points, or times, or samples.
 */
#ifndef TALLY_PROFILE_DIFF_GATE_H
#define TALLY_PROFILE_DIFF_GATE_H

#include "base/error.h"
#include "counts/condition.h"
#include "profile/diff_model.h"

struct tally_diff_verdict {
	struct tally_condition condition;
	enum tally_condition_result result;
	/* of the row that decided, the match's; NULL: no row has the name, or no row passes the
	 * limit */
	const char *name;
	double old, new;  /* its figures */
};

/* Judges each verdict's condition over all rows, whatever of them is shown.  `past_noise`: what
 * chance may have done fails, too. 0, -ENOMEM, what tally_diff_build() gives, or -ENOENT with
 * words: no row has a name that is asked for, UNKNOWN. */
int tally_diff_judge(const struct tally_match *match, const struct tally_diff_options *options,
		     bool past_noise, struct tally_diff_verdict *verdicts, size_t count,
		     struct tally_error *err);

#endif
