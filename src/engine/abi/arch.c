/* Tables of register names, indexed by the bits of perf's register masks, and of the beginnings of
 * machine names.  No function of libc is called. */
#include "abi/abi.h"

#include <stddef.h>

enum { BITS = 64 };

static const char *const x86_registers[BITS] = {
	"AX",
	"BX",
	"CX",
	"DX",
	"SI",
	"DI",
	"BP",
	"SP",
	"IP",
	"FLAGS",
	"CS",
	"SS",
	"DS",
	"ES",
	"FS",
	"GS",
	"R8",
	"R9",
	"R10",
	"R11",
	"R12",
	"R13",
	"R14",
	"R15",
	/* two words each */
	[32] = "XMM0",
	"XMM0",
	"XMM1",
	"XMM1",
	"XMM2",
	"XMM2",
	"XMM3",
	"XMM3",
	"XMM4",
	"XMM4",
	"XMM5",
	"XMM5",
	"XMM6",
	"XMM6",
	"XMM7",
	"XMM7",
	"XMM8",
	"XMM8",
	"XMM9",
	"XMM9",
	"XMM10",
	"XMM10",
	"XMM11",
	"XMM11",
	"XMM12",
	"XMM12",
	"XMM13",
	"XMM13",
	"XMM14",
	"XMM14",
	"XMM15",
	"XMM15",
};
static const char *const arm64_registers[BITS] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",        "x10", "x11",
	"x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",       "x22", "x23",
	"x24", "x25", "x26", "x27", "x28", "x29", "lr",  "sp",  "pc",  [46] = "vg",
};
static const char *const arm_registers[BITS] = {
	"r0", "r1", "r2",  "r3", "r4", "r5", "r6", "r7",
	"r8", "r9", "r10", "fp", "ip", "sp", "lr", "pc",
};
static const char *const riscv_registers[BITS] = {
	"pc", "ra", "sp", "gp", "tp",  "t0",  "t1", "t2", "s0", "s1", "a0",
	"a1", "a2", "a3", "a4", "a5",  "a6",  "a7", "s2", "s3", "s4", "s5",
	"s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
};
static const char *const powerpc_registers[BITS] = {
	"r0",    "r1",   "r2",    "r3",   "r4",      "r5",    "r6",    "r7",    "r8",    "r9",
	"r10",   "r11",  "r12",   "r13",  "r14",     "r15",   "r16",   "r17",   "r18",   "r19",
	"r20",   "r21",  "r22",   "r23",  "r24",     "r25",   "r26",   "r27",   "r28",   "r29",
	"r30",   "r31",  "nip",   "msr",  "orig_r3", "ctr",   "link",  "xer",   "ccr",   "softe",
	"trap",  "dar",  "dsisr", "sier", "mmcra",   "mmcr0", "mmcr1", "mmcr2", "mmcr3", "sier2",
	"sier3", "pmc1", "pmc2",  "pmc3", "pmc4",    "pmc5",  "pmc6",  "sdar",  "siar",
};
static const char *const s390_registers[BITS] = {
	"R0",  "R1",  "R2",   "R3",   "R4",   "R5",   "R6",   "R7",   "R8",   "R9",  "R10", "R11",
	"R12", "R13", "R14",  "R15",  "FP0",  "FP1",  "FP2",  "FP3",  "FP4",  "FP5", "FP6", "FP7",
	"FP8", "FP9", "FP10", "FP11", "FP12", "FP13", "FP14", "FP15", "MASK", "PC",
};

static bool begins(const char *text, const char *start)
{
	while (*start && *text == *start)
		text++, start++;
	return !*start;
}

enum tally_arch tally_arch_named(const char *machine)
{
	static const struct { const char *start; enum tally_arch arch;
	} starts[] = {
		{ "x86_64", TALLY_ARCH_X86_64 }, { "amd64", TALLY_ARCH_X86_64 },
		{ "aarch64", TALLY_ARCH_ARM64 }, { "arm64", TALLY_ARCH_ARM64 },
		{ "arm", TALLY_ARCH_ARM },       { "riscv", TALLY_ARCH_RISCV },
		{ "ppc", TALLY_ARCH_POWERPC },   { "powerpc", TALLY_ARCH_POWERPC },
		{ "s390", TALLY_ARCH_S390 },
	};
	if (!machine)
		return TALLY_ARCH_UNKNOWN;
	if (machine[0] == 'i' && machine[1] >= '3' && machine[1] <= '6' &&
	    begins(machine + 2, "86"))
		return TALLY_ARCH_I386;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (begins(machine, starts[i].start))
			return starts[i].arch;
	return TALLY_ARCH_UNKNOWN;
}

enum tally_arch tally_arch_host(void)
{
#if defined(__x86_64__)
	return TALLY_ARCH_X86_64;
#elif defined(__i386__)
	return TALLY_ARCH_I386;
#elif defined(__aarch64__)
	return TALLY_ARCH_ARM64;
#elif defined(__arm__)
	return TALLY_ARCH_ARM;
#elif defined(__riscv)
	return TALLY_ARCH_RISCV;
#elif defined(__powerpc__)
	return TALLY_ARCH_POWERPC;
#elif defined(__s390__)
	return TALLY_ARCH_S390;
#else
	return TALLY_ARCH_UNKNOWN;
#endif
}

/* Returns the 64-bit machine of a related pair. */
static enum tally_arch family(enum tally_arch arch)
{
	if (arch == TALLY_ARCH_I386)
		return TALLY_ARCH_X86_64;
	if (arch == TALLY_ARCH_ARM)
		return TALLY_ARCH_ARM64;
	return arch;
}

bool tally_arch_related(enum tally_arch one, enum tally_arch other)
{
	return !one || !other || family(one) == family(other);
}

const char *tally_arch_register(enum tally_arch arch, unsigned bit)
{
	static const char *const *const registers[] = {
		[TALLY_ARCH_X86_64] = x86_registers,   [TALLY_ARCH_I386] = x86_registers,
		[TALLY_ARCH_ARM64] = arm64_registers,  [TALLY_ARCH_ARM] = arm_registers,
		[TALLY_ARCH_RISCV] = riscv_registers,  [TALLY_ARCH_POWERPC] = powerpc_registers,
		[TALLY_ARCH_S390] = s390_registers,
	};
	if (bit < BITS && registers[arch])
		return registers[arch][bit];
	return NULL;
}
