/* Compares two figures of the same quantity, before and after a change: how much they differ, and
 * whether chance explains it.
 *
 * A figure of several runs has a mean and its standard error.  Two such figures are compared by
 * Welch's test (B. L. Welch, The generalization of "Student's" problem when several different
 * population variances are involved, Biometrika 34, 1947), with the degrees of freedom of
 * Satterthwaite.  Figures that repeat to the last digit (the simulated PMU's counts) have no chance
 * in them: any difference is a change.  The spread of a single run is unknown: no interval, no
 * verdict.  Pure. */
#ifndef TALLY_COUNTS_COMPARISON_H
#define TALLY_COUNTS_COMPARISON_H

#include <stdbool.h>

struct tally_figure {
	double mean;
	/* standard deviation of the runs; if runs == 0, the standard error of the mean */
	double sigma;
	/* 0: unknown number, but `sigma` is valid; 1: the spread is unknown */
	unsigned long runs;
	bool has_no_spread; /* the mean of several runs whose spread is unknown */
	bool repeats;       /* not subject to chance */
};

enum tally_significance {
	TALLY_CHANGE_NONE,    /* exactly equal, and not subject to chance */
	/* chance alone does this in less than 5 % of cases, or has no part in it */
	TALLY_CHANGE_REAL,
	TALLY_CHANGE_NOISE,   /* chance may do this */
	/* a single run of a figure that varies, or means of unknown spread */
	TALLY_CHANGE_UNKNOWN
};

struct tally_change {
	double difference;      /* new − old */
	double relative;        /* difference / |old|; ±∞ if only `old` is 0, 0 if both are 0 */
	bool has_interval;
	/* 95 % confidence interval of `relative`, or NaN. It contains 0 if and only if the change
	 * is noise */
	double low, high;
	/* probability that chance alone does as much; NaN if unknown */
	double p;
	enum tally_significance significance;
};

void tally_change_of(const struct tally_figure *old, const struct tally_figure *new,
		     struct tally_change *out);

/* Joins the runs of `more` to those of `figure`, as if they were one series. */
void tally_figure_join(struct tally_figure *figure, const struct tally_figure *more);

/* Returns P(|T| > t) of Student's distribution with `freedom` > 0 degrees of freedom, which need
 * not be whole.  Infinite `freedom` gives the normal distribution. */
double tally_student_p(double t, double freedom);
/* Returns t with P(|T| > t) = p, for 0 < p < 1. */
double tally_student_t(double p, double freedom);

#endif
