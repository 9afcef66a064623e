/* A terminal's screen: cells to write text to, and keys. */
#ifndef TALLY_BROWSE_SCREEN_H
#define TALLY_BROWSE_SCREEN_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

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

struct tally_screen;

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

#endif
