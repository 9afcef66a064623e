#include "browse/browse_row.h"

#include "output/fit_text.h"

#include <stdio.h>
#include <string.h>

static void put_edge(struct tally_drawn_row *row, const char *left, const char *middle,
		     const char *right, int width)
{
	tally_row_put(row, TALLY_STYLE_DIM, left, 1);
	for (int i = 0; i < width - 2; i++)
		tally_row_put(row, TALLY_STYLE_DIM, middle, 1);
	tally_row_put(row, TALLY_STYLE_DIM, right, 1);
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
		int width = tab ? KEY_WIDTH + tally_text_width(tab + 1)
				: tally_text_width(lines[i]);
		widest = width > widest ? width : widest;
	}
	int width = widest + 4 < columns ? widest + 4 : columns;
	int x = (columns - width) / 2, y = (rows - shown - 2) / 2;
	struct tally_drawn_row row = {
		.screen = browser->screen, .search = "", .columns = x + width, .y = y, .x = x
	};
	put_edge(&row, ascii ? "+" : "╭", ascii ? "-" : "─", ascii ? "+" : "╮", width);
	for (int i = 0; i < shown; i++) {
		const char *tab = strchr(lines[i], '\t');
		row.y = y + 1 + i;
		row.x = x;
		tally_row_put(&row, TALLY_STYLE_DIM, ascii ? "|" : "│", 2);
		row.columns = x + width - 2;
		row.style = (size_t)i == chosen ? TALLY_STYLE_CURSOR : 0;
		if (tab) {
			char key[TALLY_BROWSER_TEXT_BYTES];
			snprintf(key, sizeof(key), "%.*s", (int)(tab - lines[i]), lines[i]);
			tally_row_put(&row, TALLY_STYLE_BOLD, key, KEY_WIDTH);
		}
		tally_row_put_rest(&row, TALLY_STYLE_PLAIN, tab ? tab + 1 : lines[i]);
		row.columns = x + width;
		row.style = 0;
		tally_row_put(&row, TALLY_STYLE_DIM, ascii ? " |" : " │", 2);
	}
	row.y = y + 1 + shown;
	row.x = x;
	put_edge(&row, ascii ? "+" : "╰", ascii ? "-" : "─", ascii ? "+" : "╯", width);
}

static const struct { const char *text; bool in_report, in_live, of_stacks; } help[] = {
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
	size_t room = rows > 2 ? (size_t)rows - 2 : 1, most = count > room ? count - room : 0;
	browser->menu = browser->menu < most ? browser->menu : (unsigned)most;
	put_box(browser, rows, columns, lines + browser->menu, count - browser->menu, SIZE_MAX);
	const char *more = browser->screen->ascii ? " j: more " : " j ↓ more ";
	if (browser->menu < most && columns > 2 * tally_text_width(more)) {
		struct tally_drawn_row row = { .screen = browser->screen,
					       .search = "",
					       .columns = columns,
					       .y = rows - 1,
					       .x = columns / 2 - 4 };
		tally_row_put(&row, TALLY_STYLE_BOLD, more, tally_text_width(more));
	}
}

static void put_menu(struct tally_browser *browser, int rows, int columns)
{
	char texts[TALLY_BROWSER_MENU_LINES][64];
	const char *lines[TALLY_BROWSER_MENU_LINES];
	for (unsigned i = 0; i < TALLY_BROWSER_MENU_LINES; i++) {
		struct tally_browser_choice choice = tally_browser_choice(browser, i);
		snprintf(texts[i], sizeof(texts[i]), "[%c] %-22s %c", choice.is_on ? 'x' : ' ',
			 choice.name, choice.letter);
		lines[i] = texts[i];
	}
	/* On a low screen, shows the lines up to the chosen one. */
	unsigned room = rows > 2 ? (unsigned)rows - 2 : 1,
		 from = browser->menu < room ? 0 : browser->menu - room + 1;
	put_box(browser, rows, columns, lines + from, TALLY_BROWSER_MENU_LINES - from,
		browser->menu - from);
}

void tally_browser_draw_box(struct tally_browser *browser, int rows, int columns)
{
	if (browser->mode == TALLY_BROWSER_HELP)
		put_help(browser, rows, columns);
	if (browser->mode == TALLY_BROWSER_COLUMNS)
		put_menu(browser, rows, columns);
}
