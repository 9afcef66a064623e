/* The browsed report on a screen:
 *
 *     what was measured
 *     titles of the columns
 *     lines
 *     keys, or what is typed, or a message; and where in the report this is
 */
#include "output/browse.h"

#include "base/buffer.h"
#include "output/fit_text.h"
#include "output/report_cells.h"

#include <stdio.h>
#include <string.h>

enum { GAP = 2, SHRUNK_MIN = 8, LAST_MIN = 28, ROWS_MIN = 4, HEAD_ROWS = 2, ELLIPSIS = 2, SHARE_WIDTH = 8,
       ERROR_WIDTH = 7 };

/* A row that is being put together from left to right. */
struct row {
	struct tally_screen *screen;
	const char *search; /* marked where it is met */
	int y, x, columns;
	unsigned style; /* of all of it: TALLY_STYLE_CURSOR or 0 */
};

static void put_raw(struct row *row, unsigned style, const char *text)
{
	char clean[TALLY_REPORT_CELL_BYTES];
	size_t n = 0;
	for (; *text && n + 1 < sizeof(clean); text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x80 || !row->screen->ascii)
			clean[n++] = c < ' ' ? ' ' : (char)c;
		else if (c >= 0xc0) /* begins a character that this terminal may not have */
			clean[n++] = '?';
	}
	clean[n] = '\0';
	if (!*clean)
		return;
	row->screen->ops->put(row->screen, row->y, row->x, style | row->style, clean);
	row->x += tally_text_width(clean);
}

static void put_marked(struct row *row, unsigned style, const char *text)
{
	const char *match = tally_browse_match(text, row->search);
	char before[TALLY_REPORT_CELL_BYTES], word[TALLY_BROWSE_WORD_BYTES];
	if (!match) {
		put_raw(row, style, text);
		return;
	}
	snprintf(before, sizeof(before), "%.*s", (int)(match - text), text);
	snprintf(word, sizeof(word), "%.*s", (int)strlen(row->search), match);
	put_raw(row, style, before);
	put_raw(row, style | TALLY_STYLE_MATCH, word);
	put_raw(row, style, match + strlen(word));
}

/* In `width` columns, or what the row has left: cut, or filled up with blanks. */
static void put_text(struct row *row, unsigned style, const char *text, int width)
{
	int left = row->columns - row->x;
	width = width < left ? width : left;
	if (width <= 0)
		return;
	struct tally_buffer fitted = { 0 };
	if (width <= ELLIPSIS && tally_text_width(text) > width)
		text = "";
	int used = tally_fit_text(&fitted, text, width, row->screen->ascii);
	put_marked(row, style, tally_buffer_string(&fitted));
	tally_buffer_release(&fitted);
	if (used < width) {
		char blanks[8];
		for (int n = width - used; n > 0; n -= (int)sizeof(blanks) - 1) {
			snprintf(blanks, sizeof(blanks), "%*s", n < (int)sizeof(blanks) - 1 ? n : (int)sizeof(blanks) - 1, "");
			put_raw(row, style, blanks);
		}
	}
}

static void put_rest(struct row *row, unsigned style, const char *text)
{
	put_text(row, style, text, row->columns - row->x);
}

/* ---- the report's lines ---------------------------------------------------------------------------------- */

static unsigned heat(double percent)
{
	return percent >= 5 ? TALLY_STYLE_HOT : percent >= 1 ? TALLY_STYLE_WARM : TALLY_STYLE_DIM;
}

static double percent_of(const struct tally_browser *browser, uint64_t weight)
{
	uint64_t period = browser->browse.report->period;
	return period ? 100.0 * (double)weight / (double)period : 0;
}

static bool shows_errors(const struct tally_browser *browser, int columns)
{
	return browser->errors || columns >= TALLY_REPORT_ERROR_COLUMNS;
}

static int lead_width(const struct tally_browser *browser, int columns)
{
	int share = SHARE_WIDTH + (shows_errors(browser, columns) ? ERROR_WIDTH : 0);
	return 1 + GAP + (browser->options->children ? 2 * share : share);
}

