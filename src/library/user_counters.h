/* The instructions by which user code reads hardware counters and the clock that the kernel's user
 * pages refer to. */
#ifndef TALLY_LIBRARY_USER_COUNTERS_H
#define TALLY_LIBRARY_USER_COUNTERS_H

#include <stdint.h>

/* TALLY_USER_COUNTERS is the instruction that reads a counter, for messages; NULL: user code can't read any on this architecture. */
#if defined(__x86_64__)

#define TALLY_USER_COUNTERS "rdpmc"

/* Intel SDM volume 2, RDPMC; bit 30 of the number selects the fixed counters. */
static inline uint64_t tally_user_counter(uint32_t number)
{
	uint32_t low, high;
	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
	return (uint64_t)high << 32 | low;
}

static inline uint64_t tally_user_clock(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

#elif defined(__aarch64__)

#define TALLY_USER_COUNTERS "mrs"

/* Arm ARM D13: number 31 is the cycle counter, the others are event counters, whose number is part
 * of the instruction. */
#define TALLY_EACH_COUNTER(X) \
	X(0) \
	X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) \
		X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) \
			X(30)

static inline uint64_t tally_user_counter(uint32_t number)
{
	uint64_t value = 0;
	switch (number) {
#define TALLY_READ_COUNTER(N) \
	case N: \
		__asm__ volatile("mrs %0, pmevcntr" #N "_el0" : "=r"(value)); \
		break;
		TALLY_EACH_COUNTER(TALLY_READ_COUNTER)
#undef TALLY_READ_COUNTER
	case 31:
		__asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
		break;
	default:
		break;
	}
	return value;
}

#undef TALLY_EACH_COUNTER

static inline uint64_t tally_user_clock(void)
{
	uint64_t value;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
}

#elif defined(__riscv) && __riscv_xlen == 64

#define TALLY_USER_COUNTERS "csrr"

/* RISC-V unprivileged specification, Zicntr and Zihpm: cycle, time, instret, hpmcounter3 to 31,
 * from 0xc00 on.  The number is part of the instruction. */
#define TALLY_EACH_COUNTER(X) \
	X(0) \
	X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) \
		X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) \
			X(30) X(31)

static inline uint64_t tally_user_counter(uint32_t number)
{
	uint64_t value = 0;
	switch (number) {
#define TALLY_READ_COUNTER(N) \
	case N: \
		__asm__ volatile("csrr %0, 0xc00 + " #N : "=r"(value)); \
		break;
		TALLY_EACH_COUNTER(TALLY_READ_COUNTER)
#undef TALLY_READ_COUNTER
	default:
		break;
	}
	return value;
}

#undef TALLY_EACH_COUNTER

static inline uint64_t tally_user_clock(void)
{
	uint64_t value;
	__asm__ volatile("rdtime %0" : "=r"(value));
	return value;
}

#else

#define TALLY_USER_COUNTERS NULL

static inline uint64_t tally_user_counter(uint32_t number)
{
	(void)number;
	return 0;
}

static inline uint64_t tally_user_clock(void)
{
	return 0;
}

#endif

#endif
