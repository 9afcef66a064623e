#include "report/report_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE_BYTES = 4096 };

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

/* Returns the innermost frame of a place. */
static const struct tally_place_frame *innermost(const struct tally_profile *profile,
						 uint32_t place)
{
	return &profile->recording->names.frames.items[profile->names[place].first];
}

uint32_t tally_report_source_file(const struct tally_profile *profile, uint32_t place)
{
	struct tally_strings *strings = &profile->recording->names.strings;
	const struct tally_place_frame *frame = innermost(profile, place);
	bool known = frame->file != TALLY_STRING_NONE && frame->line;
	return tally_strings_intern(
		strings, known ? last_part(tally_strings_text(strings, frame->file)) : "[unknown]");
}

uint32_t tally_report_source_line(const struct tally_profile *profile, uint32_t place)
{
	struct tally_names *names = &profile->recording->names;
	const struct tally_place_frame *frame = innermost(profile, place);
	uint32_t function = tally_profile_function(profile, place);
	char text[SOURCE_BYTES];
	if (frame->file != TALLY_STRING_NONE && frame->line)
		snprintf(text, sizeof(text), "%s:%" PRIu32,
			 last_part(tally_strings_text(&names->strings, frame->file)), frame->line);
	else if (names->functions.items[function].name != TALLY_STRING_NONE)
		snprintf(text, sizeof(text), "%s+%" PRIu64, tally_names_plain_text(names, function),
			 profile->names[place].offset);
	else
		snprintf(text, sizeof(text), "%s[%" PRIx64 "]",
			 tally_names_short_object(names, function),
			 profile->places.places.items[place].address);
	return tally_strings_intern(&names->strings, text);
}