static void put_share(struct row *row, const struct tally_browser *browser, uint64_t weight, uint64_t samples)
{
	char text[32];
	double percent = percent_of(browser, weight);
	snprintf(text, sizeof(text), "%7.2f%%", percent);
	put_text(row, heat(percent), text, SHARE_WIDTH);
	if (!shows_errors(browser, row->columns))
		return;
	snprintf(text, sizeof(text), "%*.2f", ERROR_WIDTH, tally_report_error(browser->browse.report, weight, samples));
	put_text(row, TALLY_STYLE_DIM, text, ERROR_WIDTH);
}

static void put_share_title(struct row *row, const struct tally_browser *browser, const char *title, bool sorted)
{
	put_text(row, sorted ? TALLY_STYLE_BOLD : TALLY_STYLE_DIM, title, SHARE_WIDTH);
	if (shows_errors(browser, row->columns))
		put_text(row, TALLY_STYLE_DIM, row->screen->ascii ? "     +-" : "      ±", ERROR_WIDTH);
}

/* Widths for this screen: where the last column has too little room, commands and objects give of theirs. */
static void fit_columns(const struct tally_browser *browser, int columns, int widths[TALLY_SORT_KEYS])
{
	const struct tally_browse *browse = &browser->browse;
	int used = lead_width(browser, columns);
	unsigned count = browse->column_count;
	for (unsigned i = 0; i < count; i++) {
		widths[i] = browse->columns[i].width;
		used += i + 1 < count ? widths[i] + GAP : 0;
	}
	int last = count ? widths[count - 1] : 0;
	last = last < LAST_MIN ? last : LAST_MIN;
	while (used + last > columns) {
		unsigned widest = count;
		for (unsigned i = 0; i + 1 < count; i++) {
			bool shrinks = tally_report_key_shrinks(browse->columns[i].key);
			if (shrinks && widths[i] > SHRUNK_MIN && (widest == count || widths[i] > widths[widest]))
				widest = i;
		}
		if (widest == count)
			break;
		widths[widest]--;
		used--;
	}
}

static void put_titles(struct row *row, const struct tally_browser *browser, const int *widths)
{
	const struct tally_browse *browse = &browser->browse;
	put_text(row, TALLY_STYLE_DIM, "", 1);
	if (browser->options->children)
		put_share_title(row, browser, "   TOTAL", !browser->options->by_self);
	put_share_title(row, browser, "    SELF", browser->options->by_self);
	put_text(row, TALLY_STYLE_DIM, "", GAP);
	for (unsigned i = 0; i < browse->column_count; i++) {
		put_text(row, TALLY_STYLE_DIM, tally_sort_key_words(browse->columns[i].key)->title, widths[i]);
		put_text(row, TALLY_STYLE_DIM, "", GAP);
	}
}

static const char *marker(const struct row *row, bool can_open, bool is_open)
{
	if (row->screen->ascii)
		return !can_open ? " " : is_open ? "-" : "+";
	return !can_open ? " " : is_open ? "▾" : "▸";
}

static void put_entry(struct row *row, const struct tally_browser *browser, const struct tally_browse_line *line,
		      const int *widths)
{
	const struct tally_browse *browse = &browser->browse;
	const struct tally_report_entry *entry = &browse->report->entries.items[line->entry];
	char cell[TALLY_REPORT_CELL_BYTES];
	put_text(row, TALLY_STYLE_DIM, marker(row, line->can_open, line->is_open), 1);
	if (browser->options->children)
		put_share(row, browser, entry->total, entry->total_samples);
	put_share(row, browser, entry->self, entry->self_samples);
	put_text(row, 0, "", GAP);
	for (unsigned i = 0; i < browse->column_count; i++) {
		bool last = i + 1 == browse->column_count;
		tally_report_cell(browse->names, entry, browse->columns[i].key, cell, sizeof(cell));
		put_text(row, TALLY_STYLE_PLAIN, cell, last ? row->columns - row->x : widths[i]);
		put_text(row, 0, "", GAP);
	}
}

