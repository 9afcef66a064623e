/* The browsed report on a screen:
 *
 *     event, samples and circumstances
 *     titles of the columns
 *     lines
 *     keys, input or a message; and the position in the report
 */
#include "browse/browse.h"

#include "base/buffer.h"
#include "base/number_text.h"
#include "base/terminal.h"
#include "output/output.h"
#include "output/output_text.h"

#include <stdio.h>
#include <string.h>

enum {
	GAP = 2,
	SHRUNK_MIN = 8,
	LAST_MIN = 28,
	NAMES_MIN = 14,
	ROWS_MIN = 4,
	HEAD_ROWS = 2,
	SHARE_WIDTH = 8,
	ERROR_WIDTH = 7,
	HINTS_MIN = 15,
	ELLIPSIS = 2
};

/* ---- a row of the screen ------------------------------------------------- */

/* The row is put together from left to right. */
struct drawn_row {
	struct tally_screen *screen;
	const char *search; /* highlighted in the text */
	int y, x, columns;
	unsigned style; /* style of the whole row: TALLY_STYLE_CURSOR or 0 */
};

static void put_raw(struct drawn_row *row, unsigned style, const char *text)
{
	char clean[TALLY_REPORT_CELL_BYTES];
	size_t n = 0;
	for (; *text && n + 1 < sizeof(clean); text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x80 || !row->screen->ascii)
			clean[n++] = (char)c;
		else if (c >= 0xc0) /* begins a character that this terminal may lack */
			clean[n++] = '?';
	}
	clean[n] = '\0';
	if (!*clean)
		return;
	row->screen->ops->put(row->screen, row->y, row->x, style | row->style, clean);
	row->x += tally_text_width(clean);
}

static void put_marked(struct drawn_row *row, unsigned style, const char *text)
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

/* Puts text in `width` columns, or in those left in the row: cleaned like a name, cut, or padded with
 * blanks. */
static void row_put(struct drawn_row *row, unsigned style, const char *text, int width)
{
	int left = row->columns - row->x;
	if (width > left)
		width = left;
	if (width <= 0)
		return;
	struct tally_buffer clean = { 0 }, fitted = { 0 };
	tally_put_name(&clean, text);
	text = tally_buffer_string(&clean);
	if (width <= ELLIPSIS && tally_text_width(text) > width)
		text = "";
	int used = tally_fit_text(&fitted, text, width, row->screen->ascii);
	put_marked(row, style, tally_buffer_string(&fitted));
	tally_buffer_release(&fitted);
	tally_buffer_release(&clean);
	if (used < width) {
		char blanks[8];
		for (int n = width - used; n > 0; n -= (int)sizeof(blanks) - 1) {
			snprintf(blanks, sizeof(blanks), "%*s",
				 n < (int)sizeof(blanks) - 1 ? n : (int)sizeof(blanks) - 1, "");
			put_raw(row, style, blanks);
		}
	}
}

static void row_put_rest(struct drawn_row *row, unsigned style, const char *text)
{
	row_put(row, style, text, row->columns - row->x);
}

/* Which of an entry's columns fit on the screen. */
struct fit {
	bool total, self, errors, waits;
	int widths[TALLY_SORT_KEYS]; /* 0: not shown */
};

/* ---- the report's lines -------------------------------------------------- */

static unsigned heat(double percent)
{
	if (percent >= 5)
		return TALLY_STYLE_HOT;
	if (percent >= 1)
		return TALLY_STYLE_WARM;
	return TALLY_STYLE_DIM;
}

static double percent_of(const struct tally_browser *browser, uint64_t weight)
{
	uint64_t period = browser->browse.report.period;
	if (period)
		return 100.0 * (double)weight / (double)period;
	return 0;
}

static int lead_width(const struct fit *fit)
{
	return 1 + GAP +
	       (fit->total + fit->self) * (SHARE_WIDTH + (fit->errors ? ERROR_WIDTH : 0)) +
	       (fit->waits ? TALLY_WAIT_COLUMNS * TALLY_WAIT_WIDTH : 0);
}

