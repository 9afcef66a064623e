/* The target to count or record: a command to start, running tasks, CPUs, or everything. */
#ifndef TALLY_SESSION_TARGET_H
#define TALLY_SESSION_TARGET_H

#include "base/error.h"
#include "base/map.h"
#include "machine/cpu.h"
#include "machine/procfs.h"
#include "session/container_processes.h"

#include <stdbool.h>

struct tally_target {
	struct tally_pid_list pids;    /* requested processes, with all their threads */
	/* has a name: `pids` are the processes in its cgroups */
	struct tally_container container;
	struct tally_pid_list threads; /* requested single threads */
	/* include the processes that `pids` started, and all their descendants */
	bool takes_descendants;
	/* pids of the descendants found so far; filled even when they are not included */
	struct tally_map descendants;
	struct tally_pid_list tids;    /* all threads to open events on; filled by resolve */
	struct tally_map descendant_tids; /* the members of `tids` that belong to descendants */
	bool has_user;                 /* all processes of `user` that run now */
	uid_t user;
	bool all;                      /* every task, by CPUs */
	bool every_thread;             /* every task that runs now, opened one by one */
	/* `cpus` was requested (implies `all` unless tasks were requested) */
	bool has_cpu_list;
	/* CPUs to open events on; with `all` and no list: the online ones */
	struct tally_cpu_list cpus;
	char **command;                /* argv, ends with NULL; NULL: none.  Not owned. */
};

#define TALLY_TARGET_INIT { .all = false }

/* Add the pids in a list such as "12,34".  Return -EINVAL with a message that names the bad
 * word. */
int tally_target_add_pids(struct tally_target *target, const char *list, struct tally_error *err);
int tally_target_add_threads(struct tally_target *target, const char *list,
			     struct tally_error *err);
/* Adds the processes of a container or service; see tally_container_find(). */
int tally_target_add_container(struct tally_target *target, const char *name,
			       struct tally_error *err);
/* Sets the user by name or number. */
int tally_target_set_user(struct tally_target *target, const char *name, struct tally_error *err);
int tally_target_set_cpus(struct tally_target *target, const char *list, struct tally_error *err);

static inline bool tally_target_has_tasks(const struct tally_target *target)
{
	return target->pids.count || target->container.name || target->threads.count ||
	       target->has_user || target->every_thread;
}

/* Checks that the parts fit together, and lists the threads and the CPUs.  An empty target becomes
 * the whole system.  Returns 0, -EINVAL, -ESRCH (no such process), … */
int tally_target_resolve(struct tally_target *target, struct tally_error *err);

/* Lists the threads again.  Appends new ones to `tids` and returns how many, or -errno.  Without
 * inheritance, this finds threads that appear while events are opened on others. */
long tally_target_refresh(struct tally_target *target);

/* Returns how many processes entered the container's cgroups later without being started by one
 * that was listed: their events were not opened.  0 without a container. */
size_t tally_target_late_count(const struct tally_target *target);

/* True if the thread was not requested itself but belongs to a process that `pids` started. */
static inline bool tally_target_is_descendant(const struct tally_target *target, pid_t tid)
{
	return tally_map_get(&target->descendant_tids, (uint64_t)tid) != NULL;
}

/* Writes the title of the table: "'sleep 1'", "process 12", "CPUs 0-3", "the whole system". */
void tally_target_text(const struct tally_target *target, char *out, size_t size);

/* Writes a note about the descendants: "process 12 has 2 child processes, which are …"; "" without
 * descendants. */
void tally_target_descendants_text(const struct tally_target *target, char *out, size_t size);

void tally_target_release(struct tally_target *target);

#endif
