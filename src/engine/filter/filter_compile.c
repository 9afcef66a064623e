/* Compiles text into a program, by recursive descent of bounded depth.  The text is parsed twice:
 * to count, then to write. */
#include "filter/filter_internal.h"

/* Parses lists of CPUs: "0-3,7", "0-15:2/4" (2 of every 4), "all", and N for the last CPU. */

static bool is_decimal(char c)
{
	return c >= '0' && c <= '9';
}

static bool read_number(const char **at, const char *end, unsigned cpus, bool may_be_last,
			unsigned *number)
{
	const char *p = *at;
	if (may_be_last && p < end && *p == 'N') {
		*number = cpus - 1;
		*at = p + 1;
		return true;
	}
	unsigned value = 0;
	if (p == end || !is_decimal(*p))
		return false;
	for (; p < end && is_decimal(*p); p++) {
		if (value > 99999999)
			return false;
		value = value * 10 + (unsigned)(*p - '0');
	}
	*number = value;
	*at = p;
	return true;
}

static bool read_stride(const char **at, const char *end, unsigned *used, unsigned *group)
{
	const char *p = *at + 1;
	if (!read_number(&p, end, 0, false, used) || p == end || *p != '/')
		return false;
	p++;
	if (!read_number(&p, end, 0, false, group) || *group == 0 || *used > *group)
		return false;
	*at = p;
	return true;
}

