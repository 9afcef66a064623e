/* The terminal's screen, by ncurses.
 *
 * The library is loaded when a screen is opened, so that other uses of tally don't need it. The
 * numbers of keys and attributes are those of ncurses.h. Functions are found by name; macros of
 * ncurses.h are replaced by the functions that they call. The library is never unloaded, because it
 * keeps memory and signal handlers of its own.
 */
#include "base/environment.h"
#include "base/loaded.h"
#include "base/terminal.h"
#include "browse/browse.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct window; /* ncurses's WINDOW */

/* Values from ncurses.h; they are part of the ABI of libncursesw.so.6. */
enum {
	CODE_YES = 0400,
	CODE_DOWN = 0402,
	CODE_UP = 0403,
	CODE_LEFT = 0404,
	CODE_RIGHT = 0405,
	CODE_HOME = 0406,
	CODE_BACKSPACE = 0407,
	CODE_PAGE_DOWN = 0522,
	CODE_PAGE_UP = 0523,
	CODE_ENTER = 0527,
	CODE_BACK_TAB = 0541,
	CODE_END = 0550,
	CODE_RESIZE = 0632,
	ATTRIBUTE_UNDERLINE = 1 << 17,
	ATTRIBUTE_REVERSE = 1 << 18,
	ATTRIBUTE_DIM = 1 << 20,
	ATTRIBUTE_BOLD = 1 << 21,
	COLOUR_RED = 1,
	COLOUR_YELLOW = 3,
	PAIR_HOT = 1,
	PAIR_WARM,
};

struct library {
	struct window **stdscr;
	void *(*newterm)(const char *, FILE *, FILE *);
	int (*endwin)(void);
	int (*raw)(void);
	int (*noecho)(void);
	int (*keypad)(struct window *, bool);
	int (*curs_set)(int);
	int (*start_color)(void);
	int (*use_default_colors)(void);
	bool (*has_colors)(void);
	int (*init_pair)(short, short, short);
	int (*set_escdelay)(int);
	int (*getmaxx)(const struct window *);
	int (*getmaxy)(const struct window *);
	int (*werase)(struct window *);
	int (*wmove)(struct window *, int, int);
	int (*wattr_set)(struct window *, unsigned, short, void *);
	int (*waddnstr)(struct window *, const char *, int);
	int (*wrefresh)(struct window *);
	void (*wtimeout)(struct window *, int);
	int (*wget_wch)(struct window *, unsigned *);
};

struct curses_screen {
	struct tally_screen screen;
	struct library library;
	struct window *window;
	bool colours;
};

static const struct { const char *name; size_t place;
} symbols[] = {
#define FUNCTION(name) { #name, offsetof(struct library, name) }
	FUNCTION(stdscr),     FUNCTION(newterm),     FUNCTION(endwin),
	FUNCTION(raw),        FUNCTION(noecho),      FUNCTION(keypad),
	FUNCTION(curs_set),   FUNCTION(start_color), FUNCTION(use_default_colors),
	FUNCTION(has_colors), FUNCTION(init_pair),   FUNCTION(set_escdelay),
	FUNCTION(getmaxx),    FUNCTION(getmaxy),     FUNCTION(werase),
	FUNCTION(wmove),      FUNCTION(wattr_set),   FUNCTION(waddnstr),
	FUNCTION(wrefresh),   FUNCTION(wtimeout),    FUNCTION(wget_wch),
#undef FUNCTION
};

static bool load(struct library *library)
{
	void *handle = tally_loaded_open("libncursesw.so.6");
	bool found = handle;
	for (size_t i = 0; found && i < sizeof(symbols) / sizeof(symbols[0]); i++)
		found = tally_loaded_find(handle, symbols[i].name,
					  (char *)library + symbols[i].place);
	return found;
}

static struct curses_screen *inside(struct tally_screen *screen)
{
	return (struct curses_screen *)screen;
}

static void get_size(struct tally_screen *screen, int *rows, int *columns)
{
	struct curses_screen *curses = inside(screen);
	*rows = curses->library.getmaxy(curses->window);
	*columns = curses->library.getmaxx(curses->window);
}

static void clear(struct tally_screen *screen)
{
	struct curses_screen *curses = inside(screen);
	curses->library.wattr_set(curses->window, 0, 0, NULL);
	curses->library.werase(curses->window);
}

static void put(struct tally_screen *screen, int row, int column, unsigned style, const char *text)
{
	struct curses_screen *curses = inside(screen);
	unsigned attributes = 0;
	short pair = 0;
	switch ((enum tally_screen_style)(style & 0xff)) {
	case TALLY_STYLE_BOLD: attributes = ATTRIBUTE_BOLD; break;
	case TALLY_STYLE_DIM: attributes = curses->colours ? ATTRIBUTE_DIM : 0; break;
	case TALLY_STYLE_BAR: attributes = ATTRIBUTE_REVERSE; break;
	case TALLY_STYLE_HOT:
		attributes = ATTRIBUTE_BOLD;
		if (curses->colours)
			pair = PAIR_HOT;
		else
			pair = 0;
		break;
	case TALLY_STYLE_WARM: pair = curses->colours ? PAIR_WARM : 0; break;
	default: break;
	}
	if (style & TALLY_STYLE_CURSOR) { /* one colour: others are hard to read when reversed */
		attributes = ATTRIBUTE_REVERSE | (attributes & ATTRIBUTE_BOLD);
		pair = 0;
	}
	if (style & TALLY_STYLE_MATCH)
		attributes |= ATTRIBUTE_UNDERLINE | ATTRIBUTE_BOLD;
	curses->library.wattr_set(curses->window, attributes, pair, NULL);
	if (curses->library.wmove(curses->window, row, column) >= 0)
		curses->library.waddnstr(curses->window, text, -1);
}

