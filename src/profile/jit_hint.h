/* What to do where much of a profile is JIT code without names. */
#ifndef TALLY_PROFILE_JIT_HINT_H
#define TALLY_PROFILE_JIT_HINT_H

#include "profile/live_sums.h"
#include "profile/profile.h"

/* A line, with its end, where 5 % of the samples or more are in such code, or in what it called: which command's, and how its runtime is to be
 * started to leave names.  Else nothing.  0 or -ENOMEM. */
int tally_profile_jit_hint(const struct tally_profile *profile, struct tally_buffer *out);

/* The same of what runs now, in fewer words: a line of a terminal has to do. */
int tally_live_jit_hint(const struct tally_live_sums *live, struct tally_buffer *out);

#endif
