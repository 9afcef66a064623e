/* A set of 64-bit keys that are hashes already: open addressing, one word per key, so that much of
 * it fits into a cache.
 *
 * Zero-initialised is empty.  Not thread-safe. */
#ifndef TALLY_BASE_KEY_SET_H
#define TALLY_BASE_KEY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_key_set {
	uint64_t *keys; /* 0: free */
	size_t count;
	size_t capacity; /* a power of two, or 0 */
};

/* Adds a key.  Returns 1 if it is new, 0 if not, or -ENOMEM.  A key 0 is treated as 1. */
int tally_key_set_put(struct tally_key_set *set, uint64_t key);

void tally_key_set_release(struct tally_key_set *set);

#endif
