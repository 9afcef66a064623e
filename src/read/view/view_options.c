/* Checks filters when options are parsed, so that errors name the option.  The values are stored as
 * text and parsed again for the recording. */
#include "view/view_options.h"

#include "base/vector.h"

/* Checks the syntax only: shares of the time need the recording's span, which is not known yet, so
 * any span will do. */
int tally_filter_take_time(void *request, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	struct tally_ranges ranges = { 0 };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = tally_time_ranges_parse(&ranges, value, 0, 1, &why);
	tally_vector_release(&ranges);
	if (result < 0)
		return tally_error_set(err, result, "option --time: %s", why.message);
	return tally_option_store(request, option, value, err);
}

typedef int list_parser(struct tally_ranges *numbers, const char *text, struct tally_error *err);

static int take_list(void *request, const struct tally_option *option, list_parser *parse,
		     const char *value, struct tally_error *err)
{
	struct tally_ranges numbers = { 0 };
	struct tally_error why = TALLY_ERROR_NONE;
	int result = parse(&numbers, value, &why);
	tally_vector_release(&numbers);
	if (result < 0)
		return tally_error_set(err, result, "option --%s: %s", option->name, why.message);
	return tally_option_store(request, option, value, err);
}

int tally_filter_take_numbers(void *request, const struct tally_option *option, const char *value,
			      struct tally_error *err)
{
	return take_list(request, option, tally_numbers_parse, value, err);
}

int tally_filter_take_cpus(void *request, const struct tally_option *option, const char *value,
			   struct tally_error *err)
{
	return take_list(request, option, tally_filter_cpus_parse, value, err);
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
