/* What a terminal may be sent: names from outside have their control bytes made visible. */
#ifndef TALLY_BASE_TERMINAL_H
#define TALLY_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Copies `text` to `out` (size bytes, always terminated), which may be where it is: control bytes
 * but newline and tab become '?', as does what a terminal of 8 bits takes for one. */
void tally_terminal_clean(const char *text, char *out, size_t size);

/* True when `fd` is a terminal that knows escapes: TERM is set, not empty and not "dumb". */
bool tally_terminal_knows_escapes(int fd);

/* The same, and colours are wanted (NO_COLOR unset or empty). */
bool tally_terminal_colours(int fd);

/* Columns of the terminal at `fd`: by ioctl, $COLUMNS, else `otherwise`. */
unsigned tally_terminal_columns(int fd, unsigned otherwise);
unsigned tally_terminal_rows(int fd, unsigned otherwise);

#endif
