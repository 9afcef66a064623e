/* Saved counts compared, as text: a table for people, Markdown for a pull request. */
#include "base/characters.h"
#include "base/extremes.h"
#include "base/terminal.h"
#include "base/text.h"
#include "stat/stat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TALLY_COMPARISON_TEXT = 128 };

/* Writes a value of the row's unit: "1,234.5 msec".  Returns the length. */
static size_t put_value(const struct tally_saved_row *row, double value,
			char out[TALLY_COMPARISON_TEXT])
{
	char number[64], unit[24] = "";
	int decimals = 2;
	tally_terminal_clean_name(row->unit, unit, sizeof(unit));
	if (!strcmp(row->unit, "ns")) {
		value /= 1e6;
		snprintf(unit, sizeof(unit), "msec");
	}
	double size = fabs(value);
	if (!strcmp(row->unit, "s"))
		decimals = size < 0.1 ? 6 : 4;
	else if (!row->unit[0] && (size >= 100 || size == (double)(long)size))
		decimals = 0;
	tally_stat_number(value, decimals, number, sizeof(number));
	return (size_t)snprintf(out, TALLY_COMPARISON_TEXT, "%s%s%s", number, unit[0] ? " " : "",
				unit);
}

/* "1,234.5 msec ± 2 %"; "—" if there is no row; "<not-supported>" if it has no figure. */
static void comparison_figure(const struct tally_saved_row *row, char out[TALLY_COMPARISON_TEXT])
{
	char clean[TALLY_COMPARISON_TEXT - 32];
	if (!row) {
		snprintf(out, TALLY_COMPARISON_TEXT, "—");
		return;
	}
	if (row->missing) {
		tally_terminal_clean_name(row->missing, clean, sizeof(clean));
		if (clean[0] == '<')
			snprintf(out, TALLY_COMPARISON_TEXT, "%s", clean);
		else
			snprintf(out, TALLY_COMPARISON_TEXT, "<%s>", clean);
		return;
	}
	size_t used = put_value(row, row->figure.mean, out);
	const struct tally_figure *figure = &row->figure;
	double percent = 100 * figure->sigma / fabs(figure->mean);
	if (figure->runs > 1 && !figure->has_no_spread && figure->sigma > 0 && isfinite(percent) &&
	    used < TALLY_COMPARISON_TEXT)
		snprintf(out + used, TALLY_COMPARISON_TEXT - used, " ± %.*f %%", percent < 10,
			 percent);
}

/* Chooses decimals so that about three digits are significant: 12.3 %, 1.25 %, 0.0004 %. */
static int decimals_of(double percent)
{
	double size = fabs(percent);
	if (size >= 10)
		return 1;
	if (size >= 0.1 || size == 0)
		return 2;
	if (size >= 0.001)
		return 4;
	return 6;
}

/* "+1.25 %"; "" if there is none. */
static void comparison_change(const struct tally_compared_row *row, char out[TALLY_COMPARISON_TEXT])
{
	double percent = 100 * row->change.relative;
	out[0] = 0;
	if (!row->has_change)
		return;
	if (isinf(percent))
		snprintf(out, TALLY_COMPARISON_TEXT, "from none");
	else if (percent == 0)
		snprintf(out, TALLY_COMPARISON_TEXT, "0 %%");
	else
		snprintf(out, TALLY_COMPARISON_TEXT, "%+.*f %%", decimals_of(percent), percent);
}

/* Only a change that stands out among all events is emphasized. */
static bool is_real_change(const struct tally_compared_row *row)
{
	return row->has_change && row->change.significance == TALLY_CHANGE_REAL &&
	       !tally_change_is_doubtful(&row->change);
}

/* "−0.5 … +2.6 %, within the noise": the interval, and whether the change is significant. */
static void comparison_remark(const struct tally_compared_row *row, char out[TALLY_COMPARISON_TEXT])
{
	const struct tally_change *change = &row->change;
	size_t used = 0;
	out[0] = 0;
	if (!row->has_change)
		return;
	if (change->has_interval) {
		int decimals = decimals_of(100 * (change->high - change->low));
		if (change->low <= -0.1 || change->high >= 0.1)
			decimals = 1;
		used = (size_t)snprintf(out, TALLY_COMPARISON_TEXT, "%+.*f … %+.*f %%", decimals,
					100 * change->low, decimals, 100 * change->high);
	}
	bool is_unknown = change->significance == TALLY_CHANGE_UNKNOWN;
	bool is_mean = row->old->figure.has_no_spread || row->new->figure.has_no_spread;
	const char *words = "";
	if (is_unknown && is_mean)
		words = "spread unknown";
	else if (is_unknown)
		words = "one run: it may be chance";
	else if (change->significance == TALLY_CHANGE_NOISE && change->difference != 0)
		words = "within the noise";
	else if (tally_change_is_doubtful(change))
		words = "one of several events: may be chance";
	else if (row->old->figure.repeats && row->new->figure.repeats)
		words = "repeatable";
	if (words[0] && used < TALLY_COMPARISON_TEXT)
		snprintf(out + used, TALLY_COMPARISON_TEXT - used, "%s%s", used ? ", " : "", words);
}

