/* Finds out whether this process is in a container, and its kind: the advice depends on it.
 *
 * No system call returns this.  Files left in an image (/.dockerenv) outlive the container, so
 * marks count only where a namespace differs from the initial one, whose inode numbers are fixed
 * (linux/proc_ns.h), or where the cgroup's path names a runtime. */
#ifndef TALLY_MACHINE_CONTAINER_H
#define TALLY_MACHINE_CONTAINER_H

#include <stdbool.h>

enum tally_container_kind {
	TALLY_CONTAINER_NONE,
	TALLY_CONTAINER_DOCKER,
	TALLY_CONTAINER_PODMAN,
	TALLY_CONTAINER_KUBERNETES,
	TALLY_CONTAINER_LXC,
	TALLY_CONTAINER_NSPAWN,
	TALLY_CONTAINER_OTHER
};

/* The marks found: the input of the pure part. */
struct tally_container_marks {
	bool foreign_pid_namespace, foreign_user_namespace;
	bool dockerenv, containerenv, kubernetes_environment;
	/* /run/systemd/container or $container: "podman", "lxc", "systemd-nspawn", … */
	char manager[32];
	char cgroup[1024]; /* /proc/1/cgroup or /proc/self/cgroup */
};

void tally_container_marks_read(struct tally_container_marks *out);
enum tally_container_kind tally_container_kind_of(const struct tally_container_marks *marks);
const char *tally_container_kind_text(enum tally_container_kind kind); /* "docker", …; "none" */

#endif
