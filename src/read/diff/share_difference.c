/* Sums the runs of a side, and computes Newcombe's interval for one run on each side, Welch's for
 * several.  Bisection finds Newcombe's p.  The end of the file computes the limit of p for many
 * functions. */
#include "diff/diff_internal.h"

#include "base/extremes.h"
#include "counts/counts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static const double chance = 0.05; /* a smaller p is not chance */
/* tally_student_t(chance, INFINITY), which is slow and needed for each row */
static const double deviations = 1.9623390808264;

/* One side's part of the whole, on the compared scale. */
struct side {
	double p, n;       /* over all runs */
	double scale;      /* of a run */
	double mean;       /* of the runs, scaled */
	double variance;   /* of a run, estimated from several */
	size_t runs;
};

static struct tally_share counted(const struct tally_share *run, enum tally_share_measure measure)
{
	if (measure != TALLY_MEASURE_SAMPLES)
		return *run;
	return (struct tally_share){ .part = (double)run->part_samples,
				     .whole = (double)run->samples,
				     .part_samples = run->part_samples,
				     .samples = run->samples,
				     .spread = 1 };
}

static double value_of(const struct tally_share *share, enum tally_share_measure measure)
{
	if (measure != TALLY_MEASURE_SHARE)
		return share->part;
	if (share->whole > 0)
		return 100 * share->part / share->whole;
	return 0;
}

static struct side side_of(const struct tally_share *runs, size_t count,
			   enum tally_share_measure measure)
{
	struct side side = { .runs = count };
	double part = 0, whole = 0, squares = 0;
	for (size_t i = 0; i < count; i++) {
		struct tally_share run = counted(&runs[i], measure);
		side.mean += value_of(&run, measure) / (double)count;
		side.n += tally_share_effective_samples(&run);
		part += run.part;
		whole += run.whole;
	}
	for (size_t i = 0; i < count; i++) {
		struct tally_share run = counted(&runs[i], measure);
		double distance = value_of(&run, measure) - side.mean;
		squares += distance * distance;
	}
	if (whole > 0)
		side.p = tally_min_double(part / whole, 1);
	else
		side.p = 0;
	if (measure == TALLY_MEASURE_SHARE)
		side.scale = 100;
	else
		side.scale = whole / (double)count;
	if (count > 1)
		side.variance = squares / (double)(count - 1);
	else
		side.variance = 0;
	return side;
}

static void newcombe(const struct side *old, const struct side *new, double z,
		     struct tally_share_difference *out)
{
	struct tally_share_interval o = tally_wilson_interval(old->p, old->n, z),
				    n = tally_wilson_interval(new->p, new->n, z);
	double down = new->scale * (new->p - n.low), up = new->scale * (n.high - new->p);
	double old_down = old->scale * (old->p - o.low), old_up = old->scale * (o.high - old->p);
	out->low = out->difference - sqrt(down * down + old_up * old_up);
	out->high = out->difference + sqrt(up * up + old_down * old_down);
}

/* Returns the p of the widest interval without 0, by bisection. */
static double newcombe_p(const struct side *old, const struct side *new, double difference)
{
	double low = 0, high = 40;
	for (int i = 0; i < 50 && difference != 0; i++) {
		struct tally_share_difference at = { .difference = difference };
		double z = (low + high) / 2;
		newcombe(old, new, z, &at);
		*(at.low > 0 || at.high < 0 ? &low : &high) = z;
	}
	if (difference != 0)
		return tally_student_p(low, INFINITY);
	return 1;
}

/* Returns the variance of the mean of the runs; `freedom` belongs to the spread that was used. */
static double variance_of_mean(const struct side *side, const struct side *other, double *freedom)
{
	double z = deviations;
	struct tally_share_interval sampling = tally_wilson_interval(side->p, side->n, z);
	double error = side->scale * (sampling.high - sampling.low) / (2 * z);
	bool is_alone = side->runs < 2;
	double ratio = 1;
	if (is_alone && other->scale > 0)
		ratio = side->scale / other->scale;
	double spread = (is_alone ? other->variance * ratio * ratio : side->variance) /
			(double)side->runs;
	*freedom = (double)(is_alone ? other->runs : side->runs) - 1;
	return tally_max_double(spread, error * error);
}

static void welch(const struct side *old, const struct side *new,
		  struct tally_share_difference *out)
{
	double f_old, f_new, v_old = variance_of_mean(old, new, &f_old),
			     v_new = variance_of_mean(new, old, &f_new);
	double variance = v_old + v_new;
	if (!(variance > 0)) { /* no weight at all on both sides */
		out->low = out->high = out->difference;
		return;
	}
	double freedom = variance * variance / (v_old * v_old / f_old + v_new * v_new / f_new);
	double half = tally_student_t(chance, freedom) * sqrt(variance);
	out->low = out->difference - half;
	out->high = out->difference + half;
	out->p = tally_student_p(out->difference / sqrt(variance), freedom);
}

void tally_share_difference(const struct tally_share *old, size_t old_runs,
			    const struct tally_share *new, size_t new_runs,
			    enum tally_share_measure measure, struct tally_share_difference *out)
{
	struct side before = side_of(old, old_runs, measure),
		    after = side_of(new, new_runs, measure);
	*out = (struct tally_share_difference){ .old = before.mean, .new = after.mean,
						.difference = after.mean - before.mean, .p = 1 };
	if (old_runs > 1 || new_runs > 1) {
		welch(&before, &after, out);
		/* Welch's interval may exceed 100 points, so it is cut; Newcombe's can't. */
		if (measure == TALLY_MEASURE_SHARE) {
			out->low = tally_max_double(out->low, -100);
			out->high = tally_min_double(out->high, 100);
		}
		return;
	}
	newcombe(&before, &after, deviations, out);
	out->p = newcombe_p(&before, &after, out->difference);
}

double tally_share_p_least(const struct tally_share *old, size_t old_runs,
			   const struct tally_share *new, size_t new_runs)
{
	/* samples: 0.5 to this power is below any limit, however many functions are compared */
	enum { ENOUGH = 60 };
	struct side before = side_of(old, old_runs, TALLY_MEASURE_SHARE),
		    after = side_of(new, new_runs, TALLY_MEASURE_SHARE);
	double n = before.n + after.n, samples = before.p * before.n + after.p * after.n, p = 1;
	double rarer = 0.5;
	if (n > 0)
		rarer = tally_min_double(before.n, after.n) / n;
	for (int i = 1; i <= ENOUGH && i <= samples; i++)
		p *= rarer;
	return p;
}

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;
	return (one > other) - (one < other);
}

double tally_share_p_limit(double *p_least, size_t count)
{
	if (count)
		qsort(p_least, count, sizeof(*p_least), by_size);
	size_t testable = count;
	for (size_t k = 1;; k++) {
		while (testable && p_least[testable - 1] > chance / (double)k)
			testable--;
		if (testable <= k)
			return chance / (double)k;
	}
}
