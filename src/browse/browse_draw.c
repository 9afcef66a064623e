/* The browsed report on a screen:
 *
 *     event, samples and circumstances
 *     titles of the columns
 *     lines
 *     keys, input or a message; and the position in the report
 */
#include "browse/browse_row.h"

#include "base/number_text.h"
#include "output/fit_text.h"
#include "output/report_cells.h"

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
	HINTS_MIN = 15
};

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
	return percent >= 1 ? TALLY_STYLE_WARM : TALLY_STYLE_DIM;
}

static double percent_of(const struct tally_browser *browser, uint64_t weight)
{
	uint64_t period = browser->browse.report.period;
	return period ? 100.0 * (double)weight / (double)period : 0;
}

static int lead_width(const struct fit *fit)
{
	return 1 + GAP +
	       (fit->total + fit->self) * (SHARE_WIDTH + (fit->errors ? ERROR_WIDTH : 0)) +
	       (fit->waits ? TALLY_WAIT_COLUMNS * TALLY_WAIT_WIDTH : 0);
}

static void put_share(struct tally_drawn_row *row, const struct tally_browser *browser,
		      const struct fit *fit, uint64_t weight, uint64_t samples)
{
	char text[32];
	double percent = percent_of(browser, weight);
	snprintf(text, sizeof(text), "%7.2f%%", percent);
	tally_row_put(row, heat(percent), text, SHARE_WIDTH);
	if (!fit->errors)
		return;
	snprintf(text, sizeof(text), "%*.2f", ERROR_WIDTH,
		 tally_report_error(&browser->browse.report, weight, samples));
	tally_row_put(row, TALLY_STYLE_DIM, text, ERROR_WIDTH);
}

/* Puts a right-aligned cell of a column of waits. */
static void put_right(struct tally_drawn_row *row, unsigned style, const char *text)
{
	int width = tally_text_width(text),
	    blanks = width < TALLY_WAIT_WIDTH ? TALLY_WAIT_WIDTH - width : 0;
	tally_row_put(row, style, "", blanks);
	tally_row_put(row, style, text, TALLY_WAIT_WIDTH - blanks);
}

static void put_share_title(struct tally_drawn_row *row, const struct fit *fit, const char *title,
			    bool sorted)
{
	tally_row_put(row, sorted ? TALLY_STYLE_BOLD : TALLY_STYLE_DIM, title, SHARE_WIDTH);
	if (fit->errors)
		tally_row_put(row, TALLY_STYLE_DIM, row->screen->ascii ? "     +-" : "      ±",
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
	int last = count ? widths[count - 1] : 0;
	last = last < LAST_MIN ? last : LAST_MIN;
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
	last = last < NAMES_MIN ? last : NAMES_MIN;
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i + 1 < count && used + last > columns; i++)
			if (tally_report_key_shrinks(browse->columns[i].key) == !round) {
				used -= widths[i] + GAP;
				widths[i] = 0;
			}
}

static void put_titles(struct tally_drawn_row *row, const struct tally_browser *browser,
		       const struct fit *fit)
{
	const struct tally_browse *browse = &browser->browse;
	tally_row_put(row, TALLY_STYLE_DIM, "", 1);
	if (fit->total)
		put_share_title(row, fit, "   TOTAL", !browser->options->by_self);
	if (fit->self)
		put_share_title(row, fit, "    SELF", browser->options->by_self);
	for (unsigned i = 0; fit->waits && i < TALLY_WAIT_COLUMNS; i++)
		put_right(row, TALLY_STYLE_DIM, tally_report_wait_title(i));
	tally_row_put(row, TALLY_STYLE_DIM, "", GAP);
	for (unsigned i = 0; i < browse->column_count; i++) {
		tally_row_put(row, TALLY_STYLE_DIM, tally_sort_row(browse->columns[i].key)->title,
			      fit->widths[i]);
		tally_row_put(row, TALLY_STYLE_DIM, "", fit->widths[i] ? GAP : 0);
	}
}

static const char *marker(const struct tally_drawn_row *row, bool can_open, bool is_open)
{
	if (!can_open)
		return " ";
	if (row->screen->ascii)
		return is_open ? "-" : "+";
	return is_open ? "▾" : "▸";
}

static void put_entry(struct tally_drawn_row *row, const struct tally_browser *browser,
		      const struct tally_browse_line *line, const struct fit *fit)
{
	const struct tally_browse *browse = &browser->browse;
	const struct tally_report_entry *entry = &browse->report.entries.items[line->entry];
	char cell[TALLY_REPORT_CELL_BYTES];
	tally_row_put(row, TALLY_STYLE_DIM, marker(row, line->can_open, line->is_open), 1);
	if (fit->total)
		put_share(row, browser, fit, entry->total, entry->total_samples);
	if (fit->self)
		put_share(row, browser, fit, entry->self, entry->self_samples);
	for (unsigned i = 0; fit->waits && i < TALLY_WAIT_COLUMNS; i++) {
		tally_report_wait_cell(entry, browser->options->children, i, cell, sizeof(cell));
		put_right(row, TALLY_STYLE_PLAIN, cell);
	}
	tally_row_put(row, 0, "", GAP);
	for (unsigned i = 0; i < browse->column_count; i++) {
		bool last = i + 1 == browse->column_count;
		tally_report_cell(browse->names, entry, browse->columns[i].key, cell, sizeof(cell));
		tally_row_put(row, TALLY_STYLE_PLAIN, cell,
			      last ? row->columns - row->x : fit->widths[i]);
		tally_row_put(row, 0, "", fit->widths[i] ? GAP : 0);
	}
}

