/* Compiles a parsed print format to instructions.  Expressions become code for a stack of numbers.
 * The stack's depth is checked here, so a run checks only its accesses to the event's bytes. */
#include "base/characters.h"
#include "base/extremes.h"
#include "tracepoint/tracepoint_internal.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* Shortens a compiled print format: fuses frequent sequences into one instruction each.
 *
 *     LITERAL "comm="  FIXED_STRING comm         SHORT_STRING comm, with "comm=" before it
 *     LITERAL " fd: 0x"  LOAD fd  NUMBER "%08lx"  FIELD_NUMBER fd "%08lx", with " fd: 0x" before it
 *
 *     PUSH 3  INDEX args                          LOAD args + 3 * 8
 *
 * The target of a jump is never fused with the instruction before it.  Each instruction keeps its
 * meaning: print_run.c runs both kinds, and tests/unit/test_tracepoint.c compares them. */

struct fuser {
	const struct tally_tracepoint *tracepoint;
	const struct tally_print_program *from;
	struct tally_arena *arena;
	struct tally_print_instruction *to;
	size_t count;
	uint32_t *place; /* by index in `from`: the index of the instruction in `to` */
	bool *is_target;
};

static bool is_jump(const struct tally_print_instruction *instruction)
{
	return instruction->opcode == TALLY_PRINT_JUMP ||
	       instruction->opcode == TALLY_PRINT_JUMP_IF_ZERO;
}

/* True for conversions to digits, possibly padded with spaces or zeros. */
static bool is_simple(const struct tally_print_spec *spec)
{
	bool digits = spec->conversion == 'd' || spec->conversion == 'u' ||
		      (spec->conversion == 'x' && !spec->upper);
	return digits && !spec->left && !spec->alternative && !spec->plus && !spec->space &&
	       !spec->star_width && !spec->star_precision && spec->precision < 0 &&
	       spec->width <= TALLY_PRINT_DIGITS_WIDTH_MAX &&
	       !(spec->conversion == 'd' && spec->zero && spec->width);
}

static bool follows(const struct fuser *fuser, size_t at, enum tally_print_opcode opcode)
{
	return at < fuser->from->count && fuser->from->items[at].opcode == opcode &&
	       !fuser->is_target[at];
}

/* An element with a constant index, such as args[3], is loaded like a field. */
static bool is_element(const struct fuser *fuser, size_t at, struct tally_print_instruction *load)
{
	const struct tally_print_instruction *push = &fuser->from->items[at], *index = push + 1;
	if (push->opcode != TALLY_PRINT_PUSH || !follows(fuser, at + 1, TALLY_PRINT_INDEX) ||
	    index->field->place != TALLY_FIELD_FIXED || push->value > UINT16_MAX ||
	    index->field->offset > UINT16_MAX)
		return false;
	*load = (struct tally_print_instruction){ .opcode = TALLY_PRINT_LOAD,
						  .bytes = index->bytes };
	load->offset = index->field->offset + (uint32_t)push->value * index->bytes;
	return true;
}

/* Takes the instruction at `at` and fuses it with those behind it.  Returns how many it took. */
static size_t take(const struct fuser *fuser, size_t at, struct tally_print_instruction *taken)
{
	*taken = fuser->from->items[at];
	size_t next = at + 1;
	next += is_element(fuser, at, taken);
	if (taken->opcode == TALLY_PRINT_FIXED_STRING && taken->spec->plain &&
	    taken->field->size_bytes > 0 && taken->field->size_bytes <= TALLY_PRINT_SHORT_MAX) {
		taken->opcode = TALLY_PRINT_SHORT_STRING;
	} else if (taken->opcode == TALLY_PRINT_LOAD) {
		if (follows(fuser, next, TALLY_PRINT_MASK) &&
		    fuser->from->items[next].bytes >= taken->bytes)
			next++;
		if (follows(fuser, next, TALLY_PRINT_NUMBER) && !fuser->tracepoint->swap &&
		    is_simple(fuser->from->items[next].spec)) {
			taken->opcode = TALLY_PRINT_FIELD_NUMBER;
			taken->spec = fuser->from->items[next++].spec;
		}
	}
	return next - at;
}

