/* Time ranges of a recording, as text:
 *
 *     12.5,13.25          seconds of the recording's clock; either end may be left out
 *     12.5,13 20,         several ranges, separated by blanks
 *     10%-20%,50%-60%     shares of the time from the first sample to the last
 *     30%   10%/2         the first 30 %; the second tenth
 *
 * Pure.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_TIME_RANGES_H
#define TALLY_PROFILE_TIME_RANGES_H

#include "base/error.h"
#include "base/ranges.h"

#include <stdbool.h>
#include <stdint.h>

/* True if the text has shares, which only a caller with the times of the first and the last sample
 * can parse. */
bool tally_time_is_share(const char *text);

/* Parses ranges, in ns, adds them to `ranges` and joins them.  The times of the first and the last
 * sample are only needed for shares.  Returns 0, -EINVAL or -ENOMEM. */
int tally_time_ranges_parse(struct tally_ranges *ranges, const char *text, uint64_t first_ns,
			    uint64_t last_ns, struct tally_error *err);

#endif
