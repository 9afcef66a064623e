/* Checks a profile's call chains against the code that is recorded in them.
 *
 * Each return address must follow a call, and a direct call must go to the function of the frame
 * below.  A failure means that a stack was unwound wrongly, or that a file is another one than was
 * recorded. */
#ifndef TALLY_PROFILE_CALL_CHECK_H
#define TALLY_PROFILE_CALL_CHECK_H

#include "profile/profile.h"

/* Numbers of pairs of a caller's and its callee's place, each counted once. */
struct tally_call_check {
	uint64_t checked;
	uint64_t behind_no_call;   /* the caller's address does not follow a call */
	uint64_t to_another;       /* its direct call goes to another function */
	struct tally_place failed; /* the first caller's place that failed */
};

/* Checks the pairs whose code is in files of x86-64 and i386.  Opens the files, and reads their
 * code and unwind rules.  Returns 0 or -ENOMEM. */
int tally_call_check_profile(struct tally_profile *profile, struct tally_call_check *out);

#endif
