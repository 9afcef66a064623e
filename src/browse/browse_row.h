/* A row of the browser's screen.  For browse_*.c. */
#ifndef TALLY_OUTPUT_BROWSE_ROW_H
#define TALLY_OUTPUT_BROWSE_ROW_H

#include "browse/browse.h"

/* It is put together from left to right. */
struct tally_drawn_row {
	struct tally_screen *screen;
	const char *search; /* marked where it is met */
	int y, x, columns;
	unsigned style; /* of all of it: TALLY_STYLE_CURSOR or 0 */
};

/* In `width` columns, or what the row has left: cut, or filled up with blanks. */
void tally_row_put(struct tally_drawn_row *row, unsigned style, const char *text, int width);
void tally_row_put_rest(struct tally_drawn_row *row, unsigned style, const char *text);

/* browse_boxes.c: what lies over the lines while a mode asks for it. */
void tally_browser_draw_box(struct tally_browser *browser, int rows, int columns);

#endif
