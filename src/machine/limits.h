/* What a user may take of the machine for events: descriptors, and memory for rings.
 *
 * Every event on every CPU (or of every thread) is a descriptor.  A mapped ring is locked memory;
 * the kernel charges its header page and its data to the *user* up to kernel.perf_event_mlock_kb
 * for each online CPU (all of the user's programs share that), and what goes beyond to the process,
 * up to RLIMIT_MEMLOCK.  Nothing is refused with CAP_IPC_LOCK, or at paranoid level -1.
 * (perf_mmap() in the kernel's events/core.c.)
 */
#ifndef TALLY_MACHINE_LIMITS_H
#define TALLY_MACHINE_LIMITS_H

#include "machine/capability.h"
#include "machine/sysctl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_LIMIT_NONE UINT64_MAX

struct tally_limits {
	uint64_t memlock_bytes;                 /* RLIMIT_MEMLOCK, the one in force (soft) */
	uint64_t memlock_bytes_max;             /* … up to which it may be raised */
	uint64_t descriptors, descriptors_max;  /* RLIMIT_NOFILE, soft and hard */
};

void tally_limits_read(struct tally_limits *out);

/* Raises the soft limit of descriptors to the hard one; how many there may be now.  Children
 * inherit it: set it back in a profiled command, some of which close every descriptor up to the
 * limit. */
uint64_t tally_limits_raise_descriptors(void);

struct tally_ring_budget {
	bool unlimited;
	uint64_t bytes;       /* header pages and data of all rings together */
	uint32_t page_bytes;
};

/* The budget by the numbers; what this user's other programs have mapped already is not known and
 * not taken off. */
struct tally_ring_budget tally_ring_budget_make(const struct tally_sysctls *sysctls,
						const struct tally_capabilities *capabilities,
						const struct tally_limits *limits,
						size_t online_cpus, uint32_t page_bytes);

/* The same for this process, read now. */
struct tally_ring_budget tally_machine_ring_budget(void);

/* The largest power of two of data pages, at most `pages_max`, with which `rings` rings fit into
 * the budget; 0 when not even one page does. */
size_t tally_machine_ring_pages(const struct tally_ring_budget *budget, size_t rings,
				size_t pages_max);

/* Takes `rings` rings of `data_pages` off the budget: for rings of several sizes. */
void tally_ring_budget_spend(struct tally_ring_budget *budget, size_t rings, size_t data_pages);

#endif
