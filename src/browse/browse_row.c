#include "browse/browse_row.h"

#include "base/buffer.h"
#include "output/fit_text.h"
#include "output/report_cells.h"

#include <stdio.h>
#include <string.h>

enum { ELLIPSIS = 2 };

static void put_raw(struct tally_drawn_row *row, unsigned style, const char *text)
{
	char clean[TALLY_REPORT_CELL_BYTES];
	size_t n = 0;
	for (; *text && n + 1 < sizeof(clean); text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x80 || !row->screen->ascii)
			clean[n++] = c < ' ' ? ' ' : (char)c;
		else if (c >= 0xc0) /* begins a character that this terminal may lack */
			clean[n++] = '?';
	}
	clean[n] = '\0';
	if (!*clean)
		return;
	row->screen->ops->put(row->screen, row->y, row->x, style | row->style, clean);
	row->x += tally_text_width(clean);
}

static void put_marked(struct tally_drawn_row *row, unsigned style, const char *text)
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

void tally_row_put(struct tally_drawn_row *row, unsigned style, const char *text, int width)
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
			snprintf(blanks, sizeof(blanks), "%*s",
				 n < (int)sizeof(blanks) - 1 ? n : (int)sizeof(blanks) - 1, "");
			put_raw(row, style, blanks);
		}
	}
}

void tally_row_put_rest(struct tally_drawn_row *row, unsigned style, const char *text)
{
	tally_row_put(row, style, text, row->columns - row->x);
}
