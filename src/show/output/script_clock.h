/* Times as `script` shows them: by the recording's clock; since the first time shown (perf script's
 * --reltime); or since the previous one (--deltatime). In microseconds, with --ns in
 * nanoseconds. */
#ifndef TALLY_OUTPUT_SCRIPT_CLOCK_H
#define TALLY_OUTPUT_SCRIPT_CLOCK_H

#include "base/digits.h"
#include "base/error.h"
#include "recording/recording.h"

#include <stdbool.h>
#include <stdint.h>

struct tally_script_clock {
	bool nanoseconds, since_first, since_last; /* at most one of the last two is set */
	uint64_t reference_ns; /* the time subtracted; 0: nothing has been shown yet */
};

/* Writes "12345.678901: " without a NUL. Returns the end. */
char *tally_script_time(struct tally_script_clock *clock, char *at, uint64_t time_ns);

/* Writes "12345.678901", the default format; optimised for millions of samples. */
static inline char *tally_script_seconds(char *at, uint64_t time_ns)
{
	uint32_t fraction = (uint32_t)(time_ns % 1000000000 / 1000);
	at = tally_put_decimal(at, time_ns / 1000000000, 5);
	*at++ = '.';
	memcpy(at, tally_digit_pairs + 2 * (fraction / 10000), 2);
	memcpy(at + 2, tally_digit_pairs + 2 * (fraction / 100 % 100), 2);
	memcpy(at + 4, tally_digit_pairs + 2 * (fraction % 100), 2);
	return at + 6;
}

/* For the field tod: stores what to add to a sample's time to get wall-clock time. Returns 0, or
 * -ENODATA if the recording lacks it. */
int tally_script_wall_offset(const struct tally_recording *recording, uint64_t *offset_ns,
			     struct tally_error *err);
enum { TALLY_SCRIPT_WALL_TIME_MAX = 40 };
/* Writes "2026-11-22 12:12:12.326022", optionally to the nanosecond, without a NUL: at most
 * TALLY_SCRIPT_WALL_TIME_MAX bytes. Returns the end. */
char *tally_script_wall_time(char *at, uint64_t time_ns, bool nanoseconds);

#endif
