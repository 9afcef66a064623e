/* The functions of a profile, by the samples in themselves (not in what they called).
 *
 * A function's code is that of its symbol, and all of its copies that were inlined into the code of
 * other symbols.  Each is listed apart. */
#ifndef TALLY_PROFILE_HOT_FUNCTIONS_H
#define TALLY_PROFILE_HOT_FUNCTIONS_H

#include "base/error.h"
#include "profile/profile.h"

#include <stdbool.h>

struct tally_annotation_weight {
	uint64_t samples, period;
};

static inline void tally_annotation_add(struct tally_annotation_weight *sum,
					const struct tally_annotation_weight *part)
{
	sum->samples += part->samples;
	sum->period += part->period;
}

/* The part of a function that is in one symbol's code.  Keep it small: a machine's programs have
 * hundreds of thousands of functions. */
struct tally_hot_function {
	uint32_t function; /* index into names->functions */
	uint32_t symbol;   /* the function whose code it is in; the same if it isn't inlined */
	uint32_t place;    /* one place of the part */
	uint32_t number;   /* parts with the same name and object have the same */
	/* samples in this part: with and without those in functions that were inlined into it */
	struct tally_annotation_weight weight, self;
	uint64_t whole_self; /* period of `self` over all parts of the function; or its samples */
};

struct tally_hot_functions {
	struct tally_hot_function *items;
	size_t count, capacity;
};

/* Which function to find. */
struct tally_function_choice {
	/* with or without version or parameters, or the end of a qualified name after "::", if only
	 * one function has it; NULL: any */
	const char *name;
	const char *object; /* its object, as a path or the path's last part; NULL: any */
};

/* Lists the parts of the chosen functions, the function with most samples in itself first.  Returns
 * 0, -ENOMEM, or -ENOENT with a hint when there is none.  The caller releases `out` as a vector. */
int tally_hot_functions_find(const struct tally_profile *profile, uint32_t event,
			     const struct tally_function_choice *choice,
			     struct tally_hot_functions *out, struct tally_error *err);

/* Sums the samples whose stacks have such a function; `choice` has a name.  Returns 0 or
 * -ENOMEM. */
int tally_hot_functions_above(const struct tally_profile *profile, uint32_t event,
			      const struct tally_function_choice *choice,
			      struct tally_annotation_weight *out);

/* Returns an array by place: the weight of the event's samples whose leaf it is.  The caller frees
 * it.  NULL: out of memory. */
struct tally_annotation_weight *tally_leaf_weights(const struct tally_profile *profile,
						   uint32_t event);

/* Finds what was probably meant by a name that doesn't exist: it is shown all candidates and keeps
 * the nearest. */

struct tally_map;
struct tally_names;
struct tally_profile_filter;

enum tally_nearness { TALLY_NEAR_NOT, TALLY_NEAR_LETTERS, TALLY_NEAR_PART, TALLY_NEAR_END };

struct tally_meant_name {
	const char *typed; /* set by the caller */
	enum tally_nearness nearness;
	unsigned distance; /* number of different letters, with TALLY_NEAR_LETTERS */
	char name[256];    /* the nearest candidate; longer names are never suggested */
};

/* True if `typed` is the end of a qualified name: "alpha" is the end of "L<long>::alpha". */
bool tally_name_ends_in(const char *name, const char *typed);

/* Compares a candidate with the best one so far.  The best kind of name ends in the typed one
 * (after "::").  The second best contains it, ignoring case.  The third differs from it in few
 * letters, as a whole or in its last part.  Among equals the first one stays. */
void tally_meant_name_try(struct tally_meant_name *meant, const char *candidate);

/* Sets a hint when a filter matched no leaf's object or function: the nearest existing name, if any
 * is near.  `left_out` is the set of the leaves' functions. */
void tally_hint_meant(const struct tally_names *names, const struct tally_map *left_out,
		      const struct tally_profile_filter *filter, struct tally_error *err);

#endif
