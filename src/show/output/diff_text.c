/* A comparison as text: a table for people, Markdown for a pull request. */
#include "base/number_text.h"
#include "base/terminal.h"
#include "output/output.h"
#include "output/output_text.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum tally_diff_column {
	TALLY_DIFF_OLD,
	TALLY_DIFF_NEW,
	TALLY_DIFF_CHANGE,
	TALLY_DIFF_INTERVAL,
	TALLY_DIFF_WEIGHT,
	TALLY_DIFF_REMARK,
	TALLY_DIFF_COMM,
	TALLY_DIFF_OBJECT,
	TALLY_DIFF_SYMBOL,
	TALLY_DIFF_COLUMNS
};

enum { TALLY_DIFF_CELL = 1024 };

struct diff_cells {
	char text[TALLY_DIFF_COLUMNS][TALLY_DIFF_CELL]; /* without terminal escapes */
};

static void put_weight(struct tally_buffer *out, double weight, const struct tally_diff *diff,
		       bool has_sign)
{
	struct tally_buffer number = { 0 };
	if (fabs(weight) < 0.5) {
		tally_buffer_char(out, '0');
		return;
	}
	tally_flame_weight(&number, fabs(weight), diff->new.unit, "");
	if (weight < 0)
		tally_buffer_char(out, '-');
	else if (has_sign)
		tally_buffer_char(out, '+');
	tally_buffer_text(out, tally_buffer_string(&number));
	tally_buffer_release(&number);
}

static void put_figure(struct tally_buffer *out, const struct tally_diff *diff,
		       const struct tally_diff_view *view, double value, bool has_sign)
{
	if (view->options->measure == TALLY_MEASURE_WEIGHT) {
		put_weight(out, value, diff, has_sign);
		return;
	}
	int decimals = 0;
	if (view->options->measure == TALLY_MEASURE_SHARE)
		decimals = 2;
	if (has_sign && value != 0)
		tally_buffer_printf(out, "%+.*f", decimals, value);
	else
		tally_buffer_printf(out, "%.*f", decimals, value);
}

static void keep(struct tally_buffer *text, char out[TALLY_DIFF_CELL])
{
	tally_terminal_clean_name(tally_buffer_string(text), out, TALLY_DIFF_CELL);
	tally_buffer_clear(text);
}

static bool diff_has_column(const struct tally_diff *diff, const struct tally_diff_view *view,
			    enum tally_diff_column column)
{
	switch (column) {
	case TALLY_DIFF_WEIGHT:
		return diff->has_weight && view->options->measure == TALLY_MEASURE_SHARE &&
		       strcmp(diff->new.unit, "samples");
	case TALLY_DIFF_COMM:
		return view->options->by_comm;
	case TALLY_DIFF_OBJECT:
		return view->options->by_object;
	case TALLY_DIFF_SYMBOL:
		return view->options->by_symbol;
	default:
		return true;
	}
}

static void diff_heading(const struct tally_diff *diff, const struct tally_diff_view *view,
			 struct diff_cells *out)
{
	bool is_share = view->options->measure == TALLY_MEASURE_SHARE;
	static const char *const titles[TALLY_DIFF_COLUMNS] = {
		"OLD", "NEW", "CHANGE", "95 % INTERVAL", "", "", "COMMAND", "OBJECT", "FUNCTION"
	};
	for (int i = 0; i < TALLY_DIFF_COLUMNS; i++)
		snprintf(out->text[i], TALLY_DIFF_CELL, "%s%s", titles[i],
			 is_share && i <= TALLY_DIFF_NEW ? " %" : "");
	snprintf(out->text[TALLY_DIFF_WEIGHT], TALLY_DIFF_CELL, "%s",
		 strcmp(diff->new.unit, "ns") ? "EVENTS" : "TIME");
}

static const char *name_of(const struct tally_diff_view *view, uint32_t string)
{
	return tally_strings_text(&view->match->names.strings, string);
}

static const char *name_or(const struct tally_diff_view *view, uint32_t string,
			   const char *fallback)
{
	if (string == TALLY_STRING_NONE)
		return fallback;
	return name_of(view, string);
}

