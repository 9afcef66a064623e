/* Fits text into columns. */
#ifndef TALLY_OUTPUT_FIT_TEXT_H
#define TALLY_OUTPUT_FIT_TEXT_H

#include "base/buffer.h"
#include "base/characters.h"

#include <stdbool.h>

/* Returns a text's columns on a terminal: the number of UTF-8 characters. */
int tally_text_width(const char *text);

/* Appends `text` in at most `width` columns; 0: no limit. A function name that is too long first
 * loses its template arguments, then its namespaces ("vector<…>::push_back"; brief_name.h), then
 * its middle; other text loses its end. "…" (".." with `ascii`) marks the cut. Returns the columns
 * used. */
int tally_fit_text(struct tally_buffer *out, const char *text, int width, bool ascii);

/* Appends `text`, wrapped at blanks to lines of at most `columns`; no newline after the last. */
void tally_wrap_text(struct tally_buffer *out, const char *text, int columns);

#endif
