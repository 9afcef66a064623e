/* The functions of a profile by the samples in themselves. */
#ifndef TALLY_PROFILE_HOT_FUNCTIONS_H
#define TALLY_PROFILE_HOT_FUNCTIONS_H

#include "profile/profile.h"

struct tally_annotation_weight {
	uint64_t samples, period;
};

static inline void tally_annotation_add(struct tally_annotation_weight *sum,
					const struct tally_annotation_weight *part)
{
	sum->samples += part->samples;
	sum->period += part->period;
}

/* A machine's programs have hundreds of thousands. */
struct tally_hot_function {
	uint32_t function; /* id of names->functions */
	uint32_t place;    /* one of its places */
	struct tally_annotation_weight weight;
};

struct tally_hot_functions {
	struct tally_hot_function *items;
	size_t count, capacity;
};

/* What is looked for. */
struct tally_function_choice {
	const char *
		name; /* with or without version or parameters, or the end of one alone, behind "::"; NULL: any */
	const char *object; /* whose, a path or its last part; NULL: whosever */
};

/* The hottest first.  -ENOENT with a hint where there is none.  `out` is to be released as a
 * vector. */
int tally_hot_functions_find(const struct tally_profile *profile, uint32_t event,
			     const struct tally_function_choice *choice,
			     struct tally_hot_functions *out, struct tally_error *err);

/* Samples whose stacks have such a function; `choice` has a name.  0 or -ENOMEM. */
int tally_hot_functions_above(const struct tally_profile *profile, uint32_t event,
			      const struct tally_function_choice *choice,
			      struct tally_annotation_weight *out);

/* By place: its weight as the leaf of the event's samples; to be freed.  NULL: no memory. */
struct tally_annotation_weight *tally_leaf_weights(const struct tally_profile *profile,
						   uint32_t event);

#endif
