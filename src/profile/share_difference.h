/* How two shares of samples differ, before and after a change, and whether that can be chance.
 *
 * Two recordings of one program differ, since both are draws (share_error.h).  What the change of a
 * function's share is worth is an interval that holds the true change in 95 of 100 comparisons.
 *
 * One recording a side: Newcombe's interval (R. G. Newcombe, Interval estimation for the difference
 * between independent proportions, Statistics in Medicine 17, 1998, method 10).  It puts Wilson's
 * intervals of both together: with the new share n in [ln, un] and the old o in [lo, uo],
 *
 *     low = d − √((n − ln)² + (uo − o)²)      high = d + √((un − n)² + (o − lo)²)      d = n − o
 *
 * and stays honest where a function was not sampled at all on one side, where the textbook's √(p(1
 * − p)/n) says that there is no error.  The same holds for shares times what they are of, times and
 * samples: the intervals are scaled.  p is that of the widest such interval that leaves 0 out, so
 * that an interval without 0 and p < 0.05 are one.
 *
 * Several recordings a side: runs of a program differ by more than sampling (where its memory lay,
 * what else ran), and only several runs tell by how much.  Then the mean of the runs is compared by
 * Welch's test, and the spread between them is taken for no smaller than sampling alone would make
 * it.  A side of one run is taken to spread as the other does.
 *
 * Many functions are compared at once, and one in twenty that did not change is to have p < 0.05.
 * So what is called a change has to be one beside all others: tally_share_p_limit() gives the p
 * that chance stays above for all of them together in 95 of 100 comparisons.  That is Bonferroni's
 * 0.05/K, where K counts only those of which enough samples were taken for so small a p (R. E.
 * Tarone, A modified Bonferroni method for discrete data, Biometrics 46, 1990): the many functions
 * with a sample or two cost nothing.
 *
 * Pure, thread-safe.
 */
#ifndef TALLY_PROFILE_SHARE_DIFFERENCE_H
#define TALLY_PROFILE_SHARE_DIFFERENCE_H

#include "profile/share_error.h"

#include <stddef.h>

enum tally_share_measure {
	TALLY_MEASURE_SHARE,   /* percent, and points */
	TALLY_MEASURE_WEIGHT,  /* of periods: time, events */
	TALLY_MEASURE_SAMPLES
};

struct tally_share_difference {
	double old, new;   /* in the measure; of several runs their means */
	double difference; /* new − old */
	double low, high;  /* 95 % confidence interval of the difference */
	double p;          /* how often chance alone would do as much */
};

/* `old_runs` and `new_runs` are at least 1. */
void tally_share_difference(const struct tally_share *old, size_t old_runs,
			    const struct tally_share *new, size_t new_runs,
			    enum tally_share_measure measure, struct tally_share_difference *out);

/* The least p that samples in one part could have had, had all of them been on one side: of the
 * runs of both sides. */
double tally_share_p_least(const struct tally_share *old, size_t old_runs,
			   const struct tally_share *new, size_t new_runs);

/* Sorts the least p of all that were compared; a p below what is returned is a change. */
double tally_share_p_limit(double *p_least, size_t count);

#endif
