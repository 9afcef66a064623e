#include "machine/cure.h"

#include <stdio.h>
#include <string.h>

struct tally_finding *tally_findings_add(struct tally_findings *findings,
					 enum tally_finding_group group, const char *id,
					 const char *title)
{
	/* The table has room for all findings that are made here.  If it hadn't, the last one would
	 * be overwritten, but nothing overrun. */
	size_t index = findings->count < TALLY_FINDINGS_MAX ? findings->count++
							    : TALLY_FINDINGS_MAX - 1;
	struct tally_finding *finding = &findings->items[index];
	memset(finding, 0, sizeof(*finding));
	finding->group = group;
	finding->id = id;
	finding->title = title;
	return finding;
}

const struct tally_finding *tally_findings_find(const struct tally_findings *findings,
						const char *id)
{
	for (size_t i = 0; i < findings->count; i++)
		if (!strcmp(findings->items[i].id, id))
			return &findings->items[i];
	return NULL;
}

const char *tally_finding_state_text(enum tally_finding_state state)
{
	static const char *const texts[] = { "ok", "limited", "missing" };
	return texts[state];
}

const char *tally_finding_group_text(enum tally_finding_group group)
{
	static const char *const texts[] = { "verdict", "privilege", "hardware", "kernel",
					     "limit" };
	return texts[group];
}

/* ---- verdicts: the permitted uses ---------------------------------------- */

/* Takes cause and cure from the refusal's explanation. */
static void refuse(struct tally_finding *finding, const struct tally_machine_facts *facts,
		   enum tally_finding_state state, const struct tally_refusal *refusal)
{
	struct tally_finding why;
	finding->state = state;
	if (tally_refusal_explain(refusal, facts, &why)) {
		memcpy(finding->cause, why.cause, sizeof(finding->cause));
		memcpy(finding->cure, why.cure, sizeof(finding->cure));
	} else if (refusal->errno_code > 0) {
		tally_finding_cause(finding, "perf_event_open says: %s",
				    strerror(refusal->errno_code));
	} else {
		tally_gate_explain(finding, facts);
	}
}

static void verdict_stat(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = tally_findings_add(out, TALLY_FINDING_VERDICT, "stat",
							   "stat");
	if (facts->own) {
		tally_finding_detail(finding, "nothing can be counted");
		refuse(finding, facts, TALLY_FINDING_MISSING,
		       &(struct tally_refusal){ .errno_code = facts->own });
	} else if (facts->own_kernel) {
		tally_finding_detail(finding, "counts your own programs, in user mode only");
		refuse(finding, facts, TALLY_FINDING_LIMITED,
		       &(struct tally_refusal){ .errno_code = facts->own_kernel,
						.kernel_included = true });
	} else {
		tally_finding_detail(finding, "counts your own programs, in user mode and kernel");
	}
}

static void verdict_record(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = tally_findings_add(out, TALLY_FINDING_VERDICT, "record",
							   "record");
	const struct tally_overflow_probe *clock = &facts->clock_overflow;
	const char *by = facts->hardware_overflow.samples ? "hardware cycles" : "the CPU clock";
	if (facts->own || clock->open_errno) {
		int code = facts->own ? facts->own : clock->open_errno;
		tally_finding_detail(finding, "nothing can be sampled");
		refuse(finding, facts, TALLY_FINDING_MISSING,
		       &(struct tally_refusal){ .errno_code = code });
	} else if (clock->map_errno) {
		tally_finding_detail(finding, "no ring can be mapped");
		refuse(finding, facts, TALLY_FINDING_MISSING,
		       &(struct tally_refusal){ .errno_code = clock->map_errno, .mapping = true });
	} else if (!clock->samples && !facts->hardware_overflow.samples) {
		finding->state = TALLY_FINDING_MISSING;
		tally_finding_detail(finding, "events open, but no sample arrives");
		tally_finding_cause(
			finding,
			"neither the clock's overflows nor the hardware's reach this process");
	} else if (facts->own_kernel) {
		tally_finding_detail(finding, "samples your own programs by %s, in user mode only",
				     by);
		refuse(finding, facts, TALLY_FINDING_LIMITED,
		       &(struct tally_refusal){ .errno_code = facts->own_kernel,
						.kernel_included = true });
	} else {
		tally_finding_detail(
			finding, "samples your own programs by %s, in user mode and kernel", by);
	}
}

