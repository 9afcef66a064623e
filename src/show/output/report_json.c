/* A report as JSON; docs/report-json.md is the schema. */
#include "output/output.h"

#include <stdlib.h>

/* NULL: neither a symbol nor an unwind rule gives a name. */
static const char *name_of(const struct tally_names *names, uint32_t number)
{
	const struct tally_function *function = NULL;
	if (number < names->functions.count)
		function = &names->functions.items[number];
	if (!function)
		return NULL;
	/* the tiers of a JIT's function are one function */
	bool is_plain = function->plain != function->bare || function->kind == TALLY_FRAME_JIT;
	if (function->name != TALLY_STRING_NONE && !is_plain)
		return tally_names_text(names, number);
	if (function->name != TALLY_STRING_NONE)
		return tally_names_plain_text(names, number);
	bool is_told = function->start != UINT64_MAX && function->kind != TALLY_FRAME_INLINED;
	if (is_told)
		return tally_names_plain_text(names, number);
	return NULL;
}

static bool is_mangled(const struct tally_names *names, uint32_t number)
{
	const struct tally_function *function = NULL;
	if (number < names->functions.count)
		function = &names->functions.items[number];
	return function && function->symbol != TALLY_STRING_NONE &&
	       function->symbol != function->name;
}

static void put_function(const struct tally_profile *profile, uint32_t function,
			 struct tally_json *json)
{
	static const char *const kinds[TALLY_FRAME_KINDS] = { "program", "library", "kernel", "jit",
							      "inlined" };
	const struct tally_names *names = &profile->recording->names;
	bool known = function != UINT32_MAX;
	tally_json_text(json, "function", name_of(names, function));
	if (is_mangled(names, function))
		tally_json_text(json, "symbol",
				tally_strings_text(&names->strings,
						   names->functions.items[function].symbol));
	tally_json_text(json, "object", known ? tally_names_object(names, function) : NULL);
	tally_json_text(json, "kind", known ? kinds[names->functions.items[function].kind] : NULL);
}

static void put_branches(const struct tally_profile *profile, const struct tally_branch_node *first,
			 uint64_t least, unsigned depth, struct tally_json *json)
{
	for (const struct tally_branch_node *branch = first; branch && branch->weight >= least;
	     branch = branch->sibling) {
		tally_json_object(json, NULL);
		tally_json_u64(json, "depth", depth);
		put_function(profile, branch->function, json);
		tally_json_u64(json, "weight", branch->weight);
		tally_json_end(json);
		put_branches(profile, branch->child, least, depth + 1, json);
	}
}

/* Puts branches as a flat array, parents before children: stacks are deeper than JSON parsers allow
 * nesting. */
static void put_tree(const struct tally_profile *profile, const struct tally_report *report,
		     const struct tally_report_options *options,
		     const struct tally_branch_node *first, struct tally_json *json)
{
	uint64_t least = tally_whole_number(options->tree_percent_min / 100 *
					    (double)report->period);
	if (options->tree == TALLY_TREE_NONE)
		return;
	tally_json_array(json, "tree");
	put_branches(profile, first, least, 0, json);
	tally_json_end(json);
}

/* Rounds to a thousandth of a percentage point: more digits would be noise. */
static void put_error(const struct tally_report *report, const char *name, uint64_t period,
		      uint64_t samples, struct tally_json *json)
{
	tally_json_double(
		json, name,
		(double)(int64_t)(1000 * tally_report_error(report, period, samples) + 0.5) / 1000);
}

/* Writes null if the number is unknown. */
static void put_digits(const char *name, const char *digits, uint64_t times,
		       struct tally_json *json)
{
	char *end;
	uint64_t number = strtoull(digits, &end, 10);
	if (end == digits)
		tally_json_text(json, name, NULL);
	else
		tally_json_u64(json, name, tally_product_capped(number, times));
}

static void put_key(const struct tally_profile *profile, const struct tally_report_entry *entry,
		    enum tally_sort_key key, struct tally_json *json)
{
	uint32_t value = entry->key[key];
	const struct tally_sort_row *row = tally_sort_row(key);
	if (!row->json)
		return;
	switch (row->kind) {
	case TALLY_KIND_TASK_TEXT:
		tally_json_text(json, row->json,
				tally_strings_text(&profile->recording->tasks.strings, value));
		break;
	case TALLY_KIND_FUNCTION:
		tally_json_text(json, row->json, name_of(&profile->recording->names, value));
		break;
	case TALLY_KIND_EACH:
	case TALLY_KIND_DIGITS:
		put_digits(row->json, tally_strings_text(&profile->recording->names.strings, value),
			   row->kind == TALLY_KIND_EACH ? entry->self_samples : 1, json);
		break;
	case TALLY_KIND_NUMBER:
		tally_json_i64(json, row->json, (int32_t)value);
		break;
	default:
		tally_json_text(json, row->json,
				tally_strings_text(&profile->recording->names.strings, value));
	}
}

static void put_entry(const struct tally_profile *profile, const struct tally_report *report,
		      const struct tally_report_options *options,
		      const struct tally_report_entry *entry, struct tally_json *json)
{
	tally_json_object(json, NULL);
	for (unsigned key = 0; key < TALLY_SORT_KEYS; key++)
		if (options->by[key])
			put_key(profile, entry, key, json);
	if (options->by[TALLY_SORT_SYMBOL])
		put_function(profile, entry->function, json);
	else if (options->by[TALLY_SORT_OBJECT])
		tally_json_text(json, "object",
				tally_names_object(&profile->recording->names, entry->function));
	if (entry->inlining != TALLY_INLINED_NONE)
		tally_json_text(json, "inlined",
				entry->inlining == TALLY_INLINED_ALL ? "all" : "some");
	tally_json_u64(json, "self", entry->self);
	if (options->children)
		tally_json_u64(json, "total", entry->total);
	tally_json_u64(json, "self_samples", entry->self_samples);
	put_error(report, "self_error", entry->self, entry->self_samples, json);
	if (report->of_waits)
		tally_json_u64(json, "self_longest", entry->self_longest);
	if (report->of_waits && options->children)
		tally_json_u64(json, "total_longest", entry->total_longest);
	if (options->children) {
		tally_json_u64(json, "total_samples", entry->total_samples);
		put_error(report, "total_error", entry->total, entry->total_samples, json);
	}
	put_tree(profile, report, options, entry->tree, json);
	tally_json_end(json);
}

void tally_report_json(const struct tally_profile *profile, const struct tally_report *report,
		       const struct tally_report_options *options, struct tally_json *json)
{
	size_t event_count;
	const struct tally_recorded_event *events = tally_perfdata_events(profile->recording->data,
									  &event_count);
	tally_json_object(json, NULL);
	tally_json_text(json, "event", events[options->event].name);
	tally_json_u64(json, "samples", report->samples);
	if (profile->of_costs)
		tally_json_bool(json, "of_costs", true);
	if (profile->of_branches)
		tally_json_bool(json, "of_branches", true);
	tally_json_u64(json, "period", report->period);
	if (report->is_saturated)
		tally_json_bool(json, "saturated", true);
	if (report->idle.samples) {
		tally_json_u64(json, "idle_samples", report->idle.samples);
		tally_json_u64(json, "idle_period", report->idle.period);
	}
	tally_json_u64(json, "hidden_entries", report->hidden);
	if (report->trees_cut)
		tally_json_bool(json, "trees_cut", true);
	tally_json_array(json, "entries");
	for (size_t i = 0; i < report->entries.count; i++)
		put_entry(profile, report, options, &report->entries.items[i], json);
	tally_json_end(json);
	tally_json_end(json);
}
