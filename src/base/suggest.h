/* Finds the nearest name to a mistyped one. */
#ifndef TALLY_BASE_SUGGEST_H
#define TALLY_BASE_SUGGEST_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Returns the Damerau–Levenshtein distance (a swap of neighbours costs one), ignoring case.  Only
 * the first 63 bytes count. */
unsigned tally_edit_distance(const char *a, const char *b);

/* The best of the candidates tried so far: one that differs in a letter or two, otherwise the
 * longest one that the typed word begins with (--frequency).  `name` is empty if none is near. */
struct tally_nearest {
	const char *typed;
	char name[64];
	unsigned distance; /* a better one must have less than this distance */
	bool is_near;      /* `name` is similar, not just the beginning of the typed word */
};

void tally_nearest_init(struct tally_nearest *nearest, const char *typed);
void tally_nearest_try(struct tally_nearest *nearest, const char *candidate);

/* Sets the hint of an error "none of `words`" (separated by blanks): the nearest of them or of
 * `others` (words that are accepted but not listed; may be NULL), otherwise all of `words`. */
void tally_hint_word(struct tally_error *err, const char *typed, size_t length, const char *words,
		     const char *others);

#endif