/* "f (was f.isra.0 of ./old)" */
static void put_names(const struct tally_diff_view *view, const struct tally_diff_entry *entry,
		      struct diff_cells *out)
{
	struct tally_buffer text = { 0 };
	tally_buffer_text(&text, name_or(view, entry->comm, ""));
	keep(&text, out->text[TALLY_DIFF_COMM]);
	tally_buffer_text(&text, name_or(view, entry->object, "[unknown]"));
	if (entry->was_object != TALLY_STRING_NONE)
		tally_buffer_printf(&text, " (was %s)", name_of(view, entry->was_object));
	keep(&text, out->text[TALLY_DIFF_OBJECT]);
	tally_buffer_text(&text, name_or(view, entry->symbol, "[no stack]"));
	if (entry->was_symbol != TALLY_STRING_NONE)
		tally_buffer_printf(&text, " (was %s)", name_of(view, entry->was_symbol));
	keep(&text, out->text[TALLY_DIFF_SYMBOL]);
	tally_buffer_release(&text);
}

static const char *remark(const struct tally_diff_entry *entry)
{
	static const char *const remarks[] = {
		[TALLY_DIFF_BOTH] = "",
		[TALLY_DIFF_ONLY_OLD] = "removed",
		[TALLY_DIFF_ONLY_NEW] = "added",
	};
	if (!entry->is_change)
		return "noise";
	return remarks[entry->presence];
}

static void diff_cells(const struct tally_diff *diff, const struct tally_diff_view *view,
		       const struct tally_diff_entry *entry, struct diff_cells *out)
{
	struct tally_buffer text = { 0 };
	const struct tally_share_difference *change = &entry->change;
	put_figure(&text, diff, view, change->old, false);
	keep(&text, out->text[TALLY_DIFF_OLD]);
	put_figure(&text, diff, view, change->new, false);
	keep(&text, out->text[TALLY_DIFF_NEW]);
	put_figure(&text, diff, view, change->difference, true);
	keep(&text, out->text[TALLY_DIFF_CHANGE]);
	put_figure(&text, diff, view, change->low, true);
	tally_buffer_text(&text, view->ascii ? " .. " : " \u2026 ");
	put_figure(&text, diff, view, change->high, true);
	keep(&text, out->text[TALLY_DIFF_INTERVAL]);
	put_weight(&text, entry->weight.difference, diff, true);
	keep(&text, out->text[TALLY_DIFF_WEIGHT]);
	tally_buffer_text(&text, remark(entry));
	keep(&text, out->text[TALLY_DIFF_REMARK]);
	tally_buffer_release(&text);
	put_names(view, entry, out);
}

/* Appends "old.data: 1,234 samples, 1.24 s of cpu-clock" for one side. */
static void diff_side_text(const struct tally_diff_side *side, const char *const *paths,
			   struct tally_buffer *out)
{
	struct tally_buffer text = { 0 };
	for (size_t i = 0; i < side->runs; i++) {
		if (i)
			tally_buffer_text(&text, ", ");
		tally_buffer_text(&text, paths[i]);
	}
	tally_buffer_text(&text, ": ");
	tally_flame_weight(&text, (double)side->samples, "samples", "");
	if (strcmp(side->unit, "samples")) {
		tally_buffer_text(&text, ", ");
		if (side->is_saturated)
			tally_buffer_text(&text, "at least ");
		tally_flame_weight(&text, (double)side->weight, side->unit, side->event);
	}
	if (side->event[0] && strcmp(side->unit, "events"))
		tally_buffer_printf(&text, " of %s", side->event);
	char clean[2048];
	tally_terminal_clean_name(tally_buffer_string(&text), clean, sizeof(clean));
	tally_buffer_text(out, clean);
	tally_buffer_release(&text);
}

static void note_matches(const struct tally_diff_view *view, struct tally_buffer *out)
{
	const struct tally_stacks *names = &view->match->names;
	char old[256], new[256];
	if (view->match->comm_now == UINT32_MAX || !view->options->by_comm)
		return;
	tally_terminal_clean_name(
		name_of(view, names->threads.items[view->match->comm_formerly].comm), old,
		sizeof(old));
	tally_terminal_clean_name(name_of(view, names->threads.items[view->match->comm_now].comm),
				  new, sizeof(new));
	tally_buffer_printf(out, "the command '%s' is compared with '%s'\n", old, new);
}

