/* Runs a compiled print format over an event's bytes.  Allocates only for the output; ~40 ns per
 * event (libtraceevent: ~650). */
#include "base/digits.h"
#include "base/extremes.h"
#include "tracepoint/tracepoint_internal.h"

#include <string.h>

struct run {
	const struct tally_tracepoint *tracepoint;
	const uint8_t *raw;
	size_t size;
	const struct tally_print_names *names;
	struct tally_buffer *out;
	int64_t star; /* width or precision for the current conversion */
};

/* A field's data in the event. */
struct span {
	size_t offset;
	size_t length;    /* by the field; 0 when that goes beyond the event's end */
	size_t available; /* bytes up to the event's end */
};

static uint64_t load(const struct run *run, size_t offset, size_t bytes)
{
	uint64_t value = 0;
	tally_tracepoint_number(run->tracepoint, run->raw, run->size, offset, bytes, &value);
	return value;
}

static struct span span_of(const struct run *run, const struct tally_tracepoint_field *field)
{
	struct span span = { .offset = field->offset, .length = field->size_bytes };
	if (field->place != TALLY_FIELD_FIXED) {
		if (field->size_bytes > run->size || field->offset > run->size - field->size_bytes)
			return (struct span){ 0 };
		uint64_t word = load(run, field->offset, field->size_bytes);
		span.offset = word & 0xffff;
		if (field->place == TALLY_FIELD_REL_LOC)
			span.offset += (size_t)field->offset + field->size_bytes;
		span.length = (word >> 16) & 0xffff;
	}
	if (span.offset > run->size)
		return (struct span){ 0 };
	span.available = run->size - span.offset;
	if (field->size_bytes == 0 || (field->place != TALLY_FIELD_FIXED && field->size_bytes == 2))
		span.length = span.available;
	if (span.length <= span.available)
		return span;
	span.length = 0;
	if (field->place == TALLY_FIELD_FIXED)
		span.length = span.available;
	return span;
}

static uint64_t load_element(const struct run *run,
			     const struct tally_print_instruction *instruction, uint64_t index)
{
	struct span span = span_of(run, instruction->field);
	if (index >= span.available / instruction->bytes)
		return 0;
	return load(run, span.offset + index * instruction->bytes, instruction->bytes);
}

static void print_dynamic_string(const struct run *run,
				 const struct tally_print_instruction *instruction)
{
	struct span span = span_of(run, instruction->field);
	if (span.length == 0)
		return;
	const char *text = (const char *)run->raw + span.offset;
	tally_print_text(run->out, instruction->spec, run->star, text,
			 strnlen(text, span.available));
}

static void print_fixed_string(const struct run *run,
			       const struct tally_print_instruction *instruction)
{
	const struct tally_tracepoint_field *field = instruction->field;
	if (field->offset > run->size)
		return;
	size_t length = run->size - field->offset;
	if (field->size_bytes != 0 && field->size_bytes < length)
		length = field->size_bytes;
	const char *text = (const char *)run->raw + field->offset;
	tally_print_text(run->out, instruction->spec, run->star, text, strnlen(text, length));
}

static void print_hex_number(struct tally_buffer *out, uint64_t value)
{
	static const struct tally_print_spec spec = {
		.conversion = 'x', .length = 2, .plain = true, .precision = -1
	};
	tally_print_number(out, &spec, 0, value);
}

static void print_pointed_string(const struct run *run, uint64_t address)
{
	const struct tally_print_names *names = run->names;
	const char *text = NULL;
	if (names && names->string)
		text = names->string(names->context, address);
	if (text)
		tally_buffer_text(run->out, text);
	else
		print_hex_number(run->out, address);
}

static void print_function(const struct run *run, const struct tally_print_spec *spec,
			   uint64_t address)
{
	const struct tally_print_names *names = run->names;
	uint64_t start = address;
	const char *name = NULL;
	if (names && names->function)
		name = names->function(names->context, address, &start);
	if (!name) {
		tally_print_hexadecimal(run->out, address);
		return;
	}
	tally_buffer_text(run->out, name);
	if (spec->variant[0] == 'F' || spec->variant[0] == 'S') {
		tally_buffer_char(run->out, '+');
		tally_print_hexadecimal(run->out, address - start);
	}
}

