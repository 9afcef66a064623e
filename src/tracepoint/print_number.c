/* Arithmetic of print formats, at compile time and at run time, as in libtraceevent: on unsigned
 * 64-bit numbers. */
#include "tracepoint/print_program.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

uint64_t tally_print_operate(enum tally_operation operation, uint64_t left, uint64_t right)
{
	switch (operation) {
	case TALLY_OPERATION_NEGATE: return -left;
	case TALLY_OPERATION_COMPLEMENT: return ~left;
	case TALLY_OPERATION_NOT: return !left;
	case TALLY_OPERATION_MULTIPLY: return left * right;
	case TALLY_OPERATION_DIVIDE: return right ? left / right : 0;
	case TALLY_OPERATION_REMAINDER: return right ? left % right : 0;
	case TALLY_OPERATION_ADD: return left + right;
	case TALLY_OPERATION_SUBTRACT: return left - right;
	case TALLY_OPERATION_SHIFT_LEFT: return left << (right & 63);
	case TALLY_OPERATION_SHIFT_RIGHT: return left >> (right & 63);
	case TALLY_OPERATION_LESS: return left < right;
	case TALLY_OPERATION_GREATER: return left > right;
	case TALLY_OPERATION_LESS_EQUAL: return left <= right;
	case TALLY_OPERATION_GREATER_EQUAL: return left >= right;
	case TALLY_OPERATION_EQUAL: return left == right;
	case TALLY_OPERATION_NOT_EQUAL: return left != right;
	case TALLY_OPERATION_AND: return left & right;
	case TALLY_OPERATION_XOR: return left ^ right;
	case TALLY_OPERATION_OR: return left | right;
	case TALLY_OPERATION_BOTH: return left && right;
	case TALLY_OPERATION_EITHER: return left || right;
	case TALLY_OPERATION_NONE: break;
	}
	return left;
}

/* Like libtraceevent: only these type names narrow a number, and no cast extends a sign. */
unsigned tally_print_cast_bytes(const char *type, size_t length)
{
	static const struct {
		const char *name;
		uint8_t bytes;
	} narrow[] = { { "u8", 1 },  { "s8", 1 },  { "char", 1 }, { "u16", 2 }, { "s16", 2 },
		       { "short", 2 }, { "u32", 4 }, { "s32", 4 }, { "int", 4 } };
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
	if (length < 2 || text[0] != '\\')
		return length ? (uint8_t)text[0] : 0;
	const char *named = memchr(names, text[1], sizeof(names) - 1);
	if (named)
		return (uint8_t)codes[named - names];
	return isdigit((unsigned char)text[1]) ? strtoull(text + 1, NULL, 8) & 0xff
					       : (uint8_t)text[1];
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
		*value = bytes == 8 ? left : left & ((1ull << 8 * bytes) - 1);
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
