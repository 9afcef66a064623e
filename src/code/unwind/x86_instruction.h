/* An instruction of x86-64: its prefixes and operands, the registers that it writes, and where it
 * goes.  Its length is known before: tally_code_length().  Pure. */
#ifndef TALLY_UNWIND_X86_INSTRUCTION_H
#define TALLY_UNWIND_X86_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers, as code numbers them. */
enum {
	TALLY_X86_RAX,
	TALLY_X86_RCX,
	TALLY_X86_RDX,
	TALLY_X86_RBX,
	TALLY_X86_RSP,
	TALLY_X86_RBP,
	TALLY_X86_RSI,
	TALLY_X86_RDI,
	TALLY_X86_R11 = 11,
	TALLY_X86_NONE = 99,
};

enum { TALLY_X86_REX_W = 8, TALLY_X86_REX_R = 4, TALLY_X86_REX_X = 2, TALLY_X86_REX_B = 1 };

struct tally_x86_instruction {
	const uint8_t *bytes; /* from the opcode on; the code's */
	size_t length;        /* of `bytes` */
	uint8_t rex;          /* 0: none */
	bool has_66, has_f2, has_f3, has_lock; /* prefixes */
};

/* `length`: of the instruction that `code` begins with. */
struct tally_x86_instruction tally_x86_decode(const uint8_t *code, size_t length);

/* Returns an immediate or a distance, of 8 bits (`is_byte`) or 32. */
int32_t tally_x86_immediate(const uint8_t *bytes, bool is_byte);

/* Returns the number of a register: a bit of REX extends the three bits `low`. */
unsigned tally_x86_register(const struct tally_x86_instruction *decoded, unsigned low,
			    uint8_t rex_bit);

/* Returns the register that the middle of a ModRM byte names. */
unsigned tally_x86_middle(const struct tally_x86_instruction *decoded, uint8_t modrm);

/* Returns the register that a ModRM byte's operand is; TALLY_X86_NONE: it is in memory. */
unsigned tally_x86_operand(const struct tally_x86_instruction *decoded, uint8_t modrm);

/* Finds the operand n(register), in an instruction whose ModRM byte is bytes[1].  Returns the
 * register, and sets *offset to n; TALLY_X86_NONE for other operands. */
unsigned tally_x86_base(const struct tally_x86_instruction *decoded, int32_t *offset);

/* True if an instruction copies one register to another, whole. */
bool tally_x86_is_move(const struct tally_x86_instruction *decoded, unsigned *from, unsigned *to);

/* A register's bit; 0 for TALLY_X86_NONE. */
static inline unsigned tally_x86_bit(unsigned reg)
{
	if (reg >= 16)
		return 0;
	return 1u << reg;
}

/* Returns the registers that an instruction writes, a bit for each; not those of push and pop. */
unsigned tally_x86_written(const struct tally_x86_instruction *decoded);

enum tally_x86_flow {
	TALLY_X86_ON,
	TALLY_X86_BRANCH,   /* on, or to the target */
	TALLY_X86_JUMP,     /* to the target */
	TALLY_X86_INDIRECT, /* through a register or memory */
	TALLY_X86_CALL,
	TALLY_X86_END,
};

/* Returns where an instruction goes.  Sets *distance to the target's distance from behind the
 * instruction, if it has one. */
enum tally_x86_flow tally_x86_flow(const struct tally_x86_instruction *decoded, int64_t *distance);

bool tally_x86_is_call(const struct tally_x86_instruction *decoded);
bool tally_x86_is_return(const struct tally_x86_instruction *decoded);

#endif
