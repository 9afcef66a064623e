/* Sets of ways, least recently used last: a set is an array in the order of use, so that the search for a line and its
 * move to the front are one pass, which mostly ends after a step or two.  MIT. */
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

#endif
