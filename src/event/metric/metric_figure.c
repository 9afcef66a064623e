/* Figures of -M's metrics, from the rows of their events.
 *
 * A ratio is of one time if all events were counted for all of it, or in one group, whose events run
 * together.  Otherwise each event's figure is an estimate from its own part of the time, and the
 * ratio says so. */
#include "metric/metric.h"

#include "event/event.h"

#include <math.h>
#include <stdio.h>

/* When the events of one metric were counted. */
struct times {
	int pass;                              /* of --no-multiplex; −1: of none yet */
	const struct tally_event_count *first; /* the first scaled row */
	bool has_scaled, has_unscaled, is_mixed;
};

static void note_times(struct times *times, const struct tally_event_count *row)
{
	bool is_counter = row->type != TALLY_TYPE_TOOL && !row->is_substitute;
	/* Software events are always counted. */
	if (!is_counter || row->type == TALLY_TYPE_SOFTWARE)
		return;
	/* A count in every pass stands for all of them. */
	if (row->pass >= 0) {
		times->is_mixed |= times->pass >= 0 && times->pass != row->pass;
		times->pass = row->pass;
	}
	if (!row->was_scaled) {
		times->has_unscaled = true;
		times->is_mixed |= times->has_scaled;
		return;
	}
	times->is_mixed |= times->has_unscaled;
	if (times->first)
		times->is_mixed |= times->first->group != row->group || row->group < 0 ||
				   times->first->running_ns != row->running_ns;
	else
		times->first = row;
	times->has_scaled = true;
}

/* Times are in seconds, as in perf's expressions; others in the event's unit. */
static double value_of(const struct tally_event_count *row)
{
	if (row->type == TALLY_TYPE_TOOL)
		return row->value / 1e9;
	return row->value;
}

static const char *missing_reason(const struct tally_event_count *row)
{
	if (row->reason)
		return row->reason;
	if (row->state == TALLY_COUNT_NOT_COUNTED)
		return "not counted";
	return "not supported";
}

/* Sums an event's rows. Returns the row that has no figure, or NULL. */
static const struct tally_event_count *sum_rows(const struct tally_metric_rows *rows, size_t offset,
						const struct tally_count_table *table,
						const struct tally_event_count *first_part,
						struct tally_metric_name_value *out,
						struct times *times,
						struct tally_metric_figure *figure)
{
	*out = (struct tally_metric_name_value){ 0, 0 };
	for (size_t i = 0; i < rows->count; i++) {
		size_t at = offset + rows->first + i;
		if (at >= table->count)
			continue;
		const struct tally_event_count *row = &table->rows[at];
		if (row->type == TALLY_TYPE_TOOL)
			row = &first_part[at];
		if (row->cgroup)
			figure->cgroup = row->cgroup;
		if (row->state != TALLY_COUNT_OK)
			return row;
		out->value += value_of(row);
		out->source_count++;
		note_times(times, row);
	}
	return NULL;
}

void tally_metric_figure_of(const struct tally_metric_uses *uses, size_t index,
			    const struct tally_count_table *table,
			    const struct tally_event_count *first_part, size_t turn,
			    struct tally_metric_figure *out)
{
	const struct tally_metric_use *use = &uses->items[index];
	struct tally_metric_name_value values[TALLY_METRIC_EVENTS_MAX] = { { 0, 0 } };
	const struct tally_event_count *missing = NULL;
	struct times times = { .pass = -1 };
	*out = (struct tally_metric_figure){ .definition = use->plan.definition,
					     .label = use->label,
					     .value = NAN };
	if (use->unavailable) {
		out->note = use->unavailable;
		return;
	}
	for (size_t i = 0; i < use->plan.events.count; i++) {
		const struct tally_event_count *gone = sum_rows(&use->rows[i], turn * uses->stride,
								table, first_part, &values[i],
								&times, out);
		if (!gone)
			continue;
		values[i] = (struct tally_metric_name_value){ NAN, 0 };
		if (!missing)
			missing = gone;
	}
	out->value = tally_metric_plan_evaluate(&use->plan, values, &uses->machine);
	out->is_mixed = times.is_mixed;
	out->is_scaled = times.has_scaled;
	if (!isnan(out->value) && out->is_mixed)
		out->note = "its events were not counted at the same time";
	if (!isnan(out->value))
		return;
	out->note = "divided by zero, or a constant of the machine is unknown";
	if (missing) {
		snprintf(out->text, sizeof(out->text), "%.200s: %.280s", missing->name,
			 missing_reason(missing));
		out->note = out->text;
	}
}

int tally_metric_decimals(const struct tally_metric_definition *definition, double value)
{
	double size = fabs(value);
	if (definition->decimals >= 0)
		return definition->decimals;
	if (size >= 1000)
		return 0;
	if (size >= 100)
		return 1;
	if (size >= 10)
		return 2;
	if (size >= 1)
		return 3;
	return 4;
}
