/* The rules of addresses, remembered: inside this room.
 *
 * One rule holds for a stretch of a function, often for most of it.  So what is remembered is
 * stretches, by regions of code: a sample's ip is rarely one that was seen before, but nearly
 * always beside one, and the return addresses of one function share a line of the CPU's cache.  One
 * look tells, or a second one at the line's neighbour, where what was in a line goes when that is
 * needed.  Keyed by the region's address in the process and the space, the number of a set of
 * mappings, so that nothing is ever to be removed: a process whose mappings change gets another
 * number.
 */
#ifndef TALLY_UNWIND_UNWIND_CACHE_H
#define TALLY_UNWIND_UNWIND_CACHE_H

#include "unwind/unwind_rule.h"

enum {
	TALLY_UNWIND_CACHE_BITS = 15,
	TALLY_UNWIND_PLACE_BITS = 9, /* in a region */
	TALLY_UNWIND_REGION = 1 << TALLY_UNWIND_PLACE_BITS,
	TALLY_UNWIND_STRETCHES = 6,
	TALLY_UNWIND_RULE_ALIGN = 8,
};

/* A line of the CPU's cache.  A stretch is the rule's address (46 bits of it: rules lie at
 * multiples of eight), the first of the region's bytes that it is for, and how many behind that; 0:
 * none, and none behind it. */
struct tally_unwind_region {
	uint64_t address, space; /* of the region's first byte */
	uint64_t stretches[TALLY_UNWIND_STRETCHES];
};

struct tally_unwind_cache {
	struct tally_unwind_region regions[1 << TALLY_UNWIND_CACHE_BITS];
};

static inline struct tally_unwind_region *tally_unwind_cache_region(
	struct tally_unwind_cache *cache, uint64_t address, uint64_t space)
{
	uint64_t mixed = (address / TALLY_UNWIND_REGION + space * 0x9e3779b97f4a7c15ull) *
			 0xd6e8feb86659fd93ull;
	return &cache->regions[mixed >> (64 - TALLY_UNWIND_CACHE_BITS)];
}

static inline struct tally_unwind_region *tally_unwind_cache_other(
	struct tally_unwind_cache *cache, const struct tally_unwind_region *region)
{
	return &cache->regions[(region - cache->regions) ^ 1];
}

static inline bool tally_unwind_region_is(const struct tally_unwind_region *region,
					  uint64_t address, uint64_t space)
{
	return address - region->address < TALLY_UNWIND_REGION && region->space == space;
}

/* The rule of an address of the region's, or NULL: not known. */
static inline const struct tally_unwind_rule *tally_unwind_region_rule(
	const struct tally_unwind_region *region, uint64_t address)
{
	const uint64_t mask = TALLY_UNWIND_REGION - 1;
	for (unsigned i = 0; i < TALLY_UNWIND_STRETCHES; i++) {
		uint64_t stretch = region->stretches[i];
		if (((address - (stretch >> TALLY_UNWIND_PLACE_BITS)) & mask) <= (stretch & mask))
			return (const void *)(uintptr_t)((stretch >> 2 * TALLY_UNWIND_PLACE_BITS) *
							 TALLY_UNWIND_RULE_ALIGN);
	}
	return NULL;
}

static inline const struct tally_unwind_rule *tally_unwind_cache_get(
	struct tally_unwind_cache *cache, uint64_t address, uint64_t space)
{
	const struct tally_unwind_region *region = tally_unwind_cache_region(cache, address, space);
	if (!tally_unwind_region_is(region, address, space))
		region = tally_unwind_cache_other(cache, region);
	return tally_unwind_region_is(region, address, space)
		       ? tally_unwind_region_rule(region, address)
		       : NULL;
}

/* Remembers the rule of an address, which holds for `below` bytes before it and `above` behind it,
 * at least. */
void tally_unwind_cache_put(struct tally_unwind_cache *cache, uint64_t address, uint64_t space,
			    const struct tally_unwind_rule *rule, uint64_t below, uint64_t above);

#endif
