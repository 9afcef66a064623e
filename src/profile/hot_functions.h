/* The functions of a profile by the samples in themselves.
 *
 * Code without a symbol is told apart by its unwind rules, which a stripped program still has: each function's tell where
 * it begins and ends.
 */
#ifndef TALLY_PROFILE_HOT_FUNCTIONS_H
#define TALLY_PROFILE_HOT_FUNCTIONS_H

#include "profile/profile.h"

struct tally_annotation_weight {
	uint64_t samples, period;
};

static inline void tally_annotation_add(struct tally_annotation_weight *sum, const struct tally_annotation_weight *part)
{
	sum->samples += part->samples;
	sum->period += part->period;
}

/* 40 bytes: a machine's programs have hundreds of thousands. */
struct tally_hot_function {
	uint32_t function;   /* id of names->functions */
	uint32_t place;      /* one of its places */
	uint64_t start, end; /* of what has no symbol; else both 0 */
	struct tally_annotation_weight weight;
};

enum { TALLY_HOT_FUNCTION_NAME = 512 };

struct tally_hot_functions {
	struct tally_hot_function *items;
	size_t count, capacity;
};

/* What is looked for. */
struct tally_function_choice {
	const char *name;   /* with or without version or parameters, or the end of one alone, behind "::"; NULL: any */
	const char *object; /* whose, a path or its last part; NULL: whosever */
};

/* The hottest first.  -ENOENT with a hint where there is none.  `out` is to be released as a vector. */
int tally_hot_functions_find(const struct tally_profile *profile, uint32_t event, const struct tally_function_choice *choice,
			     struct tally_hot_functions *out, struct tally_error *err);

/* Samples whose stacks have such a function; `choice` has a name.  0 or -ENOMEM. */
int tally_hot_functions_above(const struct tally_profile *profile, uint32_t event, const struct tally_function_choice *choice,
			      struct tally_annotation_weight *out);

/* "main"; "cc1+0x4d2a30" where there is no symbol. */
void tally_hot_function_name(const struct tally_profile *profile, const struct tally_hot_function *hot,
			     char name[TALLY_HOT_FUNCTION_NAME]);

/* Is a place in it? */
bool tally_hot_function_has(const struct tally_profile *profile, const struct tally_hot_function *hot, uint32_t place);

/* By place: its weight as the leaf of the event's samples; to be freed.  NULL: no memory. */
struct tally_annotation_weight *tally_leaf_weights(const struct tally_profile *profile, uint32_t event);

#endif
