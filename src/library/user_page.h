/* Reads counters from their user pages, without a system call.
 *
 * The kernel maps a page for each event (struct perf_event_mmap_page, perf_event_open(2)).  While
 * the event is on a hardware counter, the page has the counter's number, and what to add to the
 * counter's value.  Whenever that changes (the thread is switched out, moved to another CPU, the
 * event is rotated away), the kernel changes `lock` before and after: so if `lock` is the same
 * before and behind the loads, they belong together.  The thread reads its own events: the kernel
 * changes the page on the same CPU, between two instructions of the reader.  So the order of the
 * compiled instructions matters, the CPU's does not (tools/lib/perf/mmap.c,
 * include/uapi/linux/perf_event.h).
 *
 * A group is read in one pass: the locks of all its pages are noted before the first load and
 * compared behind the last.  So all values are of one stay on the CPU.
 *
 * The functions that read counter and clock are parameters, and the loads are a macro: the tests
 * pass pages and counters of their own, and change the page between any two loads.  The conformance
 * suite reads the kernel's and the engine's pages with this code (tests/conformance/hardware.c). */
#ifndef TALLY_LIBRARY_USER_PAGE_H
#define TALLY_LIBRARY_USER_PAGE_H

#include "tally/perf_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TALLY_PAGES_MAX = 8,  /* events of a group that are read from pages */
	TALLY_PAGE_TRIES = 16 /* passes before the caller uses read(2): each was interrupted */
};

/* volatile: loaded where it is written, once.  On a machine of 32 bits a value may be of two halves;
 * then the lock has changed. */
#ifndef TALLY_PAGE_LOAD
#define TALLY_PAGE_LOAD(member) (*(const volatile __typeof__(member) *)&(member))
#endif

/* The counters and the clock of the CPU, as user code reads them (user_counters.h).  A number is the
 * page's index − 1. */
struct tally_user_counters {
	bool (*is_counter)(uint32_t number); /* it stands for one counter that counts up */
	uint64_t (*counter)(void *context, uint32_t number);
	uint64_t (*clock)(void *context); /* the cycles that time_mult and time_shift convert */
	void *context;
};

/* Times of a counter, or of a group's leader. */
struct tally_page_times {
	uint64_t enabled_ns, running_ns;
};

/* Returns the counter's value, which has `width` bits and a sign, as 64 bits. */
static inline int64_t tally_page_extend(uint64_t value, unsigned width)
{
	unsigned unused = 64 - width;
	return (int64_t)(value << unused) >> unused;
}

/* Returns the ns since the kernel wrote the page's times. */
static inline int64_t tally_page_elapsed(uint64_t cycles, uint64_t mult, unsigned shift,
					 uint64_t offset)
{
	uint64_t whole = cycles >> shift, rest = cycles & (((uint64_t)1 << shift) - 1);
	return (int64_t)(offset + whole * mult + (rest * mult >> shift));
}

/* Reads the times up to now.  Returns false if the page does not tell how to. */
static inline __attribute__((always_inline)) bool tally_page_times(
	const struct tally_user_page *page, const struct tally_user_counters *cpu,
	struct tally_page_times *times)
{
	uint64_t capabilities = TALLY_PAGE_LOAD(page->capabilities);
	if (!(capabilities & TALLY_CAP_USER_TIME))
		return false;
	uint64_t cycles = cpu->clock(cpu->context);
	if (capabilities & TALLY_CAP_USER_TIME_SHORT) {
		uint64_t start = TALLY_PAGE_LOAD(page->time_cycles);
		cycles = start + ((cycles - start) & TALLY_PAGE_LOAD(page->time_mask));
	}
	unsigned shift = TALLY_PAGE_LOAD(page->time_shift);
	if (shift > 63)
		return false;
	int64_t elapsed = tally_page_elapsed(cycles, TALLY_PAGE_LOAD(page->time_mult), shift,
					     TALLY_PAGE_LOAD(page->time_offset));
	/* the clocks of two CPUs may differ by a few ns */
	if (elapsed < 0)
		elapsed = 0;
	times->enabled_ns = TALLY_PAGE_LOAD(page->time_enabled) + (uint64_t)elapsed;
	times->running_ns = TALLY_PAGE_LOAD(page->time_running) + (uint64_t)elapsed;
	return true;
}

/* Reads one event's value; call it between two looks at `lock`.  Returns false if the event is on
 * no counter that user code can read. */
static inline __attribute__((always_inline)) bool tally_page_value(
	const struct tally_user_page *page, const struct tally_user_counters *cpu, uint64_t *value)
{
	const uint64_t needed = TALLY_CAP_BIT0_IS_DEPRECATED | TALLY_CAP_USER_RDPMC;
	uint32_t index = TALLY_PAGE_LOAD(page->index);
	unsigned width = TALLY_PAGE_LOAD(page->pmc_width);
	if (!index || (TALLY_PAGE_LOAD(page->capabilities) & needed) != needed || !width ||
	    width > 64 || !cpu->is_counter(index - 1))
		return false;
	uint64_t offset = (uint64_t)TALLY_PAGE_LOAD(page->offset);
	/* the sum wraps: a counter starts below zero, and the offset makes up for it */
	*value = offset + (uint64_t)tally_page_extend(cpu->counter(cpu->context, index - 1), width);
	return true;
}

/* Reads the values of `count` events (1 to TALLY_PAGES_MAX) of the calling thread, and the times of
 * the first.  `times` may be NULL: then values that need scaling are refused.  Returns false if
 * read(2) must be used: an event is on no counter, the page lacks what is asked for, or each pass
 * was interrupted. */
static inline __attribute__((always_inline)) bool tally_pages_read(
	struct tally_user_page *const *pages, unsigned count, const struct tally_user_counters *cpu,
	uint64_t *values, struct tally_page_times *times)
{
	uint32_t locks[TALLY_PAGES_MAX];
	for (unsigned tries = 0; tries < TALLY_PAGE_TRIES; tries++) {
		bool is_known = true, is_same = true;
		uint32_t odd = 0;
		for (unsigned i = 0; i < count; i++) {
			locks[i] = TALLY_PAGE_LOAD(pages[i]->lock);
			odd |= locks[i] & 1;
		}
		if (odd) /* half written: its number may be of no counter, and the read would trap */
			continue;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		for (unsigned i = 0; i < count && is_known; i++)
			is_known = tally_page_value(pages[i], cpu, &values[i]);
		if (is_known && times)
			is_known = tally_page_times(pages[0], cpu, times);
		else if (is_known)
			is_known = TALLY_PAGE_LOAD(pages[0]->time_enabled) ==
				   TALLY_PAGE_LOAD(pages[0]->time_running);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		for (unsigned i = 0; i < count; i++)
			is_same &= TALLY_PAGE_LOAD(pages[i]->lock) == locks[i];
		if (is_same)
			return is_known;
	}
	return false;
}

#endif
