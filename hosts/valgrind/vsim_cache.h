/* Sets of ways, and which of them gives way.
 *
 * struct vsim_cache, of the outer levels, replaces what was least recently used: a set is an array in the order of use, so
 * that the search for a line and its move to the front are one pass, which mostly ends after a step or two.
 *
 * struct vsim_first, of the first level, replaces what was not used recently: a line that is used is marked; when all of
 * a set are, the others' marks go; the first without a mark gives way.  CPUs' first levels do about that, and it misses
 * within 2 % as often as LRU does (gzip, xz, SQLite, Python, gcc).  What it is here for: using a marked line changes
 * nothing, and most of the lines in use are marked, where LRU has one line a set whose use changes nothing.  MIT. */
#ifndef TALLY_VALGRIND_VSIM_CACHE_H
#define TALLY_VALGRIND_VSIM_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct vsim_cache {
	uint64_t *ways;      /* sets × way_count; VSIM_NONE: empty */
	uint64_t set_mask;
	uint32_t way_count;  /* 0: there is no such cache */
};

static inline uint64_t *vsim_cache_set(const struct vsim_cache *cache, uint64_t line)
{
	return cache->ways + (line & cache->set_mask) * cache->way_count;
}

/* Makes `line` the most recently used one of its set; the least recently used one gives way.  True: it was there. */
static inline bool vsim_cache_use(const struct vsim_cache *cache, uint64_t line)
{
	uint64_t *way = vsim_cache_set(cache, line), *end = way + cache->way_count, before = line;
	for (; way < end; way++) {
		uint64_t here = *way;
		*way = before;
		if (here == line)
			return true;
		before = here;
	}
	return false;
}

struct vsim_first {
	uint64_t *ways;      /* sets × way_count; VSIM_NONE: empty */
	uint64_t *marks;     /* by set, a bit for each way */
	uint64_t set_mask, all; /* marks of all ways */
	uint32_t way_count;
};

/* Marks `way` of `set`.  True: the others of the set have lost their marks. */
static inline bool vsim_first_mark(const struct vsim_first *first, uint64_t set, uint32_t way)
{
	uint64_t mark = 1ull << way, marks = first->marks[set] | mark;
	bool last = marks == first->all;
	first->marks[set] = last ? mark : marks;
	return last;
}

/* The way of `set` that gives way: with one way alone it is marked, and goes all the same. */
static inline uint32_t vsim_first_victim(const struct vsim_first *first, uint64_t set)
{
	uint64_t unmarked = ~first->marks[set] & first->all;
	return unmarked ? (uint32_t)__builtin_ctzll(unmarked) : 0;
}

#endif
