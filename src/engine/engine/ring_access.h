/* Accesses to memory that others may read or write at the same time: an interrupt on this CPU,
 * another CPU, the task that maps the pages.  ring_buffer.c, aux.c and userpage.c make no others,
 * so that a test can replace them and walk through every interleaving (it defines this header's
 * guard and provides these functions).
 *
 * Three strengths, weakest first:
 *   engine_shared_*           one access, whole, which the compiler neither repeats nor invents;
 *                             no order
 *   engine_interrupt_fence()  orders accesses against interrupts of this CPU: for the compiler
 *                             only, since a CPU sees its own accesses in program order
 *   acquire, release          order accesses against other CPUs
 *
 * The words of a page have 64 bits on every machine.  On a machine with narrower words only the low
 * half is written and read, as in a 32-bit kernel: the upper half stays 0, and readers compute
 * modulo 2^32. */
#ifndef TALLY_ENGINE_RING_ACCESS_H
#define TALLY_ENGINE_RING_ACCESS_H

#include "engine/engine_atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline uintptr_t engine_shared_load(const uintptr_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline void engine_shared_store(uintptr_t *at, uintptr_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

/* If false, *expected is the value found.  For words that only one CPU at a time changes: atomic
 * against interrupts on that CPU, which on x86 needs no bus lock. */
static inline bool engine_shared_compare_exchange(uintptr_t *at, uintptr_t *expected,
						  uintptr_t value)
{
#ifdef ENGINE_CHANGES_IN_PLACE
	bool same;

	__asm__ __volatile__("cmpxchg %3, %1" :
			     "=@ccz"(same), "+m"(*at), "+a"(*expected) :
			     "r"(value));
	return same;
#else
	return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
#endif
}

static inline bool engine_shared_compare_exchange_acquire(uintptr_t *at, uintptr_t *expected,
							  uintptr_t value)
{
	return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static inline void engine_shared_store_release(uintptr_t *at, uintptr_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static inline uintptr_t engine_shared_exchange(uintptr_t *at, uintptr_t value)
{
	return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

/* Returns the new value. */
static inline uintptr_t engine_shared_add(uintptr_t *at, uintptr_t more)
{
	return __atomic_add_fetch(at, more, __ATOMIC_RELAXED);
}

static inline void engine_interrupt_fence(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Stores before it become visible before stores after it. */
static inline void engine_store_fence(void)
{
#ifdef __SANITIZE_THREAD__
	/* gcc's thread sanitizer does not support fences: they are a compile error. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

typedef uintptr_t __attribute__((may_alias)) engine_page_word;

static inline uintptr_t *engine_page_low(const uint64_t *at)
{
	const engine_page_word *word = (const engine_page_word *)at;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word += sizeof(uint64_t) / sizeof(uintptr_t) - 1;
#endif
	return (uintptr_t *)word;
}

static inline uintptr_t engine_page_load_acquire(const uint64_t *at)
{
	return __atomic_load_n((const engine_page_word *)engine_page_low(at), __ATOMIC_ACQUIRE);
}

static inline void engine_page_store_release(uint64_t *at, uintptr_t value)
{
	__atomic_store_n((engine_page_word *)engine_page_low(at), value, __ATOMIC_RELEASE);
}

/* For fields of the user page that its seqlock guards: a reader that sees halves tries again. */
static inline void engine_page_store64(uint64_t *at, uint64_t value)
{
#if UINTPTR_MAX > UINT32_MAX
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
#else
	*(volatile uint64_t *)at = value;
#endif
}

static inline void engine_shared_store32(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

static inline void engine_shared_store32_release(uint32_t *at, uint32_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static inline uint32_t engine_shared_load32(const uint32_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static inline bool engine_shared_compare_exchange32(uint32_t *at, uint32_t *expected,
						    uint32_t value)
{
	return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

/* A record's bytes. */
static inline void engine_ring_write(uint8_t *to, const void *from, size_t size)
{
	__builtin_memcpy(to, from, size);
}

static inline void engine_ring_zero(uint8_t *to, size_t size)
{
	__builtin_memset(to, 0, size);
}

#endif
