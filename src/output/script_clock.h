/* Times as `script` shows them: of the recording's clock, or, as perf script's --reltime and
 * --deltatime have them, since the first time that is shown, or since the one before; to the
 * microsecond, or with --ns to the nanosecond. */
#ifndef TALLY_OUTPUT_SCRIPT_CLOCK_H
#define TALLY_OUTPUT_SCRIPT_CLOCK_H

#include "base/digits.h"

#include <stdbool.h>
#include <stdint.h>

struct tally_script_clock {
	bool nanoseconds, since_first, since_last; /* of the last two at most one */
	uint64_t reference_ns; /* what they count from; 0: nothing was shown yet */
};

enum { TALLY_SCRIPT_TIME_MAX = 64 };
/* "12345.678901: ", without a NUL; the byte behind it is returned. */
char *tally_script_time(struct tally_script_clock *clock, char *at, uint64_t time_ns);

/* "12345.678901": what is shown anyway, of samples by the million. */
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

#endif
