/* The terms between slashes: those of a PMU's format, its named events, and general ones.
 *
 *     cpu/mem-loads,ldlat=30,period=1000,name=slow-loads/
 *
 * Terms are applied from left to right, each over the result so far: a named event sets its fields,
 * and a later term may replace one. */
#include "base/error.h"
#include "base/text.h"
#include "event/event_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TERMS_MAX = 64 };

struct term {
	const char *name, *value; /* value NULL: none given */
	size_t name_at, value_at;
};

struct terms {
	struct term items[TERMS_MAX];
	size_t count;
};

static int take_term(struct tally_event_parser *parser, struct terms *terms)
{
	if (parser->token.kind != TALLY_EVENT_TOKEN_WORD)
		return tally_event_unexpected(parser,
					      "a term such as config=1 or period=1000, or '/'");
	if (terms->count == TERMS_MAX)
		return tally_event_fail(parser, -E2BIG, parser->token.start, "more than %d terms",
					TERMS_MAX);
	struct term *term = &terms->items[terms->count++];
	struct tally_event_token token = tally_event_take(parser);
	*term = (struct term){ .name = tally_event_token_text(parser, token),
			       .name_at = token.start };
	if (tally_event_accept(parser, TALLY_EVENT_TOKEN_EQUALS)) {
		token = parser->token;
		if (token.kind != TALLY_EVENT_TOKEN_WORD && token.kind != TALLY_EVENT_TOKEN_QUOTED)
			return tally_event_unexpected(parser, "a value");
		term->value = tally_event_token_text(parser, tally_event_take(parser));
		term->value_at = token.start;
		if (!term->value)
			return tally_event_no_memory(parser);
	}
	if (term->name)
		return 0;
	return tally_event_no_memory(parser);
}

static int take_terms(struct tally_event_parser *parser, struct terms *terms)
{
	terms->count = 0;
	while (parser->token.kind != TALLY_EVENT_TOKEN_SLASH) {
		int code = take_term(parser, terms);
		if (code < 0)
			return code;
		if (!tally_event_accept(parser, TALLY_EVENT_TOKEN_COMMA) &&
		    parser->token.kind != TALLY_EVENT_TOKEN_SLASH)
			return tally_event_unexpected(parser, "',' or '/'");
	}
	tally_event_take(parser);
	return 0;
}

static int number(struct tally_event_parser *parser, const struct term *term, uint64_t *out)
{
	if (!term->value)
		*out = 1; /* a flag: "edge" */
	else if (!tally_event_number(term->value, out))
		return tally_event_fail(
			parser, -EINVAL, term->value_at,
			"'%.60s' is not a value for '%.60s': expected a number such as 10 or 0x1f",
			term->value, term->name);
	return 0;
}

static uint64_t *config_field(struct tally_attr *attr, unsigned field)
{
	switch (field) {
	case 0:
		return &attr->config;
	case 1:
		return &attr->config1;
	case 2:
		return &attr->config2;
	default:
		return &attr->config3;
	}
}

static int set_format(struct tally_event_parser *parser, const struct tally_format_term *format,
		      const struct term *term, struct tally_attr *attr)
{
	uint64_t value, left, bits = 0;
	int code = number(parser, term, &value);
	if (code < 0)
		return code;
	left = value;
	for (uint64_t mask = format->mask; mask; mask &= mask - 1, left >>= 1)
		if (left & 1)
			bits |= mask & -mask;
	int width = __builtin_popcountll(format->mask);
	if (width < 64 && value >> width)
		return tally_event_fail(
			parser, -EINVAL, term->value_at,
			"%.60s is too much for '%.60s': it has %d bit%s, its maximum is %llu",
			term->value, term->name, width, tally_plural(width), (1ull << width) - 1);
	uint64_t *field = config_field(attr, format->field);
	*field = (*field & ~format->mask) | bits;
	return 0;
}

static int set_period(struct tally_event_parser *parser, const struct term *term,
		      struct tally_event *event, bool frequency)
{
	uint64_t value;
	if (!term->value || !tally_event_number(term->value, &value) || !value || value >> 63) {
		size_t at = term->value ? term->value_at : term->name_at;
		if (frequency)
			return tally_event_fail(parser, -EINVAL, at,
						"expected freq=N, samples a second");
		return tally_event_fail(parser, -EINVAL, at,
					"expected period=N, events between samples");
	}
	event->attr.sample_period = value;
	event->attr.flags &= ~TALLY_ATTR_FREQ;
	if (frequency)
		event->attr.flags |= TALLY_ATTR_FREQ;
	event->has_frequency = frequency;
	event->has_period = !frequency;
	return 0;
}

