/* Evaluates DWARF expressions of call frame information: a stack machine over registers and memory.
 *
 * Three kinds occur in practice:
 *
 * - The PLT's: is rip behind the push in its 16-byte entry?
 * - Those of signal trampolines: each register is in the ucontext, at an offset from rsp.
 * - Those of functions that realign their stack: the CFA is saved near rbp.
 *
 * DWARF 5 section 2.5 defines the operations; 6.4.2 says which ones CFI may not use.
 */
#include "unwind/unwind_internal.h"

/* An operand may be padded to any length, so steps alone don't bound the time: an expression has at
 * most BYTES_MAX bytes, and its jumps back repeat at most as many. */
enum { STACK_MAX = 64, STEPS_MAX = 1024, BYTES_MAX = 1 << 15 };

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S,
	OP_CONST2U,
	OP_CONST2S,
	OP_CONST4U,
	OP_CONST4S,
	OP_CONST8U,
	OP_CONST8S,
	OP_CONSTU,
	OP_CONSTS,
	OP_DUP,
	OP_DROP,
	OP_OVER,
	OP_PICK,
	OP_SWAP,
	OP_ROT,
	OP_ABS = 0x19,
	OP_AND,
	OP_DIV,
	OP_MINUS,
	OP_MOD,
	OP_MUL,
	OP_NEG,
	OP_NOT,
	OP_OR,
	OP_PLUS,
	OP_PLUS_UCONST,
	OP_SHL,
	OP_SHR,
	OP_SHRA,
	OP_XOR,
	OP_BRA,
	OP_EQ,
	OP_GE,
	OP_GT,
	OP_LE,
	OP_LT,
	OP_NE,
	OP_SKIP,
	OP_LIT0,
	OP_LIT31 = 0x4f,
	OP_REG0,
	OP_REG31 = 0x6f,
	OP_BREG0,
	OP_BREG31 = 0x8f,
	OP_REGX,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96
};

struct machine {
	struct tally_reader reader;
	struct tally_unwind_frame *frame;
	uint64_t stack[STACK_MAX];
	unsigned depth;
	unsigned repeated; /* bytes, by jumps back */
	enum tally_expression_result result;
};

static void fail(struct machine *m)
{
	if (m->result == TALLY_EXPRESSION_OK)
		m->result = TALLY_EXPRESSION_BAD;
}

static void push(struct machine *m, uint64_t value)
{
	if (m->depth == STACK_MAX)
		fail(m);
	else
		m->stack[m->depth++] = value;
}

static uint64_t pop(struct machine *m)
{
	if (m->depth == 0) {
		fail(m);
		return 0;
	}
	return m->stack[--m->depth];
}

static uint64_t pick(struct machine *m, unsigned index)
{
	if (index >= m->depth) {
		fail(m);
		return 0;
	}
	return m->stack[m->depth - 1 - index];
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg >= TALLY_UNWIND_REGISTERS || !(m->frame->known >> reg & 1))
		fail(m);
	else
		push(m, m->frame->registers[reg] + (uint64_t)offset);
}

static void dereference(struct machine *m, unsigned size)
{
	uint64_t address = pop(m), value = 0;
	if (size != 1 && size != 2 && size != 4 && size != 8)
		fail(m);
	else if (m->result == TALLY_EXPRESSION_OK &&
		 !tally_unwind_load(m->frame, address, size, &value))
		m->result = TALLY_EXPRESSION_UNREADABLE;
	push(m, value);
}

static void jump(struct machine *m, bool taken)
{
	int16_t distance = (int16_t)tally_reader_u16(&m->reader);
	if (taken && distance < 0)
		m->repeated += (unsigned)-distance;
	if (m->repeated > BYTES_MAX)
		fail(m);
	if (taken && !m->reader.failed)
		tally_reader_seek(&m->reader,
				  (size_t)((int64_t)tally_reader_offset(&m->reader) + distance));
}

static void run_constant(struct machine *m, uint8_t opcode)
{
	struct tally_reader *reader = &m->reader;
	switch (opcode) {
	case OP_ADDR:
		push(m, tally_reader_u64(reader) + m->frame->bias);
		return;
	case OP_CONST1U:
		push(m, tally_reader_u8(reader));
		return;
	case OP_CONST1S:
		push(m, (uint64_t)(int8_t)tally_reader_u8(reader));
		return;
	case OP_CONST2U:
		push(m, tally_reader_u16(reader));
		return;
	case OP_CONST2S:
		push(m, (uint64_t)(int16_t)tally_reader_u16(reader));
		return;
	case OP_CONST4U:
		push(m, tally_reader_u32(reader));
		return;
	case OP_CONST4S:
		push(m, (uint64_t)(int32_t)tally_reader_u32(reader));
		return;
	case OP_CONST8U:
	case OP_CONST8S:
		push(m, tally_reader_u64(reader));
		return;
	case OP_CONSTU:
		push(m, tally_reader_uleb(reader));
		return;
	case OP_CONSTS:
		push(m, (uint64_t)tally_reader_sleb(reader));
		return;
	}
	fail(m);
}

