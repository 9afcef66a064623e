/* Small questions that every output and every reader of text asks.  Prefer these to a `?:` of one's
 * own. */
#ifndef TALLY_BASE_TEXT_H
#define TALLY_BASE_TEXT_H

#include <stdint.h>
#include <string.h>

/* Returns `text`, or `fallback` if `text` is NULL. */
static inline const char *tally_text_or(const char *text, const char *fallback)
{
	if (text)
		return text;
	return fallback;
}

/* Returns "" for one thing, and "s" for none or several: "1 file", "2 files". */
static inline const char *tally_plural(uint64_t count)
{
	if (count == 1)
		return "";
	return "s";
}

/* Returns the newline that ends the line at `line`, or `end` if the last line has none. */
static inline const char *tally_line_end(const char *line, const char *end)
{
	const char *newline = memchr(line, '\n', (size_t)(end - line));
	return tally_text_or(newline, end);
}

#endif
