/* Error messages with a position: one sentence, the text, a caret under the mistake.
 *
 *     there is no event 'cyclse'
 *         instructions,cyclse:u
 *                      ^ */
#include "event/event_parser.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_BEFORE = 60, SHOWN_AFTER = 40 };

static bool continues_character(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Copies the part of the text around `position`, on one line. *column is the caret's. */
static void excerpt(const char *text, size_t position, char *out, size_t size, size_t *column)
{
	size_t length = strlen(text), from = 0, to = length;
	if (position > SHOWN_BEFORE)
		from = position - SHOWN_BEFORE;
	while (from < length && continues_character(text[from]))
		from++;
	if (to > position + SHOWN_AFTER)
		to = position + SHOWN_AFTER;
	while (to < length && continues_character(text[to]))
		to++;
	int used = snprintf(out, size, "%s%.*s%s", from ? "..." : "", (int)(to - from), text + from,
			    to < length ? "..." : "");
	/* a line break would separate text and caret */
	for (int i = 0; i < used && (size_t)i < size; i++)
		if ((unsigned char)out[i] < ' ' && out[i])
			out[i] = ' ';
	*column = from ? 3 : 0;
	for (size_t i = from; i < position && i < length; i++)
		*column += !continues_character(text[i]);
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
	return tally_event_fail(parser, -EINVAL, token.start, "unexpected '%.*s': expected %s",
				token.end - token.start > 64 ? 64 : (int)(token.end - token.start),
				parser->text + token.start, expected);
}

int tally_event_no_memory(struct tally_event_parser *parser)
{
	return tally_error_set(parser->err, -ENOMEM, "no memory left to parse the event");
}
