/* Internal to this folder: a print format as parsed (nodes) and as compiled (instructions). */
#ifndef TALLY_TRACEPOINT_INTERNAL_H
#define TALLY_TRACEPOINT_INTERNAL_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/vector.h"
#include "tracepoint/tracepoint.h"

#include <string.h>

enum {
	TALLY_NODE_DEPTH_MAX = 128,  /* depth of a tree; compiling recurses */
	TALLY_NODE_COUNT_MAX = 1 << 16,
	TALLY_NODE_BINDINGS_MAX = 16, /* variables of an argument's statements */
	TALLY_PRINT_STACK_MAX = 32,  /* numbers on the stack of one expression */
	TALLY_PRINT_PROGRAM_MAX = 1 << 12, /* the kernels' own have up to 137 */
	TALLY_PRINT_WIDTH_MAX = 4096, /* characters of one conversion */
	/* limits of fused instructions, in bytes */
	TALLY_PRINT_PREFIX_MAX = 32, TALLY_PRINT_SHORT_MAX = 32, TALLY_PRINT_DIGITS_WIDTH_MAX = 16
};

/* An entry of __print_symbolic or __print_flags: the name of a value or of bits. */
struct tally_print_word {
	int64_t value; /* -1 also when it is no number */
	const char *text;
	uint32_t length;
};

struct tally_print_words {
	const struct tally_print_word *items;
	size_t count;
	const char *delimiter; /* between names of flags; NULL: none */
};

enum tally_node_kind {
	TALLY_NODE_ATOM,      /* text: a number, a name or (is_string) a literal */
	TALLY_NODE_FIELD,     /* REC->field */
	TALLY_NODE_DYNAMIC,   /* __get_dynamic_array(field): its offset */
	TALLY_NODE_DYNAMIC_LENGTH,
	TALLY_NODE_STRING,    /* __get_str(field) */
	TALLY_NODE_BITMASK,
	TALLY_NODE_CPUMASK,
	TALLY_NODE_FLAGS,     /* left: value */
	TALLY_NODE_SYMBOL,    /* left: value */
	TALLY_NODE_HEX,       /* left: position, right: bytes */
	TALLY_NODE_HEX_STRING,
	TALLY_NODE_ARRAY,     /* left: position, right: elements, third: bytes per element */
	TALLY_NODE_CAST,      /* (text) left */
	TALLY_NODE_UNARY,     /* operation left */
	TALLY_NODE_BINARY,    /* left operation right */
	TALLY_NODE_INDEX,     /* left[right] */
	TALLY_NODE_CONDITION, /* left ? right : third */
	TALLY_NODE_CALL,      /* of a function that only the kernel has; left: first argument */
	TALLY_NODE_COMPOUND,  /* (type){ .text = left } */
	TALLY_NODE_UNKNOWN,
};

enum tally_operation {
	TALLY_OPERATION_NONE,
	TALLY_OPERATION_NEGATE,
	TALLY_OPERATION_COMPLEMENT,
	TALLY_OPERATION_NOT,
	TALLY_OPERATION_MULTIPLY,
	TALLY_OPERATION_DIVIDE,
	TALLY_OPERATION_REMAINDER,
	TALLY_OPERATION_ADD,
	TALLY_OPERATION_SUBTRACT,
	TALLY_OPERATION_SHIFT_LEFT,
	TALLY_OPERATION_SHIFT_RIGHT,
	TALLY_OPERATION_LESS,
	TALLY_OPERATION_GREATER,
	TALLY_OPERATION_LESS_EQUAL,
	TALLY_OPERATION_GREATER_EQUAL,
	TALLY_OPERATION_EQUAL,
	TALLY_OPERATION_NOT_EQUAL,
	TALLY_OPERATION_AND,
	TALLY_OPERATION_XOR,
	TALLY_OPERATION_OR,
	TALLY_OPERATION_BOTH,
	TALLY_OPERATION_EITHER,
};

