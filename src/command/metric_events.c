/* Finds the events of a metric on a machine: the first definition of its name whose events are
 * there is used. */
#include "command/metric_sources.h"
#include "command/simulated_options.h"

#include "base/characters.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* Parses the plan's events.  Returns 0; or -errno, the reason, and the event that is missing. */
static int parse_events(const struct metric_places *places, const struct tally_metric_plan *plan,
			struct metric_events *parsed, size_t *missing, struct tally_error *err)
{
	size_t count = plan->events.count;
	parsed->ranges = tally_arena_array(places->arena, count + 1, sizeof(*parsed->ranges));
	if (!parsed->ranges)
		return tally_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		const char *text = tally_metric_set_event(places->set, plan->events.items[i]);
		size_t first = parsed->events.count;
		*missing = i;
		if (!text)
			return tally_error_set(err, -ENOMEM, "out of memory");
		int result = tally_event_parse(text, places->catalogue, places->arena,
					       &parsed->events, err);
		if (result >= 0)
			result = provider_check_events(places->provider, &parsed->events, err);
		if (result < 0)
			return result;
		parsed->ranges[i] = (struct tally_metric_rows){ first,
								parsed->events.count - first };
	}
	return 0;
}

/* Finds the event in the expression with "-" and a letter behind it, as in page-faults: there "-" is
 * the difference.  Returns the length of the whole word, or 0; sets *word. */
static int find_unquoted(const char *expression, const char *event, const char **word)
{
	size_t length = strlen(event);
	for (const char *at = expression; (at = strstr(at, event)); at += length) {
		bool begins = at == expression || (!tally_is_word_char(at[-1]) && at[-1] != '\'');
		if (!begins || at[length] != '-' || !isalpha((unsigned char)at[length + 1]))
			continue;
		*word = at;
		while (tally_is_word_char(at[length]) || at[length] == '-')
			length++;
		return (int)length;
	}
	return 0;
}

/* Returns the event and the first line of the reason: the others point into the event's
 * text.  NULL: out of memory. */
static const char *reason_text(const struct metric_places *places, const char *expression,
			       const char *event, const char *reason)
{
	int length = (int)strcspn(reason, "\n");
	const char *word;
	int unquoted = find_unquoted(expression, event, &word);
	if (unquoted)
		return tally_arena_printf(places->arena,
					  "%.*s; a name with '-' needs quotes: '%.*s'", length,
					  reason, unquoted, word);
	if (strstr(reason, event))
		return tally_arena_printf(places->arena, "%.*s", length, reason);
	return tally_arena_printf(places->arena, "%s: %.*s", event, length, reason);
}

int metric_use_prepare(const struct metric_places *places, struct tally_metric_use *use,
		       struct metric_events *parsed, struct tally_error *err)
{
	const char *first_reason = NULL;
	for (;;) {
		struct tally_error why = TALLY_ERROR_NONE;
		size_t missing = 0;
		size_t definition = tally_metric_set_find(places->set, use->name, SIZE_MAX);
		int result = tally_metric_plan_make(places->set, definition, places->arena,
						    &use->plan, err);
		if (result < 0)
			return result;
		result = parse_events(places, &use->plan, parsed, &missing, &why);
		if (result >= 0)
			return 0;
		if (result == -ENOMEM)
			return tally_error_set(err, result, "out of memory");
		tally_event_list_release(&parsed->events);
		parsed->events = (struct tally_event_list){ 0 };
		if (!first_reason)
			first_reason = reason_text(places, use->plan.definition->expression,
						   use->plan.events.items[missing], why.message);
		if (!first_reason)
			return tally_error_set(err, -ENOMEM, "out of memory");
		if (!tally_metric_plan_pass_over(places->set, &use->plan, missing)) {
			use->unavailable = first_reason;
			return 0;
		}
		tally_metric_plan_release(&use->plan);
	}
}
