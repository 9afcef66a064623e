/* How to get the names that runtimes keep to themselves: of code that a JIT made, and of
 * interpreted functions. */
#ifndef TALLY_PROFILE_JIT_HINT_H
#define TALLY_PROFILE_JIT_HINT_H

#include "profile/live_sums.h"
#include "profile/profile.h"

enum tally_hint_form {
	TALLY_HINT_WITH_SHARES,
	TALLY_HINT_WITHOUT_SHARES, /* for a profile whose samples aren't all there */
	TALLY_HINT_BRIEF,          /* as much as a terminal's line has room for */
};

/* Appends a line, with its end, where 5 % of the samples or more lack names that the runtime could
 * give: whose, and how it is to be started, or asked while it runs.  Else nothing.  0 or -ENOMEM.
 */
int tally_profile_jit_hint(const struct tally_profile *profile, enum tally_hint_form form,
			   struct tally_buffer *out);

/* The same of what runs now, briefly. */
int tally_live_jit_hint(const struct tally_live_sums *live, struct tally_buffer *out);

#endif
