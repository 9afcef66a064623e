/* The nearest name to a mistyped one. */
#ifndef TALLY_BASE_SUGGEST_H
#define TALLY_BASE_SUGGEST_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Damerau–Levenshtein distance (adjacent swaps count one), without regard to case; texts beyond 63
 * bytes are compared by their first 63. */
unsigned tally_edit_distance(const char *a, const char *b);

/* What was meant, of the candidates that are tried: one with a letter or two otherwise, else the
 * longest that the typed word begins with (--frequency).  `name` is empty where none is near. */
struct tally_nearest {
	const char *typed;
	char name[64];
	unsigned distance; /* of a better one than `name` */
	bool is_near;      /* `name` is no mere beginning */
};

void tally_nearest_init(struct tally_nearest *nearest, const char *typed);
void tally_nearest_try(struct tally_nearest *nearest, const char *candidate);

/* The hint of an error that was set since a word is none of `words`, blank-separated: the nearest
 * of them or of `others` (words that are taken but not listed; may be NULL), else all of them. */
void tally_hint_word(struct tally_error *err, const char *typed, size_t length, const char *words,
		     const char *others);

#endif
