/* Findings about the machine for the user: each limitation with its cause and its cure.
 *
 * They are a pure function of the facts.  `tally doctor` shows all of them; other commands use the
 * same causes and cures to explain a refused event. */
#ifndef TALLY_MACHINE_FINDING_H
#define TALLY_MACHINE_FINDING_H

#include "machine/facts.h"

#include <stdbool.h>
#include <stddef.h>

enum tally_finding_state { TALLY_FINDING_OK, TALLY_FINDING_LIMITED, TALLY_FINDING_MISSING };

enum tally_finding_group {
	TALLY_FINDING_VERDICT,   /* usable features, by task */
	TALLY_FINDING_PRIVILEGE, /* permission to open events */
	TALLY_FINDING_HARDWARE,
	TALLY_FINDING_KERNEL,    /* its symbols and tracepoints */
	TALLY_FINDING_LIMIT,
	TALLY_FINDING_GROUPS
};

struct tally_finding {
	const char *id;    /* "mlock": stable, scripts may rely on it */
	enum tally_finding_group group;
	enum tally_finding_state state;
	const char *title; /* "ring memory" */
	char detail[192];  /* the present state; one line */
	char cause[320];   /* why something is missing; one line; empty if nothing is */
	/* commands to type or settings to change, a line each; empty if there is none or nothing to
	 * cure */
	char cure[640];
};

enum { TALLY_FINDINGS_MAX = 32 };

struct tally_findings {
	struct tally_finding items[TALLY_FINDINGS_MAX];
	size_t count;
};

/* Makes all findings, group by group. */
void tally_findings_make(const struct tally_machine_facts *facts, struct tally_findings *out);

const struct tally_finding *tally_findings_find(const struct tally_findings *findings,
						const char *id);

const char *tally_finding_state_text(
	enum tally_finding_state state); /* "ok", "limited", "missing" */
const char *tally_finding_group_text(enum tally_finding_group group); /* "verdict", … */

/* ---- one refusal --------------------------------------------------------- */

/* A request that failed, in perf_event_open(2) or in mapping its ring. */
struct tally_refusal {
	int errno_code;       /* positive, or -errno */
	bool mapping;         /* mapping the ring was refused, not the event */
	bool kernel_included; /* the event didn't exclude the kernel */
	bool system_wide;     /* pid -1 */
	bool other_task;      /* a task other than this process and its children */
	bool hardware;        /* hardware, cache or raw event */
	bool tracepoint_data; /* a tracepoint with SAMPLE_RAW */
};

/* Sets cause and cure in `out`.  Returns false if the machine's settings don't explain the refusal:
 * then the event itself is at fault (EINVAL, ESRCH, …). */
bool tally_refusal_explain(const struct tally_refusal *refusal,
			   const struct tally_machine_facts *facts, struct tally_finding *out);

/* Reads the facts (well below a millisecond), then calls tally_refusal_explain(). */
bool tally_machine_refusal(const struct tally_refusal *refusal, struct tally_finding *out);

#endif