struct tally_node {
	enum tally_node_kind kind;
	enum tally_operation operation;
	struct tally_node *left, *right, *third;
	const char *text;
	size_t text_length;
	bool is_string, is_character;
	const struct tally_tracepoint_field *field;
	struct tally_print_words *words;
	unsigned depth;
	struct tally_node *next; /* next argument */
	const char *source;      /* an argument's text */
	size_t source_length;
};

struct tally_print_source {
	const char *format; /* the format string, with escapes unresolved */
	size_t format_length;
	struct tally_node *arguments;
};

/* Parses a print format.  Returns 0, -EBADMSG or -ENOMEM. */
int tally_print_parse(const struct tally_tracepoint *tracepoint, struct tally_arena *arena,
		      struct tally_print_source *out, struct tally_error *err);

/* Computes an operation as libtraceevent does, on unsigned 64-bit numbers. */
uint64_t tally_print_operate(enum tally_operation operation, uint64_t left, uint64_t right);

/* Returns how many bytes of a number a cast to `type` keeps: 1, 2, 4 or 8. */
unsigned tally_print_cast_bytes(const char *type, size_t length);

/* Returns the number that an atom stands for: by strtoull(3), 0 for names, a character's code. */
uint64_t tally_print_atom_number(const struct tally_node *atom);

/* Gets the value of a constant expression; false when it is not constant. */
bool tally_print_constant(const struct tally_node *node, uint64_t *value);

/* One conversion, such as "%-8.3lx". */
struct tally_print_spec {
	char conversion; /* d u x o c s p */
	int8_t length;   /* -2 hh, -1 h, 0, 1 l, 2 ll */
	bool left, zero, alternative, plus, space, upper;
	bool star_width, star_precision; /* taken from the star register */
	bool plain;                      /* has only a conversion and a length */
	int16_t width, precision;        /* precision -1: none */
	char variant[4];                 /* after p: "S", "I6c", "UL" */
};

/* Returns how many high bits of a number the length modifier drops. */
static inline unsigned tally_print_unused_bits(const struct tally_print_spec *spec)
{
	static const uint8_t UNUSED_BITS[] = { 56, 48, 32, 0, 0 };
	return UNUSED_BITS[spec->length + 2];
}

enum tally_print_opcode {
	/* Instructions for the stack of numbers. */
	TALLY_PRINT_PUSH,           /* pushes `value` */
	TALLY_PRINT_LOAD,           /* pushes the `bytes` at `offset`; 0 beyond the event's end */
	TALLY_PRINT_DYNAMIC,        /* pushes the offset of the field's data */
	TALLY_PRINT_DYNAMIC_LENGTH, /* pushes the length of the field's data */
	TALLY_PRINT_INDEX, /* pops i, pushes the `bytes` at offset (+ field's data) + i * bytes */
	TALLY_PRINT_MASK,  /* keeps the low `bytes` */
	TALLY_PRINT_OPERATE,
	TALLY_PRINT_UNARY,
	TALLY_PRINT_JUMP,         /* to `target` */
	TALLY_PRINT_JUMP_IF_ZERO, /* pops */
	TALLY_PRINT_STAR,         /* pops into the star register */
	/* Output instructions; they pop the numbers that they use. */
	TALLY_PRINT_LITERAL, /* `text` */
	TALLY_PRINT_TEXT,    /* `text`, formatted by `spec` */
	TALLY_PRINT_NUMBER,
	TALLY_PRINT_FIXED_STRING,   /* the array in `field` */
	TALLY_PRINT_POINTED_STRING, /* %s of a pointer */
	TALLY_PRINT_DYNAMIC_STRING, /* the string of `field` */
	TALLY_PRINT_BITMASK,
	TALLY_PRINT_CPULIST,
	TALLY_PRINT_FLAGS,
	TALLY_PRINT_SYMBOL,
	TALLY_PRINT_HEX, /* pops the count; at the field's data */
	TALLY_PRINT_HEX_STRING,
	TALLY_PRINT_ARRAY, /* pops the count and the bytes per element; at the field's data */
	TALLY_PRINT_POINTER,
	TALLY_PRINT_FUNCTION,
	TALLY_PRINT_ADDRESS, /* MAC, IP, UUID at the field's data; `variant` says which */
	TALLY_PRINT_BUFFER,  /* %*ph */
	TALLY_PRINT_FIELD,   /* `field`, as tally_print_field() */
	/* Fused instructions; see print_generate.c. */
	TALLY_PRINT_FIELD_NUMBER, /* LOAD and NUMBER: digits only, in this machine's byte order */
	/* the array in `field`, of 1 to TALLY_PRINT_SHORT_MAX bytes, unformatted */
	TALLY_PRINT_SHORT_STRING,
};

