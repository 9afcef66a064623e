/* Counts that the kernel keeps for every task without perf events: times, faults, switches.
 *
 * This is `stat`'s last resort if perf_event_open(2) is refused, and for counts that a restriction
 * to user mode leaves empty.  Sources: wait4(2)'s rusage for a command and the children that it has
 * waited for; /proc/PID/{stat,task/TID/...} for running processes (switches and migrations only of
 * living threads); /proc/{stat,vmstat} for the whole system.  A task's user and system times are in
 * ticks there; their sum comes from its schedstat if there is one.  Of the whole system no times
 * are taken: ticks of busy time differ from the time that a clock event counts. */
#ifndef TALLY_PROVIDER_RESOURCE_USAGE_H
#define TALLY_PROVIDER_RESOURCE_USAGE_H

#include "abi/attr.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct tally_resource_usage {
	const char *source; /* "wait4", "/proc" */
	uint64_t user_ns, system_ns;
	/* user and system time together, if the kernel reports it in ns; otherwise 0 */
	uint64_t cpu_ns;
	uint64_t minor_faults, major_faults, switches, migrations;
	/* involuntary switches; only from wait4 */
	uint64_t preemptions;
	bool has_times, has_faults, has_switches, has_migrations;
};

struct tally_resource_usage tally_resource_usage_of(const struct rusage *rusage);

/* Add a running process (all its threads, and children that it has waited for), or one thread.
 * Return 0 or -errno: -ESRCH if it has ended. */
int tally_resource_usage_add_process(struct tally_resource_usage *usage, pid_t pid);
int tally_resource_usage_add_thread(struct tally_resource_usage *usage, pid_t tid);

/* Adds the whole system's faults and switches.  Returns 0 or -errno. */
int tally_resource_usage_system(struct tally_resource_usage *usage);

/* Returns now − before.  A value that either lacks is absent. */
struct tally_resource_usage tally_resource_usage_since(struct tally_resource_usage now,
						       struct tally_resource_usage before);

/* Sets the value for such an event.  Returns false if there is none.  Clocks are in ns.  Faults are
 * those of user and kernel together, so there is no value for an event that excludes either. */
bool tally_resource_usage_value(const struct tally_resource_usage *usage,
				const struct tally_attr *attr, uint64_t *value);

/* Pure parsers: of /proc/PID/stat's line, and of lines "KEY: NUMBER" or "KEY NUMBER" in /proc's
 * tables. */
bool tally_proc_stat_parse(const char *text, uint64_t tick_ns, struct tally_resource_usage *usage);
bool tally_proc_key_number(const char *text, const char *key, uint64_t *out);

#endif
