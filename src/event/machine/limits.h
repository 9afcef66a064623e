/* A user's limits for events: descriptors, and memory for rings.
 *
 * Every event on every CPU (or of every thread) needs a descriptor.  A mapped ring is locked
 * memory.  The kernel charges its header page and its data to the *user*, up to
 * kernel.perf_event_mlock_kb for each online CPU, which all of the user's programs share.  The rest
 * is charged to the process, up to RLIMIT_MEMLOCK.  With CAP_IPC_LOCK, or at paranoid level -1,
 * there is no limit.  (perf_mmap() in the kernel's events/core.c.) */
#ifndef TALLY_MACHINE_LIMITS_H
#define TALLY_MACHINE_LIMITS_H

#include "machine/capability.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel settings that decide what perf events may do:
 * Documentation/admin-guide/sysctl/kernel.rst. */

enum { TALLY_SYSCTL_UNKNOWN = INT_MIN }; /* the file doesn't exist or can't be read */

struct tally_sysctls {
	/* kernel.perf_event_paranoid; no file if the kernel has no perf events */
	int paranoid;
	int mlock_kb; /* kernel.perf_event_mlock_kb, per online CPU */
	/* kernel.perf_event_max_sample_rate, Hz; the kernel may lower it by itself */
	int max_sample_rate;
	int max_stack;            /* kernel.perf_event_max_stack, frames */
	int cpu_time_max_percent; /* kernel.perf_cpu_time_max_percent */
	int kptr_restrict;        /* kernel.kptr_restrict */
	int ptrace_scope;         /* kernel.yama.ptrace_scope */
	int user_access;          /* kernel.perf_user_access (arm64, riscv) */
	/* kernel.nmi_watchdog; 1: it may hold a hardware counter on every CPU */
	int nmi_watchdog;
};

void tally_sysctls_read(struct tally_sysctls *out);

/* Reads one setting by its file below /proc/sys ("kernel/perf_event_paranoid").  Returns its value,
 * or TALLY_SYSCTL_UNKNOWN. */
int tally_sysctl_read(const char *name);

#define TALLY_LIMIT_NONE UINT64_MAX

struct tally_limits {
	uint64_t memlock_bytes;                 /* RLIMIT_MEMLOCK: soft, the one in force */
	uint64_t memlock_bytes_max;             /* RLIMIT_MEMLOCK: hard */
	uint64_t descriptors, descriptors_max;  /* RLIMIT_NOFILE, soft and hard */
};

void tally_limits_read(struct tally_limits *out);

/* Raises the soft limit of descriptors to the hard one.  Returns the new limit.  Children inherit
 * it, so set it back in a profiled command: some programs close every descriptor up to the
 * limit. */
uint64_t tally_limits_raise_descriptors(void);

struct tally_ring_budget {
	bool unlimited;
	uint64_t bytes;       /* header pages and data of all rings together */
	uint32_t page_bytes;
};

/* Computes the budget from these numbers.  Rings that the user's other programs have mapped are
 * unknown, and not subtracted. */
struct tally_ring_budget tally_ring_budget_make(const struct tally_sysctls *sysctls,
						const struct tally_capabilities *capabilities,
						const struct tally_limits *limits,
						size_t online_cpus, uint32_t page_bytes);

/* The same for this process, with numbers read now. */
struct tally_ring_budget tally_machine_ring_budget(void);

/* Returns how many data pages each of `rings` rings can have within the budget: a power of two, at
 * most `pages_max`; 0 if not even one page fits. */
size_t tally_machine_ring_pages(const struct tally_ring_budget *budget, size_t rings,
				size_t pages_max);

/* Subtracts `rings` rings of `data_pages` from the budget: for rings of several sizes. */
void tally_ring_budget_spend(struct tally_ring_budget *budget, size_t rings, size_t data_pages);

#endif
