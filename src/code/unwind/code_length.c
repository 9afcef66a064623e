/* Finds the length of an x86-64 instruction (Intel SDM volume 2, appendix A: the opcode maps).
 *
 * An instruction consists of prefixes, an opcode in one of four maps, and operands.  Most opcodes
 * have a ModRM byte, which says where an operand is; it may be followed by a SIB byte and a
 * displacement.  The last part is an immediate operand, if the opcode has one.  The maps are
 * strings here, with one letter for each opcode:
 *
 *     .  no operand bytes            m  ModRM
 *     b  8-bit immediate             B  ModRM, then b
 *     z  32-bit immediate; 16-bit behind prefix 66 without REX.W
 *     Z  ModRM, then z               v  like z, but 64-bit behind REX.W
 *     w  16-bit immediate            e  16-bit, then 8-bit immediate
 *     o  64-bit address              t  ModRM, then b where its middle bits are 0 or 1
 *     T  like t, but with z          !  none in 64-bit mode, or a prefix
 */
#include "unwind/code_walk.h"

#include <stdbool.h>

static const char MAP_1[256 + 1] =
	"mmmmbz!!mmmmbz!!mmmmbz!!mmmmbz!!" /* 00 */
	"mmmmbz!!mmmmbz!!mmmmbz!!mmmmbz!!" /* 20 */
	"!!!!!!!!!!!!!!!!................" /* 40 */
	"!!!m!!!!zZbB....bbbbbbbbbbbbbbbb" /* 60 */
	"BZ!Bmmmmmmmmmmmm..........!....." /* 80 */
	"oooo....bz......bbbbbbbbvvvvvvvv" /* a0 */
	"BBw.!!BZe.w..b!.mmmm!!!.mmmmmmmm" /* c0 */
	"bbbbbbbbzz!b....!.!!..tT......mm"; /* e0 */

static const char MAP_2[256 + 1] =
	"mmmm!.....!.!m.!mmmmmmmmmmmmmmmm" /* 00; 0f is 3DNow!'s */
	"mmmm!!!!mmmmmmmm........!!!!!!!!" /* 20; 38 and 3a lead to other maps */
	"mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm" /* 40 */
	"mmmmmmmmmmmmmmmmBBBBmmm.mmmmmmmm" /* 60 */
	"zzzzzzzzzzzzzzzzmmmmmmmmmmmmmmmm" /* 80; jumps keep 32 bits behind prefix 66 */
	"...mBm!!...mBmmmmmmmmmmmmmBmmmmm" /* a0 */
	"mmBmBBBm........mmmmmmmmmmmmmmmm" /* c0 */
	"mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"; /* e0 */

struct instruction {
	const uint8_t *at, *end;
	bool has_66, has_rex_w;
};

static bool take(struct instruction *instruction, size_t bytes)
{
	if ((size_t)(instruction->end - instruction->at) < bytes)
		return false;
	instruction->at += bytes;
	return true;
}

/* Takes ModRM, SIB and displacement; sets *middle to ModRM's middle bits.  Returns false when bytes
 * are missing. */
static bool take_operand(struct instruction *instruction, unsigned *middle)
{
	if (!take(instruction, 1))
		return false;
	uint8_t byte = instruction->at[-1];
	unsigned mode = byte >> 6, memory = byte & 7;
	*middle = byte >> 3 & 7;
	if (mode == 3)
		return true;
	if (memory == 4) {
		if (!take(instruction, 1))
			return false;
		memory = instruction->at[-1] & 7;
	}
	if (mode == 0 && memory != 5)
		return true;
	return take(instruction, mode == 1 ? 1 : 4);
}

static bool take_rest(struct instruction *instruction, char kind)
{
	unsigned middle;
	size_t z = 4;
	if (instruction->has_66 && !instruction->has_rex_w)
		z = 2;
	switch (kind) {
	case '.': return true;
	case 'm': return take_operand(instruction, &middle);
	case 'b': return take(instruction, 1);
	case 'z': return take(instruction, z);
	case 'w': return take(instruction, 2);
	case 'e': return take(instruction, 3);
	case 'o': return take(instruction, 8);
	case 'v': return take(instruction, instruction->has_rex_w ? 8 : z);
	case 'B': return take_operand(instruction, &middle) && take(instruction, 1);
	case 'Z': return take_operand(instruction, &middle) && take(instruction, z);
	case 't': return take_operand(instruction, &middle) && (middle > 1 || take(instruction, 1));
	case 'T': return take_operand(instruction, &middle) && (middle > 1 || take(instruction, z));
	}
	return false;
}

