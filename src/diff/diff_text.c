#include "diff/diff_view.h"
#include "output/fit_text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

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

static void put_line(const struct diff_table *table, const struct tally_diff_cells *cells,
		     const char *ink)
{
	int last = last_column(table);
	tally_buffer_text(table->out, table->view->colours ? ink : "");
	for (int i = 0; i <= last; i++) {
		int gap = table->widths[i] - tally_text_width(cells->text[i]);
		if (!table->widths[i])
			continue;
		tally_buffer_text(table->out, i ? "  " : "");
		for (; !is_name(i) && gap > 0; gap--)
			tally_buffer_char(table->out, ' ');
		int used = tally_fit_text(table->out, cells->text[i],
					  i == last && !table->view->columns ? 0 : table->widths[i],
					  table->view->ascii);
		for (; is_name(i) && i < last && used < table->widths[i]; used++)
			tally_buffer_char(table->out, ' ');
	}
	tally_buffer_text(table->out, table->view->colours && ink[0] ? "\033[0m\n" : "\n");
}

static int left_for_last(const struct diff_table *table)
{
	int last = last_column(table), left = (int)table->view->columns;
	for (int i = 0; i < last; i++)
		left -= table->widths[i] ? table->widths[i] + 2 : 0;
	return left;
}

/* Drops or shrinks columns, the least useful first, until names have enough room. */
static void fit(struct diff_table *table)
{
	static const enum tally_diff_column ORDER[] = { TALLY_DIFF_WEIGHT, TALLY_DIFF_OBJECT,
							TALLY_DIFF_COMM, TALLY_DIFF_INTERVAL,
							TALLY_DIFF_REMARK };
	int last = last_column(table),
	    wanted = table->widths[last] < NAME_LEAST ? table->widths[last] : NAME_LEAST;
	if (!table->view->columns)
		return;
	for (size_t i = 0; i < sizeof(ORDER) / sizeof(ORDER[0]) && left_for_last(table) < wanted;
	     i++) {
		int *width = &table->widths[ORDER[i]], missing = wanted - left_for_last(table);
		if ((int)ORDER[i] != last)
			*width = ORDER[i] == TALLY_DIFF_OBJECT && *width - missing >= OBJECT_LEAST
					 ? *width - missing
					 : 0;
	}
	int left = left_for_last(table);
	if (table->widths[last] > left)
		table->widths[last] = left > NAME_LEAST ? left : wanted;
}

static void measure(struct diff_table *table, struct tally_diff_cells *cells)
{
	for (size_t row = 0; row <= table->diff->entries.count; row++) {
		if (row)
			tally_diff_cells(table->diff, table->view,
					 &table->diff->entries.items[row - 1], cells);
		else
			tally_diff_heading(table->diff, table->view, cells);
		for (int i = 0; i < TALLY_DIFF_COLUMNS; i++) {
			int width = tally_text_width(cells->text[i]);
			if (tally_diff_has_column(table->diff, table->view,
						  (enum tally_diff_column)i) &&
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
	tally_diff_side_text(&diff->old, table->view->old_paths, table->out);
	tally_buffer_text(table->out, "\nnew: ");
	tally_diff_side_text(&diff->new, table->view->new_paths, table->out);
	double old = (double)diff->old.weight / (double)diff->old.runs,
	       new = (double)diff->new.weight / (double)diff->new.runs;
	if (diff->has_weight && old > 0)
		tally_buffer_printf(table->out, " (%+.1f %%%s)", 100 * (new - old) / old,
				    diff->old.runs > 1 || diff->new.runs > 1 ? " a run" : "");
	tally_buffer_text(table->out, "\n\n");
}

static void put_notes(const struct diff_table *table, struct tally_buffer *notes)
{
	char *line = notes->bytes, *end;
	for (; line && (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		tally_wrap_text(table->out, line,
				table->view->columns ? (int)table->view->columns : INT_MAX);
		tally_buffer_char(table->out, '\n');
	}
}

void tally_diff_table(const struct tally_diff *diff, const struct tally_diff_view *view,
		      struct tally_buffer *out)
{
	struct diff_table table = { .diff = diff, .view = view, .out = out };
	struct tally_diff_cells *cells = malloc(sizeof(*cells));
	struct tally_buffer notes = { 0 };
	if (!cells) {
		out->failed = true;
		return;
	}
	measure(&table, cells);
	put_sides(&table);
	tally_diff_heading(diff, view, cells);
	put_line(&table, cells, "\033[1m");
	for (size_t i = 0; i < diff->entries.count; i++) {
		const struct tally_diff_entry *entry = &diff->entries.items[i];
		tally_diff_cells(diff, view, entry, cells);
		put_line(&table, cells,
			 !entry->is_change              ? "\033[2m"
			 : entry->change.difference > 0 ? "\033[31m"
							: "\033[34m");
	}
	tally_diff_notes(diff, view, &notes);
	tally_buffer_char(out, '\n');
	put_notes(&table, &notes);
	tally_buffer_release(&notes);
	free(cells);
}
