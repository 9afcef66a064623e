/* The instructions by which user code reads hardware counters and the clock that the kernel's user
 * pages refer to. */
#ifndef TALLY_LIBRARY_USER_COUNTERS_H
#define TALLY_LIBRARY_USER_COUNTERS_H

#include "library/user_page.h"

#include <stdbool.h>
#include <stdint.h>

/* What a page's index − 1 may be, by architecture: user_page.h reads no other number. */

/* Numbers from 2^30 on are the fixed counters.  Not read: fixed counter 3, the slots of topdown
 * analysis, which the kernel sets to 0 at each read(2) without a word on the page; and 2^29, where
 * one register has the shares of all topdown events (x86_pmu_event_idx() in arch/x86/events/core.c,
 * intel_update_topdown_event() in intel/core.c). */
static inline bool tally_x86_64_is_counter(uint32_t number)
{
	enum { FIXED = 1 << 30, FIXED_SLOTS = FIXED + 3, FIXED_MAX = 16, MAX = 64 };
	if (number < FIXED)
		return number < MAX;
	return number < FIXED + FIXED_MAX && number != FIXED_SLOTS;
}

/* 0 to 30 are event counters, 31 is the cycle counter (armv8pmu_user_event_idx() in
 * drivers/perf/arm_pmuv3.c). */
static inline bool tally_arm64_is_counter(uint32_t number)
{
	return number < 32;
}

/* Offsets from the register cycle, 0xc00; 1 is time (pmu_sbi_csr_index() in
 * drivers/perf/riscv_pmu_sbi.c). */
static inline bool tally_riscv64_is_counter(uint32_t number)
{
	return number < 32 && number != 1;
}

/* TALLY_USER_COUNTERS is the instruction that reads a counter, for messages.  NULL: user code can't
 * read any on this architecture. */
#if defined(__x86_64__)

#define TALLY_USER_COUNTERS "rdpmc"
#define TALLY_USER_IS_COUNTER tally_x86_64_is_counter

/* Intel SDM volume 2, RDPMC; bit 30 of the number selects the fixed counters. */
static inline uint64_t tally_user_counter(void *context, uint32_t number)
{
	(void)context;
	uint32_t low, high;
	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(number));
	return (uint64_t)high << 32 | low;
}

static inline uint64_t tally_user_clock(void *context)
{
	(void)context;
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

#elif defined(__aarch64__)

#define TALLY_USER_COUNTERS "mrs"
#define TALLY_USER_IS_COUNTER tally_arm64_is_counter

/* Arm ARM D13: number 31 is the cycle counter, the others are event counters, whose number is part
 * of the instruction. */
#define TALLY_EACH_COUNTER(X) \
	X(0) \
	X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) \
		X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) \
			X(30)

static inline uint64_t tally_user_counter(void *context, uint32_t number)
{
	(void)context;
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

static inline uint64_t tally_user_clock(void *context)
{
	(void)context;
	uint64_t value;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
	return value;
}

#elif defined(__riscv) && __riscv_xlen == 64

#define TALLY_USER_COUNTERS "csrr"
#define TALLY_USER_IS_COUNTER tally_riscv64_is_counter

/* RISC-V unprivileged specification, Zicntr and Zihpm: cycle, time, instret, hpmcounter3 to 31,
 * from 0xc00 on.  The number is part of the instruction. */
#define TALLY_EACH_COUNTER(X) \
	X(0) \
	X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) \
		X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) \
			X(30) X(31)

static inline uint64_t tally_user_counter(void *context, uint32_t number)
{
	(void)context;
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

static inline uint64_t tally_user_clock(void *context)
{
	(void)context;
	uint64_t value;
	__asm__ volatile("rdtime %0" : "=r"(value));
	return value;
}

#else

#define TALLY_USER_COUNTERS NULL
#define TALLY_USER_IS_COUNTER tally_riscv64_is_counter

static inline uint64_t tally_user_counter(void *context, uint32_t number)
{
	(void)context;
	(void)number;
	return 0;
}

static inline uint64_t tally_user_clock(void *context)
{
	(void)context;
	return 0;
}

#endif

/* bench/reads.c has no counters to read, and replaces this by the clock. */
#ifndef TALLY_USER_COUNTER
#define TALLY_USER_COUNTER tally_user_counter
#endif

/* The CPU that this runs on. */
static const struct tally_user_counters tally_this_cpu = {
	.is_counter = TALLY_USER_IS_COUNTER,
	.counter = TALLY_USER_COUNTER,
	.clock = tally_user_clock,
};

#endif
