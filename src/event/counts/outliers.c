/* Outliers of a few values, by the median: a mean and its deviation would be pulled by the outliers
 * themselves. */
#include "counts/counts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Sorts the values. */
static double median_of(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_values);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

int tally_outliers_mark(const double *values, size_t count, bool *is_outlier, double *median)
{
	enum { LEAST = 5 };
	/* 0.6745: the median distance of a normal distribution, in σ */
	const double limit = 3.5 / 0.6745;
	int outliers = 0;
	memset(is_outlier, 0, count * sizeof(*is_outlier));
	if (count < LEAST)
		return 0;
	double *scratch = malloc(count * sizeof(*scratch));
	if (!scratch)
		return -ENOMEM;
	memcpy(scratch, values, count * sizeof(*scratch));
	*median = median_of(scratch, count);
	for (size_t i = 0; i < count; i++)
		scratch[i] = fabs(values[i] - *median);
	double distance = median_of(scratch, count);
	free(scratch);
	for (size_t i = 0; i < count && distance > 0; i++) {
		is_outlier[i] = fabs(values[i] - *median) > limit * distance;
		outliers += is_outlier[i];
	}
	return outliers;
}
