/* Event expressions → tokens.  Holds no state: a token's end is where the next begins. */
#ifndef TALLY_EVENT_LEXER_H
#define TALLY_EVENT_LEXER_H

#include <stddef.h>

enum tally_event_token_kind {
	TALLY_EVENT_TOKEN_END,
	TALLY_EVENT_TOKEN_WORD,   /* name, number or glob */
	TALLY_EVENT_TOKEN_QUOTED, /* 'text' */
	TALLY_EVENT_TOKEN_COLON,
	TALLY_EVENT_TOKEN_SLASH,
	TALLY_EVENT_TOKEN_COMMA,
	TALLY_EVENT_TOKEN_EQUALS,
	TALLY_EVENT_TOKEN_OPEN,  /* { */
	TALLY_EVENT_TOKEN_CLOSE, /* } */
	TALLY_EVENT_TOKEN_STRAY  /* a byte that no expression has, or a quote that doesn't end */
};

struct tally_event_token {
	enum tally_event_token_kind kind;
	size_t start, end; /* byte offsets into the text, quotes included */
};

struct tally_event_token tally_event_token_at(const char *text, size_t offset);

#endif
