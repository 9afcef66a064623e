/* What a profile shows of tasks' waits: stacks end where a task waits, not in the scheduler that it called for that, and go on
 * with who woke it, where that is asked for and was recorded.
 */
#ifndef TALLY_PROFILE_WAIT_STACKS_H
#define TALLY_PROFILE_WAIT_STACKS_H

#include "profile/profile.h"

/* Makes the rows of off-CPU events anew.  The profile's places are named.  0 or -ENOMEM. */
int tally_profile_arrange_waits(struct tally_profile *profile, bool shows_scheduler);

/* The event of the profile whose samples are waits of known lengths; UINT32_MAX: there is none with samples. */
uint32_t tally_profile_waits(const struct tally_profile *profile);

/* The longest wait of a row, ns; 0 where it is not one of waits. */
static inline uint64_t tally_profile_longest(const struct tally_profile *profile, size_t row)
{
	return row < profile->longest.count ? profile->longest.items[row] : 0;
}

#endif