static void put_share(struct drawn_row *row, const struct tally_browser *browser,
		      const struct fit *fit, uint64_t weight, uint64_t samples)
{
	char text[32];
	double percent = percent_of(browser, weight);
	snprintf(text, sizeof(text), "%7.2f%%", percent);
	row_put(row, heat(percent), text, SHARE_WIDTH);
	if (!fit->errors)
		return;
	snprintf(text, sizeof(text), "%*.2f", ERROR_WIDTH,
		 tally_report_error(&browser->browse.report, weight, samples));
	row_put(row, TALLY_STYLE_DIM, text, ERROR_WIDTH);
}

/* Puts a right-aligned cell of a column of waits. */
static void put_right(struct drawn_row *row, unsigned style, const char *text)
{
	int width = tally_text_width(text),
	    blanks = width < TALLY_WAIT_WIDTH ? TALLY_WAIT_WIDTH - width : 0;
	row_put(row, style, "", blanks);
	row_put(row, style, text, TALLY_WAIT_WIDTH - blanks);
}

static void put_share_title(struct drawn_row *row, const struct fit *fit, const char *title,
			    bool sorted)
{
	row_put(row, sorted ? TALLY_STYLE_BOLD : TALLY_STYLE_DIM, title, SHARE_WIDTH);
	if (fit->errors)
		row_put(row, TALLY_STYLE_DIM, row->screen->ascii ? "     +-" : "      ±",
			ERROR_WIDTH);
}

/* Chooses the share columns. On a narrow screen the errors go first, then the share that entries
 * are not sorted by. A report of waits has no errors: its times are measured, not sampled. */
static void fit_shares(const struct tally_browser *browser, int columns, struct fit *fit)
{
	bool of_waits = browser->browse.report.of_waits;
	*fit = (struct fit){ .total = browser->options->children,
			     .self = true,
			     .errors = !of_waits &&
				       (browser->errors || columns >= TALLY_REPORT_ERROR_COLUMNS) };
	if (of_waits && fit->total && columns < TALLY_REPORT_WAIT_COLUMNS)
		*(browser->options->by_self ? &fit->total : &fit->self) = false;
	fit->waits = of_waits;
	fit->waits &= lead_width(fit) + NAMES_MIN <= columns;
	fit->errors &= lead_width(fit) + NAMES_MIN <= columns;
	if (fit->total && lead_width(fit) + NAMES_MIN > columns)
		*(browser->options->by_self ? &fit->total : &fit->self) = false;
}

/* Computes the columns' widths. If the last column has too little room, those of commands and
 * objects shrink. */
static void fit_columns(const struct tally_browser *browser, int columns, struct fit *fit)
{
	const struct tally_browse *browse = &browser->browse;
	int used = lead_width(fit), *widths = fit->widths;
	unsigned count = browse->column_count;
	for (unsigned i = 0; i < count; i++) {
		widths[i] = browse->columns[i].width;
		used += i + 1 < count ? widths[i] + GAP : 0;
	}
	int last = 0;
	if (count)
		last = widths[count - 1];
	if (last > LAST_MIN)
		last = LAST_MIN;
	while (used + last > columns) {
		unsigned widest = count;
		for (unsigned i = 0; i + 1 < count; i++) {
			bool shrinks = tally_report_key_shrinks(browse->columns[i].key);
			if (shrinks && widths[i] > SHRUNK_MIN &&
			    (widest == count || widths[i] > widths[widest]))
				widest = i;
		}
		if (widest == count)
			break;
		widths[widest]--;
		used--;
	}
	/* On the narrowest screens only the last column stays: the function is what matters
	 * most. */
	if (last > NAMES_MIN)
		last = NAMES_MIN;
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i + 1 < count && used + last > columns; i++)
			if (tally_report_key_shrinks(browse->columns[i].key) == !round) {
				used -= widths[i] + GAP;
				widths[i] = 0;
			}
}

static void put_titles(struct drawn_row *row, const struct tally_browser *browser,
		       const struct fit *fit)
{
	const struct tally_browse *browse = &browser->browse;
	row_put(row, TALLY_STYLE_DIM, "", 1);
	if (fit->total)
		put_share_title(row, fit, "   TOTAL", !browser->options->by_self);
	if (fit->self)
		put_share_title(row, fit, "    SELF", browser->options->by_self);
	for (unsigned i = 0; fit->waits && i < TALLY_WAIT_COLUMNS; i++)
		put_right(row, TALLY_STYLE_DIM, tally_report_wait_title(i));
	row_put(row, TALLY_STYLE_DIM, "", GAP);
	for (unsigned i = 0; i < browse->column_count; i++) {
		row_put(row, TALLY_STYLE_DIM, tally_sort_row(browse->columns[i].key)->title,
			fit->widths[i]);
		row_put(row, TALLY_STYLE_DIM, "", fit->widths[i] ? GAP : 0);
	}
}

