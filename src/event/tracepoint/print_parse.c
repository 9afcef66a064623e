/* Parses a print format as the kernel shows it: a format string and C expressions, which went
 * through the kernel's preprocessor but no compiler.
 *
 *     "comm=%s state=%s%s", REC->comm, REC->state & 0xff ? __print_flags(REC->state & 0xff, "|",
 *     { 0x01, "S" }, { 0x02, "D" }) : "R", REC->state & 0x100 ? "+" : ""
 *
 * The parser follows C: precedence climbing; the next token tells a cast from a parenthesis.
 * libtraceevent, which perf uses, has a different parser for the same language.  If that one gives
 * up or errs, we follow C, and so the kernel's own text: sizeof(u64), a & (b | c | d)
 * (timer_start's flags are always D|P|I in perf), a - b + c, ?: within ?: without parentheses,
 * __get_dynamic_array(x)[i], %c, %*pbl, control bytes in a literal.  If libtraceevent reads a value
 * in its own way, we do the same, since users know that text:
 *
 * - numbers are unsigned and not sign-extended: an s16 of -1 printed by %d is 65535, and REC->ret <
 *   0 is always false;
 * - names of enums that the kernel left in place are 0;
 * - escapes within string *arguments* are not resolved.
 *
 * Some arguments only the kernel can compute.  libtraceevent then gives up the whole format; we
 * print the others:
 *
 * - a call of a function of the kernel prints as the call: jiffies_to_msecs(3);
 * - another argument that we don't understand (the size of a kernel's structure, what a pointer
 *   points to, statements) is TALLY_NODE_UNKNOWN and prints as "?".  If a field occurs nowhere
 *   else, print_generate.c refuses the format, so that no value of the event is lost.
 *
 * All limits are of depth or length, so that parsing takes time linear in the text.
 */
#include "base/characters.h"
#include "tracepoint/tracepoint_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_STRING, TOKEN_CHARACTER, TOKEN_SIGN };

struct token {
	enum token_kind kind;
	const char *at; /* position in the print format */
	const char *text;
	size_t length;
};

/* A variable of a statement expression. */
struct binding {
	struct token name;
	struct tally_node *value;
};

struct print_parser {
	const struct tally_tracepoint *tracepoint;
	struct tally_arena *arena;
	const char *at, *end;
	struct token token; /* the next token */
	unsigned nesting, node_count;
	struct binding bindings[TALLY_NODE_BINDINGS_MAX]; /* of the argument being parsed */
	size_t binding_count;
	bool skips;   /* tokens are scanned to be skipped, so literals are not joined */
	bool refused; /* the error is about the whole format, not about one argument */
	struct tally_error *err;
	int error;
};

static void *fail(struct print_parser *parser, int code, const char *what)
{
	if (parser->error)
		return NULL;
	parser->error = code;
	if (code == -ENOMEM) {
		tally_error_set(parser->err, code, "no memory for a print format");
		return NULL;
	}
	tally_error_set(parser->err, code, "print format of %s: %s", parser->tracepoint->name,
			what);
	if (parser->err && parser->token.at)
		parser->err->position = (int)(parser->token.at - parser->tracepoint->text);
	return NULL;
}

/* Fails for the whole format. */
static void *refuse(struct print_parser *parser, int code, const char *what)
{
	parser->refused = true;
	return fail(parser, code, what);
}

static void skip_space(struct print_parser *parser)
{
	while (parser->at < parser->end && isspace((unsigned char)*parser->at))
		parser->at++;
}

/* Gets the text between quotes, with its escapes.  Returns false when there is no closing quote. */
static bool scan_quoted(struct print_parser *parser, char quote, const char **text, size_t *length)
{
	const char *start = ++parser->at;
	while (parser->at < parser->end && *parser->at != quote) {
		if (*parser->at == '\\' && parser->end - parser->at > 1)
			parser->at++;
		parser->at++;
	}
	if (parser->at >= parser->end)
		return false;
	*text = start;
	*length = (size_t)(parser->at++ - start);
	return true;
}

/* Scans adjacent literals.  Copies them to `joined`, if that isn't NULL; otherwise the token has
 * the text of the last one.  Returns how many they are, or 0 if one doesn't end. */
static size_t scan_literals(struct print_parser *parser, char *joined, size_t *total)
{
	size_t count = 0;
	*total = 0;
	while (parser->at < parser->end && *parser->at == '"') {
		if (!scan_quoted(parser, '"', &parser->token.text, &parser->token.length))
			return 0;
		if (joined)
			memcpy(joined + *total, parser->token.text, parser->token.length);
		*total += parser->token.length;
		count++;
		skip_space(parser);
	}
	return count;
}

