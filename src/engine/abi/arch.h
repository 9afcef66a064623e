/* The machines that recordings come from, by the names that uname(2) gives them.  Freestanding. */
#ifndef TALLY_ABI_ARCH_H
#define TALLY_ABI_ARCH_H

#include <stdbool.h>

enum tally_arch {
	TALLY_ARCH_UNKNOWN,
	TALLY_ARCH_X86_64,
	TALLY_ARCH_I386,
	TALLY_ARCH_ARM64,
	TALLY_ARCH_ARM,
	TALLY_ARCH_RISCV,
	TALLY_ARCH_POWERPC,
	TALLY_ARCH_S390,
};

/* Returns the machine named "x86_64", "i686", "aarch64", "armv7l", "riscv64", "ppc64le", "s390x" …;
 * UNKNOWN for others and NULL. */
enum tally_arch tally_arch_named(const char *machine);

/* Returns the machine that this is compiled for. */
enum tally_arch tally_arch_host(void);

/* True if a kernel of one runs programs of the other: x86-64 and i386, arm64 and arm.  An unknown
 * machine counts as related to any. */
bool tally_arch_related(enum tally_arch one, enum tally_arch other);

/* Returns perf's name of the register for a bit of attr.sample_regs_user and sample_regs_intr (each
 * machine's asm/perf_regs.h), or NULL if there is none. */
const char *tally_arch_register(enum tally_arch arch, unsigned bit);

#endif