static void run_stack(struct machine *m, uint8_t opcode)
{
	uint64_t first, second, third;
	switch (opcode) {
	case OP_DUP:
		push(m, pick(m, 0));
		return;
	case OP_DROP:
		pop(m);
		return;
	case OP_OVER:
		push(m, pick(m, 1));
		return;
	case OP_PICK:
		push(m, pick(m, tally_reader_u8(&m->reader)));
		return;
	case OP_SWAP:
		first = pop(m), second = pop(m);
		push(m, first), push(m, second);
		return;
	case OP_ROT:
		first = pop(m), second = pop(m), third = pop(m);
		push(m, first), push(m, third), push(m, second);
		return;
	}
	fail(m);
}

static uint64_t divide(struct machine *m, uint64_t a, uint64_t b)
{
	if (b == 0)
		fail(m);
	if (b == 0 || b == UINT64_MAX)
		return -a; /* INT64_MIN / −1 traps */
	return (uint64_t)((int64_t)a / (int64_t)b);
}

static void run_binary(struct machine *m, uint8_t opcode)
{
	uint64_t b = pop(m), a = pop(m);
	int64_t signed_a = (int64_t)a, signed_b = (int64_t)b;
	switch (opcode) {
	case OP_AND: push(m, a & b); return;
	case OP_OR: push(m, a | b); return;
	case OP_XOR: push(m, a ^ b); return;
	case OP_PLUS: push(m, a + b); return;
	case OP_MINUS: push(m, a - b); return;
	case OP_MUL: push(m, a * b); return;
	case OP_DIV: push(m, divide(m, a, b)); return;
	case OP_SHL: push(m, b < 64 ? a << b : 0); return;
	case OP_SHR: push(m, b < 64 ? a >> b : 0); return;
	case OP_SHRA: push(m, (uint64_t)(signed_a >> (b < 64 ? b : 63))); return;
	case OP_EQ: push(m, a == b); return;
	case OP_NE: push(m, a != b); return;
	case OP_GE: push(m, signed_a >= signed_b); return;
	case OP_GT: push(m, signed_a > signed_b); return;
	case OP_LE: push(m, signed_a <= signed_b); return;
	case OP_LT: push(m, signed_a < signed_b); return;
	case OP_MOD:
		if (b == 0)
			fail(m);
		push(m, b ? a % b : 0);
		return;
	}
	fail(m);
}

static void run_operation(struct machine *m, uint8_t opcode)
{
	uint64_t value;
	switch (opcode) {
	case OP_NOP:
		return;
	case OP_DEREF:
		dereference(m, m->frame->word ? m->frame->word : 8);
		return;
	case OP_DEREF_SIZE:
		dereference(m, tally_reader_u8(&m->reader));
		return;
	case OP_ABS:
		value = pop(m);
		push(m, (int64_t)value < 0 ? -value : value);
		return;
	case OP_NEG:
		push(m, -pop(m));
		return;
	case OP_NOT:
		push(m, ~pop(m));
		return;
	case OP_PLUS_UCONST:
		push(m, pop(m) + tally_reader_uleb(&m->reader));
		return;
	case OP_BRA:
		jump(m, pop(m) != 0);
		return;
	case OP_SKIP:
		jump(m, true);
		return;
	/* by convention the register's value in CFI; a location in other expressions */
	case OP_REGX:
		push_register(m, tally_reader_uleb(&m->reader), 0);
		return;
	case OP_BREGX:
		value = tally_reader_uleb(&m->reader);
		push_register(m, value, tally_reader_sleb(&m->reader));
		return;
	}
	if (opcode >= OP_LIT0 && opcode <= OP_LIT31)
		push(m, opcode - OP_LIT0);
	else if (opcode >= OP_REG0 && opcode <= OP_REG31)
		push_register(m, opcode - OP_REG0, 0);
	else if (opcode >= OP_BREG0 && opcode <= OP_BREG31)
		push_register(m, opcode - OP_BREG0, tally_reader_sleb(&m->reader));
	else if (opcode <= OP_CONSTS)
		run_constant(m, opcode);
	else if (opcode <= OP_ROT)
		run_stack(m, opcode);
	else
		run_binary(m, opcode);
}

enum tally_expression_result tally_expression_run(const uint8_t *bytes, size_t size,
						  struct tally_unwind_frame *frame,
						  const uint64_t *initial, uint64_t *value)
{
	struct machine m;
	m.frame = frame;
	m.depth = m.repeated = 0;
	m.result = TALLY_EXPRESSION_OK;
	if (size > BYTES_MAX)
		m.result = TALLY_EXPRESSION_BAD;
	tally_reader_init(&m.reader, bytes, size, false);
	if (initial)
		push(&m, *initial);
	for (unsigned steps = 0; tally_reader_left(&m.reader) && m.result == TALLY_EXPRESSION_OK;
	     steps++) {
		run_operation(&m, tally_reader_u8(&m.reader));
		if (m.reader.failed || steps == STEPS_MAX)
			fail(&m);
	}
	*value = pop(&m);
	return m.result;
}
