#include "report/report_parts.h"

#include "base/vector.h"
#include "profile/idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare_weights(uint64_t first_x, uint64_t first_y, uint64_t then_x, uint64_t then_y)
{
	if (first_x != first_y)
		return first_x < first_y ? 1 : -1;
	return then_x == then_y ? 0 : then_x < then_y ? 1 : -1;
}

static int compare_texts(const struct tally_strings *strings, uint32_t a, uint32_t b)
{
	int order = a == b ? 0
			   : strcmp(tally_strings_text(strings, a), tally_strings_text(strings, b));
	return order ? order : (a > b) - (a < b);
}

/* Compares the lengths of decimal numbers in text form. */
static int compare_lengths(const struct tally_strings *strings, uint32_t a, uint32_t b)
{
	size_t x = strlen(tally_strings_text(strings, a)),
	       y = strlen(tally_strings_text(strings, b));
	return (x > y) - (x < y);
}

static int compare_key(const struct tally_recording *recording, enum tally_sort_key key, uint32_t a,
		       uint32_t b)
{
	const struct tally_function *functions = recording->names.functions.items;
	int order;
	switch (tally_sort_row(key)->kind) {
	case TALLY_KIND_TASK_TEXT: return compare_texts(&recording->tasks.strings, a, b);
	case TALLY_KIND_FUNCTION:
		order = compare_texts(&recording->names.strings, functions[a].plain,
				      functions[b].plain);
		return order ? order
			     : compare_texts(&recording->names.strings, functions[a].object,
					     functions[b].object);
	case TALLY_KIND_NUMBER: return (a > b) - (a < b);
	case TALLY_KIND_DIGITS:
	case TALLY_KIND_EACH:
		order = compare_lengths(&recording->names.strings, a, b);
		return order ? order : compare_texts(&recording->names.strings, a, b);
	default: return compare_texts(&recording->names.strings, a, b);
	}
}

/* Orders entries of equal weight by their visible keys. */
static int compare_keys(const struct tally_recording *recording, const uint32_t *a,
			const uint32_t *b)
{
	int order = 0;
	for (unsigned key = 0; !order && key < TALLY_SORT_KEYS; key++)
		if (a[key] != b[key])
			order = compare_key(recording, key, a[key], b[key]);
	return order;
}

static int compare_entries(const void *a, const void *b, void *context)
{
	const struct tally_report_builder *builder = context;
	const struct tally_report_entry *x = &builder->met.items[*(const uint32_t *)a].entry;
	const struct tally_report_entry *y = &builder->met.items[*(const uint32_t *)b].entry;
	int order = builder->options->by_self
			    ? compare_weights(x->self, y->self, x->total, y->total)
			    : compare_weights(x->total, y->total, x->self, y->self);
	return order ? order : compare_keys(builder->profile->recording, x->key, y->key);
}

/* Selects and sorts the entries to show. */
static int keep_heaviest(struct tally_report_builder *builder)
{
	const struct tally_report_options *options = builder->options;
	struct tally_report *report = builder->report;
	double least = options->percent_min / 100 * (double)report->period;
	uint32_t *kept = malloc((builder->met.count + 1) * sizeof(*kept));
	size_t count = 0;
	int result = kept ? 0 : -ENOMEM;
	for (size_t i = 0; kept && i < builder->met.count; i++) {
		const struct tally_report_entry *entry = &builder->met.items[i].entry;
		if ((double)(options->children ? entry->total : entry->self) >= least)
			kept[count++] = (uint32_t)i;
	}
	if (count)
		qsort_r(kept, count, sizeof(*kept), compare_entries, builder);
	if (options->limit && count > options->limit)
		count = options->limit;
	for (size_t i = 0; !result && i < count; i++) {
		builder->met.items[kept[i]].shown = (uint32_t)i;
		result = tally_vector_push(&report->entries, builder->met.items[kept[i]].entry);
	}
	report->hidden = builder->met.count - count;
	free(kept);
	return result;
}

int tally_report_build(const struct tally_profile *profile,
		       const struct tally_report_options *options, struct tally_report *report)
{
	struct tally_report_builder builder = { .profile = profile,
						.options = options,
						.report = report };
	size_t events;
	const struct tally_recorded_event *recorded = tally_perfdata_events(
		profile->recording->data, &events);
	*report = (struct tally_report){ 0 };
	report->of_waits = profile->notes_longest && options->event < events &&
			   tally_off_cpu_measured(&profile->recording->off_cpu,
						  &recorded[options->event]);
	tally_profile_totals(profile, options->event, &report->samples, &report->period);
	report->idle = tally_profile_idle(profile, options->event);
	report->spread = tally_profile_spread(profile, options->event);
	/* Printed figures are rounded; a lighter branch would not be printed. */
	builder.least = (uint64_t)(options->tree_percent_min / 100 * (double)report->period);
	int result = tally_profile_count_tasks(profile, options->event, &report->comms,
					       &report->threads);
	if (!result)
		result = tally_report_make_keys(&builder);
	if (!result)
		result = tally_report_make_roots(&builder);
	if (!result)
		result = tally_report_sum_rows(&builder);
	if (!result)
		result = keep_heaviest(&builder);
	if (!result && options->tree != TALLY_TREE_NONE)
		result = tally_report_make_trees(&builder);
	tally_report_release_keys(&builder);
	tally_report_release_roots(&builder);
	free(builder.leaf_entry);
	tally_vector_release(&builder.met);
	if (result < 0)
		tally_report_release(report);
	return result;
}

void tally_report_release(struct tally_report *report)
{
	tally_arena_release(&report->arena);
	tally_vector_release(&report->entries);
}
