/* The machines that recordings come from, by what uname(2) calls them there.  Freestanding. */
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

/* "x86_64", "i686", "aarch64", "armv7l", "riscv64", "ppc64le", "s390x" …; NULL is unknown. */
enum tally_arch tally_arch_named(const char *machine);

/* The one that this is compiled for. */
enum tally_arch tally_arch_host(void);

/* Whether a kernel of one runs programs of the other: x86-64 and i386, arm64 and arm.  Unknown ones
 * are like any. */
bool tally_arch_related(enum tally_arch one, enum tally_arch other);

/* The register of a bit of attr.sample_regs_user and sample_regs_intr (asm/perf_regs.h of each), as
 * perf calls it; NULL where there is none. */
const char *tally_arch_register(enum tally_arch arch, unsigned bit);

#endif
