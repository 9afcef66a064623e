/* Interns classes, the properties that samples share besides their stacks.  Only sample_reader.c
 * uses this.  Not thread-safe. */
#ifndef TALLY_PROFILE_CLASS_TABLE_H
#define TALLY_PROFILE_CLASS_TABLE_H

#include "profile/profile.h"

/* Returns the number of a class, or UINT32_MAX when memory is out.  `index` begins empty; the
 * caller releases it. */
uint32_t tally_class_intern(struct tally_profile *profile, struct tally_map *index,
			    const struct tally_class *class);

/* _cgroup returns the path of the cgroup with this number: "unknown" and the number if no record
 * names it, "N/A" if samples of the event have no cgroup.  _cgroup_namespace returns the namespace
 * of a task's cgroups, as perf writes it.  Both are string ids of `tasks`; TALLY_STRING_NONE when
 * memory is out. */
uint32_t tally_class_cgroup(struct tally_tasks *tasks, const struct tally_recorded_event *event,
			    uint64_t number);
uint32_t tally_class_cgroup_namespace(struct tally_tasks *tasks, uint32_t pid, uint32_t tid);

#endif
