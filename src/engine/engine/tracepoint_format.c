/* The text of a tracepoint's format file (Documentation/trace/events.rst, Event formats), as trace
 * tools parse it.
 *
 * The print format is the text of TALLY_PRINT(…), with two changes: adjacent string literals become
 * one, and names of constants become their values.  The rest of that text is already what trace
 * tools expect: C expressions with REC->, __print_symbolic() and the like. */
#include "engine/tracepoint_state.h"

struct format_writer {
	char *text;
	size_t size, length; /* length goes on past size, as snprintf()'s return value does */
};

static void put_char(struct format_writer *writer, char c)
{
	if (writer->length + 1 < writer->size)
		writer->text[writer->length] = c;
	writer->length++;
}

static void put(struct format_writer *writer, const char *text)
{
	while (*text)
		put_char(writer, *text++);
}

static void put_unsigned(struct format_writer *writer, uint64_t value)
{
	char digits[20];
	unsigned count = 0;
	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (count)
		put_char(writer, digits[--count]);
}

static void put_signed(struct format_writer *writer, int64_t value)
{
	uint64_t magnitude = (uint64_t)value;
	if (value < 0) {
		put_char(writer, '-');
		magnitude = 0 - magnitude;
	}
	put_unsigned(writer, magnitude);
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* --- fields --------------------------------------------------------------- */

bool trace_field_is_text(const struct tally_trace_field *field)
{
	for (const char *at = field->type; *at; at++)
		if (at[0] == 'c' && at[1] == 'h' && at[2] == 'a' && at[3] == 'r')
			return field->element_size == 1;
	return false;
}

static void put_place(struct format_writer *writer, uint32_t offset, uint32_t size, bool is_signed)
{
	put(writer, ";\toffset:");
	put_unsigned(writer, offset);
	put(writer, ";\tsize:");
	put_unsigned(writer, size);
	put(writer, ";\tsigned:");
	put_char(writer, is_signed ? '1' : '0');
	put(writer, ";\n");
}

static void put_field(struct format_writer *writer, const struct tally_trace_field *field)
{
	put(writer, field->kind == TALLY_TRACE_DYNAMIC ? "\tfield:__data_loc " : "\tfield:");
	put(writer, field->type);
	put(writer, field->kind == TALLY_TRACE_DYNAMIC ? "[] " : " ");
	put(writer, field->name);
	if (field->kind == TALLY_TRACE_ARRAY) {
		put_char(writer, '[');
		put_unsigned(writer, field->size / field->element_size);
		put_char(writer, ']');
	}
	put_place(writer, field->offset, field->size, field->is_signed);
}

/* --- the print format ----------------------------------------------------- */

/* Returns the end of the literal that begins at `at`, behind its closing quote; or NULL if it has
 * none. */
static const char *literal_end(const char *at, const char *end)
{
	char quote = *at++;
	for (; at < end && *at != quote; at++)
		if (*at == '\\' && at + 1 < end)
			at++;
	if (at < end)
		return at + 1;
	return NULL;
}

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && is_space(*at))
		at++;
	return at;
}

static bool same_name(const char *a, size_t a_length, const char *b, size_t b_length)
{
	if (a_length != b_length)
		return false;
	for (size_t i = 0; i < a_length; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* Finds the value of a constant.  The names are in "TALLY_CONSTANTS(A, B)", the values in
 * `constants` from index 1 on. */
static bool find_constant(const struct tally_trace_class *of, const char *name, size_t length,
			  int64_t *value)
{
	const char *at = of->constant_names;
	while (*at && *at != '(')
		at++;
	for (unsigned number = 1; *at && *at != ')'; number++) {
		const char *start = ++at;
		while (*start && is_space(*start))
			start++;
		at = start;
		while (is_name(*at))
			at++;
		if (same_name(start, (size_t)(at - start), name, length)) {
			*value = of->constants[number];
			return true;
		}
		while (*at && *at != ',' && *at != ')')
			at++;
	}
	return false;
}

/* Writes adjacent literals from `at` on as one, as the compiler sees them.  Returns the end behind
 * them, or NULL. */
static const char *put_literals(struct format_writer *writer, const char *at, const char *end)
{
	put_char(writer, '"');
	for (;;) {
		const char *close = literal_end(at, end);
		if (!close)
			return NULL;
		for (at++; at < close - 1; at++)
			put_char(writer, *at);
		at = skip_space(close, end);
		if (at == end || *at != '"') {
			put_char(writer, '"');
			return close;
		}
	}
}

static const char *put_name(struct format_writer *writer, const struct tally_trace_class *of,
			    const char *at, const char *end, bool of_record)
{
	const char *name = at;
	int64_t value;
	while (at < end && is_name(*at))
		at++;
	if (!of_record && find_constant(of, name, (size_t)(at - name), &value)) {
		put_signed(writer, value);
		return at;
	}
	while (name < at)
		put_char(writer, *name++);
	return at;
}

static bool put_print(struct format_writer *writer, const struct tally_trace_class *of)
{
	const char *at = of->print, *end = at;
	while (*end)
		end++;
	while (*at && *at != '(')
		at++;
	while (end > at && end[-1] != ')')
		end--;
	if (at + 1 >= end)
		return false;
	end--;
	at = skip_space(at + 1, end);
	if (at == end || *at != '"') /* a macro in place of the text: tools could not read it */
		return false;
	at = put_literals(writer, at, end);
	if (!at)
		return false;
	const char *next = skip_space(at, end);
	/* a macro behind the text, as in "x" PRIu64: tools could not read it either */
	if (next < end && *next != ',')
		return false;
	char before = ' ';
	while (at < end) {
		char first = *at;
		if (first == '"') {
			at = put_literals(writer, at, end);
			if (!at)
				return false;
		} else if (first == '\'') {
			const char *close = literal_end(at, end);
			while (close && at < close)
				put_char(writer, *at++);
			if (!close)
				return false;
		} else if (is_name(first)) {
			at = put_name(writer, of, at, end, before == '>' || before == '.');
		} else {
			put_char(writer, first);
			at++;
		}
		if (!is_space(first))
			before = first;
	}
	return true;
}

long tally_trace_format(const struct tally_trace_event *event, char *text, size_t size)
{
	struct format_writer writer = { text, size, 0 };
	put(&writer, "name: ");
	put(&writer, event->name);
	put(&writer, "\nID: ");
	put_unsigned(&writer, event->id);
	put(&writer, "\nformat:\n\tfield:unsigned short common_type");
	put_place(&writer, 0, 2, false);
	put(&writer, "\tfield:unsigned char common_flags");
	put_place(&writer, 2, 1, false);
	put(&writer, "\tfield:unsigned char common_preempt_count");
	put_place(&writer, 3, 1, false);
	put(&writer, "\tfield:int common_pid");
	put_place(&writer, 4, 4, true);
	put_char(&writer, '\n');
	for (unsigned i = 0; i < event->of->field_count; i++)
		put_field(&writer, &event->of->fields[i]);
	put(&writer, "\nprint fmt: ");
	if (!put_print(&writer, event->of))
		return -ENGINE_EINVAL;
	put_char(&writer, '\n');
	if (writer.length < size)
		text[writer.length] = '\0';
	else if (size)
		text[size - 1] = '\0';
	return (long)writer.length;
}
