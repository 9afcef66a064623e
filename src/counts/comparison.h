/* Two figures of the same thing, before and after a change: what differs, and whether that can be
 * chance.
 *
 * A figure of several runs has a mean and its standard error; two such are compared by Welch's test
 * (B. L. Welch, The generalization of "Student's" problem when several different population
 * variances are involved, Biometrika 34, 1947), with the degrees of freedom of Satterthwaite.  What
 * repeats to the last digit (the simulated PMU's counts) has no chance in it: any difference is
 * one.  Of a single run nothing is known: no interval, no verdict.  Pure. */
#ifndef TALLY_COUNTS_COMPARISON_H
#define TALLY_COUNTS_COMPARISON_H

#include <stdbool.h>

struct tally_figure {
	double mean;
	double sigma;       /* of the runs; with runs == 0 the standard error of the mean itself */
	/* 0: unknown, but `sigma` is there; 1: nothing is known of the spread */
	unsigned long runs;
	bool has_no_spread; /* the mean of several runs, of whose spread nothing is known */
	bool repeats;       /* no chance in it */
};

enum tally_significance {
	TALLY_CHANGE_NONE,    /* exactly equal, and no chance in it */
	/* chance alone would do this in less than 5 % of cases, or there is no chance in it */
	TALLY_CHANGE_REAL,
	TALLY_CHANGE_NOISE,   /* it would */
	/* a single run of something that varies, or means of unknown spread */
	TALLY_CHANGE_UNKNOWN
};

struct tally_change {
	double difference;      /* new − old */
	double relative;        /* difference / |old|; ±∞ from nothing, 0 when both are 0 */
	bool has_interval;
	/* 95 % confidence interval of `relative`, else NaN: it has 0 where the change is noise, and
	 * only there */
	double low, high;
	/* how often chance alone would do as much; NaN where that isn't known */
	double p;
	enum tally_significance significance;
};

void tally_change_of(const struct tally_figure *old, const struct tally_figure *new,
		     struct tally_change *out);

/* Joins the runs of `more` to those of `figure`, as if they had been one series. */
void tally_figure_join(struct tally_figure *figure, const struct tally_figure *more);

/* P(|T| > t) of Student's distribution with `freedom` > 0 degrees of freedom (not necessarily whole; infinite: the normal
 * distribution's). */
double tally_student_p(double t, double freedom);
/* t with P(|T| > t) = p, 0 < p < 1. */
double tally_student_t(double p, double freedom);

#endif
