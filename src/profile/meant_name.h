/* Finds what was probably meant by a name that doesn't exist: it is shown all candidates and keeps
 * the nearest. */
#ifndef TALLY_PROFILE_MEANT_NAME_H
#define TALLY_PROFILE_MEANT_NAME_H

#include "base/error.h"

#include <stdbool.h>

struct tally_map;
struct tally_names;
struct tally_profile_filter;

enum tally_nearness { TALLY_NEAR_NOT, TALLY_NEAR_LETTERS, TALLY_NEAR_PART, TALLY_NEAR_END };

struct tally_meant_name {
	const char *typed; /* set by the caller */
	enum tally_nearness nearness;
	unsigned distance; /* number of different letters, with TALLY_NEAR_LETTERS */
	char name[256]; /* the nearest candidate; longer names are never suggested */
};

/* True if `typed` is the end of a qualified name: "alpha" is the end of "L<long>::alpha". */
bool tally_name_ends_in(const char *name, const char *typed);

/* Compares a candidate with the best one so far.  The best kind of name ends in the typed one
 * (after "::").  The second best contains it, ignoring case.  The third differs from it in few
 * letters, as a whole or in its last part.  Among equals the first one stays. */
void tally_meant_name_see(struct tally_meant_name *meant, const char *candidate);

/* Sets a hint when a filter matched no leaf's object or function: the nearest existing name, if any
 * is near.  `left_out` is the set of the leaves' functions. */
void tally_hint_meant(const struct tally_names *names, const struct tally_map *left_out,
		      const struct tally_profile_filter *filter, struct tally_error *err);

#endif
