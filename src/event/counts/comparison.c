/* The statistics of a comparison.  Student's distribution and its inverse come first, then Welch's
 * test and the interval of a change, the control of false discoveries among many changes, and last
 * the joining of two series of runs. */
#include "counts/counts.h"

#include "base/extremes.h"

#include <math.h>
#include <stdlib.h>

static const double chance = 0.05; /* a smaller p is not chance */

/* Student's distribution for whole degrees of freedom ν, by the recurrence of its integral.
 * Between two of them p is interpolated in 1/ν: from 2 on within 2 % of p if p is around 0.05, and
 * a quarter too large if it is tiny (tests/unit/test_compare.c).  Closed forms, so that libm need
 * not be loaded.
 *
 * With x = t/√(ν + t²), P(|T| ≤ t) is the share that J(x) = ∫₀ˣ (1 − u²)^((ν−2)/2) du has of J(1),
 * and by parts (k + 1) Jₖ = x (1 − x²)^(k/2) + k Jₖ₋₂ for the exponent k/2; J₀ = x, J₋₁ = arcsin
 * x. */

enum { FREEDOM_MAX = 1000 }; /* from there on the normal distribution agrees to three digits */

static const double half_pi = 1.57079632679489661923;

/* Returns arctan z for z ≥ 0.  The angle is halved until the series converges fast. */
static double arctan(double z)
{
	int halvings = 0;
	for (; z > 0.1; halvings++)
		z = z / (1 + sqrt(1 + z * z));
	double sum = 0, power = z;
	for (int i = 1; i < 19; i += 2, power *= -z * z)
		sum += power / i;
	return sum * (double)(1 << halvings);
}

static double p_of(double t, int freedom)
{
	/* (1 − x²) = cosine² */
	double cosine2 = freedom / (freedom + t * t), x = sqrt(1 - cosine2);
	bool is_odd = freedom % 2;
	double part = x, whole = 1, power = cosine2; /* cosineᵏ */
	int k = 2;
	if (is_odd) {
		part = arctan(t / sqrt(freedom));
		whole = half_pi;
		power = sqrt(cosine2);
		k = 1;
	}
	for (; k <= freedom - 2; k += 2, power *= cosine2) {
		part = (x * power + k * part) / (k + 1);
		whole = k * whole / (k + 1);
	}
	if (part < whole)
		return 1 - part / whole;
	return 0;
}

double tally_student_p(double t, double freedom)
{
	t = fabs(t);
	if (!(t < 1e150))
		return 0;
	if (!(freedom >= 1)) /* or NaN: the input is untrusted */
		freedom = 1;
	if (freedom >= FREEDOM_MAX)
		return p_of(t, FREEDOM_MAX);
	int below = (int)freedom;
	if (freedom == below)
		return p_of(t, below);
	double share = (1.0 / below - 1 / freedom) / (1.0 / below - 1.0 / (below + 1));
	return (1 - share) * p_of(t, below) + share * p_of(t, below + 1);
}

double tally_student_t(double p, double freedom)
{
	double low = 0, high = 1;
	while (tally_student_p(high, freedom) > p)
		high *= 2;
	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;
		*(tally_student_p(middle, freedom) > p ? &low : &high) = middle;
	}
	return (low + high) / 2;
}

/* Computes the variance of the mean and its degrees of freedom.  Returns false if the spread is
 * unknown. */
static bool error_of(const struct tally_figure *figure, double *variance, double *freedom)
{
	*variance = 0;
	*freedom = INFINITY;
	if (figure->repeats)
		return true;
	if (figure->runs == 1 || figure->has_no_spread)
		return false;
	*variance = figure->sigma * figure->sigma / (figure->runs ? (double)figure->runs : 1);
	if (figure->runs)
		*freedom = (double)(figure->runs - 1);
	return true;
}

static double relative_to(double difference, double old)
{
	if (difference == 0)
		return 0;
	if (old == 0)
		return copysign(INFINITY, difference);
	return difference / fabs(old);
}

/* Fieller's interval of a ratio of means: it contains 0 if and only if Welch's test sees chance.
 * If the old mean itself may be 0, any ratio is possible, and there is no interval. */