static void put_branch(struct row *row, const struct tally_browser *browser, const struct tally_browse_line *line)
{
	enum { START = 4, LEVEL = 2 };
	const struct tally_names *names = browser->browse.names;
	bool ascii = row->screen->ascii;
	/* Deep trees leave half of a narrow screen to their names. */
	int levels = (row->columns / 2 - START) / LEVEL, from = line->indent > levels ? line->indent - levels : 0;
	char name[TALLY_REPORT_CELL_BYTES];
	uint32_t function = line->branch->function;
	put_text(row, 0, "", START);
	for (int i = from; i < line->indent; i++)
		put_text(row, TALLY_STYLE_DIM, !(line->rails >> i & 1) ? "" : ascii ? "|" : "│", LEVEL);
	if (line->is_straight) {
		put_text(row, 0, "", LEVEL);
	} else {
		char share[32];
		double percent = percent_of(browser, line->branch->weight);
		put_text(row, TALLY_STYLE_DIM, line->is_last ? (ascii ? "`" : "└") : ascii ? "|" : "├", 1);
		put_text(row, TALLY_STYLE_DIM, line->can_open ? marker(row, true, line->is_open) : ascii ? "-" : "─", LEVEL);
		int length = snprintf(share, sizeof(share), "%.2f%%", percent);
		put_text(row, heat(percent), share, length + 1);
	}
	tally_report_function(names, function, name, sizeof(name) - sizeof(" (inlined)"));
	put_text(row, TALLY_STYLE_PLAIN, name, tally_text_width(name));
	if (function != UINT32_MAX && names->functions.items[function].kind == TALLY_FRAME_INLINED)
		put_text(row, TALLY_STYLE_DIM, " (inlined)", 10);
	put_rest(row, 0, "");
}

static bool is_filtered(const struct tally_browse *browse)
{
	return browse->filter[0] || browse->object != TALLY_STRING_NONE;
}

static void put_nothing(struct row *row, const struct tally_browser *browser)
{
	const struct tally_browse *browse = &browser->browse;
	bool filtered = is_filtered(browse);
	put_text(row, 0, "", GAP);
	put_rest(row, TALLY_STYLE_DIM, filtered ? "nothing passes the filter; Esc shows all" :
				       browse->report->hidden ? "all is below the limit; P changes it" :
				       browser->live ? "nothing was sampled yet" : "no samples");
}

static void put_lines(struct tally_browser *browser, int rows, int columns, const int *widths)
{
	const struct tally_browse *browse = &browser->browse;
	struct row row = { .screen = browser->screen, .search = browse->search, .columns = columns };
	int y = HEAD_ROWS;
	for (size_t i = browse->top; i < browse->lines.count && y < rows - 1; i++, y++) {
		const struct tally_browse_line *line = &browse->lines.items[i];
		row.y = y;
		row.x = 0;
		row.style = i == browse->cursor ? TALLY_STYLE_CURSOR : 0;
		if (line->branch)
			put_branch(&row, browser, line);
		else
			put_entry(&row, browser, line, widths);
	}
	row = (struct row){ .screen = browser->screen, .search = "", .columns = columns, .y = y };
	if (!browse->lines.count)
		put_nothing(&row, browser);
	else if (y < rows - 1 && browse->report->hidden && !is_filtered(browse)) {
		char text[TALLY_BROWSER_TEXT_BYTES];
		snprintf(text, sizeof(text), "%zu more%s", browse->report->hidden,
			 browser->options->limit ? "" : " below the limit; P changes it");
		put_text(&row, 0, "", GAP);
		put_rest(&row, TALLY_STYLE_DIM, text);
	}
}

/* ---- the line at the bottom ------------------------------------------------------------------------------ */