static const char *marker(const struct drawn_row *row, bool can_open, bool is_open)
{
	if (!can_open)
		return " ";
	if (row->screen->ascii)
		return is_open ? "-" : "+";
	if (is_open)
		return "▾";
	return "▸";
}

static void put_entry(struct drawn_row *row, const struct tally_browser *browser,
		      const struct tally_browse_line *line, const struct fit *fit)
{
	const struct tally_browse *browse = &browser->browse;
	const struct tally_report_entry *entry = &browse->report.entries.items[line->entry];
	char cell[TALLY_REPORT_CELL_BYTES];
	row_put(row, TALLY_STYLE_DIM, marker(row, line->can_open, line->is_open), 1);
	if (fit->total)
		put_share(row, browser, fit, entry->total, entry->total_samples);
	if (fit->self)
		put_share(row, browser, fit, entry->self, entry->self_samples);
	for (unsigned i = 0; fit->waits && i < TALLY_WAIT_COLUMNS; i++) {
		tally_report_wait_cell(entry, browser->options->children, i, cell, sizeof(cell));
		put_right(row, TALLY_STYLE_PLAIN, cell);
	}
	row_put(row, 0, "", GAP);
	for (unsigned i = 0; i < browse->column_count; i++) {
		bool last = i + 1 == browse->column_count;
		tally_report_cell(browse->names, entry, browse->columns[i].key, cell, sizeof(cell));
		row_put(row, TALLY_STYLE_PLAIN, cell,
			last ? row->columns - row->x : fit->widths[i]);
		row_put(row, 0, "", fit->widths[i] ? GAP : 0);
	}
}

static void put_branch(struct drawn_row *row, const struct tally_browser *browser,
		       const struct tally_browse_line *line)
{
	enum { START = 4, LEVEL = 2, SHARE = 10 };
	const struct tally_names *names = browser->browse.names;
	bool ascii = row->screen->ascii;
	/* Deep trees leave half of a narrow screen to the names. */
	int half = (row->columns / 2 - START) / LEVEL,
	    room = (row->columns - NAMES_MIN - SHARE - START) / LEVEL;
	int levels = room < half ? room : half,
	    from = line->indent > levels ? line->indent - levels : 0;
	char name[TALLY_REPORT_CELL_BYTES];
	uint32_t function = line->branch->function;
	row_put(row, 0, "", START);
	const char *rail = "│", *joint = "├", *end = "└", *tip = "─";
	if (ascii) {
		rail = joint = "|";
		end = "`";
		tip = "-";
	}
	if (line->is_last)
		joint = end;
	if (line->can_open)
		tip = marker(row, true, line->is_open);
	for (int i = from; i < line->indent; i++)
		row_put(row, TALLY_STYLE_DIM, line->rails >> i & 1 ? rail : "", LEVEL);
	if (line->is_straight) {
		row_put(row, 0, "", LEVEL);
	} else {
		char share[32];
		double percent = percent_of(browser, line->branch->weight);
		row_put(row, TALLY_STYLE_DIM, joint, 1);
		row_put(row, TALLY_STYLE_DIM, tip, LEVEL);
		int length = snprintf(share, sizeof(share), "%.2f%%", percent);
		row_put(row, heat(percent), share, length + 1);
	}
	tally_report_function(names, function, name, sizeof(name) - sizeof(" (inlined)"));
	row_put(row, TALLY_STYLE_PLAIN, name, tally_text_width(name));
	if (function != UINT32_MAX && names->functions.items[function].kind == TALLY_FRAME_INLINED)
		row_put(row, TALLY_STYLE_DIM, " (inlined)", 10);
	row_put_rest(row, 0, "");
}

static bool is_filtered(const struct tally_browse *browse)
{
	return browse->filter[0] || browse->object != TALLY_STRING_NONE;
}

