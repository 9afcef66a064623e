/* Metrics by a table: two events, the factor and the unit of their ratio. */
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

#define HW(name) TALLY_TYPE_HARDWARE, TALLY_HW_##name
#define LOADS(level) TALLY_TYPE_HW_CACHE, (uint64_t)TALLY_CACHE_##level | TALLY_CACHE_OP_READ << 8
#define MISSES(level) LOADS(level) | TALLY_CACHE_RESULT_MISS << 16
#define STORES(level) TALLY_TYPE_HW_CACHE, (uint64_t)TALLY_CACHE_##level | TALLY_CACHE_OP_WRITE << 8
#define STORE_MISSES(level) STORES(level) | TALLY_CACHE_RESULT_MISS << 16

struct ratio {
	uint32_t type; /* of the row beside which the ratio is shown */
	uint64_t config;
	uint32_t other_type;
	uint64_t other_config;
	double factor;
	bool inverse; /* other / row */
	const char *unit;
	int decimals;
};

static const struct ratio ratios[] = {
	{ HW(INSTRUCTIONS), HW(CPU_CYCLES), 1, false, "insn per cycle", 2 },
	{ HW(INSTRUCTIONS), HW(CPU_CYCLES), 1, true, "CPI", 2 },
	{ HW(STALLED_CYCLES_FRONTEND), HW(CPU_CYCLES), 100, false,
	  "% of cycles idle in the front end", 2 },
	{ HW(STALLED_CYCLES_BACKEND), HW(CPU_CYCLES), 100, false,
	  "% of cycles idle in the back end", 2 },
	{ HW(BRANCH_MISSES), HW(BRANCH_INSTRUCTIONS), 100, false, "% of all branches", 2 },
	{ HW(BRANCH_MISSES), HW(INSTRUCTIONS), 1000, false, "per 1000 insn", 2 },
	{ HW(CACHE_MISSES), HW(CACHE_REFERENCES), 100, false, "% of all cache refs", 2 },
	{ HW(CACHE_MISSES), HW(INSTRUCTIONS), 1000, false, "per 1000 insn", 2 },
	{ MISSES(L1D), LOADS(L1D), 100, false, "% of all L1-dcache accesses", 2 },
	{ MISSES(L1D), HW(INSTRUCTIONS), 1000, false, "per 1000 insn", 2 },
	{ MISSES(L1I), LOADS(L1I), 100, false, "% of all L1-icache accesses", 2 },
	{ MISSES(L1I), HW(INSTRUCTIONS), 1000, false, "per 1000 insn", 2 },
	{ MISSES(LL), LOADS(LL), 100, false, "% of all LL-cache accesses", 2 },
	{ MISSES(LL), HW(INSTRUCTIONS), 1000, false, "per 1000 insn", 2 },
	{ MISSES(DTLB), LOADS(DTLB), 100, false, "% of all dTLB cache accesses", 2 },
	{ MISSES(DTLB), HW(INSTRUCTIONS), 1000, false, "per 1000 insn", 2 },
	{ MISSES(ITLB), LOADS(ITLB), 100, false, "% of all iTLB cache accesses", 2 },
	{ MISSES(ITLB), HW(INSTRUCTIONS), 1000, false, "per 1000 insn", 2 },
	{ MISSES(BPU), LOADS(BPU), 100, false, "% of all branch lookups", 2 },
	{ MISSES(NODE), LOADS(NODE), 100, false, "% of all node accesses", 2 },
	{ STORE_MISSES(L1D), STORES(L1D), 100, false, "% of all L1-dcache stores", 2 },
	{ STORE_MISSES(LL), STORES(LL), 100, false, "% of all LL-cache stores", 2 },
	{ STORE_MISSES(DTLB), STORES(DTLB), 100, false, "% of all dTLB stores", 2 },
};

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

