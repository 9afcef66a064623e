/* The rules of addresses, remembered: inside this room.
 *
 * One look tells, or a second one at the slot's neighbour, where what was in a slot goes when that is needed.  Keyed by
 * the address in the process and the space, the number of a set of mappings, so that nothing is ever to be removed: a
 * process whose mappings change gets another number.
 */
#ifndef TALLY_UNWIND_UNWIND_CACHE_H
#define TALLY_UNWIND_UNWIND_CACHE_H

#include "unwind/unwind_rule.h"

enum { TALLY_UNWIND_CACHE_BITS = 16 };

struct tally_unwind_cached {
	uint64_t address, space;
	const struct tally_unwind_rule *rule; /* NULL: an empty slot */
};

struct tally_unwind_cache {
	struct tally_unwind_cached slots[1 << TALLY_UNWIND_CACHE_BITS];
};

static inline struct tally_unwind_cached *tally_unwind_cache_slot(struct tally_unwind_cache *cache, uint64_t address,
								  uint64_t space)
{
	uint64_t mixed = (address + space * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
	return &cache->slots[mixed >> (64 - TALLY_UNWIND_CACHE_BITS)];
}

static inline struct tally_unwind_cached *tally_unwind_cache_other(struct tally_unwind_cache *cache,
								   const struct tally_unwind_cached *slot)
{
	return &cache->slots[(slot - cache->slots) ^ 1];
}

static inline bool tally_unwind_cache_has(const struct tally_unwind_cached *slot, uint64_t address, uint64_t space)
{
	return slot->address == address && slot->space == space && slot->rule;
}

#endif
