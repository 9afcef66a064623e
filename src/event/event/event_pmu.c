/* Finds PMUs by name: exactly, by glob, or by the common name of numbered PMUs (imc for
 * uncore_imc_0, uncore_imc_1). */
#include "event/event_internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int load(struct tally_event_parser *parser, const char *name)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	if (catalogue->load_pmus)
		return catalogue->load_pmus(catalogue, catalogue->context, name, parser->err);
	return 0;
}

static bool all_digits(const char *text)
{
	return text[strspn(text, "0123456789")] == '\0';
}

static bool matches(const char *typed, const char *name)
{
	static const char uncore[] = "uncore_";
	if (!strncmp(name, uncore, strlen(uncore)) && strncmp(typed, uncore, strlen(uncore)))
		name += strlen(uncore);
	if (tally_event_is_glob(typed))
		return !fnmatch(typed, name, 0);
	size_t length = strlen(typed);
	return !strncmp(typed, name, length) && all_digits(name + length + (name[length] == '_'));
}

static int no_pmu(struct tally_event_parser *parser, size_t position, const char *name)
{
	const struct tally_catalogue *catalogue = parser->catalogue;
	struct tally_event_nearest nearest;
	char names[300] = "";
	size_t used = 0;
	tally_event_nearest_init(&nearest, name);
	for (size_t i = 0; i < catalogue->pmu_count; i++) {
		tally_event_nearest_try(&nearest, catalogue->pmus[i].name);
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", catalogue->pmus[i].name);
	}
	tally_event_fail(parser, -ENOENT, position, "there is no PMU '%.100s' on this machine",
			 name);
	if (nearest.best[0])
		tally_event_nearest_hint(&nearest, parser, "");
	else if (!strcmp(name, "cpu"))
		tally_error_hint(
			parser->err,
			"the CPU's counters are not offered here, as on most virtual machines; "
			"PMUs there are: %s",
			names);
	else
		tally_error_hint(parser->err, "PMUs there are: %s", names[0] ? names : "none");
	return -ENOENT;
}

static struct tally_event *add(struct tally_event_parser *parser, const struct tally_pmu *pmu)
{
	return tally_event_add(parser, TALLY_EVENT_PMU, pmu->type, 0);
}

/* Parses the terms from the present '/' on, for one PMU. */
static int add_with_terms(struct tally_event_parser *parser, const struct tally_pmu *pmu)
{
	struct tally_event *event = add(parser, pmu);
	if (!event)
		return -ENOMEM;
	tally_event_take(parser);
	return tally_event_parse_terms(parser, pmu, event);
}

/* Adds an event for every PMU that `name` matches, with the same terms. */
static int add_all(struct tally_event_parser *parser, struct tally_event_token token,
		   const char *name)
{
	const struct tally_catalogue *catalogue = parser->catalogue;
	struct tally_event_token slash = parser->token;
	size_t first = parser->list->count;
	for (size_t i = 0; i < catalogue->pmu_count; i++) {
		if (!matches(name, catalogue->pmus[i].name))
			continue;
		parser->token = slash;
		int code = add_with_terms(parser, &catalogue->pmus[i]);
		if (code < 0)
			return code;
		struct tally_event *event = &parser->list->items[parser->list->count - 1];
		if (!event->name)
			event->name = tally_arena_printf(
				parser->arena, "%s%.*s", catalogue->pmus[i].name,
				(int)(parser->taken_end - slash.start), parser->text + slash.start);
	}
	if (parser->list->count > first)
		return 0;
	return no_pmu(parser, token.start, name);
}

int tally_event_parse_pmu(struct tally_event_parser *parser, struct tally_event_token token)
{
	const struct tally_catalogue *catalogue = parser->catalogue;
	char *name = tally_event_token_text(parser, token);
	if (!name)
		return tally_event_no_memory(parser);
	int code = 0;
	if (!tally_event_is_glob(name))
		code = load(parser, name);
	for (size_t i = 0; !code && i < catalogue->pmu_count; i++)
		if (!strcmp(catalogue->pmus[i].name, name))
			return add_with_terms(parser, &catalogue->pmus[i]);
	if (!code)
		code = load(parser, NULL);
	if (code)
		return code;
	return add_all(parser, token, name);
}

int tally_event_bare_pmu_event(struct tally_event_parser *parser, const char *name)
{
	const struct tally_catalogue *catalogue = parser->catalogue;
	int added = 0, code = load(parser, NULL);
	for (size_t i = 0; !code && i < catalogue->pmu_count; i++) {
		const struct tally_pmu *pmu = &catalogue->pmus[i];
		for (size_t j = 0; !code && j < pmu->event_count; j++) {
			if (strcasecmp(pmu->events[j].name, name))
				continue;
			struct tally_event *event = add(parser, pmu);
			if (!event)
				return -ENOMEM;
			code = tally_event_apply_alias(parser, pmu, &pmu->events[j],
						       parser->taken_end, event);
			added++;
		}
	}
	if (code)
		return code;
	return added;
}
