#include "counts/counts.h"

#include <math.h>

void tally_spread_add(struct tally_spread *spread, double value)
{
	double distance = value - spread->mean;
	if (!spread->count || value < spread->minimum)
		spread->minimum = value;
	if (!spread->count || value > spread->maximum)
		spread->maximum = value;
	spread->count++;
	spread->mean += distance / (double)spread->count;
	spread->squares += distance * (value - spread->mean);
}

double tally_spread_sigma(const struct tally_spread *spread)
{
	return spread->count < 2 ? 0 : sqrt(spread->squares / (double)(spread->count - 1));
}

double tally_spread_percent(const struct tally_spread *spread)
{
	return spread->mean == 0 ? 0 : 100 * tally_spread_sigma(spread) / fabs(spread->mean);
}
