/* GitHub's Markdown, which other forges accept. */
#include "diff/diff_view.h"

#include <stdlib.h>
#include <string.h>

/* Names come from files: escape everything that could end a cell or begin markup. */
static void put_code(struct tally_buffer *out, const char *text)
{
	tally_buffer_char(out, '`');
	for (; *text; text++) {
		if (*text == '|')
			tally_buffer_char(out, '\\');
		tally_buffer_char(out, *text == '`' || *text == '\n' ? '\'' : *text);
	}
	tally_buffer_char(out, '`');
}

static void put_side(struct tally_buffer *out, const char *word, const struct tally_diff_side *side,
		     const char *const *paths)
{
	struct tally_buffer text = { 0 };
	tally_diff_side_text(side, paths, &text);
	tally_buffer_printf(out, "- %s ", word);
	put_code(out, tally_buffer_string(&text));
	tally_buffer_char(out, '\n');
	tally_buffer_release(&text);
}

static void put_row(const struct tally_diff *diff, const struct tally_diff_view *view,
		    const struct tally_diff_cells *cells, const struct tally_diff_entry *entry,
		    struct tally_buffer *out)
{
	for (int i = 0; i < TALLY_DIFF_COLUMNS; i++) {
		if (!tally_diff_has_column(diff, view, (enum tally_diff_column)i))
			continue;
		tally_buffer_text(out, "| ");
		if (entry && i >= TALLY_DIFF_COMM)
			put_code(out, cells->text[i]);
		else
			tally_buffer_printf(out,
					    entry && entry->is_change && i == TALLY_DIFF_CHANGE
						    ? "**%s**"
						    : "%s",
					    cells->text[i]);
		tally_buffer_char(out, ' ');
	}
	tally_buffer_text(out, "|\n");
}

void tally_diff_markdown(const struct tally_diff *diff, const struct tally_diff_view *view,
			 struct tally_buffer *out)
{
	struct tally_diff_cells *cells = malloc(sizeof(*cells));
	struct tally_buffer notes = { 0 };
	if (!cells) {
		out->failed = true;
		return;
	}
	put_side(out, "old", &diff->old, view->old_paths);
	put_side(out, "new", &diff->new, view->new_paths);
	tally_buffer_char(out, '\n');
	tally_diff_heading(diff, view, cells);
	put_row(diff, view, cells, NULL, out);
	for (int i = 0; i < TALLY_DIFF_COLUMNS; i++)
		if (tally_diff_has_column(diff, view, (enum tally_diff_column)i))
			tally_buffer_text(out, i < TALLY_DIFF_REMARK ? "|--:" : "|---");
	tally_buffer_text(out, "|\n");
	for (size_t i = 0; i < diff->entries.count; i++) {
		tally_diff_cells(diff, view, &diff->entries.items[i], cells);
		put_row(diff, view, cells, &diff->entries.items[i], out);
	}
	tally_diff_warning(diff, &notes);
	tally_diff_notes(diff, view, &notes);
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
