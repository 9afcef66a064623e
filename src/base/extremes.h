/* Of two numbers, without libm, which would be loaded at each start for fmax(3).  Neither may be
 * NaN. */
#ifndef TALLY_BASE_EXTREMES_H
#define TALLY_BASE_EXTREMES_H

static inline double tally_larger(double a, double b)
{
	return a > b ? a : b;
}

static inline double tally_smaller(double a, double b)
{
	return a < b ? a : b;
}

#endif
