/* The figures beside counts: the metrics of the table whose `beside` is the row's event, from rows
 * that count the same modes, cgroup and, if possible, group. */
#include "metric/metric.h"

#include "event/event.h"

#include <math.h>
#include <string.h>

static bool is_clock(const struct tally_event_count *row)
{
	return row->type == TALLY_TYPE_SOFTWARE &&
	       (row->config == TALLY_SW_CPU_CLOCK || row->config == TALLY_SW_TASK_CLOCK);
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

/* A CPU-wide clock runs even while the CPU is idle.  Divided by the elapsed time it gives the
 * number of CPUs counted, which is not called "utilized". */
static unsigned clock_metric(const struct tally_count_table *table,
			     const struct tally_event_count *row, struct tally_metric *out)
{
	if (table->elapsed_ns <= 0)
		return 0;
	bool counts_busy_time = !table->cpu_count || row->cgroup || row->is_substitute;
	*out = (struct tally_metric){ row->value / table->elapsed_ns,
				      counts_busy_time ? "CPUs utilized" : "CPUs counted", 3, false,
				      false };
	return 1;
}

/* Computes a definition from the rows that belong to `row`, of the same type of cores; NAN if one is
 * missing. */
static double evaluate(const struct tally_metric_definition *definition,
		       const struct tally_count_table *table, const struct tally_event_count *row,
		       bool *is_apart)
{
	enum { NAMES_MAX = 8 };
	struct tally_arena arena = TALLY_ARENA_INIT;
	const struct tally_metric_expression *expression;
	struct tally_metric_name_value values[NAMES_MAX];
	const struct tally_metric_machine machine = { .cpuid = "" };
	double value = NAN;
	*is_apart = false;
	if (tally_metric_parse(definition->expression, &arena, &expression, NULL) < 0)
		goto out;
	size_t count = tally_metric_name_count(expression);
	for (size_t i = 0; i < count && count <= NAMES_MAX; i++) {
		uint32_t type;
		uint64_t config;
		const struct tally_event_count *found = NULL;
		if (!tally_event_fixed(tally_metric_name(expression, i), &type, &config))
			goto out;
		config |= generic_core(row);
		found = tally_count_find(table, type, config, row->excludes, row->group,
					 row->cgroup);
		if (!found)
			goto out;
		/* of two rows of the event, its own */
		if (type == row->type && config == row->config)
			found = row;
		*is_apart |= are_apart(row, found);
		values[i] = (struct tally_metric_name_value){ found->value, 1 };
	}
	if (count <= NAMES_MAX)
		value = tally_metric_evaluate(expression, values, &machine);
out:
	tally_arena_release(&arena);
	return value;
}

unsigned tally_metrics_of(const struct tally_count_table *table, size_t index,
			  struct tally_metric out[TALLY_METRICS_MAX])
{
	const struct tally_event_count *row = &table->rows[index];
	unsigned count = 0;
	double clock_ns = tally_count_clock_ns(table, row->cgroup);
	uint64_t core = generic_core(row);
	if (row->core) /* its value may be of several runs, its time is of the last */
		clock_ns = row->spread.count > 1 ? 0 : (double)row->enabled_ns;
	if (row->state != TALLY_COUNT_OK)
		return 0;
	if (is_clock(row))
		return clock_metric(table, row, out);
	size_t definitions = 0;
	const struct tally_metric_definition *definition = tally_metric_table(&definitions);
	const char *name = NULL;
	if (row->type == TALLY_TYPE_HARDWARE || row->type == TALLY_TYPE_HW_CACHE)
		name = tally_event_fixed_name(row->type, row->config & ~core);
	for (; name && definitions && count < TALLY_METRICS_MAX; definition++, definitions--) {
		if (!definition->beside || strcmp(definition->beside, name) != 0)
			continue;
		bool is_apart;
		double value = evaluate(definition, table, row, &is_apart);
		if (!isnan(value))
			out[count++] = (struct tally_metric){ value, definition->unit,
							      definition->decimals,
							      definition->unit_first, is_apart };
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

double tally_metric_beside(const struct tally_count_table *table, const char *name,
			   const struct tally_event_count *row)
{
	size_t count;
	const struct tally_metric_definition *definition = tally_metric_table(&count);
	bool is_apart;
	for (size_t i = 0; i < count; i++)
		if (definition[i].beside && !strcmp(definition[i].name, name))
			return evaluate(&definition[i], table, row, &is_apart);
	return NAN;
}
