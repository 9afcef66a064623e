#include "unwind/unwind_cache.h"

#include <stdlib.h>

struct tally_unwind_cache *tally_unwind_cache_new(void)
{
	return calloc(1, sizeof(struct tally_unwind_cache)); /* zero: an address that is no code's */
}

void tally_unwind_cache_free(struct tally_unwind_cache *cache)
{
	free(cache);
}
