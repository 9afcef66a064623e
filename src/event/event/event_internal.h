/* Shared by the parts of the event parser: its state, and one function for each form of an
 * event. */
#ifndef TALLY_EVENT_INTERNAL_H
#define TALLY_EVENT_INTERNAL_H

#include "event/event.h"

#include <stddef.h>

/* Splits event expressions into tokens.  Keeps no state: the next token begins at the end of the
 * last. */

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

struct tally_event_parser {
	const char *text;
	struct tally_event_token token; /* the next token */
	size_t taken_end;               /* end of the last token taken */
	struct tally_catalogue *catalogue;
	struct tally_arena *arena;
	struct tally_event_list *list;
	int group;       /* the group of new events, or TALLY_EVENT_NO_GROUP */
	bool name_given; /* a term has given the present event a name */
	struct tally_error *err;
};

/* The letters behind ':'. */
struct tally_event_modifiers {
	bool user, kernel, hypervisor, guest, host, idle; /* u k h G H I */
	bool sample_read, pinned, exclusive, weak, precise_max; /* S D e W P */
	unsigned precise; /* number of p */
	size_t start;     /* their column */
	size_t pinned_at, exclusive_at;
};

/* Tokens (event_parser.c) */
struct tally_event_token tally_event_take(struct tally_event_parser *parser);
bool tally_event_accept(struct tally_event_parser *parser, enum tally_event_token_kind kind);
/* NULL if out of memory */
char *tally_event_token_text(struct tally_event_parser *parser, struct tally_event_token token);
/* Parses "0x1f" or "31".  Returns false if it is no number or exceeds 64 bits. */
bool tally_event_number(const char *text, uint64_t *out);

/* Appends an event with perf's defaults (exclude_guest).  Returns NULL, with the error set, if out
 * of memory. */
struct tally_event *tally_event_add(struct tally_event_parser *parser, enum tally_event_kind kind,
				    uint32_t type, uint64_t config);

/* Errors (event_suggest.c): the message gets the text and a caret under `position`.  They return
 * `code`. */
int tally_event_fail(struct tally_event_parser *parser, int code, size_t position,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));
int tally_event_unexpected(struct tally_event_parser *parser, const char *expected);
int tally_event_no_memory(struct tally_event_parser *parser);

/* The nearest name (event_suggest.c): candidates are tried, the best is kept. */
struct tally_event_nearest {
	const char *typed;
	unsigned distance;  /* of `best`; candidates that are further are not offered */
	char best[128];     /* "" if nothing is near */
};
void tally_event_nearest_init(struct tally_event_nearest *nearest, const char *typed);
void tally_event_nearest_try(struct tally_event_nearest *nearest, const char *candidate);
/* Sets the hint "did you mean 'cycles'?", or `otherwise`. */
void tally_event_nearest_hint(const struct tally_event_nearest *nearest,
			      struct tally_event_parser *parser, const char *otherwise);
/* The error for "duration_time" where nothing counts it: -EINVAL. */
int tally_event_tool_alone(struct tally_event_parser *parser, size_t position, const char *name);
int tally_event_unknown(struct tally_event_parser *parser, size_t position, const char *name);

/* Modifiers (event_modifiers.c) */
int tally_event_modifiers_parse(struct tally_event_parser *parser, size_t start, size_t end,
				struct tally_event_modifiers *out);
int tally_event_modifiers_apply(struct tally_event_parser *parser, struct tally_event *event,
				const struct tally_event_modifiers *modifiers, bool of_group);

/* Names (event_names.c, event_cache.c) */
const struct tally_named_event *tally_catalogue_named(const struct tally_catalogue *catalogue,
						      const char *name);
/* Returns the name of a cache event by its config, or NULL. */
const char *tally_cache_name(uint64_t config);
/* Returns the name of cache event `index`, in the order of configs, and sets its config; NULL at
 * the end. */
const char *tally_cache_name_at(size_t index, uint64_t *config, const char **description);

/* Makes a hardware, cache or raw event count on one type of cores (event_cores.c). */
void tally_event_set_core(struct tally_attr *attr, const struct tally_pmu *core);

/* PMUs and their terms (event_pmu.c, event_terms.c) */
int tally_event_parse_pmu(struct tally_event_parser *parser, struct tally_event_token name);
/* Adds the event of that name on every PMU that has it.  Returns their number. */
int tally_event_bare_pmu_event(struct tally_event_parser *parser, const char *name);
/* Parse terms up to the closing '/', which they take.  `pmu` is NULL behind a named event
 * ("/period=1000,name=foo/"). */
int tally_event_apply_alias(struct tally_event_parser *parser, const struct tally_pmu *pmu,
			    const struct tally_pmu_alias *alias, size_t position,
			    struct tally_event *event);
int tally_event_parse_terms(struct tally_event_parser *parser, const struct tally_pmu *pmu,
			    struct tally_event *event);

/* system:name; both may be globs (event_tracepoints.c). */
int tally_event_add_tracepoints(struct tally_event_parser *parser, struct tally_event_token system,
				struct tally_event_token name);
/* Adds the one tracepoint with that name, in whatever system.  Returns 1, 0 if there is none, or
 * -EINVAL if there are several. */
int tally_event_bare_tracepoint(struct tally_event_parser *parser, size_t position,
				const char *name);
bool tally_event_is_glob(const char *text);

#endif
