#include "event/event_lexer.h"

#include <stdbool.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Characters of event names, of tracepoints' systems, of numbers, and of fnmatch(3)'s globs. */
static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_-.*?[]!", c));
}

static enum tally_event_token_kind punctuation(char c)
{
	switch (c) {
	case '\0': return TALLY_EVENT_TOKEN_END;
	case ':': return TALLY_EVENT_TOKEN_COLON;
	case '/': return TALLY_EVENT_TOKEN_SLASH;
	case ',': return TALLY_EVENT_TOKEN_COMMA;
	case '=': return TALLY_EVENT_TOKEN_EQUALS;
	case '{': return TALLY_EVENT_TOKEN_OPEN;
	case '}': return TALLY_EVENT_TOKEN_CLOSE;
	default: return TALLY_EVENT_TOKEN_STRAY;
	}
}

struct tally_event_token tally_event_token_at(const char *text, size_t offset)
{
	while (is_blank(text[offset]))
		offset++;
	struct tally_event_token token = { punctuation(text[offset]), offset, offset };
	if (is_word(text[offset])) {
		token.kind = TALLY_EVENT_TOKEN_WORD;
		while (is_word(text[token.end]))
			token.end++;
	} else if (text[offset] == '\'') {
		const char *close = strchr(text + offset + 1, '\'');
		token.kind = close ? TALLY_EVENT_TOKEN_QUOTED : TALLY_EVENT_TOKEN_STRAY;
		token.end = close ? (size_t)(close - text) + 1 : offset + 1;
	} else if (text[offset]) {
		token.end++;
	}
	return token;
}
