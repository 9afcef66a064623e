/* A CPU vendor's names have a grammar of their own, with colons, dots, "::" and "name=value".  So
 * such a name extends to the next comma or brace. */
#include "event/event_parser.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static bool ends_name(enum tally_event_token_kind kind)
{
	return kind == TALLY_EVENT_TOKEN_END || kind == TALLY_EVENT_TOKEN_COMMA ||
	       kind == TALLY_EVENT_TOKEN_CLOSE;
}

/* Finds the end of the name's last token.  Returns false if a '/' or a stray sign shows that it
 * isn't a vendor's. */
static bool find_end(const struct tally_event_parser *parser, struct tally_event_token first,
		     size_t *end, struct tally_event_token *behind)
{
	*end = first.end;
	*behind = tally_event_token_at(parser->text, first.end);
	while (!ends_name(behind->kind)) {
		if (behind->kind != TALLY_EVENT_TOKEN_WORD &&
		    behind->kind != TALLY_EVENT_TOKEN_COLON &&
		    behind->kind != TALLY_EVENT_TOKEN_EQUALS)
			return false;
		*end = behind->end;
		*behind = tally_event_token_at(parser->text, behind->end);
	}
	return true;
}

int tally_event_parse_vendor(struct tally_event_parser *parser, struct tally_event_token first,
			     size_t from, int code)
{
	struct tally_attr attr = { .flags = 0 };
	struct tally_event_token behind;
	struct tally_error why = TALLY_ERROR_NONE;
	size_t end;
	if (!parser->catalogue->vendor_event || code == -ENOMEM || code == -E2BIG ||
	    !find_end(parser, first, &end, &behind))
		return code;
	char *text = tally_arena_copy(parser->arena, parser->text + first.start, end - first.start);
	if (!text)
		return tally_event_no_memory(parser);
	if (tally_event_is_glob(text))
		return code;
	int found = parser->catalogue->vendor_event(text, &attr, &why);
	/* the name is known, but misused: a better message than "there is no event" */
	if (found == -EINVAL) {
		tally_event_fail(parser, found, first.start, "%s", why.message);
		tally_error_hint(parser->err, "%s", why.hint);
		return found;
	}
	if (found < 0)
		return code;
	if (parser->err)
		*parser->err = (struct tally_error)TALLY_ERROR_NONE;
	parser->list->count = from;
	struct tally_event *event = tally_event_add(parser, TALLY_EVENT_VENDOR, attr.type,
						    attr.config);
	if (!event)
		return -ENOMEM;
	event->attr.config1 = attr.config1;
	event->attr.config2 = attr.config2;
	event->attr.flags |= attr.flags;
	event->name = text;
	/* The name includes all of its modifiers. */
	parser->taken_end = end;
	parser->token = behind;
	return 1;
}
