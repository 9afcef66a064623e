/* How far a share of samples can be trusted: its sampling error.
 *
 * A profile of n samples is a draw: run it again, and a function that had 10.0 % has 9.6 %.  A
 * percentage without its error invites reading that difference as an answer.  What is needed is the
 * interval in which the share that endless sampling would show lies in 95 of 100 recordings.
 *
 * The textbook's √(p(1 − p)/n) fails exactly where profiles live: at small shares of few samples.
 * A function that was sampled never would have no error at all: at 1 % and 100 samples its
 * intervals hold the truth in 63 of 100 cases, not in 95.  Wilson's interval asks the other way
 * round, which true shares could well have shown what was seen, and stays honest there.  It is not
 * symmetric: the error given as "±" is its longer side, so that "p ± e" holds no less.
 *
 * Samples need not weigh the same: a share is of summed periods, and with -F periods differ.  A few
 * heavy samples carry less than their number says.  The share is then a ratio of sums, with the
 * variance
 *
 *     [ S_in (1 − p)² + S_out p² ] / W²        S: sums of squared periods inside and outside of the part, W: of all periods
 *
 * and the effective number of samples is that of a draw of equal ones with the same variance, p(1 −
 * p)/variance.  Squares are not kept for each entry, that would be memory in millions of rows; of
 * the part its samples and period are known, so its mean weight, and of all samples how far weights
 * spread.  What spread the two means leave unexplained is shared out evenly.  Where all weigh the
 * same that is n.
 *
 * What it does not say: samples that keep step with what they sample are wrong by more than their
 * number tells; samples at even distances in a steady program are often right by more.  Differences
 * of two shares of one recording are not independent; of two recordings they are.
 *
 * Pure, thread-safe.
 */
#ifndef TALLY_PROFILE_SHARE_ERROR_H
#define TALLY_PROFILE_SHARE_ERROR_H

#include <stdint.h>

struct tally_share {
	double part, whole;             /* periods, summed: 0 ≤ part ≤ whole */
	uint64_t part_samples, samples; /* that they are of */
	/* Of all weights: samples × Σ weight² / (Σ weight)²; 1 where all weigh the same.  Less, as
	 * 0, is taken for 1. */
	double spread;
};

struct tally_share_interval {
	double low, high; /* percent, where nothing else is said */
};

/* The samples of equal weight that would tell as much. */
double tally_share_effective_samples(const struct tally_share *share);

/* Where the true share lies, with 95 % confidence, in percent: 0 to 100 when there are no
 * samples. */
struct tally_share_interval tally_share_interval(const struct tally_share *share);

/* Wilson's interval of a share p of n equal samples, z standard deviations wide, as a part of 1: 0
 * to 1 without samples. */
struct tally_share_interval tally_wilson_interval(double p, double n, double z);

/* The longer side of the interval, in percentage points: the true share is within percent ±
 * this. */
double tally_share_error(const struct tally_share *share);

#endif
