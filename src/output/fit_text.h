/* Names cut to the columns that there are. */
#ifndef TALLY_OUTPUT_FIT_TEXT_H
#define TALLY_OUTPUT_FIT_TEXT_H

#include "base/buffer.h"

#include <stdbool.h>

/* Columns of a text on a terminal: bytes that begin a UTF-8 character. */
int tally_text_width(const char *text);

/* Appends `text` in at most `width` columns; 0: whole.  A function's name that is too long loses
 * the arguments of its templates first, then its namespaces ("vector<…>::push_back"; brief_name.h),
 * then its middle, for "…" (".." with `ascii`); other text its end.  Returns the columns. */
int tally_fit_text(struct tally_buffer *out, const char *text, int width, bool ascii);

/* Appends words of `text`, broken at blanks into lines of at most `columns`; no newline behind the
 * last. */
void tally_wrap_text(struct tally_buffer *out, const char *text, int columns);

#endif
