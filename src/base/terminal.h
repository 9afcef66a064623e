/* Makes text safe to show, on a terminal or elsewhere: characters of names from outside that would
 * control how it is shown become visible. */
#ifndef TALLY_BASE_TERMINAL_H
#define TALLY_BASE_TERMINAL_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>

/* Copies `text` to `out` (`size` bytes, always terminated), which may be the same memory.  Each
 * character that is not plain (characters.h), and each byte that belongs to no character, becomes
 * '?'; newline and tab stay.  A character that does not fit whole is left out. */
void tally_terminal_clean(const char *text, char *out, size_t size);

/* The same for a name, which is part of one line: newline and tab become '?', too. */
void tally_terminal_clean_name(const char *name, char *out, size_t size);

/* Append a name that is cleaned in this way: all of it, or `length` bytes of it; at the right of a
 * column of `width` bytes; nothing for NULL. */
void tally_put_name(struct tally_buffer *out, const char *name);
void tally_put_name_bytes(struct tally_buffer *out, const char *name, size_t length);
void tally_put_name_right(struct tally_buffer *out, const char *name, size_t width);

/* Cleans a name that was appended as it is: the bytes from `start` on. */
void tally_clean_name_from(struct tally_buffer *out, size_t start);
/* The same for a line of text: tabs stay, as in the kernel's print formats. */
void tally_clean_line_from(struct tally_buffer *out, size_t start);

/* Prints a line to stderr.  The format has no newline.  The line is cleaned like a name, so
 * names in it can neither control a terminal nor begin a line of their own. */
void tally_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* True if `fd` is a terminal that understands escapes: TERM is set, not empty and not "dumb". */
bool tally_terminal_knows_escapes(int fd);

/* The same, and colours are wanted (NO_COLOR is unset or empty). */
bool tally_terminal_colours(int fd);

/* True if text is UTF-8 in the caller's locale (LC_ALL, LC_CTYPE, LANG).  The first call sets the
 * category LC_CTYPE by setlocale(3), which opens several files: commands that show plain ASCII do
 * without it.  Not for the first call in a thread while others run. */
bool tally_terminal_is_utf8(void);

/* True if people read `fd` and group digits: it is a terminal, and the caller's locale for numbers
 * (LC_ALL, LC_NUMERIC, LANG) is neither C, POSIX, C.UTF-8 nor unset. */
bool tally_terminal_groups_digits(int fd);

/* Returns the columns of the terminal at `fd`: by ioctl, else $COLUMNS, else `otherwise`. */
unsigned tally_terminal_columns(int fd, unsigned otherwise);

#endif
