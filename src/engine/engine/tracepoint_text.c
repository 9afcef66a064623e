/* printf() for lines of tracepoints: integers, characters, strings and pointers, with flags, width
 * and precision.  No floating point, since at a hit its registers may hold the interrupted code's
 * values.  Also the helper functions of print formats. */
#include "engine/tracepoint_state.h"

#include <stdarg.h>

struct conversion {
	bool left, plus, space, alternative, zero;
	int width, precision; /* -1: no precision */
	unsigned longs, shorts; /* number of l (j, z, t, q count as l or ll) and of h */
	char kind;
};

static void put_char(struct tally_trace_text *text, char c)
{
	if (text->length + 1 < text->size)
		text->bytes[text->length++] = c;
}

static void put_many(struct tally_trace_text *text, char c, long count)
{
	while (count-- > 0 && text->length + 1 < text->size)
		put_char(text, c);
}

/* --- conversions ---------------------------------------------------------- */

static const char *read_digits(const char *at, int *number)
{
	*number = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		if (*number < 100000)
			*number = *number * 10 + (*at - '0');
	return at;
}

static const char *read_flags(const char *at, struct conversion *to)
{
	for (;; at++)
		switch (*at) {
		case '-':
			to->left = true;
			break;
		case '+':
			to->plus = true;
			break;
		case ' ':
			to->space = true;
			break;
		case '#':
			to->alternative = true;
			break;
		case '0':
			to->zero = true;
			break;
		default:
			return at;
		}
}

static const char *read_length(const char *at, struct conversion *to)
{
	for (;; at++)
		switch (*at) {
		case 'l':
			to->longs++;
			break;
		case 'h':
			to->shorts++;
			break;
		case 'q':
		case 'j':
			to->longs = 2;
			break;
		case 'z':
		case 't':
			to->longs = 1;
			if (sizeof(size_t) == sizeof(long long) && sizeof(long) != sizeof(size_t))
				to->longs = 2;
			break;
		default:
			return at;
		}
}

static void put_padded(struct tally_trace_text *text, const struct conversion *how,
		       const char *bytes, size_t length)
{
	long padding = how->width - (long)length;
	if (!how->left)
		put_many(text, ' ', padding);
	for (size_t i = 0; i < length; i++)
		put_char(text, bytes[i]);
	if (how->left)
		put_many(text, ' ', padding);
}

static void put_number(struct tally_trace_text *text, const struct conversion *how, uint64_t value,
		       bool negative)
{
	const char *digit = how->kind == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
	bool hex = how->kind == 'x' || how->kind == 'X' || how->kind == 'p';
	char digits[24], prefix[3];
	long count = 0, prefix_length = 0;
	unsigned bits = hex ? 4 : 0; /* of a digit; 0: decimal */
	if (how->kind == 'o')
		bits = 3;
	for (uint64_t rest = value; rest; rest = bits ? rest >> bits : rest / 10)
		digits[count++] = digit[bits ? rest & ((1u << bits) - 1) : rest % 10];
	if (negative)
		prefix[prefix_length++] = '-';
	else if ((how->plus || how->space) && (how->kind == 'd' || how->kind == 'i'))
		prefix[prefix_length++] = how->plus ? '+' : ' ';
	if (hex && (how->kind == 'p' || (how->alternative && value))) {
		prefix[prefix_length++] = '0';
		prefix[prefix_length++] = how->kind == 'X' ? 'X' : 'x';
	}
	long least = how->precision < 0 ? 1 : how->precision;
	if (how->kind == 'o' && how->alternative && count >= least)
		least = count + 1;
	long zeroes = least > count ? least - count : 0;
	long padding = how->width - prefix_length - zeroes - count;
	if (how->zero && !how->left && how->precision < 0 && padding > 0) {
		zeroes += padding;
		padding = 0;
	}
	if (!how->left)
		put_many(text, ' ', padding);
	for (long i = 0; i < prefix_length; i++)
		put_char(text, prefix[i]);
	put_many(text, '0', zeroes);
	while (count)
		put_char(text, digits[--count]);
	if (how->left)
		put_many(text, ' ', padding);
}

