/* Words, numbers and times of a scenario's lines, and the memory for its strings. */
#include "sim/scenario_parser.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scenario_text {
	struct scenario_text *next;
	char bytes[];
};

int scenario_fail(struct scenario_parser *parser, const char *format, ...)
{
	va_list args;
	parser->error->place = (struct scenario_place){ parser->line, parser->word.column };
	va_start(args, format);
	vsnprintf(parser->error->message, sizeof(parser->error->message), format, args);
	va_end(args);
	return -EINVAL;
}

static int shown(const struct scenario_word *word)
{
	if (word->length < 60)
		return (int)word->length;
	return 60;
}

int scenario_expected(struct scenario_parser *parser, const char *what)
{
	const struct scenario_word *word = &parser->word;
	if (word->is_unclosed)
		return scenario_fail(parser, "the quotation mark has no other on this line");
	if (!word->length && !word->is_quoted)
		return scenario_fail(parser, "expected %s, and the line ends", what);
	return scenario_fail(parser, "expected %s, not '%.*s'", what, shown(word), word->start);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void take_quoted(struct scenario_parser *parser)
{
	struct scenario_word *word = &parser->word;
	word->start = ++parser->at;
	word->is_quoted = true;
	while (parser->at < parser->line_end && *parser->at != '"')
		parser->at++;
	word->length = (unsigned)(parser->at - word->start);
	word->is_unclosed = parser->at == parser->line_end;
	parser->at += !word->is_unclosed;
}

void scenario_next(struct scenario_parser *parser)
{
	struct scenario_word *word = &parser->word;
	while (parser->at < parser->line_end && (is_blank(*parser->at) || *parser->at == ','))
		parser->at++;
	*word = (struct scenario_word){ .start = parser->at,
					.column = (unsigned)(parser->at - parser->line_start) + 1 };
	if (parser->at == parser->line_end || *parser->at == '#') {
		parser->at = parser->line_end;
		return;
	}
	if (*parser->at == '"') {
		take_quoted(parser);
		return;
	}
	while (parser->at < parser->line_end && !is_blank(*parser->at))
		parser->at++;
	/* Commas and colons at the end of a word are only for readability. */
	const char *end = parser->at;
	while (end > word->start + 1 && (end[-1] == ',' || end[-1] == ':'))
		end--;
	word->length = (unsigned)(end - word->start);
}

bool scenario_is(const struct scenario_parser *parser, const char *text)
{
	const struct scenario_word *word = &parser->word;
	return !word->is_quoted && word->length == strlen(text) &&
	       !memcmp(word->start, text, word->length);
}

bool scenario_skip(struct scenario_parser *parser, const char *text)
{
	bool found = scenario_is(parser, text);
	if (found)
		scenario_next(parser);
	return found;
}

int scenario_need(struct scenario_parser *parser, const char *text)
{
	char quoted[80];
	if (scenario_skip(parser, text))
		return 0;
	snprintf(quoted, sizeof(quoted), "'%s'", text);
	return scenario_expected(parser, quoted);
}

int scenario_done(struct scenario_parser *parser)
{
	if (parser->word.length || parser->word.is_quoted)
		return scenario_expected(parser, "the end of the line");
	return 0;
}

static char *keep(struct scenario_parser *parser, const char *text, size_t length)
{
	struct scenario_text *kept = malloc(sizeof(*kept) + length + 1);
	if (!kept)
		return NULL;
	memcpy(kept->bytes, text, length);
	kept->bytes[length] = 0;
	kept->next = parser->scenario->texts;
	parser->scenario->texts = kept;
	return kept->bytes;
}

static int keep_word(struct scenario_parser *parser, const char **out)
{
	*out = keep(parser, parser->word.start, parser->word.length);
	if (!*out)
		return -ENOMEM;
	scenario_next(parser);
	return 0;
}

int scenario_name(struct scenario_parser *parser, const char *what, const char **name)
{
	const struct scenario_word *word = &parser->word;
	if (!word->length || word->is_quoted)
		return scenario_expected(parser, what);
	for (unsigned i = 0; i < word->length; i++) {
		unsigned char c = (unsigned char)word->start[i];
		if (c <= ' ' || c == 127 || c == '"' || c == '#' || c == ';')
			return scenario_expected(parser, what);
	}
	return keep_word(parser, name);
}

int scenario_text(struct scenario_parser *parser, const char *what, const char **text)
{
	const struct scenario_word *word = &parser->word;
	if (!word->is_quoted || word->is_unclosed)
		return scenario_expected(parser, what);
	if (memchr(word->start, 0, word->length))
		return scenario_fail(parser, "a text can't hold a byte 0");
	return keep_word(parser, text);
}

/* --- numbers -------------------------------------------------------------- */

struct number {
	uint64_t value;
	unsigned fraction; /* in thousandths */
	const char *rest;  /* the part of the word behind the digits */
	unsigned rest_length;
};

static bool digit_of(char c, unsigned base, unsigned *digit)
{
	*digit = 16;
	if (c >= '0' && c <= '9')
		*digit = (unsigned)(c - '0');
	else if (c >= 'a' && c <= 'f')
		*digit = (unsigned)(c - 'a' + 10);
	return *digit < base;
}

/* Reads a number.  Returns false if the word doesn't begin with a digit, or if the number exceeds
 * 64 bits. */
static bool read_number(const struct scenario_word *word, struct number *number)
{
	const char *at = word->start, *end = at + word->length;
	unsigned base = 10, digit, weight = 100;
	*number = (struct number){ 0 };
	if (word->is_quoted)
		return false;
	if (end - at > 2 && at[0] == '0' && at[1] == 'x') {
		base = 16;
		at += 2;
	}
	const char *first = at;
	for (; at < end && (digit_of(*at, base, &digit) || *at == '_'); at++)
		if (*at != '_' && (__builtin_mul_overflow(number->value, base, &number->value) ||
				   __builtin_add_overflow(number->value, digit, &number->value)))
			return false;
	if (at == first || *first == '_')
		return false;
	if (base == 10 && at + 1 < end && *at == '.' && digit_of(at[1], 10, &digit))
		for (at++; at < end && digit_of(*at, 10, &digit); at++, weight /= 10)
			number->fraction += digit * weight;
	number->rest = at;
	number->rest_length = (unsigned)(end - at);
	return true;
}

/* Computes value.fraction × factor.  Returns false if it exceeds 64 bits. */
static bool scale(const struct number *number, uint64_t factor, uint64_t *out)
{
	return !__builtin_mul_overflow(number->value, factor, out) &&
	       !__builtin_add_overflow(*out, factor / 1000 * number->fraction, out);
}

int scenario_number(struct scenario_parser *parser, const char *what, uint64_t minimum,
		    uint64_t maximum, uint64_t *out)
{
	static const struct { char letter; uint64_t factor; } units[] = {
		{ 'K', 1000 }, { 'M', 1000000 }, { 'G', 1000000000 },
	};
	struct number number;
	uint64_t factor = 0;
	if (!read_number(&parser->word, &number))
		return scenario_expected(parser, what);
	if (!number.rest_length)
		factor = number.fraction ? 0 : 1;
	for (unsigned i = 0; i < 3; i++)
		if (number.rest_length == 1 && *number.rest == units[i].letter)
			factor = units[i].factor;
	if (!factor)
		return scenario_expected(parser, what);
	if (!scale(&number, factor, out) || *out < minimum || *out > maximum)
		return scenario_fail(parser, "%s is from %llu to %llu", what,
				     (unsigned long long)minimum, (unsigned long long)maximum);
	scenario_next(parser);
	return 0;
}

static uint64_t time_unit(const char *text, unsigned length)
{
	static const struct { const char *name; uint64_t ns; } units[] = {
		{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
	};
	for (unsigned i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (length == strlen(units[i].name) && !memcmp(text, units[i].name, length))
			return units[i].ns;
	return 0;
}

bool scenario_is_time(const struct scenario_parser *parser)
{
	struct number number;
	struct scenario_parser ahead = *parser;
	if (!read_number(&parser->word, &number))
		return false;
	if (number.rest_length)
		return time_unit(number.rest, number.rest_length) != 0;
	scenario_next(&ahead);
	return !ahead.word.is_quoted && time_unit(ahead.word.start, ahead.word.length) != 0;
}

int scenario_time(struct scenario_parser *parser, uint64_t *ns)
{
	static const char what[] = "a time like 5ms or 5 ms (ns, us, ms, s)";
	struct number number;
	if (!scenario_is_time(parser) || !read_number(&parser->word, &number))
		return scenario_expected(parser, what);
	unsigned column = parser->word.column;
	if (!number.rest_length)
		scenario_next(parser);
	uint64_t unit;
	if (number.rest_length)
		unit = time_unit(number.rest, number.rest_length);
	else
		unit = time_unit(parser->word.start, parser->word.length);
	if (!scale(&number, unit, ns) || !*ns || *ns > 3600000000000u) {
		parser->word.column = column;
		return scenario_fail(parser, "a time is more than nothing, and at most an hour");
	}
	scenario_next(parser);
	return 0;
}

/* --- lists and names ------------------------------------------------------ */

int scenario_grow(struct scenario_parser *parser, void **items, unsigned count, unsigned *capacity,
		  size_t size)
{
	if (count < *capacity)
		return 0;
	if (count >= SCENARIO_ITEMS_MAX)
		return scenario_fail(parser, "too many of them: %d is the limit",
				     SCENARIO_ITEMS_MAX);
	unsigned more = *capacity ? 2 * *capacity : 8;
	void *grown = realloc(*items, more * size);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*capacity = more;
	return 0;
}

int scenario_refer(struct scenario_parser *parser, unsigned program, unsigned step)
{
	if (!parser->word.length || parser->word.is_quoted)
		return scenario_expected(parser, "the name of a task");
	int code = scenario_grow(parser, (void **)&parser->references, parser->reference_count,
				 &parser->reference_capacity, sizeof(*parser->references));
	if (code)
		return code;
	parser->references[parser->reference_count++] =
		(struct scenario_reference){ parser->word, parser->line, program, step };
	scenario_next(parser);
	return 0;
}

int scenario_find_mix(struct scenario_parser *parser, int *out)
{
	const struct scenario *scenario = parser->scenario;
	for (*out = 0; *out < (int)scenario->mix_count; ++*out)
		if (scenario_is(parser, scenario->mixes[*out].name)) {
			scenario_next(parser);
			return 0;
		}
	if (scenario->mix_count)
		return scenario_expected(parser, "the name of a mix that stands above");
	return scenario_expected(parser, "the name of a mix ('mix NAME has …' is to stand above)");
}

int scenario_find_function(struct scenario_parser *parser, int *out)
{
	const struct scenario *scenario = parser->scenario;
	for (*out = 0; *out < (int)scenario->function_count; ++*out)
		if (scenario_is(parser, scenario->functions[*out].name)) {
			scenario_next(parser);
			return 0;
		}
	return scenario_expected(parser, "the name of a function that stands above");
}

void scenario_free(struct scenario *scenario)
{
	if (!scenario)
		return;
	for (unsigned i = 0; i < scenario->program_count; i++)
		free(scenario->programs[i].steps);
	while (scenario->texts) {
		struct scenario_text *text = scenario->texts;
		scenario->texts = text->next;
		free(text);
	}
	free(scenario->mixes);
	free(scenario->functions);
	free(scenario->programs);
	free(scenario->happenings);
	free(scenario->parts);
	free(scenario);
}