/* Scans a string literal; "a" "b" is one literal. */
static void scan_string(struct print_parser *parser)
{
	const char *start = parser->at;
	size_t total;
	parser->token.kind = TOKEN_STRING;
	size_t count = scan_literals(parser, NULL, &total);
	if (count == 0)
		refuse(parser, -EBADMSG, "a string doesn't end");
	if (count < 2 || parser->skips)
		return;
	char *joined = tally_arena_alloc(parser->arena, total + 1);
	if (!joined) {
		fail(parser, -ENOMEM, "");
		return;
	}
	parser->at = start;
	scan_literals(parser, joined, &total);
	parser->token.text = joined;
	parser->token.length = total;
}

static void scan_sign(struct print_parser *parser)
{
	static const char *const doubles[] = {
		"->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"
	};
	parser->token.kind = TOKEN_SIGN;
	parser->token.text = parser->at;
	parser->token.length = 1;
	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++)
		if (parser->end - parser->at > 1 && memcmp(parser->at, doubles[i], 2) == 0)
			parser->token.length = 2;
	parser->at += parser->token.length;
}

static void advance(struct print_parser *parser)
{
	skip_space(parser);
	parser->token = (struct token){ .kind = TOKEN_END, .at = parser->at, .text = "" };
	if (parser->error || parser->at >= parser->end)
		return;
	if (*parser->at == '"') {
		scan_string(parser);
	} else if (*parser->at == '\'') {
		parser->token.kind = TOKEN_CHARACTER;
		if (!scan_quoted(parser, '\'', &parser->token.text, &parser->token.length))
			refuse(parser, -EBADMSG, "a character doesn't end");
	} else if (tally_is_word_char(*parser->at)) {
		parser->token.kind = TOKEN_WORD;
		parser->token.text = parser->at;
		while (parser->at < parser->end && tally_is_word_char(*parser->at))
			parser->at++;
		parser->token.length = (size_t)(parser->at - parser->token.text);
	} else {
		scan_sign(parser);
	}
}

static bool token_is(const struct print_parser *parser, const char *text)
{
	const struct token *token = &parser->token;
	return (token->kind == TOKEN_WORD || token->kind == TOKEN_SIGN) &&
	       token->length == strlen(text) && memcmp(token->text, text, token->length) == 0;
}

static bool accept(struct print_parser *parser, const char *text)
{
	if (!token_is(parser, text))
		return false;
	advance(parser);
	return true;
}

static bool expect(struct print_parser *parser, const char *text)
{
	if (parser->error)
		return false;
	if (accept(parser, text))
		return !parser->error;
	char what[64];
	snprintf(what, sizeof(what), "'%s' expected", text);
	fail(parser, -EBADMSG, what);
	return false;
}

/* Makes a node.  Fails when making a child has failed. */
static struct tally_node *new_node(struct print_parser *parser, enum tally_node_kind kind,
				   struct tally_node *left, struct tally_node *right,
				   struct tally_node *third)
{
	if (parser->error)
		return NULL;
	if (parser->node_count++ >= TALLY_NODE_COUNT_MAX)
		return refuse(parser, -EBADMSG, "it is too long");
	struct tally_node *node = tally_arena_alloc(parser->arena, sizeof(*node));
	if (!node)
		return fail(parser, -ENOMEM, "");
	*node = (struct tally_node){ .kind = kind, .left = left, .right = right, .third = third };
	const struct tally_node *children[] = { left, right, third };
	for (size_t i = 0; i < 3; i++)
		if (children[i] && children[i]->depth >= node->depth)
			node->depth = children[i]->depth + 1;
	if (node->depth > TALLY_NODE_DEPTH_MAX)
		return refuse(parser, -EBADMSG, "an expression is too deep");
	return node;
}

static struct tally_node *new_atom(struct print_parser *parser, const char *text, size_t length,
				   bool is_string)
{
	struct tally_node *node = new_node(parser, TALLY_NODE_ATOM, NULL, NULL, NULL);
	if (!node)
		return NULL;
	node->text = tally_arena_copy(parser->arena, text, length);
	node->text_length = length;
	node->is_string = is_string;
	if (node->text)
		return node;
	return fail(parser, -ENOMEM, "");
}

static const struct tally_tracepoint_field *take_field(struct print_parser *parser)
{
	char name[256];
	if (parser->error)
		return NULL;
	if (parser->token.kind != TOKEN_WORD || parser->token.length >= sizeof(name))
		return fail(parser, -EBADMSG, "a field's name expected");
	memcpy(name, parser->token.text, parser->token.length);
	name[parser->token.length] = '\0';
	const struct tally_tracepoint_field *field = tally_tracepoint_field(parser->tracepoint,
									    name);
	if (!field)
		return refuse(parser, -EBADMSG, "no such field");
	advance(parser);
	return field;
}

static struct tally_node *parse_expression(struct print_parser *parser);
static struct tally_node *parse_unary(struct print_parser *parser);

/* Parses a sign and the expression behind it. */
static struct tally_node *parse_after(struct print_parser *parser, const char *sign)
{
	if (!expect(parser, sign))
		return NULL;
	return parse_expression(parser);
}

