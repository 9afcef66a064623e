/* Trying out what perf events may do here, rather than guessing it from settings.
 *
 * Each probe opens a real event on this process (or CPU), and says with which errno it was refused.
 * The most telling one is `tally_probe_reach`: perf_event_open(2) with flags that no kernel knows.
 * A kernel that gets the call says EINVAL whatever the caller's privileges, before any of them is
 * looked at; another answer was given by somebody in front of the kernel, which tells a seccomp
 * filter's EPERM from the kernel's own.
 */
#ifndef TALLY_MACHINE_PROBE_H
#define TALLY_MACHINE_PROBE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TALLY_PROBE_NOT_TRIED = -1,
	TALLY_PROBE_KILLED = -2 /* the call is deadly: seccomp's SECCOMP_RET_KILL */
};

/* errno of the call described above (EINVAL is the good answer).  Made in a child when `in_child`,
 * which survives a filter that kills; then also TALLY_PROBE_KILLED. */
int tally_probe_reach(bool in_child);

/* Each: 0 when it was opened, else errno. */
int tally_probe_own(bool with_kernel); /* a clock on this process */
int tally_probe_system_wide(int cpu);
int tally_probe_hardware(void); /* cycles of this process in user mode */
int tally_probe_breakpoint(void);
int tally_probe_tracepoint(uint64_t id, bool raw); /* on this process; raw: with its data */

/* Sampling for real: a busy loop of some milliseconds under a sampling event with a mapped ring. */
struct tally_overflow_probe {
	int open_errno;      /* 0, errno, or TALLY_PROBE_NOT_TRIED */
	int map_errno;       /* 0 or errno */
	uint64_t count;      /* what it counted */
	uint64_t running_ns; /* 0: it never was on the PMU */
	uint64_t samples;    /* how many arrived in the ring */
};

void tally_probe_overflow(bool hardware, struct tally_overflow_probe *out);

/* Addresses in /proc/kallsyms: 1 shown, 0 hidden (all zeros), -1 no such file. */
int tally_probe_kallsyms(void);

struct tally_trace_probe {
	char path
		[128]; /* where tracefs is mounted; "" when it isn't: privileged users can do without */
	bool in_kernel;  /* the kernel has it at all */
	int read_errno;  /* of opening it as tally does and reading a tracepoint's id: 0 or errno */
	uint64_t id;     /* of sched:sched_switch, when read_errno is 0 */
};

void tally_probe_tracefs(struct tally_trace_probe *out);

#endif
