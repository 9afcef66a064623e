/* Unwinds the same stack in every way: by the interpreter (the reference), by compiled rules, with
 * a cache that learns and one that already knows, and with the stack itself as the previous one.
 * All must agree. */
#ifndef TALLY_TESTS_UNWIND_WAYS_H
#define TALLY_TESTS_UNWIND_WAYS_H

#include "unwind/unwind.h"

#include <stdlib.h>
#include <string.h>

enum { UNWIND_WAYS_FRAMES = 1024 };

struct unwind_way {
	uint64_t addresses[UNWIND_WAYS_FRAMES];
	bool is_exact[UNWIND_WAYS_FRAMES];
	size_t count;
	enum tally_unwind_end end;
	struct tally_unwind_extent extent;
};

static inline void unwind_one_way(struct tally_unwind_request request, size_t limit,
				  struct unwind_way *way)
{
	request.is_exact = way->is_exact;
	request.extent = &way->extent;
	way->count = tally_unwind(&request, way->addresses, limit, &way->end);
}

static inline bool unwind_ways_are_equal(const struct unwind_way *a, const struct unwind_way *b)
{
	return a->count == b->count && a->end == b->end && a->extent.reached == b->extent.reached &&
	       a->extent.missed == b->extent.missed &&
	       memcmp(a->addresses, b->addresses, a->count * sizeof(*a->addresses)) == 0 &&
	       memcmp(a->is_exact, b->is_exact, a->count * sizeof(*a->is_exact)) == 0;
}

/* Calls tally_unwind() and returns whether all ways agree.  `limit` is at most UNWIND_WAYS_FRAMES.
 * `cache` is any, or NULL for one that lives during the call.  `space` must tell the cache's spaces
 * apart. */
static inline bool unwind_every_way(const struct tally_unwind_request *asked,
				    struct tally_unwind_cache *cache, size_t limit,
				    struct unwind_way *interpreted)
{
	struct tally_unwind_request request = *asked;
	struct tally_unwind_cache *own = cache ? NULL : tally_unwind_cache_new();
	struct tally_unwind_chain *chain = tally_unwind_chain_new();
	struct unwind_way *way = malloc(sizeof(*way));
	if (!way || !chain || (!own && !cache))
		abort();
	request.is_interpreted = true;
	request.cache = NULL;
	unwind_one_way(request, limit, interpreted);
	request.is_interpreted = false;
	unwind_one_way(request, limit, way);
	bool equal = unwind_ways_are_equal(interpreted, way);
	request.cache = cache ? cache : own;
	for (unsigned round = 0; round < 4; round++) {
		request.chain = round < 2 ? NULL : chain;
		unwind_one_way(request, limit, way);
		equal &= unwind_ways_are_equal(interpreted, way);
	}
	free(way);
	tally_unwind_cache_free(own);
	tally_unwind_chain_free(chain);
	return equal;
}

#endif