/* Copies the literal into TALLY_PRINT_PREFIX_MAX readable bytes. */
static const char *keep_prefix(const struct fuser *fuser,
			       const struct tally_print_instruction *literal)
{
	char *copy = tally_arena_alloc(fuser->arena, TALLY_PRINT_PREFIX_MAX);
	if (copy)
		memcpy(copy, literal->text, literal->offset);
	return copy;
}

static int fuse_all(struct fuser *fuser)
{
	size_t count = fuser->from->count;
	for (size_t at = 0; at < count;) {
		const struct tally_print_instruction *literal = &fuser->from->items[at];
		struct tally_print_instruction *taken = &fuser->to[fuser->count];
		bool has_prefix = literal->opcode == TALLY_PRINT_LITERAL &&
				  literal->offset <= TALLY_PRINT_PREFIX_MAX && at + 1 < count &&
				  !fuser->is_target[at + 1] &&
				  fuser->from->items[at + 1].opcode != TALLY_PRINT_LITERAL;
		fuser->place[at] = (uint32_t)fuser->count++;
		at += has_prefix;
		at += take(fuser, at, taken);
		if (has_prefix) {
			taken->prefix = keep_prefix(fuser, literal);
			taken->prefix_length = (uint8_t)literal->offset;
			if (!taken->prefix)
				return -ENOMEM;
		}
	}
	fuser->place[count] = (uint32_t)fuser->count;
	for (size_t i = 0; i < fuser->count; i++)
		if (is_jump(&fuser->to[i]))
			fuser->to[i].offset = fuser->place[fuser->to[i].offset];
	return 0;
}

int tally_print_fuse(const struct tally_tracepoint *tracepoint, struct tally_print_program *program,
		     struct tally_arena *arena)
{
	struct fuser fuser = {
		.tracepoint = tracepoint,
		.from = program,
		.arena = arena,
		.to = tally_arena_array(arena, program->count, sizeof(*fuser.to)),
		.place = tally_arena_array(arena, program->count + 1, sizeof(*fuser.place)),
		.is_target = tally_arena_array(arena, program->count + 1, sizeof(*fuser.is_target)),
	};
	if (!fuser.to || !fuser.place || !fuser.is_target)
		return -ENOMEM;
	for (size_t i = 0; i < program->count; i++)
		if (is_jump(&program->items[i]))
			fuser.is_target[program->items[i].offset] = true;
	if (fuse_all(&fuser) < 0)
		return -ENOMEM;
	*program = (struct tally_print_program){ fuser.to, fuser.count };
	return 0;
}

struct generator {
	const struct tally_tracepoint *tracepoint;
	struct tally_arena *arena;
	TALLY_VECTOR(struct tally_print_instruction) code;
	struct tally_buffer literal; /* text since the last instruction */
	struct tally_node *argument;
	unsigned unknown_count;
	size_t emitted; /* instructions, with those of arguments that failed */
	unsigned stack;
	struct tally_error *err;
	int error;
};

static int fail(struct generator *generator, int code, const char *what)
{
	if (!generator->error) {
		generator->error = code;
		tally_error_set(generator->err, code, "print format of %s: %s",
				generator->tracepoint->name, code == -ENOMEM ? "no memory" : what);
	}
	return generator->error;
}

static size_t emit(struct generator *generator, struct tally_print_instruction instruction)
{
	if (generator->emitted++ >= TALLY_PRINT_PROGRAM_MAX)
		fail(generator, -EBADMSG, "it is too long");
	else if (tally_vector_push(&generator->code, instruction) < 0)
		fail(generator, -ENOMEM, "");
	if (generator->error)
		return 0;
	return generator->code.count - 1;
}

static void pushed(struct generator *generator)
{
	if (++generator->stack > TALLY_PRINT_STACK_MAX)
		fail(generator, -EBADMSG, "an expression needs too many numbers at once");
}

static void emit_constant(struct generator *generator, uint64_t value)
{
	emit(generator,
	     (struct tally_print_instruction){ .opcode = TALLY_PRINT_PUSH, .value = value });
	pushed(generator);
}

