/* What samples have in common but for their stacks, told apart: for sample_reader.c alone.  Not
 * thread-safe. */
#ifndef TALLY_PROFILE_CLASS_TABLE_H
#define TALLY_PROFILE_CLASS_TABLE_H

#include "profile/profile.h"

/* The number of a class; `index` begins empty, and is to be released.  UINT32_MAX when memory is
 * out. */
uint32_t tally_class_intern(struct tally_profile *profile, struct tally_map *index,
			    const struct tally_class *class);

/* A cgroup's path by its number: "unknown" and the number where no record told of it, "N/A" where
 * samples don't say; the namespace of a task's cgroups, as perf writes it.  String ids of tasks;
 * TALLY_STRING_NONE when memory is out. */
uint32_t tally_class_cgroup(struct tally_tasks *tasks, const struct tally_recorded_event *event,
			    uint64_t number);
uint32_t tally_class_cgroup_namespace(struct tally_tasks *tasks, uint32_t pid, uint32_t tid);

#endif
