/* 64-bit counts that a hit may change at any instruction.
 *
 * On machines with 64-bit atomic operations these are the compiler's, relaxed: only one CPU changes
 * a count at a time, and others read it through that CPU or after that CPU has let go of it.  A
 * machine without them (armv6 and older without libatomic) builds with -DTALLY_NO_ATOMIC64, and its
 * host provides engine_atomic64_enter() and _leave(): docs/porting.md. */
#ifndef TALLY_ENGINE_ATOMIC_H
#define TALLY_ENGINE_ATOMIC_H

#include <stdint.h>

#ifdef TALLY_NO_ATOMIC64
/* Turn all interrupts off and on again, on a machine with one CPU.  The host provides them. */
uintptr_t tally_engine_atomic64_enter(void);
void tally_engine_atomic64_leave(uintptr_t state);

static inline uint64_t engine_load64(const uint64_t *at)
{
	uintptr_t state = tally_engine_atomic64_enter();
	uint64_t value = *(const volatile uint64_t *)at;
	tally_engine_atomic64_leave(state);
	return value;
}

static inline uint64_t engine_exchange64(uint64_t *at, uint64_t value)
{
	uintptr_t state = tally_engine_atomic64_enter();
	uint64_t old = *at;
	*(volatile uint64_t *)at = value;
	tally_engine_atomic64_leave(state);
	return old;
}

static inline uint64_t engine_add64(uint64_t *at, uint64_t more)
{
	uintptr_t state = tally_engine_atomic64_enter();
	uint64_t value = *at + more;
	*(volatile uint64_t *)at = value;
	tally_engine_atomic64_leave(state);
	return value;
}

static inline void engine_store64(uint64_t *at, uint64_t value)
{
	engine_exchange64(at, value);
}

static inline void engine_count64(uint64_t *at, uint64_t more)
{
	engine_add64(at, more);
}

static inline int engine_compare_exchange64(uint64_t *at, uint64_t *expected, uint64_t value)
{
	uintptr_t state = tally_engine_atomic64_enter();
	int same = *at == *expected;
	if (same)
		*(volatile uint64_t *)at = value;
	else
		*expected = *at;
	tally_engine_atomic64_leave(state);
	return same;
}
#else
static inline uint64_t engine_load64(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline void engine_store64(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

static inline uint64_t engine_exchange64(uint64_t *at, uint64_t value)
{
	return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

/* Returns the new value. */
static inline uint64_t engine_add64(uint64_t *at, uint64_t more)
{
	return __atomic_add_fetch(at, more, __ATOMIC_RELAXED);
}

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define ENGINE_CHANGES_IN_PLACE 1
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef ENGINE_CHANGES_IN_PLACE
#endif
#endif
#endif

/* For counts that only one CPU changes: atomic against interrupts on that CPU.  On x86 that is one
 * instruction, which costs a fifth of an operation that is atomic across CPUs. */
static inline void engine_count64(uint64_t *at, uint64_t more)
{
#ifdef ENGINE_CHANGES_IN_PLACE
	__asm__ __volatile__("addq %1, %0" : "+m"(*at) : "er"(more) : "cc");
#else
	__atomic_fetch_add(at, more, __ATOMIC_RELAXED);
#endif
}

static inline int engine_compare_exchange64(uint64_t *at, uint64_t *expected, uint64_t value)
{
	return __atomic_compare_exchange_n(at, expected, value, 0, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}
#endif

#endif
