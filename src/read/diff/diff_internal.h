/* How two shares of samples differ before and after a change, and whether that can be chance.
 *
 * Two recordings of one program differ, because both are random draws (profile.h).  So the
 * change of a function's share is given with an interval that holds the true change in 95 of 100
 * comparisons.
 *
 * One recording on each side: Newcombe's interval (R. G. Newcombe, Interval estimation for the
 * difference between independent proportions, Statistics in Medicine 17, 1998, method 10).  It
 * combines Wilson's intervals of both sides.  With the new share n in [ln, un] and the old share o
 * in [lo, uo]:
 *
 *     low = d − √((n − ln)² + (uo − o)²)      high = d + √((un − n)² + (o − lo)²)      d = n − o
 *
 * It stays honest if one side has no samples of a function, where the textbook's √(p(1 − p)/n)
 * claims that there is no error.  It also works for times and numbers of samples, which are shares
 * times a total: the interval is scaled. p belongs to the widest such interval that excludes 0.  So
 * the 95 % interval excludes 0 exactly when p < 0.05.
 *
 * Several recordings on a side: runs of a program differ by more than sampling (where its memory
 * was, what else ran), and only several runs show by how much.  Then the means of the runs are
 * compared by Welch's test.  The spread between the runs counts as at least what sampling alone
 * would make.  A side with one run is taken to spread like the other one.
 *
 * Many functions are compared at once, and one in twenty without a change has p < 0.05.  A
 * difference is only called a change if it stands out among all of them: tally_share_p_limit()
 * gives a limit such that in 95 of 100 comparisons chance makes no p below it at all.  This is
 * Bonferroni's 0.05/K, where K counts only functions with enough samples for so small a p (R. E.
 * Tarone, A modified Bonferroni method for discrete data, Biometrics 46, 1990).  So the many
 * functions with one or two samples cost nothing.
 *
 * Pure, thread-safe.
 */
#ifndef TALLY_DIFF_INTERNAL_H
#define TALLY_DIFF_INTERNAL_H

#include "profile/profile.h"

#include <stddef.h>

enum tally_share_measure {
	TALLY_MEASURE_SHARE,   /* percent; differences in points */
	TALLY_MEASURE_WEIGHT,  /* sums of periods: time, events */
	TALLY_MEASURE_SAMPLES
};

struct tally_share_difference {
	double old, new;   /* in the measure; means of several runs */
	double difference; /* new − old */
	double low, high;  /* 95 % confidence interval of the difference */
	double p;          /* probability that chance alone makes such a difference */
};

/* Compares the two sides.  `old_runs` and `new_runs` are at least 1. */
void tally_share_difference(const struct tally_share *old, size_t old_runs,
			    const struct tally_share *new, size_t new_runs,
			    enum tally_share_measure measure, struct tally_share_difference *out);

/* Returns the smallest p that the samples of one part could reach, if all of them, from the runs of
 * both sides, were on one side. */
double tally_share_p_least(const struct tally_share *old, size_t old_runs,
			   const struct tally_share *new, size_t new_runs);

/* Sorts the smallest p of all compared parts.  Returns the limit: a p below it is a change. */
double tally_share_p_limit(double *p_least, size_t count);

#endif
