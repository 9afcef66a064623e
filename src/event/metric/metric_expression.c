/* Parses and evaluates the expressions of metrics.
 *
 * A recursive descent over perf's precedences makes an array of nodes, operands before operators, so
 * that evaluation is a loop.  Every node counts towards a limit, and so does every level of nesting:
 * the text is untrusted. */
#include "metric/metric.h"

#include "base/extremes.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum operation {
	NUMBER,
	NAME,
	CONSTANT,
	CPUID, /* strcmp_cpuid_str(): `name` is the pattern */
	HAS_EVENT,
	SOURCE_COUNT,
	NEGATE,
	NOT,
	OR,
	XOR,
	AND,
	LESS,
	GREATER,
	ADD,
	SUBTRACT,
	MULTIPLY,
	DIVIDE,
	REMAINDER,
	MINIMUM,
	MAXIMUM,
	RATIO,
	IF
};

struct node {
	enum operation operation;
	uint32_t a, b, c; /* operands: indices of nodes; NAME: index of the name; CONSTANT: row */
	double number;
	const char *text;
};

struct tally_metric_expression {
	struct node *nodes; /* the last one is the result */
	size_t count;
	const char **names;
	size_t name_count;
};

/* --- constants ------------------------------------------------------------ */

static const struct {
	const char *name;
	size_t offset;
} constants[] = {
	{ "#core_wide", offsetof(struct tally_metric_machine, core_wide) },
	{ "#num_cores", offsetof(struct tally_metric_machine, cores) },
	{ "#num_cpus", offsetof(struct tally_metric_machine, cpus) },
	{ "#num_cpus_online", offsetof(struct tally_metric_machine, cpus_online) },
	{ "#num_dies", offsetof(struct tally_metric_machine, dies) },
	{ "#num_packages", offsetof(struct tally_metric_machine, packages) },
	{ "#slots", offsetof(struct tally_metric_machine, slots) },
	{ "#smt_on", offsetof(struct tally_metric_machine, smt_on) },
	{ "#system_tsc_freq", offsetof(struct tally_metric_machine, tsc_hz) },
};

/* --- tokens --------------------------------------------------------------- */

enum token { END, A_NUMBER, A_NAME, A_CONSTANT, A_SIGN, WRONG };

struct parser {
	const char *text;
	struct tally_arena *arena;
	struct tally_error *err;
	int result; /* 0, or the first error */
	unsigned depth;
	TALLY_VECTOR(struct node) nodes;
	TALLY_VECTOR(const char *) names;
	/* the present token */
	enum token token;
	size_t start, end; /* its bytes */
	double number;
	char *name; /* of A_NAME */
	bool is_quoted;
};

static void fail(struct parser *parser, int code, size_t position, const char *message)
{
	if (parser->result)
		return;
	parser->result = tally_error_set(parser->err, code, "%s", message);
	if (parser->err && code != -ENOMEM)
		parser->err->position = (int)position;
	parser->token = END;
}

static bool is_name_character(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == ':' || c == '?' ||
	       c == '@';
}

/* Reads digits as a number, without the locale. Returns the length, 0 if it is none. */
static size_t read_number(const char *text, double *out)
{
	size_t at = 0, digits = 0;
	double value = 0, divisor = 1;
	for (; isdigit((unsigned char)text[at]); at++, digits++)
		value = value * 10 + (text[at] - '0');
	if (text[at] == '.')
		for (at++; isdigit((unsigned char)text[at]); at++, digits++) {
			value = value * 10 + (text[at] - '0');
			divisor *= 10;
		}
	if (!digits)
		return 0;
	size_t power = at + 1;
	bool is_negative = false;
	if (text[at] == 'e' || text[at] == 'E') {
		is_negative = text[power] == '-';
		power += text[power] == '-' || text[power] == '+';
	}
	if ((text[at] == 'e' || text[at] == 'E') && isdigit((unsigned char)text[power])) {
		int exponent = 0;
		double scale = 1;
		for (at = power; isdigit((unsigned char)text[at]); at++)
			exponent = (int)tally_min_u64(
				(uint64_t)exponent * 10 + (uint64_t)(text[at] - '0'), 400);
		while (exponent--) /* pow() would need libm */
			scale *= 10;
		if (is_negative)
			value /= scale;
		else
			value *= scale;
	}
	*out = value / divisor;
	return at;
}

