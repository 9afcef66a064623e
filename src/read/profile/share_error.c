/* Turns the variance of weighted samples into a number of equal samples, and computes Wilson's
 * interval with that number. */
#include "profile/profile.h"

#include "base/extremes.h"

#include <math.h>

static const double normal_95 = 1.959963984540054; /* standard deviations that hold 95 % */

static double share_of(const struct tally_share *share)
{
	if (!(share->whole > 0))
		return 0;
	return tally_min_double(tally_max_double(share->part / share->whole, 0), 1);
}

double tally_share_effective_samples(const struct tally_share *share)
{
	double n = (double)share->samples, k = (double)share->part_samples, p = share_of(share);
	double spread = tally_max_double(share->spread, 1);
	if (p <= 0 || p >= 1 || k <= 0 || k >= n)
		return n / spread;
	/* Sums of squares in units of W²: the part that the mean weights alone make, and the spread
	 * that remains. */
	double inside = p * p / k, outside = (1 - p) * (1 - p) / (n - k);
	double left_over = spread / n / (inside + outside);
	double variance = (inside * (1 - p) * (1 - p) + outside * p * p) *
			  tally_max_double(left_over, 1);
	return p * (1 - p) / variance;
}

struct tally_share_interval tally_wilson_interval(double p, double n, double z)
{
	double z2 = z * z;
	if (!(n > 0))
		return (struct tally_share_interval){ 0, 1 };
	double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
	double half = z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
	double low = centre - half, high = centre + half;
	/* At 0 and 1 the interval begins at the share itself, except for rounding. */
	if (low < 0 || p <= 0)
		low = 0;
	if (high > 1 || p >= 1)
		high = 1;
	return (struct tally_share_interval){ low, high };
}

struct tally_share_interval tally_share_interval(const struct tally_share *share)
{
	double n = tally_share_effective_samples(share);
	struct tally_share_interval wilson = tally_wilson_interval(share_of(share), n, normal_95);
	return (struct tally_share_interval){ 100 * wilson.low, 100 * wilson.high };
}

double tally_share_error(const struct tally_share *share)
{
	struct tally_share_interval interval = tally_share_interval(share);
	double percent = 100 * share_of(share);
	return tally_max_double(percent - interval.low, interval.high - percent);
}
