/* Subtracts the reference time and appends the digits.  The time of day comes from a pair of times
 * that the recorder took from both clocks at once. */
#include "output/output.h"

#include "perfdata/perfdata.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

char *tally_script_time(struct tally_script_clock *clock, char *at, uint64_t time_ns)
{
	uint64_t shown = time_ns;
	if (clock->since_first || clock->since_last) {
		if (clock->reference_ns)
			shown = time_ns - clock->reference_ns;
		else
			shown = 0;
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

int tally_script_wall_offset(const struct tally_recording *recording, uint64_t *offset_ns,
			     struct tally_error *err)
{
	struct tally_reader reader = tally_feature_reader(recording->data,
							  TALLY_FEATURE_CLOCK_DATA);
	struct tally_feature_clock clock;
	bool is_there = tally_feature_read_clock_data(&reader, &clock);
	*offset_ns = clock.wall_ns - clock.clock_ns;
	if (is_there)
		return 0;
	tally_error_set(err, -ENODATA,
			"the recording lacks the time of day: the field 'tod' can't be shown");
	tally_error_hint(err, "record with tally record, or perf record -k mono");
	return -ENODATA;
}

char *tally_script_wall_time(char *at, uint64_t time_ns, bool nanoseconds)
{
	const uint64_t second = 1000000000;
	char text[24] = "";
	struct tm local;
	time_t time = (time_t)(time_ns / second);
	if (localtime_r(&time, &local))
		strftime(text, sizeof(text), "%F %T", &local);
	return at + snprintf(at, TALLY_SCRIPT_WALL_TIME_MAX, "%s.%0*u", text, nanoseconds ? 9 : 6,
			     (unsigned)(time_ns % second / (nanoseconds ? 1 : 1000)));
}