/* Reads a name between quotes, as it is. */
static void read_quoted(struct parser *parser)
{
	const char *at = parser->text + parser->start + 1;
	const char *close = strchr(at, at[-1]);
	if (!close) {
		fail(parser, -EINVAL, parser->start, "the quote is not closed");
		return;
	}
	if (close == at) {
		fail(parser, -EINVAL, parser->start, "there is no name between the quotes");
		return;
	}
	parser->name = tally_arena_copy(parser->arena, at, (size_t)(close - at));
	parser->end = (size_t)(close - parser->text) + 1;
	parser->token = A_NAME;
	parser->is_quoted = true;
	if (!parser->name)
		fail(parser, -ENOMEM, parser->start, "out of memory");
}

static void read_name(struct parser *parser)
{
	const char *text = parser->text;
	size_t at = parser->start, used = 0;
	while (is_name_character(text[at]) || (text[at] == '\\' && text[at + 1]))
		at += 1 + (text[at] == '\\');
	parser->name = tally_arena_copy(parser->arena, text + parser->start, at - parser->start);
	if (!parser->name) {
		fail(parser, -ENOMEM, parser->start, "out of memory");
		return;
	}
	for (size_t i = parser->start; i < at; i++) {
		char c = text[i];
		if (c == '\\')
			c = text[++i];
		else if (c == '@')
			c = '/';
		parser->name[used++] = c;
	}
	parser->name[used] = 0;
	parser->end = at;
	parser->token = A_NAME;
	parser->is_quoted = false;
}

static void advance(struct parser *parser)
{
	const char *text = parser->text;
	if (parser->result)
		return;
	parser->start = parser->end;
	while (isspace((unsigned char)text[parser->start]))
		parser->start++;
	size_t at = parser->start;
	if (!text[at]) {
		parser->token = END;
		parser->end = at;
		return;
	}
	if (text[at] == '\'' || text[at] == '"') {
		read_quoted(parser);
		return;
	}
	if (text[at] == '#') {
		for (at++; isalnum((unsigned char)text[at]) || text[at] == '_';)
			at++;
		parser->token = A_CONSTANT;
		parser->end = at;
		return;
	}
	size_t length = read_number(text + at, &parser->number);
	if (length && !is_name_character(text[at + length]) && text[at + length] != '\\') {
		parser->token = A_NUMBER;
		parser->end = at + length;
	} else if (is_name_character(text[at]) || (text[at] == '\\' && text[at + 1])) {
		read_name(parser);
	} else {
		parser->token = WRONG;
		if (strchr("()+-*/%<>&|^!,", text[at]))
			parser->token = A_SIGN;
		parser->end = at + 1;
	}
}

static bool is_sign(const struct parser *parser, char sign)
{
	return parser->token == A_SIGN && parser->text[parser->start] == sign;
}

static bool is_word(const struct parser *parser, const char *word)
{
	return parser->token == A_NAME && !parser->is_quoted && !strcmp(parser->name, word);
}

static void expect(struct parser *parser, char sign, const char *message)
{
	if (!is_sign(parser, sign))
		fail(parser, -EINVAL, parser->start, message);
	advance(parser);
}

/* --- grammar -------------------------------------------------------------- */

static uint32_t add_node(struct parser *parser, struct node node)
{
	if (parser->nodes.count >= TALLY_METRIC_NODES_MAX)
		fail(parser, -E2BIG, parser->start, "the expression is too long");
	else if (tally_vector_push(&parser->nodes, node) < 0)
		fail(parser, -ENOMEM, parser->start, "out of memory");
	else
		return (uint32_t)parser->nodes.count - 1;
	return 0;
}

