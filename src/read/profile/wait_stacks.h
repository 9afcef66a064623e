/* Stacks of waits as a profile shows them: they end where a task waits, not in the scheduler
 * functions that it called.  If it was recorded, they go on with the stack that woke the task. */
#ifndef TALLY_PROFILE_WAIT_STACKS_H
#define TALLY_PROFILE_WAIT_STACKS_H

#include "profile/profile.h"

/* Adds the places that join a wait's stack with the stack that ended it.  Call it before places are
 * named.  Returns 0 or -ENOMEM. */
int tally_profile_prepare_wakers(struct tally_profile *profile);

/* Makes the rows of off-CPU events anew, according to the options.  The profile's places must be
 * named.  Returns 0 or -ENOMEM. */
int tally_profile_arrange_waits(struct tally_profile *profile,
				const struct tally_profile_options *options);

/* True if the function is part of how a task gives up its CPU. */
bool tally_function_is_scheduler(const struct tally_names *names, uint32_t function);

static inline bool tally_class_is_of_waits(const struct tally_profile *profile, uint32_t class)
{
	size_t events;
	const struct tally_recorded_event *recorded = tally_perfdata_events(
		profile->recording->data, &events);
	uint32_t event = profile->classes.items[class].event;
	return event < events && tally_is_off_cpu(&recorded[event].attr, recorded[event].name);
}

/* Returns the event whose samples are waits of known lengths; UINT32_MAX: none has samples. */
uint32_t tally_profile_waits(const struct tally_profile *profile);

/* Appends "who ended waits is known of 83% of their time; …" without a newline, if the profile has
 * wakers and waits. */
void tally_profile_wakers_text(const struct tally_profile *profile, struct tally_buffer *out);

/* Returns the longest wait of a row, ns; 0: the row is not one of waits. */
static inline uint64_t tally_profile_longest(const struct tally_profile *profile, size_t row)
{
	return row < profile->longest.count ? profile->longest.items[row] : 0;
}

#endif