/* Returns how many bytes of a string may be read: an array of the record need not end with NUL. */
static size_t string_limit(const struct tally_trace_text *text, const char *string)
{
	uintptr_t start = (uintptr_t)text->record, at = (uintptr_t)string;
	if (at < start || at - start >= text->record_size)
		return SIZE_MAX;
	for (unsigned i = 0; i < text->of->field_count; i++) {
		const struct tally_trace_field *field = &text->of->fields[i];
		if (field->kind == TALLY_TRACE_ARRAY && at - start >= field->offset &&
		    at - start < field->offset + field->size)
			return field->offset + field->size - (at - start);
	}
	return text->record_size - (at - start);
}

static void put_string(struct tally_trace_text *text, const struct conversion *how,
		       const char *string)
{
	if (!string)
		string = "(null)";
	size_t limit = string_limit(text, string), length = 0;
	if (how->precision >= 0 && (size_t)how->precision < limit)
		limit = (size_t)how->precision;
	while (length < limit && string[length])
		length++;
	put_padded(text, how, string, length);
}

struct arguments { /* a struct, so that it is passed by address on every ABI */
	va_list list;
};

static int64_t next_signed(struct arguments *arguments, const struct conversion *how)
{
	if (how->longs >= 2)
		return va_arg(arguments->list, long long);
	if (how->longs == 1)
		return va_arg(arguments->list, long);
	int value = va_arg(arguments->list, int);
	if (how->shorts >= 2)
		return (signed char)value;
	if (how->shorts)
		return (short)value;
	return value;
}

static uint64_t next_unsigned(struct arguments *arguments, const struct conversion *how)
{
	if (how->longs >= 2)
		return va_arg(arguments->list, unsigned long long);
	if (how->longs == 1)
		return va_arg(arguments->list, unsigned long);
	unsigned value = va_arg(arguments->list, unsigned);
	if (how->shorts >= 2)
		return (unsigned char)value;
	if (how->shorts)
		return (unsigned short)value;
	return value;
}