/* Terms that perf knows, and tally has elsewhere or not at all. */
static int refuse(struct tally_event_parser *parser, const struct term *term)
{
	static const struct { const char *name, *instead;
	} refused[] = {
		{ "call-graph", "use -g, which is meant for all events" },
		{ "stack-size", "use -g dwarf,SIZE, which is meant for all events" },
		{ "max-stack", "use the option --max-stack, which is meant for all events" },
		{ "branch_type", "use -b or -j, which are meant for all events" },
		{ "inherit", "use the option -i to leave children out" },
		{ "no-inherit", "use the option -i to leave children out" },
		{ "time", "every sample has its time" },
		{ "percore", "use 'stat --per-core', which adds up a core's threads" },
		{ "overwrite", NULL },
		{ "no-overwrite", NULL },
		{ "nr", NULL },
		{ "driver-config", NULL },
		{ "aux-output", NULL },
		{ "aux-sample-size", NULL },
		{ "metric-id", NULL },
	};
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (strcmp(term->name, refused[i].name))
			continue;
		tally_event_fail(parser, -EINVAL, term->name_at,
				 "the term '%s' is perf's: tally doesn't have it", term->name);
		if (refused[i].instead)
			tally_error_hint(parser->err, "%s", refused[i].instead);
		return -EINVAL;
	}
	return 0;
}

/* Applies a term that any event may have.  Returns 1 if it is one. */
static int general_term(struct tally_event_parser *parser, const struct term *term,
			struct tally_event *event)
{
	int code;
	if (!strcmp(term->name, "name")) {
		if (!term->value || !*term->value)
			return tally_event_fail(parser, -EINVAL, term->name_at,
						"expected name=TEXT");
		event->name = term->value;
		parser->name_given = true;
		return 1;
	}
	if (!strcmp(term->name, "period") || !strcmp(term->name, "freq")) {
		code = set_period(parser, term, event, term->name[0] == 'f');
		if (code < 0)
			return code;
		return 1;
	}
	return 0;
}

/* Applies config=, config1=, config2=, config3= and r1a8: the attr's own fields. */
static int raw_term(struct tally_event_parser *parser, const struct term *term,
		    struct tally_event *event)
{
	uint64_t value;
	size_t hex = 0;
	if (term->name[0] == 'r')
		hex = strspn(term->name + 1, "0123456789abcdefABCDEF");
	if (hex && hex <= 16 && !term->name[1 + hex] && !term->value) {
		event->attr.config = strtoull(term->name + 1, NULL, 16);
		return 1;
	}
	if (strncmp(term->name, "config", 6))
		return 0;
	const char *digit = term->name + 6;
	if (*digit && (digit[1] || *digit < '1' || *digit > '3'))
		return 0;
	int code = number(parser, term, &value);
	*config_field(&event->attr, *digit ? (unsigned)(*digit - '0') : 0) = value;
	if (code < 0)
		return code;
	return 1;
}

static const struct tally_format_term *find_format(const struct tally_pmu *pmu, const char *name)
{
	for (size_t i = 0; i < pmu->term_count; i++)
		if (!strcmp(pmu->terms[i].name, name))
			return &pmu->terms[i];
	return NULL;
}

static const struct tally_pmu_alias *find_alias(const struct tally_pmu *pmu,
						const struct term *term)
{
	const char *name = tally_text_or(term->value, term->name);
	if (term->value && strcasecmp(term->name, "event"))
		return NULL;
	for (size_t i = 0; i < pmu->event_count; i++)
		if (!strcasecmp(pmu->events[i].name, name))
			return &pmu->events[i];
	return NULL;
}

/* Applies one "term=value" of a named event, as in sysfs; the user fills in a value "?". */
static int alias_term(struct tally_event_parser *parser, const struct tally_pmu *pmu,
		      const char *alias, const struct term *term, const struct terms *given,
		      struct tally_event *event)
{
	if (term->value && !strcmp(term->value, "?")) {
		for (size_t i = 0; given && i < given->count; i++)
			if (!strcmp(given->items[i].name, term->name))
				return 0;
		tally_event_fail(parser, -EINVAL, term->name_at,
				 "'%.60s' needs a value for '%.60s'", alias, term->name);
		tally_error_hint(parser->err, "write %s/%s,%s=VALUE/", pmu->name, alias,
				 term->name);
		return -EINVAL;
	}
	const struct tally_format_term *format = find_format(pmu, term->name);
	if (format)
		return set_format(parser, format, term, &event->attr);
	if (!strcmp(term->name, "period")) /* a default for sampling, which -c and -F set */
		return 0;
	int code = raw_term(parser, term, event);
	if (code == 0)
		return tally_event_fail(
			parser, -EINVAL, term->name_at,
			"the kernel describes '%.60s' by a term '%.60s' that PMU '%.60s' doesn't "
			"have",
			alias, term->name, pmu->name);
	return tally_error_of(code);
}