static bool has_immediate(unsigned map, uint8_t opcode)
{
	return map == 3 || (map == 1 && MAP_2[opcode] == 'B');
}

/* Takes the rest of a VEX or EVEX instruction.  Its payload names the map; immediates have 8
 * bits. */
static bool take_vex(struct instruction *instruction, unsigned map, size_t payload)
{
	unsigned middle;
	if (!take(instruction, payload + 1))
		return false;
	uint8_t opcode = instruction->at[-1];
	if (map == 1 && opcode == 0x77) /* vzeroupper */
		return true;
	return take_operand(instruction, &middle) &&
	       (!has_immediate(map, opcode) || take(instruction, 1));
}

/* Takes the rest of an XOP instruction (AMD).  Map 8 has 8-bit immediates, map 10 32-bit ones. */
static bool take_xop(struct instruction *instruction, unsigned map)
{
	unsigned middle;
	size_t immediate = map == 8;
	if (map == 10)
		immediate = 4;
	return take(instruction, 3) && take_operand(instruction, &middle) &&
	       take(instruction, immediate);
}

static bool take_0f(struct instruction *instruction)
{
	unsigned middle;
	if (!take(instruction, 1))
		return false;
	uint8_t opcode = instruction->at[-1];
	if (opcode == 0x38)
		return take(instruction, 1) && take_operand(instruction, &middle);
	if (opcode == 0x3a)
		return take(instruction, 1) && take_operand(instruction, &middle) &&
		       take(instruction, 1);
	if (opcode >= 0x80 && opcode <= 0x8f)
		return take(instruction, 4);
	return take_rest(instruction, MAP_2[opcode]);
}

static bool take_prefixes(struct instruction *instruction)
{
	for (; instruction->at < instruction->end; instruction->at++) {
		uint8_t byte = *instruction->at;
		bool is_segment = byte == 0x26 || byte == 0x2e || byte == 0x36 || byte == 0x3e ||
				  byte == 0x64 || byte == 0x65;
		if (byte == 0x66)
			instruction->has_66 = true;
		else if (!is_segment && byte != 0x67 && byte != 0xf0 && byte != 0xf2 &&
			 byte != 0xf3)
			break;
	}
	if (instruction->at < instruction->end && (*instruction->at & 0xf0) == 0x40)
		instruction->has_rex_w = *instruction->at++ & 8;
	return instruction->at < instruction->end;
}

/* Takes the bytes behind the opcode.  Returns false when they are missing or invalid. */
static bool take_by_map(struct instruction *instruction, uint8_t opcode)
{
	enum { VEX_3 = 0xc4, VEX_2 = 0xc5, EVEX = 0x62, ESCAPE = 0x0f };
	bool has_more = instruction->at < instruction->end;
	switch (opcode) {
	case ESCAPE: return take_0f(instruction);
	case VEX_2: return take_vex(instruction, 1, 1);
	case VEX_3: return has_more && take_vex(instruction, *instruction->at & 0x1f, 2);
	case EVEX: return has_more && take_vex(instruction, *instruction->at & 7, 3);
	default: return take_rest(instruction, MAP_1[opcode]);
	}
}

size_t tally_code_length(const uint8_t *code, size_t size)
{
	enum { LENGTH_MAX = 15, XOP = 0x8f, XOP_MAP_MIN = 8, CALL = 0xe8 };
	struct instruction instruction = { .at = code,
					   .end = code + (size < LENGTH_MAX ? size : LENGTH_MAX) };
	if (!take_prefixes(&instruction))
		return 0;
	uint8_t opcode = *instruction.at++;
	size_t left = (size_t)(instruction.end - instruction.at);
	bool is_whole;
	if (opcode == XOP && left && (*instruction.at & 0x1f) >= XOP_MAP_MIN)
		is_whole = take_xop(&instruction, *instruction.at & 0x1f);
	else if ((opcode & 0xfe) == CALL && instruction.has_66 && !instruction.has_rex_w)
		is_whole = false; /* Intel's CPUs take 32 bits, AMD's 16 */
	else
		is_whole = take_by_map(&instruction, opcode);
	if (!is_whole)
		return 0;
	return (size_t)(instruction.at - code);
}