/* Parses what follows REC. */
static struct tally_node *parse_record(struct print_parser *parser)
{
	if (!expect(parser, "->"))
		return NULL;
	const struct tally_tracepoint_field *field = take_field(parser);
	struct tally_node *node = new_node(parser, TALLY_NODE_FIELD, NULL, NULL, NULL);
	if (node)
		node->field = field;
	return node;
}

/* Returns the value in a table's entry.  Like libtraceevent it knows the softirqs and timer results
 * that old kernels left as names; other names, and negative results, are -1. */
static int64_t word_value(const struct tally_node *node)
{
	static const struct {
		const char *name;
		int64_t value;
	} known[] = {
		{ "HI_SOFTIRQ", 0 },      { "TIMER_SOFTIRQ", 1 },     { "NET_TX_SOFTIRQ", 2 },
		{ "NET_RX_SOFTIRQ", 3 },  { "BLOCK_SOFTIRQ", 4 },     { "IRQ_POLL_SOFTIRQ", 5 },
		{ "TASKLET_SOFTIRQ", 6 }, { "SCHED_SOFTIRQ", 7 },     { "HRTIMER_SOFTIRQ", 8 },
		{ "RCU_SOFTIRQ", 9 },     { "HRTIMER_NORESTART", 0 }, { "HRTIMER_RESTART", 1 },
	};
	if (node->is_character || isdigit((unsigned char)node->text[0]))
		return (int64_t)tally_print_atom_number(node);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, node->text) == 0)
			return known[i].value;
	return -1;
}

static int64_t entry_value(struct print_parser *parser, const struct tally_node *node)
{
	uint64_t value;
	while (node->kind == TALLY_NODE_CAST)
		node = node->left;
	if (node->kind == TALLY_NODE_ATOM)
		return word_value(node);
	if (!tally_print_constant(node, &value)) {
		fail(parser, -EBADMSG, "a table's value is not constant");
		return -1;
	}
	if ((int64_t)value < 0)
		return -1;
	return (int64_t)value;
}

/* Parses "{ value, text }, ..." up to the closing parenthesis. */
static bool parse_words(struct print_parser *parser, struct tally_print_words *words)
{
	TALLY_VECTOR(struct tally_print_word) entries = { 0 };
	do {
		struct tally_print_word entry = { 0 };
		expect(parser, "{");
		if (accept(parser, "}")) /* a table without entries */
			continue;
		const struct tally_node *value = parse_expression(parser);
		if (value)
			entry.value = entry_value(parser, value);
		expect(parser, ",");
		const struct tally_node *text = parse_expression(parser);
		while (text && text->kind == TALLY_NODE_CAST)
			text = text->left;
		if (text && text->kind != TALLY_NODE_ATOM)
			fail(parser, -EBADMSG, "a table's name is not a string");
		if (!expect(parser, "}"))
			break;
		entry.text = text->text;
		entry.length = (uint32_t)text->text_length;
		if (tally_vector_push(&entries, entry) < 0)
			fail(parser, -ENOMEM, "");
	} while (!parser->error && accept(parser, ","));
	if (expect(parser, ")")) {
		struct tally_print_word *items = tally_arena_array(parser->arena, entries.count,
								   sizeof(*items));
		if (!items)
			fail(parser, -ENOMEM, "");
		else if (entries.count > 0)
			memcpy(items, entries.items, entries.count * sizeof(*items));
		words->items = items;
		words->count = entries.count;
	}
	tally_vector_release(&entries);
	return !parser->error;
}

/* Parses __print_flags(value, delimiter, table) and __print_symbolic(value, table), after the
 * opening parenthesis. */
static struct tally_node *parse_table(struct print_parser *parser, enum tally_node_kind kind)
{
	struct tally_node *value = parse_expression(parser);
	struct tally_print_words *words = tally_arena_alloc(parser->arena, sizeof(*words));
	if (!words)
		return fail(parser, -ENOMEM, "");
	if (!expect(parser, ","))
		return NULL;
	if (kind == TALLY_NODE_FLAGS) {
		if (!token_is(parser, ",")) {
			words->delimiter = tally_arena_copy(parser->arena, parser->token.text,
							    parser->token.length);
			if (!words->delimiter)
				return fail(parser, -ENOMEM, "");
			advance(parser);
		}
		if (!expect(parser, ","))
			return NULL;
	}
	if (!parse_words(parser, words))
		return NULL;
	struct tally_node *node = new_node(parser, kind, value, NULL, NULL);
	if (node)
		node->words = words;
	return node;
}

