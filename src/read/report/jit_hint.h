/* Hints on how to get names that runtimes don't give by default: the names of JIT code and of
 * interpreted functions. */
#ifndef TALLY_REPORT_JIT_HINT_H
#define TALLY_REPORT_JIT_HINT_H

#include "report/live_sums.h"
#include "profile/profile.h"

enum tally_hint_form {
	TALLY_HINT_WITH_SHARES,
	TALLY_HINT_WITHOUT_SHARES, /* for a profile that lacks some of its samples */
	TALLY_HINT_BRIEF,          /* fits on a line of a terminal */
};

/* Appends a line (with its newline) if at least 5 % of the samples lack names that their runtime
 * can give.  The line names the program and says how to start it, or which command makes the
 * running program write its names; then it begins with "hint: ", except for the brief form.  If
 * there is no way, it says so; the brief form says nothing.  Returns 0 or -ENOMEM. */
int tally_profile_jit_hint(const struct tally_profile *profile, enum tally_hint_form form,
			   struct tally_buffer *out);

/* The same for live samples, in the brief form. */
int tally_live_jit_hint(const struct tally_live_sums *live, struct tally_buffer *out);

#endif
