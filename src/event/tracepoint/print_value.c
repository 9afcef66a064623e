/* Formats one value: printf's integer and string conversions without printf (which takes longer
 * than the rest of an event together), hex bytes, bit masks. */
#include "base/digits.h"
#include "base/extremes.h"
#include "tracepoint/tracepoint_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Arithmetic of print formats, at compile time and at run time, as in libtraceevent: on unsigned
 * 64-bit numbers. */

uint64_t tally_print_operate(enum tally_operation operation, uint64_t left, uint64_t right)
{
	switch (operation) {
	case TALLY_OPERATION_NEGATE:
		return -left;
	case TALLY_OPERATION_COMPLEMENT:
		return ~left;
	case TALLY_OPERATION_NOT:
		return !left;
	case TALLY_OPERATION_MULTIPLY:
		return left * right;
	case TALLY_OPERATION_DIVIDE:
		if (!right)
			return 0;
		return left / right;
	case TALLY_OPERATION_REMAINDER:
		if (!right)
			return 0;
		return left % right;
	case TALLY_OPERATION_ADD:
		return left + right;
	case TALLY_OPERATION_SUBTRACT:
		return left - right;
	case TALLY_OPERATION_SHIFT_LEFT:
		return left << (right & 63);
	case TALLY_OPERATION_SHIFT_RIGHT:
		return left >> (right & 63);
	case TALLY_OPERATION_LESS:
		return left < right;
	case TALLY_OPERATION_GREATER:
		return left > right;
	case TALLY_OPERATION_LESS_EQUAL:
		return left <= right;
	case TALLY_OPERATION_GREATER_EQUAL:
		return left >= right;
	case TALLY_OPERATION_EQUAL:
		return left == right;
	case TALLY_OPERATION_NOT_EQUAL:
		return left != right;
	case TALLY_OPERATION_AND:
		return left & right;
	case TALLY_OPERATION_XOR:
		return left ^ right;
	case TALLY_OPERATION_OR:
		return left | right;
	case TALLY_OPERATION_BOTH:
		return left && right;
	case TALLY_OPERATION_EITHER:
		return left || right;
	case TALLY_OPERATION_NONE:
		break;
	}
	return left;
}

/* Like libtraceevent: only these type names narrow a number, and no cast extends a sign. */
unsigned tally_print_cast_bytes(const char *type, size_t length)
{
	static const struct {
		const char *name;
		uint8_t bytes;
	} narrow[] = { { "u8", 1 },    { "s8", 1 },  { "char", 1 }, { "u16", 2 }, { "s16", 2 },
		       { "short", 2 }, { "u32", 4 }, { "s32", 4 },  { "int", 4 } };
	if (length > 9 && memcmp(type, "unsigned ", 9) == 0) {
		type += 9;
		length -= 9;
	}
	for (size_t i = 0; i < sizeof(narrow) / sizeof(narrow[0]); i++)
		if (strlen(narrow[i].name) == length && memcmp(narrow[i].name, type, length) == 0)
			return narrow[i].bytes;
	return 8;
}

static uint64_t character(const char *text, size_t length)
{
	static const char names[] = "abtnvfr", codes[] = "\a\b\t\n\v\f\r";
	if (!length)
		return 0;
	if (length < 2 || text[0] != '\\')
		return (uint8_t)text[0];
	const char *named = memchr(names, text[1], sizeof(names) - 1);
	if (named)
		return (uint8_t)codes[named - names];
	if (isdigit((unsigned char)text[1]))
		return strtoull(text + 1, NULL, 8) & 0xff;
	return (uint8_t)text[1];
}

uint64_t tally_print_atom_number(const struct tally_node *atom)
{
	if (atom->is_character)
		return character(atom->text, atom->text_length);
	return strtoull(atom->text, NULL, 0);
}

