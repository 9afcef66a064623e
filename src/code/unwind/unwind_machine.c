/* Register layouts of x86-64, i386 and arm64, and the way from the bits of the kernel's register
 * masks to DWARF's numbers.  All other machines share a layout without registers. */
#include "unwind/unwind_internal.h"

#include <elf.h>
#include <string.h>

/* DWARF's numbers of the registers in x86's asm/perf_regs.h: ax bx cx dx si di bp sp ip, then flags
 * and segments, r8–r15 from bit 16. */
enum { X86_BITS = 24, X86_NONE = TALLY_UNWIND_REGISTERS };
static const uint8_t X86_REGISTERS[X86_BITS] = {
	0,        3,        2,        1,        4, 5, 6,  7,  16, X86_NONE, X86_NONE, X86_NONE,
	X86_NONE, X86_NONE, X86_NONE, X86_NONE, 8, 9, 10, 11, 12, 13,       14,       15
};

static const uint8_t I386_REGISTERS[] = { 0, 3, 1, 2, 6, 7, 5, 4, 8 };

static enum tally_unwind_machine host(void)
{
#if defined(__x86_64__)
	return TALLY_UNWIND_X86_64;
#elif defined(__aarch64__)
	return TALLY_UNWIND_ARM64;
#else
	return TALLY_UNWIND_OTHER;
#endif
}

const struct tally_unwind_layout *tally_unwind_layout(enum tally_unwind_machine machine)
{
	/* System V ABI for x86-64, figure 3.36; DWARF for the Arm 64-bit architecture, 4.1. */
	static const struct tally_unwind_layout X86_64 = {
		.count = 17,
		.sp = 7,
		.fp = 6,
		.pc = 16,
		.word = 8,
		.return_register = 16,
		.top_of_pair = 16
	};
	static const struct tally_unwind_layout I386 = {
		.count = 9,
		.sp = 4,
		.fp = 5,
		.pc = 8,
		.word = 4,
		.return_register = 8,
		.top_of_pair = 8
	};
	static const struct tally_unwind_layout ARM64 = { .count = 33,
							  .sp = 31,
							  .fp = 29,
							  .pc = 32,
							  .word = 8,
							  .return_register = 30,
							  .has_signed_returns = true };
	static const struct tally_unwind_layout OTHER = { .word = 8 };
	if (machine == TALLY_UNWIND_HOST)
		machine = host();
	switch (machine) {
	case TALLY_UNWIND_X86_64: return &X86_64;
	case TALLY_UNWIND_ARM64: return &ARM64;
	case TALLY_UNWIND_I386: return &I386;
	default: return &OTHER;
	}
}

enum tally_unwind_machine tally_unwind_machine_of_elf(unsigned machine)
{
	switch (machine) {
	case EM_X86_64: return TALLY_UNWIND_X86_64;
	case EM_AARCH64: return TALLY_UNWIND_ARM64;
	case EM_386: return TALLY_UNWIND_I386;
	default: return TALLY_UNWIND_OTHER;
	}
}

enum tally_unwind_machine tally_unwind_machine_named(const char *name)
{
	if (!name || !*name)
		return TALLY_UNWIND_HOST;
	if (strcmp(name, "x86_64") == 0)
		return TALLY_UNWIND_X86_64;
	if (name[0] == 'i' && name[1] && strcmp(name + 2, "86") == 0)
		return TALLY_UNWIND_I386;
	if (strcmp(name, "aarch64") == 0)
		return TALLY_UNWIND_ARM64;
	return TALLY_UNWIND_OTHER;
}

enum tally_unwind_machine tally_unwind_machine_of_registers(enum tally_unwind_machine machine,
							    uint64_t abi)
{
	enum { ABI_32 = 1, ABI_64 = 2 };
	const struct tally_unwind_layout *layout = tally_unwind_layout(machine);
	bool is_x86 = layout == tally_unwind_layout(TALLY_UNWIND_X86_64) ||
		      layout == tally_unwind_layout(TALLY_UNWIND_I386);
	if (abi == ABI_32)
		return is_x86 ? TALLY_UNWIND_I386 : TALLY_UNWIND_OTHER;
	if (abi == ABI_64)
		return machine;
	return TALLY_UNWIND_OTHER;
}

unsigned tally_unwind_stack_pointer(enum tally_unwind_machine machine)
{
	return tally_unwind_layout(machine)->sp;
}

uint64_t tally_unwind_regs_mask(enum tally_unwind_machine machine)
{
	const struct tally_unwind_layout *layout = tally_unwind_layout(machine);
	if (!layout->count)
		return 0;
	if (layout->has_signed_returns)
		return TALLY_UNWIND_REGS_MASK_ARM64;
	return TALLY_UNWIND_REGS_MASK;
}

uint64_t tally_unwind_return_mask(enum tally_unwind_machine machine)
{
	const struct tally_unwind_layout *layout = tally_unwind_layout(machine);
	if (!layout->has_signed_returns)
		return 0;
	return 1ull << layout->return_register;
}

bool tally_unwind_registers(enum tally_unwind_machine machine, const uint64_t *words, uint64_t mask,
			    uint64_t registers[TALLY_UNWIND_REGISTERS])
{
	const struct tally_unwind_layout *layout = tally_unwind_layout(machine);
	uint64_t seen = 0;
	memset(registers, 0, TALLY_UNWIND_REGISTERS * sizeof(*registers));
	for (; mask; mask &= mask - 1, words++) {
		unsigned bit = (unsigned)__builtin_ctzll(mask);
		/* arm64's bits are DWARF's numbers: x0–x30 sp pc. */
		unsigned reg = bit;
		if (layout->word == 4)
			reg = bit < sizeof(I386_REGISTERS) ? I386_REGISTERS[bit] : X86_NONE;
		else if (!layout->has_signed_returns)
			reg = bit < X86_BITS ? X86_REGISTERS[bit] : X86_NONE;
		if (reg < layout->count) {
			registers[reg] = *words;
			seen |= 1ull << reg;
		}
	}
	return layout->count && (seen >> layout->sp & 1) && (seen >> layout->pc & 1);
}