/* Parses sizeof(type) and sizeof(REC->field), after the opening parenthesis. */
static struct tally_node *parse_sizeof(struct print_parser *parser)
{
	unsigned bytes = 0;
	if (accept(parser, "REC")) {
		const struct tally_node *record = parse_record(parser);
		if (record)
			bytes = record->field->size_bytes;
	} else {
		const char *type = parser->token.at, *end = type;
		for (; parser->token.kind == TOKEN_WORD; advance(parser))
			end = parser->token.text + parser->token.length;
		bytes = tally_tracepoint_type_bytes(type, (size_t)(end - type),
						    parser->tracepoint->long_bytes);
		for (; token_is(parser, "*"); advance(parser))
			bytes = parser->tracepoint->long_bytes;
	}
	if (bytes == 0)
		return fail(parser, -EBADMSG, "the size of something unknown");
	if (!expect(parser, ")"))
		return NULL;
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", bytes);
	return new_atom(parser, text, (size_t)length, false);
}

/* Parses a function of one field, after the opening parenthesis. */
static struct tally_node *parse_field_function(struct print_parser *parser,
					       enum tally_node_kind kind)
{
	const struct tally_tracepoint_field *field = take_field(parser);
	if (!expect(parser, ")"))
		return NULL;
	struct tally_node *node = new_node(parser, kind, NULL, NULL, NULL);
	if (node)
		node->field = field;
	return node;
}

/* Parses __print_hex(where, bytes) and __print_array(where, elements, bytes per element), after the
 * opening parenthesis. */
static struct tally_node *parse_array_function(struct print_parser *parser,
					       enum tally_node_kind kind)
{
	struct tally_node *where = parse_expression(parser), *bytes = NULL;
	struct tally_node *count = parse_after(parser, ",");
	if (kind == TALLY_NODE_ARRAY)
		bytes = parse_after(parser, ",");
	if (!expect(parser, ")"))
		return NULL;
	return new_node(parser, kind, where, count, bytes);
}

/* Parses __print_dynamic_array(field, bytes per element), after the opening parenthesis. */
static struct tally_node *parse_dynamic_array(struct print_parser *parser,
					      enum tally_node_kind kind)
{
	const struct tally_tracepoint_field *field = take_field(parser);
	struct tally_node *bytes = parse_after(parser, ",");
	struct tally_node *where = new_node(parser, TALLY_NODE_DYNAMIC, NULL, NULL, NULL);
	struct tally_node *length = new_node(parser, TALLY_NODE_DYNAMIC_LENGTH, NULL, NULL, NULL);
	struct tally_node *count = new_node(parser, TALLY_NODE_BINARY, length, bytes, NULL);
	if (!count || !expect(parser, ")"))
		return NULL;
	where->field = length->field = field;
	count->operation = TALLY_OPERATION_DIVIDE;
	return new_node(parser, kind, where, count, bytes);
}

/* Parses __print_ns_to_secs(value) and __print_ns_without_secs(value), after the opening
 * parenthesis. */
static struct tally_node *parse_nanoseconds(struct print_parser *parser, enum tally_node_kind kind,
					    enum tally_operation operation)
{
	struct tally_node *value = parse_expression(parser);
	struct tally_node *second = new_atom(parser, "1000000000", 10, false);
	struct tally_node *node = new_node(parser, kind, value, second, NULL);
	if (node)
		node->operation = operation;
	if (!expect(parser, ")"))
		return NULL;
	return node;
}

static struct tally_node *parse_seconds(struct print_parser *parser, enum tally_node_kind kind)
{
	return parse_nanoseconds(parser, kind, TALLY_OPERATION_DIVIDE);
}

static struct tally_node *parse_part_of_second(struct print_parser *parser,
					       enum tally_node_kind kind)
{
	return parse_nanoseconds(parser, kind, TALLY_OPERATION_REMAINDER);
}

/* Parses __builtin_expect(condition, likely), after the opening parenthesis. */
static struct tally_node *parse_expected(struct print_parser *parser, enum tally_node_kind kind)
{
	(void)kind;
	struct tally_node *condition = parse_expression(parser);
	parse_after(parser, ",");
	if (!expect(parser, ")"))
		return NULL;
	return condition;
}

/* Parses __builtin_constant_p(value), after the opening parenthesis: 1, which selects the branch
 * without functions of the kernel.  The other one computes the same. */
static struct tally_node *parse_is_constant(struct print_parser *parser, enum tally_node_kind kind)
{
	(void)kind;
	parse_expression(parser);
	if (!expect(parser, ")"))
		return NULL;
	return new_atom(parser, "1", 1, false);
}

/* Parses the arguments of a function that only the kernel has, after the opening parenthesis. */
static struct tally_node *parse_kernel_call(struct print_parser *parser, const struct token *name)
{
	struct tally_node *call = new_node(parser, TALLY_NODE_CALL, NULL, NULL, NULL);
	if (!call)
		return NULL;
	struct tally_node **last = &call->left;
	bool more = !token_is(parser, ")");
	while (more) {
		struct tally_node *argument = parse_expression(parser);
		/* Each argument has a node of its own, which may be chained. */
		struct tally_node *link = new_node(parser, TALLY_NODE_CAST, argument, NULL, NULL);
		if (!link)
			return NULL;
		link->text = "";
		*last = link;
		last = &link->next;
		if (link->depth >= call->depth)
			call->depth = link->depth + 1;
		more = accept(parser, ",");
	}
	if (!expect(parser, ")"))
		return NULL;
	call->text = tally_arena_copy(parser->arena, name->text, name->length);
	call->text_length = name->length;
	if (call->depth > TALLY_NODE_DEPTH_MAX)
		return refuse(parser, -EBADMSG, "an expression is too deep");
	if (call->text)
		return call;
	return fail(parser, -ENOMEM, "");
}

