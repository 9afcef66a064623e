/* Browses a report on a screen: handles keys and draws. The keys are those of less(1) and of perf's
 * browser. */
#ifndef TALLY_BROWSE_H
#define TALLY_BROWSE_H

#include "browse/browse_model.h"
#include "browse/screen.h"

enum { TALLY_BROWSER_TEXT_BYTES = 256 };

/* The caller's task after a key. */
enum tally_browser_wish {
	TALLY_WISH_NONE,
	/* `options` have changed: build the report again and tally_browse_set() it */
	TALLY_WISH_REPORT,
	TALLY_WISH_NEXT_EVENT,
	TALLY_WISH_PREVIOUS_EVENT,
	TALLY_WISH_ANNOTATE, /* show the function of the current line */
	TALLY_WISH_PAUSE,    /* pause the live view */
	TALLY_WISH_RESET,    /* clear the live view */
	TALLY_WISH_QUIT,
	TALLY_WISH_FAIL,     /* out of memory */
};

enum tally_browser_mode {
	TALLY_BROWSER_ROWS,
	TALLY_BROWSER_HELP,
	TALLY_BROWSER_COLUMNS, /* the menu of `s` */
	TALLY_BROWSER_SEARCH,  /* the modes from here on read a line */
	TALLY_BROWSER_FILTER,
	TALLY_BROWSER_PERCENT,
};

struct tally_browser {
	struct tally_browse browse;
	struct tally_screen *screen;
	struct tally_report_options *options;
	bool live;       /* in `tally top` */
	bool has_stacks, has_threads; /* data that the report has */
	/* number among the events with samples, from 1; count 0 or 1: no other event */
	unsigned event_number, event_count;
	bool errors;     /* show sampling errors on narrow screens as well */
	enum tally_browser_mode mode;
	unsigned menu;   /* the menu's chosen line; in the help, the first line shown */
	char input[TALLY_BROWSE_WORD_BYTES];
	char title[TALLY_BROWSER_TEXT_BYTES];   /* event, samples and circumstances */
	char message[TALLY_BROWSER_TEXT_BYTES]; /* shown until the next key */
};

/* Lines of the menu: the columns, each shown or hidden, then the two orders of entries. */
enum { TALLY_BROWSER_MENU_LINES_MAX = TALLY_SORT_KEYS + 2 };
unsigned tally_browser_menu_lines(void);
struct tally_browser_choice { const char *name; bool is_on; char letter; };
struct tally_browser_choice tally_browser_choice(const struct tally_browser *browser,
						 unsigned line);

enum tally_browser_wish tally_browser_key(struct tally_browser *browser, uint32_t key);
void tally_browser_draw(struct tally_browser *browser);

#endif