static void describe_place(const struct tally_browser *browser, char *out, size_t size)
{
	const struct tally_browse *browse = &browser->browse;
	int n = 0;
	if (browse->object != TALLY_STRING_NONE) {
		const char *path = tally_strings_text(&browse->names->strings, browse->object), *slash = strrchr(path, '/');
		n += snprintf(out + n, size - (size_t)n, " %.40s ", slash ? slash + 1 : path);
	}
	if (browse->filter[0])
		n += snprintf(out + n, size - (size_t)n, " '%.40s' ", browse->filter);
	snprintf(out + n, size - (size_t)n, " %zu/%zu ", browse->lines.count ? browse->cursor + 1 : 0, browse->lines.count);
}

static void put_footer(struct tally_browser *browser, int rows, int columns)
{
	static const struct { enum tally_browser_mode mode; const char *prompt; } prompts[] = {
		{ TALLY_BROWSER_SEARCH, "search: " }, { TALLY_BROWSER_FILTER, "only what has: " },
		{ TALLY_BROWSER_PERCENT, "leave out what is below %: " },
	};
	char text[TALLY_BROWSER_TEXT_BYTES + TALLY_BROWSE_WORD_BYTES], place[TALLY_BROWSER_TEXT_BYTES] = "";
	struct row row = { .screen = browser->screen, .search = "", .y = rows - 1, .columns = columns };
	const char *hints = browser->live ? " ? help  / search  f filter  s columns  p pause  z reset  q quit" :
			    columns >= 100 ? " ? help  Enter opens  c callers/callees  / search  f filter  s columns  "
					     "d object  a annotate  q quit" :
					     " ? help  Enter opens  c callers  / search  f filter  s columns  q quit";
	snprintf(text, sizeof(text), browser->message[0] ? " %s" : "%s", browser->message[0] ? browser->message : hints);
	for (unsigned i = 0; i < sizeof(prompts) / sizeof(prompts[0]); i++)
		if (browser->mode == prompts[i].mode)
			snprintf(text, sizeof(text), " %s%s%s", prompts[i].prompt, browser->input,
				 browser->screen->ascii ? "_" : "▏");
	describe_place(browser, place, sizeof(place));
	int width = tally_text_width(place);
	if (width > columns / 2)
		width = 0;
	put_text(&row, TALLY_STYLE_BAR, text, columns - width);
	if (width)
		put_rest(&row, TALLY_STYLE_BAR, place);
}

/* ---- boxes ----------------------------------------------------------------------------------------------- */

static void put_edge(struct row *row, const char *left, const char *middle, const char *right, int width)
{
	put_text(row, TALLY_STYLE_DIM, left, 1);
	for (int i = 0; i < width - 2; i++)
		put_text(row, TALLY_STYLE_DIM, middle, 1);
	put_text(row, TALLY_STYLE_DIM, right, 1);
}

/* Lines in a frame in the middle; "key\ttext" has keys stand out. */
static void put_box(struct tally_browser *browser, int rows, int columns, const char *const *lines, size_t count,
		    size_t chosen)
{
	enum { KEY_WIDTH = 13 };
	bool ascii = browser->screen->ascii;
	int widest = 0, shown = (int)count < rows - 2 ? (int)count : rows - 2;
	for (size_t i = 0; i < count; i++) {
		const char *tab = strchr(lines[i], '\t');
		int width = tab ? KEY_WIDTH + tally_text_width(tab + 1) : tally_text_width(lines[i]);
		widest = width > widest ? width : widest;
	}
	int width = widest + 4 < columns ? widest + 4 : columns;
	int x = (columns - width) / 2, y = (rows - shown - 2) / 2;
	struct row row = { .screen = browser->screen, .search = "", .columns = x + width, .y = y, .x = x };
	put_edge(&row, ascii ? "+" : "╭", ascii ? "-" : "─", ascii ? "+" : "╮", width);
	for (int i = 0; i < shown; i++) {
		const char *tab = strchr(lines[i], '\t');
		row.y = y + 1 + i;
		row.x = x;
		put_text(&row, TALLY_STYLE_DIM, ascii ? "|" : "│", 2);
		row.columns = x + width - 2;
		row.style = (size_t)i == chosen ? TALLY_STYLE_CURSOR : 0;
		if (tab) {
			char key[TALLY_BROWSER_TEXT_BYTES];
			snprintf(key, sizeof(key), "%.*s", (int)(tab - lines[i]), lines[i]);
			put_text(&row, TALLY_STYLE_BOLD, key, KEY_WIDTH);
		}
		put_rest(&row, TALLY_STYLE_PLAIN, tab ? tab + 1 : lines[i]);
		row.columns = x + width;
		row.style = 0;
		put_text(&row, TALLY_STYLE_DIM, ascii ? " |" : " │", 2);
	}
	row.y = y + 1 + shown;
	row.x = x;
	put_edge(&row, ascii ? "+" : "╰", ascii ? "-" : "─", ascii ? "+" : "╯", width);
}