struct tally_print_instruction {
	uint8_t opcode;    /* enum tally_print_opcode */
	uint8_t bytes;
	uint8_t operation; /* enum tally_operation */
	uint8_t prefix_length;
	uint32_t offset;   /* or a jump's target, or a text's length */
	union {
		uint64_t value;
		const char *text;
		const struct tally_tracepoint_field *field;
		const struct tally_print_words *words;
	};
	const struct tally_print_spec *spec;
	/* printed first; unless its length is 0, TALLY_PRINT_PREFIX_MAX bytes are readable */
	const char *prefix;
};

struct tally_print_program {
	const struct tally_print_instruction *items;
	size_t count;
};

/* Compiles a parsed format into `arena`.  Returns 0, -EBADMSG or -ENOMEM. */
int tally_print_generate(const struct tally_tracepoint *tracepoint,
			 const struct tally_print_source *source, struct tally_arena *arena,
			 struct tally_print_program *out, struct tally_error *err);

/* Shortens a program, in `arena`.  Returns 0, or -ENOMEM, which leaves the program as it was. */
int tally_print_fuse(const struct tally_tracepoint *tracepoint, struct tally_print_program *program,
		     struct tally_arena *arena);

void tally_print_run(const struct tally_tracepoint *tracepoint,
		     const struct tally_print_program *program, const uint8_t *raw, size_t size,
		     const struct tally_print_names *names, struct tally_buffer *out);

/* Returns how many bytes the buffer may hold without growing. */
static inline size_t tally_print_limit(const struct tally_buffer *out)
{
	if (out->maximum && out->maximum < out->capacity)
		return out->maximum;
	return out->capacity;
}

/* tally_buffer_append(), inlined for when there is room: an event is a dozen appends of a few
 * bytes. */
static inline void tally_print_append(struct tally_buffer *out, const void *bytes, size_t length)
{
	size_t limit = tally_print_limit(out);
	if (out->failed || limit <= out->length || length >= limit - out->length) {
		tally_buffer_append(out, bytes, length);
		return;
	}
	memcpy(out->bytes + out->length, bytes, length);
	out->length += length;
	out->bytes[out->length] = '\0';
}

/* Prints a field by its declaration: "120", "0xffff888003a41c00", "eth0", "ARRAY[00, 2a]". */
void tally_print_field(const struct tally_tracepoint *tracepoint,
		       const struct tally_tracepoint_field *field, const void *raw, size_t size,
		       struct tally_buffer *out);

/* Cuts a text that begins at `start` to TALLY_PRINT_TEXT_MAX bytes. */
void tally_print_cut(struct tally_buffer *out, size_t start);

/* Format one value; see print_value.c. */
void tally_print_number(struct tally_buffer *out, const struct tally_print_spec *spec, int64_t star,
			uint64_t value);
void tally_print_text(struct tally_buffer *out, const struct tally_print_spec *spec, int64_t star,
		      const char *text, size_t length);
void tally_print_decimal(struct tally_buffer *out, uint64_t value);
void tally_print_hexadecimal(struct tally_buffer *out, uint64_t value); /* with 0x */
void tally_print_hex_bytes(struct tally_buffer *out, const uint8_t *bytes, size_t length,
			   const char *delimiter);
void tally_print_bitmask(struct tally_buffer *out, const uint8_t *bits, size_t length, bool swap);
void tally_print_cpulist(struct tally_buffer *out, const uint8_t *bits, size_t length, bool swap);

/* Prints %pM, %pI…, %pU; see print_address.c.  `variant` as in the spec. */
void tally_print_address(struct tally_buffer *out, const char *variant, const uint8_t *bytes,
			 size_t length, bool swap);

#endif