static struct tally_node *parse_call(struct print_parser *parser, const struct token *name)
{
	static const struct {
		const char *name;
		struct tally_node *(*parse)(struct print_parser *parser, enum tally_node_kind kind);
		enum tally_node_kind kind;
	} functions[] = {
		{ "__print_flags", parse_table, TALLY_NODE_FLAGS },
		{ "__print_flags_u64", parse_table, TALLY_NODE_FLAGS },
		{ "__print_symbolic", parse_table, TALLY_NODE_SYMBOL },
		{ "__print_symbolic_u64", parse_table, TALLY_NODE_SYMBOL },
		{ "__print_hex", parse_array_function, TALLY_NODE_HEX },
		{ "__print_hex_str", parse_array_function, TALLY_NODE_HEX_STRING },
		{ "__print_array", parse_array_function, TALLY_NODE_ARRAY },
		{ "__print_dynamic_array", parse_dynamic_array, TALLY_NODE_ARRAY },
		{ "__print_ns_to_secs", parse_seconds, TALLY_NODE_BINARY },
		{ "__print_ns_without_secs", parse_part_of_second, TALLY_NODE_BINARY },
		{ "__builtin_expect", parse_expected, TALLY_NODE_ATOM },
		{ "__builtin_constant_p", parse_is_constant, TALLY_NODE_ATOM },
		{ "__get_str", parse_field_function, TALLY_NODE_STRING },
		{ "__get_rel_str", parse_field_function, TALLY_NODE_STRING },
		{ "__get_bitmask", parse_field_function, TALLY_NODE_BITMASK },
		{ "__get_rel_bitmask", parse_field_function, TALLY_NODE_BITMASK },
		{ "__get_cpumask", parse_field_function, TALLY_NODE_CPUMASK },
		{ "__get_rel_cpumask", parse_field_function, TALLY_NODE_CPUMASK },
		{ "__get_dynamic_array", parse_field_function, TALLY_NODE_DYNAMIC },
		{ "__get_rel_dynamic_array", parse_field_function, TALLY_NODE_DYNAMIC },
		{ "__get_sockaddr", parse_field_function, TALLY_NODE_DYNAMIC },
		{ "__get_rel_sockaddr", parse_field_function, TALLY_NODE_DYNAMIC },
		{ "__get_dynamic_array_len", parse_field_function, TALLY_NODE_DYNAMIC_LENGTH },
		{ "__get_rel_dynamic_array_len", parse_field_function, TALLY_NODE_DYNAMIC_LENGTH },
	};
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strlen(functions[i].name) == name->length &&
		    memcmp(functions[i].name, name->text, name->length) == 0)
			return functions[i].parse(parser, functions[i].kind);
	if (name->length == 6 && memcmp(name->text, "sizeof", 6) == 0)
		return parse_sizeof(parser);
	return parse_kernel_call(parser, name);
}

/* After "(": parses a type and its ")" when an operand follows, which makes it a cast.  Otherwise
 * takes nothing and returns false. */
static bool parse_type(struct print_parser *parser, const char **type, size_t *length)
{
	const char *at = parser->at;
	struct token first = parser->token;
	bool is_type = false;
	if (first.kind == TOKEN_WORD && !token_is(parser, "REC") &&
	    !isdigit((unsigned char)first.text[0])) {
		while (parser->token.kind == TOKEN_WORD)
			advance(parser);
		while (token_is(parser, "*"))
			advance(parser);
		const char *end = parser->token.at;
		if (token_is(parser, ")")) {
			advance(parser);
			is_type = parser->token.kind == TOKEN_WORD ||
				  parser->token.kind == TOKEN_STRING ||
				  parser->token.kind == TOKEN_CHARACTER || token_is(parser, "(") ||
				  token_is(parser, "~") || token_is(parser, "!") ||
				  token_is(parser, "{");
			while (end > first.at && isspace((unsigned char)end[-1]))
				end--;
			*type = first.at;
			*length = (size_t)(end - first.at);
		}
	}
	if (!is_type) {
		parser->at = at;
		parser->token = first;
	}
	return is_type && !parser->error;
}

/* Parses "{ .member = value }" after a type: the value, with the member's name as text. */
static struct tally_node *parse_compound(struct print_parser *parser)
{
	if (!expect(parser, "{") || !expect(parser, "."))
		return NULL;
	struct token member = parser->token;
	advance(parser);
	struct tally_node *value = parse_after(parser, "=");
	struct tally_node *node = new_node(parser, TALLY_NODE_COMPOUND, value, NULL, NULL);
	if (!node || !expect(parser, "}"))
		return NULL;
	node->text = member.text;
	node->text_length = member.length;
	return node;
}

