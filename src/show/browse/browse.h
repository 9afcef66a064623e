/* The terminal browser, and the screen that it draws on. */
#ifndef TALLY_BROWSE_H
#define TALLY_BROWSE_H

#include "base/error.h"
#include "browse/browse_internal.h"

#include <stdbool.h>
#include <stdint.h>

struct tally_screen;

/* A terminal's screen: cells to write text to, and keys. */

enum tally_screen_style {
	TALLY_STYLE_PLAIN,
	TALLY_STYLE_BOLD,
	TALLY_STYLE_DIM,
	TALLY_STYLE_HOT,   /* bold red, as in text output */
	TALLY_STYLE_WARM,  /* yellow, as in text output */
	TALLY_STYLE_BAR,   /* the line at the bottom */
	TALLY_STYLE_CURSOR = 0x100, /* flag: the cursor's line */
	TALLY_STYLE_MATCH = 0x200,  /* flag: a search match */
};

/* Other keys are their Unicode characters. */
enum tally_screen_key {
	TALLY_KEY_NONE, /* timeout */
	TALLY_KEY_TAB = 9,
	TALLY_KEY_ENTER = 10,
	TALLY_KEY_ESCAPE = 27,
	TALLY_KEY_CTRL_C = 3,
	TALLY_KEY_UP = 0x110000,
	TALLY_KEY_DOWN,
	TALLY_KEY_LEFT,
	TALLY_KEY_RIGHT,
	TALLY_KEY_HOME,
	TALLY_KEY_END,
	TALLY_KEY_PAGE_UP,
	TALLY_KEY_PAGE_DOWN,
	TALLY_KEY_BACK_TAB,
	TALLY_KEY_BACKSPACE,
	TALLY_KEY_RESIZE, /* size() has changed */
	TALLY_KEY_GONE,   /* the terminal disappeared */
};

struct tally_screen_ops {
	void (*size)(struct tally_screen *screen, int *rows, int *columns);
	void (*clear)(struct tally_screen *screen);
	/* `text` is valid UTF-8 without control bytes, and fits in the row. */
	void (*put)(struct tally_screen *screen, int row, int column, unsigned style,
		    const char *text);
	void (*show)(struct tally_screen *screen);
	/* Waits for a key at most timeout_ms, then returns TALLY_KEY_NONE; -1: waits forever. */
	uint32_t (*key)(struct tally_screen *screen, int timeout_ms);
	/* Hands the terminal to another program, and takes it back. */
	void (*suspend)(struct tally_screen *screen);
	void (*resume)(struct tally_screen *screen);
	void (*close)(struct tally_screen *screen);
};

struct tally_screen {
	const struct tally_screen_ops *ops;
	bool ascii; /* no box-drawing characters */
};

/* True if standard input and output are terminals and $TERM is not "dumb". */
bool tally_screen_possible(void);

/* Opens the terminal's screen with ncurses, which it loads. Returns -ENOENT when ncurses is not
 * installed; the hint names its package. */
int tally_curses_screen_open(struct tally_screen **out, struct tally_error *err);

/* Browses a report on a screen: handles keys and draws. The keys are those of less(1) and of perf's
 * browser. */

enum { TALLY_BROWSER_TEXT_BYTES = 256 };

/* The caller's task after a key. */
enum tally_browser_request {
	TALLY_REQUEST_NONE,
	/* `options` have changed: build the report again and tally_browse_set() it */
	TALLY_REQUEST_REPORT,
	TALLY_REQUEST_NEXT_EVENT,
	TALLY_REQUEST_PREVIOUS_EVENT,
	TALLY_REQUEST_ANNOTATE, /* show the function of the current line */
	TALLY_REQUEST_PAUSE,    /* pause the live view */
	TALLY_REQUEST_RESET,    /* clear the live view */
	TALLY_REQUEST_QUIT,
	TALLY_REQUEST_FAIL, /* out of memory */
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

enum tally_browser_request tally_browser_key(struct tally_browser *browser, uint32_t key);
void tally_browser_draw(struct tally_browser *browser);

#endif