/* Returns false if the conversion is unknown. */
static bool put_conversion(struct tally_trace_text *text, const struct conversion *how,
			   struct arguments *arguments)
{
	switch (how->kind) {
	case 'd':
	case 'i': {
		int64_t value = next_signed(arguments, how);
		put_number(text, how, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
		return true;
	}
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		put_number(text, how, next_unsigned(arguments, how), false);
		return true;
	case 'p':
		put_number(text, how, (uintptr_t)va_arg(arguments->list, void *), false);
		return true;
	case 'c': {
		char c = (char)va_arg(arguments->list, int);
		put_padded(text, how, &c, 1);
		return true;
	}
	case 's':
		put_string(text, how, va_arg(arguments->list, const char *));
		return true;
	case '%':
		put_char(text, '%');
		return true;
	default:
		return false;
	}
}

static const char *read_conversion(const char *at, struct conversion *how,
				   struct arguments *arguments)
{
	*how = (struct conversion){ .precision = -1 };
	at = read_flags(at, how);
	if (*at == '*') {
		how->width = va_arg(arguments->list, int);
		if (how->width < 0) {
			how->left = true;
			how->width = (int)(0u - (unsigned)how->width);
		}
		at++;
	} else {
		at = read_digits(at, &how->width);
	}
	if (*at == '.' && at[1] == '*') {
		how->precision = va_arg(arguments->list, int);
		at += 2;
	} else if (*at == '.') {
		at = read_digits(at + 1, &how->precision);
	}
	at = read_length(at, how);
	how->kind = *at;
	return at;
}

void tally_trace_print(struct tally_trace_text *text, const char *format, ...)
{
	struct arguments arguments;
	va_start(arguments.list, format);
	for (const char *at = format; *at; at++) {
		struct conversion how;
		if (*at != '%') {
			put_char(text, *at);
			continue;
		}
		const char *kind = read_conversion(at + 1, &how, &arguments);
		if (put_conversion(text, &how, &arguments)) {
			at = kind;
			continue;
		}
		/* the types of further arguments are unknown: the text stays as it is */
		while (*at)
			put_char(text, *at++);
		break;
	}
	va_end(arguments.list);
}

/* --- the words of print formats: pieces from the buffer's end ------------- */

/* A piece is written like a line, into the free room; close_piece() moves it to the end of that
 * room. */
static struct tally_trace_text open_piece(const struct tally_trace_text *text)
{
	struct tally_trace_text piece = *text;
	piece.bytes = text->bytes + text->length;
	piece.size = text->size - text->length;
	piece.length = 0;
	return piece;
}

static const char *close_piece(struct tally_trace_text *text, const struct tally_trace_text *piece)
{
	if (piece->size < 2)
		return "";
	char *to = text->bytes + text->size - piece->length - 1;
	__builtin_memmove(to, piece->bytes, piece->length);
	to[piece->length] = '\0';
	text->size -= piece->length + 1;
	return to;
}

static void piece_string(struct tally_trace_text *piece, const char *string)
{
	while (*string)
		put_char(piece, *string++);
}

static void piece_hex(struct tally_trace_text *piece, uint64_t value)
{
	const struct conversion how = { .alternative = true, .precision = -1, .kind = 'x' };
	put_number(piece, &how, value, false);
}

/* As in the kernel: 0x and the number if no name fits. */
const char *tally_trace_symbolic(struct tally_trace_text *text, int64_t value,
				 const struct tally_trace_symbol *symbols, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (symbols[i].value == value)
			return symbols[i].name;
	struct tally_trace_text piece = open_piece(text);
	if (value)
		piece_hex(&piece, (uint64_t)value);
	else
		piece_string(&piece, "0x0");
	return close_piece(text, &piece);
}

const char *tally_trace_flags(struct tally_trace_text *text, const char *delimiter, uint64_t value,
			      const struct tally_trace_symbol *symbols, size_t count)
{
	struct tally_trace_text piece = open_piece(text);
	for (size_t i = 0; i < count && value; i++) {
		uint64_t mask = (uint64_t)symbols[i].value;
		if (!mask || (value & mask) != mask)
			continue;
		if (piece.length)
			piece_string(&piece, delimiter);
		piece_string(&piece, symbols[i].name);
		value &= ~mask;
	}
	if (value) {
		if (piece.length)
			piece_string(&piece, delimiter);
		piece_hex(&piece, value);
	}
	return close_piece(text, &piece);
}

const char *tally_trace_hex(struct tally_trace_text *text, const void *bytes, long length)
{
	struct tally_trace_text piece = open_piece(text);
	for (long i = 0; i < length && piece.length + 4 < piece.size; i++) {
		uint8_t byte = ((const uint8_t *)bytes)[i];
		if (i)
			put_char(&piece, ' ');
		put_char(&piece, "0123456789abcdef"[byte >> 4]);
		put_char(&piece, "0123456789abcdef"[byte & 15]);
	}
	return close_piece(text, &piece);
}

static uint64_t read_element(const uint8_t *at, long size)
{
	uint16_t half;
	uint32_t word;
	uint64_t both;
	switch (size) {
	case 1:
		return *at;
	case 2:
		__builtin_memcpy(&half, at, 2);
		return half;
	case 4:
		__builtin_memcpy(&word, at, 4);
		return word;
	default:
		__builtin_memcpy(&both, at, 8);
		return both;
	}
}

const char *tally_trace_array(struct tally_trace_text *text, const void *array, long count,
			      long element_size)
{
	const struct conversion how = { .alternative = true, .precision = -1, .kind = 'x' };
	struct tally_trace_text piece = open_piece(text);
	bool known = element_size == 1 || element_size == 2 || element_size == 4 ||
		     element_size == 8;
	put_char(&piece, '{');
	for (long i = 0; known && i < count && piece.length + 1 < piece.size; i++) {
		if (i)
			put_char(&piece, ',');
		uint64_t value = read_element((const uint8_t *)array + i * element_size,
					      element_size);
		if (value)
			put_number(&piece, &how, value, false);
		else
			piece_string(&piece, "0x0");
	}
	put_char(&piece, '}');
	return close_piece(text, &piece);
}
