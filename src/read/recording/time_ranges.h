/* Time ranges of a recording, as text:
 *
 *     12.5,13.25          seconds of the recording's clock; either end may be left out
 *     12.5,13 20,         several ranges, separated by blanks
 *     10%-20%,50%-60%     shares of the time from the first sample to the last
 *     30%   10%/2         the first 30 %; the second tenth
 *
 * Pure.  Not thread-safe.
 */
#ifndef TALLY_RECORDING_TIME_RANGES_H
#define TALLY_RECORDING_TIME_RANGES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of 64-bit numbers as ranges, which are added in any order, sorted and joined once, and then
 * searched.
 *
 *     tally_vector_push(&ranges, (struct tally_range){ 4, 7 });
 *     tally_ranges_join(&ranges);
 *     if (tally_ranges_have(&ranges, 5)) ...
 *     tally_vector_release(&ranges);
 *
 * Several threads may search it at once. */

/* Includes both ends. */
struct tally_range {
	uint64_t first, last;
};

struct tally_ranges {
	/* after joining: in order, and neither touching nor overlapping */
	struct tally_range *items;
	size_t count, capacity;
};

/* Sorts the ranges, and joins those that overlap or are adjacent. */
void tally_ranges_join(struct tally_ranges *ranges);

/* Returns true if one of the (joined) ranges has the number. */
bool tally_ranges_have(const struct tally_ranges *ranges, uint64_t number);

/* For a choice of the user: without any range, every number passes. */
static inline bool tally_ranges_pass(const struct tally_ranges *ranges, uint64_t number)
{
	return !ranges->count || tally_ranges_have(ranges, number);
}

/* True if the text has shares, which only a caller with the times of the first and the last sample
 * can parse. */
bool tally_time_is_share(const char *text);

/* Parses ranges, in ns, adds them to `ranges` and joins them.  The times of the first and the last
 * sample are only needed for shares.  Returns 0, -EINVAL or -ENOMEM. */
int tally_time_ranges_parse(struct tally_ranges *ranges, const char *text, uint64_t first_ns,
			    uint64_t last_ns, struct tally_error *err);

#endif
