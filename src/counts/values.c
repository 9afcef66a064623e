#include "counts/counts.h"

static uint64_t difference(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
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
	total->raw += reading.value;
	total->enabled_ns += reading.enabled_ns;
	total->running_ns += reading.running_ns;
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
	total->covered_ns += reading.enabled_ns;
}

bool tally_total_value(const struct tally_total *total, double *value)
{
	if (!total->running_ns)
		return false;
	if (!total->was_scaled)
		*value = (double)total->raw;
	else if (total->covered_ns)
		*value = total->scaled * ((double)total->enabled_ns / (double)total->covered_ns);
	else
		*value = total->scaled;
	return true;
}

double tally_count_share(const struct tally_count *count)
{
	if (!count->enabled_ns || count->running_ns >= count->enabled_ns)
		return 1;
	return (double)count->running_ns / (double)count->enabled_ns;
}
