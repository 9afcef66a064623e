/* CPUs that come and go, as the kernel tells of them: uevents by netlink(7).
 *
 * Where there is none (in a network namespace other than the first), nothing is ever told: who must
 * know reads the list of CPUs (cpu.h) from time to time all the same.
 */
#ifndef TALLY_MACHINE_HOTPLUG_H
#define TALLY_MACHINE_HOTPLUG_H

#include <stdbool.h>

/* A descriptor to poll, or -errno. */
int tally_hotplug_open(void);

/* Takes what has come; true when some of it was of a CPU.  Never waits. */
bool tally_hotplug_has_news(int fd);

#endif
