#include "base/map.h"

#include "base/huge.h"

#include <stdlib.h>

static struct tally_map_slot *find(struct tally_map_slot *slots, size_t capacity, uint64_t key)
{
	size_t at = tally_hash64(key) & (capacity - 1);
	while (slots[at].used && slots[at].key != key)
		at = (at + 1) & (capacity - 1);
	return &slots[at];
}

uint64_t *tally_map_get(const struct tally_map *map, uint64_t key)
{
	if (!map->capacity)
		return NULL;
	struct tally_map_slot *slot = find(map->slots, map->capacity, key);
	return slot->used ? &slot->value : NULL;
}

static bool grow(struct tally_map *map)
{
	size_t capacity = map->capacity ? map->capacity * 2 : 64;
	struct tally_map_slot *slots = tally_huge_calloc(capacity, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < map->capacity; i++)
		if (map->slots[i].used)
			*find(slots, capacity, map->slots[i].key) = map->slots[i];
	free(map->slots);
	map->slots = slots;
	map->capacity = capacity;
	return true;
}

uint64_t *tally_map_put(struct tally_map *map, uint64_t key, bool *added)
{
	if (map->count * 4 >= map->capacity * 3 && !grow(map))
		return NULL;
	struct tally_map_slot *slot = find(map->slots, map->capacity, key);
	if (added)
		*added = !slot->used;
	if (!slot->used) {
		*slot = (struct tally_map_slot){ .key = key, .used = true };
		map->count++;
	}
	return &slot->value;
}

/* Moves keys up that this key had displaced, so that no search meets a gap on its way. */
bool tally_map_remove(struct tally_map *map, uint64_t key)
{
	if (!map->capacity)
		return false;
	struct tally_map_slot *slots = map->slots;
	size_t mask = map->capacity - 1, gap = (size_t)(find(slots, map->capacity, key) - slots);
	if (!slots[gap].used)
		return false;
	for (size_t at = (gap + 1) & mask; slots[at].used; at = (at + 1) & mask) {
		size_t home = tally_hash64(slots[at].key) & mask;
		if (((at - home) & mask) < ((at - gap) & mask))
			continue; /* the gap is not between its home and its place */
		slots[gap] = slots[at];
		gap = at;
	}
	slots[gap].used = false;
	map->count--;
	return true;
}

void tally_map_release(struct tally_map *map)
{
	free(map->slots);
	*map = (struct tally_map){ 0 };
}
