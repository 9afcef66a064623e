/* The privileges that perf events ask for: capabilities(7), perf_event_open(2).
 *
 * The kernel asks for them in the *initial* user namespace: a root of `unshare -r` or of a rootless
 * container holds every bit and none of them counts.
 */
#ifndef TALLY_MACHINE_CAPABILITY_H
#define TALLY_MACHINE_CAPABILITY_H

#include <stdbool.h>

struct tally_capabilities {
	bool perfmon, sys_admin, sys_ptrace, syslog, ipc_lock, sys_resource; /* effective */
	bool initial_namespace; /* of users: where the bits count */
};

void tally_capabilities_read(struct tally_capabilities *out);

/* CAP_PERFMON, or CAP_SYS_ADMIN, which held that power before Linux 5.8. */
bool tally_capabilities_monitor(const struct tally_capabilities *capabilities);

#endif
