/* Containers and services by name: their cgroups, and the processes in these. */
#ifndef TALLY_SESSION_INTERNAL_H
#define TALLY_SESSION_INTERNAL_H

#include "base/error.h"
#include "machine/machine.h"

#include <stddef.h>

struct tally_container {
	char *name;    /* as asked for; "a, b" when there are several */
	/* the cgroups' directories, in each hierarchy that has them */
	char **folders;
	size_t folder_count, folder_capacity;
};

/* Where to look.  Members may be NULL: not there. */
struct tally_container_places {
	const char *mounts; /* a file like /proc/self/mounts */
	const char *docker; /* "/var/lib/docker/containers": ID/config.v2.json */
	const char *podman; /* a pattern for glob(3), with braces: containers.json */
	const char *podman_below_home; /* the same, below the home of the effective user */
};

extern const struct tally_container_places tally_container_places;

/* Finds the one container or service that `name` means, and adds its cgroups to `out` (zeroed
 * before the first call).  `name` is a container's name or the beginning of its ID (4 digits or
 * more), a service's name with or without ".service", a cgroup's name, or the end of its path
 * ("a.slice/b.service"), or a whole path below the mount ("/a.slice/b.service").  An exact name
 * counts more than the beginning of an ID.
 *
 * Returns 0; -ENOENT with a hint; -EINVAL with the paths of all that match, if there are several;
 * -ENOMEM.  Release `out` in any case. */
int tally_container_find(const struct tally_container_places *places, const char *name,
			 struct tally_container *out, struct tally_error *err);

/* Lists the processes in these cgroups and those below, without ourselves: each once, ascending.
 * Returns 0 or -ENOMEM. */
int tally_container_pids(const struct tally_container *container, struct tally_pid_list *out);

void tally_container_release(struct tally_container *container);

#endif
