/* The grammar:
 *
 *     expression  item {',' item}
 *     item        [name] '{' event {',' event} '}' [':' modifiers]  |  event
 *     event       base [':' modifiers]
 *     base        name ['/' terms '/']              hardware, software, cache, a PMU's event
 *                 pmu '/' terms '/' [modifiers]
 *                 [system ':'] name                 tracepoint; with a system both may be globs
 *                 'r' hex  |  type ':' config
 *                 'mem:' address ['/' length] [':' access]
 *
 * "name:word" is ambiguous: if the name is an event's, the word is modifiers; otherwise both name a
 * tracepoint.  Known names are tried first, then raw events; PMUs' events and bare tracepoints come
 * last, since finding those may mean reading all of sysfs and tracefs. */
#include "event/event_internal.h"

#include "base/error.h"
#include "base/text.h"
#include "base/vector.h"
#include "event/event.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
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
	case '\0':
		return TALLY_EVENT_TOKEN_END;
	case ':':
		return TALLY_EVENT_TOKEN_COLON;
	case '/':
		return TALLY_EVENT_TOKEN_SLASH;
	case ',':
		return TALLY_EVENT_TOKEN_COMMA;
	case '=':
		return TALLY_EVENT_TOKEN_EQUALS;
	case '{':
		return TALLY_EVENT_TOKEN_OPEN;
	case '}':
		return TALLY_EVENT_TOKEN_CLOSE;
	default:
		return TALLY_EVENT_TOKEN_STRAY;
	}
}

static struct tally_event_token event_token_at(const char *text, size_t offset)
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
		token.kind = TALLY_EVENT_TOKEN_STRAY;
		token.end++;
		if (close) {
			token.kind = TALLY_EVENT_TOKEN_QUOTED;
			token.end = (size_t)(close - text) + 1;
		}
	} else if (text[offset]) {
		token.end++;
	}
	return token;
}

/* mem:ADDRESS[/LENGTH][:rwx] */

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
	switch (c) {
	case 'r':
		return TALLY_BREAKPOINT_R;
	case 'w':
		return TALLY_BREAKPOINT_W;
	case 'x':
		return TALLY_BREAKPOINT_X;
	default:
		return 0;
	}
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

/* mem:…, from behind "mem:".  Sets `modifiers_start` if letters follow the
 * access ("wu"): these are modifiers, up to taken_end. */
static int event_parse_breakpoint(struct tally_event_parser *parser, size_t *modifiers_start)
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
	if (!length)
		length = type == TALLY_BREAKPOINT_X ? sizeof(long) : 4;
	event->attr.config2 = length;
	return 0;
}

/* A CPU vendor's names have a grammar of their own, with colons, dots, "::" and "name=value".  So
 * such a name extends to the next comma or brace. */

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
	*behind = event_token_at(parser->text, first.end);
	while (!ends_name(behind->kind)) {
		if (behind->kind != TALLY_EVENT_TOKEN_WORD &&
		    behind->kind != TALLY_EVENT_TOKEN_COLON &&
		    behind->kind != TALLY_EVENT_TOKEN_EQUALS)
			return false;
		*end = behind->end;
		*behind = event_token_at(parser->text, behind->end);
	}
	return true;
}

/* Parses a vendor's name from `first` on, with its modifiers.  Returns 1 if it is
 * one, and discards the earlier error; else `code`, perhaps with a better message. */
