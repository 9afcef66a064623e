/* Lists of words and patterns, as options take them. */
#ifndef TALLY_BASE_WORD_LIST_H
#define TALLY_BASE_WORD_LIST_H

#include <stdbool.h>

/* True if a comma-separated list has the word, or a pattern that matches it: `*` is any text, `?`
 * one character.  A backslash before these, a comma or a backslash makes them literal. */
bool tally_list_has(const char *list, const char *word);

#endif