static void put_nothing(struct drawn_row *row, const struct tally_browser *browser)
{
	const struct tally_browse *browse = &browser->browse;
	const char *why = "no samples";
	if (browser->live)
		why = "nothing was sampled yet";
	if (is_filtered(browse))
		why = "nothing passes the filter; Esc shows all";
	else if (browse->report.hidden)
		why = "all rows are below the limit; P changes it";
	row_put(row, 0, "", GAP);
	row_put_rest(row, TALLY_STYLE_DIM, why);
}

static void put_lines(struct tally_browser *browser, int rows, int columns, const struct fit *fit)
{
	const struct tally_browse *browse = &browser->browse;
	struct drawn_row row = { .screen = browser->screen,
				 .search = browse->search,
				 .columns = columns };
	int y = HEAD_ROWS;
	for (size_t i = browse->top; i < browse->lines.count && y < rows - 1; i++, y++) {
		const struct tally_browse_line *line = &browse->lines.items[i];
		row.y = y;
		row.x = 0;
		if (i == browse->cursor)
			row.style = TALLY_STYLE_CURSOR;
		else
			row.style = 0;
		if (line->branch)
			put_branch(&row, browser, line);
		else
			put_entry(&row, browser, line, fit);
	}
	row = (struct drawn_row){
		.screen = browser->screen, .search = "", .columns = columns, .y = y
	};
	if (!browse->lines.count)
		put_nothing(&row, browser);
	else if (y < rows - 1 && browse->report.hidden && !is_filtered(browse)) {
		char text[TALLY_BROWSER_TEXT_BYTES];
		snprintf(text, sizeof(text), "%s more%s", tally_number(browse->report.hidden),
			 browser->options->limit ? "" : " below the limit; P changes it");
		row_put(&row, 0, "", GAP);
		row_put_rest(&row, TALLY_STYLE_DIM, text);
	}
}

/* ---- the line at the bottom ---------------------------------------------- */

static void describe_place(const struct tally_browser *browser, char *out, size_t size)
{
	const struct tally_browse *browse = &browser->browse;
	int n = 0;
	if (browser->event_count > 1)
		n += snprintf(out + n, size - (size_t)n, " Tab: event %u/%u ",
			      browser->event_number, browser->event_count);
	if (browse->object != TALLY_STRING_NONE) {
		const char *path = tally_strings_text(&browse->names->strings, browse->object),
			   *slash = strrchr(path, '/');
		n += snprintf(out + n, size - (size_t)n, " %.40s ", slash ? slash + 1 : path);
	}
	if (browse->filter[0])
		n += snprintf(out + n, size - (size_t)n, " '%.40s' ", browse->filter);
	snprintf(out + n, size - (size_t)n, " %s/%s ",
		 tally_number(browse->lines.count ? browse->cursor + 1 : 0),
		 tally_number(browse->lines.count));
}

/* Lists as many keys as fit, the most important first. */
static void list_hints(const struct tally_browser *browser, int width, char *text, size_t size)
{
	static const struct { const char *text; bool in_report, in_live, of_stacks; } hints[] = {
		{ " ? help", true, true, false },
		{ "  q quit", true, true, false },
		{ "  Enter opens", true, true, true },
		{ "  / search", true, true, false },
		{ "  f filter", true, true, false },
		{ "  s columns", true, true, false },
		{ "  p pause", false, true, false },
		{ "  z reset", false, true, false },
		{ "  c callers", true, true, true },
		{ "  d object", true, true, false },
		{ "  a annotate", true, false, false },
	};
	size_t used = 0;
	*text = '\0';
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
		size_t length = strlen(hints[i].text);
		if (!(browser->live ? hints[i].in_live : hints[i].in_report) ||
		    (hints[i].of_stacks && !browser->has_stacks))
			continue;
		if (used + length > (size_t)width || used + length >= size)
			break;
		used += (size_t)snprintf(text + used, size - used, "%s", hints[i].text);
	}
}