static void put_verdict(const struct tally_diff_verdict *verdict, struct tally_buffer *out)
{
	static const char *const words[] = { [TALLY_CONDITION_FALSE] = "passed",
					     [TALLY_CONDITION_TRUE] = "FAILED",
					     [TALLY_CONDITION_NOISE] = "passed",
					     [TALLY_CONDITION_UNKNOWN] = "NO ANSWER" };
	char condition[TALLY_DIFF_CELL], name[TALLY_DIFF_CELL];
	tally_terminal_clean_name(verdict->condition.text, condition, sizeof(condition));
	tally_buffer_printf(out, "%s  %s", words[verdict->result], condition);
	if (verdict->name) {
		tally_terminal_clean_name(verdict->name, name, sizeof(name));
		tally_buffer_text(out, ": ");
		if (!strcmp(verdict->condition.name, "*"))
			tally_buffer_printf(out, "%s, ", name);
		tally_buffer_printf(out, "%.6g became %.6g", verdict->old, verdict->new);
		if (verdict->result == TALLY_CONDITION_NOISE)
			tally_buffer_text(out, ", which is within the noise");
	}
	tally_buffer_char(out, '\n');
}

/* Explains why a row says "noise" although its interval excludes 0. */
static void note_noise(const struct tally_diff *diff, struct tally_buffer *out)
{
	size_t count = 0;
	for (size_t i = 0; i < diff->entries.count; i++) {
		const struct tally_diff_entry *entry = &diff->entries.items[i];
		count += !entry->is_change && (entry->change.low > 0 || entry->change.high < 0);
	}
	if (count)
		tally_buffer_printf(
			out,
			"%s row%s called noise, although 0 is outside of the interval: of %s "
			"compared rows, chance alone does that to one in twenty\n",
			tally_number(count), count == 1 ? " is" : "s are",
			tally_number(diff->compared));
}

/* Appends the lines below the table, each with a newline: omissions, matches, and the limits of the
 * comparison. */
static void diff_notes(const struct tally_diff *diff, const struct tally_diff_view *view,
		       struct tally_buffer *out)
{
	const char *what = "row";
	if (view->options->by_symbol)
		what = "function";
	tally_buffer_printf(out, "%s of %s %ss changed by more than chance\n",
			    tally_number(diff->changes), tally_number(diff->compared), what);
	if (diff->noise || diff->below || diff->beyond) {
		tally_buffer_text(out, "left out:");
		const char *separator = " ";
		if (diff->noise) {
			tally_buffer_printf(out, "%s%s more within the noise (-n)", separator,
					    tally_number(diff->noise));
			separator = ", ";
		}
		if (diff->beyond) {
			tally_buffer_printf(out, "%s%s beyond -n", separator,
					    tally_number(diff->beyond));
			separator = ", ";
		}
		if (diff->below)
			tally_buffer_printf(out, "%s%s below %g %% on both sides (--percent-limit)",
					    separator, tally_number(diff->below),
					    view->options->percent_min);
		if (diff->below_changes)
			tally_buffer_printf(out, ", of which %s changed",
					    tally_number(diff->below_changes));
		tally_buffer_char(out, '\n');
	}
	note_noise(diff, out);
	note_matches(view, out);
	if (diff->changes && diff->has_weight && view->options->measure == TALLY_MEASURE_SHARE &&
	    !strcmp(diff->new.unit, "ns"))
		tally_buffer_text(
			out,
			"shares add up to 100 %: if one grows, others shrink; --normalize time "
			"compares times\n");
	if (diff->old.runs < 2 && diff->new.runs < 2)
		tally_buffer_text(
			out,
			"intervals cover sampling only; with several recordings per side (--old, "
			"--new) they cover variation between runs\n");
	for (size_t i = 0; i < view->verdict_count; i++)
		put_verdict(&view->verdicts[i], out);
}

void tally_diff_warning(const struct tally_diff *diff, struct tally_buffer *out)
{
	char old[128], new[128];
	if (!strcmp(diff->old.event, diff->new.event))
		return;
	tally_terminal_clean_name(diff->old.event, old, sizeof(old));
	tally_terminal_clean_name(diff->new.event, new, sizeof(new));
	tally_buffer_printf(out, "the events differ, '%s' and '%s': that alone may change shares\n",
			    old, new);
}

enum { NAME_LEAST = 28, OBJECT_MAX = 32, OBJECT_LEAST = 10 };

struct diff_table {
	const struct tally_diff *diff;
	const struct tally_diff_view *view;
	int widths[TALLY_DIFF_COLUMNS]; /* 0: the column is not shown */
	struct tally_buffer *out;
};

static bool is_name(int column)
{
	return column >= TALLY_DIFF_REMARK;
}

static int last_column(const struct diff_table *table)
{
	int last = TALLY_DIFF_COLUMNS - 1;
	while (!table->widths[last])
		last--;
	return last;
}

