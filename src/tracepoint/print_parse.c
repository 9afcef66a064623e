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
 */
#include "tracepoint/print_program.h"

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

struct print_parser {
	const struct tally_tracepoint *tracepoint;
	struct tally_arena *arena;
	const char *at, *end;
	struct token token; /* the next token */
	unsigned nesting;
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

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
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
	while (parser->at < parser->end && *parser->at != quote)
		parser->at += *parser->at == '\\' && parser->end - parser->at > 1 ? 2 : 1;
	if (parser->at >= parser->end)
		return false;
	*text = start;
	*length = (size_t)(parser->at++ - start);
	return true;
}

/* Scans a string literal; "a" "b" is one literal. */
static void scan_string(struct print_parser *parser)
{
	struct token *token = &parser->token;
	token->kind = TOKEN_STRING;
	if (!scan_quoted(parser, '"', &token->text, &token->length)) {
		fail(parser, -EBADMSG, "a string doesn't end");
		return;
	}
	for (;;) {
		skip_space(parser);
		if (parser->at >= parser->end || *parser->at != '"')
			return;
		const char *more;
		size_t more_length;
		if (!scan_quoted(parser, '"', &more, &more_length)) {
			fail(parser, -EBADMSG, "a string doesn't end");
			return;
		}
		char *joined = tally_arena_alloc(parser->arena, token->length + more_length + 1);
		if (!joined) {
			fail(parser, -ENOMEM, "");
			return;
		}
		memcpy(joined, token->text, token->length);
		memcpy(joined + token->length, more, more_length);
		token->text = joined;
		token->length += more_length;
	}
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
			fail(parser, -EBADMSG, "a character doesn't end");
	} else if (is_word_char(*parser->at)) {
		parser->token.kind = TOKEN_WORD;
		parser->token.text = parser->at;
		while (parser->at < parser->end && is_word_char(*parser->at))
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
	struct tally_node *node = tally_arena_alloc(parser->arena, sizeof(*node));
	if (!node)
		return fail(parser, -ENOMEM, "");
	*node = (struct tally_node){ .kind = kind, .left = left, .right = right, .third = third };
	const struct tally_node *children[] = { left, right, third };
	for (size_t i = 0; i < 3; i++)
		if (children[i] && children[i]->depth >= node->depth)
			node->depth = children[i]->depth + 1;
	if (node->depth > TALLY_NODE_DEPTH_MAX)
		return fail(parser, -EBADMSG, "an expression is too deep");
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
	return node->text ? node : fail(parser, -ENOMEM, "");
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
		return fail(parser, -EBADMSG, "no such field");
	advance(parser);
	return field;
}

static struct tally_node *parse_expression(struct print_parser *parser);
static struct tally_node *parse_unary(struct print_parser *parser);

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
	return (int64_t)value < 0 ? -1 : (int64_t)value;
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
	struct tally_node *where = parse_expression(parser), *count = NULL, *bytes = NULL;
	if (expect(parser, ","))
		count = parse_expression(parser);
	if (kind == TALLY_NODE_ARRAY && expect(parser, ","))
		bytes = parse_expression(parser);
	return expect(parser, ")") ? new_node(parser, kind, where, count, bytes) : NULL;
}