static void put_footer(struct tally_browser *browser, int rows, int columns)
{
	static const struct { enum tally_browser_mode mode; const char *prompt; } prompts[] = {
		{ TALLY_BROWSER_SEARCH, "search: " }, { TALLY_BROWSER_FILTER, "filter: " },
		{ TALLY_BROWSER_PERCENT, "hide rows below %: " },
	};
	char text[TALLY_BROWSER_TEXT_BYTES + TALLY_BROWSE_WORD_BYTES],
		place[TALLY_BROWSER_TEXT_BYTES] = "";
	struct drawn_row row = {
		.screen = browser->screen, .search = "", .y = rows - 1, .columns = columns
	};
	describe_place(browser, place, sizeof(place));
	int width = tally_text_width(place);
	if (width > columns / 2 || columns - width < HINTS_MIN ||
	    tally_text_width(browser->message) >= columns - width)
		width = 0;
	if (browser->message[0])
		snprintf(text, sizeof(text), " %s", browser->message);
	else
		list_hints(browser, columns - width, text, sizeof(text));
	for (unsigned i = 0; i < sizeof(prompts) / sizeof(prompts[0]); i++)
		if (browser->mode == prompts[i].mode)
			snprintf(text, sizeof(text), " %s%s%s", prompts[i].prompt, browser->input,
				 browser->screen->ascii ? "_" : "▏");
	row_put(&row, TALLY_STYLE_BAR, text, columns - width);
	if (width)
		row_put_rest(&row, TALLY_STYLE_BAR, place);
}

/* ---- boxes: the help, the menu ------------------------------------------- */

static void put_edge(struct drawn_row *row, const char *left, const char *middle, const char *right,
		     int width)
{
	row_put(row, TALLY_STYLE_DIM, left, 1);
	for (int i = 0; i < width - 2; i++)
		row_put(row, TALLY_STYLE_DIM, middle, 1);
	row_put(row, TALLY_STYLE_DIM, right, 1);
}

/* Draws lines in a frame in the middle of the screen. In a line "key\ttext" the key is
 * highlighted. */
static void put_box(struct tally_browser *browser, int rows, int columns, const char *const *lines,
		    size_t count, size_t chosen)
{
	enum { KEY_WIDTH = 13 };
	bool ascii = browser->screen->ascii;
	int widest = 0, shown = (int)count < rows - 2 ? (int)count : rows - 2;
	for (size_t i = 0; i < count; i++) {
		const char *tab = strchr(lines[i], '\t');
		int width;
		if (tab)
			width = KEY_WIDTH + tally_text_width(tab + 1);
		else
			width = tally_text_width(lines[i]);
		if (width > widest)
			widest = width;
	}
	int width = columns;
	if (widest + 4 < columns)
		width = widest + 4;
	int x = (columns - width) / 2, y = (rows - shown - 2) / 2;
	struct drawn_row row = {
		.screen = browser->screen, .search = "", .columns = x + width, .y = y, .x = x
	};
	if (ascii)
		put_edge(&row, "+", "-", "+", width);
	else
		put_edge(&row, "╭", "─", "╮", width);
	for (int i = 0; i < shown; i++) {
		const char *tab = strchr(lines[i], '\t');
		row.y = y + 1 + i;
		row.x = x;
		row_put(&row, TALLY_STYLE_DIM, ascii ? "|" : "│", 2);
		row.columns = x + width - 2;
		if ((size_t)i == chosen)
			row.style = TALLY_STYLE_CURSOR;
		else
			row.style = 0;
		if (tab) {
			char key[TALLY_BROWSER_TEXT_BYTES];
			snprintf(key, sizeof(key), "%.*s", (int)(tab - lines[i]), lines[i]);
			row_put(&row, TALLY_STYLE_BOLD, key, KEY_WIDTH);
		}
		row_put_rest(&row, TALLY_STYLE_PLAIN, tab ? tab + 1 : lines[i]);
		row.columns = x + width;
		row.style = 0;
		row_put(&row, TALLY_STYLE_DIM, ascii ? " |" : " │", 2);
	}
	row.y = y + 1 + shown;
	row.x = x;
	if (ascii)
		put_edge(&row, "+", "-", "+", width);
	else
		put_edge(&row, "╰", "─", "╯", width);
}

