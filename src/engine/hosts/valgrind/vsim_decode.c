/* Recognizes branches, repeated string instructions and memory reads among x86-64's instructions,
 * by prefixes and opcode. */
#include "valgrind/vsim_decode.h"

/* Returns the branch target: `address` + `length` + the sign-extended offset of `size` bytes at
 * `at`. */
static uint64_t relative(const uint8_t *bytes, unsigned at, unsigned size, unsigned length,
			 uint64_t address)
{
	uint32_t value = 0;
	if (at + size > length)
		return 0;
	for (unsigned i = 0; i < size; i++)
		value |= (uint32_t)bytes[at + i] << 8 * i;
	int64_t offset = (int32_t)value;
	if (size == 1)
		offset = (int8_t)value;
	return address + length + (uint64_t)offset;
}

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3: /* sizes, lock, repne or bnd, rep */
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65: /* segments, hints, notrack */
		return true;
	}
	return (byte & 0xf0) == 0x40; /* REX */
}

/* movs, cmps, stos, lods, scas */
static bool is_string(uint8_t opcode)
{
	return (opcode >= 0xa4 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
}

enum vsim_flow vsim_decode_flow(const uint8_t *bytes, unsigned length, uint64_t address,
				uint64_t *target)
{
	unsigned at = 0;
	bool repeats = false;
	*target = 0;
	for (; at < length && is_prefix(bytes[at]); at++)
		repeats |= bytes[at] == 0xf2 || bytes[at] == 0xf3;
	if (at == length)
		return VSIM_FLOW_ON;
	uint8_t opcode = bytes[at++], next = at < length ? bytes[at] : 0;
	if ((opcode >= 0x70 && opcode <= 0x7f) || (opcode >= 0xe0 && opcode <= 0xe3)) {
		*target = relative(bytes, at, 1, length, address);
		return VSIM_FLOW_CONDITIONAL;
	}
	if (opcode == 0x0f && at < length && next >= 0x80 && next <= 0x8f) {
		*target = relative(bytes, at + 1, 4, length, address);
		return VSIM_FLOW_CONDITIONAL;
	}
	switch (opcode) {
	case 0xeb:
		*target = relative(bytes, at, 1, length, address);
		return VSIM_FLOW_JUMP;
	case 0xe9:
		*target = relative(bytes, at, 4, length, address);
		return VSIM_FLOW_JUMP;
	case 0xe8:
		*target = relative(bytes, at, 4, length, address);
		return VSIM_FLOW_CALL;
	case 0xc2: case 0xc3: case 0xca: case 0xcb: case 0xcf:
		return VSIM_FLOW_RETURN;
	case 0xff:
		if (at == length)
			return VSIM_FLOW_ON;
		switch (next >> 3 & 7) {
		case 2: case 3:
			return VSIM_FLOW_INDIRECT_CALL;
		case 4: case 5:
			return VSIM_FLOW_INDIRECT_JUMP;
		}
		return VSIM_FLOW_ON;
	}
	if (repeats && is_string(opcode))
		return VSIM_FLOW_REPEAT;
	return VSIM_FLOW_ON;
}

/* --- what reads memory ---------------------------------------------------- */

enum map { MAP_1, MAP_0F, MAP_0F38, MAP_0F3A };

struct opcode {
	enum map map;
	uint8_t opcode, modrm; /* modrm: 0xff if there is none (0xff never means memory) */
	uint8_t mandatory;     /* 0x66, 0xf2, 0xf3, or 0 */
	bool vex;
};

static uint8_t byte_at(const uint8_t *bytes, unsigned at, unsigned length)
{
	if (at < length)
		return bytes[at];
	return 0xff;
}

static void split_vex(const uint8_t *bytes, unsigned at, unsigned length, struct opcode *op)
{
	static const uint8_t mandatory[4] = { 0, 0x66, 0xf3, 0xf2 };
	op->vex = true;
	op->map = MAP_0F;
	if (bytes[at] == 0xc4) { /* the prefix of three bytes */
		at++;
		op->map = (enum map)(byte_at(bytes, at, length) & 3);
	}
	op->mandatory = mandatory[byte_at(bytes, at + 1, length) & 3];
	op->opcode = byte_at(bytes, at + 2, length);
	op->modrm = byte_at(bytes, at + 3, length);
}

static struct opcode split(const uint8_t *bytes, unsigned length)
{
	struct opcode op = { .map = MAP_1 };
	unsigned at = 0;
	for (; at < length && is_prefix(bytes[at]); at++) {
		if (bytes[at] == 0xf2 || bytes[at] == 0xf3)
			op.mandatory = bytes[at];
		else if (bytes[at] == 0x66 && !op.mandatory)
			op.mandatory = 0x66;
	}
	uint8_t first = byte_at(bytes, at, length);
	if (first == 0xc4 || first == 0xc5) {
		split_vex(bytes, at, length, &op);
		return op;
	}
	if (first == 0x0f) {
		first = byte_at(bytes, ++at, length);
		op.map = MAP_0F;
		if (first == 0x38)
			op.map = MAP_0F38;
		else if (first == 0x3a)
			op.map = MAP_0F3A;
		at += op.map != MAP_0F;
	}
	op.opcode = byte_at(bytes, at, length);
	op.modrm = byte_at(bytes, at + 1, length);
	return op;
}

static unsigned field(const struct opcode *op)
{
	return op->modrm >> 3 & 7;
}

/* True if the instruction, of the one-byte opcodes and with a memory operand, reads it. */
static bool reads_1(const struct opcode *op)
{
	uint8_t o = op->opcode;
	if (o < 0x40)
		return (o & 7) < 4; /* add … cmp, to memory and to a register */
	switch (o) {
	case 0x63: case 0x69: case 0x6b:                       /* movslq, imul */
	case 0x80: case 0x81: case 0x83:                       /* add … cmp with a constant */
	case 0x84: case 0x85: case 0x86: case 0x87:            /* test, xchg */
	case 0x8a: case 0x8b: case 0x8e:                       /* mov */
	case 0xc0: case 0xc1: case 0xd0: case 0xd1: case 0xd2: case 0xd3: /* shifts */
	case 0xf6:
	case 0xf7:
	case 0xfe:
	case 0xff: /* test, not, neg, mul, div, inc, dec, push, call, jmp */
	case 0xd8: case 0xda: case 0xdc: case 0xde:            /* x87 arithmetic */
		return true;
	case 0xd9:
		return field(op) == 0 || field(op) == 4 || field(op) == 5; /* fld, fldenv, fldcw */
	case 0xdb:
		return field(op) == 0 || field(op) == 5;       /* fild, fld */
	case 0xdd:
		return field(op) == 0 || field(op) == 4;       /* fld, frstor */
	case 0xdf:
		return field(op) == 0 || field(op) == 4 || field(op) == 5; /* fild, fbld */
	}
	return false;
}

static bool reads_0f(const struct opcode *op)
{
	uint8_t o = op->opcode;
	switch (o) {
	case 0x11:
	case 0x13:
	case 0x17:
	case 0x29:
	case 0x2b:
	case 0x7f:
	case 0xc3:
	case 0xd6:
	case 0xe7: /* stores */
	case 0x0d:
	case 0x18:
	case 0x19:
	case 0x1a:
	case 0x1b:
	case 0x1c:
	case 0x1d:
	case 0x1e:
	case 0x1f: /* hints */
		return false;
	case 0x7e:
		return op->mandatory == 0xf3; /* movq to a register; the others store */
	case 0xae:
		/* fxrstor, ldmxcsr, xrstor */
		return op->mandatory == 0 && (field(op) == 1 || field(op) == 2 || field(op) == 5);
	case 0xc7:
		return field(op) == 1;
	}
	if (o < 0x10 || (o >= 0x20 && o <= 0x27) || (o >= 0x30 && o <= 0x3f) ||
	    (o >= 0x90 && o <= 0x9f))
		return false; /* system instructions, setcc */
	return o < 0x80 || o > 0x8f;
}

static bool reads_memory(const struct opcode *op)
{
	switch (op->map) {
	case MAP_1:
		return !op->vex && reads_1(op);
	case MAP_0F:
		return reads_0f(op);
	case MAP_0F38: /* vmaskmov, vpmaskmov and movbe store */
		return op->opcode != 0x2e && op->opcode != 0x2f && op->opcode != 0x8e &&
		       !(op->opcode == 0xf1 && op->mandatory != 0xf2);
	case MAP_0F3A: /* pextr, extractps, vextract store */
		return !(op->opcode >= 0x14 && op->opcode <= 0x17) && op->opcode != 0x19 &&
		       op->opcode != 0x1d && op->opcode != 0x39;
	}
	return false;
}

unsigned vsim_decode_loads(const uint8_t *bytes, unsigned length)
{
	const struct opcode op = split(bytes, length);
	if (op.map == MAP_1 && !op.vex)
		switch (op.opcode) {
		case 0xa6: case 0xa7: /* cmps */
			return 2;
		case 0xa0:
		case 0xa1:
		case 0xa4:
		case 0xa5:
		case 0xac:
		case 0xad:
		case 0xae:
		case 0xaf: /* mov, movs, lods, scas */
		case 0x58:
		case 0x59:
		case 0x5a:
		case 0x5b:
		case 0x5c:
		case 0x5d:
		case 0x5e:
		case 0x5f:
		case 0x9d:
		case 0xc9: /* pop, leave */
			return 1;
		}
	return op.modrm >> 6 != 3 && reads_memory(&op);
}

bool vsim_decode_is_state(const uint8_t *bytes, unsigned length)
{
	const struct opcode op = split(bytes, length);
	if (op.modrm >> 6 == 3 || op.vex)
		return false;
	if (op.map == MAP_0F && op.opcode == 0xae)
		return field(&op) != 2 && field(&op) != 3 && field(&op) != 7;
	if (op.map == MAP_0F)
		return op.opcode == 0xc7 && field(&op) >= 3 && field(&op) <= 5;
	return op.map == MAP_1 && ((op.opcode == 0xd9 && (field(&op) == 4 || field(&op) == 6)) ||
				   (op.opcode == 0xdd && (field(&op) == 4 || field(&op) == 6)));
}
