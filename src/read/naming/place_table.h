/* Finds the place of an address, and gives each place a small number.
 *
 * A cache keeps the results of the last look-ups; they hold as long as the task's maps stay the
 * same.  Not thread-safe.
 */
#ifndef TALLY_NAMING_PLACE_TABLE_H
#define TALLY_NAMING_PLACE_TABLE_H

#include "base/map.h"
#include "naming/names.h"

/* An entry of the cache.  16 bytes, so that four fit in a cache line. */
struct tally_place_memory {
	uint64_t address;
	/* tally_place_meaning() + 1; 0: the entry is free */
	uint32_t meaning;
	uint32_t place;
};

enum { TALLY_PLACE_MEMORY_BITS = 14, TALLY_PLACE_STATE_BITS = 28 /* in `meaning` */ };

/* What an address tells. */
enum tally_address_aim {
	TALLY_ADDRESS_EXACT,
	TALLY_ADDRESS_OF_RETURN, /* the call is in front of it */
	TALLY_ADDRESS_LATE,      /* the place is late (struct tally_place) */
};

struct tally_place_table {
	struct { struct tally_place *items; size_t count, capacity; } places;
	struct tally_map index;
	struct tally_place_memory *memory; /* the cache, by a hash of address and meaning */
	uint64_t era; /* the high bits of the maps' generation that `memory` belongs to */
	/* set by callers that only need names: all addresses outside mapped files become one place,
	 * with address 0 */
	bool merges_unknown;
};

/* Returns the number of a place, added when new; UINT32_MAX when memory is out. */
uint32_t tally_place_table_intern(struct tally_place_table *table, const struct tally_place *place);

/* The slow path of tally_place_table_find(): looks up an address that is not in the cache, and adds
 * it. */
uint32_t tally_place_table_look_up(struct tally_place_table *table, const struct tally_tasks *tasks,
				   uint32_t pid, bool kernel, uint64_t maps, uint64_t address,
				   enum tally_address_aim aim);

static inline struct tally_place_memory *tally_place_table_remembered(
	const struct tally_place_table *table, uint64_t address, uint32_t meaning)
{
	uint64_t hash = (address ^ (uint64_t)meaning << 40) * 0x9e3779b97f4a7c15ull;
	return &table->memory[hash >> (64 - TALLY_PLACE_MEMORY_BITS)];
}

/* Packs what an address's place depends on: the low bits of the maps' generation, the kernel flag
 * and the aim. */
static inline uint32_t tally_place_meaning(bool kernel, uint64_t maps, enum tally_address_aim aim)
{
	uint64_t states = (uint64_t)1 << TALLY_PLACE_STATE_BITS;
	return (uint32_t)(maps & (states - 1)) << 3 | (uint32_t)kernel << 2 | (uint32_t)aim;
}

/* Returns the number of an address's place in the current maps of a process (`kernel`: of the
 * kernel); `maps` is the generation of these maps.  1 is subtracted from a return address, which
 * then lies in the call instruction.  Returns UINT32_MAX when memory is out. */
static inline uint32_t tally_place_table_find(struct tally_place_table *table,
					      const struct tally_tasks *tasks, uint32_t pid,
					      bool kernel, uint64_t maps, uint64_t address,
					      enum tally_address_aim aim)
{
	uint32_t meaning = tally_place_meaning(kernel, maps, aim);
	if (__builtin_expect(table->memory && table->era == maps >> TALLY_PLACE_STATE_BITS, 1)) {
		const struct tally_place_memory *there = tally_place_table_remembered(
			table, address, meaning);
		if (__builtin_expect(there->address == address && there->meaning == meaning + 1, 1))
			return there->place;
	}
	return tally_place_table_look_up(table, tasks, pid, kernel, maps, address, aim);
}

void tally_place_table_release(struct tally_place_table *table);

#endif
