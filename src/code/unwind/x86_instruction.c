/* The opcodes are those of Intel's manual, volume 2, appendix A: the maps of one and two bytes, and
 * what VEX and EVEX add to them. */
#include "unwind/x86_instruction.h"

#include <string.h>

/* ---- operands ------------------------------------------------------------ */

int32_t tally_x86_immediate(const uint8_t *bytes, bool is_byte)
{
	int32_t value;
	if (is_byte)
		return (int8_t)*bytes;
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static bool is_prefix(uint8_t byte)
{
	static const uint8_t PREFIXES[] = { 0x66, 0xf2, 0xf3, 0x3e, 0x2e, 0x64,
					    0x65, 0x67, 0xf0, 0x26, 0x36 };
	return memchr(PREFIXES, byte, sizeof(PREFIXES));
}

struct tally_x86_instruction tally_x86_decode(const uint8_t *code, size_t length)
{
	struct tally_x86_instruction decoded = { .bytes = code, .length = length };
	while (decoded.length > 1 && is_prefix(*decoded.bytes)) {
		decoded.has_lock |= *decoded.bytes == 0xf0;
		decoded.has_66 |= *decoded.bytes == 0x66;
		decoded.has_f2 |= *decoded.bytes == 0xf2;
		decoded.has_f3 |= *decoded.bytes == 0xf3;
		decoded.bytes++;
		decoded.length--;
	}
	if (decoded.length > 1 && (*decoded.bytes & 0xf0) == 0x40) {
		decoded.rex = *decoded.bytes++;
		decoded.length--;
	}
	return decoded;
}

unsigned tally_x86_register(const struct tally_x86_instruction *decoded, unsigned low,
			    uint8_t rex_bit)
{
	if (decoded->rex & rex_bit)
		return low | 8;
	return low;
}

unsigned tally_x86_middle(const struct tally_x86_instruction *decoded, uint8_t modrm)
{
	return tally_x86_register(decoded, modrm >> 3 & 7u, TALLY_X86_REX_R);
}

unsigned tally_x86_operand(const struct tally_x86_instruction *decoded, uint8_t modrm)
{
	if (modrm >> 6 != 3)
		return TALLY_X86_NONE;
	return tally_x86_register(decoded, modrm & 7u, TALLY_X86_REX_B);
}

unsigned tally_x86_base(const struct tally_x86_instruction *decoded, int32_t *offset)
{
	const uint8_t *bytes = decoded->bytes;
	if (decoded->length < 2)
		return TALLY_X86_NONE;
	uint8_t mode = bytes[1] >> 6, memory = bytes[1] & 7;
	bool has_sib = memory == TALLY_X86_RSP;
	size_t at = 2 + has_sib;
	if (mode == 3 || (mode == 0 && memory == TALLY_X86_RBP) ||
	    (has_sib && (bytes[2] != 0x24 || decoded->rex & TALLY_X86_REX_X)))
		return TALLY_X86_NONE;
	*offset = 0;
	if (mode)
		*offset = tally_x86_immediate(bytes + at, mode == 1);
	return tally_x86_register(decoded, memory, TALLY_X86_REX_B);
}

bool tally_x86_is_move(const struct tally_x86_instruction *decoded, unsigned *from, unsigned *to)
{
	const uint8_t *bytes = decoded->bytes;
	if (decoded->length < 2 || !(decoded->rex & TALLY_X86_REX_W) || bytes[1] >> 6 != 3 ||
	    (bytes[0] != 0x89 && bytes[0] != 0x8b))
		return false;
	unsigned middle = tally_x86_middle(decoded, bytes[1]),
		 operand = tally_x86_operand(decoded, bytes[1]);
	bool is_store = bytes[0] == 0x89;
	*from = is_store ? middle : operand;
	*to = is_store ? operand : middle;
	return true;
}

/* ---- the registers that are written --------------------------------------- */

/* Returns the register that an opcode behind 0f writes. */
static unsigned written_by_0f(const struct tally_x86_instruction *decoded)
{
	uint8_t opcode = decoded->bytes[1];
	if ((opcode & 0xf8) == 0xc8) /* bswap */
		return tally_x86_register(decoded, opcode & 7u, TALLY_X86_REX_B);
	if (decoded->length < 3)
		return TALLY_X86_NONE;
	uint8_t modrm = decoded->bytes[2];
	/* lar, lsl; cvt to integers; movmskp; imul; popcnt, bsf, bsr; pextrw; pmovmskb */
	static const uint8_t MIDDLE[] = { 0x02, 0x03, 0x2c, 0x2d, 0x50, 0xaf,
					  0xb8, 0xbc, 0xbd, 0xc5, 0xd7 };
	/* movd from a vector; shld, shrd; bts, btr, btc; rdfsbase; cmpxchg, xadd; rdrand */
	static const uint8_t OPERAND[] = { 0x7e, 0xa4, 0xa5, 0xab, 0xac, 0xad, 0xae,
					   0xb1, 0xb3, 0xba, 0xbb, 0xc1, 0xc7 };
	bool is_moved = (opcode & 0xf0) == 0x40 || (opcode & 0xf6) == 0xb6; /* cmov, movzx, movsx */
	bool is_middle = is_moved || memchr(MIDDLE, opcode, sizeof(MIDDLE));
	bool is_operand = memchr(OPERAND, opcode, sizeof(OPERAND));
	if ((opcode & 0xfe) == 0x2c) /* otherwise it writes an MMX register */
		is_middle = decoded->has_f3 || decoded->has_f2;
	/* f3 0f 7e moves between vectors; 0f ae writes a register only with f3 */
	if (opcode == 0x7e || opcode == 0xae)
		is_operand = (opcode == 0xae) == decoded->has_f3;
	if (is_middle)
		return tally_x86_middle(decoded, modrm);
	if (is_operand)
		return tally_x86_operand(decoded, modrm);
	return TALLY_X86_NONE;
}

/* Returns the registers that an instruction with VEX or EVEX writes, a bit for each.  The payload
 * has the map, the bits of REX (inverted), and vvvv: one more register. */
static unsigned written_by_vex(const struct tally_x86_instruction *decoded)
{
	enum { EVEX = 0x62, VEX_2 = 0xc5 };
	const uint8_t *bytes = decoded->bytes;
	bool is_short = bytes[0] == VEX_2;
	size_t payload = 2;
	if (bytes[0] == EVEX)
		payload = 3;
	if (is_short)
		payload = 1;
	if (decoded->length < payload + 3)
		return 0;
	unsigned map = bytes[1] & 0x1f;
	uint8_t last = bytes[2], opcode = bytes[payload + 1], modrm = bytes[payload + 2];
	if (bytes[0] == EVEX)
		map = bytes[1] & 7;
	if (is_short) {
		map = 1;
		last = bytes[1];
	}
	struct tally_x86_instruction plain = { .has_66 = (last & 3) == 1,
					       .has_f3 = (last & 3) == 2,
					       .has_f2 = (last & 3) == 3 };
	if (!(bytes[1] & 0x80))
		plain.rex |= TALLY_X86_REX_R;
	if (!is_short && !(bytes[1] & 0x20))
		plain.rex |= TALLY_X86_REX_B;
	const uint8_t like_0f[] = { 0x0f, opcode, modrm };
	plain.bytes = like_0f;
	plain.length = sizeof(like_0f);
	static const uint8_t MAP_1[] = { 0x2c, 0x2d, 0x50, 0x7e, 0xc5, 0xd7 };
	/* kmov; conversions to unsigned integers */
	bool is_mask = map == 1 && opcode == 0x93;
	bool is_unsigned = bytes[0] == EVEX && (opcode & 0xfe) == 0x78 &&
			   (plain.has_f3 || plain.has_f2);
	if (map == 1 && (is_mask || is_unsigned))
		return tally_x86_bit(tally_x86_middle(&plain, modrm));
	if (map == 1 && memchr(MAP_1, opcode, sizeof(MAP_1)))
		return tally_x86_bit(written_by_0f(&plain));
	if (map == 1)
		return 0;
	unsigned other = ~(unsigned)last >> 3 & 15;
	if (map == 2 && opcode == 0xf3) /* blsr, blsi, blsmsk */
		return tally_x86_bit(other);
	if (map == 2 && opcode == 0xf6) /* mulx writes two */
		return tally_x86_bit(other) | tally_x86_bit(tally_x86_middle(&plain, modrm));
	if ((map == 2 && opcode >= 0xf2 && opcode <= 0xf7) || (map == 3 && opcode == 0xf0))
		return tally_x86_bit(tally_x86_middle(&plain, modrm));
	bool is_extracted = map == 3 && opcode >= 0x14 && opcode <= 0x17; /* vpextr */
	if (!is_extracted)
		return 0;
	return tally_x86_bit(tally_x86_operand(&plain, modrm));
}

/* Returns the register of an 8-bit operand.  Without REX, 4 to 7 are ah, ch, dh, bh. */
static unsigned of_byte(const struct tally_x86_instruction *decoded, unsigned reg)
{
	if (reg != TALLY_X86_NONE && !decoded->rex)
		return reg & 3;
	return reg;
}

/* Returns the registers that an instruction of the first map writes, by its ModRM byte. */
static unsigned written_by_operands(const struct tally_x86_instruction *decoded)
{
	uint8_t opcode = decoded->bytes[0], modrm = decoded->bytes[1], group = modrm >> 3 & 7;
	unsigned middle = tally_x86_middle(decoded, modrm),
		 operand = tally_x86_operand(decoded, modrm);
	bool is_byte = opcode < 0x40 || opcode == 0x80 || opcode == 0x86 || opcode == 0x88 ||
		       opcode == 0x8a || opcode == 0xc0 || opcode == 0xc6 || opcode == 0xd0 ||
		       opcode == 0xd2 || opcode == 0xf6 || opcode == 0xfe;
	if (is_byte && !(opcode & 1)) {
		middle = of_byte(decoded, middle);
		operand = of_byte(decoded, operand);
	}
	if (opcode < 0x38 && (opcode & 7) < 4) /* arithmetic; cmp, 38 to 3b, writes nothing */
		return tally_x86_bit(opcode & 2 ? middle : operand);
	switch (opcode) {
	case 0x63: case 0x69: case 0x6b: case 0x8a: case 0x8b: case 0x8d:
		return tally_x86_bit(middle);
	case 0x80: case 0x81: case 0x83:
		if (group == 7)
			return 0;
		return tally_x86_bit(operand);
	case 0x86: case 0x87:
		return tally_x86_bit(middle) | tally_x86_bit(operand);
	case 0x88: case 0x89: case 0x8c: case 0xc0: case 0xc1: case 0xc6: case 0xc7: case 0xd0:
	case 0xd1: case 0xd2: case 0xd3:
		return tally_x86_bit(operand);
	case 0x8f:
		if (group)
			return 0;
		return tally_x86_bit(operand);
	case 0xf6: case 0xf7: /* test; not, neg; mul, div */
		if (group < 2)
			return 0;
		if (group < 4)
			return tally_x86_bit(operand);
		return tally_x86_bit(TALLY_X86_RAX) | tally_x86_bit(TALLY_X86_RDX);
	case 0xfe: case 0xff:
		if (group < 2)
			return tally_x86_bit(operand);
		return 0;
	}
	return 0;
}

/* Returns the registers that an instruction writes by its opcode. */
static unsigned written_by_opcode(const struct tally_x86_instruction *decoded)
{
	uint8_t opcode = decoded->bytes[0];
	unsigned low = tally_x86_register(decoded, opcode & 7u, TALLY_X86_REX_B);
	const unsigned strings = tally_x86_bit(TALLY_X86_RSI) | tally_x86_bit(TALLY_X86_RDI) |
				 tally_x86_bit(TALLY_X86_RCX) | tally_x86_bit(TALLY_X86_RAX);
	if ((opcode & 0xf8) == 0xb8) /* mov */
		return tally_x86_bit(low);
	if ((opcode & 0xf8) == 0xb0)
		return tally_x86_bit(of_byte(decoded, low));
	if ((opcode & 0xf8) == 0x90 && low) /* xchg */
		return tally_x86_bit(low) | tally_x86_bit(TALLY_X86_RAX);
	if (opcode < 0x38 && (opcode & 7) >= 4 && (opcode & 7) < 6)
		return tally_x86_bit(TALLY_X86_RAX);
	if ((opcode & 0xfc) == 0xa0 || opcode == 0xdf)
		return tally_x86_bit(TALLY_X86_RAX);
	if ((opcode & 0xfe) == 0x98) /* cltq, cqto */
		return tally_x86_bit(TALLY_X86_RAX) | tally_x86_bit(TALLY_X86_RDX);
	if ((opcode >= 0xa4 && opcode <= 0xaf && (opcode & 0xfe) != 0xa8) ||
	    (opcode & 0xfc) == 0x6c || (opcode & 0xfc) == 0xe0)
		return strings;
	return 0;
}

/* True for lea 0(%reg),%reg and mov %reg,%reg, which JIT compilers use as padding (Mono). */
static bool keeps_register(const struct tally_x86_instruction *decoded)
{
	enum { SIB_RSP = 0x24 };
	const uint8_t *bytes = decoded->bytes;
	uint8_t modrm = bytes[1], operand = modrm & 7;
	bool is_same = !(decoded->rex & TALLY_X86_REX_R) == !(decoded->rex & TALLY_X86_REX_B) &&
		       (modrm >> 3 & 7) == operand;
	if (!(decoded->rex & TALLY_X86_REX_W) || !is_same)
		return false;
	if (bytes[0] == 0x89 || bytes[0] == 0x8b)
		return modrm >> 6 == 3;
	size_t at = 2 + (operand == 4), size = modrm >> 6 == 1 ? 1 : 4;
	if (bytes[0] != 0x8d || modrm >> 6 == 0 || modrm >> 6 == 3 || decoded->length != at + size)
		return false;
	if (operand == 4 && (bytes[2] != SIB_RSP || decoded->rex & TALLY_X86_REX_X))
		return false;
	return !tally_x86_immediate(bytes + at, size == 1);
}

unsigned tally_x86_written(const struct tally_x86_instruction *decoded)
{
	uint8_t opcode = decoded->bytes[0];
	unsigned fixed = written_by_opcode(decoded);
	if (decoded->length < 2)
		return fixed;
	if (keeps_register(decoded))
		return 0;
	if (opcode == 0x62 || (opcode >= 0xc4 && opcode <= 0xc5))
		return written_by_vex(decoded);
	if (opcode != 0x0f)
		return fixed | written_by_operands(decoded);
	uint8_t second = decoded->bytes[1];
	const unsigned four = tally_x86_bit(TALLY_X86_RAX) | tally_x86_bit(TALLY_X86_RBX) |
			      tally_x86_bit(TALLY_X86_RCX) | tally_x86_bit(TALLY_X86_RDX);
	if (second == 0xa2) /* cpuid */
		return four;
	bool is_cmpxchg = (second & 0xfe) == 0xb0 || second == 0xc7;
	/* syscall; xgetbv, rdtscp; rdtsc, rdmsr, rdpmc */
	bool writes_fixed = second == 0x05 || second == 0x01 || (second >= 0x30 && second <= 0x34);
	if (is_cmpxchg || writes_fixed)
		return tally_x86_bit(written_by_0f(decoded)) | tally_x86_bit(TALLY_X86_RAX) |
		       tally_x86_bit(TALLY_X86_RDX) | tally_x86_bit(TALLY_X86_RCX) |
		       tally_x86_bit(TALLY_X86_R11);
	bool is_byte = (second & 0xf0) == 0x90 || second == 0xc0; /* setcc; xadd */
	if (is_byte && decoded->length > 2)
		return tally_x86_bit(
			       of_byte(decoded, tally_x86_operand(decoded, decoded->bytes[2]))) |
		       tally_x86_bit(
			       of_byte(decoded, tally_x86_middle(decoded, decoded->bytes[2])));
	return tally_x86_bit(written_by_0f(decoded));
}

/* ---- where it goes -------------------------------------------------------- */

bool tally_x86_is_call(const struct tally_x86_instruction *decoded)
{
	return decoded->bytes[0] == 0xe8 ||
	       (decoded->bytes[0] == 0xff && decoded->length > 1 &&
		(decoded->bytes[1] >> 3 & 6) == 2);
}

bool tally_x86_is_return(const struct tally_x86_instruction *decoded)
{
	return (decoded->bytes[0] & 0xfe) == 0xc2;
}

enum tally_x86_flow tally_x86_flow(const struct tally_x86_instruction *decoded, int64_t *distance)
{
	const uint8_t *bytes = decoded->bytes, opcode = bytes[0];
	uint8_t second = decoded->length > 1 ? bytes[1] : 0, middle = second >> 3 & 7;
	if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0 || opcode == 0xeb)
		*distance = (int8_t)second;
	if ((opcode & 0xf0) == 0x70 || (opcode & 0xfc) == 0xe0)
		return TALLY_X86_BRANCH;
	if (opcode == 0x0f && (second & 0xf0) == 0x80) {
		*distance = tally_x86_immediate(bytes + 2, false);
		return TALLY_X86_BRANCH;
	}
	if (opcode == 0xe9)
		*distance = tally_x86_immediate(bytes + 1, false);
	if (opcode == 0xe9 || opcode == 0xeb)
		return TALLY_X86_JUMP;
	if (opcode == 0xe8 || (opcode == 0xff && (middle == 2 || middle == 3)))
		return TALLY_X86_CALL;
	if (opcode == 0xff && (middle == 4 || middle == 5))
		return TALLY_X86_INDIRECT;
	/* ret, lret, int3, iret, hlt; ud2, ud1, ud0 */
	static const uint8_t ENDS[] = { 0xc2, 0xc3, 0xca, 0xcb, 0xcc, 0xcf, 0xf4 };
	bool is_undefined = opcode == 0x0f && (second == 0x0b || second == 0xb9 || second == 0xff);
	bool is_end = is_undefined || memchr(ENDS, opcode, sizeof(ENDS));
	if (is_end)
		return TALLY_X86_END;
	return TALLY_X86_ON;
}
