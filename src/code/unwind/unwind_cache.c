/* Allocates the cache as one huge page, and packs new stretches into it, the newest one first.  The
 * header has the look-up, which is inlined. */
#include "unwind/unwind_internal.h"

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
		tally_unwind_cache_clear(cache); /* no code has address 0 */
	}
	return cache;
}

void tally_unwind_cache_clear(struct tally_unwind_cache *cache)
{
	memset(cache, 0, sizeof(*cache));
}

void tally_unwind_cache_free(struct tally_unwind_cache *cache)
{
	free(cache);
}

/* Packs a stretch.  Returns 0 when the rule's address doesn't fit: the rule is then not
 * remembered. */
static uint64_t stretch_of(const struct tally_unwind_rule *rule, uint64_t from, uint64_t more)
{
	uint64_t number = (uintptr_t)rule / TALLY_UNWIND_RULE_ALIGN,
		 shift = 2 * TALLY_UNWIND_PLACE_BITS;
	bool fits = (uintptr_t)rule % TALLY_UNWIND_RULE_ALIGN == 0 &&
		    number << shift >> shift == number;
	if (!fits)
		return 0;
	return number << shift | from << TALLY_UNWIND_PLACE_BITS | more;
}

void tally_unwind_cache_put(struct tally_unwind_cache *cache, uint64_t address, uint64_t space,
			    const struct tally_unwind_rule *rule, uint64_t below, uint64_t above)
{
	struct tally_unwind_region *region = tally_unwind_cache_region(cache, address, space);
	struct tally_unwind_region *other = tally_unwind_cache_other(cache, region);
	uint64_t at = address % TALLY_UNWIND_REGION, left = TALLY_UNWIND_REGION - 1 - at;
	if (below > at)
		below = at;
	if (above > left)
		above = left;
	uint64_t stretch = stretch_of(rule, at - below, below + above);
	if (!stretch)
		return;
	if (tally_unwind_region_is(other, address, space)) {
		region = other;
	} else if (!tally_unwind_region_is(region, address, space)) {
		*other = *region;
		*region = (struct tally_unwind_region){ .address = address - at, .space = space };
	}
	memmove(&region->stretches[1], &region->stretches[0],
		sizeof(region->stretches) - sizeof(*region->stretches));
	region->stretches[0] = stretch;
}