static const struct {
	const char *text;
	bool in_report, in_live, of_stacks;
} help[] = {
	{ "j k\tdown, up (also the arrows)", true, true, false },
	{ "PgUp PgDn\ta page (also b, Space)", true, true, false },
	{ "g G\tfirst line, last line (Home, End)", true, true, false },
	{ "Enter +\topen or close a call tree", true, true, true },
	{ "Right Left\topen; close, or go to the parent", true, true, true },
	{ "e E\topen all trees, close all", true, true, true },
	{ "c\ttrees of callers, or of callees", true, true, true },
	{ "/ n N\tsearch; the next, the one before", true, true, false },
	{ "f\tfilter rows by a word", true, true, false },
	{ "d\tonly this object, or all again", true, true, false },
	{ "P\thide rows below a percentage", true, true, false },
	{ "s\tcolumns and order", true, true, false },
	{ "t\tseparate or merge threads", true, true, false },
	{ "Tab\tthe next event", true, true, false },
	{ "a\tannotate the function", true, false, false },
	{ "p\tpause, or go on", false, true, false },
	{ "z\tclear all samples", false, true, false },
	{ "Esc\tclear filter and search; then quit", true, true, false },
	{ "q Ctrl-C\tleave", true, true, false },
};

static void put_help(struct tally_browser *browser, int rows, int columns)
{
	const char *lines[sizeof(help) / sizeof(help[0])];
	size_t count = 0;
	for (size_t i = 0; i < sizeof(help) / sizeof(help[0]); i++)
		if ((browser->live ? help[i].in_live : help[i].in_report) &&
		    (browser->has_stacks || !help[i].of_stacks))
			lines[count++] = help[i].text;
	/* Lines that don't fit are reached with the keys that move the cursor. */
	size_t room = rows > 2 ? (size_t)rows - 2 : 1;
	size_t most = count > room ? count - room : 0;
	if (browser->menu >= most)
		browser->menu = (unsigned)most;
	put_box(browser, rows, columns, lines + browser->menu, count - browser->menu, SIZE_MAX);
	const char *more = " j ↓ more ";
	if (browser->screen->ascii)
		more = " j: more ";
	if (browser->menu < most && columns > 2 * tally_text_width(more)) {
		struct drawn_row row = { .screen = browser->screen,
					 .search = "",
					 .columns = columns,
					 .y = rows - 1,
					 .x = columns / 2 - 4 };
		row_put(&row, TALLY_STYLE_BOLD, more, tally_text_width(more));
	}
}

static void put_menu(struct tally_browser *browser, int rows, int columns)
{
	char texts[TALLY_BROWSER_MENU_LINES_MAX][64];
	const char *lines[TALLY_BROWSER_MENU_LINES_MAX];
	unsigned count = tally_browser_menu_lines();
	for (unsigned i = 0; i < count; i++) {
		struct tally_browser_choice choice = tally_browser_choice(browser, i);
		snprintf(texts[i], sizeof(texts[i]), "[%c] %-22s %c", choice.is_on ? 'x' : ' ',
			 choice.name, choice.letter);
		lines[i] = texts[i];
	}
	/* On a low screen, shows the lines up to the chosen one. */
	unsigned room = rows > 2 ? (unsigned)rows - 2 : 1,
		 from = browser->menu < room ? 0 : browser->menu - room + 1;
	put_box(browser, rows, columns, lines + from, count - from, browser->menu - from);
}

/* Draws the box of the current mode over the lines, if it has one. */
static void draw_box(struct tally_browser *browser, int rows, int columns)
{
	if (browser->mode == TALLY_BROWSER_HELP)
		put_help(browser, rows, columns);
	if (browser->mode == TALLY_BROWSER_COLUMNS)
		put_menu(browser, rows, columns);
}

void tally_browser_draw(struct tally_browser *browser)
{
	const struct tally_screen_ops *ops = browser->screen->ops;
	struct fit fit;
	int rows, columns;
	ops->size(browser->screen, &rows, &columns);
	ops->clear(browser->screen);
	if (rows >= ROWS_MIN && columns > 0) {
		struct drawn_row row = { .screen = browser->screen,
					 .search = "",
					 .columns = columns };
		tally_browse_resize(&browser->browse, (size_t)(rows - HEAD_ROWS - 1));
		fit_shares(browser, columns, &fit);
		fit_columns(browser, columns, &fit);
		row_put_rest(&row, TALLY_STYLE_BOLD, browser->title);
		row.y = 1;
		row.x = 0;
		put_titles(&row, browser, &fit);
		put_lines(browser, rows, columns, &fit);
		put_footer(browser, rows, columns);
		draw_box(browser, rows, columns);
	}
	ops->show(browser->screen);
}
