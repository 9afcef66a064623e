#include "command/filter_options.h"

#include "base/vector.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "12.345678" → ns, to the last digit: a double would lose some of them after a hundred days of uptime. */
static const char *parse_seconds(const char *text, uint64_t *time_ns)
{
	enum { NS_DIGITS = 9 };
	const uint64_t most = UINT64_MAX / 1000000000 - 1;
	uint64_t seconds = 0, ns = 0;
	unsigned digits = 0, decimals = 0;
	for (; *text >= '0' && *text <= '9' && seconds <= most / 10; text++, digits++)
		seconds = 10 * seconds + (uint64_t)(*text - '0');
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digits++)
			if (decimals < NS_DIGITS) {
				ns = 10 * ns + (uint64_t)(*text - '0');
				decimals++;
			}
	for (; decimals < NS_DIGITS; decimals++)
		ns *= 10;
	*time_ns = seconds * 1000000000 + ns;
	return digits ? text : NULL;
}

static int parse_time(const char *text, struct tally_profile_filter *filter, struct tally_error *err)
{
	const char *comma = strchr(text, ',');
	bool sound = comma != NULL;
	filter->time_start_ns = filter->time_end_ns = 0;
	if (sound && comma > text)
		sound = parse_seconds(text, &filter->time_start_ns) == comma;
	if (sound && comma[1]) {
		const char *end = parse_seconds(comma + 1, &filter->time_end_ns);
		sound = end && !*end && filter->time_end_ns >= filter->time_start_ns;
	}
	if (!sound)
		return tally_error_set(err, -EINVAL, "option --time: '%s' is not START,END in seconds", text);
	return 1;
}

static int take_numbers(const char *option, const char *value, const char **out, struct tally_error *err)
{
	struct tally_number_set set = { 0 };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = tally_number_set_parse(&set, value, &why);
	tally_vector_release(&set);
	*out = value;
	return result < 0 ? tally_error_set(err, result, "option --%s: %s", option, why.message) : 1;
}

int tally_filter_option(int id, const char *value, struct tally_profile_filter *filter, struct tally_error *err)
{
	switch (id) {
	case TALLY_OPTION_COMMS: filter->comms = value; return 1;
	case TALLY_OPTION_PIDS: return take_numbers("pid", value, &filter->pids, err);
	case TALLY_OPTION_TIDS: return take_numbers("tid", value, &filter->tids, err);
	case TALLY_OPTION_CPUS: return take_numbers("cpu", value, &filter->cpus, err);
	case TALLY_OPTION_TIME: return parse_time(value, filter, err);
	default: return 0;
	}
}

static void put_seconds(uint64_t time_ns, struct tally_buffer *out)
{
	if (time_ns)
		tally_buffer_printf(out, "%" PRIu64 ".%09" PRIu64, time_ns / 1000000000, time_ns % 1000000000);
}

void tally_filter_text(const struct tally_profile_filter *filter, struct tally_buffer *out)
{
	const struct { const char *option, *value; } lists[] = {
		{ "comm", filter->comms }, { "dso", filter->objects }, { "pid", filter->pids }, { "tid", filter->tids },
		{ "cpu", filter->cpus },
	};
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].value)
			tally_buffer_printf(out, "%s--%s %s", out->length ? " " : "", lists[i].option, lists[i].value);
	if (!filter->time_start_ns && !filter->time_end_ns)
		return;
	tally_buffer_text(out, out->length ? " --time " : "--time ");
	put_seconds(filter->time_start_ns, out);
	tally_buffer_char(out, ',');
	put_seconds(filter->time_end_ns, out);
}

bool tally_filter_is_set(const struct tally_profile_filter *filter)
{
	return filter->comms || filter->pids || filter->tids || filter->cpus || filter->time_start_ns ||
	       filter->time_end_ns;
}
