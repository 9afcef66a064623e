/* How far a share of samples can be trusted: its sampling error.
 *
 * A profile of n samples is a random draw: in the next run, a function with 10.0 % has 9.6 %.
 * Without its error, a percentage invites the reader to take that difference for an answer.  So
 * each share needs the interval that holds, in 95 of 100 recordings, the share that endless
 * sampling would show.
 *
 * The textbook's √(p(1 − p)/n) fails for small shares of few samples, which profiles are full of.
 * It gives a function without samples no error at all; at 1 % and 100 samples, its intervals hold
 * the true share in 63 of 100 cases instead of 95.  Wilson's interval asks the other way round:
 * which true shares could well have led to these samples?  It stays honest for small shares.  It is
 * not symmetric: the error given as "±" is its longer side, so "p ± e" holds no less often.
 *
 * Samples need not have the same weight: a share is one of summed periods, and with -F periods
 * differ.  A few heavy samples say less than their number suggests.  Then the share is a ratio of
 * sums, with the variance
 *
 *     [ S_in (1 − p)² + S_out p² ] / W²
 *
 * S_in and S_out are the sums of squared periods inside and outside of the part, W the sum of all
 * periods.  The effective number of samples is that of a draw of equal samples with the same
 * variance: p(1 − p)/variance.
 *
 * Squares are not kept for each entry, which would cost memory in millions of rows.  But the
 * samples and the period of the part are known, and so its mean weight; for all samples together,
 * the spread of weights is known.  The spread that the two means don't explain is divided evenly.
 * If all samples weigh the same, the result is n.
 *
 * The error does not cover everything.  If sampling keeps step with the program, shares are wrong
 * by more than the number of samples suggests; if samples are at even distances in a steady
 * program, shares are often right by more.  Differences of two shares of one recording are not
 * independent; differences between two recordings are.
 *
 * Pure, thread-safe.
 */
#ifndef TALLY_PROFILE_SHARE_ERROR_H
#define TALLY_PROFILE_SHARE_ERROR_H

#include <stdint.h>

struct tally_share {
	double part, whole;             /* sums of periods: 0 ≤ part ≤ whole */
	uint64_t part_samples, samples; /* numbers of samples in these */
	/* spread of all weights: samples × Σ weight² / (Σ weight)²; 1 if all weigh the same.
	 * Anything below 1, such as 0, counts as 1. */
	double spread;
};

struct tally_share_interval {
	double low, high; /* percent, unless stated otherwise */
};

/* Returns the number of samples of equal weight that would say as much. */
double tally_share_effective_samples(const struct tally_share *share);

/* Returns the 95 % confidence interval of the true share, in percent; 0 to 100 without samples. */
struct tally_share_interval tally_share_interval(const struct tally_share *share);

/* Returns Wilson's interval of a share p of n equal samples, z standard deviations wide, as a part
 * of 1; 0 to 1 without samples. */
struct tally_share_interval tally_wilson_interval(double p, double n, double z);

/* Returns the longer side of the interval in percentage points: the true share is within percent ±
 * this. */
double tally_share_error(const struct tally_share *share);

#endif
