/* How doctor looks and what it advises. */
#ifndef TALLY_MACHINE_INTERNAL_H
#define TALLY_MACHINE_INTERNAL_H

#include "machine/machine.h"

/* Advice: the commands to type or settings to change, which depend on how this process is confined.
 * For finding.c and cure.c. */

/* The part of the system that answers perf_event_open(2). */
enum tally_gate {
	TALLY_GATE_KERNEL,         /* the kernel, by its own rules */
	TALLY_GATE_SECCOMP,        /* a filter refuses it */
	TALLY_GATE_SECCOMP_KILLS,  /* a filter kills the process that calls it */
	TALLY_GATE_NO_PERF_EVENTS, /* the kernel was built without perf events */
	TALLY_GATE_SANDBOX         /* an imitation of a kernel: gVisor, qemu-user, … */
};

enum tally_gate tally_gate_of(const struct tally_machine_facts *facts);

void tally_finding_detail(struct tally_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void tally_finding_cause(struct tally_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a line to the advice. */
void tally_finding_cure(struct tally_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void tally_cure_sysctl(struct tally_finding *finding, const struct tally_machine_facts *facts,
		       const char *setting, long value);
/* Adds "sudo sysctl kernel.perf_event_paranoid=LEVEL  # EFFECT". */
void tally_cure_paranoid(struct tally_finding *finding, const struct tally_machine_facts *facts,
			 int level, const char *effect);
void tally_cure_capability(struct tally_finding *finding, const struct tally_machine_facts *facts);

void tally_cure_pmu(struct tally_finding *finding, const struct tally_machine_facts *facts);
void tally_cure_memlock(struct tally_finding *finding, const struct tally_machine_facts *facts);
void tally_cure_descriptors(struct tally_finding *finding, const struct tally_machine_facts *facts);

/* Sets cause and cure (and the id, if none is set) for a gate that isn't the kernel.  Returns false
 * if it is the kernel. */
bool tally_gate_explain(struct tally_finding *finding, const struct tally_machine_facts *facts);

#endif
