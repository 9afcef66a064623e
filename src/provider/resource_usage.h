/* What the kernel accounts for every task without perf events: times, faults, switches.
 *
 * The last resort of `stat`: where perf_event_open(2) is refused, and for what a user-only
 * restriction empties.  Sources: wait4(2)'s rusage for a command and the children that it waited
 * for; /proc/PID/{stat,task/TID/...} for running processes (switches and migrations of threads that
 * are alive); /proc/{stat,vmstat} for the whole system.  A task's user and system times are in
 * ticks there; the time of both comes from its schedstat where there is one.  The system has no
 * times here: ticks of busy time are not what a clock event counts.
 */
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
	/* user and system together, where the kernel tells that to the nanosecond; or 0 */
	uint64_t cpu_ns;
	uint64_t minor_faults, major_faults, switches, migrations;
	/* of the switches, those that the task did not ask for; wait4 alone tells */
	uint64_t preemptions;
	bool has_times, has_faults, has_switches, has_migrations;
};

struct tally_resource_usage tally_resource_usage_of(const struct rusage *rusage);

/* Adds a running process (all its threads, and its children that have been waited for), or one
 * thread. 0 or -errno (-ESRCH: gone). */
int tally_resource_usage_add_process(struct tally_resource_usage *usage, pid_t pid);
int tally_resource_usage_add_thread(struct tally_resource_usage *usage, pid_t tid);

/* Faults and switches alone. */
int tally_resource_usage_system(struct tally_resource_usage *usage);

/* now − before; what either lacks is lacking. */
struct tally_resource_usage tally_resource_usage_since(struct tally_resource_usage now,
						       struct tally_resource_usage before);

/* The figure for an event of these; false when there is none.  Clocks are in ns.  Faults are of
 * user and kernel together, so there is none for an event that excludes either. */
bool tally_resource_usage_value(const struct tally_resource_usage *usage,
				const struct tally_attr *attr, uint64_t *value);

/* Parsers, pure: /proc/PID/stat's line, and "KEY: NUMBER" or "KEY NUMBER" lines of /proc's
 * tables. */
bool tally_proc_stat_parse(const char *text, uint64_t tick_ns, struct tally_resource_usage *usage);
bool tally_proc_key_number(const char *text, const char *key, uint64_t *out);

#endif
