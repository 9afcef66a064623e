/* The larger and smaller of two numbers, without fmax(3): libm would have to be loaded at each
 * start.  Neither may be NaN. */
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