/* Skips tokens up to a sign of `ends` that is in no brackets, or to the end.  Returns false if
 * brackets don't match. */
static bool skip_to(struct print_parser *parser, const char *ends)
{
	unsigned nesting = 0;
	bool found = false, skipped_before = parser->skips;
	parser->skips = true;
	while (!parser->error && parser->token.kind != TOKEN_END) {
		char sign = 'a';
		if (parser->token.kind == TOKEN_SIGN && parser->token.length == 1)
			sign = *parser->token.text;
		found = nesting == 0 && strchr(ends, sign);
		if (found || (strchr(")]}", sign) && nesting-- == 0))
			break;
		nesting += strchr("([{", sign) != NULL;
		advance(parser);
	}
	parser->skips = skipped_before;
	return found || (!parser->error && nesting == 0 && parser->token.kind == TOKEN_END);
}

/* Parses "type name = value;" as far as it is one.  Returns false otherwise. */
static bool parse_declaration(struct print_parser *parser)
{
	const char *type = parser->token.at, *type_end = type;
	struct token name = { .at = type };
	while (parser->token.kind == TOKEN_WORD) {
		bool is_typeof = token_is(parser, "typeof") || token_is(parser, "__typeof__");
		type_end = name.at + name.length;
		name = parser->token;
		advance(parser);
		if (is_typeof &&
		    (!accept(parser, "(") || !skip_to(parser, ")") || !accept(parser, ")")))
			return false;
	}
	if (type_end == type || !accept(parser, "="))
		return false;
	struct tally_node *value = parse_expression(parser);
	struct tally_node *cast = new_node(parser, TALLY_NODE_CAST, value, NULL, NULL);
	uint64_t number;
	if (!cast || !token_is(parser, ";") || parser->binding_count == TALLY_NODE_BINDINGS_MAX)
		return false;
	cast->text = type;
	cast->text_length = (size_t)(type_end - type);
	if (tally_print_constant(cast, &number)) { /* so that no constant is computed twice */
		char text[24];
		int length = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
		cast = new_atom(parser, text, (size_t)length, false);
	}
	parser->bindings[parser->binding_count++] = (struct binding){ name, cast };
	return cast != NULL;
}

/* Parses a statement expression, after "({": declarations, assertions, and a value.
 *
 *     ({ int x = (REC->count); int y = (128); ((x) < (y) ? (x) : (y)); }) */
static struct tally_node *parse_statements(struct print_parser *parser)
{
	size_t outer = parser->binding_count;
	struct tally_node *value = NULL;
	while (!parser->error && !value) {
		const char *at = parser->at;
		struct token token = parser->token;
		bool is_assertion = token_is(parser, "do") || token_is(parser, "_Static_assert");
		if (!skip_to(parser, ";"))
			break;
		advance(parser);
		bool is_last = token_is(parser, "}");
		if (is_assertion && !is_last)
			continue;
		parser->at = at;
		parser->token = token;
		if (is_last)
			value = parse_expression(parser);
		else if (!parse_declaration(parser))
			break;
		if (!expect(parser, ";"))
			break;
	}
	parser->binding_count = outer;
	if (!value)
		return fail(parser, -EBADMSG, "statements that are no declarations");
	if (expect(parser, "}") && expect(parser, ")"))
		return value;
	return NULL;
}

/* Parses a cast, a compound literal, statements or a parenthesis, after the "(". */
static struct tally_node *parse_parenthesis(struct print_parser *parser)
{
	const char *type;
	size_t length;
	if (accept(parser, "{"))
		return parse_statements(parser);
	if (parse_type(parser, &type, &length)) {
		if (token_is(parser, "{"))
			return parse_compound(parser);
		struct tally_node *node = new_node(parser, TALLY_NODE_CAST, parse_unary(parser),
						   NULL, NULL);
		if (!node)
			return NULL;
		node->text = tally_arena_copy(parser->arena, type, length);
		node->text_length = length;
		if (node->text)
			return node;
		return fail(parser, -ENOMEM, "");
	}
	const char *at = parser->at;
	struct token token = parser->token;
	if (accept(parser, "REC") && accept(parser, ")"))
		return parse_record(parser);
	parser->at = at;
	parser->token = token;
	struct tally_node *inner = parse_expression(parser);
	if (!expect(parser, ")"))
		return NULL;
	return inner;
}

static struct tally_node *parse_word(struct print_parser *parser)
{
	struct token name = parser->token;
	advance(parser);
	if (name.length == 3 && memcmp(name.text, "REC", 3) == 0)
		return parse_record(parser);
	if (accept(parser, "("))
		return parse_call(parser, &name);
	for (size_t i = parser->binding_count; i-- > 0;)
		if (parser->bindings[i].name.length == name.length &&
		    memcmp(parser->bindings[i].name.text, name.text, name.length) == 0)
			return parser->bindings[i].value;
	const char *end = name.text + name.length;
	/* "unsigned long", where C would not have a type */
	while (parser->token.kind == TOKEN_WORD) {
		end = parser->token.text + parser->token.length;
		advance(parser);
	}
	return new_atom(parser, name.text, (size_t)(end - name.text), false);
}

