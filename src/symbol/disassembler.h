/* Machine code → text, with where it jumps: by libLLVM, loaded when it is wanted.
 *
 * Pure but for the library: bytes in, text out; the bytes are untrusted.  TALLY_LIBLLVM in the
 * environment names the library to load, for machines where it has another name.  One thread at a
 * time uses a disassembler.
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
	TALLY_INSTRUCTION_JUMP, /* goes to `target`, always or on a condition */
	TALLY_INSTRUCTION_CALL, /* goes to `target`, and comes back */
	TALLY_INSTRUCTION_DATA, /* bytes that are no instruction */
};

enum { TALLY_INSTRUCTION_TEXT_MAX = 192 };

struct tally_instruction {
	enum tally_instruction_kind kind;
	uint32_t size;      /* bytes; never 0 */
	uint64_t target;    /* of jumps and calls */
	/* what it reads or takes the address of, where that is fixed; 0: nothing */
	uint64_t reference;
	/* "addq $1, %rax": mnemonic, blank, operands.  Of jumps and calls `operand` is where the
	 * target's address stands in it, up to its end; else the text's length. */
	char text[TALLY_INSTRUCTION_TEXT_MAX];
	size_t operand;
};

/* For code of an ELF machine (EM_X86_64 …).  `is_intel` is x86's other syntax.  -ENOTSUP: no such
 * machine in the library or here; -ENOENT with a hint: no library. */
int tally_disassembler_open(unsigned machine, bool is_64bit, bool is_big_endian, bool is_intel,
			    struct tally_disassembler **out, struct tally_error *err);

/* The instruction that `bytes` (`available` of them, never 0), which lie at `address`, begin
 * with. */
void tally_disassemble(struct tally_disassembler *disassembler, const uint8_t *bytes,
		       size_t available, uint64_t address, struct tally_instruction *out);

void tally_disassembler_close(struct tally_disassembler *disassembler); /* NULL is fine */

#endif