static void verdict_system_wide(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = tally_findings_add(out, TALLY_FINDING_VERDICT,
							   "system-wide", "system-wide");
	if (!facts->system_wide) {
		tally_finding_detail(finding, "counts and samples all programs (-a)");
		return;
	}
	tally_finding_detail(finding, "whole CPUs and all programs (-a) are closed");
	refuse(finding, facts, TALLY_FINDING_MISSING,
	       &(struct tally_refusal){ .errno_code = facts->system_wide, .system_wide = true });
}

static void verdict_tracepoints(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = tally_findings_add(out, TALLY_FINDING_VERDICT,
							   "tracepoints", "tracepoints");
	if (tally_gate_explain(finding, facts)) {
		finding->state = TALLY_FINDING_MISSING;
		tally_finding_detail(finding, "none can be opened");
	} else if (tally_tracefs_explain(finding, facts)) {
		finding->state = TALLY_FINDING_MISSING;
		tally_finding_detail(finding, "none can be named");
	} else if (facts->tracepoint) {
		tally_finding_detail(finding, "none can be opened");
		refuse(finding, facts, TALLY_FINDING_MISSING,
		       &(struct tally_refusal){ .errno_code = facts->tracepoint,
						.kernel_included = true });
	} else if (facts->tracepoint_raw) {
		tally_finding_detail(finding, "can be counted, but their fields not read");
		refuse(finding, facts, TALLY_FINDING_LIMITED,
		       &(struct tally_refusal){ .errno_code = facts->tracepoint_raw,
						.tracepoint_data = true });
	} else {
		tally_finding_detail(finding, "counted and recorded with their fields");
	}
}

static void verdict_hardware(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = tally_findings_add(out, TALLY_FINDING_VERDICT, "hardware",
							   "hardware counters");
	const struct tally_overflow_probe *overflow = &facts->hardware_overflow;
	if (facts->hardware) {
		tally_finding_detail(finding, "no cycles, instructions or cache misses");
		refuse(finding, facts, TALLY_FINDING_MISSING,
		       &(struct tally_refusal){ .errno_code = facts->hardware, .hardware = true });
	} else if (!overflow->samples) {
		finding->state = TALLY_FINDING_LIMITED;
		tally_finding_detail(finding, overflow->count ? "count, but can't be sampled"
							      : "open, but don't count");
		tally_finding_cause(finding, "see 'counter overflows' below");
	} else {
		tally_finding_detail(finding, "count, and sample at overflows");
	}
}

/* ---- who may open events ------------------------------------------------- */

static void finding_gate(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = tally_findings_add(out, TALLY_FINDING_PRIVILEGE,
							   "perf-event-open", "perf_event_open");
	if (tally_gate_explain(finding, facts)) {
		finding->state = TALLY_FINDING_MISSING;
		if (facts->reach == TALLY_PROBE_KILLED)
			tally_finding_detail(finding, "kills the process");
		else
			tally_finding_detail(finding, "doesn't reach the kernel (%s)",
					     strerror(facts->reach));
		return;
	}
	tally_finding_detail(finding, facts->seccomp > 0
					      ? "reaches the kernel, through a seccomp filter"
					      : "reaches the kernel; no seccomp filter");
}

