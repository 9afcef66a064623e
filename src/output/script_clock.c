#include "output/script_clock.h"

char *tally_script_time(struct tally_script_clock *clock, char *at, uint64_t time_ns)
{
	uint64_t shown = time_ns;
	if (clock->since_first || clock->since_last) {
		shown = clock->reference_ns ? time_ns - clock->reference_ns : 0;
		if (clock->since_last || !clock->reference_ns)
			clock->reference_ns = time_ns;
	}
	at = tally_script_seconds(at, shown);
	if (clock->nanoseconds) {
		uint32_t rest = (uint32_t)(shown % 1000);
		*at++ = (char)('0' + rest / 100);
		memcpy(at, tally_digit_pairs + 2 * (rest % 100), 2);
		at += 2;
	}
	memcpy(at, ": ", 2);
	return at + 2;
}
