/* Makes output safe for a terminal: control bytes in names from outside become visible. */
#ifndef TALLY_BASE_TERMINAL_H
#define TALLY_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `text` to `out` (`size` bytes, always terminated), which may be the same memory.  Control
 * bytes other than newline and tab become '?', as do bytes that an 8-bit terminal takes for control
 * bytes. */
void tally_terminal_clean(const char *text, char *out, size_t size);

/* The same for text that is to be part of one line: newlines and tabs become '?', too. */
void tally_terminal_clean_name(const char *name, char *out, size_t size);

/* True if `fd` is a terminal that understands escapes: TERM is set, not empty and not "dumb". */
bool tally_terminal_knows_escapes(int fd);

/* The same, and colours are wanted (NO_COLOR is unset or empty). */
bool tally_terminal_colours(int fd);

/* Returns the columns of the terminal at `fd`: by ioctl, else $COLUMNS, else `otherwise`. */
unsigned tally_terminal_columns(int fd, unsigned otherwise);

#endif