/* "instructions > +1%: +1.25 %", followed by the result in words. */
static void comparison_verdict(const struct tally_judged_condition *judged,
			       char out[3 * TALLY_COMPARISON_TEXT])
{
	char figure[TALLY_COMPARISON_TEXT], condition[TALLY_COMPARISON_TEXT];
	if (judged->result == TALLY_CONDITION_UNKNOWN)
		snprintf(figure, sizeof(figure), "can't be judged");
	else if (judged->condition.kind == TALLY_LIMIT_RELATIVE)
		comparison_change(judged->row, figure);
	else if (judged->condition.kind == TALLY_LIMIT_VALUE)
		comparison_figure(judged->row->new, figure);
	else
		snprintf(figure, sizeof(figure), "%+.6g",
			 judged->scale * judged->row->change.difference);
	tally_terminal_clean_name(judged->condition.text, condition, sizeof(condition));
	snprintf(out, 3 * TALLY_COMPARISON_TEXT, "%s: %s%s", condition, figure,
		 judged->result == TALLY_CONDITION_NOISE ? ", which is within the noise" : "");
}

enum { NAME_MAX_WIDTH = 40, COLUMNS = 5 };

static int width(const char *text)
{
	int columns = 0;
	for (; *text; text++)
		columns += tally_begins_character(*text);
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
	tally_terminal_clean_name(row->name, cells.text[0], NAME_MAX_WIDTH + 1);
	comparison_figure(row->old, cells.text[1]);
	comparison_figure(row->new, cells.text[2]);
	comparison_change(row, cells.text[3]);
	comparison_remark(row, cells.text[4]);
	return cells;
}

static void put_line(struct tally_buffer *out, const struct cells *cells, const int widths[COLUMNS],
		     const char *ink)
{
	int last = COLUMNS - 1;
	while (last > 0 && !cells->text[last][0])
		last--;
	for (int i = 0; i <= last; i++) {
		bool to_right = i > 0 && i < COLUMNS - 1, has_ink = i == COLUMNS - 2 && ink[0];
		if (i)
			tally_buffer_text(out, "  ");
		if (has_ink)
			tally_buffer_text(out, ink);
		put(out, cells->text[i], to_right || i < last ? widths[i] : 0, to_right);
		if (has_ink)
			tally_buffer_text(out, "\033[0m");
	}
	tally_buffer_char(out, '\n');
}

static void put_side(struct tally_buffer *out, const char *word,
		     const struct tally_saved_counts *side)
{
	char path[256], command[512];
	tally_terminal_clean_name(side->path, path, sizeof(path));
	tally_terminal_clean_name(side->command, command, sizeof(command));
	if (side->is_measured)
		tally_buffer_printf(out, "%s: '%s'", word, path);
	else
		tally_buffer_printf(out, "%s: %s", word, path);
	if (command[0] && !side->is_measured)
		tally_buffer_printf(out, ", '%s'", command);
	if (side->runs)
		tally_buffer_printf(out, ", %lu run%s", side->runs, tally_plural(side->runs));
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
		const char *colour = "\033[32m", *word = "passed";
		if (is_bad) {
			colour = "\033[1;31m";
			word = is_unknown ? "NO ANSWER" : "FAILED";
		}
		comparison_verdict(judged, text);
		if (!i)
			tally_buffer_char(out, '\n');
		if (has_colours)
			tally_buffer_printf(out, "%s%s\033[0m  %s\n", colour, word, text);
		else
			tally_buffer_printf(out, "%s  %s\n", word, text);
	}
}

/* "0.2513 s … 0.3012 s"; "" unless the runs are known and differ. */
static void comparison_range(const struct tally_saved_row *row, char out[TALLY_COMPARISON_TEXT])
{
	char least[TALLY_COMPARISON_TEXT], most[TALLY_COMPARISON_TEXT];
	out[0] = 0;
	if (!row || row->missing || row->values.count < 2)
		return;
	double low = row->values.items[0], high = low;
	for (size_t i = 1; i < row->values.count; i++) {
		low = tally_min_double(low, row->values.items[i]);
		high = tally_max_double(high, row->values.items[i]);
	}
	if (!(low < high))
		return;
	put_value(row, low, least);
	put_value(row, high, most);
	snprintf(out, TALLY_COMPARISON_TEXT, "%.55s … %.55s", least, most);
}

