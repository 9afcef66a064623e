#include "profile/place_table.h"

#include "base/vector.h"

#include <stdlib.h>

enum { MEMORY_BITS = 14 };

/* 16 bytes, so that a cache line has four. */
struct tally_place_memory {
	uint64_t address;
	uint32_t meaning; /* of the maps, kernel or not, `before`; + 1: zero is free */
	uint32_t place;
};

uint32_t tally_place_table_intern(struct tally_place_table *table, const struct tally_place *place)
{
	uint64_t key = tally_hash64(place->address << 1 | place->before) + place->file;
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&table->index, key, &added);
		if (!slot)
			return UINT32_MAX;
		if (added) {
			*slot = table->places.count;
			if (*slot >= UINT32_MAX - 1 || tally_vector_push(&table->places, *place) < 0)
				return UINT32_MAX;
			return (uint32_t)*slot;
		}
		if (*slot >= table->places.count)
			continue;
		const struct tally_place *there = &table->places.items[*slot];
		if (there->file == place->file && there->address == place->address && there->before == place->before)
			return (uint32_t)*slot;
	}
}

static uint32_t look_up(struct tally_place_table *table, const struct tally_tasks *tasks, uint32_t pid, bool kernel,
			uint64_t address, uint32_t before)
{
	struct tally_place place = tally_place_of(tasks, pid, kernel, address - before);
	place.before = before;
	return tally_place_table_intern(table, &place);
}

uint32_t tally_place_table_find(struct tally_place_table *table, const struct tally_tasks *tasks, uint32_t pid,
				bool kernel, uint64_t maps, uint64_t address, uint32_t before)
{
	/* `meaning` has room for this many states of maps; with the next one all that is remembered is void. */
	const uint64_t states = 1u << 29;
	if (!table->memory || table->era != maps / states) {
		free(table->memory);
		table->memory = calloc((size_t)1 << MEMORY_BITS, sizeof(*table->memory));
		if (!table->memory)
			return UINT32_MAX;
		table->era = maps / states;
	}
	uint32_t meaning = (uint32_t)(maps % states) << 2 | (uint32_t)kernel << 1 | (before & 1);
	uint64_t hash = (address ^ (uint64_t)meaning << 40) * 0x9e3779b97f4a7c15ull;
	struct tally_place_memory *there = &table->memory[hash >> (64 - MEMORY_BITS)];
	if (there->address == address && there->meaning == meaning + 1)
		return there->place;
	uint32_t place = look_up(table, tasks, pid, kernel, address, before);
	if (place != UINT32_MAX)
		*there = (struct tally_place_memory){ .address = address, .meaning = meaning + 1, .place = place };
	return place;
}

void tally_place_table_release(struct tally_place_table *table)
{
	tally_vector_release(&table->places);
	tally_map_release(&table->index);
	free(table->memory);
	table->memory = NULL;
}
