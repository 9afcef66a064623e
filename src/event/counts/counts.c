/* Readings, their sums and spread, and how rows of a table are found. */
#include "counts/counts.h"

#include "base/weight_sum.h"

#include <math.h>
#include <string.h>

static uint64_t difference(uint64_t now, uint64_t before)
{
	if (now > before)
		return now - before;
	return 0;
}

struct tally_reading tally_reading_since(struct tally_reading now, struct tally_reading before)
{
	return (struct tally_reading){ .value = difference(now.value, before.value),
				       .enabled_ns = difference(now.enabled_ns, before.enabled_ns),
				       .running_ns = difference(now.running_ns,
								before.running_ns) };
}

void tally_total_add(struct tally_total *total, struct tally_reading reading)
{
	total->is_saturated |= reading.value > UINT64_MAX - total->raw;
	total->raw = tally_sum_capped(total->raw, reading.value);
	total->enabled_ns = tally_sum_capped(total->enabled_ns, reading.enabled_ns);
	total->running_ns = tally_sum_capped(total->running_ns, reading.running_ns);
	if (!reading.running_ns) {
		total->was_scaled |= reading.enabled_ns > 0;
		return;
	}
	/* Both times come from one clock, but not from one reading of it: they may differ by
	 * nanoseconds, and those of a cgroup by microseconds. */
	double factor = 1;
	if (reading.running_ns < reading.enabled_ns - reading.enabled_ns / 100000) {
		factor = (double)reading.enabled_ns / (double)reading.running_ns;
		total->was_scaled = true;
	}
	total->scaled += (double)reading.value * factor;
	total->covered_ns = tally_sum_capped(total->covered_ns, reading.enabled_ns);
}

bool tally_total_value(const struct tally_total *total, double *value)
{
	if (!total->running_ns)
		return false;
	if (!total->was_scaled && !total->is_saturated)
		*value = (double)total->raw;
	else if (total->covered_ns)
		*value = total->scaled * ((double)total->enabled_ns / (double)total->covered_ns);
	else
		*value = total->scaled;
	return true;
}

double tally_count_share(const struct tally_event_count *count)
{
	if (!count->enabled_ns || count->running_ns >= count->enabled_ns)
		return 1;
	return (double)count->running_ns / (double)count->enabled_ns;
}

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
	if (spread->count < 2)
		return 0;
	return sqrt(spread->squares / (double)(spread->count - 1));
}

double tally_spread_percent(const struct tally_spread *spread)
{
	if (spread->mean == 0)
		return 0;
	return 100 * tally_spread_sigma(spread) / fabs(spread->mean);
}

static bool is_clock(const struct tally_event_count *row)
{
	return row->type == TALLY_TYPE_SOFTWARE &&
	       (row->config == TALLY_SW_CPU_CLOCK || row->config == TALLY_SW_TASK_CLOCK);
}

static bool is_in(const struct tally_event_count *row, const char *cgroup)
{
	if (cgroup && row->cgroup)
		return !strcmp(row->cgroup, cgroup);
	return cgroup == row->cgroup;
}

const struct tally_event_count *tally_count_find(const struct tally_count_table *table, uint32_t type,
					   uint64_t config, uint64_t excludes, int group,
					   const char *cgroup)
{
	const struct tally_event_count *found = NULL;
	for (size_t i = 0; i < table->count; i++) {
		const struct tally_event_count *row = &table->rows[i];
		if (row->type != type || row->config != config || row->excludes != excludes ||
		    row->state != TALLY_COUNT_OK || !is_in(row, cgroup))
			continue;
		if (group >= 0 && row->group == group)
			return row;
		if (!found)
			found = row;
	}
	return found;
}

double tally_count_clock_ns(const struct tally_count_table *table, const char *cgroup)
{
	for (size_t i = 0; i < table->count; i++)
		if (is_clock(&table->rows[i]) && table->rows[i].state == TALLY_COUNT_OK &&
		    is_in(&table->rows[i], cgroup))
			return table->rows[i].value;
	return 0;
}
