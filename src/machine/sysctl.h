/* The kernel settings that decide what perf events may do:
 * Documentation/admin-guide/sysctl/kernel.rst. */
#ifndef TALLY_MACHINE_SYSCTL_H
#define TALLY_MACHINE_SYSCTL_H

#include <limits.h>

enum { TALLY_SYSCTL_UNKNOWN = INT_MIN }; /* the file doesn't exist or can't be read */

struct tally_sysctls {
	/* kernel.perf_event_paranoid; no file if the kernel has no perf events */
	int paranoid;
	int mlock_kb;             /* kernel.perf_event_mlock_kb, per online CPU */
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

#endif
