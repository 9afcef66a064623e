/* What a profile shows of tasks' waits: stacks end where a task waits, not in the scheduler that
 * it called for that, and go on with who woke it, where that is asked for and was recorded. / */
#ifndef TALLY_PROFILE_WAIT_STACKS_H
#define TALLY_PROFILE_WAIT_STACKS_H

#include "profile/profile.h"

/* Adds the places that stand between a wait's stack and that of who ended it, before places are
 * named.  0 or -ENOMEM. */
int tally_profile_prepare_wakers(struct tally_profile *profile);

/* Makes the rows of off-CPU events anew, as the options have it.  The profile's places are
 * named.  0 or -ENOMEM. */
int tally_profile_arrange_waits(struct tally_profile *profile,
				const struct tally_profile_options *options);

/* Whether a task gives up its CPU by the function. */
bool tally_function_is_scheduler(const struct tally_names *names, uint32_t function);

static inline bool tally_class_is_of_waits(const struct tally_profile *profile, uint32_t class)
{
	size_t events;
	const struct tally_recorded_event *recorded = tally_perfdata_events(
		profile->recording->data, &events);
	uint32_t event = profile->classes.items[class].event;
	return event < events && tally_is_off_cpu(&recorded[event].attr, recorded[event].name);
}

/* The event of the profile whose samples are waits of known lengths; UINT32_MAX: there is none
 * with samples. */
uint32_t tally_profile_waits(const struct tally_profile *profile);

/* "who ended waits is known of 83% of their time; …", of a profile with wakers that has any
 * waits; without a line's end. */
void tally_profile_wakers_text(const struct tally_profile *profile, struct tally_buffer *out);

/* The longest wait of a row, ns; 0 where it is not one of waits. */
static inline uint64_t tally_profile_longest(const struct tally_profile *profile, size_t row)
{
	return row < profile->longest.count ? profile->longest.items[row] : 0;
}

#endif