static int apply_alias(struct tally_event_parser *parser, const struct tally_pmu *pmu,
		       const struct tally_pmu_alias *alias, size_t position,
		       const struct terms *given, struct tally_event *event)
{
	char *text = tally_arena_string(parser->arena, alias->terms), *rest = text, *one;
	if (!text)
		return tally_event_no_memory(parser);
	while ((one = strsep(&rest, ",\n"))) {
		char *equals = strchr(one, '=');
		if (equals)
			*equals = '\0';
		if (!*one)
			continue;
		struct term term = { one, equals ? equals + 1 : NULL, position, position };
		int code = alias_term(parser, pmu, alias->name, &term, given, event);
		if (code < 0)
			return code;
	}
	if (alias->unit && alias->unit[0])
		event->unit = alias->unit;
	if (alias->scale != 0)
		event->scale = alias->scale;
	return 0;
}

int tally_event_apply_alias(struct tally_event_parser *parser, const struct tally_pmu *pmu,
			    const struct tally_pmu_alias *alias, size_t position,
			    struct tally_event *event)
{
	return apply_alias(parser, pmu, alias, position, NULL, event);
}

static int unknown_term(struct tally_event_parser *parser, const struct tally_pmu *pmu,
			const struct term *term)
{
	static const char *const general[] = { "name",    "period",  "freq",   "config",
					       "config1", "config2", "config3" };
	struct tally_event_nearest nearest;
	tally_event_nearest_init(&nearest, term->name);
	for (size_t i = 0; i < (pmu ? 7 : 3); i++)
		tally_event_nearest_try(&nearest, general[i]);
	if (!pmu) {
		tally_event_fail(parser, -EINVAL, term->name_at,
				 "there is no term '%.60s' for this event: expected "
				 "period, freq or name",
				 term->name);
		if (nearest.best[0])
			tally_event_nearest_hint(&nearest, parser, "");
		return -EINVAL;
	}
	for (size_t i = 0; i < pmu->term_count; i++)
		tally_event_nearest_try(&nearest, pmu->terms[i].name);
	for (size_t i = 0; i < pmu->event_count; i++)
		tally_event_nearest_try(&nearest, pmu->events[i].name);
	tally_event_fail(parser, -ENOENT, term->name_at,
			 "PMU '%s' has no term and no event '%.60s'", pmu->name, term->name);
	char otherwise[160];
	snprintf(otherwise, sizeof(otherwise), "'tally list pmu %.60s' shows what it has",
		 pmu->name);
	tally_event_nearest_hint(&nearest, parser, otherwise);
	return -ENOENT;
}

/* Takes "cpu_core/cycles/": a generic event on one type of cores.  Returns 1 if it is one.  With
 * several types of cores the generic event goes before the PMU's own of that name, so that ratios
 * know what it is. */
static int generic_term(struct tally_event_parser *parser, const struct tally_pmu *pmu,
			const struct terms *terms, const struct term *term,
			struct tally_event *event)
{
	const struct tally_named_event *named = NULL;
	bool is_own = find_alias(pmu, term) || find_format(pmu, term->name);
	bool is_alone = terms->count == 1 && tally_catalogue_core_types(parser->catalogue) > 1;
	if (pmu->is_core && !term->value && (!is_own || is_alone))
		named = tally_catalogue_named(parser->catalogue, term->name);
	if (!named || (named->kind != TALLY_EVENT_HARDWARE && named->kind != TALLY_EVENT_CACHE))
		return 0;
	event->kind = named->kind;
	event->attr.type = named->type;
	event->attr.config = named->config;
	tally_event_set_core(&event->attr, pmu);
	return 1;
}

static int apply_term(struct tally_event_parser *parser, const struct tally_pmu *pmu,
		      const struct terms *terms, const struct term *term, struct tally_event *event)
{
	int code = general_term(parser, term, event);
	if (code)
		return code;
	if (pmu) {
		code = generic_term(parser, pmu, terms, term, event);
		if (code)
			return code;
		const struct tally_pmu_alias *alias = find_alias(pmu, term);
		const struct tally_format_term *format = find_format(pmu, term->name);
		bool by_value = alias &&
				term->value; /* "event=NAME"; a number belongs to the format */
		if (alias && (by_value || !format))
			return apply_alias(parser, pmu, alias, term->name_at, terms, event);
		if (format)
			return set_format(parser, format, term, &event->attr);
		code = raw_term(parser, term, event);
	}
	if (!code)
		code = refuse(parser, term);
	if (code)
		return code;
	return unknown_term(parser, pmu, term);
}

int tally_event_parse_terms(struct tally_event_parser *parser, const struct tally_pmu *pmu,
			    struct tally_event *event)
{
	struct terms terms;
	int code = take_terms(parser, &terms);
	for (size_t i = 0; code >= 0 && i < terms.count; i++)
		code = apply_term(parser, pmu, &terms, &terms.items[i], event);
	return tally_error_of(code);
}
