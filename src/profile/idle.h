/* The time when a CPU had nothing to do: samples whose leaf is one of the functions that the kernel
 * idles in.
 *
 * Interrupts are handled by whatever runs, the idle task too: such samples are work, and stay.
 */
#ifndef TALLY_PROFILE_IDLE_H
#define TALLY_PROFILE_IDLE_H

#include "base/buffer.h"
#include "profile/profile.h"

/* Whether the kernel idles in the function.  Where its functions have no names, all that the
 * idle task does counts as that. */
bool tally_function_is_idle(const struct tally_names *names, uint32_t function, bool is_idle_task);

/* Whether the event's samples are taken by time or hardware, rather than where something
 * happens. */
bool tally_event_meets_idle(const struct tally_attr *attr);

/* Takes the idle samples out of the profile's rows, and sums them up in profile->idle.  0 or
 * -ENOMEM. */
int tally_profile_leave_out_idle(struct tally_profile *profile);

/* What was left out of an event, with 0 samples where nothing was. */
struct tally_left_out tally_profile_idle(const struct tally_profile *profile, uint32_t event);

/* "35% of it is idle and left out: percentages are of the rest; …", without a line's end;
 * nothing where nothing was left out. */
void tally_idle_text(const struct tally_left_out *idle, uint64_t period, struct tally_buffer *out);

#endif
