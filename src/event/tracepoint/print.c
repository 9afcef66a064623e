/* Compiles a print format in three steps: parse, generate, fuse.  If one fails, the event's fields
 * are printed instead, by the second half of this file, with libtraceevent's number formats. */
#include "tracepoint/tracepoint.h"

#include "tracepoint/tracepoint_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct tally_print {
	const struct tally_tracepoint *tracepoint;
	enum tally_print_means means;
	struct tally_print_program program;
	struct tally_arena arena; /* owns the program */
};

/* The parse tree is not needed afterwards, except the tables and names that the program points
 * to. */
static int compile(struct tally_print *print, struct tally_error *why)
{
	struct tally_print_source source;
	int error = tally_print_parse(print->tracepoint, &print->arena, &source, why);
	if (error == 0)
		error = tally_print_generate(print->tracepoint, &source, &print->arena,
					     &print->program, why);
	if (error == 0 && tally_print_fuse(print->tracepoint, &print->program, &print->arena) < 0)
		error = tally_error_set(why, -ENOMEM, "no memory for a print format");
	return error;
}

int tally_print_compile(const struct tally_tracepoint *tracepoint, struct tally_print **out,
			struct tally_error *why)
{
	*out = NULL;
	struct tally_print *print = calloc(1, sizeof(*print));
	if (!print)
		return tally_error_set(why, -ENOMEM, "no memory for a print format");
	print->tracepoint = tracepoint;
	int error = compile(print, why);
	if (error == -ENOMEM) {
		tally_print_free(print);
		return error;
	}
	if (error < 0) {
		tally_arena_release(&print->arena);
		print->means = TALLY_PRINT_FIELDS;
	}
	*out = print;
	return 0;
}

void tally_print_free(struct tally_print *print)
{
	if (!print)
		return;
	tally_arena_release(&print->arena);
	free(print);
}

enum tally_print_means tally_print_means(const struct tally_print *print)
{
	return print->means;
}

void tally_print_event(const struct tally_print *print, const void *raw, size_t size,
		       const struct tally_print_names *names, struct tally_buffer *out)
{
	if (print->means == TALLY_PRINT_COMPILED) {
		tally_print_run(print->tracepoint, &print->program, raw, size, names, out);
	} else {
		tally_buffer_text(out, "[FAILED TO PARSE]");
		tally_print_fields(print->tracepoint, raw, size, out);
	}
}

static bool is_printable(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length && bytes[i]; i++)
		if (!isprint(bytes[i]) && !isspace(bytes[i]))
			return false;
	return true;
}

static void print_array_field(const struct tally_tracepoint *tracepoint,
			      const struct tally_tracepoint_field *field, const void *raw,
			      size_t size, struct tally_buffer *out)
{
	const void *found = raw;
	size_t length = 0;
	tally_tracepoint_bytes(tracepoint, field, raw, size, &found, &length);
	const uint8_t *bytes = found;
	if (field->is_string && is_printable(bytes, length)) {
		tally_buffer_append(out, bytes, strnlen((const char *)bytes, length));
		return;
	}
	tally_buffer_text(out, "ARRAY[");
	for (size_t i = 0; i < length; i++) {
		if (i > 0)
			tally_buffer_append(out, ", ", 2);
		tally_print_hex_bytes(out, bytes + i, 1, "");
	}
	tally_buffer_char(out, ']');
}

/* As libtraceevent prints them: longs, which often hold addresses, in hexadecimal unless they are
 * signed. */
static void print_number_field(const struct tally_tracepoint *tracepoint,
			       const struct tally_tracepoint_field *field, const void *raw,
			       size_t size, struct tally_buffer *out)
{
	uint64_t value = 0;
	tally_tracepoint_u64(tracepoint, field, raw, size, &value);
	bool is_int = field->size_bytes == 4;
	if (field->is_pointer || (field->is_long && (!field->is_signed || is_int))) {
		tally_print_hexadecimal(out, value);
		return;
	}
	static const int8_t LENGTHS[] = { [1] = -2, [2] = -1, [4] = 0 };
	bool has_length = field->size_bytes == 1 || field->size_bytes == 2 || is_int;
	struct tally_print_spec spec = {
		.conversion = field->is_signed ? 'd' : 'u',
		.length = 2,
		.precision = -1,
	};
	if (has_length)
		spec.length = LENGTHS[field->size_bytes];
	if (field->is_signed && field->size_bytes == 2)
		spec.width = 2;
	tally_print_number(out, &spec, 0, value);
}

void tally_print_field(const struct tally_tracepoint *tracepoint,
		       const struct tally_tracepoint_field *field, const void *raw, size_t size,
		       struct tally_buffer *out)
{
	if (field->is_array)
		print_array_field(tracepoint, field, raw, size, out);
	else
		print_number_field(tracepoint, field, raw, size, out);
}

void tally_print_fields(const struct tally_tracepoint *tracepoint, const void *raw, size_t size,
			struct tally_buffer *out)
{
	size_t start = out->length;
	for (size_t i = tracepoint->common_count;
	     i < tracepoint->field_count && out->length - start <= TALLY_PRINT_TEXT_MAX; i++) {
		tally_buffer_char(out, ' ');
		tally_buffer_text(out, tracepoint->fields[i].name);
		tally_buffer_char(out, '=');
		tally_print_field(tracepoint, &tracepoint->fields[i], raw, size, out);
	}
	tally_print_cut(out, start);
}

void tally_print_cut(struct tally_buffer *out, size_t start)
{
	static const char too_big[] = "[LINE TOO BIG]";
	if (out->length - start <= TALLY_PRINT_TEXT_MAX)
		return;
	out->length = start + TALLY_PRINT_TEXT_MAX - strlen(too_big);
	tally_buffer_text(out, too_big);
}
