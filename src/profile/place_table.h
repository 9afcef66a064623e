/* Addresses → places, and places → small numbers.
 *
 * What an address means is looked up in its task's maps once, and remembered as long as those maps
 * stay.  Not thread-safe.
 */
#ifndef TALLY_PROFILE_PLACE_TABLE_H
#define TALLY_PROFILE_PLACE_TABLE_H

#include "base/map.h"
#include "profile/names.h"

/* 16 bytes, so that a cache line has four. */
struct tally_place_memory {
	uint64_t address;
	uint32_t meaning; /* of the maps, kernel or not, `before`; + 1: zero is free */
	uint32_t place;
};

enum { TALLY_PLACE_MEMORY_BITS = 14, TALLY_PLACE_STATE_BITS = 29 /* of maps, in `meaning` */ };

struct tally_place_table {
	struct { struct tally_place *items; size_t count, capacity; } places;
	struct tally_map index;
	struct tally_place_memory *memory; /* what the last addresses were, by a hash of theirs */
	uint64_t era; /* of `memory` */
	/* set by who wants names alone: addresses in no file are one place, of address 0 */
	bool merges_unknown;
};

/* The number of a place; UINT32_MAX when memory is out. */
uint32_t tally_place_table_intern(struct tally_place_table *table, const struct tally_place *place);

/* What _find has to look up. */
uint32_t tally_place_table_look_up(struct tally_place_table *table, const struct tally_tasks *tasks,
				   uint32_t pid, bool kernel, uint64_t maps, uint64_t address,
				   uint32_t before);

static inline struct tally_place_memory *tally_place_table_remembered(
	const struct tally_place_table *table, uint64_t address, uint32_t meaning)
{
	uint64_t hash = (address ^ (uint64_t)meaning << 40) * 0x9e3779b97f4a7c15ull;
	return &table->memory[hash >> (64 - TALLY_PLACE_MEMORY_BITS)];
}

static inline uint32_t tally_place_meaning(bool kernel, uint64_t maps, uint32_t before)
{
	uint64_t states = (uint64_t)1 << TALLY_PLACE_STATE_BITS;
	return (uint32_t)(maps & (states - 1)) << 2 | (uint32_t)kernel << 1 | (before & 1);
}

/* The place of an address in the maps of a process (`kernel`: in the kernel's) as they are now;
 * `maps` is their generation.  `before`: bytes by which the address is moved to lie in the call.
 * UINT32_MAX when memory is out. */
static inline uint32_t tally_place_table_find(struct tally_place_table *table,
					      const struct tally_tasks *tasks, uint32_t pid,
					      bool kernel, uint64_t maps, uint64_t address,
					      uint32_t before)
{
	uint32_t meaning = tally_place_meaning(kernel, maps, before);
	if (__builtin_expect(table->memory && table->era == maps >> TALLY_PLACE_STATE_BITS, 1)) {
		const struct tally_place_memory *there = tally_place_table_remembered(
			table, address, meaning);
		if (__builtin_expect(there->address == address && there->meaning == meaning + 1, 1))
			return there->place;
	}
	return tally_place_table_look_up(table, tasks, pid, kernel, maps, address, before);
}

void tally_place_table_release(struct tally_place_table *table);

#endif
