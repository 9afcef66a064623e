/* Two tables with linear probing: the map doubles at three quarters full, the set of keys at half.
 * Removal moves later slots back into the gap, so no slot has to be marked as deleted. */
#include "base/map.h"

#include "base/extremes.h"
#include "base/huge.h"

#include <errno.h>
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
	if (!slot->used)
		return NULL;
	return &slot->value;
}

static bool grow(struct tally_map *map)
{
	size_t capacity = tally_max_u64(map->capacity * 2, 64);
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

enum { CAPACITY_MIN = 1024 };

static uint64_t *find_key(const struct tally_key_set *set, uint64_t key)
{
	size_t at = key & (set->capacity - 1);
	while (set->keys[at] && set->keys[at] != key)
		at = (at + 1) & (set->capacity - 1);
	return &set->keys[at];
}

static int grow_set(struct tally_key_set *set)
{
	struct tally_key_set grown = { .count = set->count, .capacity = 2 * set->capacity };
	if (!grown.capacity)
		grown.capacity = CAPACITY_MIN;
	grown.keys = calloc(grown.capacity, sizeof(*grown.keys));
	if (!grown.keys)
		return -ENOMEM;
	for (size_t i = 0; i < set->capacity; i++)
		if (set->keys[i])
			*find_key(&grown, set->keys[i]) = set->keys[i];
	free(set->keys);
	*set = grown;
	return 0;
}

int tally_key_set_put(struct tally_key_set *set, uint64_t key)
{
	if (2 * set->count >= set->capacity && grow_set(set) < 0)
		return -ENOMEM;
	if (!key)
		key = 1;
	uint64_t *slot = find_key(set, key);
	bool is_new = !*slot;
	*slot = key;
	set->count += is_new;
	return is_new;
}

void tally_key_set_release(struct tally_key_set *set)
{
	free(set->keys);
	*set = (struct tally_key_set){ 0 };
}
