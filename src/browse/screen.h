/* A terminal's screen as those who draw on it see it: cells to put text into, and keys. */
#ifndef TALLY_OUTPUT_SCREEN_H
#define TALLY_OUTPUT_SCREEN_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum tally_screen_style {
	TALLY_STYLE_PLAIN,
	TALLY_STYLE_BOLD,
	TALLY_STYLE_DIM,
	TALLY_STYLE_HOT,   /* as text output has it: bold red */
	TALLY_STYLE_WARM,  /* yellow */
	TALLY_STYLE_BAR,   /* the line at the bottom */
	TALLY_STYLE_CURSOR = 0x100, /* and: the line that the cursor is on */
	TALLY_STYLE_MATCH = 0x200,  /* and: what was searched for */
};

/* Characters are what they are in Unicode; Enter is '\n', Escape 27, Ctrl-C 3. */
enum tally_screen_key {
	TALLY_KEY_NONE, /* none came in time */
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
	TALLY_KEY_RESIZE, /* size() gives another size */
	TALLY_KEY_GONE,   /* the terminal is no more */
};

struct tally_screen;

struct tally_screen_ops {
	void (*size)(struct tally_screen *screen, int *rows, int *columns);
	void (*clear)(struct tally_screen *screen);
	/* Clean text (UTF-8, no control bytes) that fits into the row. */
	void (*put)(struct tally_screen *screen, int row, int column, unsigned style,
		    const char *text);
	void (*show)(struct tally_screen *screen);
	/* Waits for a key; at most so long: TALLY_KEY_NONE then.  -1: until one comes. */
	uint32_t (*key)(struct tally_screen *screen, int timeout_ms);
	/* Leaves the terminal to another program, and takes it back. */
	void (*suspend)(struct tally_screen *screen);
	void (*resume)(struct tally_screen *screen);
	void (*close)(struct tally_screen *screen);
};

struct tally_screen {
	const struct tally_screen_ops *ops;
	bool ascii; /* no box-drawing characters */
};

/* Is there a terminal that standard input and output are both of, and that is no dumb one? */
bool tally_screen_possible(void);

/* The terminal's, by ncurses, which is loaded for it.  -ENOENT when that is not installed; the hint
 * names its package. */
int tally_curses_screen_open(struct tally_screen **out, struct tally_error *err);

#endif
