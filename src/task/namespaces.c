#include "task/namespaces.h"

#include "base/vector.h"

#include <string.h>

uint32_t tally_namespaces_intern(struct tally_namespaces *namespaces,
				 const struct tally_record_namespaces *record)
{
	struct tally_namespace_set set = { 0 };
	uint64_t key = 0;
	for (uint64_t i = 0; i < record->count && i < TALLY_NAMESPACE_KINDS; i++) {
		set.of[i] = (struct tally_namespace){ record->dev_inode[2 * i],
						      record->dev_inode[2 * i + 1] };
		key = tally_hash64(key ^ tally_hash64(set.of[i].device + 1) ^ set.of[i].inode);
	}
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(&namespaces->index, key, &added);
		if (!slot)
			return TALLY_NAMESPACES_NONE;
		if (added) {
			if (tally_vector_push(&namespaces->sets, set) < 0) {
				tally_map_remove(&namespaces->index, key);
				return TALLY_NAMESPACES_NONE;
			}
			*slot = namespaces->sets.count - 1;
		}
		if (!memcmp(&namespaces->sets.items[*slot], &set, sizeof(set)))
			return (uint32_t)*slot;
	}
}

void tally_namespaces_release(struct tally_namespaces *namespaces)
{
	tally_vector_release(&namespaces->sets);
	tally_map_release(&namespaces->index);
	*namespaces = (struct tally_namespaces){ 0 };
}
