/* Suggests the nearest name for an unknown one.  Runs only on failure, since it may load all
 * names. */
#include "base/characters.h"
#include "base/extremes.h"
#include "base/suggest.h"
#include "base/terminal.h"
#include "event/event_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Error messages with a position: one sentence, the text, a caret under the mistake.
 *
 *     there is no event 'cyclse'
 *         instructions,cyclse:u
 *                      ^ */

enum { SHOWN_BEFORE = 60, SHOWN_AFTER = 40 };

/* Copies the part of the text around `position`, on one line. *column is the caret's. */
static void excerpt(const char *text, size_t position, char *out, size_t size, size_t *column)
{
	size_t length = strlen(text), from = 0, to = length;
	if (position > SHOWN_BEFORE)
		from = position - SHOWN_BEFORE;
	while (from < length && !tally_begins_character(text[from]))
		from++;
	if (to > position + SHOWN_AFTER)
		to = position + SHOWN_AFTER;
	while (to < length && !tally_begins_character(text[to]))
		to++;
	const char *before = from ? "..." : "";
	const char *behind = to < length ? "..." : "";
	int used = snprintf(out, size, "%s%.*s%s", before, (int)(to - from), text + from, behind);
	/* a line break would separate text and caret */
	for (int i = 0; i < used && (size_t)i < size; i++)
		if ((unsigned char)out[i] < ' ' && out[i])
			out[i] = ' ';
	*column = strlen(before);
	for (size_t i = from; i < position && i < length; i++)
		*column += tally_begins_character(text[i]);
}

int tally_event_fail(struct tally_event_parser *parser, int code, size_t position,
		     const char *format, ...)
{
	char sentence[400], shown[SHOWN_BEFORE + SHOWN_AFTER + 16];
	size_t column;
	va_list args;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	tally_terminal_clean_name(sentence, sentence, sizeof(sentence));
	excerpt(parser->text, position, shown, sizeof(shown), &column);
	tally_error_set(parser->err, code, "%s\n    %s\n    %*s^", sentence, shown, (int)column,
			"");
	if (parser->err)
		parser->err->position = (int)position;
	return code;
}

int tally_event_unexpected(struct tally_event_parser *parser, const char *expected)
{
	struct tally_event_token token = parser->token;
	if (token.kind == TALLY_EVENT_TOKEN_END)
		return tally_event_fail(parser, -EINVAL, token.start,
					"the expression ends where %s was expected", expected);
	if (token.kind == TALLY_EVENT_TOKEN_STRAY && parser->text[token.start] == '\'')
		return tally_event_fail(parser, -EINVAL, token.start,
					"the quote that opens here is not closed");
	int length = (int)tally_min_u64(token.end - token.start, 64);
	return tally_event_fail(parser, -EINVAL, token.start, "unexpected '%.*s': expected %s",
				length, parser->text + token.start, expected);
}

int tally_event_no_memory(struct tally_event_parser *parser)
{
	return tally_error_set(parser->err, -ENOMEM, "no memory left to parse the event");
}

void tally_event_nearest_init(struct tally_event_nearest *nearest, const char *typed)
{
	uint64_t third = tally_min_u64(strlen(typed) / 3, 5);
	*nearest = (struct tally_event_nearest){ .typed = typed };
	nearest->distance = (unsigned)tally_max_u64(third, 1) + 1;
}

void tally_event_nearest_try(struct tally_event_nearest *nearest, const char *candidate)
{
	size_t a = strlen(candidate), b = strlen(nearest->typed);
	if (tally_max_u64(a, b) - tally_min_u64(a, b) >= nearest->distance)
		return; /* each insertion costs 1 */
	unsigned distance = tally_edit_distance(nearest->typed, candidate);
	if (distance >= nearest->distance)
		return;
	nearest->distance = distance;
	snprintf(nearest->best, sizeof(nearest->best), "%s", candidate);
}

void tally_event_nearest_hint(const struct tally_event_nearest *nearest,
			      struct tally_event_parser *parser, const char *otherwise)
{
	if (nearest->best[0])
		tally_error_hint(parser->err, "did you mean '%s'?", nearest->best);
	else
		tally_error_hint(parser->err, "%s", otherwise);
}

static void try_tracepoints(struct tally_event_nearest *nearest, struct tally_event_parser *parser)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	char name[128];
	if (!catalogue->tracepoint_count && catalogue->load_tracepoints)
		catalogue->load_tracepoints(catalogue, catalogue->context, NULL);
	for (size_t i = 0; i < catalogue->tracepoint_count; i++) {
		const struct tally_tracepoint_name *t = &catalogue->tracepoints[i];
		unsigned before = nearest->distance;
		/* "sched_switch" suggests "sched:sched_switch" */
		tally_event_nearest_try(nearest, t->name);
		snprintf(name, sizeof(name), "%s:%s", t->system, t->name);
		if (nearest->distance < before)
			snprintf(nearest->best, sizeof(nearest->best), "%s", name);
		else
			tally_event_nearest_try(nearest, name);
	}
}

static void try_pmus(struct tally_event_nearest *nearest, struct tally_event_parser *parser)
{
	struct tally_catalogue *catalogue = parser->catalogue;
	char name[256];
	if (catalogue->load_pmus)
		catalogue->load_pmus(catalogue, catalogue->context, NULL, NULL);
	for (size_t i = 0; i < catalogue->pmu_count; i++)
		for (size_t j = 0; j < catalogue->pmus[i].event_count; j++) {
			tally_event_nearest_try(nearest, catalogue->pmus[i].events[j].name);
			snprintf(name, sizeof(name), "%s/%s/", catalogue->pmus[i].name,
				 catalogue->pmus[i].events[j].name);
			tally_event_nearest_try(nearest, name);
		}
}

int tally_event_tool_alone(struct tally_event_parser *parser, size_t position, const char *name)
{
	tally_event_fail(
		parser, -EINVAL, position,
		"'%.200s' is a time that 'tally stat' takes: it can't be recorded, nor simulated",
		name);
	tally_error_hint(parser->err, "cpu-clock and task-clock are times that are sampled");
	return -EINVAL;
}

int tally_event_unknown(struct tally_event_parser *parser, size_t position, const char *name)
{
	struct tally_event_nearest nearest;
	tally_event_fail(parser, -ENOENT, position, "there is no event '%.200s'", name);
	if (tally_event_is_glob(name)) {
		tally_error_hint(
			parser->err,
			"only tracepoints are taken by patterns, with their system: "
			"'SYSTEM:%.200s', or '*:%.200s'",
			name, name);
		return -ENOENT;
	}
	tally_event_nearest_init(&nearest, name);
	for (size_t i = 0; i < parser->catalogue->named_count; i++) {
		tally_event_nearest_try(&nearest, parser->catalogue->named[i].name);
		if (parser->catalogue->named[i].alias)
			tally_event_nearest_try(&nearest, parser->catalogue->named[i].alias);
	}
	try_pmus(&nearest, parser);
	try_tracepoints(&nearest, parser);
	tally_event_nearest_hint(&nearest, parser, "'tally list' shows the events of this machine");
	return -ENOENT;
}