bool tally_print_constant(const struct tally_node *node, uint64_t *value)
{
	uint64_t left = 0, right = 0;
	switch (node->kind) {
	case TALLY_NODE_ATOM:
		*value = tally_print_atom_number(node);
		return true;
	case TALLY_NODE_CAST:
		if (!tally_print_constant(node->left, &left))
			return false;
		unsigned bytes = tally_print_cast_bytes(node->text, node->text_length);
		*value = left;
		if (bytes < 8)
			*value &= (1ull << 8 * bytes) - 1;
		return true;
	case TALLY_NODE_UNARY:
	case TALLY_NODE_BINARY:
		if (!tally_print_constant(node->left, &left) ||
		    (node->right && !tally_print_constant(node->right, &right)))
			return false;
		*value = tally_print_operate(node->operation, left, right);
		return true;
	default:
		return false;
	}
}

static const char lower_digits[] = "0123456789abcdef";
static const char upper_digits[] = "0123456789ABCDEF";

void tally_print_decimal(struct tally_buffer *out, uint64_t value)
{
	char digits[24];
	size_t length = tally_digits_decimal(digits + sizeof(digits), value);
	tally_print_append(out, digits + sizeof(digits) - length, length);
}

void tally_print_hexadecimal(struct tally_buffer *out, uint64_t value)
{
	char digits[24];
	size_t length = tally_digits_hexadecimal(digits + sizeof(digits), value);
	char *start = digits + sizeof(digits) - length;
	*--start = 'x';
	*--start = '0';
	tally_print_append(out, start, length + 2);
}

static void pad(struct tally_buffer *out, char c, size_t count)
{
	if (!count)
		return;
	char *room = tally_buffer_room(out, count);
	if (!room)
		return;
	memset(room, c, count);
	room[count] = '\0';
	out->length += count;
}

/* Gets width and precision from the spec or from the star; as in printf(3), a negative star width
 * means left-aligned. */
static void measure(const struct tally_print_spec *spec, int64_t star, size_t *width,
		    int64_t *precision, bool *left)
{
	int64_t wide = spec->star_width ? star : spec->width;
	*left = spec->left || wide < 0;
	if (wide < 0)
		wide = -wide;
	*width = (size_t)tally_min_i64(wide, TALLY_PRINT_WIDTH_MAX);
	*precision = spec->star_precision ? star : spec->precision;
}

void tally_print_text(struct tally_buffer *out, const struct tally_print_spec *spec, int64_t star,
		      const char *text, size_t length)
{
	if (spec->plain) {
		tally_print_append(out, text, length);
		return;
	}
	size_t width;
	int64_t precision;
	bool left;
	measure(spec, star, &width, &precision, &left);
	if (precision >= 0 && (uint64_t)precision < length)
		length = (size_t)precision;
	size_t padding = tally_saturating_sub_u64(width, length);
	if (!left)
		pad(out, ' ', padding);
	tally_print_append(out, text, length);
	if (left)
		pad(out, ' ', padding);
}

/* Keeps what the length modifier keeps of the value; for %d returns the magnitude and sets
 * `negative`. */
static uint64_t narrow(const struct tally_print_spec *spec, uint64_t value, bool *negative)
{
	unsigned unused_bits = tally_print_unused_bits(spec);
	*negative = false;
	if (spec->conversion != 'd')
		return value << unused_bits >> unused_bits;
	int64_t number = (int64_t)(value << unused_bits) >> unused_bits;
	*negative = number < 0;
	if (*negative)
		return -(uint64_t)number;
	return (uint64_t)number;
}

static size_t digits_of(const struct tally_print_spec *spec, char *end, uint64_t value)
{
	switch (spec->conversion) {
	case 'x':
		if (spec->upper)
			return tally_digits_binary(end, value, 4, upper_digits);
		return tally_digits_binary(end, value, 4, lower_digits);
	case 'o':
		return tally_digits_binary(end, value, 3, lower_digits);
	default:
		return tally_digits_decimal(end, value);
	}
}

