/* Whom to count or record: a command to start, tasks that run, CPUs, or all of them. */
#ifndef TALLY_SESSION_TARGET_H
#define TALLY_SESSION_TARGET_H

#include "base/error.h"
#include "base/map.h"
#include "machine/cpu.h"
#include "machine/procfs.h"

#include <stdbool.h>

struct tally_target {
	struct tally_pid_list pids;    /* processes asked for: all their threads */
	struct tally_pid_list threads; /* single threads asked for */
	/* the processes that `pids` started, and those that these started, too */
	bool takes_descendants;
	/* their numbers, as far as listed; also where they are not taken */
	struct tally_map descendants;
	struct tally_pid_list tids;    /* all threads to open events on; filled by resolve */
	struct tally_map descendant_tids; /* those of `tids` that are descendants' */
	bool has_user;                 /* all processes of `user` that run now */
	uid_t user;
	bool all;                      /* every task, by CPUs */
	bool every_thread;             /* every task that runs now, each for itself */
	/* `cpus` was asked for (implies `all` unless tasks were asked for) */
	bool has_cpu_list;
	/* to open events on; with `all` and no list: the online ones */
	struct tally_cpu_list cpus;
	char **command;                /* argv, NULL at its end; NULL: none.  Not owned. */
};

#define TALLY_TARGET_INIT { .all = false }

/* "12,34": adds; -EINVAL with a message that names the bad word. */
int tally_target_add_pids(struct tally_target *target, const char *list, struct tally_error *err);
int tally_target_add_threads(struct tally_target *target, const char *list,
			     struct tally_error *err);
/* A user's name or number. */
int tally_target_set_user(struct tally_target *target, const char *name, struct tally_error *err);
int tally_target_set_cpus(struct tally_target *target, const char *list, struct tally_error *err);

static inline bool tally_target_has_tasks(const struct tally_target *target)
{
	return target->pids.count || target->threads.count || target->has_user ||
	       target->every_thread;
}

/* Checks that the parts go together; nothing at all means the whole system; lists the threads and
 * the CPUs. -EINVAL, -ESRCH (no such process), … */
int tally_target_resolve(struct tally_target *target, struct tally_error *err);

/* Lists the threads anew: how many are in `tids` that were not before (they stand behind the old
 * ones), or -errno.  Where events are not inherited, threads that appear while others' are being
 * opened are found so. */
long tally_target_refresh(struct tally_target *target);

/* The thread was not asked for itself, but belongs to a process that `pids` started. */
static inline bool tally_target_is_descendant(const struct tally_target *target, pid_t tid)
{
	return tally_map_get(&target->descendant_tids, (uint64_t)tid) != NULL;
}

/* "'sleep 1'", "process 12", "CPUs 0-3", "the whole system": what the table's title says. */
void tally_target_text(const struct tally_target *target, char *out, size_t size);

/* What to tell of the descendants: "process 12 has 2 child processes, which are …", or "" where
 * there are none. */
void tally_target_descendants_text(const struct tally_target *target, char *out, size_t size);

void tally_target_release(struct tally_target *target);

#endif
