/* Counts a runtime's own code for the functions of the program that it runs.
 *
 * An interpreter runs a function of Python or JavaScript in its own code, so such a function is
 * hardly ever a sample's leaf, and the interpreter is always on top.  With --language-frames, the
 * runtime's frames that a function of the language called are left out of stacks: their samples
 * count for the function.  Frames of other libraries and of the kernel stay.
 *
 * A function of the language is JIT code with a name.  Its runtime is the object that called it: of
 * the nearest frame around it that is no JIT code.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_LANGUAGE_FRAMES_H
#define TALLY_PROFILE_LANGUAGE_FRAMES_H

#include "profile/profile.h"

/* The runtimes that were seen so far. */
struct tally_runtimes {
	const struct tally_names *names;
	struct tally_map objects; /* set of string ids: their paths */
};

/* Notes the runtimes in a stack of functions, leaf first.  Returns 0 or -ENOMEM. */
int tally_runtimes_note(struct tally_runtimes *runtimes, const uint32_t *functions, size_t count);

/* Sets for each function of a stack, leaf first, whether its frame is left out. */
void tally_runtimes_choose(const struct tally_runtimes *runtimes, const uint32_t *functions,
			   size_t count, bool *left_out);

void tally_runtimes_release(struct tally_runtimes *runtimes);

/* Leaves such frames out of a profile with names.  Then also leaves out the samples whose leaf the
 * filter does not select.  Returns 0 or -ENOMEM. */
int tally_profile_join_runtimes(struct tally_profile *profile,
				const struct tally_profile_filter *filter);

/* Counts the samples of one event whose leaf would be left out.  Returns 0 or -ENOMEM. */
int tally_profile_count_runtimes(const struct tally_profile *profile, uint32_t event,
				 uint64_t *samples);

#endif