const char *const *tally_browser_help(const struct tally_browser *browser)
{
	static const char *const report[] = {
		"j k\tdown, up (also the arrows)", "PgUp PgDn\ta page (also b, Space)", "g G\tto the first, to the last (Home, End)",
		"Enter +\topen or close a call tree", "Right Left\topen; close, or go to what is above",
		"e E\topen all trees, close all", "c\ttrees of callers, or of callees",
		"/ n N\tsearch; the next, the one before", "f\tonly what has a word in a cell",
		"d\tonly this object, or all again", "P\tleave out what is below so many %",
		"s\tcolumns and order", "t\tthreads apart, or together", "Tab\tthe next event",
		"a\tannotate the function", "Esc\tends filter and search; then leaves", "q Ctrl-C\tleave", NULL,
	};
	static const char *const live[] = {
		"j k\tdown, up (also the arrows)", "PgUp PgDn\ta page (also b, Space)", "g G\tto the first, to the last (Home, End)",
		"/ n N\tsearch; the next, the one before", "f\tonly what has a word in a cell",
		"d\tonly this object, or all again", "P\tleave out what is below so many %",
		"s\tcolumns", "t\tthreads apart, or together", "Tab\tthe next event", "p\tpause, or go on", "z\tbegin again from nothing",
		"Esc\tends filter and search; then leaves", "q Ctrl-C\tleave", NULL,
	};
	return browser->live ? live : report;
}

static void put_help(struct tally_browser *browser, int rows, int columns)
{
	const char *const *lines = tally_browser_help(browser);
	size_t count = 0;
	while (lines[count])
		count++;
	put_box(browser, rows, columns, lines, count, SIZE_MAX);
}

static void put_menu(struct tally_browser *browser, int rows, int columns)
{
	char texts[TALLY_BROWSER_MENU_LINES][64];
	const char *lines[TALLY_BROWSER_MENU_LINES];
	for (unsigned i = 0; i < TALLY_BROWSER_MENU_LINES; i++) {
		struct tally_browser_choice choice = tally_browser_choice(browser, i);
		snprintf(texts[i], sizeof(texts[i]), "[%c] %-22s %c", choice.is_on ? 'x' : ' ', choice.name, choice.letter);
		lines[i] = texts[i];
	}
	put_box(browser, rows, columns, lines, TALLY_BROWSER_MENU_LINES, browser->menu);
}

void tally_browser_draw(struct tally_browser *browser)
{
	const struct tally_screen_ops *ops = browser->screen->ops;
	int rows, columns, widths[TALLY_SORT_KEYS];
	ops->size(browser->screen, &rows, &columns);
	ops->clear(browser->screen);
	if (rows >= ROWS_MIN && columns > 0) {
		struct row row = { .screen = browser->screen, .search = "", .columns = columns };
		tally_browse_resize(&browser->browse, (size_t)(rows - HEAD_ROWS - 1));
		fit_columns(browser, columns, widths);
		put_rest(&row, TALLY_STYLE_BOLD, browser->title);
		row.y = 1;
		row.x = 0;
		put_titles(&row, browser, widths);
		put_lines(browser, rows, columns, widths);
		put_footer(browser, rows, columns);
		if (browser->mode == TALLY_BROWSER_HELP)
			put_help(browser, rows, columns);
		if (browser->mode == TALLY_BROWSER_COLUMNS)
			put_menu(browser, rows, columns);
	}
	ops->show(browser->screen);
}
