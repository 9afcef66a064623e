/* Cgroups: the directory of one, by the name that people give it, for events are opened on its
 * descriptor; and all there are. */
#ifndef TALLY_SESSION_CGROUP_H
#define TALLY_SESSION_CGROUP_H

#include "base/error.h"

#include <stdint.h>

/* A descriptor to open events on with TALLY_FLAG_PID_CGROUP; the caller closes it.  `name` is a
 * path below the mount of the hierarchy that perf events belong to: that of version 1's controller
 * perf_event where it is mounted, else version 2's.  -ENOENT with a hint when there is none of that
 * name. */
int tally_cgroup_open(const char *name, struct tally_error *err);

/* The same among the mounts that a text in the format of /proc/PID/mounts names. */
int tally_cgroup_open_among(const char *mounts, const char *name, struct tally_error *err);

/* Calls `visit` for each cgroup of that hierarchy, parents first, with the number that samples and
 * CGROUP records have, and its path: "/", "/system.slice".  What `visit` gives but 0 ends it and is
 * returned; else 0, or -ENOENT: none is mounted.  Branches that come and go meanwhile, or may not
 * be seen, are left out. */
int tally_cgroup_list(int (*visit)(void *context, uint64_t id, const char *path), void *context);

#endif
