/* A hash map from a 64-bit key to a 64-bit value: open addressing, linear probing.
 *
 * Zero-initialised is empty.  Not thread-safe.
 */
#ifndef TALLY_BASE_MAP_H
#define TALLY_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_map_slot {
	uint64_t key;
	uint64_t value;
	bool used;
};

struct tally_map {
	struct tally_map_slot *slots;
	size_t count;
	size_t capacity; /* a power of two, or 0 */
};

/* Mixes all bits of a key (splitmix64's finaliser); also used by other hashes. */
static inline uint64_t tally_hash64(uint64_t key)
{
	key ^= key >> 30;
	key *= 0xbf58476d1ce4e5b9ull;
	key ^= key >> 27;
	key *= 0x94d049bb133111ebull;
	return key ^ (key >> 31);
}

/* Returns a pointer to the value, or NULL if the key is absent.  Valid until the next insertion. */
uint64_t *tally_map_get(const struct tally_map *map, uint64_t key);

/* Returns a pointer to the value, which is added as 0 (and *added set to true) if the key is new;
 * NULL if out of memory.  `added` may be NULL. */
uint64_t *tally_map_put(struct tally_map *map, uint64_t key, bool *added);

/* Removes the key.  Returns false if it is absent. */
bool tally_map_remove(struct tally_map *map, uint64_t key);

static inline size_t tally_map_bytes(const struct tally_map *map)
{
	return map->capacity * sizeof(*map->slots);
}

void tally_map_release(struct tally_map *map);

/* A set of 64-bit keys that are hashes already: open addressing, one word per key, so that much of
 * it fits into a cache.
 *
 * Zero-initialised is empty.  Not thread-safe. */

struct tally_key_set {
	uint64_t *keys; /* 0: free */
	size_t count;
	size_t capacity; /* a power of two, or 0 */
};

/* Adds a key.  Returns 1 if it is new, 0 if not, or -ENOMEM.  A key 0 is treated as 1. */
int tally_key_set_put(struct tally_key_set *set, uint64_t key);

void tally_key_set_release(struct tally_key_set *set);

#endif
