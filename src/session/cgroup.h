/* A cgroup's directory, by the name that people give it: events are opened on its descriptor. */
#ifndef TALLY_SESSION_CGROUP_H
#define TALLY_SESSION_CGROUP_H

#include "base/error.h"

/* A descriptor to open events on with TALLY_FLAG_PID_CGROUP; the caller closes it.  `name` is a path below the mount
 * of the hierarchy that perf events belong to: that of version 1's controller perf_event where it is mounted, else
 * version 2's.  -ENOENT with a hint when there is none of that name. */
int tally_cgroup_open(const char *name, struct tally_error *err);

/* The same among the mounts that a text in the format of /proc/PID/mounts names. */
int tally_cgroup_open_among(const char *mounts, const char *name, struct tally_error *err);

#endif