/* As in libtraceevent: an entry whose value is no number means "nothing set", and ends the list. */
static void print_flags(const struct run *run, const struct tally_print_instruction *instruction,
			uint64_t value)
{
	const struct tally_print_words *words = instruction->words;
	bool any = false;
	for (size_t i = 0; i < words->count; i++) {
		const struct tally_print_word *word = &words->items[i];
		if (value == 0) {
			if (word->value >= 0)
				continue;
			tally_print_text(run->out, instruction->spec, run->star, word->text,
					 word->length);
			break;
		}
		if (word->value > 0 && (value & (uint64_t)word->value) == (uint64_t)word->value) {
			if (any && words->delimiter)
				tally_buffer_text(run->out, words->delimiter);
			tally_print_text(run->out, instruction->spec, run->star, word->text,
					 word->length);
			any = true;
			value &= ~(uint64_t)word->value;
		}
	}
	if (value == 0)
		return;
	if (any && words->delimiter)
		tally_buffer_text(run->out, words->delimiter);
	tally_print_hexadecimal(run->out, value);
}

static void print_symbol(const struct run *run, const struct tally_print_instruction *instruction,
			 uint64_t value)
{
	const struct tally_print_words *words = instruction->words;
	for (size_t i = 0; i < words->count; i++)
		if ((uint64_t)words->items[i].value == value) {
			tally_print_text(run->out, instruction->spec, run->star,
					 words->items[i].text, words->items[i].length);
			return;
		}
	tally_print_hexadecimal(run->out, value);
}

static void print_hex(const struct run *run, const struct tally_print_instruction *instruction,
		      uint64_t count)
{
	struct span span = span_of(run, instruction->field);
	size_t length = tally_min_u64((uint32_t)count, span.available);
	tally_print_hex_bytes(run->out, run->raw + span.offset, length,
			      instruction->opcode == TALLY_PRINT_HEX ? " " : "");
}

static void print_array(const struct run *run, const struct tally_print_instruction *instruction,
			uint64_t count, uint64_t bytes)
{
	struct span span = span_of(run, instruction->field);
	if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
		tally_buffer_text(run->out, "BAD SIZE");
		return;
	}
	count = (uint32_t)count;
	if (count > span.available / bytes)
		count = span.available / bytes;
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			tally_buffer_char(run->out, ' ');
		tally_print_decimal(run->out, load(run, span.offset + i * bytes, bytes));
	}
}

/* Prints %*ph. */
static void print_buffer(const struct run *run, const struct tally_print_instruction *instruction)
{
	const struct tally_print_spec *spec = instruction->spec;
	struct span span = span_of(run, instruction->field);
	int64_t wanted = spec->width ? spec->width : 1;
	if (spec->star_width)
		wanted = tally_max_i64(run->star, 0);
	const char *separator = " ";
	switch (spec->variant[1]) {
	case 'C':
		separator = ":";
		break;
	case 'D':
		separator = "-";
		break;
	case 'N':
		separator = "";
		break;
	}
	tally_print_hex_bytes(run->out, run->raw + span.offset,
			      tally_min_u64((uint64_t)wanted, span.length), separator);
}

static void print_bits(const struct run *run, const struct tally_print_instruction *instruction)
{
	struct span span = span_of(run, instruction->field);
	const uint8_t *bits = run->raw + span.offset;
	struct tally_buffer text = { 0 };
	const struct tally_print_spec *spec = instruction->spec;
	if (spec->conversion == 'p' && spec->star_width && run->star >= 0 &&
	    (uint64_t)run->star < 8 * span.length)
		span.length = (size_t)(run->star + 7) / 8;
	struct tally_buffer *out = &text;
	if (spec->plain || spec->conversion == 'p')
		out = run->out;
	if (instruction->opcode == TALLY_PRINT_BITMASK)
		tally_print_bitmask(out, bits, span.length, run->tracepoint->swap);
	else
		tally_print_cpulist(out, bits, span.length, run->tracepoint->swap);
	if (out == &text)
		tally_print_text(run->out, spec, run->star, tally_buffer_string(&text),
				 text.length);
	run->out->failed |= text.failed;
	tally_buffer_release(&text);
}

static void print_address(const struct run *run, const struct tally_print_instruction *instruction)
{
	struct span span = span_of(run, instruction->field);
	tally_print_address(run->out, instruction->spec->variant, run->raw + span.offset,
			    span.length, run->tracepoint->swap);
}

