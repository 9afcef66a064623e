/* A set of 64-bit keys that are hashes already: open addressing, a word a key, so that the most of
 * it is in a cache.
 *
 * Zero-initialised is empty.  Not thread-safe.
 */
#ifndef TALLY_BASE_KEY_SET_H
#define TALLY_BASE_KEY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_key_set {
	uint64_t *keys; /* 0: none */
	size_t count;
	size_t capacity; /* a power of two, or 0 */
};

/* 1 when the key is new, 0, or -ENOMEM.  0 is taken for 1. */
int tally_key_set_put(struct tally_key_set *set, uint64_t key);

void tally_key_set_release(struct tally_key_set *set);

#endif
