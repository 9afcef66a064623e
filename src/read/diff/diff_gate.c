/* Compares the sides once more without limits on rows, and judges each condition over all rows. */
#include "diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static const char *name_of(const struct tally_match *match,
			   const struct tally_diff_options *options,
			   const struct tally_diff_entry *entry)
{
	uint32_t string = entry->comm;
	if (options->by_object)
		string = entry->object;
	if (options->by_symbol)
		string = entry->symbol;
	if (string == TALLY_STRING_NONE)
		return NULL;
	return tally_strings_text(&match->names.strings, string);
}

/* True if `name` is the typed name, or begins with it and goes on like "calc(int)" or "helper
 * (a.c)". */
static bool begins_with(const char *name, const char *typed)
{
	size_t length = strlen(typed);
	const char *behind = name + length;
	return !strncmp(name, typed, length) &&
	       (!*behind || *behind == '(' || !strncmp(behind, " (", 2) ||
		!strncmp(behind, " [", 2));
}

/* A gate must not depend on which other functions happened to be sampled.  So a function may be
 * typed without its parameters even if it is shown with them, and the other way round. */
static bool is_called(const struct tally_match *match, const struct tally_diff_entry *entry,
		      const char *name, const char *typed)
{
	return begins_with(name, typed) ||
	       (entry->full != TALLY_STRING_NONE &&
		begins_with(tally_strings_text(&match->names.strings, entry->full), typed));
}

static enum tally_condition_result judge_entry(const struct tally_condition *condition,
					       const struct tally_diff_entry *entry)
{
	const struct tally_share_difference *difference = &entry->change;
	const struct tally_figure new = { .mean = difference->new };
	double relative = 0;
	if (difference->difference != 0)
		relative = INFINITY;
	if (difference->difference != 0 && difference->old > 0)
		relative = difference->difference / difference->old;
	const struct tally_change change = {
		.difference = difference->difference,
		.relative = relative,
		.significance = entry->is_change ? TALLY_CHANGE_REAL : TALLY_CHANGE_NOISE,
	};
	return tally_condition_judge(condition, &new, &change, 1);
}

/* Rows are in the order of their change.  The first row that fails decides, else the first row
 * whose change may be chance. */
static void judge(const struct tally_match *match, const struct tally_diff_options *options,
		  const struct tally_diff *diff, struct tally_diff_verdict *verdict)
{
	bool is_any = !strcmp(verdict->condition.name, "*");
	if (is_any)
		verdict->result = TALLY_CONDITION_FALSE;
	else
		verdict->result = TALLY_CONDITION_UNKNOWN;
	for (size_t i = 0; i < diff->entries.count && verdict->result != TALLY_CONDITION_TRUE;
	     i++) {
		const struct tally_diff_entry *entry = &diff->entries.items[i];
		const char *name = name_of(match, options, entry);
		if (!name || (!is_any && !is_called(match, entry, name, verdict->condition.name)))
			continue;
		enum tally_condition_result result = judge_entry(&verdict->condition, entry);
		bool is_first = verdict->result == TALLY_CONDITION_UNKNOWN;
		bool is_worse = result == TALLY_CONDITION_TRUE ||
				(result == TALLY_CONDITION_NOISE &&
				 verdict->result == TALLY_CONDITION_FALSE);
		if (!is_first && !is_worse)
			continue;
		verdict->result = result;
		verdict->name = name;
		verdict->old = entry->change.old;
		verdict->new = entry->change.new;
	}
}

int tally_diff_judge(const struct tally_match *match, const struct tally_diff_options *options,
		     bool past_noise, struct tally_diff_verdict *verdicts, size_t count,
		     struct tally_error *err)
{
	struct tally_diff_options whole = *options;
	struct tally_diff diff = { 0 };
	whole.percent_min = 0;
	whole.limit = 0;
	whole.noise_limit = SIZE_MAX;
	int result = 0;
	if (count)
		result = tally_diff_build(match, &whole, &diff);
	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++) {
		struct tally_diff_verdict *verdict = &verdicts[i];
		judge(match, options, &diff, verdict);
		if (verdict->result == TALLY_CONDITION_NOISE && past_noise)
			verdict->result = TALLY_CONDITION_TRUE;
		if (verdict->result != TALLY_CONDITION_UNKNOWN || result < 0)
			continue;
		result = tally_error_set(err, -ENOENT,
					 "'%s' can't be judged: neither side has samples of %s",
					 verdict->condition.text, verdict->condition.name);
		tally_error_hint(
			err,
			"use names as in the table (-n 1000 --percent-limit 0 shows all), or * for "
			"any");
	}
	tally_diff_release(&diff);
	return result;
}
