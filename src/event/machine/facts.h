/* All that `tally doctor` knows about this machine and user, gathered once.  The findings are a
 * pure function of it. */
#ifndef TALLY_MACHINE_FACTS_H
#define TALLY_MACHINE_FACTS_H

#include "machine/capability.h"
#include "machine/container.h"
#include "machine/cpu.h"
#include "machine/limits.h"
#include "machine/probe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The cost of simulating (docs/simulated.md has the measurements). */
#define TALLY_SIMULATED_COST "2 to 40 times slower, and 0.1 to 3 s to start"

struct tally_machine_facts {
	char kernel[128]; /* release */
	char arch[32];
	uint32_t user;    /* effective user id */
	size_t online_cpus;
	uint32_t page_bytes;
	struct tally_cpu_model cpu;
	/* kinds of CPU PMUs in sysfs, separated by blanks: "cpu"; "" if there are none */
	char pmus[256];

	struct tally_sysctls sysctls;
	struct tally_capabilities capabilities;
	struct tally_limits limits;
	enum tally_container_kind container;
	bool lockdown;    /* kernel_lockdown(7) at "confidentiality": no perf events */
	int seccomp;      /* as in /proc/self/status: 0 off, 1 strict, 2 filter, -1 unknown */

	/* Results of probes: 0, errno, or TALLY_PROBE_NOT_TRIED / _KILLED. */
	int reach;
	int own, own_kernel, system_wide, hardware, breakpoint, tracepoint, tracepoint_raw;
	struct tally_overflow_probe clock_overflow, hardware_overflow;
	struct tally_tracefs_state tracefs;
	/* why there is no simulated PMU; "": there is one; NULL: unknown (the caller sets
	 * it) */
	const char *simulated;
	int kallsyms;     /* 1 addresses shown, 0 hidden, -1 no such file */
};

/* Gathers everything, with all probes.  Takes some 60 ms, most of it in busy loops that sample
 * themselves. */
void tally_machine_facts_read(struct tally_machine_facts *out);

/* Gathers only what explains a refusal, and opens no event: well below a millisecond.  All probes
 * but `reach` stay NOT_TRIED. */
void tally_machine_facts_read_quickly(struct tally_machine_facts *out);

#endif
