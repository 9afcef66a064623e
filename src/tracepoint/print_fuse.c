/* Shortens a compiled print format: fuses frequent sequences into one instruction each.
 *
 *     LITERAL "comm="  FIXED_STRING comm          SHORT_STRING comm, with "comm=" before it
 *     LITERAL " fd: 0x"  LOAD fd  NUMBER "%08lx"   FIELD_NUMBER fd "%08lx", with " fd: 0x" before it
 *
 *     PUSH 3  INDEX args                           LOAD args + 3 * 8
 *
 * The target of a jump is never fused with the instruction before it.  Each instruction keeps its
 * meaning: print_run.c runs both kinds, and tests/unit/test_tracepoint.c compares them. */
#include "tracepoint/print_program.h"

#include <errno.h>

struct fuser {
	const struct tally_tracepoint *tracepoint;
	const struct tally_print_program *from;
	struct tally_arena *arena;
	struct tally_print_instruction *to;
	size_t count;
	uint32_t *place;  /* by index in `from`: the index of the instruction in `to` */
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
