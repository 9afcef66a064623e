#include "counts/saved_comparison.h"

#include <errno.h>
#include <string.h>

static void add_note(struct tally_saved_comparison *out, const char *note, int *result)
{
	if (!note || tally_vector_push(&out->notes, note) < 0)
		*result = -ENOMEM;
}

static bool has_note(const struct tally_saved_counts *side, const char *note)
{
	for (size_t i = 0; i < side->notes.count; i++)
		if (!strcmp(side->notes.items[i], note))
			return true;
	return false;
}

/* Notes remarks that only one side has: only a region counted, something not simulated. */
static void note_remarks(struct tally_saved_comparison *out, const struct tally_saved_counts *side,
			 const struct tally_saved_counts *other, struct tally_arena *arena,
			 int *result)
{
	for (size_t i = 0; i < side->notes.count; i++)
		if (!has_note(other, side->notes.items[i]))
			add_note(out,
				 tally_arena_printf(arena, "%s: %s", side->path,
						    side->notes.items[i]),
				 result);
	if (side->ended[0])
		add_note(out,
			 tally_arena_printf(arena, "%s: the command was ended by %s", side->path,
					    side->ended),
			 result);
}

static int note_differences(struct tally_saved_comparison *out, struct tally_arena *arena)
{
	const struct tally_saved_counts *old = out->old, *new = out->new;
	int result = 0;
	if (strcmp(old->machine, new->machine))
		add_note(out, "the simulated CPUs differ: misses are not comparable (--sim-cpu)",
			 &result);
	note_remarks(out, old, new, arena, &result);
	note_remarks(out, new, old, arena, &result);
	if (old->command[0] && new->command[0] && strcmp(old->command, new->command))
		add_note(out,
			 tally_arena_printf(arena, "the commands differ: %s; %s", old->command,
					    new->command),
			 &result);
	if (old->provider[0] && new->provider[0] && strcmp(old->provider, new->provider))
		add_note(out,
			 tally_arena_printf(arena,
					    "the counts are of different providers: %s and %s",
					    old->provider, new->provider),
			 &result);
	for (size_t i = 0; i < out->rows.count && !result; i++) {
		const struct tally_compared_row *row = &out->rows.items[i];
		if (!row->has_change)
			continue;
		if (row->old->is_user_only != row->new->is_user_only)
			add_note(
				out,
				tally_arena_printf(
					arena,
					"%s: one is user code's alone, the other has the kernel's too",
					row->name),
				&result);
		if (row->old->is_scaled || row->new->is_scaled)
			add_note(out,
				 tally_arena_printf(
					 arena,
					 "%s was not counted all of the time: it is an estimate",
					 row->name),
				 &result);
		if (row->old->is_substitute != row->new->is_substitute)
			add_note(out,
				 tally_arena_printf(arena, "%s: one is a substitute for the event",
						    row->name),
				 &result);
	}
	return result;
}

int tally_saved_compare(const struct tally_saved_counts *old, const struct tally_saved_counts *new,
			struct tally_arena *arena, struct tally_saved_comparison *out)
{
	*out = (struct tally_saved_comparison){ .old = old, .new = new };
	for (size_t i = 0; i < new->rows.count; i++) {
		const struct tally_saved_row *row = &new->rows.items[i];
		struct tally_compared_row both = { .name = row->name, .new = row,
						   .old = tally_saved_counts_find(old, row->name) };
		both.has_change = both.old && !both.old->missing && !row->missing;
		if (both.has_change)
			tally_change_of(&both.old->figure, &row->figure, &both.change);
		if (tally_vector_push(&out->rows, both) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < old->rows.count; i++) {
		const struct tally_saved_row *row = &old->rows.items[i];
		const struct tally_compared_row alone = { .name = row->name, .old = row };
		if (!tally_saved_counts_find(new, row->name) &&
		    tally_vector_push(&out->rows, alone) < 0)
			return -ENOMEM;
	}
	return note_differences(out, arena);
}

static const struct tally_compared_row *find_row(const struct tally_saved_comparison *comparison,
						 const char *name)
{
	const struct tally_saved_row *new = tally_saved_counts_find(comparison->new, name);
	for (size_t i = 0; new && i < comparison->rows.count; i++)
		if (comparison->rows.items[i].new == new)
			return &comparison->rows.items[i];
	return NULL;
}

static int why_unknown(const struct tally_saved_comparison *comparison,
		       const struct tally_condition *condition,
		       const struct tally_compared_row *row, struct tally_error *err)
{
	const struct tally_saved_counts *old = comparison->old, *new = comparison->new;
	const struct tally_saved_counts *ended = new->ended[0] ? new : old->ended[0] ? old : NULL;
	if (ended)
		return tally_error_set(err, -ENOENT,
				       "'%s' can't be judged: the command of %s was ended by %s",
				       condition->text, ended->path, ended->ended);
	bool lacks_old = row && (!row->old || row->old->missing);
	const struct tally_saved_row *side = row ? lacks_old ? row->old : row->new : NULL;
	return tally_error_set(err, -ENOENT, "'%s' can't be judged: %s has no figure for %s%s%s%s",
			       condition->text, lacks_old ? old->path : new->path, condition->name,
			       side ? " (" : "", side ? side->missing : "", side ? ")" : "");
}

int tally_saved_compare_judge(struct tally_saved_comparison *comparison,
			      const struct tally_condition *condition, bool past_noise,
			      struct tally_error *err)
{
	const struct tally_compared_row *row = find_row(comparison, condition->name);
	struct tally_judged_condition judged = { .condition = *condition, .row = row, .scale = 1,
						 .result = TALLY_CONDITION_UNKNOWN };
	bool is_whole = !comparison->old->ended[0] && !comparison->new->ended[0];
	if (row && row->has_change && is_whole) {
		/* clocks are shown in msec */
		judged.scale = strcmp(row->new->unit, "ns") ? 1 : 1e-6;
		judged.result = tally_condition_judge(condition, &row->new->figure, &row->change,
						      judged.scale);
	}
	if (judged.result == TALLY_CONDITION_NOISE && past_noise)
		judged.result = TALLY_CONDITION_TRUE;
	comparison->has_failed |= judged.result == TALLY_CONDITION_TRUE;
	if (tally_vector_push(&comparison->conditions, judged) < 0)
		return tally_error_set(err, -ENOMEM, "out of memory");
	return judged.result == TALLY_CONDITION_UNKNOWN
		       ? why_unknown(comparison, condition, row, err)
		       : 0;
}

void tally_saved_comparison_release(struct tally_saved_comparison *comparison)
{
	tally_vector_release(&comparison->rows);
	tally_vector_release(&comparison->conditions);
	tally_vector_release(&comparison->notes);
}