static void show(struct tally_screen *screen)
{
	struct curses_screen *curses = inside(screen);
	curses->library.wrefresh(curses->window);
}

static bool is_gone(void)
{
	struct pollfd terminal = { .fd = STDIN_FILENO, .events = POLLIN };
	/* readable, but read() failed: the terminal disappeared */
	return poll(&terminal, 1, 0) > 0;
}

static uint32_t translate(unsigned code)
{
	static const struct { unsigned code, key;
	} keys[] = {
		{ CODE_DOWN, TALLY_KEY_DOWN },           { CODE_UP, TALLY_KEY_UP },
		{ CODE_LEFT, TALLY_KEY_LEFT },           { CODE_RIGHT, TALLY_KEY_RIGHT },
		{ CODE_HOME, TALLY_KEY_HOME },           { CODE_END, TALLY_KEY_END },
		{ CODE_PAGE_DOWN, TALLY_KEY_PAGE_DOWN }, { CODE_PAGE_UP, TALLY_KEY_PAGE_UP },
		{ CODE_ENTER, TALLY_KEY_ENTER },         { CODE_BACK_TAB, TALLY_KEY_BACK_TAB },
		{ CODE_BACKSPACE, TALLY_KEY_BACKSPACE }, { CODE_RESIZE, TALLY_KEY_RESIZE },
	};
	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].code == code)
			return keys[i].key;
	return TALLY_KEY_NONE;
}

static uint32_t get_key(struct tally_screen *screen, int timeout_ms)
{
	struct curses_screen *curses = inside(screen);
	unsigned code = 0;
	curses->library.wtimeout(curses->window, timeout_ms);
	int got = curses->library.wget_wch(curses->window, &code);
	if (got == CODE_YES)
		return translate(code);
	if (got < 0)
		return is_gone() ? TALLY_KEY_GONE : TALLY_KEY_NONE;
	if (code == 26) { /* Ctrl-Z: ncurses restores the terminal before it stops */
		raise(SIGTSTP);
		return TALLY_KEY_RESIZE;
	}
	if (code == '\r')
		return TALLY_KEY_ENTER;
	if (code == 0x7f || code == 8)
		return TALLY_KEY_BACKSPACE;
	return code;
}

static void suspend(struct tally_screen *screen)
{
	inside(screen)->library.endwin();
}

static void resume(struct tally_screen *screen)
{
	show(screen); /* after endwin(3), a refresh takes the terminal back */
}

static void close_screen(struct tally_screen *screen)
{
	suspend(screen);
	free(screen);
}

static const struct tally_screen_ops curses_ops = {
	.size = get_size, .clear = clear, .put = put, .show = show, .key = get_key,
	.suspend = suspend, .resume = resume, .close = close_screen,
};

bool tally_screen_possible(void)
{
	return isatty(STDIN_FILENO) && tally_terminal_knows_escapes(STDOUT_FILENO);
}

int tally_curses_screen_open(struct tally_screen **out, struct tally_error *err)
{
	struct curses_screen *curses = calloc(1, sizeof(*curses));
	struct library *library = NULL;
	if (curses)
		library = &curses->library;
	*out = NULL;
	if (!curses)
		return tally_error_set(err, -ENOMEM, "out of memory");
	if (!load(library)) {
		free(curses);
		return tally_loaded_refuse(err, -ENOENT, "reports can't be browsed",
					   "libncursesw.so.6", "libncursesw6; --stdio for text");
	}
	library->set_escdelay(25);
	/* ncurses reads the locale, so it is set before. */
	bool is_utf8 = tally_terminal_is_utf8();
	if (!library->newterm(NULL, stdout, stdin)) {
		free(curses);
		tally_error_set(err, -ENOENT,
				"reports can't be browsed: unknown terminal '%s'",
				tally_environment("TERM"));
		tally_error_hint(err, "on Debian: apt-get install ncurses-term; --stdio for text");
		return -ENOENT;
	}
	curses->window = *library->stdscr;
	curses->colours = tally_terminal_colours(STDOUT_FILENO) && library->has_colors();
	if (curses->colours) {
		library->start_color();
		library->use_default_colors();
		library->init_pair(PAIR_HOT, COLOUR_RED, -1);
		library->init_pair(PAIR_WARM, COLOUR_YELLOW, -1);
	}
	library->raw(); /* Ctrl-C arrives as a key */
	library->noecho();
	library->keypad(curses->window, true);
	library->curs_set(0);
	curses->screen = (struct tally_screen){ .ops = &curses_ops, .ascii = !is_utf8 };
	*out = &curses->screen;
	return 0;
}
