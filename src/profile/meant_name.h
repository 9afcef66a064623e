/* What may have been meant by a name that nothing has: candidates come in, the best one stays. */
#ifndef TALLY_PROFILE_MEANT_NAME_H
#define TALLY_PROFILE_MEANT_NAME_H

#include "base/error.h"

#include <stdbool.h>

struct tally_map;
struct tally_names;
struct tally_profile_filter;

enum tally_nearness { TALLY_NEAR_NOT, TALLY_NEAR_LETTERS, TALLY_NEAR_PART, TALLY_NEAR_END };

struct tally_meant_name {
	const char *typed; /* to be set */
	enum tally_nearness nearness;
	unsigned distance; /* in letters, of TALLY_NEAR_LETTERS */
	char name[256]; /* longer ones are nobody's hint */
};

/* Whether the end of a qualified name is meant: "alpha" is that of "L<long>::alpha". */
bool tally_name_ends_in(const char *name, const char *typed);

/* A name whose end it is goes before one that holds it, in either case, and that before one, or its
 * last part, with few other letters; of equals the first stays. */
void tally_meant_name_see(struct tally_meant_name *meant, const char *candidate);

/* For a filter by which no leaf's object or function passed: the hint names what was meant, if
 * anything is near.  `left_out`: the leaves' functions, a set. */
void tally_hint_meant(const struct tally_names *names, const struct tally_map *left_out,
		      const struct tally_profile_filter *filter, struct tally_error *err);

#endif