/* Parses __builtin_expect(condition, likely), after the opening parenthesis. */
static struct tally_node *parse_expected(struct print_parser *parser)
{
	struct tally_node *condition = parse_expression(parser);
	if (expect(parser, ","))
		parse_expression(parser);
	return expect(parser, ")") ? condition : NULL;
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
	if (name->length == 16 && memcmp(name->text, "__builtin_expect", 16) == 0)
		return parse_expected(parser);
	char what[128];
	snprintf(what, sizeof(what), "function %.*s() is unknown",
		 (int)(name->length > 64 ? 64 : name->length), name->text);
	return fail(parser, -EBADMSG, what);
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
				  token_is(parser, "~") || token_is(parser, "!");
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

/* Parses a cast or a parenthesis, after the "(". */
static struct tally_node *parse_parenthesis(struct print_parser *parser)
{
	const char *type;
	size_t length;
	if (parse_type(parser, &type, &length)) {
		struct tally_node *node = new_node(parser, TALLY_NODE_CAST, parse_unary(parser),
						   NULL, NULL);
		if (!node)
			return NULL;
		node->text = tally_arena_copy(parser->arena, type, length);
		node->text_length = length;
		return node->text ? node : fail(parser, -ENOMEM, "");
	}
	const char *at = parser->at;
	struct token token = parser->token;
	if (accept(parser, "REC") && accept(parser, ")"))
		return parse_record(parser);
	parser->at = at;
	parser->token = token;
	struct tally_node *inner = parse_expression(parser);
	return expect(parser, ")") ? inner : NULL;
}

static struct tally_node *parse_word(struct print_parser *parser)
{
	struct token name = parser->token;
	advance(parser);
	if (name.length == 3 && memcmp(name.text, "REC", 3) == 0)
		return parse_record(parser);
	if (accept(parser, "("))
		return parse_call(parser, &name);
	const char *end = name.text + name.length;
	/* "unsigned long", where C would not have a type */
	while (parser->token.kind == TOKEN_WORD) {
		end = parser->token.text + parser->token.length;
		advance(parser);
	}
	return new_atom(parser, name.text, (size_t)(end - name.text), false);
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
	while (node && !parser->error && accept(parser, "[")) {
		struct tally_node *index = parse_expression(parser);
		node = expect(parser, "]") ? new_node(parser, TALLY_NODE_INDEX, node, index, NULL)
					   : NULL;
	}
	return parser->error ? NULL : node;
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
		return fail(parser, -EBADMSG, "parentheses are too deep");
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
		{ "*", 10, TALLY_OPERATION_MULTIPLY },     { "/", 10, TALLY_OPERATION_DIVIDE },
		{ "%", 10, TALLY_OPERATION_REMAINDER },    { "+", 9, TALLY_OPERATION_ADD },
		{ "-", 9, TALLY_OPERATION_SUBTRACT },      { "<<", 8, TALLY_OPERATION_SHIFT_LEFT },
		{ ">>", 8, TALLY_OPERATION_SHIFT_RIGHT },  { "<", 7, TALLY_OPERATION_LESS },
		{ ">", 7, TALLY_OPERATION_GREATER },       { "<=", 7, TALLY_OPERATION_LESS_EQUAL },
		{ ">=", 7, TALLY_OPERATION_GREATER_EQUAL }, { "==", 6, TALLY_OPERATION_EQUAL },
		{ "!=", 6, TALLY_OPERATION_NOT_EQUAL },    { "&", 5, TALLY_OPERATION_AND },
		{ "^", 4, TALLY_OPERATION_XOR },           { "|", 3, TALLY_OPERATION_OR },
		{ "&&", 2, TALLY_OPERATION_BOTH },         { "||", 1, TALLY_OPERATION_EITHER },
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
	return parser->error ? NULL : left;
}

static struct tally_node *parse_expression(struct print_parser *parser)
{
	if (parser->error)
		return NULL;
	if (++parser->nesting > TALLY_NODE_DEPTH_MAX)
		return fail(parser, -EBADMSG, "conditions are too deep");
	struct tally_node *node = parse_binary(parser, 1);
	if (node && accept(parser, "?")) {
		struct tally_node *yes = parse_expression(parser);
		struct tally_node *no = expect(parser, ":") ? parse_expression(parser) : NULL;
		node = new_node(parser, TALLY_NODE_CONDITION, node, yes, no);
	}
	parser->nesting--;
	return parser->error ? NULL : node;
}

static void parse_arguments(struct print_parser *parser, struct tally_print_source *out)
{
	struct tally_node **last = &out->arguments;
	while (!parser->error && accept(parser, ",")) {
		struct tally_node *argument = parse_expression(parser);
		if (!argument)
			return;
		*last = argument;
		last = &argument->next;
	}
	if (!parser->error && parser->token.kind != TOKEN_END)
		fail(parser, -EBADMSG, "something stands behind the last argument");
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
	advance(&parser);
	if (!parser.error && parser.token.kind != TOKEN_STRING) {
		fail(&parser, -EBADMSG, "it doesn't begin with a string");
	} else if (!parser.error) {
		out->format = parser.token.text;
		out->format_length = parser.token.length;
		advance(&parser);
		parse_arguments(&parser, out);
	}
	return parser.error;
}
