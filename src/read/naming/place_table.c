/* The slow path of a look-up: finds the place in the task's maps, gives it a number by a hash map,
 * and fills the cache, which the header reads inline. */
#include "naming/naming.h"

#include "base/vector.h"

#include <stdlib.h>

uint32_t tally_place_table_intern(struct tally_place_table *table, const struct tally_place *place)
{
	const struct tally_place unknown = { .file = TALLY_FILE_NONE };
	if (table->merges_unknown && place->file == TALLY_FILE_NONE &&
	    place->address != TALLY_PLACE_CUT && !tally_place_is_waker(place))
		place = &unknown;
	uint64_t kind = (uint64_t)place->is_late << 1 | place->before,
		 key = tally_hash64(place->address << 2 | kind) + place->file;
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&table->index, key, &added);
		if (!slot)
			return UINT32_MAX;
		if (added) {
			*slot = table->places.count;
			if (*slot >= UINT32_MAX - 1 ||
			    tally_vector_push(&table->places, *place) < 0)
				return UINT32_MAX;
			return (uint32_t)*slot;
		}
		if (*slot >= table->places.count)
			continue;
		const struct tally_place *there = &table->places.items[*slot];
		if (there->file == place->file && there->address == place->address &&
		    there->before == place->before && there->is_late == place->is_late)
			return (uint32_t)*slot;
	}
}

uint32_t tally_place_table_look_up(struct tally_place_table *table, const struct tally_tasks *tasks,
				   uint32_t pid, bool kernel, uint64_t maps, uint64_t address,
				   enum tally_address_aim aim)
{
	uint64_t era = maps >> TALLY_PLACE_STATE_BITS;
	/* `meaning` has no room for the high bits of the generation: when they change, all
	 * remembered results are void. */
	if (!table->memory || table->era != era) {
		free(table->memory);
		table->memory = calloc((size_t)1 << TALLY_PLACE_MEMORY_BITS,
				       sizeof(*table->memory));
		if (!table->memory)
			return UINT32_MAX;
		table->era = era;
	}
	uint16_t before = aim == TALLY_ADDRESS_OF_RETURN;
	struct tally_place place = tally_place_of(tasks, pid, kernel, address - before);
	place.before = before;
	place.is_late = aim == TALLY_ADDRESS_LATE;
	uint32_t number = tally_place_table_intern(table, &place),
		 meaning = tally_place_meaning(kernel, maps, aim);
	if (number != UINT32_MAX)
		*tally_place_table_remembered(table, address,
					      meaning) = (struct tally_place_memory){
			.address = address, .meaning = meaning + 1, .place = number
		};
	return number;
}

void tally_place_table_release(struct tally_place_table *table)
{
	tally_vector_release(&table->places);
	tally_map_release(&table->index);
	free(table->memory);
	table->memory = NULL;
}