/* Parses the indices and members behind an operand. */
static struct tally_node *parse_suffixes(struct print_parser *parser, struct tally_node *node)
{
	while (node && !parser->error) {
		if (accept(parser, "[")) {
			struct tally_node *index = parse_expression(parser);
			node = new_node(parser, TALLY_NODE_INDEX, node, index, NULL);
			expect(parser, "]");
		} else if (accept(parser, ".")) {
			if (node->kind != TALLY_NODE_COMPOUND ||
			    parser->token.length != node->text_length ||
			    memcmp(parser->token.text, node->text, node->text_length) != 0)
				return fail(parser, -EBADMSG, "a member of something unknown");
			advance(parser);
			node = node->left;
		} else {
			break;
		}
	}
	if (parser->error)
		return NULL;
	return node;
}

static struct tally_node *parse_operand(struct print_parser *parser)
{
	struct tally_node *node;
	if (parser->token.kind == TOKEN_WORD) {
		node = parse_word(parser);
	} else if (parser->token.kind == TOKEN_STRING || parser->token.kind == TOKEN_CHARACTER) {
		node = new_atom(parser, parser->token.text, parser->token.length, true);
		if (node)
			node->is_character = parser->token.kind == TOKEN_CHARACTER;
		advance(parser);
	} else if (accept(parser, "(")) {
		node = parse_parenthesis(parser);
	} else {
		return fail(parser, -EBADMSG, "an operand expected");
	}
	return parse_suffixes(parser, node);
}

static struct tally_node *parse_unary_inside(struct print_parser *parser)
{
	enum tally_operation operation = TALLY_OPERATION_NONE;
	if (accept(parser, "+"))
		return parse_unary(parser);
	if (accept(parser, "-"))
		operation = TALLY_OPERATION_NEGATE;
	else if (accept(parser, "~"))
		operation = TALLY_OPERATION_COMPLEMENT;
	else if (accept(parser, "!"))
		operation = TALLY_OPERATION_NOT;
	else if (token_is(parser, "&")) {
		/* &REC->field: the field already stands for its address. */
		advance(parser);
		struct tally_node *place = parse_unary(parser);
		if (place && place->kind != TALLY_NODE_FIELD)
			return fail(parser, -EBADMSG, "the address of something that is no field");
		return place;
	} else {
		return parse_operand(parser);
	}
	struct tally_node *node = new_node(parser, TALLY_NODE_UNARY, parse_unary(parser), NULL,
					   NULL);
	if (node)
		node->operation = operation;
	return node;
}

static struct tally_node *parse_unary(struct print_parser *parser)
{
	if (++parser->nesting > TALLY_NODE_DEPTH_MAX)
		return refuse(parser, -EBADMSG, "parentheses are too deep");
	struct tally_node *node = parse_unary_inside(parser);
	parser->nesting--;
	return node;
}

static enum tally_operation binary_operation(const struct print_parser *parser,
					     unsigned *precedence)
{
	static const struct {
		char sign[3];
		uint8_t precedence;
		enum tally_operation operation;
	} operations[] = {
		{ "*", 10, TALLY_OPERATION_MULTIPLY },
		{ "/", 10, TALLY_OPERATION_DIVIDE },
		{ "%", 10, TALLY_OPERATION_REMAINDER },
		{ "+", 9, TALLY_OPERATION_ADD },
		{ "-", 9, TALLY_OPERATION_SUBTRACT },
		{ "<<", 8, TALLY_OPERATION_SHIFT_LEFT },
		{ ">>", 8, TALLY_OPERATION_SHIFT_RIGHT },
		{ "<", 7, TALLY_OPERATION_LESS },
		{ ">", 7, TALLY_OPERATION_GREATER },
		{ "<=", 7, TALLY_OPERATION_LESS_EQUAL },
		{ ">=", 7, TALLY_OPERATION_GREATER_EQUAL },
		{ "==", 6, TALLY_OPERATION_EQUAL },
		{ "!=", 6, TALLY_OPERATION_NOT_EQUAL },
		{ "&", 5, TALLY_OPERATION_AND },
		{ "^", 4, TALLY_OPERATION_XOR },
		{ "|", 3, TALLY_OPERATION_OR },
		{ "&&", 2, TALLY_OPERATION_BOTH },
		{ "||", 1, TALLY_OPERATION_EITHER },
	};
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (token_is(parser, operations[i].sign)) {
			*precedence = operations[i].precedence;
			return operations[i].operation;
		}
	return TALLY_OPERATION_NONE;
}

