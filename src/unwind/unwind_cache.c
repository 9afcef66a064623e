#include "unwind/unwind_cache.h"

#include "base/huge.h"

#include <stdlib.h>
#include <string.h>

enum { HUGE_BYTES = 2 << 20 };

struct tally_unwind_cache *tally_unwind_cache_new(void)
{
	_Static_assert(sizeof(struct tally_unwind_cache) <= HUGE_BYTES, "one huge page");
	struct tally_unwind_cache *cache = aligned_alloc(HUGE_BYTES, HUGE_BYTES);
	if (cache) {
		tally_huge_advise(cache, HUGE_BYTES);
		memset(cache, 0, sizeof(*cache)); /* zero: an address that is no code's */
	}
	return cache;
}

void tally_unwind_cache_free(struct tally_unwind_cache *cache)
{
	free(cache);
}
