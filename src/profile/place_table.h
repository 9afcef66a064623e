/* Addresses → places, and places → small numbers.
 *
 * What an address means is looked up in its task's maps once, and remembered as long as those maps stay.
 * Not thread-safe.
 */
#ifndef TALLY_PROFILE_PLACE_TABLE_H
#define TALLY_PROFILE_PLACE_TABLE_H

#include "base/map.h"
#include "profile/names.h"

struct tally_place_memory;

struct tally_place_table {
	struct { struct tally_place *items; size_t count, capacity; } places;
	struct tally_map index;
	struct tally_place_memory *memory; /* what the last addresses were, by a hash of theirs */
	uint64_t era; /* of `memory` */
};

/* The number of a place; UINT32_MAX when memory is out. */
uint32_t tally_place_table_intern(struct tally_place_table *table, const struct tally_place *place);

/* The place of an address in the maps of a process (`kernel`: in the kernel's) as they are now; `maps` is
 * their generation.  `before`: bytes by which the address is moved to lie in the call. */
uint32_t tally_place_table_find(struct tally_place_table *table, const struct tally_tasks *tasks, uint32_t pid,
				bool kernel, uint64_t maps, uint64_t address, uint32_t before);

void tally_place_table_release(struct tally_place_table *table);

#endif
