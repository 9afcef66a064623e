/* Idle time of CPUs: samples whose leaf is a function that the kernel idles in.
 *
 * An interrupt runs in whatever task it meets, also in the idle task.  Samples in interrupts are
 * work, and stay.
 */
#ifndef TALLY_PROFILE_IDLE_H
#define TALLY_PROFILE_IDLE_H

#include "base/buffer.h"
#include "profile/profile.h"
#include "profile/samples.h"

/* True if the kernel idles in the function.  If kernel functions have no names, everything that the
 * idle task does in the kernel counts as idle. */
bool tally_function_is_idle(const struct tally_names *names, uint32_t function, bool is_idle_task);

/* Moves the idle samples from the profile's rows to profile->idle.  Returns 0 or -ENOMEM. */
int tally_profile_leave_out_idle(struct tally_profile *profile);

/* Returns what was left out of an event as idle; 0 samples: nothing. */
struct tally_left_out tally_profile_idle(const struct tally_profile *profile, uint32_t event);

/* Marks the idle samples of all events as left out.  Sets `idle` to the event's samples that are
 * left out, and `rest_period` to the period of its others.  Returns 0, or -ENOMEM. */
int tally_samples_leave_out_idle(struct tally_samples *samples, uint32_t event,
				 struct tally_left_out *idle, uint64_t *rest_period);

/* Appends "35% is idle and left out: percentages are of the rest; …" without a newline;
 * nothing if no sample was left out. */
void tally_idle_text(const struct tally_left_out *idle, uint64_t period, struct tally_buffer *out);

#endif
