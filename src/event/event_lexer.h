/* Splits event expressions into tokens.  Keeps no state: the next token begins at the end of the
 * last. */
#ifndef TALLY_EVENT_LEXER_H
#define TALLY_EVENT_LEXER_H

#include <stddef.h>

enum tally_event_token_kind {
	TALLY_EVENT_TOKEN_END,
	TALLY_EVENT_TOKEN_WORD,   /* a name, number or glob */
	TALLY_EVENT_TOKEN_QUOTED, /* 'text' */
	TALLY_EVENT_TOKEN_COLON,
	TALLY_EVENT_TOKEN_SLASH,
	TALLY_EVENT_TOKEN_COMMA,
	TALLY_EVENT_TOKEN_EQUALS,
	TALLY_EVENT_TOKEN_OPEN,  /* { */
	TALLY_EVENT_TOKEN_CLOSE, /* } */
	/* a byte that can't be in an expression, or a quote without its end */
	TALLY_EVENT_TOKEN_STRAY
};

struct tally_event_token {
	enum tally_event_token_kind kind;
	size_t start, end; /* offsets into the text in bytes, quotes included */
};

struct tally_event_token tally_event_token_at(const char *text, size_t offset);

#endif
