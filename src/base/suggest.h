/* The nearest name to a mistyped one. */
#ifndef TALLY_BASE_SUGGEST_H
#define TALLY_BASE_SUGGEST_H

#include <stddef.h>

/* Damerau–Levenshtein distance (adjacent swaps count one), without regard to case; texts beyond 63 bytes are
 * compared by their first 63. */
unsigned tally_edit_distance(const char *a, const char *b);

#endif