static void print_padded(struct tally_buffer *out, const struct tally_print_spec *spec,
			 int64_t star, const char *prefix, const char *digits, size_t length)
{
	size_t width;
	int64_t precision;
	bool left;
	measure(spec, star, &width, &precision, &left);
	if (precision > TALLY_PRINT_WIDTH_MAX)
		precision = TALLY_PRINT_WIDTH_MAX;
	size_t zeros = 0;
	if (precision > (int64_t)length)
		zeros = (size_t)precision - length;
	if (spec->conversion == 'o' && spec->alternative && zeros == 0 &&
	    (length == 0 || digits[0] != '0'))
		zeros = 1;
	size_t used = strlen(prefix) + zeros + length;
	size_t padding = tally_saturating_sub_u64(width, used);
	if (spec->zero && !left && precision < 0) {
		zeros += padding;
		padding = 0;
	}
	if (!left)
		pad(out, ' ', padding);
	tally_buffer_text(out, prefix);
	pad(out, '0', zeros);
	tally_print_append(out, digits, length);
	if (left)
		pad(out, ' ', padding);
}

void tally_print_number(struct tally_buffer *out, const struct tally_print_spec *spec, int64_t star,
			uint64_t value)
{
	char text[32];
	char *end = text + sizeof(text);
	if (spec->conversion == 'c') {
		char c = (char)value;
		tally_print_text(out, spec, star, &c, 1);
		return;
	}
	bool negative;
	value = narrow(spec, value, &negative);
	size_t length = digits_of(spec, end, value);
	if (spec->plain) {
		if (negative)
			end[-(ptrdiff_t)++length] = '-';
		tally_print_append(out, end - length, length);
		return;
	}
	const char *prefix = negative ? "-" : "";
	if (spec->conversion == 'd' && !negative && spec->plus)
		prefix = "+";
	else if (spec->conversion == 'd' && !negative && spec->space)
		prefix = " ";
	else if (spec->conversion == 'x' && spec->alternative && value)
		prefix = spec->upper ? "0X" : "0x";
	int64_t precision = spec->star_precision ? star : spec->precision;
	if (precision == 0 && value == 0)
		length = 0;
	print_padded(out, spec, star, prefix, end - length, length);
}

void tally_print_hex_bytes(struct tally_buffer *out, const uint8_t *bytes, size_t length,
			   const char *delimiter)
{
	for (size_t i = 0; i < length; i++) {
		char digits[2] = { lower_digits[bytes[i] >> 4], lower_digits[bytes[i] & 15] };
		if (i > 0 && *delimiter)
			tally_buffer_char(out, *delimiter);
		tally_print_append(out, digits, 2);
	}
}

/* Returns byte `i` of a mask of longs, least significant first. */
static uint8_t mask_byte(const uint8_t *bits, size_t length, size_t i, bool swap)
{
	bool big_endian = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != swap;
	if (big_endian)
		return bits[length - 1 - i];
	return bits[i];
}

/* "0000ffff,00000003": most significant byte first, a comma every 32 bits. */
void tally_print_bitmask(struct tally_buffer *out, const uint8_t *bits, size_t length, bool swap)
{
	for (size_t i = length; i-- > 0;) {
		uint8_t byte = mask_byte(bits, length, i, swap);
		tally_print_hex_bytes(out, &byte, 1, "");
		if (i > 0 && i % 4 == 0)
			tally_buffer_char(out, ',');
	}
}

/* "0-3,8" */
void tally_print_cpulist(struct tally_buffer *out, const uint8_t *bits, size_t length, bool swap)
{
	size_t count = 8 * length;
	const char *comma = "";
	for (size_t bit = 0; bit < count; bit++) {
		size_t first = bit;
		while (bit < count && mask_byte(bits, length, bit / 8, swap) >> bit % 8 & 1)
			bit++;
		if (bit == first)
			continue;
		tally_buffer_text(out, comma);
		tally_print_decimal(out, first);
		if (bit - first > 1) {
			tally_buffer_char(out, '-');
			tally_print_decimal(out, bit - 1);
		}
		comma = ",";
	}
}
