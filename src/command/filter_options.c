#include "command/filter_options.h"

#include "base/vector.h"

#include <errno.h>

/* Checks the syntax only: shares of the time need the recording's span, which is not known yet, so
 * any span will do. */
static int take_time(const char *value, const char **out, struct tally_error *err)
{
	struct tally_ranges ranges = { 0 };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = tally_time_ranges_parse(&ranges, value, 0, 1, &why);
	tally_vector_release(&ranges);
	*out = value;
	return result < 0 ? tally_error_set(err, result, "option --time: %s", why.message) : 1;
}

typedef int list_parser(struct tally_ranges *numbers, const char *text, struct tally_error *err);

static int take_numbers(const char *option, list_parser *parse, const char *value, const char **out,
			struct tally_error *err)
{
	struct tally_ranges numbers = { 0 };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = parse(&numbers, value, &why);
	tally_vector_release(&numbers);
	*out = value;
	return result < 0 ? tally_error_set(err, result, "option --%s: %s", option, why.message)
			  : 1;
}

int tally_filter_option(int id, const char *value, struct tally_profile_filter *filter,
			struct tally_error *err)
{
	switch (id) {
	case TALLY_OPTION_COMMS: filter->comms = value; return 1;
	case TALLY_OPTION_PIDS:
		return take_numbers("pid", tally_numbers_parse, value, &filter->pids, err);
	case TALLY_OPTION_TIDS:
		return take_numbers("tid", tally_numbers_parse, value, &filter->tids, err);
	case TALLY_OPTION_CPUS:
		return take_numbers("cpu", tally_filter_cpus_parse, value, &filter->cpus, err);
	case TALLY_OPTION_TIME: return take_time(value, &filter->time, err);
	case TALLY_OPTION_MAX_STACK:
		return tally_option_frames(value, &filter->frames_max, err) < 0 ? -EINVAL : 1;
	default: return 0;
	}
}

void tally_filter_text(const struct tally_profile_filter *filter, struct tally_buffer *out)
{
	const struct { const char *option, *value;
	} lists[] = {
		{ "comm", filter->comms }, { "dso", filter->objects }, { "pid", filter->pids },
		{ "tid", filter->tids },   { "cpu", filter->cpus },    { "time", filter->time },
	};
	for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].value)
			tally_buffer_printf(out, "%s--%s %s", out->length ? " " : "",
					    lists[i].option, lists[i].value);
}

bool tally_filter_is_set(const struct tally_profile_filter *filter)
{
	return filter->comms || filter->pids || filter->tids || filter->cpus || filter->time ||
	       filter->objects || filter->symbols;
}

bool tally_filter_means_idle(const struct tally_profile_filter *filter)
{
	return filter->comms || filter->pids || filter->tids || filter->symbols;
}