static void finding_paranoid(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	static const char *const closed[] = {
		"the data of tracepoints", "tracepoint data and whole CPUs",
		"tracepoint data, whole CPUs and the kernel's side of your programs",
	};
	int level = facts->sysctls.paranoid;
	if (level == TALLY_SYSCTL_UNKNOWN)
		return;
	struct tally_finding *finding =
		tally_findings_add(out, TALLY_FINDING_PRIVILEGE, "paranoid", "paranoid level");
	bool privileged = tally_capabilities_monitor(&facts->capabilities);
	tally_finding_detail(finding, "kernel.perf_event_paranoid is %d%s", level,
			     privileged && level > -1 ? ", which doesn't bind CAP_PERFMON" : "");
	if (privileged || level < 0)
		return;
	bool closed_whole = level > 2 && facts->own;
	finding->state = closed_whole ? TALLY_FINDING_MISSING : TALLY_FINDING_LIMITED;
	tally_finding_cause(finding, "without CAP_PERFMON, this level closes %s",
			    closed_whole ? "everything, on this distribution's kernel"
					 : closed[level < 2 ? level : 2]);
	if (level > 1)
		tally_cure_paranoid(finding, facts, 1, "opens the kernel's side of your programs");
	if (level > 0)
		tally_cure_paranoid(finding, facts, 0, "opens whole CPUs (-a) too");
	tally_cure_paranoid(finding, facts, -1, "opens tracepoints' data too");
}

static void finding_capabilities(const struct tally_machine_facts *facts,
				 struct tally_findings *out)
{
	const struct tally_capabilities *have = &facts->capabilities;
	const struct { bool held; const char *name;
	} names[] = {
		{ have->perfmon, "PERFMON" },       { have->sys_admin, "SYS_ADMIN" },
		{ have->sys_ptrace, "SYS_PTRACE" }, { have->syslog, "SYSLOG" },
		{ have->ipc_lock, "IPC_LOCK" },
	};
	struct tally_finding *finding =
		tally_findings_add(out, TALLY_FINDING_PRIVILEGE, "capabilities", "capabilities");
	size_t length = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].held)
			length += (size_t)snprintf(finding->detail + length,
						   sizeof(finding->detail) - length, "%s%s",
						   length ? ", " : "", names[i].name);
	if (!length)
		tally_finding_detail(finding, "none that perf events ask for");
	if (tally_capabilities_monitor(have) || facts->sysctls.paranoid < 0)
		return;
	finding->state = TALLY_FINDING_LIMITED;
	if (length && !have->initial_namespace)
		tally_finding_cause(
			finding,
			"they are held in a user namespace, where they don't count for perf events");
	else
		tally_finding_cause(finding, "without CAP_PERFMON the paranoid level decides, "
					     "and other users' programs are closed");
	tally_cure_capability(finding, facts);
}

static void finding_container(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = tally_findings_add(out, TALLY_FINDING_PRIVILEGE,
							   "container", "container");
	tally_finding_detail(finding, "%s", tally_container_kind_text(facts->container));
	if (!facts->capabilities.initial_namespace && facts->container == TALLY_CONTAINER_NONE)
		tally_finding_detail(finding, "none, but in a user namespace of its own");
	if (facts->lockdown) {
		finding = tally_findings_add(out, TALLY_FINDING_PRIVILEGE, "lockdown",
					     "kernel lockdown");
		finding->state = TALLY_FINDING_MISSING;
		tally_finding_detail(finding, "confidentiality");
		tally_finding_cause(finding, "this mode forbids perf events to everybody");
		tally_finding_cure(finding, "boot with lockdown=integrity or without lockdown=");
	}
}

void tally_findings_make(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	out->count = 0;
	verdict_stat(facts, out);
	verdict_record(facts, out);
	verdict_system_wide(facts, out);
	verdict_tracepoints(facts, out);
	verdict_hardware(facts, out);
	finding_gate(facts, out);
	finding_paranoid(facts, out);
	finding_capabilities(facts, out);
	finding_container(facts, out);
	tally_findings_hardware(facts, out);
	tally_findings_kernel(facts, out);
	tally_findings_limits(facts, out);
}
