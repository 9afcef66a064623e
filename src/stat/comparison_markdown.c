/* GitHub's Markdown, which other forges accept: the verdicts, then a table. */
#include "base/terminal.h"
#include "stat/comparison_view.h"

#include <stdio.h>
#include <string.h>

/* Names come from files: escape everything that could end a cell or begin markup. */
static void put_code(struct tally_buffer *out, const char *text)
{
	char clean[512];
	tally_terminal_clean(text, clean, sizeof(clean));
	tally_buffer_char(out, '`');
	for (const char *c = clean; *c; c++) {
		if (*c == '|')
			tally_buffer_char(out, '\\');
		tally_buffer_char(out, *c == '`' || *c == '\n' ? '\'' : *c);
	}
	tally_buffer_char(out, '`');
}

/* Units and states come from files: escapes them. */
static void put_cell(struct tally_buffer *out, const char *text)
{
	tally_buffer_text(out, " | ");
	for (; *text; text++) {
		if (strchr("|<>*_`[]\\", *text))
			tally_buffer_char(out, '\\');
		tally_buffer_char(out, *text);
	}
}

static void put_row(struct tally_buffer *out, const struct tally_compared_row *row)
{
	char old[TALLY_COMPARISON_TEXT], new[TALLY_COMPARISON_TEXT], change[TALLY_COMPARISON_TEXT];
	char remark[TALLY_COMPARISON_TEXT];
	tally_comparison_figure(row->old, old);
	tally_comparison_figure(row->new, new);
	tally_comparison_change(row, change);
	tally_comparison_remark(row, remark);
	tally_buffer_text(out, "| ");
	put_code(out, row->name);
	put_cell(out, old);
	put_cell(out, new);
	bool is_real = row->has_change && row->change.significance == TALLY_CHANGE_REAL;
	tally_buffer_printf(out, is_real ? " | **%s**" : " | %s", change);
	put_cell(out, remark);
	tally_buffer_text(out, " |\n");
}

void tally_comparison_markdown(const struct tally_saved_comparison *comparison,
			       struct tally_buffer *out)
{
	for (size_t i = 0; i < comparison->conditions.count; i++) {
		const struct tally_judged_condition *judged = &comparison->conditions.items[i];
		char text[3 * TALLY_COMPARISON_TEXT];
		tally_comparison_verdict(judged, text);
		tally_buffer_printf(out, "- %s ",
				    judged->result == TALLY_CONDITION_TRUE      ? "**failed**"
				    : judged->result == TALLY_CONDITION_UNKNOWN ? "**no answer**"
										: "passed");
		put_code(out, text);
		tally_buffer_char(out, '\n');
	}
	tally_buffer_printf(
		out, "%s| event | old | new | change | 95 %% interval |\n|---|--:|--:|--:|---|\n",
		comparison->conditions.count ? "\n" : "");
	for (size_t i = 0; i < comparison->rows.count; i++)
		put_row(out, &comparison->rows.items[i]);
	for (size_t i = 0; i < comparison->notes.count; i++) {
		tally_buffer_text(out, i ? "- " : "\n- ");
		put_code(out, comparison->notes.items[i]);
		tally_buffer_char(out, '\n');
	}
}
