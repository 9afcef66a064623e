/* Cgroups: opens one by name, since events are opened on its directory's descriptor, and lists all
 * of them. */
#ifndef TALLY_SESSION_CGROUP_H
#define TALLY_SESSION_CGROUP_H

#include "base/error.h"

#include <stdint.h>

/* Returns a descriptor to open events on with TALLY_FLAG_PID_CGROUP; the caller closes it.  `name`
 * is a path below the mount of the hierarchy for perf events: version 1's with the controller
 * perf_event if it is mounted, otherwise version 2's.  Returns -ENOENT with a hint when there is no
 * cgroup of that name. */
int tally_cgroup_open(const char *name, struct tally_error *err);

/* The same with `mounts`, a text in the format of /proc/PID/mounts. */
int tally_cgroup_open_among(const char *mounts, const char *name, struct tally_error *err);

/* Calls `visit` for the directory `fd` of a hierarchy and those below it, parents first, with a
 * descriptor that is open during the call, and the path below `fd`: "/", "/system.slice".  A
 * non-zero result of `visit` ends the walk and is returned; otherwise returns 0.  Closes `fd`. */
int tally_cgroup_walk(int fd, int (*visit)(void *context, int fd, const char *path), void *context);

/* Calls `visit` for each cgroup of that hierarchy, parents first, with its id, as in samples and
 * CGROUP records, and its path: "/", "/system.slice".  A non-zero result of `visit` ends the walk
 * and is returned; otherwise returns 0, or -ENOENT when no hierarchy is mounted.  Skips cgroups
 * that appear or vanish meanwhile, or that this user can't read. */
int tally_cgroup_list(int (*visit)(void *context, uint64_t id, const char *path), void *context);

#endif
