/* CPUs that come and go, as the kernel reports them: uevents by netlink(7).
 *
 * In a network namespace other than the initial one, no uevents arrive.  So a caller that must know
 * also reads the list of CPUs (cpu.h) from time to time. */
#ifndef TALLY_MACHINE_HOTPLUG_H
#define TALLY_MACHINE_HOTPLUG_H

#include <stdbool.h>

/* Returns a descriptor to poll, or -errno. */
int tally_hotplug_open(void);

/* Reads the pending uevents.  Returns true if one of them was about a CPU.  Never waits. */
bool tally_hotplug_has_news(int fd);

#endif
