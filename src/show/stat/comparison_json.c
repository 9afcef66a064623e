/* Writes one document; docs/stat-output.md has the schema. */
#include "base/json.h"
#include "stat/stat.h"

/* Writes a text, or null if it is empty. */
static void show_text(struct tally_json *json, const char *name, const char *text)
{
	tally_json_text(json, name, text[0] ? text : NULL);
}

static void show_side(struct tally_json *json, const char *name,
		      const struct tally_saved_counts *side)
{
	tally_json_object(json, name);
	tally_json_text(json, "path", side->path);
	show_text(json, "command", side->command);
	show_text(json, "provider", side->provider);
	if (side->runs)
		tally_json_u64(json, "runs", side->runs);
	else
		tally_json_null(json, "runs");
	tally_json_end(json);
}

static void show_figure(struct tally_json *json, const char *name,
			const struct tally_saved_row *row)
{
	if (row && !row->missing)
		tally_json_double(json, name, row->figure.mean);
	else
		tally_json_null(json, name);
}

/* The spread over the runs, as far as it is known. */
static void show_runs(struct tally_json *json, const char *name, const struct tally_saved_row *row)
{
	if (!row || row->missing || row->figure.runs < 2 || row->figure.has_no_spread) {
		tally_json_null(json, name);
		return;
	}
	tally_json_object(json, name);
	tally_json_u64(json, "count", row->figure.runs);
	tally_json_double(json, "sigma", row->figure.sigma);
	tally_json_array(json, "values");
	for (size_t i = 0; i < row->values.count; i++)
		tally_json_double(json, NULL, row->values.items[i]);
	tally_json_end(json);
	tally_json_end(json);
}

static const char *significance_text(const struct tally_compared_row *row)
{
	static const char *const names[] = { [TALLY_CHANGE_NONE] = "none",
					     [TALLY_CHANGE_REAL] = "real",
					     [TALLY_CHANGE_NOISE] = "noise",
					     [TALLY_CHANGE_UNKNOWN] = "unknown" };
	if (row->has_change)
		return names[row->change.significance];
	return NULL;
}

static void show_row(struct tally_json *json, const struct tally_compared_row *row)
{
	const struct tally_change *change = &row->change;
	const struct tally_saved_row *any = row->new;
	if (!any)
		any = row->old;
	tally_json_object(json, NULL);
	tally_json_text(json, "name", row->name);
	tally_json_text(json, "unit", any->unit);
	show_figure(json, "old", row->old);
	show_figure(json, "new", row->new);
	if (row->has_change) {
		tally_json_double(json, "difference", change->difference);
		tally_json_double(json, "relative", change->relative);
	} else {
		tally_json_null(json, "difference");
		tally_json_null(json, "relative");
	}
	if (row->has_change) {
		tally_json_double(json, "low", change->low);
		tally_json_double(json, "high", change->high);
		tally_json_double(json, "p", change->p);
		tally_json_double(json, "adjusted_p", change->adjusted_p);
	} else {
		tally_json_null(json, "low");
		tally_json_null(json, "high");
		tally_json_null(json, "p");
		tally_json_null(json, "adjusted_p");
	}
	show_runs(json, "old_runs", row->old);
	show_runs(json, "new_runs", row->new);
	tally_json_text(json, "significance", significance_text(row));
	tally_json_bool(json, "repeatable",
			row->has_change && row->old->figure.repeats && row->new->figure.repeats);
	tally_json_end(json);
}

static void show_condition(struct tally_json *json, const struct tally_judged_condition *judged)
{
	static const char *const names[] = { [TALLY_CONDITION_FALSE] = "passed",
					     [TALLY_CONDITION_TRUE] = "failed",
					     [TALLY_CONDITION_NOISE] = "noise",
					     [TALLY_CONDITION_UNKNOWN] = "unknown" };
	tally_json_object(json, NULL);
	tally_json_text(json, "condition", judged->condition.text);
	tally_json_text(json, "event", judged->row ? judged->row->name : NULL);
	tally_json_text(json, "result", names[judged->result]);
	tally_json_end(json);
}

void tally_comparison_json(const struct tally_saved_comparison *comparison,
			   struct tally_buffer *out)
{
	struct tally_json json = { .out = out };
	tally_json_object(&json, NULL);
	tally_json_text(&json, "schema", "tally-compare");
	tally_json_u64(&json, "version", TALLY_COMPARE_JSON_VERSION);
	show_side(&json, "old", comparison->old);
	show_side(&json, "new", comparison->new);
	tally_json_bool(&json, "failed", comparison->has_failed);
	tally_json_array(&json, "conditions");
	for (size_t i = 0; i < comparison->conditions.count; i++)
		show_condition(&json, &comparison->conditions.items[i]);
	tally_json_end(&json);
	tally_json_array(&json, "events");
	for (size_t i = 0; i < comparison->rows.count; i++)
		show_row(&json, &comparison->rows.items[i]);
	tally_json_end(&json);
	tally_json_array(&json, "notes");
	for (size_t i = 0; i < comparison->notes.count; i++)
		tally_json_text(&json, NULL, comparison->notes.items[i]);
	tally_json_end(&json);
	tally_json_end(&json);
}
