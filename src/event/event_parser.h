/* What the parts of the event parser share: its state, and one function per form that an event
 * takes. */
#ifndef TALLY_EVENT_PARSER_H
#define TALLY_EVENT_PARSER_H

#include "event/event.h"
#include "event/event_lexer.h"

struct tally_event_parser {
	const char *text;
	struct tally_event_token token; /* the next that is not yet taken */
	size_t taken_end;               /* end of the last that was */
	struct tally_catalogue *catalogue;
	struct tally_arena *arena;
	struct tally_event_list *list;
	int group;       /* that new events join, or TALLY_EVENT_NO_GROUP */
	bool name_given; /* by a term, to the event at hand */
	struct tally_error *err;
};

/* The letters behind ':' */
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
/* NULL: no memory */
char *tally_event_token_text(struct tally_event_parser *parser, struct tally_event_token token);
/* "0x1f", "31": false when it is no number or doesn't fit 64 bits. */
bool tally_event_number(const char *text, uint64_t *out);

/* Appends an event with perf's defaults (exclude_guest); NULL with the error set. */
struct tally_event *tally_event_add(struct tally_event_parser *parser, enum tally_event_kind kind,
				    uint32_t type, uint64_t config);

/* Errors (event_error.c): the message gets the text and a caret under `position`.  Returns
 * `code`. */
int tally_event_fail(struct tally_event_parser *parser, int code, size_t position,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));
int tally_event_unexpected(struct tally_event_parser *parser, const char *expected);
int tally_event_no_memory(struct tally_event_parser *parser);

/* The nearest name (event_suggest.c): candidates come in, the best stays. */
struct tally_event_nearest {
	const char *typed;
	unsigned distance;  /* of `best`; what is further is not offered */
	char best[128];     /* "" when nothing is near */
};
void tally_event_nearest_init(struct tally_event_nearest *nearest, const char *typed);
void tally_event_nearest_try(struct tally_event_nearest *nearest, const char *candidate);
/* "did you mean 'cycles'?" or `otherwise`. */
void tally_event_nearest_hint(const struct tally_event_nearest *nearest,
			      struct tally_event_parser *parser, const char *otherwise);
/* "duration_time" where it isn't counted: -EINVAL. */
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
/* -ENOENT: no cache event's name; -EINVAL: a combination that no machine has. */
int tally_cache_config(const char *name, uint64_t *config);
/* The name of a cache event by its config, NULL: there is none. */
const char *tally_cache_name(uint64_t config);
/* The name of cache event `index` in the order of their configs, with its config; NULL at the
 * end. */
const char *tally_cache_name_at(size_t index, uint64_t *config, const char **description);

/* PMUs and their terms (event_pmu.c, event_terms.c) */
int tally_event_parse_pmu(struct tally_event_parser *parser, struct tally_event_token name);
/* The event of that name on every PMU that has it: how many were added. */
int tally_event_bare_pmu_event(struct tally_event_parser *parser, const char *name);
/* Terms up to the closing '/', which is taken; `pmu` is NULL behind a named event
 * ("/period=1000,name=foo/"). */
int tally_event_apply_alias(struct tally_event_parser *parser, const struct tally_pmu *pmu,
			    const struct tally_pmu_alias *alias, size_t position,
			    struct tally_event *event);
int tally_event_parse_terms(struct tally_event_parser *parser, const struct tally_pmu *pmu,
			    struct tally_event *event);

/* A vendor's name from `first` on, its modifiers included (event_vendor.c): 1 when it is one (what
 * was said against it is taken back), else `code` again, perhaps with a better message. */
int tally_event_parse_vendor(struct tally_event_parser *parser, struct tally_event_token first,
			     size_t from, int code);

/* mem:… (event_breakpoint.c); "mem" and ':' are taken.  `modifiers_start` is set when letters
 * follow the access ("wu"): they are modifiers, up to taken_end. */
int tally_event_parse_breakpoint(struct tally_event_parser *parser, size_t *modifiers_start);

/* system:name, both may be globs (event_tracepoints.c) */
int tally_event_add_tracepoints(struct tally_event_parser *parser, struct tally_event_token system,
				struct tally_event_token name);
/* The one tracepoint of that name, whatever its system: 1, 0 when there is none, -EINVAL when there
 * are several. */
int tally_event_bare_tracepoint(struct tally_event_parser *parser, size_t position,
				const char *name);
bool tally_event_is_glob(const char *text);

#endif
