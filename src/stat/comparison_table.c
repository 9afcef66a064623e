#include "base/terminal.h"
#include "stat/comparison_view.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_WIDTH = 40, COLUMNS = 5 };

static int width(const char *text)
{
	int columns = 0;
	for (; *text; text++)
		columns += (*text & 0xc0) != 0x80;
	return columns;
}

static void put(struct tally_buffer *out, const char *text, int columns, bool to_right)
{
	int gap = columns - width(text);
	for (int i = 0; to_right && i < gap; i++)
		tally_buffer_char(out, ' ');
	tally_buffer_text(out, text);
	for (int i = 0; !to_right && i < gap; i++)
		tally_buffer_char(out, ' ');
}

struct cells {
	char text[COLUMNS][TALLY_COMPARISON_TEXT];
};

static struct cells cells_of(const struct tally_compared_row *row)
{
	struct cells cells;
	tally_terminal_clean(row->name, cells.text[0], NAME_MAX_WIDTH + 1);
	tally_comparison_figure(row->old, cells.text[1]);
	tally_comparison_figure(row->new, cells.text[2]);
	tally_comparison_change(row, cells.text[3]);
	tally_comparison_remark(row, cells.text[4]);
	return cells;
}

static void put_line(struct tally_buffer *out, const struct cells *cells, const int widths[COLUMNS],
		     const char *ink)
{
	int last = COLUMNS - 1;
	while (last > 0 && !cells->text[last][0])
		last--;
	for (int i = 0; i <= last; i++) {
		const char *around = i == COLUMNS - 2 ? ink : "";
		bool to_right = i > 0 && i < COLUMNS - 1;
		tally_buffer_printf(out, "%s%s", i ? "  " : "", around);
		put(out, cells->text[i], to_right || i < last ? widths[i] : 0, to_right);
		tally_buffer_text(out, around[0] ? "\033[0m" : "");
	}
	tally_buffer_char(out, '\n');
}

static void put_side(struct tally_buffer *out, const char *word,
		     const struct tally_saved_counts *side)
{
	char path[256], command[512];
	tally_terminal_clean(side->path, path, sizeof(path));
	tally_terminal_clean(side->command, command, sizeof(command));
	tally_buffer_printf(out, "%s: %s", word, path);
	if (command[0])
		tally_buffer_printf(out, ", '%s'", command);
	if (side->runs)
		tally_buffer_printf(out, ", %lu run%s", side->runs, side->runs == 1 ? "" : "s");
	if (side->provider[0] && strcmp(side->provider, "kernel"))
		tally_buffer_printf(out, ", provider %s", side->provider);
	tally_buffer_char(out, '\n');
}

static void put_verdicts(struct tally_buffer *out, const struct tally_saved_comparison *comparison,
			 bool has_colours)
{
	for (size_t i = 0; i < comparison->conditions.count; i++) {
		const struct tally_judged_condition *judged = &comparison->conditions.items[i];
		bool is_unknown = judged->result == TALLY_CONDITION_UNKNOWN;
		bool is_bad = is_unknown || judged->result == TALLY_CONDITION_TRUE;
		char text[3 * TALLY_COMPARISON_TEXT];
		tally_comparison_verdict(judged, text);
		tally_buffer_printf(out, "%s%s%s%s  %s\n", i ? "" : "\n",
				    !has_colours ? ""
				    : is_bad     ? "\033[1;31m"
						 : "\033[32m",
				    is_unknown ? "NO ANSWER"
				    : is_bad   ? "FAILED"
					       : "passed",
				    has_colours ? "\033[0m" : "", text);
	}
}

void tally_comparison_table(const struct tally_saved_comparison *comparison, bool has_colours,
			    struct tally_buffer *out)
{
	static const struct cells heading = { { "EVENT", "OLD", "NEW", "CHANGE",
						"95 % INTERVAL" } };
	int widths[COLUMNS];
	for (int i = 0; i < COLUMNS; i++)
		widths[i] = width(heading.text[i]);
	for (size_t row = 0; row < comparison->rows.count; row++) {
		struct cells cells = cells_of(&comparison->rows.items[row]);
		for (int i = 0; i < COLUMNS; i++)
			widths[i] = width(cells.text[i]) > widths[i] ? width(cells.text[i])
								     : widths[i];
	}
	put_side(out, "old", comparison->old);
	put_side(out, "new", comparison->new);
	tally_buffer_char(out, '\n');
	put_line(out, &heading, widths, "");
	for (size_t row = 0; row < comparison->rows.count; row++) {
		const struct tally_compared_row *compared = &comparison->rows.items[row];
		struct cells cells = cells_of(compared);
		bool is_real = compared->has_change &&
			       compared->change.significance == TALLY_CHANGE_REAL;
		put_line(out, &cells, widths, has_colours && is_real ? "\033[1m" : "");
	}
	for (size_t i = 0; i < comparison->notes.count; i++) {
		char note[1024];
		tally_terminal_clean(comparison->notes.items[i], note, sizeof(note));
		tally_buffer_printf(out, "%snote: %s\n", i ? "" : "\n", note);
	}
	put_verdicts(out, comparison, has_colours);
}