static struct tally_node *parse_binary(struct print_parser *parser, unsigned lowest)
{
	struct tally_node *left = parse_unary(parser);
	while (left && !parser->error) {
		unsigned precedence = 0;
		enum tally_operation operation = binary_operation(parser, &precedence);
		if (operation == TALLY_OPERATION_NONE || precedence < lowest)
			break;
		advance(parser);
		struct tally_node *right = parse_binary(parser, precedence + 1);
		left = new_node(parser, TALLY_NODE_BINARY, left, right, NULL);
		if (left)
			left->operation = operation;
	}
	if (parser->error)
		return NULL;
	return left;
}

static struct tally_node *parse_expression(struct print_parser *parser)
{
	if (parser->error)
		return NULL;
	if (++parser->nesting > TALLY_NODE_DEPTH_MAX)
		return refuse(parser, -EBADMSG, "conditions are too deep");
	struct tally_node *node = parse_binary(parser, 1);
	if (node && accept(parser, "?")) {
		struct tally_node *yes = node;
		if (!token_is(parser, ":"))
			yes = parse_expression(parser);
		struct tally_node *no = parse_after(parser, ":");
		node = new_node(parser, TALLY_NODE_CONDITION, node, yes, no);
	}
	parser->nesting--;
	if (parser->error)
		return NULL;
	return node;
}

/* Parses an argument.  One that isn't understood becomes TALLY_NODE_UNKNOWN. */
static struct tally_node *parse_argument(struct print_parser *parser)
{
	const char *at = parser->at;
	struct token first = parser->token;
	unsigned nesting = parser->nesting;
	struct tally_node *argument = parse_expression(parser);
	bool is_whole = token_is(parser, ",") || parser->token.kind == TOKEN_END;
	if (parser->refused || parser->error == -ENOMEM)
		return NULL;
	if (parser->error || !is_whole) {
		if (!parser->error)
			fail(parser, -EBADMSG, "something stands behind an argument");
		int error = parser->error;
		parser->at = at;
		parser->token = first;
		parser->nesting = nesting;
		parser->binding_count = 0;
		parser->error = 0;
		if (!skip_to(parser, ",")) {
			parser->error = error;
			return NULL;
		}
		argument = new_node(parser, TALLY_NODE_UNKNOWN, NULL, NULL, NULL);
	}
	if (argument) {
		argument->source = first.at;
		argument->source_length = (size_t)(parser->token.at - first.at);
	}
	return argument;
}

static void parse_arguments(struct print_parser *parser, struct tally_print_source *out)
{
	struct tally_node **last = &out->arguments;
	while (!parser->error && accept(parser, ",")) {
		if (parser->token.kind == TOKEN_END) /* no arguments: "text", */
			return;
		struct tally_node *argument = parse_argument(parser);
		if (!argument)
			return;
		*last = argument;
		last = &argument->next;
	}
	if (!parser->error && parser->token.kind != TOKEN_END)
		fail(parser, -EBADMSG, "something stands behind the last argument");
}

/* True if the quote at `parser->at` ends the format string.  The kernel writes the compiled string,
 * so a quote in it is not escaped: "name="%s" id=%d", REC->name, REC->id */
static bool ends_format(const struct print_parser *parser)
{
	const char *next = parser->at + 1;
	while (next < parser->end && isspace((unsigned char)*next))
		next++;
	return next >= parser->end || *next == ',' || (*next == '"' && next > parser->at + 1);
}

/* Scans the format string.  Its literals become one, as those of other strings. */
static bool scan_format(struct print_parser *parser, struct tally_print_source *out)
{
	char *text = tally_arena_alloc(parser->arena, (size_t)(parser->end - parser->at) + 1);
	if (!text)
		return fail(parser, -ENOMEM, "");
	out->format = text;
	for (skip_space(parser); parser->at < parser->end && *parser->at == '"';
	     skip_space(parser)) {
		for (parser->at++; parser->at < parser->end; parser->at++) {
			if (*parser->at == '"' && ends_format(parser))
				break;
			if (*parser->at == '\\' && parser->end - parser->at > 1)
				text[out->format_length++] = *parser->at++;
			text[out->format_length++] = *parser->at;
		}
		if (parser->at >= parser->end)
			return fail(parser, -EBADMSG, "a string doesn't end");
		parser->at++;
	}
	advance(parser);
	return !parser->error;
}

int tally_print_parse(const struct tally_tracepoint *tracepoint, struct tally_arena *arena,
		      struct tally_print_source *out, struct tally_error *err)
{
	const char *start = tracepoint->print_format;
	*out = (struct tally_print_source){ .format = "" };
	struct print_parser parser = { .tracepoint = tracepoint,
				       .arena = arena,
				       .at = start,
				       .end = start + strlen(start),
				       .err = err };
	if (*start != '"')
		fail(&parser, -EBADMSG, "it doesn't begin with a string");
	else if (scan_format(&parser, out))
		parse_arguments(&parser, out);
	return parser.error;
}
