/* The functions of a profile, by the samples in themselves (not in what they called). */
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

/* Keep it small: a machine's programs have hundreds of thousands of functions. */
struct tally_hot_function {
	uint32_t function; /* index into names->functions */
	uint32_t place;    /* one place of the function */
	struct tally_annotation_weight weight;
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

/* Lists the chosen functions, hottest first.  Returns 0, -ENOMEM, or -ENOENT with a hint when there
 * is none.  The caller releases `out` as a vector. */
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

#endif