static int event_parse_vendor(struct tally_event_parser *parser, struct tally_event_token first,
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

enum { TEXT_MAX = 1 << 16, EVENTS_MAX = 1 << 16 };

static const char EVENT[] =
	"an event, such as cycles, cpu-clock:u, sched:sched_switch or cpu/event=0x3c/";

struct tally_event_token tally_event_take(struct tally_event_parser *parser)
{
	struct tally_event_token taken = parser->token;
	parser->taken_end = taken.end;
	parser->token = event_token_at(parser->text, taken.end);
	return taken;
}

bool tally_event_accept(struct tally_event_parser *parser, enum tally_event_token_kind kind)
{
	if (parser->token.kind != kind)
		return false;
	tally_event_take(parser);
	return true;
}

char *tally_event_token_text(struct tally_event_parser *parser, struct tally_event_token token)
{
	unsigned quote = token.kind == TALLY_EVENT_TOKEN_QUOTED;
	return tally_arena_copy(parser->arena, parser->text + token.start + quote,
				token.end - token.start - 2 * quote);
}

bool tally_event_number(const char *text, uint64_t *out)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *end;
	if (hex && !isxdigit((unsigned char)text[2]))
		return false;
	if (!hex && !isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*out = strtoull(text, &end, hex ? 16 : 10);
	return !errno && !*end;
}

struct tally_event *tally_event_add(struct tally_event_parser *parser, enum tally_event_kind kind,
				    uint32_t type, uint64_t config)
{
	struct tally_event_list *list = parser->list;
	struct tally_event event = {
		.kind = kind, .group = parser->group, .unit = "", .scale = 1,
		.attr = { .type = type, .size = sizeof(struct tally_attr), .config = config,
			  .flags = TALLY_ATTR_EXCLUDE_GUEST },
	};
	if (list->count >= EVENTS_MAX) {
		tally_event_fail(parser, -E2BIG, parser->taken_end, "more than %d events",
				 EVENTS_MAX);
		return NULL;
	}
	if (tally_vector_push(list, event) < 0) {
		tally_event_no_memory(parser);
		return NULL;
	}
	return &list->items[list->count - 1];
}

/* Parses "r1a8" or "r0x1a8". */
static bool is_raw(const char *text, uint64_t *config)
{
	if (text[0] != 'r')
		return false;
	text += text[1] == '0' && text[2] == 'x' ? 3 : 1;
	size_t digits = strspn(text, "0123456789abcdefABCDEF");
	if (!digits || digits > 16 || text[digits])
		return false;
	*config = strtoull(text, NULL, 16);
	return true;
}

static int cache_combination(struct tally_event_parser *parser, size_t position, const char *name)
{
	tally_event_fail(parser, -EINVAL, position, "no cache has '%.100s'", name);
	tally_error_hint(parser->err,
			 "iTLB and branch have loads alone, L1-icache loads and prefetches");
	return -EINVAL;
}

/* Returns 1, or -ENOMEM. */
static int add_one(struct tally_event_parser *parser, enum tally_event_kind kind, uint32_t type,
		   uint64_t config)
{
	if (!tally_event_add(parser, kind, type, config))
		return -ENOMEM;
	return 1;
}

/* Handles a name that stands alone.  Returns 1 if it is an event, 0 if not, or an error. */
static int fixed_name(struct tally_event_parser *parser, size_t position, const char *name)
{
	const struct tally_named_event *named = tally_catalogue_named(parser->catalogue, name);
	uint64_t config;
	if (named && named->kind == TALLY_EVENT_TOOL && !parser->catalogue->has_tools)
		return tally_event_tool_alone(parser, position, name);
	if (named)
		return add_one(parser, named->kind, named->type, named->config);
	int code = tally_cache_config(name, &config);
	if (code == -EINVAL)
		return cache_combination(parser, position, name);
	/* perf also calls the last level "L2".  If a PMU has an event of exactly this name, that
	 * one is meant. */
	if (!code) {
		int own = tally_event_bare_pmu_event(parser, name);
		if (own)
			return own;
		return add_one(parser, TALLY_EVENT_CACHE, TALLY_TYPE_HW_CACHE, config);
	}
	if (is_raw(name, &config))
		return add_one(parser, TALLY_EVENT_RAW, TALLY_TYPE_RAW, config);
	return 0;
}

static bool is_modifiers(const char *text)
{
	return text[strspn(text, "ukhGHIpPSDeW")] == '\0';
}

/* Parses "type:config", both numbers. */
static int numbered(struct tally_event_parser *parser, struct tally_event_token type_token,
		    uint64_t type)
{
	uint64_t config;
	char *text = NULL;
	if (parser->token.kind == TALLY_EVENT_TOKEN_WORD)
		text = tally_event_token_text(parser, parser->token);
	if (!text || !tally_event_number(text, &config))
		return tally_event_unexpected(parser,
					      "the event's number, as in 1:2 (type 1, config 2)");
	if (type > UINT32_MAX)
		return tally_event_fail(parser, -EINVAL, type_token.start,
					"a type is a number of 32 bits");
	static const enum tally_event_kind kinds[TALLY_TYPE_MAX] = {
		TALLY_EVENT_HARDWARE, TALLY_EVENT_SOFTWARE, TALLY_EVENT_TRACEPOINT,
		TALLY_EVENT_CACHE, TALLY_EVENT_RAW, TALLY_EVENT_BREAKPOINT,
	};
	enum tally_event_kind kind = TALLY_EVENT_PMU;
	if (type < TALLY_TYPE_MAX)
		kind = kinds[type];
	tally_event_take(parser);
	if (!tally_event_add(parser, kind, (uint32_t)type, config))
		return -ENOMEM;
	return 0;
}

/* Adds a PMU's event or a tracepoint given by its bare name.  Returns the number of events
 * added. */
static int bare_name(struct tally_event_parser *parser, size_t position, const char *name)
{
	int found = tally_event_bare_pmu_event(parser, name);
	if (found)
		return found;
	return tally_event_bare_tracepoint(parser, position, name);
}

/* Handles the part behind "name:", if `name` is not an event. */
static int system_or_unknown(struct tally_event_parser *parser, struct tally_event_token first,
			     const char *name)
{
	uint64_t number;
	if (tally_event_number(name, &number))
		return numbered(parser, first, number);
	if (parser->token.kind != TALLY_EVENT_TOKEN_WORD)
		return tally_event_unexpected(parser, "a tracepoint's name or modifiers");
	char *second = tally_event_token_text(parser, parser->token);
	if (!second)
		return tally_event_no_memory(parser);
	if (tally_event_is_glob(name) || !is_modifiers(second))
		return tally_event_add_tracepoints(parser, first, tally_event_take(parser));
	int found = bare_name(parser, first.start, name);
	if (found < 0)
		return found;
	if (found) /* the word is its modifiers, so the ':' is not taken */
		return 1;
	return tally_event_unknown(parser, first.start, name);
}

/* Parses the event without its modifiers. *letters: column of modifiers that follow without a
 * ':'. */
static int parse_base(struct tally_event_parser *parser, size_t *letters)
{
	struct tally_event_token first = tally_event_take(parser);
	struct tally_event_token after = parser->token;
	char *name = tally_event_token_text(parser, first);
	if (!name)
		return tally_event_no_memory(parser);
	if (!strcmp(name, "mem") && after.kind == TALLY_EVENT_TOKEN_COLON) {
		tally_event_take(parser);
		return event_parse_breakpoint(parser, letters);
	}
	int code = fixed_name(parser, first.start, name);
	if (code > 0 && tally_event_accept(parser, TALLY_EVENT_TOKEN_SLASH))
		code = tally_event_parse_terms(parser, NULL,
					       &parser->list->items[parser->list->count - 1]);
	else if (code == 0 && after.kind == TALLY_EVENT_TOKEN_SLASH)
		code = tally_event_parse_pmu(parser, first);
	else if (code == 0 && after.kind == TALLY_EVENT_TOKEN_COLON) {
		size_t before_colon = parser->taken_end;
		tally_event_take(parser);
		code = system_or_unknown(parser, first, name);
		if (code > 0) {
			parser->taken_end = before_colon;
			parser->token = after;
		}
	} else if (code == 0) {
		code = bare_name(parser, first.start, name);
		if (code == 0)
			code = tally_event_unknown(parser, first.start, name);
	}
	if (code >= 0 && parser->text[parser->taken_end - 1] == '/' &&
	    parser->token.kind == TALLY_EVENT_TOKEN_WORD) {
		*letters = parser->token.start;
		tally_event_take(parser);
	}
	return tally_error_of(code);
}

/* Returns text[start, end) without blanks: the name is printed as it was typed. */
static char *typed(struct tally_event_parser *parser, size_t start, size_t end)
{
	char *name = tally_arena_copy(parser->arena, parser->text + start, end - start);
	size_t length = 0;
	for (size_t i = 0; name && name[i]; i++)
		if (!isspace((unsigned char)name[i]))
			name[length++] = name[i];
	if (name)
		name[length] = '\0';
	return name;
}

/* Names the events from `from` on: `base` is the typed name, `suffix` its modifiers with ':', or
 * "". */
static int name_events(struct tally_event_parser *parser, size_t from, const char *base,
		       const char *suffix)
{
	for (size_t i = from; i < parser->list->count; i++) {
		struct tally_event *event = &parser->list->items[i];
		if (parser->name_given)
			continue;
		event->name = tally_arena_printf(parser->arena, "%s%s",
						 tally_text_or(event->name, base), suffix);
		if (!event->name)
			return tally_event_no_memory(parser);
	}
	return 0;
}

static int parse_event(struct tally_event_parser *parser, struct tally_event_modifiers *modifiers)
{
	size_t from = parser->list->count, start = parser->token.start, letters = 0;
	struct tally_event_token first = parser->token;
	if (parser->token.kind != TALLY_EVENT_TOKEN_WORD)
		return tally_event_unexpected(parser, EVENT);
	parser->name_given = false;
	int code = parse_base(parser, &letters);
	if (code < 0)
		code = event_parse_vendor(parser, first, from, code);
	if (code < 0)
		return code;
	size_t base_end = parser->taken_end;
	if (letters)
		base_end = letters;
	if (tally_event_accept(parser, TALLY_EVENT_TOKEN_COLON)) {
		if (parser->token.kind != TALLY_EVENT_TOKEN_WORD)
			return tally_event_unexpected(parser, "modifiers, such as u, k or pp");
		if (letters)
			return tally_event_fail(parser, -EINVAL, parser->token.start,
						"modifiers are given twice");
		letters = parser->token.start;
		tally_event_take(parser);
	}
	*modifiers = (struct tally_event_modifiers){ 0 };
	if (letters)
		code = tally_event_modifiers_parse(parser, letters, parser->taken_end, modifiers);
	char *base = typed(parser, start, base_end),
	     *suffix = typed(parser, base_end, parser->taken_end);
	if (code < 0)
		return code;
	if (!base || !suffix)
		return tally_event_no_memory(parser);
	code = name_events(parser, from, base, suffix);
	for (size_t i = from; letters && !code && i < parser->list->count; i++)
		code = tally_event_modifiers_apply(parser, &parser->list->items[i], modifiers,
						   false);
	return code;
}

/* perf_event_open(2): only a leader may be pinned or exclusive. */
static int check_member(struct tally_event_parser *parser,
			const struct tally_event_modifiers *modifiers)
{
	if (!modifiers->pinned && !modifiers->exclusive)
		return 0;
	tally_event_fail(parser, -EINVAL,
			 modifiers->pinned ? modifiers->pinned_at : modifiers->exclusive_at,
			 "only a group's first event can be %s",
			 modifiers->pinned ? "pinned (D)" : "exclusive (e)");
	tally_error_hint(parser->err,
			 "write it behind the group, {a,b}:%c: it is then meant for the whole",
			 modifiers->pinned ? 'D' : 'e');
	return -EINVAL;
}

static int parse_group_modifiers(struct tally_event_parser *parser, size_t leader)
{
	struct tally_event_modifiers modifiers;
	if (!tally_event_accept(parser, TALLY_EVENT_TOKEN_COLON))
		return 0;
	if (parser->token.kind != TALLY_EVENT_TOKEN_WORD)
		return tally_event_unexpected(parser, "modifiers, such as S, u or k");
	struct tally_event_token word = tally_event_take(parser);
	int code = tally_event_modifiers_parse(parser, word.start, word.end, &modifiers);
	for (size_t i = leader; !code && i < parser->list->count; i++) {
		code = tally_event_modifiers_apply(parser, &parser->list->items[i], &modifiers,
						   true);
		modifiers.pinned = modifiers.exclusive = false;
	}
	return code;
}

/* Parses a group, from behind '{'. */
static int parse_group(struct tally_event_parser *parser)
{
	size_t leader = parser->list->count;
	parser->group = parser->list->group_count++;
	do {
		struct tally_event_modifiers modifiers;
		size_t before = parser->list->count;
		if (parser->token.kind == TALLY_EVENT_TOKEN_OPEN)
			return tally_event_fail(
				parser, -EINVAL, parser->token.start,
				"a group can't stand inside a group: expected an event or '}'");
		int code = parse_event(parser, &modifiers);
		if (!code && (before > leader || parser->list->count > before + 1))
			code = check_member(parser, &modifiers);
		if (code < 0)
			return code;
	} while (tally_event_accept(parser, TALLY_EVENT_TOKEN_COMMA));
	if (!tally_event_accept(parser, TALLY_EVENT_TOKEN_CLOSE))
		return tally_event_unexpected(parser, "',' or '}'");
	parser->group = TALLY_EVENT_NO_GROUP;
	return parse_group_modifiers(parser, leader);
}

static int parse_item(struct tally_event_parser *parser)
{
	struct tally_event_modifiers modifiers;
	if (parser->token.kind == TALLY_EVENT_TOKEN_WORD &&
	    event_token_at(parser->text, parser->token.end).kind == TALLY_EVENT_TOKEN_OPEN)
		tally_event_take(parser); /* a group's name: perf uses it for its own metrics */
	if (tally_event_accept(parser, TALLY_EVENT_TOKEN_OPEN))
		return parse_group(parser);
	return parse_event(parser, &modifiers);
}

static int parse_list(struct tally_event_parser *parser)
{
	do {
		int code = parse_item(parser);
		if (code < 0)
			return code;
	} while (tally_event_accept(parser, TALLY_EVENT_TOKEN_COMMA));
	if (parser->token.kind == TALLY_EVENT_TOKEN_END)
		return 0;
	if (parser->token.kind == TALLY_EVENT_TOKEN_COLON)
		return tally_event_fail(parser, -EINVAL, parser->token.start,
					"modifiers are given twice");
	return tally_event_unexpected(parser, "',' and another event, or the end");
}

int tally_event_parse(const char *text, struct tally_catalogue *catalogue,
		      struct tally_arena *arena, struct tally_event_list *list,
		      struct tally_error *err)
{
	size_t count = list->count;
	int groups = list->group_count;
	if (strnlen(text, TEXT_MAX) == TEXT_MAX)
		return tally_error_set(err, -E2BIG, "the event expression is longer than %d bytes",
				       TEXT_MAX - 1);
	struct tally_event_parser parser = {
		.text = text,
		.token = event_token_at(text, 0),
		.catalogue = catalogue,
		.arena = arena,
		.list = list,
		.group = TALLY_EVENT_NO_GROUP,
		.err = err,
	};
	int code = parse_list(&parser);
	if (code < 0) {
		list->count = count;
		list->group_count = groups;
	}
	return code;
}

void tally_event_list_release(struct tally_event_list *list)
{
	tally_vector_release(list);
	list->group_count = 0;
}

int tally_event_assign_cgroups(struct tally_event_list *list, const char *names,
			       struct tally_arena *arena, size_t *turns, struct tally_error *err)
{
	bool is_first = !*turns;
	if (!list->count) {
		tally_error_set(err, -EINVAL, "-G '%s': no events were named before it", names);
		tally_error_hint(err,
				 "a cgroup is for the events ahead of it: -e EVENTS -G CGROUP");
		return -EINVAL;
	}
	for (const char *at = names;; at++) {
		size_t length = strcspn(at, ",");
		const char *name = NULL;
		if (length) {
			name = tally_arena_printf(arena, "%.*s", (int)length, at);
			if (!name)
				return tally_error_set(err, -ENOMEM, "out of memory");
		}
		if (*turns >= list->count) {
			tally_error_set(err, -EINVAL,
					"-G '%s': there are more cgroups than events before them",
					names);
			tally_error_hint(err,
					 "each cgroup is for one event: -e cycles,cycles -G a,b");
			return -EINVAL;
		}
		list->items[(*turns)++].cgroup = name;
		at += length;
		if (!*at)
			break;
	}
	for (size_t i = 1; is_first && *turns == 1 && i < list->count; i++)
		list->items[i].cgroup = list->items[0].cgroup;
	return 0;
}