static bool read_range(const char **at, const char *end, unsigned cpus, uint64_t *words)
{
	unsigned first, last, used = 1, group = 1;
	if (end - *at >= 3 && (*at)[0] == 'a' && (*at)[1] == 'l' && (*at)[2] == 'l') {
		first = 0;
		last = cpus - 1;
		*at += 3;
	} else {
		if (!read_number(at, end, cpus, true, &first))
			return false;
		last = first;
		if (*at < end && **at == '-') {
			++*at;
			if (!read_number(at, end, cpus, true, &last))
				return false;
		}
	}
	if (*at < end && **at == ':' && !read_stride(at, end, &used, &group))
		return false;
	if (first > last || last >= cpus)
		return false;
	for (unsigned cpu = first; words && cpu <= last; cpu++)
		if ((cpu - first) % group < used)
			words[cpu / 64] |= 1ull << cpu % 64;
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads "0-3,7" up to `end` into `words` (64 CPUs each; NULL: only checks).  Returns false, with
 * the place of the error in *bad, if it isn't a list or has a CPU beyond `cpus`. */
static bool filter_cpus(const char *text, const char *end, unsigned cpus, uint64_t *words,
			const char **bad)
{
	const char *at = text;
	bool some = false;
	while (at < end) {
		if (is_space(*at) || *at == ',') {
			at++;
			continue;
		}
		*bad = at;
		if (!read_range(&at, end, cpus, words))
			return false;
		*bad = at;
		if (at < end && !is_space(*at) && *at != ',')
			return false;
		some = true;
	}
	*bad = at;
	return some;
}

struct filter_compiler {
	const char *text, *at, *end;
	const struct tally_filter_fields *fields;
	struct tally_filter *program; /* NULL: only count */
	size_t data_start;            /* offset of the data in the program, in bytes */
	size_t count, data;           /* number of steps, and bytes of data, so far */
	unsigned depth;
	struct tally_filter_error error;
};

static const char *const reasons[] = {
	[TALLY_FILTER_GOOD] = "",
	[TALLY_FILTER_EMPTY] = "a predicate is missing here",
	[TALLY_FILTER_NO_FIELD] = "the event has no such field",
	[TALLY_FILTER_NO_OPERATOR] = "an operator is missing here: == != < <= > >= & ~",
	[TALLY_FILTER_BAD_OPERATOR] = "that operator is not for a field of this kind",
	[TALLY_FILTER_NO_VALUE] = "a number, or a string in quotes, is missing here",
	[TALLY_FILTER_NOT_A_NUMBER] = "the field is a number, not a string",
	[TALLY_FILTER_NOT_A_STRING] = "the field is a string: its value stands in quotes",
	[TALLY_FILTER_BAD_NUMBER] = "not a number that the field can be compared with",
	[TALLY_FILTER_TOO_LONG] = "too long",
	[TALLY_FILTER_NO_QUOTE] = "the closing quote is missing",
	[TALLY_FILTER_OPEN] = "a ( without its )",
	[TALLY_FILTER_CLOSE] = "a ) without its (",
	[TALLY_FILTER_TERMS] = "&& or || is missing here",
	[TALLY_FILTER_BAD_CPUS] = "not a list of this machine's CPUs",
	[TALLY_FILTER_TOO_DEEP] = "too many parentheses within each other",
};

static bool fail(struct filter_compiler *compiler, enum tally_filter_problem problem,
		 const char *where)
{
	compiler->error.problem = problem;
	compiler->error.position = (size_t)(where - compiler->text);
	compiler->error.reason = reasons[problem];
	return false;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip_space(struct filter_compiler *compiler)
{
	while (compiler->at < compiler->end &&
	       (*compiler->at == ' ' || (*compiler->at >= '\t' && *compiler->at <= '\r')))
		compiler->at++;
}

static bool take(struct filter_compiler *compiler, const char *word)
{
	const char *p = compiler->at;
	for (; *word; word++, p++)
		if (p >= compiler->end || *p != *word)
			return false;
	compiler->at = p;
	return true;
}

/* Returns the index of the added step. */
static size_t add_step(struct filter_compiler *compiler, const struct filter_step *step)
{
	if (compiler->program)
		compiler->program->steps[compiler->count] = *step;
	return compiler->count++;
}

/* Reserves bytes of data, and stores their offset from the program's start in the step.  Returns
 * NULL while counting. */
static void *add_data(struct filter_compiler *compiler, struct filter_step *step, size_t size)
{
	size_t at = compiler->data_start + compiler->data;
	compiler->data += (size + 7) & ~(size_t)7;
	step->data = (uint32_t)at;
	if (compiler->program)
		return (uint8_t *)compiler->program + at;
	return NULL;
}

static bool same_name(const char *name, const char *word, size_t length)
{
	size_t i = 0;
	for (; i < length; i++)
		if (name[i] != word[i]) /* a shorter name ends with NUL, which is in no word */
			return false;
	return name[i] == '\0';
}

static const struct tally_filter_field *find_field(const struct filter_compiler *compiler,
						   const char *word, size_t length,
						   enum filter_source *source)
{
	static const struct tally_filter_field cpu = { "cpu", 0, 4, true, TALLY_FILTER_NUMBER };
	static const struct tally_filter_field comm = { "comm", 0, 0, false, TALLY_FILTER_STRING };
	for (size_t i = 0; i < compiler->fields->count; i++) {
		const struct tally_filter_field *field = &compiler->fields->fields[i];
		if (!same_name(field->name, word, length))
			continue;
		*source = FILTER_IN_PLACE;
		if (field->kind == TALLY_FILTER_DYNAMIC_STRING ||
		    field->kind == TALLY_FILTER_CPUMASK)
			*source = FILTER_ELSEWHERE;
		return field;
	}
	if (same_name("cpu", word, length) || same_name("CPU", word, length)) {
		*source = FILTER_CPU;
		return &cpu;
	}
	if (same_name("comm", word, length) || same_name("COMM", word, length)) {
		*source = FILTER_COMM;
		return &comm;
	}
	return NULL;
}

static bool read_operation(struct filter_compiler *compiler, enum filter_operation *operation)
{
	static const struct {
		const char *text;
		enum filter_operation operation;
	} operations[] = {
		/* longer ones first */
		{ "==", FILTER_EQUAL },      { "!=", FILTER_UNEQUAL },
		{ "<=", FILTER_LESS_EQUAL }, { ">=", FILTER_GREATER_EQUAL },
		{ "<", FILTER_LESS },        { ">", FILTER_GREATER },
		{ "&", FILTER_AND },         { "~", FILTER_GLOB },
	};
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (take(compiler, operations[i].text)) {
			*operation = operations[i].operation;
			return true;
		}
	return fail(compiler, TALLY_FILTER_NO_OPERATOR, compiler->at);
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

/* Parses 12, -12, 012 or 0x12.  Returns false if it is no number or exceeds 64 bits. */
static bool parse_number(const char *p, const char *end, bool is_signed, uint64_t *value)
{
	bool negative = p < end && *p == '-';
	if (negative && !is_signed)
		return false;
	p += negative;
	unsigned base = 10;
	if (end - p > 1 && *p == '0') {
		base = 8;
		p++;
		if (end - p > 1 && (*p == 'x' || *p == 'X')) {
			base = 16;
			p++;
		}
	}
	if (p == end)
		return false;
	uint64_t number = 0;
	for (; p < end; p++) {
		unsigned digit = (unsigned)digit_value(*p);
		/* Divisions by constants only: 32-bit machines need a library for others. */
		uint64_t most = UINT64_MAX / 10;
		if (base == 16)
			most = UINT64_MAX / 16;
		else if (base == 8)
			most = UINT64_MAX / 8;
		if (digit >= base || number > most || number * base > UINT64_MAX - digit)
			return false;
		number = number * base + digit;
	}
	if (is_signed && number > (uint64_t)INT64_MAX + negative)
		return false;
	*value = negative ? 0 - number : number;
	return true;
}

/* Cuts the value to what the field can hold. */
static uint64_t cut_to_field(uint64_t value, unsigned size, bool is_signed)
{
	unsigned unused = 64 - 8 * size;
	value <<= unused;
	if (is_signed)
		return (uint64_t)((int64_t)value >> unused);
	return value >> unused;
}

static bool compile_number(struct filter_compiler *compiler, const struct tally_filter_field *field,
			   struct filter_step *step)
{
	const char *start = compiler->at;
	if (field->kind == TALLY_FILTER_STRING || field->kind == TALLY_FILTER_DYNAMIC_STRING)
		return fail(compiler, TALLY_FILTER_NOT_A_STRING, start);
	if (field->kind == TALLY_FILTER_OTHER || step->operation == FILTER_GLOB)
		return fail(compiler, TALLY_FILTER_BAD_OPERATOR, start);
	if (field->kind == TALLY_FILTER_CPUMASK)
		return fail(compiler, TALLY_FILTER_BAD_CPUS, start);
	compiler->at += *start == '-';
	while (compiler->at < compiler->end && is_word(*compiler->at) && *compiler->at != '_')
		compiler->at++;
	if (compiler->at - start > TALLY_FILTER_NUMBER_MAX)
		return fail(compiler, TALLY_FILTER_TOO_LONG, start);
	if (!parse_number(start, compiler->at, field->is_signed, &step->value))
		return fail(compiler, TALLY_FILTER_BAD_NUMBER, start);
	step->kind = FILTER_NUMBER;
	step->value = cut_to_field(step->value, field->size, field->is_signed);
	add_step(compiler, step);
	return true;
}

static bool compile_string(struct filter_compiler *compiler, const struct tally_filter_field *field,
			   struct filter_step *step)
{
	const char *start = compiler->at, quote = *start, *first = start + 1, *last = first;
	if (field->kind != TALLY_FILTER_STRING && field->kind != TALLY_FILTER_DYNAMIC_STRING)
		return fail(compiler, TALLY_FILTER_NOT_A_NUMBER, start);
	if (step->operation != FILTER_GLOB && step->operation != FILTER_EQUAL &&
	    step->operation != FILTER_UNEQUAL)
		return fail(compiler, TALLY_FILTER_BAD_OPERATOR, start);
	while (last < compiler->end && *last != quote)
		last++;
	if (last == compiler->end)
		return fail(compiler, TALLY_FILTER_NO_QUOTE, start);
	if (last - first > TALLY_FILTER_STRING_MAX)
		return fail(compiler, TALLY_FILTER_TOO_LONG, start);
	compiler->at = last + 1;

	static const struct filter_step invert = { .kind = FILTER_INVERT };
	bool inverted = step->operation == FILTER_GLOB && first < last && *first == '!';
	first += inverted;
	step->kind = FILTER_TEXT;
	step->length = (uint32_t)(last - first);
	char *characters = add_data(compiler, step, step->length);
	if (characters)
		__builtin_memcpy(characters, first, step->length);
	add_step(compiler, step);
	if (inverted)
		add_step(compiler, &invert);
	return true;
}

static bool compile_cpus(struct filter_compiler *compiler, const struct tally_filter_field *field,
			 struct filter_step *step)
{
	const char *first = compiler->at, *last = first, *bad;
	if ((field->kind != TALLY_FILTER_NUMBER && field->kind != TALLY_FILTER_CPUMASK) ||
	    (step->operation != FILTER_EQUAL && step->operation != FILTER_UNEQUAL &&
	     step->operation != FILTER_AND))
		return fail(compiler, TALLY_FILTER_BAD_OPERATOR, first);
	while (last < compiler->end && *last != '}')
		last++;
	if (last == compiler->end)
		return fail(compiler, TALLY_FILTER_BAD_CPUS, last);
	step->kind = FILTER_CPU_NUMBER;
	if (field->kind == TALLY_FILTER_CPUMASK)
		step->kind = FILTER_CPU_MASK;
	step->value = compiler->fields->cpus;
	step->length = (compiler->fields->cpus + 63) / 64;
	uint64_t *words = add_data(compiler, step, 8 * (size_t)step->length);
	for (uint32_t i = 0; words && i < step->length; i++)
		words[i] = 0;
	if (!filter_cpus(first, last, compiler->fields->cpus, words, &bad))
		return fail(compiler, TALLY_FILTER_BAD_CPUS, bad);
	compiler->at = last + 1;
	add_step(compiler, step);
	return true;
}

static bool compile_predicate(struct filter_compiler *compiler)
{
	struct filter_step step = { .kind = FILTER_NUMBER };
	enum filter_source source = FILTER_IN_PLACE;
	enum filter_operation operation = FILTER_EQUAL;
	const char *word = compiler->at;
	while (compiler->at < compiler->end && is_word(*compiler->at))
		compiler->at++;
	if (word == compiler->at)
		return fail(compiler, TALLY_FILTER_EMPTY, word);
	const struct tally_filter_field *field = find_field(compiler, word,
							    (size_t)(compiler->at - word), &source);
	if (!field)
		return fail(compiler, TALLY_FILTER_NO_FIELD, word);
	/* The kernel's suffix for strings behind a user pointer.  It changes nothing here, since
	 * the bytes are in the record. */
	if (field->kind == TALLY_FILTER_STRING || field->kind == TALLY_FILTER_DYNAMIC_STRING)
		take(compiler, ".ustring");
	skip_space(compiler);
	if (!read_operation(compiler, &operation))
		return false;
	skip_space(compiler);
	step.operation = (uint8_t)operation;
	step.source = (uint8_t)source;
	step.is_signed = field->is_signed;
	step.offset = field->offset;
	step.size = field->size;
	if (compiler->at == compiler->end)
		return fail(compiler, TALLY_FILTER_NO_VALUE, compiler->at);
	if (take(compiler, "CPUS{"))
		return compile_cpus(compiler, field, &step);
	if (*compiler->at == '"' || *compiler->at == '\'')
		return compile_string(compiler, field, &step);
	if (is_digit(*compiler->at) || *compiler->at == '-')
		return compile_number(compiler, field, &step);
	return fail(compiler, TALLY_FILTER_NO_VALUE, compiler->at);
}

static bool compile_any(struct filter_compiler *compiler);

/* Compiles a predicate or parenthesis, with any number of ! before it. */
static bool compile_term(struct filter_compiler *compiler)
{
	static const struct filter_step invert = { .kind = FILTER_INVERT };
	bool inverted = false;
	for (skip_space(compiler); compiler->at < compiler->end && *compiler->at == '!';
	     skip_space(compiler)) {
		inverted = !inverted;
		compiler->at++;
	}
	const char *open = compiler->at;
	if (open < compiler->end && *open == ')')
		return fail(compiler, compiler->depth ? TALLY_FILTER_EMPTY : TALLY_FILTER_CLOSE,
			    open);
	if (take(compiler, "(")) {
		if (++compiler->depth > TALLY_FILTER_DEPTH_MAX)
			return fail(compiler, TALLY_FILTER_TOO_DEEP, open);
		if (!compile_any(compiler))
			return false;
		skip_space(compiler);
		if (compiler->at == compiler->end)
			return fail(compiler, TALLY_FILTER_OPEN, open);
		if (!take(compiler, ")"))
			return fail(compiler, TALLY_FILTER_TERMS, compiler->at);
		compiler->depth--;
	} else if (!compile_predicate(compiler)) {
		return false;
	}
	if (inverted)
		add_step(compiler, &invert);
	return true;
}

/* Compiles operand (word operand)*. Each operand after the first is skipped if the truth is
 * settled. */
static bool compile_chain(struct filter_compiler *compiler, const char *word,
			  enum filter_step_kind skip,
			  bool (*operand)(struct filter_compiler *compiler))
{
	if (!operand(compiler))
		return false;
	for (skip_space(compiler); take(compiler, word); skip_space(compiler)) {
		const struct filter_step step = { .kind = (uint8_t)skip };
		size_t at = add_step(compiler, &step);
		if (!operand(compiler))
			return false;
		if (compiler->program)
			compiler->program->steps[at].target = (uint32_t)compiler->count;
	}
	return true;
}

static bool compile_all(struct filter_compiler *compiler)
{
	return compile_chain(compiler, "&&", FILTER_SKIP_FALSE, compile_term);
}

static bool compile_any(struct filter_compiler *compiler)
{
	return compile_chain(compiler, "||", FILTER_SKIP_TRUE, compile_all);
}

static bool compile_text(struct filter_compiler *compiler)
{
	if (compiler->end - compiler->text > TALLY_FILTER_TEXT_MAX)
		return fail(compiler, TALLY_FILTER_TOO_LONG,
			    compiler->text + TALLY_FILTER_TEXT_MAX);
	compiler->at = compiler->text;
	compiler->count = compiler->data = 0;
	compiler->depth = 0;
	if (!compile_any(compiler))
		return false;
	skip_space(compiler);
	if (compiler->at < compiler->end)
		return fail(compiler,
			    *compiler->at == ')' ? TALLY_FILTER_CLOSE : TALLY_FILTER_TERMS,
			    compiler->at);
	return true;
}

long tally_filter_compile(const char *text, const struct tally_filter_fields *fields, void *memory,
			  size_t size, struct tally_filter_error *error)
{
	struct filter_compiler compiler = { .text = text, .end = text, .fields = fields };
	while (*compiler.end)
		compiler.end++;
	bool good = compile_text(&compiler);
	if (error)
		*error = compiler.error;
	if (!good)
		return -22;
	compiler.data_start = sizeof(struct tally_filter) +
			      compiler.count * sizeof(struct filter_step);
	size_t needed = compiler.data_start + compiler.data;
	if (memory && size >= needed) {
		compiler.program = memory;
		compile_text(&compiler);
		compiler.program->count = (uint32_t)compiler.count;
	}
	return (long)needed;
}
