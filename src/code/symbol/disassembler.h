/* Disassembles machine code and finds jump targets, with libLLVM, which is loaded on first use.
 *
 * Pure except for loading the library: bytes in, text out; the bytes are untrusted.  The
 * environment's TALLY_LIBLLVM names the library, for machines where it has another name.  Only one
 * thread at a time may use a disassembler.
 */
#ifndef TALLY_SYMBOL_DISASSEMBLER_H
#define TALLY_SYMBOL_DISASSEMBLER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_disassembler;

enum tally_instruction_kind {
	TALLY_INSTRUCTION_PLAIN,
	TALLY_INSTRUCTION_JUMP, /* may go to `target` */
	TALLY_INSTRUCTION_CALL, /* goes to `target` and returns */
	TALLY_INSTRUCTION_DATA, /* bytes that are no valid instruction */
};

enum { TALLY_INSTRUCTION_TEXT_MAX = 192 };

struct tally_instruction {
	enum tally_instruction_kind kind;
	uint32_t size;      /* bytes; never 0 */
	uint64_t target;    /* address, for jumps and calls */
	/* fixed address that it reads, writes or computes; 0: none */
	uint64_t reference;
	/* "addq $1, %rax": mnemonic, blank, operands.  For jumps and calls the target's address
	 * begins at `operand` and goes on to the end; otherwise `operand` is the text's length. */
	char text[TALLY_INSTRUCTION_TEXT_MAX];
	size_t operand;
};

/* Opens a disassembler for an ELF machine (EM_X86_64 …).  `is_intel` chooses x86's other syntax.
 * Returns 0; -ENOTSUP when the library or this file lacks the machine; -ENOENT with a hint without
 * the library. */
int tally_disassembler_open(unsigned machine, bool is_64bit, bool is_big_endian, bool is_intel,
			    struct tally_disassembler **out, struct tally_error *err);

/* Disassembles the first instruction of `available` bytes (never 0) that lie at `address`. */
void tally_disassemble(struct tally_disassembler *disassembler, const uint8_t *bytes,
		       size_t available, uint64_t address, struct tally_instruction *out);

void tally_disassembler_close(struct tally_disassembler *disassembler); /* accepts NULL */

#endif
