/* The privileges that perf events need: capabilities(7), perf_event_open(2).
 *
 * The kernel requires them in the *initial* user namespace: root in `unshare -r` or in a rootless
 * container has every bit, but none of them counts. */
#ifndef TALLY_MACHINE_CAPABILITY_H
#define TALLY_MACHINE_CAPABILITY_H

#include <stdbool.h>

struct tally_capabilities {
	bool perfmon, sys_admin, sys_ptrace, syslog, ipc_lock; /* effective */
	/* this process is in the initial user namespace, where the bits count */
	bool initial_namespace;
};

void tally_capabilities_read(struct tally_capabilities *out);

/* True with CAP_PERFMON, or CAP_SYS_ADMIN, which gave the same power before Linux 5.8. */
bool tally_capabilities_monitor(const struct tally_capabilities *capabilities);

#endif