/* Sets a forward jump's target: the next instruction to be emitted. */
static void land(struct generator *generator, size_t jump)
{
	if (!generator->error)
		generator->code.items[jump].offset = (uint32_t)generator->code.count;
}

static const struct tally_node *without_casts(const struct tally_node *node)
{
	while (node->kind == TALLY_NODE_CAST)
		node = node->left;
	return node;
}

/* Returns the field that an operand refers to by address; NULL for other operands. */
static const struct tally_tracepoint_field *place_of(const struct tally_node *node)
{
	node = without_casts(node);
	bool is_place = node->kind == TALLY_NODE_FIELD || node->kind == TALLY_NODE_DYNAMIC ||
			node->kind == TALLY_NODE_STRING;
	if (is_place)
		return node->field;
	return NULL;
}

static bool is_number_size(uint32_t bytes)
{
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

static void emit_number(struct generator *generator, const struct tally_node *node);

static void emit_load(struct generator *generator, const struct tally_tracepoint_field *field)
{
	if (!is_number_size(field->size_bytes)) {
		emit_constant(generator, 0);
		return;
	}
	emit(generator, (struct tally_print_instruction){ .opcode = TALLY_PRINT_LOAD,
							  .offset = field->offset,
							  .bytes = (uint8_t)field->size_bytes });
	pushed(generator);
}

static void emit_mask(struct generator *generator, unsigned bytes)
{
	if (bytes < 8)
		emit(generator, (struct tally_print_instruction){ .opcode = TALLY_PRINT_MASK,
								  .bytes = (uint8_t)bytes });
}

/* REC->array[i], ((u32 *)__get_dynamic_array(array))[i]. */
static void emit_index(struct generator *generator, const struct tally_node *node)
{
	const struct tally_tracepoint_field *field = place_of(node->left);
	if (!field) {
		fail(generator, -EBADMSG, "an index into what is no array");
		return;
	}
	unsigned bytes = field->element_bytes;
	const struct tally_node *base = node->left;
	if (base->kind == TALLY_NODE_CAST && base->text_length > 0 &&
	    base->text[base->text_length - 1] == '*') {
		size_t length = base->text_length - 1;
		unsigned named = tally_tracepoint_type_bytes(base->text, length,
							     generator->tracepoint->long_bytes);
		if (named)
			bytes = named;
	} else if (bytes == 0) {
		bytes = generator->tracepoint->long_bytes;
	}
	if (!is_number_size(bytes)) {
		fail(generator, -EBADMSG, "an index into elements of unknown size");
		return;
	}
	emit_number(generator, node->right);
	emit(generator, (struct tally_print_instruction){ .opcode = TALLY_PRINT_INDEX,
							  .bytes = (uint8_t)bytes,
							  .field = field });
}

static void emit_branches(struct generator *generator, const struct tally_node *node,
			  bool as_string, const struct tally_print_spec *spec);

static void emit_operation(struct generator *generator, const struct tally_node *node)
{
	emit_number(generator, node->left);
	if (node->kind == TALLY_NODE_UNARY) {
		emit(generator,
		     (struct tally_print_instruction){ .opcode = TALLY_PRINT_UNARY,
						       .operation = (uint8_t)node->operation });
		return;
	}
	emit_number(generator, node->right);
	emit(generator, (struct tally_print_instruction){ .opcode = TALLY_PRINT_OPERATE,
							  .operation = (uint8_t)node->operation });
	generator->stack--;
}

static void emit_field(struct generator *generator, enum tally_print_opcode opcode,
		       const struct tally_tracepoint_field *field,
		       const struct tally_print_spec *spec)
{
	emit(generator, (struct tally_print_instruction){
				.opcode = (uint8_t)opcode, .field = field, .spec = spec });
}

/* Emits code that pushes the node's number. */
static void emit_number(struct generator *generator, const struct tally_node *node)
{
	uint64_t value;
	if (generator->error)
		return;
	if (tally_print_constant(node, &value)) {
		emit_constant(generator, value);
		return;
	}
	switch (node->kind) {
	case TALLY_NODE_FIELD:
		emit_load(generator, node->field);
		return;
	case TALLY_NODE_DYNAMIC:
		emit_field(generator, TALLY_PRINT_DYNAMIC, node->field, NULL);
		pushed(generator);
		return;
	case TALLY_NODE_DYNAMIC_LENGTH:
		emit_field(generator, TALLY_PRINT_DYNAMIC_LENGTH, node->field, NULL);
		pushed(generator);
		return;
	case TALLY_NODE_CAST:
		emit_number(generator, node->left);
		emit_mask(generator, tally_print_cast_bytes(node->text, node->text_length));
		return;
	case TALLY_NODE_UNARY:
	case TALLY_NODE_BINARY:
		emit_operation(generator, node);
		return;
	case TALLY_NODE_INDEX:
		emit_index(generator, node);
		return;
	case TALLY_NODE_CONDITION:
		emit_branches(generator, node, false, NULL);
		return;
	case TALLY_NODE_CALL:
	case TALLY_NODE_COMPOUND:
	case TALLY_NODE_UNKNOWN:
		fail(generator, -EBADMSG, "a number that only the kernel knows");
		return;
	default: /* text is no number */
		emit_constant(generator, 0);
	}
}

static void emit_words(struct generator *generator, enum tally_print_opcode opcode,
		       const struct tally_node *node, const struct tally_print_spec *spec)
{
	emit_number(generator, node->left);
	emit(generator, (struct tally_print_instruction){
				.opcode = (uint8_t)opcode, .words = node->words, .spec = spec });
	generator->stack--;
}

static void emit_array(struct generator *generator, enum tally_print_opcode opcode,
		       const struct tally_node *node)
{
	const struct tally_tracepoint_field *field = place_of(node->left);
	if (!field) {
		fail(generator, -EBADMSG, "the array to print is no field");
		return;
	}
	emit_number(generator, node->right);
	if (node->third)
		emit_number(generator, node->third);
	emit_field(generator, opcode, field, NULL);
	generator->stack -= 1 + (node->third != NULL);
}

static void emit_text(struct generator *generator, const struct tally_node *node,
		      const struct tally_print_spec *spec)
{
	enum tally_print_opcode opcode = spec->plain ? TALLY_PRINT_LITERAL : TALLY_PRINT_TEXT;
	emit(generator, (struct tally_print_instruction){ .opcode = (uint8_t)opcode,
							  .text = node->text,
							  .offset = (uint32_t)node->text_length,
							  .spec = spec });
}

static void emit_string(struct generator *generator, const struct tally_node *node,
			const struct tally_print_spec *spec);

static void emit_literal(struct generator *generator, const char *text, size_t length)
{
	emit(generator, (struct tally_print_instruction){ .opcode = TALLY_PRINT_LITERAL,
							  .text = text,
							  .offset = (uint32_t)length });
}

static void emit_number_text(struct generator *generator, const struct tally_node *node)
{
	static const struct tally_print_spec decimal = {
		.conversion = 'd', .length = 2, .plain = true, .precision = -1
	};
	emit_number(generator, node);
	emit(generator,
	     (struct tally_print_instruction){ .opcode = TALLY_PRINT_NUMBER, .spec = &decimal });
	generator->stack--;
}

static bool is_name(const struct tally_node *node)
{
	return node->kind == TALLY_NODE_ATOM && !node->is_string && node->text_length > 0 &&
	       !isdigit((unsigned char)node->text[0]);
}

/* True for what only the kernel can look up and we print as text: function(1), names[1]. */
static bool is_kernel_text(const struct tally_node *node)
{
	return node->kind == TALLY_NODE_CALL ||
	       (node->kind == TALLY_NODE_INDEX && is_name(node->left));
}

static void emit_call_argument(struct generator *generator, const struct tally_node *link)
{
	static const struct tally_print_spec plain = { .conversion = 's', .plain = true };
	const struct tally_node *node = without_casts(link);
	const struct tally_tracepoint_field *field = place_of(node);
	if (is_name(node)) /* __get_stacktrace(field), trace_name(p) */
		field = tally_tracepoint_field(generator->tracepoint, node->text);
	if (field) {
		emit_field(generator, TALLY_PRINT_FIELD, field, NULL);
		return;
	}
	if (is_name(node)) {
		emit_literal(generator, node->text, node->text_length);
		return;
	}
	switch (node->kind) {
	case TALLY_NODE_ATOM:
		if (node->is_string && !node->is_character)
			emit_string(generator, node, &plain);
		else
			emit_number_text(generator, link);
		return;
	case TALLY_NODE_INDEX:
		if (is_kernel_text(node))
			emit_string(generator, node, &plain);
		else
			emit_number_text(generator, link);
		return;
	case TALLY_NODE_UNARY:
	case TALLY_NODE_BINARY:
	case TALLY_NODE_DYNAMIC_LENGTH:
		emit_number_text(generator, link);
		return;
	default:
		emit_string(generator, node, &plain);
	}
}

/* Emits code that prints "name(1, 2)" or "name[1]". */
static void emit_kernel_text(struct generator *generator, const struct tally_node *node)
{
	if (node->kind == TALLY_NODE_INDEX) {
		emit_literal(generator, node->left->text, node->left->text_length);
		emit_literal(generator, "[", 1);
		emit_number_text(generator, node->right);
		emit_literal(generator, "]", 1);
		return;
	}
	emit_literal(generator, node->text, node->text_length);
	emit_literal(generator, "(", 1);
	for (const struct tally_node *link = node->left; link; link = link->next) {
		emit_call_argument(generator, link);
		if (link->next)
			emit_literal(generator, ", ", 2);
	}
	emit_literal(generator, ")", 1);
}

static void emit_string(struct generator *generator, const struct tally_node *node,
			const struct tally_print_spec *spec)
{
	if (generator->error)
		return;
	node = without_casts(node);
	if (is_kernel_text(node)) {
		emit_kernel_text(generator, node);
		return;
	}
	switch (node->kind) {
	case TALLY_NODE_ATOM:
		emit_text(generator, node, spec);
		return;
	case TALLY_NODE_FIELD:
		if (!node->field->is_array &&
		    node->field->size_bytes == generator->tracepoint->long_bytes) {
			emit_load(generator, node->field);
			emit(generator, (struct tally_print_instruction){
						.opcode = TALLY_PRINT_POINTED_STRING });
			generator->stack--;
		} else {
			emit_field(generator, TALLY_PRINT_FIXED_STRING, node->field, spec);
		}
		return;
	case TALLY_NODE_STRING:
	case TALLY_NODE_DYNAMIC:
		emit_field(generator, TALLY_PRINT_DYNAMIC_STRING, node->field, spec);
		return;
	case TALLY_NODE_BITMASK:
		emit_field(generator, TALLY_PRINT_BITMASK, node->field, spec);
		return;
	case TALLY_NODE_CPUMASK:
		emit_field(generator, TALLY_PRINT_CPULIST, node->field, spec);
		return;
	case TALLY_NODE_FLAGS:
		emit_words(generator, TALLY_PRINT_FLAGS, node, spec);
		return;
	case TALLY_NODE_SYMBOL:
		emit_words(generator, TALLY_PRINT_SYMBOL, node, spec);
		return;
	case TALLY_NODE_HEX:
		emit_array(generator, TALLY_PRINT_HEX, node);
		return;
	case TALLY_NODE_HEX_STRING:
		emit_array(generator, TALLY_PRINT_HEX_STRING, node);
		return;
	case TALLY_NODE_ARRAY:
		emit_array(generator, TALLY_PRINT_ARRAY, node);
		return;
	case TALLY_NODE_CONDITION:
		emit_branches(generator, node, true, spec);
		return;
	default:
		fail(generator, -EBADMSG, "%s of what is no string");
	}
}

static void emit_branches(struct generator *generator, const struct tally_node *node,
			  bool as_string, const struct tally_print_spec *spec)
{
	uint64_t value;
	if (tally_print_constant(node->left, &value)) {
		if (value)
			node = node->right;
		else
			node = node->third;
		if (as_string)
			emit_string(generator, node, spec);
		else
			emit_number(generator, node);
		return;
	}
	emit_number(generator, node->left);
	size_t to_no = emit(generator,
			    (struct tally_print_instruction){ .opcode = TALLY_PRINT_JUMP_IF_ZERO });
	generator->stack--;
	unsigned stack = generator->stack;
	if (as_string)
		emit_string(generator, node->right, spec);
	else
		emit_number(generator, node->right);
	size_t to_end = emit(generator,
			     (struct tally_print_instruction){ .opcode = TALLY_PRINT_JUMP });
	land(generator, to_no);
	generator->stack = stack;
	if (as_string)
		emit_string(generator, node->third, spec);
	else
		emit_number(generator, node->third);
	land(generator, to_end);
}

static void emit_pointer(struct generator *generator, const struct tally_node *node,
			 const struct tally_print_spec *spec)
{
	const struct tally_tracepoint_field *field = place_of(node);
	switch (spec->variant[0]) {
	case 'h':
	case 'M':
	case 'm':
	case 'I':
	case 'i':
	case 'U':
		if (!field)
			fail(generator, -EBADMSG, "an address or buffer that is no field");
		else if (spec->variant[0] == 'h')
			emit_field(generator, TALLY_PRINT_BUFFER, field, spec);
		else
			emit_field(generator, TALLY_PRINT_ADDRESS, field, spec);
		return;
	case 'b':
		if (field)
			emit_field(generator, TALLY_PRINT_CPULIST, field, spec);
		else
			fail(generator, -EBADMSG, "a bitmap that is no field");
		return;
	default:
		emit_number(generator, node);
		if (spec->variant[0])
			emit(generator, (struct tally_print_instruction){
						.opcode = TALLY_PRINT_FUNCTION, .spec = spec });
		else
			emit(generator, (struct tally_print_instruction){
						.opcode = TALLY_PRINT_POINTER, .spec = spec });
		generator->stack--;
	}
}

static struct tally_node *next_argument(struct generator *generator)
{
	struct tally_node *argument = generator->argument;
	if (!argument) {
		fail(generator, -EBADMSG, "it has more conversions than arguments");
		return NULL;
	}
	generator->argument = argument->next;
	return argument;
}

static void flush_literal(struct generator *generator)
{
	struct tally_buffer *literal = &generator->literal;
	if (literal->failed)
		fail(generator, -ENOMEM, "");
	if (literal->length == 0 || generator->error)
		return;
	char *text = tally_arena_copy(generator->arena, literal->bytes, literal->length);
	if (!text) {
		fail(generator, -ENOMEM, "");
		return;
	}
	emit_literal(generator, text, literal->length);
	tally_buffer_clear(literal);
}

/* Reads digits; the result is at most TALLY_PRINT_WIDTH_MAX. */
static int16_t take_width(const char **at, const char *end)
{
	int width = 0;
	for (; *at < end && isdigit((unsigned char)**at); (*at)++)
		if (width < TALLY_PRINT_WIDTH_MAX)
			width = width * 10 + (**at - '0');
	return (int16_t)tally_min_i64(width, TALLY_PRINT_WIDTH_MAX);
}

static bool take_char(const char **at, const char *end, const char *set, char *taken)
{
	if (*at >= end || !strchr(set, **at) || **at == '\0')
		return false;
	*taken = *(*at)++;
	return true;
}

/* Reads what follows %p, as far as traces use it (Documentation/core-api/printk-formats.rst). */
static void take_variant(const char **at, const char *end, struct tally_print_spec *spec)
{
	char *out = spec->variant, c;
	if (take_char(at, end, "FfSs", out))
		return;
	if (take_char(at, end, "Mm", out)) {
		take_char(at, end, "RF", out + 1);
	} else if (take_char(at, end, "U", out)) {
		take_char(at, end, "LlBb", out + 1);
	} else if (take_char(at, end, "h", out)) {
		take_char(at, end, "CDN", out + 1);
	} else if (end - *at >= 2 && memcmp(*at, "bl", 2) == 0) {
		*out = 'b';
		*at += 2;
	} else if (end - *at >= 2 && strchr("Ii", **at) && strchr("46S", (*at)[1])) {
		/* "I4", "I6c"; "IS" with p(ort), c(ompressed) and byte order stored as bits in the
		 * third character. */
		out[0] = *(*at)++;
		out[1] = *(*at)++;
		out[2] = ' ';
		if (out[1] == 'S')
			while (take_char(at, end, "pfs", &c))
				out[2] |= c == 'p';
		if (out[1] != '6' && take_char(at, end, "hnlb", &c) && (c == 'h' || c == 'l'))
			out[2] |= 4;
		if (out[1] != '4' && take_char(at, end, "c", &c))
			out[2] |= 2;
	} else {
		take_char(at, end, "Kx", &c);
	}
}

static void take_flags(const char **at, const char *end, struct tally_print_spec *spec)
{
	char c;
	while (take_char(at, end, "-0#+ ", &c)) {
		spec->left |= c == '-';
		spec->zero |= c == '0';
		spec->alternative |= c == '#';
		spec->plus |= c == '+';
		spec->space |= c == ' ';
	}
	spec->star_width = take_char(at, end, "*", &c);
	spec->width = take_width(at, end);
	spec->precision = -1;
	if (take_char(at, end, ".", &c)) {
		spec->star_precision = take_char(at, end, "*", &c);
		spec->precision = take_width(at, end);
	}
	while (take_char(at, end, "hlLzZjtq", &c)) {
		if (c == 'h')
			spec->length--;
		else if (c == 'l')
			spec->length++;
		else if (c == 'L' || c == 'q' || c == 'j')
			spec->length = 2;
		else
			spec->length = 1;
	}
}

/* Reads a conversion after its %.  Returns true when it is known. */
static bool take_spec(const char **at, const char *end, struct tally_print_spec *spec)
{
	take_flags(at, end, spec);
	if (spec->length < -2 || spec->length > 2)
		return false;
	char c;
	if (!take_char(at, end, "diuxXocsp", &c))
		return false;
	spec->plain = !spec->left && !spec->zero && !spec->alternative && !spec->plus &&
		      !spec->space && !spec->star_width && !spec->star_precision &&
		      spec->width == 0 && spec->precision < 0;
	spec->upper = c == 'X';
	spec->conversion = spec->upper ? 'x' : c;
	if (c == 'i')
		spec->conversion = 'd';
	else if (c == 'p')
		take_variant(at, end, spec);
	return !(spec->star_width && spec->star_precision); /* there is only one star register */
}

static void emit_value(struct generator *generator, const struct tally_node *argument,
		       const struct tally_print_spec *spec)
{
	if (spec->conversion == 's' || is_kernel_text(without_casts(argument))) {
		emit_string(generator, argument, spec);
	} else if (spec->conversion == 'p') {
		emit_pointer(generator, argument, spec);
	} else {
		emit_number(generator, argument);
		emit(generator, (struct tally_print_instruction){ .opcode = TALLY_PRINT_NUMBER,
								  .spec = spec });
		generator->stack--;
	}
}

/* Emits code for an argument, or "?" when only the kernel could compute it. */
static void emit_argument(struct generator *generator, const struct tally_node *star,
			  struct tally_node *argument, const struct tally_print_spec *spec)
{
	size_t count = generator->code.count;
	if (star) {
		emit_number(generator, star);
		emit(generator, (struct tally_print_instruction){ .opcode = TALLY_PRINT_STAR });
		generator->stack--;
	}
	emit_value(generator, argument, spec);
	if (generator->error != -EBADMSG || generator->emitted > TALLY_PRINT_PROGRAM_MAX)
		return;
	generator->error = 0;
	generator->code.count = count;
	generator->stack = 0;
	generator->unknown_count++;
	argument->kind = TALLY_NODE_UNKNOWN;
	emit_literal(generator, "?", 1);
}

static const char *emit_conversion(struct generator *generator, const char *at, const char *end)
{
	struct tally_print_spec *spec = tally_arena_alloc(generator->arena, sizeof(*spec));
	if (!spec) {
		fail(generator, -ENOMEM, "");
		return end;
	}
	if (!take_spec(&at, end, spec)) {
		fail(generator, -EBADMSG, "a conversion is unknown");
		return end;
	}
	const struct tally_node *star = NULL;
	if (spec->star_width || spec->star_precision)
		star = next_argument(generator);
	struct tally_node *argument = next_argument(generator);
	if (!generator->error)
		emit_argument(generator, star, argument, spec);
	if (generator->error)
		return end;
	return at;
}

/* Finds the next word in an argument's text. */
static bool next_word(const char **at, const char *end, const char **word)
{
	while (*at < end && !tally_is_word_char(**at))
		(*at)++;
	*word = *at;
	while (*at < end && tally_is_word_char(**at))
		(*at)++;
	return *at > *word;
}

/* Returns the index of an event's own field, or -1. */
static ptrdiff_t own_field(const struct tally_tracepoint *tracepoint, const char *name,
			   size_t length)
{
	for (size_t i = tracepoint->common_count; i < tracepoint->field_count; i++)
		if (strncmp(tracepoint->fields[i].name, name, length) == 0 &&
		    tracepoint->fields[i].name[length] == '\0')
			return (ptrdiff_t)i;
	return -1;
}

/* Fails if a field occurs only in arguments that print as "?". */
static void check_unknown(struct generator *generator, const struct tally_print_source *source)
{
	const struct tally_tracepoint *tracepoint = generator->tracepoint;
	bool *printed = tally_arena_array(generator->arena, tracepoint->field_count + 1,
					  sizeof(*printed));
	if (!printed) {
		fail(generator, -ENOMEM, "");
		return;
	}
	for (int unknown = 0; unknown < 2; unknown++)
		for (const struct tally_node *argument = source->arguments; argument;
		     argument = argument->next) {
			const char *at = argument->source, *end = at + argument->source_length;
			const char *word;
			if ((argument->kind == TALLY_NODE_UNKNOWN) != unknown)
				continue;
			while (next_word(&at, end, &word)) {
				ptrdiff_t field = own_field(tracepoint, word, (size_t)(at - word));
				if (field >= 0 && unknown && !printed[field])
					fail(generator, -EBADMSG,
					     "a field that only the kernel can "
					     "print");
				if (field >= 0)
					printed[field] = true;
			}
		}
}

static char unescaped(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'r':
		return '\r';
	default:
		return c;
	}
}

