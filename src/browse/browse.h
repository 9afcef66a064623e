/* Browsing a report on a screen: what keys do, and what is drawn.  The keys are those of less, and
 * of perf's browser. */
#ifndef TALLY_OUTPUT_BROWSE_H
#define TALLY_OUTPUT_BROWSE_H

#include "browse/browse_model.h"
#include "browse/screen.h"

enum { TALLY_BROWSER_TEXT_BYTES = 256 };

/* What a key asks of who holds the report. */
enum tally_browser_wish {
	TALLY_WISH_NONE,
	TALLY_WISH_REPORT, /* `options` have changed: build it anew, and tally_browse_set() it */
	TALLY_WISH_NEXT_EVENT,
	TALLY_WISH_PREVIOUS_EVENT,
	TALLY_WISH_ANNOTATE, /* the function of the current line */
	TALLY_WISH_PAUSE,    /* of a live view */
	TALLY_WISH_RESET,    /* … begin again */
	TALLY_WISH_QUIT,
	TALLY_WISH_FAIL,     /* out of memory */
};

enum tally_browser_mode {
	TALLY_BROWSER_ROWS,
	TALLY_BROWSER_HELP,
	TALLY_BROWSER_COLUMNS, /* the menu of `s` */
	TALLY_BROWSER_SEARCH,  /* these read a line */
	TALLY_BROWSER_FILTER,
	TALLY_BROWSER_PERCENT,
};

struct tally_browser {
	struct tally_browse browse;
	struct tally_screen *screen;
	struct tally_report_options *options;
	bool live;       /* `tally top` */
	bool has_stacks, has_threads; /* that the report can be built with */
	/* of those with samples, from 1; count 1 or 0: the only one */
	unsigned event_number, event_count;
	bool errors;     /* sampling errors, on narrow screens too */
	enum tally_browser_mode mode;
	unsigned menu;   /* the line that is chosen; of the help, the first that is seen */
	char input[TALLY_BROWSE_WORD_BYTES];
	char title[TALLY_BROWSER_TEXT_BYTES];   /* what was measured */
	char message[TALLY_BROWSER_TEXT_BYTES]; /* until the next key */
};

/* The menu's lines: keys to sort by that are shown or not, then by what entries are ordered. */
enum { TALLY_BROWSER_MENU_LINES = 7 };
struct tally_browser_choice { const char *name; bool is_on; char letter; };
struct tally_browser_choice tally_browser_choice(const struct tally_browser *browser,
						 unsigned line);

enum tally_browser_wish tally_browser_key(struct tally_browser *browser, uint32_t key);
void tally_browser_draw(struct tally_browser *browser);

#endif