static struct cells range_cells_of(const struct tally_compared_row *row)
{
	struct cells cells = { 0 };
	comparison_range(row->old, cells.text[1]);
	comparison_range(row->new, cells.text[2]);
	if (cells.text[1][0] || cells.text[2][0])
		tally_terminal_clean_name(row->name, cells.text[0], NAME_MAX_WIDTH + 1);
	return cells;
}

/* Prints a table with a line for each row whose cells have a name; nothing if there is none.  `ink`
 * is for real changes. */
static void put_rows(struct tally_buffer *out, const struct tally_saved_comparison *comparison,
		     const struct cells *heading,
		     struct cells (*cells_of_row)(const struct tally_compared_row *row),
		     const char *ink)
{
	int widths[COLUMNS];
	size_t shown = 0;
	for (int i = 0; i < COLUMNS; i++)
		widths[i] = width(heading->text[i]);
	for (size_t row = 0; row < comparison->rows.count; row++) {
		struct cells cells = cells_of_row(&comparison->rows.items[row]);
		for (int i = 0; i < COLUMNS; i++)
			widths[i] = (int)tally_max_i64(widths[i], width(cells.text[i]));
	}
	for (size_t row = 0; row < comparison->rows.count; row++) {
		const struct tally_compared_row *compared = &comparison->rows.items[row];
		struct cells cells = cells_of_row(compared);
		if (!cells.text[0][0])
			continue;
		if (!shown++) {
			tally_buffer_char(out, '\n');
			put_line(out, heading, widths, "");
		}
		put_line(out, &cells, widths, is_real_change(compared) ? ink : "");
	}
}

void tally_comparison_table(const struct tally_saved_comparison *comparison, bool has_colours,
			    struct tally_buffer *out)
{
	static const struct cells heading = { { "EVENT", "OLD", "NEW", "CHANGE",
						"95 % INTERVAL" } };
	static const struct cells ranges = { { "EVENT", "OLD, MIN … MAX", "NEW, MIN … MAX" } };
	const char *bold = has_colours ? "\033[1m" : "";
	put_side(out, "old", comparison->old);
	put_side(out, "new", comparison->new);
	put_rows(out, comparison, &heading, cells_of, bold);
	put_rows(out, comparison, &ranges, range_cells_of, "");
	for (size_t i = 0; i < comparison->notes.count; i++) {
		char note[1024];
		tally_terminal_clean_name(comparison->notes.items[i], note, sizeof(note));
		if (!i)
			tally_buffer_char(out, '\n');
		tally_buffer_printf(out, "note: %s\n", note);
	}
	put_verdicts(out, comparison, has_colours);
}

/* --- Markdown -------------------------------------------------------------- */

/* Names come from files: escape everything that could end a cell or begin markup. */
static void put_code(struct tally_buffer *out, const char *text)
{
	char clean[512];
	tally_terminal_clean_name(text, clean, sizeof(clean));
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
	comparison_figure(row->old, old);
	comparison_figure(row->new, new);
	comparison_change(row, change);
	comparison_remark(row, remark);
	tally_buffer_text(out, "| ");
	put_code(out, row->name);
	put_cell(out, old);
	put_cell(out, new);
	tally_buffer_printf(out, is_real_change(row) ? " | **%s**" : " | %s", change);
	put_cell(out, remark);
	tally_buffer_text(out, " |\n");
}

void tally_comparison_markdown(const struct tally_saved_comparison *comparison,
			       struct tally_buffer *out)
{
	for (size_t i = 0; i < comparison->conditions.count; i++) {
		const struct tally_judged_condition *judged = &comparison->conditions.items[i];
		const char *word = "passed";
		char text[3 * TALLY_COMPARISON_TEXT];
		if (judged->result == TALLY_CONDITION_TRUE)
			word = "**failed**";
		else if (judged->result == TALLY_CONDITION_UNKNOWN)
			word = "**no answer**";
		comparison_verdict(judged, text);
		tally_buffer_printf(out, "- %s ", word);
		put_code(out, text);
		tally_buffer_char(out, '\n');
	}
	if (comparison->conditions.count)
		tally_buffer_char(out, '\n');
	tally_buffer_text(
		out, "| event | old | new | change | 95 % interval |\n|---|--:|--:|--:|---|\n");
	for (size_t i = 0; i < comparison->rows.count; i++)
		put_row(out, &comparison->rows.items[i]);
	for (size_t i = 0; i < comparison->notes.count; i++) {
		if (!i)
			tally_buffer_char(out, '\n');
		tally_buffer_text(out, "- ");
		put_code(out, comparison->notes.items[i]);
		tally_buffer_char(out, '\n');
	}
}
