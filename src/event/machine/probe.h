/* Tries which perf events work here, rather than guessing it from settings.
 *
 * Each probe opens a real event on this process (or CPU) and returns the errno of the refusal.  The
 * most informative one is tally_probe_reach(): perf_event_open(2) with flags that no kernel knows.
 * A kernel that gets the call returns EINVAL before it looks at the caller's privileges.  Any other
 * answer comes from something in front of the kernel.  This distinguishes the EPERM of a seccomp
 * filter from the kernel's own. */
#ifndef TALLY_MACHINE_PROBE_H
#define TALLY_MACHINE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TALLY_PROBE_NOT_TRIED = -1,
	TALLY_PROBE_KILLED = -2 /* the call kills the process: seccomp's SECCOMP_RET_KILL */
};

/* Returns the errno of the call described above; EINVAL is the good answer.  With `in_child` a
 * child makes the call, so that a filter that kills does no harm; then it may also return
 * TALLY_PROBE_KILLED. */
int tally_probe_reach(bool in_child);

/* Each returns 0 if the event could be opened, else errno. */
int tally_probe_own(bool with_kernel); /* a clock on this process */
int tally_probe_system_wide(int cpu);
int tally_probe_hardware(void); /* cycles of this process in user mode */
int tally_probe_breakpoint(void);
int tally_probe_tracepoint(uint64_t id, bool raw); /* on this process; raw: with its data */

/* Samples for real: runs a busy loop of some milliseconds under a sampling event with a mapped
 * ring. */
struct tally_overflow_probe {
	int open_errno;      /* 0, errno, or TALLY_PROBE_NOT_TRIED */
	int map_errno;       /* 0 or errno */
	uint64_t count;      /* the event's count */
	uint64_t running_ns; /* 0: it was never on the PMU */
	uint64_t samples;    /* number of samples that arrived in the ring */
};

void tally_probe_overflow(bool hardware, struct tally_overflow_probe *out);

/* Addresses in /proc/kallsyms: returns 1 if shown, 0 if hidden (all zeros), -1 if there is no such
 * file. */
int tally_probe_kallsyms(void);

struct tally_tracefs_state {
	/* mount point of tracefs; "": not mounted (privileged users don't need it
	 * mounted) */
	char path[128];
	bool in_kernel;  /* the kernel has tracefs */
	/* of opening tracefs as tally does and reading a tracepoint's id: 0 or errno */
	int read_errno;
	uint64_t id;     /* id of sched:sched_switch, if read_errno is 0 */
};

void tally_probe_tracefs(struct tally_tracefs_state *out);

#endif
