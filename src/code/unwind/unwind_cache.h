/* Remembers the rules of addresses.  Internal to this room.
 *
 * One rule holds for a stretch of a function, often for most of it.  So the cache remembers
 * stretches, grouped by regions of code.  A sample's ip has rarely been seen before, but it nearly
 * always lies beside one that has; and the return addresses of one function share a line of the
 * CPU's cache.  A lookup reads one line, or also its neighbour: when a line is needed for another
 * region, its content moves to the neighbour.
 *
 * The key is the region's address in the process and the space, which is the number of a set of
 * mappings.  A process whose mappings change gets another number, so nothing must ever be removed.
 */
#ifndef TALLY_UNWIND_CACHE_H
#define TALLY_UNWIND_CACHE_H

#include "unwind/unwind_rule.h"

enum {
	TALLY_UNWIND_CACHE_BITS = 15,
	TALLY_UNWIND_PLACE_BITS = 9, /* of an offset in a region */
	TALLY_UNWIND_REGION = 1 << TALLY_UNWIND_PLACE_BITS,
	TALLY_UNWIND_STRETCHES = 6,
	TALLY_UNWIND_RULE_ALIGN = 8,
};

/* A line of the CPU's cache.  A stretch consists of the rule's address (46 bits of it: rules lie at
 * multiples of eight), the offset of its first byte in the region, and the number of bytes behind
 * that one.  A stretch of 0 is empty, and so are those behind it. */
struct tally_unwind_region {
	uint64_t address, space; /* address of the region's first byte; number of the mappings */
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

/* Returns the rule of an address in the region, or NULL if it is not known. */
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
	if (!tally_unwind_region_is(region, address, space))
		return NULL;
	return tally_unwind_region_rule(region, address);
}

/* Remembers the rule of an address.  It holds for at least `below` bytes before the address and
 * `above` bytes behind it. */
void tally_unwind_cache_put(struct tally_unwind_cache *cache, uint64_t address, uint64_t space,
			    const struct tally_unwind_rule *rule, uint64_t below, uint64_t above);

#endif
