/* Writes one document; docs/diff.md has the schema. */
#include "base/json.h"
#include "output/output.h"

static void put_side(struct tally_json *json, const char *name, const struct tally_diff_side *side,
		     const char *const *paths)
{
	tally_json_object(json, name);
	tally_json_array(json, "paths");
	for (size_t i = 0; i < side->runs; i++)
		tally_json_text(json, NULL, paths[i]);
	tally_json_end(json);
	tally_json_text_or_null(json, "title", side->title);
	tally_json_text_or_null(json, "event", side->event);
	tally_json_text(json, "unit", side->unit);
	tally_json_u64(json, "samples", side->samples);
	tally_json_u64(json, "weight", side->weight);
	if (side->is_saturated)
		tally_json_bool(json, "saturated", true);
	tally_json_end(json);
}

static void put_name(struct tally_json *json, const char *name, const struct tally_diff_view *view,
		     uint32_t string)
{
	if (string == TALLY_STRING_NONE)
		tally_json_null(json, name);
	else
		tally_json_text(json, name,
				tally_strings_text(&view->match->names.strings, string));
}

static void put_difference(struct tally_json *json, const char *name,
			   const struct tally_share_difference *difference)
{
	tally_json_object(json, name);
	tally_json_double(json, "old", difference->old);
	tally_json_double(json, "new", difference->new);
	tally_json_double(json, "difference", difference->difference);
	tally_json_double(json, "low", difference->low);
	tally_json_double(json, "high", difference->high);
	tally_json_double(json, "p", difference->p);
	tally_json_end(json);
}

static void put_entry(struct tally_json *json, const struct tally_diff *diff,
		      const struct tally_diff_view *view, const struct tally_diff_entry *entry)
{
	static const char *const presences[] = { [TALLY_DIFF_BOTH] = "both",
						 [TALLY_DIFF_ONLY_OLD] = "removed",
						 [TALLY_DIFF_ONLY_NEW] = "added" };
	tally_json_object(json, NULL);
	if (view->options->by_comm)
		put_name(json, "command", view, entry->comm);
	if (view->options->by_object)
		put_name(json, "object", view, entry->object);
	if (view->options->by_symbol)
		put_name(json, "function", view, entry->symbol);
	put_name(json, "was_object", view, entry->was_object);
	put_name(json, "was_function", view, entry->was_symbol);
	tally_json_text(json, "presence", presences[entry->presence]);
	tally_json_bool(json, "significant", entry->is_change);
	tally_json_double(json, "old_percent", entry->old_percent);
	tally_json_double(json, "new_percent", entry->new_percent);
	tally_json_u64(json, "old_samples", entry->old_samples);
	tally_json_u64(json, "new_samples", entry->new_samples);
	put_difference(json, "change", &entry->change);
	if (diff->has_weight)
		put_difference(json, "weight", &entry->weight);
	else
		tally_json_null(json, "weight");
	tally_json_end(json);
}

static void put_verdict(struct tally_json *json, const struct tally_diff_verdict *verdict)
{
	static const char *const names[] = { [TALLY_CONDITION_FALSE] = "passed",
					     [TALLY_CONDITION_TRUE] = "failed",
					     [TALLY_CONDITION_NOISE] = "noise",
					     [TALLY_CONDITION_UNKNOWN] = "unknown" };
	tally_json_object(json, NULL);
	tally_json_text(json, "condition", verdict->condition.text);
	tally_json_text(json, "name", verdict->name);
	tally_json_text(json, "result", names[verdict->result]);
	tally_json_end(json);
}

void tally_diff_json(const struct tally_diff *diff, const struct tally_diff_view *view,
		     struct tally_buffer *out)
{
	static const char *const measures[] = { [TALLY_MEASURE_SHARE] = "share",
						[TALLY_MEASURE_WEIGHT] = "time",
						[TALLY_MEASURE_SAMPLES] = "samples" };
	struct tally_json json = { .out = out };
	tally_json_object(&json, NULL);
	tally_json_text(&json, "schema", "tally-diff");
	tally_json_u64(&json, "version", TALLY_DIFF_JSON_VERSION);
	put_side(&json, "old", &diff->old, view->old_paths);
	put_side(&json, "new", &diff->new, view->new_paths);
	tally_json_text(&json, "normalize", measures[view->options->measure]);
	tally_json_bool(&json, "children", view->options->children);
	tally_json_u64(&json, "compared", diff->compared);
	tally_json_u64(&json, "significant", diff->changes);
	tally_json_u64(&json, "left_out", diff->below + diff->noise + diff->beyond);
	tally_json_array(&json, "conditions");
	for (size_t i = 0; i < view->verdict_count; i++)
		put_verdict(&json, &view->verdicts[i]);
	tally_json_end(&json);
	tally_json_array(&json, "rows");
	for (size_t i = 0; i < diff->entries.count; i++)
		put_entry(&json, diff, view, &diff->entries.items[i]);
	tally_json_end(&json);
	tally_json_end(&json);
}
