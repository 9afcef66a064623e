/* Sets of ways, and which of them gives way.
 *
 * struct vsim_cache, of the outer levels, replaces what was least recently used: a set is an array in the order of use, so
 * that the search for a line and its move to the front are one pass, which mostly ends after a step or two.
 *
 * struct vsim_first, of the first level, replaces what was not used recently: a line that is used is marked; the first without
 * a mark gives way; when all have one, all lose it before.  CPUs' first levels do about that.  On recorded accesses (gzip, xz,
 * SQLite, Python, gcc) it misses within 3 % as often as LRU does, but for SQLite: of data 0.028 % instead of 0.024, of code
 * 1.3 % instead of 1.4.  Lines that come in turn push each other out as with LRU.  What it is here for: using a marked line
 * changes nothing, and most of the lines in use are marked, where LRU has one line a set whose use changes nothing.  MIT. */
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

#endif
