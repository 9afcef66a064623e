/* mem:ADDRESS[/LENGTH][:rwx] */
#include "event/event_parser.h"

#include <errno.h>
#include <string.h>

static int take_number(struct tally_event_parser *parser, const char *expected, uint64_t *out)
{
	if (parser->token.kind != TALLY_EVENT_TOKEN_WORD)
		return tally_event_unexpected(parser, expected);
	char *text = tally_event_token_text(parser, parser->token);
	if (!text)
		return tally_event_no_memory(parser);
	if (!tally_event_number(text, out))
		return tally_event_unexpected(parser, expected);
	tally_event_take(parser);
	return 0;
}

static uint32_t access_bit(char c)
{
	return c == 'r'   ? TALLY_BREAKPOINT_R
	       : c == 'w' ? TALLY_BREAKPOINT_W
	       : c == 'x' ? TALLY_BREAKPOINT_X
			  : 0;
}

/* Takes the letters r, w, x.  The caller handles what follows them in the same word. */
static int take_access(struct tally_event_parser *parser, uint32_t *type, size_t *modifiers_start)
{
	struct tally_event_token word = parser->token;
	if (word.kind != TALLY_EVENT_TOKEN_WORD)
		return tally_event_unexpected(parser, "an access of r, w, x, or modifiers");
	size_t at = word.start;
	for (; at < word.end && access_bit(parser->text[at]); at++) {
		if (*type & access_bit(parser->text[at]))
			return tally_event_fail(parser, -EINVAL, at, "access '%c' is given twice",
						parser->text[at]);
		*type |= access_bit(parser->text[at]);
	}
	tally_event_take(parser);
	if (at < word.end)
		*modifiers_start = at;
	return 0;
}

static bool is_length(uint64_t length)
{
	return length == 1 || length == 2 || length == 4 || length == 8;
}

int tally_event_parse_breakpoint(struct tally_event_parser *parser, size_t *modifiers_start)
{
	uint64_t address, length = 0;
	uint32_t type = 0;
	int code = take_number(parser, "an address such as 0x401000", &address);
	if (code < 0)
		return code;
	if (tally_event_accept(parser, TALLY_EVENT_TOKEN_SLASH)) {
		size_t at = parser->token.start;
		code = take_number(parser, "a length of 1, 2, 4 or 8 bytes", &length);
		if (code < 0)
			return code;
		if (!is_length(length))
			return tally_event_fail(parser, -EINVAL, at,
						"a breakpoint watches 1, 2, 4 or 8 bytes, not %llu",
						(unsigned long long)length);
	}
	if (tally_event_accept(parser, TALLY_EVENT_TOKEN_COLON)) {
		code = take_access(parser, &type, modifiers_start);
		if (code < 0)
			return code;
	}
	if (!type)
		type = TALLY_BREAKPOINT_R | TALLY_BREAKPOINT_W;
	struct tally_event *event = tally_event_add(parser, TALLY_EVENT_BREAKPOINT,
						    TALLY_TYPE_BREAKPOINT, 0);
	if (!event)
		return -ENOMEM;
	event->attr.bp_type = type;
	event->attr.config1 = address;
	/* Linux requires sizeof(long) for code. */
	event->attr.config2 = length ? length : type == TALLY_BREAKPOINT_X ? sizeof(long) : 4;
	return 0;
}