static uint32_t name_index(struct parser *parser, const char *name)
{
	for (size_t i = 0; i < parser->names.count; i++)
		if (!strcmp(parser->names.items[i], name))
			return (uint32_t)i;
	if (tally_vector_push(&parser->names, name) < 0)
		fail(parser, -ENOMEM, parser->start, "out of memory");
	return (uint32_t)parser->names.count - 1;
}

static uint32_t parse_if(struct parser *parser);

static uint32_t parse_constant(struct parser *parser)
{
	const char *text = parser->text + parser->start;
	size_t length = parser->end - parser->start;
	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++)
		if (strlen(constants[i].name) == length &&
		    !strncasecmp(constants[i].name, text, length)) {
			advance(parser);
			return add_node(parser,
					(struct node){ .operation = CONSTANT, .a = (uint32_t)i });
		}
	fail(parser, -EINVAL, parser->start,
	     "there is no such constant; there are #num_cpus, #num_cpus_online, #num_cores, "
	     "#num_dies, #num_packages, #smt_on, #core_wide, #slots and #system_tsc_freq");
	return 0;
}

/* Parses (A, B). */
static uint32_t parse_pair(struct parser *parser, enum operation operation)
{
	struct node node = { .operation = operation };
	expect(parser, '(', "'(' must follow the function's name");
	node.a = parse_if(parser);
	expect(parser, ',', "',' and a second argument are missing");
	node.b = parse_if(parser);
	expect(parser, ')', "')' is missing");
	return add_node(parser, node);
}

/* Parses (NAME). */
static uint32_t parse_about_name(struct parser *parser, enum operation operation)
{
	struct node node = { .operation = operation };
	expect(parser, '(', "'(' must follow the function's name");
	if (parser->token != A_NAME) {
		fail(parser, -EINVAL, parser->start, "a name is missing");
		return 0;
	}
	if (operation == CPUID)
		node.text = parser->name;
	else
		node.a = name_index(parser, parser->name);
	advance(parser);
	expect(parser, ')', "')' is missing");
	return add_node(parser, node);
}

/* The pattern of strcmp_cpuid_str() may have signs; it ends at the ')'. */
static uint32_t parse_cpuid(struct parser *parser)
{
	if (!is_sign(parser, '(')) {
		fail(parser, -EINVAL, parser->start, "'(' must follow the function's name");
		return 0;
	}
	size_t start = parser->end;
	if (strchr("'\"", parser->text[start]) && parser->text[start]) {
		return parse_about_name(parser, CPUID);
	}
	size_t length = strcspn(parser->text + start, ")");
	if (!parser->text[start + length]) {
		fail(parser, -EINVAL, start, "')' is missing");
		return 0;
	}
	struct node node = { .operation = CPUID };
	char *pattern = tally_arena_copy(parser->arena, parser->text + start, length);
	if (!pattern) {
		fail(parser, -ENOMEM, start, "out of memory");
		return 0;
	}
	size_t used = 0;
	for (size_t i = 0; i < length; i++)
		if (pattern[i] != '\\' && pattern[i] != ' ')
			pattern[used++] = pattern[i];
	pattern[used] = 0;
	node.text = pattern;
	parser->end = start + length + 1;
	advance(parser);
	return add_node(parser, node);
}

static uint32_t parse_named(struct parser *parser)
{
	static const struct {
		const char *name;
		enum operation operation;
		bool is_of_name;
	} functions[] = {
		{ "min", MINIMUM, false },
		{ "max", MAXIMUM, false },
		{ "d_ratio", RATIO, false },
		{ "has_event", HAS_EVENT, true },
		{ "source_count", SOURCE_COUNT, true },
	};
	size_t after = parser->end;
	while (isspace((unsigned char)parser->text[after]))
		after++;
	bool is_function = parser->text[after] == '(' && !parser->is_quoted;
	if (is_function && is_word(parser, "strcmp_cpuid_str")) {
		advance(parser);
		return parse_cpuid(parser);
	}
	for (size_t i = 0; is_function && i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!is_word(parser, functions[i].name))
			continue;
		advance(parser);
		if (functions[i].is_of_name)
			return parse_about_name(parser, functions[i].operation);
		return parse_pair(parser, functions[i].operation);
	}
	if (is_function) {
		fail(parser, -EINVAL, parser->start,
		     "there is no such function; there are min, max, d_ratio, has_event, "
		     "source_count and strcmp_cpuid_str");
		return 0;
	}
	if (is_word(parser, "if") || is_word(parser, "else")) {
		fail(parser, -EINVAL, parser->start, "a value is missing before it");
		return 0;
	}
	struct node node = { .operation = NAME, .a = name_index(parser, parser->name) };
	advance(parser);
	return add_node(parser, node);
}

