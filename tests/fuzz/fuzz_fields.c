/* The values of script's -F and --time: any text is accepted or refused with a message.  Accepted
 * fields are shown for every kind of event, except those that its samples don't have.
 *
 * Each line is a list.  The first byte is the layout; a line that begins with 'T' is a time
 * range. */
#include "fuzz.h"

#include "base/vector.h"
#include "output/output.h"
#include "tally/perf_event.h"
#include "view/view.h"

#include <stdlib.h>
#include <string.h>

/* Checks that no column is shown whose PERF_SAMPLE_ bits the samples lack. */
static void check_columns(uint32_t shown, uint64_t sample_type)
{
	const struct tally_script_row *columns[TALLY_SCRIPT_ROWS_MAX];
	size_t count = tally_script_columns(columns);
	for (size_t i = 0; i < count; i++)
		require(!(shown & columns[i]->bit) || !columns[i]->attribute ||
			columns[i]->sample_type & sample_type);
}

static void check_events(const struct tally_script_fields *fields)
{
	for (uint32_t type = 0; type < 9; type++) {
		struct tally_recorded_event event = {
			.name = "event",
			.attr = { .type = type, .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID }
		};
		struct tally_error err = TALLY_ERROR_NONE;
		uint32_t shown = 0;
		int result = tally_script_fields_of(fields, &event, &shown, &err);
		require(result == 0 || (result < 0 && err.message[0]));
		if (!result)
			check_columns(shown, event.attr.sample_type);
		require(result < 0 ||
			!(shown & (TALLY_FIELD_TIME | TALLY_FIELD_CPU | TALLY_FIELD_WALL_TIME)));
		require(fields->layout == TALLY_SCRIPT_CSV || !(shown & TALLY_FIELD_STACK));
	}
}

/* Checks that a share of any time lies inside that time, and that ranges are in order, each with
 * its own ends. */
static void check_ranges(const char *text)
{
	struct tally_ranges ranges = { 0 };
	struct tally_error err = TALLY_ERROR_NONE;
	require(tally_time_ranges_parse(&ranges, text, 5, UINT64_MAX - 5, &err) == 0 &&
		ranges.count);
	for (size_t i = 0; i < ranges.count; i++) {
		const struct tally_range *range = &ranges.items[i];
		require(range->first <= range->last && (!i || range[-1].last + 1 < range->first));
		require(!tally_time_is_share(text) ||
			(range->first >= 5 && range->last <= UINT64_MAX - 5));
		require(tally_ranges_have(&ranges, range->first) &&
			tally_ranges_have(&ranges, range->last));
	}
	tally_vector_release(&ranges);
}

static void check_time(const char *text)
{
	const struct tally_option *option = tally_view_time_option;
	struct tally_view_options request = { .filter = { 0 } };
	struct tally_error err = TALLY_ERROR_NONE;
	int result = option->take(&request, option, text, &err);
	require(result == 0 || (result < 0 && err.message[0]));
	require(result < 0 || request.filter.time == text);
	if (!result)
		check_ranges(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_script_fields fields;
	char *text = strndup((const char *)data, size), *rest = text;
	require(text);
	tally_script_fields_init(&fields,
				 *text ? (enum tally_script_layout)((unsigned char)*rest++ % 3)
				       : TALLY_SCRIPT_TEXT);
	while (rest) {
		char *line = strsep(&rest, "\n");
		struct tally_error err = TALLY_ERROR_NONE;
		if (*line == 'T') {
			check_time(line + 1);
			continue;
		}
		int result = tally_script_fields_parse(&fields, line, &err);
		require(result == 0 || (result < 0 && err.message[0]));
		if (result < 0)
			break;
		check_events(&fields);
	}
	free(text);
	return 0;
}
