/* A row of the browser's screen.  For browse_*.c. */
#ifndef TALLY_OUTPUT_BROWSE_ROW_H
#define TALLY_OUTPUT_BROWSE_ROW_H

#include "browse/browse.h"

/* The row is put together from left to right. */
struct tally_drawn_row {
	struct tally_screen *screen;
	const char *search; /* highlighted in the text */
	int y, x, columns;
	unsigned style; /* style of the whole row: TALLY_STYLE_CURSOR or 0 */
};

/* Puts text in `width` columns, or in those left in the row: cut, or padded with blanks. */
void tally_row_put(struct tally_drawn_row *row, unsigned style, const char *text, int width);
void tally_row_put_rest(struct tally_drawn_row *row, unsigned style, const char *text);

/* browse_boxes.c: draws the box of the current mode over the lines, if it has one. */
void tally_browser_draw_box(struct tally_browser *browser, int rows, int columns);

#endif