static void put_line(const struct diff_table *table, const struct diff_cells *cells,
		     const char *ink)
{
	int last = last_column(table);
	if (table->view->colours)
		tally_buffer_text(table->out, ink);
	for (int i = 0; i <= last; i++) {
		int gap = table->widths[i] - tally_text_width(cells->text[i]);
		int width = table->widths[i];
		if (!width)
			continue;
		if (i)
			tally_buffer_text(table->out, "  ");
		for (; !is_name(i) && gap > 0; gap--)
			tally_buffer_char(table->out, ' ');
		if (i == last && !table->view->columns)
			width = 0;
		int used = tally_fit_text(table->out, cells->text[i], width, table->view->ascii);
		for (; is_name(i) && i < last && used < width; used++)
			tally_buffer_char(table->out, ' ');
	}
	if (table->view->colours && ink[0])
		tally_buffer_text(table->out, "\033[0m");
	tally_buffer_char(table->out, '\n');
}

static int left_for_last(const struct diff_table *table)
{
	int last = last_column(table), left = (int)table->view->columns;
	for (int i = 0; i < last; i++)
		if (table->widths[i])
			left -= table->widths[i] + 2;
	return left;
}

/* Drops or shrinks columns, the least useful first, until names have enough room. */
static void fit(struct diff_table *table)
{
	static const enum tally_diff_column ORDER[] = { TALLY_DIFF_WEIGHT, TALLY_DIFF_OBJECT,
							TALLY_DIFF_COMM, TALLY_DIFF_INTERVAL,
							TALLY_DIFF_REMARK };
	int last = last_column(table), wanted = NAME_LEAST;
	if (!table->view->columns)
		return;
	if (table->widths[last] < wanted)
		wanted = table->widths[last];
	for (size_t i = 0; i < sizeof(ORDER) / sizeof(ORDER[0]) && left_for_last(table) < wanted;
	     i++) {
		int *width = &table->widths[ORDER[i]], missing = wanted - left_for_last(table);
		if ((int)ORDER[i] == last)
			continue;
		if (ORDER[i] == TALLY_DIFF_OBJECT && *width - missing >= OBJECT_LEAST)
			*width -= missing;
		else
			*width = 0;
	}
	int left = left_for_last(table);
	if (table->widths[last] <= left)
		return;
	table->widths[last] = wanted;
	if (left > NAME_LEAST)
		table->widths[last] = left;
}

static void measure(struct diff_table *table, struct diff_cells *cells)
{
	for (size_t row = 0; row <= table->diff->entries.count; row++) {
		if (row)
			diff_cells(table->diff, table->view, &table->diff->entries.items[row - 1],
				   cells);
		else
			diff_heading(table->diff, table->view, cells);
		for (int i = 0; i < TALLY_DIFF_COLUMNS; i++) {
			int width = tally_text_width(cells->text[i]);
			if (diff_has_column(table->diff, table->view, (enum tally_diff_column)i) &&
			    width > table->widths[i])
				table->widths[i] = width;
		}
	}
	if (table->widths[TALLY_DIFF_OBJECT] > OBJECT_MAX)
		table->widths[TALLY_DIFF_OBJECT] = OBJECT_MAX;
	fit(table);
}

static void put_sides(const struct diff_table *table)
{
	const struct tally_diff *diff = table->diff;
	tally_buffer_text(table->out, "old: ");
	diff_side_text(&diff->old, table->view->old_paths, table->out);
	tally_buffer_text(table->out, "\nnew: ");
	diff_side_text(&diff->new, table->view->new_paths, table->out);
	double old = (double)diff->old.weight / (double)diff->old.runs,
	       new = (double)diff->new.weight / (double)diff->new.runs;
	if (diff->has_weight && old > 0) {
		tally_buffer_printf(table->out, " (%+.1f %%", 100 * (new - old) / old);
		if (diff->old.runs > 1 || diff->new.runs > 1)
			tally_buffer_text(table->out, " a run");
		tally_buffer_char(table->out, ')');
	}
	tally_buffer_text(table->out, "\n\n");
}

static void put_notes(const struct diff_table *table, struct tally_buffer *notes)
{
	char *line = notes->bytes, *end;
	int columns = INT_MAX;
	if (table->view->columns)
		columns = (int)table->view->columns;
	for (; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		tally_wrap_text(table->out, line, columns);
		tally_buffer_char(table->out, '\n');
	}
}

