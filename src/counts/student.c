/* Student's distribution for whole degrees of freedom ν, by the recurrence of its integral.
 * Between two of them p is interpolated in 1/ν: from 2 on within 2 % of p if p is around 0.05, and
 * a quarter too large if it is tiny (tests/unit/test_compare.c).  Closed forms, so that libm need
 * not be loaded.
 *
 * With x = t/√(ν + t²), P(|T| ≤ t) is the share that J(x) = ∫₀ˣ (1 − u²)^((ν−2)/2) du has of J(1),
 * and by parts (k + 1) Jₖ = x (1 − x²)^(k/2) + k Jₖ₋₂ for the exponent k/2; J₀ = x, J₋₁ = arcsin
 * x. */
#include "counts/comparison.h"

#include <math.h>

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
	double part = is_odd ? arctan(t / sqrt(freedom)) : x, whole = is_odd ? half_pi : 1;
	double power = is_odd ? sqrt(cosine2) : cosine2; /* cosineᵏ */
	for (int k = is_odd ? 1 : 2; k <= freedom - 2; k += 2, power *= cosine2) {
		part = (x * power + k * part) / (k + 1);
		whole = k * whole / (k + 1);
	}
	return part < whole ? 1 - part / whole : 0;
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
