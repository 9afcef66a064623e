#include "base/key_set.h"

#include <errno.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 1024 };

static uint64_t *find(const struct tally_key_set *set, uint64_t key)
{
	size_t at = key & (set->capacity - 1);
	while (set->keys[at] && set->keys[at] != key)
		at = (at + 1) & (set->capacity - 1);
	return &set->keys[at];
}

static int grow(struct tally_key_set *set)
{
	struct tally_key_set grown = { .count = set->count,
				       .capacity = set->capacity ? 2 * set->capacity
								 : CAPACITY_MIN };
	grown.keys = calloc(grown.capacity, sizeof(*grown.keys));
	if (!grown.keys)
		return -ENOMEM;
	for (size_t i = 0; i < set->capacity; i++)
		if (set->keys[i])
			*find(&grown, set->keys[i]) = set->keys[i];
	free(set->keys);
	*set = grown;
	return 0;
}

int tally_key_set_put(struct tally_key_set *set, uint64_t key)
{
	if (2 * set->count >= set->capacity && grow(set) < 0)
		return -ENOMEM;
	key = key ? key : 1;
	uint64_t *slot = find(set, key);
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