static void put_branch(struct tally_drawn_row *row, const struct tally_browser *browser,
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
	tally_row_put(row, 0, "", START);
	for (int i = from; i < line->indent; i++)
		tally_row_put(row, TALLY_STYLE_DIM,
			      !(line->rails >> i & 1) ? ""
			      : ascii                 ? "|"
						      : "│",
			      LEVEL);
	if (line->is_straight) {
		tally_row_put(row, 0, "", LEVEL);
	} else {
		char share[32];
		double percent = percent_of(browser, line->branch->weight);
		tally_row_put(row, TALLY_STYLE_DIM,
			      line->is_last ? (ascii ? "`" : "└")
			      : ascii       ? "|"
					    : "├",
			      1);
		tally_row_put(row, TALLY_STYLE_DIM,
			      line->can_open ? marker(row, true, line->is_open)
			      : ascii        ? "-"
					     : "─",
			      LEVEL);
		int length = snprintf(share, sizeof(share), "%.2f%%", percent);
		tally_row_put(row, heat(percent), share, length + 1);
	}
	tally_report_function(names, function, name, sizeof(name) - sizeof(" (inlined)"));
	tally_row_put(row, TALLY_STYLE_PLAIN, name, tally_text_width(name));
	if (function != UINT32_MAX && names->functions.items[function].kind == TALLY_FRAME_INLINED)
		tally_row_put(row, TALLY_STYLE_DIM, " (inlined)", 10);
	tally_row_put_rest(row, 0, "");
}

static bool is_filtered(const struct tally_browse *browse)
{
	return browse->filter[0] || browse->object != TALLY_STRING_NONE;
}

static void put_nothing(struct tally_drawn_row *row, const struct tally_browser *browser)
{
	const struct tally_browse *browse = &browser->browse;
	bool filtered = is_filtered(browse);
	tally_row_put(row, 0, "", GAP);
	tally_row_put_rest(row, TALLY_STYLE_DIM,
			   filtered                ? "nothing passes the filter; Esc shows all"
			   : browse->report.hidden ? "all rows are below the limit; P changes it"
			   : browser->live         ? "nothing was sampled yet"
						   : "no samples");
}

static void put_lines(struct tally_browser *browser, int rows, int columns, const struct fit *fit)
{
	const struct tally_browse *browse = &browser->browse;
	struct tally_drawn_row row = { .screen = browser->screen,
				       .search = browse->search,
				       .columns = columns };
	int y = HEAD_ROWS;
	for (size_t i = browse->top; i < browse->lines.count && y < rows - 1; i++, y++) {
		const struct tally_browse_line *line = &browse->lines.items[i];
		row.y = y;
		row.x = 0;
		row.style = i == browse->cursor ? TALLY_STYLE_CURSOR : 0;
		if (line->branch)
			put_branch(&row, browser, line);
		else
			put_entry(&row, browser, line, fit);
	}
	row = (struct tally_drawn_row){
		.screen = browser->screen, .search = "", .columns = columns, .y = y
	};
	if (!browse->lines.count)
		put_nothing(&row, browser);
	else if (y < rows - 1 && browse->report.hidden && !is_filtered(browse)) {
		char text[TALLY_BROWSER_TEXT_BYTES];
		snprintf(text, sizeof(text), "%s more%s", tally_number(browse->report.hidden),
			 browser->options->limit ? "" : " below the limit; P changes it");
		tally_row_put(&row, 0, "", GAP);
		tally_row_put_rest(&row, TALLY_STYLE_DIM, text);
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
	struct tally_drawn_row row = {
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
	tally_row_put(&row, TALLY_STYLE_BAR, text, columns - width);
	if (width)
		tally_row_put_rest(&row, TALLY_STYLE_BAR, place);
}

void tally_browser_draw(struct tally_browser *browser)
{
	const struct tally_screen_ops *ops = browser->screen->ops;
	struct fit fit;
	int rows, columns;
	ops->size(browser->screen, &rows, &columns);
	ops->clear(browser->screen);
	if (rows >= ROWS_MIN && columns > 0) {
		struct tally_drawn_row row = { .screen = browser->screen,
					       .search = "",
					       .columns = columns };
		tally_browse_resize(&browser->browse, (size_t)(rows - HEAD_ROWS - 1));
		fit_shares(browser, columns, &fit);
		fit_columns(browser, columns, &fit);
		tally_row_put_rest(&row, TALLY_STYLE_BOLD, browser->title);
		row.y = 1;
		row.x = 0;
		put_titles(&row, browser, &fit);
		put_lines(browser, rows, columns, &fit);
		put_footer(browser, rows, columns);
		tally_browser_draw_box(browser, rows, columns);
	}
	ops->show(browser->screen);
}