static void generate(struct generator *generator, const struct tally_print_source *source)
{
	const char *at = source->format, *end = at + source->format_length;
	while (at < end && !generator->error) {
		if (*at == '\\' && end - at > 1) {
			tally_buffer_char(&generator->literal, unescaped(at[1]));
			at += 2;
		} else if (*at != '%') {
			tally_buffer_char(&generator->literal, *at++);
		} else if (end - at > 1 && at[1] == '%') {
			tally_buffer_char(&generator->literal, '%');
			at += 2;
		} else {
			flush_literal(generator);
			at = emit_conversion(generator, at + 1, end);
		}
	}
	flush_literal(generator);
	if (!generator->error && generator->unknown_count)
		check_unknown(generator, source);
}

int tally_print_generate(const struct tally_tracepoint *tracepoint,
			 const struct tally_print_source *source, struct tally_arena *arena,
			 struct tally_print_program *out, struct tally_error *err)
{
	struct generator generator = {
		.tracepoint = tracepoint, .arena = arena, .argument = source->arguments, .err = err
	};
	generate(&generator, source);
	if (!generator.error) {
		size_t count = generator.code.count;
		struct tally_print_instruction *items = tally_arena_array(arena, count,
									  sizeof(*items));
		if (!items)
			fail(&generator, -ENOMEM, "");
		else if (count > 0)
			memcpy(items, generator.code.items, count * sizeof(*items));
		*out = (struct tally_print_program){ items, items ? count : 0 };
	}
	tally_vector_release(&generator.code);
	tally_buffer_release(&generator.literal);
	return generator.error;
}