static struct tally_metric rate(double events, double clock_ns)
{
	double per_second = events * 1e9 / clock_ns;
	if (per_second >= 1e9)
		return (struct tally_metric){ per_second / 1e9, "G/sec", 3, false, false };
	if (per_second >= 1e6)
		return (struct tally_metric){ per_second / 1e6, "M/sec", 3, false, false };
	if (per_second >= 1e3)
		return (struct tally_metric){ per_second / 1e3, "K/sec", 3, false, false };
	return (struct tally_metric){ per_second, "/sec", 3, false, false };
}

/* Returns the extended type of a hardware or cache event (perf_event_open(2)), in its bits; or 0. */
static uint64_t generic_core(const struct tally_event_count *row)
{
	if (row->type == TALLY_TYPE_HARDWARE || row->type == TALLY_TYPE_HW_CACHE)
		return row->config & ~(uint64_t)UINT32_MAX;
	return 0;
}

/* A CPU-wide clock runs even while the CPU is idle.  Divided by the elapsed time it gives the
 * number of CPUs counted, which is not called "utilized". */
static unsigned clock_metric(const struct tally_count_table *table, const struct tally_event_count *row,
			     struct tally_metric *out)
{
	if (table->elapsed_ns <= 0)
		return 0;
	bool counts_busy_time = !table->cpu_count || row->cgroup || row->is_substitute;
	*out = (struct tally_metric){ row->value / table->elapsed_ns,
				      counts_busy_time ? "CPUs utilized" : "CPUs counted", 3, false,
				      false };
	return 1;
}

/* True if the counts were taken at different times.  A count in every pass stands for all of
 * them: the passes are refused if they differ in it. */
static bool are_apart(const struct tally_event_count *a, const struct tally_event_count *b)
{
	if (a->pass != b->pass && a->pass >= 0 && b->pass >= 0)
		return true;
	if (a->group >= 0 && a->group == b->group)
		return false;
	return a->was_scaled || b->was_scaled;
}

unsigned tally_metrics_of(const struct tally_count_table *table, size_t index,
			  struct tally_metric out[TALLY_METRICS_MAX])
{
	const struct tally_event_count *row = &table->rows[index];
	unsigned count = 0;
	double clock_ns = tally_count_clock_ns(table, row->cgroup);
	/* The type of the cores, 0 if there is only one, is in the upper half: ratios are of one type. */
	uint64_t core = generic_core(row);
	if (row->core) /* its value may be of several runs, its time is of the last */
		clock_ns = row->spread.count > 1 ? 0 : (double)row->enabled_ns;
	if (row->state != TALLY_COUNT_OK)
		return 0;
	if (is_clock(row))
		return clock_metric(table, row, out);
	for (unsigned i = 0; i < sizeof(ratios) / sizeof(ratios[0]) && count < TALLY_METRICS_MAX;
	     i++) {
		const struct ratio *r = &ratios[i];
		if (r->type != row->type || (r->config | core) != row->config)
			continue;
		const struct tally_event_count *other = tally_count_find(
			table, r->other_type, r->other_config | core, row->excludes, row->group,
			row->cgroup);
		if (!other)
			continue;
		double part = row->value, whole = other->value;
		if (r->inverse) {
			part = other->value;
			whole = row->value;
		}
		if (whole > 0)
			out[count++] = (struct tally_metric){ r->factor * part / whole, r->unit,
							      r->decimals, r->inverse,
							      are_apart(row, other) };
	}
	if (count || clock_ns <= 0 || row->unit[0])
		return count;
	/* Cycles of one privilege level divided by the time of all levels are no frequency. */
	if (row->type == TALLY_TYPE_HARDWARE && row->config == (TALLY_HW_CPU_CYCLES | core)) {
		if (!(row->excludes & (TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL)))
			out[count++] = (struct tally_metric){ row->value / clock_ns, "GHz", 3,
							      false, false };
		return count;
	}
	out[count++] = rate(row->value, clock_ns);
	return count;
}