/* Returns red for a share that grew, blue for one that shrank, faint for noise. */
static const char *ink_of(const struct tally_diff_entry *entry)
{
	if (!entry->is_change)
		return "\033[2m";
	if (entry->change.difference > 0)
		return "\033[31m";
	return "\033[34m";
}

void tally_diff_table(const struct tally_diff *diff, const struct tally_diff_view *view,
		      struct tally_buffer *out)
{
	struct diff_table table = { .diff = diff, .view = view, .out = out };
	struct diff_cells *cells = malloc(sizeof(*cells));
	struct tally_buffer notes = { 0 };
	if (!cells) {
		out->failed = true;
		return;
	}
	measure(&table, cells);
	put_sides(&table);
	diff_heading(diff, view, cells);
	put_line(&table, cells, "\033[1m");
	for (size_t i = 0; i < diff->entries.count; i++) {
		const struct tally_diff_entry *entry = &diff->entries.items[i];
		diff_cells(diff, view, entry, cells);
		put_line(&table, cells, ink_of(entry));
	}
	diff_notes(diff, view, &notes);
	tally_buffer_char(out, '\n');
	put_notes(&table, &notes);
	tally_buffer_release(&notes);
	free(cells);
}

/* --- Markdown -------------------------------------------------------------- */

/* Names come from files: escape everything that could end a cell or begin markup. */
static void put_code(struct tally_buffer *out, const char *text)
{
	tally_buffer_char(out, '`');
	for (; *text; text++) {
		if (*text == '|')
			tally_buffer_char(out, '\\');
		if (*text == '`' || *text == '\n')
			tally_buffer_char(out, '\'');
		else
			tally_buffer_char(out, *text);
	}
	tally_buffer_char(out, '`');
}

static void put_side(struct tally_buffer *out, const char *word, const struct tally_diff_side *side,
		     const char *const *paths)
{
	struct tally_buffer text = { 0 };
	diff_side_text(side, paths, &text);
	tally_buffer_printf(out, "- %s ", word);
	put_code(out, tally_buffer_string(&text));
	tally_buffer_char(out, '\n');
	tally_buffer_release(&text);
}

static void put_row(const struct tally_diff *diff, const struct tally_diff_view *view,
		    const struct diff_cells *cells, const struct tally_diff_entry *entry,
		    struct tally_buffer *out)
{
	for (int i = 0; i < TALLY_DIFF_COLUMNS; i++) {
		if (!diff_has_column(diff, view, (enum tally_diff_column)i))
			continue;
		tally_buffer_text(out, "| ");
		if (entry && i >= TALLY_DIFF_COMM)
			put_code(out, cells->text[i]);
		else if (entry && entry->is_change && i == TALLY_DIFF_CHANGE)
			tally_buffer_printf(out, "**%s**", cells->text[i]);
		else
			tally_buffer_text(out, cells->text[i]);
		tally_buffer_char(out, ' ');
	}
	tally_buffer_text(out, "|\n");
}

void tally_diff_markdown(const struct tally_diff *diff, const struct tally_diff_view *view,
			 struct tally_buffer *out)
{
	struct diff_cells *cells = malloc(sizeof(*cells));
	struct tally_buffer notes = { 0 };
	if (!cells) {
		out->failed = true;
		return;
	}
	put_side(out, "old", &diff->old, view->old_paths);
	put_side(out, "new", &diff->new, view->new_paths);
	tally_buffer_char(out, '\n');
	diff_heading(diff, view, cells);
	put_row(diff, view, cells, NULL, out);
	for (int i = 0; i < TALLY_DIFF_COLUMNS; i++)
		if (diff_has_column(diff, view, (enum tally_diff_column)i))
			tally_buffer_text(out, i < TALLY_DIFF_REMARK ? "|--:" : "|---");
	tally_buffer_text(out, "|\n");
	for (size_t i = 0; i < diff->entries.count; i++) {
		diff_cells(diff, view, &diff->entries.items[i], cells);
		put_row(diff, view, cells, &diff->entries.items[i], out);
	}
	tally_diff_warning(diff, &notes);
	diff_notes(diff, view, &notes);
	tally_buffer_char(out, '\n');
	for (const char *line = tally_buffer_string(&notes), *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		tally_buffer_text(out, "- ");
		for (; line < end; line++) {
			if (strchr("|<>*_`[]\\", *line))
				tally_buffer_char(out, '\\');
			tally_buffer_char(out, *line);
		}
		tally_buffer_char(out, '\n');
	}
	tally_buffer_release(&notes);
	free(cells);
}