/* Runs an output instruction that takes nothing from the stack. */
static void write_plain(const struct run *run, const struct tally_print_instruction *instruction)
{
	switch (instruction->opcode) {
	case TALLY_PRINT_LITERAL:
		tally_print_append(run->out, instruction->text, instruction->offset);
		return;
	case TALLY_PRINT_TEXT:
		tally_print_text(run->out, instruction->spec, run->star, instruction->text,
				 instruction->offset);
		return;
	case TALLY_PRINT_FIXED_STRING:
		print_fixed_string(run, instruction);
		return;
	case TALLY_PRINT_DYNAMIC_STRING:
		print_dynamic_string(run, instruction);
		return;
	case TALLY_PRINT_BITMASK:
	case TALLY_PRINT_CPULIST:
		print_bits(run, instruction);
		return;
	case TALLY_PRINT_ADDRESS:
		print_address(run, instruction);
		return;
	case TALLY_PRINT_BUFFER:
		print_buffer(run, instruction);
		return;
	case TALLY_PRINT_FIELD:
		tally_print_field(run->tracepoint, instruction->field, run->raw, run->size,
				  run->out);
		return;
	default:
		return;
	}
}

/* Runs an output instruction that prints the number on top of the stack. */
static void write_number(const struct run *run, const struct tally_print_instruction *instruction,
			 uint64_t value)
{
	switch (instruction->opcode) {
	case TALLY_PRINT_NUMBER:
		tally_print_number(run->out, instruction->spec, run->star, value);
		return;
	case TALLY_PRINT_FLAGS:
		print_flags(run, instruction, value);
		return;
	case TALLY_PRINT_SYMBOL:
		print_symbol(run, instruction, value);
		return;
	case TALLY_PRINT_HEX:
	case TALLY_PRINT_HEX_STRING:
		print_hex(run, instruction, value);
		return;
	case TALLY_PRINT_POINTED_STRING:
		print_pointed_string(run, value);
		return;
	case TALLY_PRINT_FUNCTION:
		print_function(run, instruction->spec, value);
		return;
	case TALLY_PRINT_POINTER:
		if (value)
			tally_print_hexadecimal(run->out, value);
		else
			tally_print_append(run->out, "(nil)", 5);
		return;
	default:
		return;
	}
}

/* ---- the usual kinds: straight to where the text goes -------------------- */

/* Bytes that one such instruction may write: a prefix, then digits or a short string, copied in
 * whole vectors. */
enum { USUAL_ROOM = TALLY_PRINT_PREFIX_MAX + TALLY_PRINT_SHORT_MAX + 2 * TALLY_DIGITS_MAX };

/* The output position of the usual instructions.  `out` is updated before any other instruction
 * runs. */
struct cursor {
	char *at, *limit;
};

static struct cursor cursor_of(const struct tally_buffer *out)
{
	return (struct cursor){ out->bytes + out->length, out->bytes + tally_print_limit(out) };
}

static uint64_t load_native(const struct run *run,
			    const struct tally_print_instruction *instruction)
{
	const uint8_t *at = run->raw + instruction->offset;
	uint64_t whole;
	uint32_t word;
	uint16_t half;
	if (instruction->offset > run->size || instruction->bytes > run->size - instruction->offset)
		return 0;
	switch (instruction->bytes) {
	case 8:
		memcpy(&whole, at, 8);
		return whole;
	case 4:
		memcpy(&word, at, 4);
		return word;
	case 2:
		memcpy(&half, at, 2);
		return half;
	default:
		return *at;
	}
}

static char *put_number(char *at, const struct tally_print_spec *spec, uint64_t value)
{
	unsigned unused_bits = tally_print_unused_bits(spec);
	unsigned width = (unsigned)spec->width;
	if (spec->conversion == 'x') {
		value = value << unused_bits >> unused_bits;
		unsigned length = tally_hexadecimal_length(value);
		if (spec->zero && length < width)
			length = width;
		for (; length < width; width--)
			*at++ = ' ';
		return tally_write_hexadecimal(at, value, length);
	}
	int64_t number = (int64_t)(value << unused_bits) >> unused_bits;
	bool negative = spec->conversion == 'd' && number < 0;
	value = value << unused_bits >> unused_bits;
	if (spec->conversion == 'd')
		value = (uint64_t)number;
	if (negative)
		value = -value;
	unsigned length = tally_decimal_length(value);
	for (; length + negative < width; width--)
		*at++ = spec->zero ? '0' : ' ';
	*at = '-';
	at += negative + length;
	tally_digits_decimal(at, value);
	return at;
}

static char *put_short_string(char *at, const struct run *run,
			      const struct tally_tracepoint_field *field)
{
	if (field->offset >= run->size)
		return at;
	const char *text = (const char *)run->raw + field->offset;
	size_t length = run->size - field->offset;
	if (length < field->size_bytes) {
		length = strnlen(text, length);
		memcpy(at, text, length);
		return at + length;
	}
	length = 0;
	for (uint64_t word; length + 8 <= field->size_bytes; length += 8) {
		memcpy(&word, text + length, 8);
		memcpy(at + length, &word, 8);
		if ((word - 0x0101010101010101) & ~word & 0x8080808080808080)
			return at + length + strnlen(at + length, 8);
	}
	for (; length < field->size_bytes && text[length]; length++)
		at[length] = text[length];
	return at + length;
}

