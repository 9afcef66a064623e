/* What a person is told about the machine: each lack with its cause and its cure.
 *
 * A pure function of the facts.  The same causes and cures serve `tally doctor`, which shows all,
 * and the commands, which ask for the one that explains a refused event.
 */
#ifndef TALLY_MACHINE_FINDING_H
#define TALLY_MACHINE_FINDING_H

#include "machine/facts.h"

#include <stdbool.h>
#include <stddef.h>

enum tally_finding_state { TALLY_FINDING_OK, TALLY_FINDING_LIMITED, TALLY_FINDING_MISSING };

enum tally_finding_group {
	TALLY_FINDING_VERDICT,   /* what works, by what one wants to do */
	TALLY_FINDING_PRIVILEGE, /* who may open events */
	TALLY_FINDING_HARDWARE,
	TALLY_FINDING_KERNEL,    /* its symbols and tracepoints */
	TALLY_FINDING_LIMIT,
	TALLY_FINDING_GROUPS
};

struct tally_finding {
	const char *id;    /* "mlock": stable, for scripts */
	enum tally_finding_group group;
	enum tally_finding_state state;
	const char *title; /* "ring memory" */
	char detail[192];  /* what is there; one line */
	char cause[320];   /* why it lacks; empty when it doesn't; one line */
	/* what to type or change, a line each; empty when there is none or nothing to cure */
	char cure[640];
};

enum { TALLY_FINDINGS_MAX = 32 };

struct tally_findings {
	struct tally_finding items[TALLY_FINDINGS_MAX];
	size_t count;
};

/* All findings, group by group. */
void tally_findings_make(const struct tally_machine_facts *facts, struct tally_findings *out);

const struct tally_finding *tally_findings_find(const struct tally_findings *findings,
						const char *id);

const char *tally_finding_state_text(
	enum tally_finding_state state); /* "ok", "limited", "missing" */
const char *tally_finding_group_text(enum tally_finding_group group); /* "verdict", … */

/* ---- one refusal --------------------------------------------------------- */

/* What was asked for when perf_event_open(2), or mapping its ring, failed. */
struct tally_refusal {
	int errno_code;       /* positive, or -errno */
	bool mapping;         /* the ring was refused, not the event */
	bool kernel_included; /* the event didn't exclude the kernel */
	bool system_wide;     /* pid -1 */
	bool other_task;      /* neither this process nor its child */
	bool hardware;        /* hardware, cache or raw event */
	bool tracepoint_data; /* a tracepoint with SAMPLE_RAW */
};

/* Fills `out` with cause and cure; false when the machine's settings don't explain it (the event
 * itself is at fault: EINVAL, ESRCH, …). */
bool tally_refusal_explain(const struct tally_refusal *refusal,
			   const struct tally_machine_facts *facts, struct tally_finding *out);

/* The same, reading the facts first (well below a millisecond). */
bool tally_machine_refusal(const struct tally_refusal *refusal, struct tally_finding *out);

#endif