static uint32_t parse_primary(struct parser *parser)
{
	struct node node = { .operation = NUMBER, .number = parser->number };
	switch (parser->token) {
	case A_NUMBER:
		advance(parser);
		return add_node(parser, node);
	case A_NAME:
		return parse_named(parser);
	case A_CONSTANT:
		return parse_constant(parser);
	default:
		break;
	}
	if (is_sign(parser, '(')) {
		advance(parser);
		uint32_t inner = parse_if(parser);
		expect(parser, ')', "')' is missing");
		return inner;
	}
	fail(parser, -EINVAL, parser->start, "a number, an event, a metric or '(' is missing");
	return 0;
}

static uint32_t parse_unary(struct parser *parser)
{
	enum { SIGNS_MAX = 64 };
	char signs[SIGNS_MAX];
	size_t count = 0;
	while (is_sign(parser, '-') || is_sign(parser, '!')) {
		if (count == SIGNS_MAX) {
			fail(parser, -E2BIG, parser->start, "there are too many signs");
			return 0;
		}
		signs[count++] = parser->text[parser->start];
		advance(parser);
	}
	uint32_t node = parse_primary(parser);
	while (count) {
		enum operation operation = signs[--count] == '-' ? NEGATE : NOT;
		node = add_node(parser, (struct node){ .operation = operation, .a = node });
	}
	return node;
}

static const struct {
	const char *signs;
	enum operation operations[3];
} levels[] = {
	{ "|", { OR } },
	{ "^", { XOR } },
	{ "&", { AND } },
	{ "<>", { LESS, GREATER } },
	{ "+-", { ADD, SUBTRACT } },
	{ "*/%", { MULTIPLY, DIVIDE, REMAINDER } },
};

static uint32_t parse_level(struct parser *parser, size_t level)
{
	if (level == sizeof(levels) / sizeof(levels[0]))
		return parse_unary(parser);
	uint32_t left = parse_level(parser, level + 1);
	while (parser->token == A_SIGN && !parser->result) {
		const char *sign = strchr(levels[level].signs, parser->text[parser->start]);
		if (!sign)
			break;
		struct node node = {
			.operation = levels[level].operations[sign - levels[level].signs], .a = left
		};
		advance(parser);
		node.b = parse_level(parser, level + 1);
		left = add_node(parser, node);
	}
	return left;
}

static uint32_t parse_if(struct parser *parser)
{
	if (parser->depth >= TALLY_METRIC_DEPTH_MAX) {
		fail(parser, -E2BIG, parser->start, "it is nested too deeply");
		return 0;
	}
	parser->depth++;
	uint32_t value = parse_level(parser, 0);
	if (is_word(parser, "if")) {
		struct node node = { .operation = IF, .a = value };
		advance(parser);
		node.b = parse_level(parser, 0);
		if (!is_word(parser, "else"))
			fail(parser, -EINVAL, parser->start, "'else' is missing");
		advance(parser);
		node.c = parse_if(parser);
		value = add_node(parser, node);
	}
	parser->depth--;
	return value;
}