/* ---- all of them --------------------------------------------------------- */

static void write_slowly(struct run *run, const struct tally_print_instruction *instruction,
			 uint64_t **top)
{
	switch (instruction->opcode) {
	case TALLY_PRINT_ARRAY:
		*top -= 2;
		print_array(run, instruction, (*top)[1], (*top)[2]);
		return;
	case TALLY_PRINT_NUMBER:
	case TALLY_PRINT_FLAGS:
	case TALLY_PRINT_SYMBOL:
	case TALLY_PRINT_HEX:
	case TALLY_PRINT_HEX_STRING:
	case TALLY_PRINT_POINTED_STRING:
	case TALLY_PRINT_FUNCTION:
	case TALLY_PRINT_POINTER:
		write_number(run, instruction, *(*top)--);
		return;
	default:
		write_plain(run, instruction);
	}
}

void tally_print_run(const struct tally_tracepoint *tracepoint,
		     const struct tally_print_program *program, const uint8_t *raw, size_t size,
		     const struct tally_print_names *names, struct tally_buffer *out)
{
	struct run run = { tracepoint, raw, size, names, out, 0 };
	/* The program's stack depth was checked when it was compiled. */
	uint64_t stack[TALLY_PRINT_STACK_MAX + 1];
	uint64_t *top = stack; /* the last number; stack[0] is unused */
	const struct tally_print_instruction *at = program->items, *end = at + program->count;
	if (!out->bytes && !tally_buffer_room(out, USUAL_ROOM))
		return;
	const size_t start = out->length;
	struct cursor cursor = cursor_of(out);
	while (at < end) {
		const struct tally_print_instruction *instruction = at++;
		if (cursor.limit - cursor.at <= USUAL_ROOM) {
			out->length = (size_t)(cursor.at - out->bytes);
			if (!tally_buffer_room(out, USUAL_ROOM))
				return;
			cursor = cursor_of(out);
		}
		if (instruction->prefix_length) {
			memcpy(cursor.at, instruction->prefix, TALLY_PRINT_PREFIX_MAX);
			cursor.at += instruction->prefix_length;
		}
		switch (instruction->opcode) {
		case TALLY_PRINT_FIELD_NUMBER:
			cursor.at = put_number(cursor.at, instruction->spec,
					       load_native(&run, instruction));
			break;
		case TALLY_PRINT_SHORT_STRING:
			cursor.at = put_short_string(cursor.at, &run, instruction->field);
			break;
		case TALLY_PRINT_PUSH:
			*++top = instruction->value;
			break;
		case TALLY_PRINT_LOAD:
			*++top = load(&run, instruction->offset, instruction->bytes);
			break;
		case TALLY_PRINT_DYNAMIC:
			*++top = span_of(&run, instruction->field).offset;
			break;
		case TALLY_PRINT_DYNAMIC_LENGTH:
			*++top = span_of(&run, instruction->field).length;
			break;
		case TALLY_PRINT_INDEX:
			*top = load_element(&run, instruction, *top);
			break;
		case TALLY_PRINT_MASK:
			*top &= (1ull << 8 * instruction->bytes) - 1;
			break;
		case TALLY_PRINT_UNARY:
			*top = tally_print_operate(instruction->operation, *top, 0);
			break;
		case TALLY_PRINT_OPERATE:
			top--;
			*top = tally_print_operate(instruction->operation, *top, top[1]);
			break;
		case TALLY_PRINT_JUMP:
			at = program->items + instruction->offset;
			break;
		case TALLY_PRINT_JUMP_IF_ZERO:
			if (*top-- == 0)
				at = program->items + instruction->offset;
			break;
		case TALLY_PRINT_STAR:
			run.star = (int32_t)*top--;
			break;
		case TALLY_PRINT_LITERAL:
			if (instruction->offset <= USUAL_ROOM - TALLY_PRINT_PREFIX_MAX) {
				memcpy(cursor.at, instruction->text, instruction->offset);
				cursor.at += instruction->offset;
				break;
			}
			__attribute__((fallthrough));
		default:
			out->length = (size_t)(cursor.at - out->bytes);
			write_slowly(&run, instruction, &top);
			cursor = cursor_of(out);
			if (out->length - start > TALLY_PRINT_TEXT_MAX)
				at = end;
		}
	}
	out->length = (size_t)(cursor.at - out->bytes);
	*cursor.at = '\0';
	tally_print_cut(out, start);
}
