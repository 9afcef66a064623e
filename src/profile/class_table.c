#include "profile/class_table.h"

#include "base/vector.h"

#include "tally/perf_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint32_t tally_class_intern(struct tally_profile *profile, struct tally_map *index,
			    const struct tally_class *class)
{
	uint64_t key = tally_hash64((uint64_t) class->thread << 32 | class->cpu) ^
		       tally_hash64((uint64_t) class->cgroup_id << 32 | (class->cgroup + 1)) ^
		       tally_hash64((uint64_t) class->waker << 32 | class->facts) ^
		       ((uint64_t) class->event << 32 | class->comm);
	for (;; key++) {
		bool added;
		uint64_t *slot = tally_map_put(index, key, &added);
		if (!slot)
			return UINT32_MAX;
		if (added) {
			*slot = profile->classes.count;
			return tally_vector_push(&profile->classes, *class) < 0 ? UINT32_MAX
										: (uint32_t)*slot;
		}
		if (*slot < profile->classes.count &&
		    !memcmp(&profile->classes.items[*slot], class, sizeof(*class)))
			return (uint32_t)*slot;
	}
}

uint32_t tally_class_cgroup(struct tally_tasks *tasks, const struct tally_recorded_event *event,
			    uint64_t number)
{
	uint32_t known = tally_tasks_cgroup(tasks, number);
	char text[40];
	if (known != TALLY_STRING_NONE)
		return known;
	if (!(event->attr.sample_type & TALLY_SAMPLE_CGROUP))
		return tally_strings_intern(&tasks->strings, "N/A");
	snprintf(text, sizeof(text), "unknown %" PRIu64, number);
	return tally_strings_intern(&tasks->strings, text);
}

uint32_t tally_class_cgroup_namespace(struct tally_tasks *tasks, uint32_t pid, uint32_t tid)
{
	struct tally_namespace space = tally_tasks_namespace(tasks, pid, tid,
							     TALLY_NAMESPACE_CGROUP);
	char text[48];
	snprintf(text, sizeof(text), "%" PRIu64 "/0x%" PRIx64, space.device, space.inode);
	return tally_strings_intern(&tasks->strings, text);
}