static void set_interval(double old, double new, double v_old, double v_new, double t,
			 struct tally_change *out)
{
	double a = old * old - t * t * v_old, middle = fabs(old) * new / a;
	if (!(a > 0))
		return;
	double half = t * sqrt(v_new * a + v_old * new * new) / a, one = copysign(1, old);
	out->has_interval = true;
	out->low = middle - half - one;
	out->high = middle + half - one;
}

/* All runs of a side gave the same value, which says little if they are few: a count that is 1 or 2 by
 * chance does so, too.  Of all ways to deal the runs' values to the two sides, two separate them
 * completely (Fisher's permutation test). */
static void change_of_equal_runs(const struct tally_figure *old, const struct tally_figure *new,
				 struct tally_change *out)
{
	double ways = 1;
	out->significance = TALLY_CHANGE_NOISE;
	if (out->difference == 0)
		return;
	for (unsigned long i = 1; i <= old->runs && ways < 1e9; i++)
		ways *= (double)(new->runs + i) / (double)i;
	if (old->runs && new->runs) {
		out->p = 2 / ways;
		out->adjusted_p = out->p;
	}
	if (isnan(out->p) || out->p < chance)
		out->significance = TALLY_CHANGE_REAL;
}

void tally_change_of(const struct tally_figure *old, const struct tally_figure *new,
		     struct tally_change *out)
{
	double v_old, v_new, f_old, f_new;
	*out = (struct tally_change){ .difference = new->mean - old->mean,
				      .low = NAN,
				      .high = NAN,
				      .p = NAN,
				      .adjusted_p = NAN,
				      .significance = TALLY_CHANGE_UNKNOWN };
	out->relative = relative_to(out->difference, old->mean);
	if (old->repeats && new->repeats) {
		out->significance = TALLY_CHANGE_REAL;
		if (out->difference == 0)
			out->significance = TALLY_CHANGE_NONE;
		return;
	}
	bool has_old = error_of(old, &v_old, &f_old), has_new = error_of(new, &v_new, &f_new);
	if (!has_old || !has_new)
		return;
	double variance = v_old + v_new;
	if (variance == 0) {
		change_of_equal_runs(old, new, out);
		return;
	}
	double freedom = variance * variance / (v_old * v_old / f_old + v_new * v_new / f_new);
	out->p = tally_student_p(out->difference / sqrt(variance), freedom);
	out->adjusted_p = out->p;
	out->significance = out->p < chance ? TALLY_CHANGE_REAL : TALLY_CHANGE_NOISE;
	set_interval(old->mean, new->mean, v_old, v_new, tally_student_t(chance, freedom), out);
}

/* Sorts by p, and puts changes without p last. */
static int by_p(const void *a, const void *b)
{
	double one = (*(struct tally_change *const *)a)->p;
	double other = (*(struct tally_change *const *)b)->p;
	if (isnan(one) || isnan(other))
		return (isnan(one) != 0) - (isnan(other) != 0);
	return (one > other) - (one < other);
}

void tally_changes_adjust(struct tally_change **changes, size_t count)
{
	if (count)
		qsort(changes, count, sizeof(struct tally_change *), by_p);
	while (count && isnan(changes[count - 1]->p))
		count--;
	double least = 1; /* among the changes with a larger p */
	for (size_t rank = count; rank; rank--) {
		struct tally_change *change = changes[rank - 1];
		least = tally_min_double(least, change->p * (double)count / (double)rank);
		change->adjusted_p = least;
	}
}

bool tally_change_is_doubtful(const struct tally_change *change)
{
	return change->significance == TALLY_CHANGE_REAL && change->adjusted_p >= chance;
}

void tally_figure_join(struct tally_figure *figure, const struct tally_figure *more)
{
	/* spreads with an unknown number of runs can't be joined: the later one stays */
	if (!figure->runs || !more->runs)
		return;
	double n = (double)figure->runs, m = (double)more->runs,
	       distance = more->mean - figure->mean;
	double squares = figure->sigma * figure->sigma * (n - 1) +
			 more->sigma * more->sigma * (m - 1) +
			 distance * distance * n * m / (n + m);
	figure->mean += distance * m / (n + m);
	figure->runs += more->runs;
	figure->sigma = sqrt(squares / (n + m - 1));
	figure->has_no_spread |= more->has_no_spread;
	figure->repeats = figure->repeats && more->repeats && distance == 0;
}