int tally_metric_parse(const char *text, struct tally_arena *arena,
		       const struct tally_metric_expression **out, struct tally_error *err)
{
	struct parser parser = { .text = text, .arena = arena, .err = err };
	*out = NULL;
	advance(&parser);
	parse_if(&parser);
	if (parser.token == WRONG)
		fail(&parser, -EINVAL, parser.start, "this character has no meaning here");
	else if (parser.token != END)
		fail(&parser, -EINVAL, parser.start, "an operator is missing before it");
	struct tally_metric_expression *expression = NULL;
	if (!parser.result) {
		expression = tally_arena_alloc(arena, sizeof(*expression));
		struct node *nodes = tally_arena_array(arena, parser.nodes.count, sizeof(*nodes));
		const char **names = tally_arena_array(arena, parser.names.count + 1,
						       sizeof(*names));
		if (expression && nodes && names) {
			memcpy(nodes, parser.nodes.items, parser.nodes.count * sizeof(*nodes));
			if (parser.names.count)
				memcpy(names, parser.names.items,
				       parser.names.count * sizeof(*names));
			*expression = (struct tally_metric_expression){ nodes, parser.nodes.count,
									names, parser.names.count };
			*out = expression;
		} else {
			fail(&parser, -ENOMEM, 0, "out of memory");
		}
	}
	tally_vector_release(&parser.nodes);
	tally_vector_release(&parser.names);
	return parser.result;
}

size_t tally_metric_name_count(const struct tally_metric_expression *expression)
{
	return expression->name_count;
}

const char *tally_metric_name(const struct tally_metric_expression *expression, size_t index)
{
	return expression->names[index];
}

/* --- evaluation ----------------------------------------------------------- */

/* Bitwise operators take whole numbers, as in perf. */
static double bitwise(enum operation operation, double a, double b)
{
	if (!(fabs(a) < 9e18) || !(fabs(b) < 9e18))
		return NAN;
	long long x = (long long)a, y = (long long)b;
	switch (operation) {
	case OR:
		return (double)(x | y);
	case XOR:
		return (double)(x ^ y);
	case AND:
		return (double)(x & y);
	default:
		if (!y)
			return NAN;
		if (y == -1) /* the smallest number % −1 overflows */
			return 0;
		return (double)(x % y);
	}
}

static double binary(enum operation operation, double a, double b)
{
	if (isnan(a) || isnan(b))
		return NAN;
	switch (operation) {
	case LESS:
		return a < b;
	case GREATER:
		return a > b;
	case ADD:
		return a + b;
	case SUBTRACT:
		return a - b;
	case MULTIPLY:
		return a * b;
	case DIVIDE:
		return b == 0 ? NAN : a / b;
	case MINIMUM:
		return a < b ? a : b;
	case MAXIMUM:
		return a > b ? a : b;
	case RATIO:
		return b == 0 ? 0 : a / b;
	default:
		return bitwise(operation, a, b);
	}
}

static double value_of(const struct node *node, const double *done,
		       const struct tally_metric_name_value *values,
		       const struct tally_metric_machine *machine)
{
	switch (node->operation) {
	case NUMBER:
		return node->number;
	case NAME:
		return values[node->a].value;
	case CONSTANT:
		return *(const double *)((const char *)machine + constants[node->a].offset);
	case CPUID:
		return tally_metric_cpu_matches(node->text, machine->cpuid);
	case HAS_EVENT:
		return values[node->a].source_count > 0;
	case SOURCE_COUNT:
		return values[node->a].source_count;
	case NEGATE:
		return -done[node->a];
	case NOT:
		return isnan(done[node->a]) ? NAN : done[node->a] == 0;
	case IF:
		if (isnan(done[node->b]))
			return NAN;
		return done[node->b] != 0 ? done[node->a] : done[node->c];
	default:
		return binary(node->operation, done[node->a], done[node->b]);
	}
}

double tally_metric_evaluate(const struct tally_metric_expression *expression,
			     const struct tally_metric_name_value *values,
			     const struct tally_metric_machine *machine)
{
	double done[TALLY_METRIC_NODES_MAX];
	for (size_t i = 0; i < expression->count; i++) {
		done[i] = value_of(&expression->nodes[i], done, values, machine);
		if (isinf(done[i]))
			done[i] = NAN;
	}
	return done[expression->count - 1];
}
