/* Makes the findings from the facts, kind by kind: first the verdicts on permitted uses, then
 * privileges, hardware, the kernel's symbols and tracepoints, and limits.  Most verdicts take cause
 * and cure from the explanation of the event that was refused. */
#include "base/extremes.h"
#include "base/text.h"
#include "machine/machine_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Adds a finding, which the caller fills. */
static struct tally_finding *findings_add(struct tally_findings *findings,
					  enum tally_finding_group group, const char *id,
					  const char *title)
{
	/* The table has room for all findings that are made here.  If it hadn't, the last one would
	 * be overwritten, but nothing overrun. */
	size_t index = TALLY_FINDINGS_MAX - 1;
	if (findings->count < TALLY_FINDINGS_MAX)
		index = findings->count++;
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

/* True if commands are measured by the process provider. */
static bool is_replaced(const struct tally_machine_facts *facts)
{
	const char *provider = tally_machine_facts_provider(facts);
	return provider && strcmp(provider, "kernel") != 0;
}

static void verdict_stat(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_VERDICT, "stat", "stat");
	if (is_replaced(facts)) {
		tally_finding_detail(finding,
				     "counts the commands that tally starts, by the process provider");
		refuse(finding, facts, TALLY_FINDING_LIMITED,
		       &(struct tally_refusal){ .errno_code = facts->own });
	} else if (facts->own) {
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
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_VERDICT, "record",
						     "record");
	const struct tally_overflow_probe *clock = &facts->clock_overflow;
	const char *by = facts->hardware_overflow.samples ? "hardware cycles" : "the CPU clock";
	if (is_replaced(facts)) {
		tally_finding_detail(
			finding, "samples the commands that tally starts, by the process provider");
		refuse(finding, facts, TALLY_FINDING_LIMITED,
		       &(struct tally_refusal){ .errno_code = facts->own });
	} else if (facts->own || clock->open_errno) {
		int code = facts->own;
		if (!code)
			code = clock->open_errno;
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

/* Tells which provider measures the commands that tally starts, and why. */
static void verdict_commands(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	int refusal = tally_machine_facts_refusal(facts);
	const char *answer = "with a signal that kills";
	if (!facts->process)
		return;
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_VERDICT, "commands",
						     "commands");
	if (!refusal) {
		tally_finding_detail(finding, "measured by the kernel's perf events");
		return;
	}
	if (refusal > 0)
		answer = strerrorname_np(refusal);
	finding->state = TALLY_FINDING_LIMITED;
	if (is_replaced(facts)) {
		tally_finding_detail(finding, "measured by the process provider, inside the program");
		tally_finding_cause(finding, "the kernel refuses perf events (%s)", answer);
		return;
	}
	tally_finding_detail(finding, "only times, faults and switches (stat)");
	tally_finding_cause(finding,
			    "the kernel refuses perf events (%s), and there is no process provider: %s",
			    answer, facts->process);
}

static void verdict_system_wide(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_VERDICT, "system-wide",
						     "system-wide");
	if (!facts->system_wide) {
		tally_finding_detail(finding, "counts and samples all programs (-a)");
		return;
	}
	tally_finding_detail(finding, "whole CPUs and all programs (-a) are closed");
	refuse(finding, facts, TALLY_FINDING_MISSING,
	       &(struct tally_refusal){ .errno_code = facts->system_wide, .system_wide = true });
}

/* Sets cause and cure if tracefs, which has the tracepoints' ids, can't be read.  Returns false if
 * it can. */
static bool tracefs_explain(struct tally_finding *finding, const struct tally_machine_facts *facts)
{
	const struct tally_tracefs_state *tracefs = &facts->tracefs;
	const char *where = facts->container ? "on the host: " : "";
	if (!tracefs->read_errno)
		return false;
	if (!tracefs->path[0] && !tracefs->in_kernel) {
		tally_finding_cause(finding, "this kernel has no tracepoints (CONFIG_TRACING)");
		tally_finding_cure(finding,
				   "use a kernel with CONFIG_FTRACE=y, as distributions ship it");
	} else if (!tracefs->path[0]) {
		tally_finding_cause(finding, "tracefs is not mounted%s",
				    facts->container ? " in this container" : "");
		if (facts->container == TALLY_CONTAINER_DOCKER ||
		    facts->container == TALLY_CONTAINER_PODMAN)
			tally_finding_cure(finding,
					   "%s run -v /sys/kernel/tracing:/sys/kernel/tracing:ro …",
					   tally_container_kind_text(facts->container));
		else if (facts->container)
			tally_finding_cure(finding,
					   "show the container the host's /sys/kernel/tracing "
					   "(a read-only bind mount, a hostPath volume)");
		else
			tally_finding_cure(finding,
					   "sudo mount -t tracefs -o mode=750,gid=$(id -g) tracefs "
					   "/sys/kernel/tracing");
	} else if (tracefs->read_errno == EACCES || tracefs->read_errno == EPERM) {
		tally_finding_cause(finding, "%s may be read by root only", tracefs->path);
		tally_finding_cure(finding, "%ssudo mount -o remount,mode=750,gid=$(id -g) %s",
				   where, tracefs->path);
		tally_finding_cure(finding, "or run tally with sudo");
	} else {
		tally_finding_cause(finding, "%s holds no sched:sched_switch: %s", tracefs->path,
				    strerror(tracefs->read_errno));
		tally_finding_cure(finding,
				   "use a kernel with CONFIG_FTRACE=y, as distributions ship it");
	}
	return true;
}

static void verdict_tracepoints(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_VERDICT, "tracepoints",
						     "tracepoints");
	if (tally_gate_explain(finding, facts)) {
		finding->state = TALLY_FINDING_MISSING;
		tally_finding_detail(finding, "none can be opened");
	} else if (tracefs_explain(finding, facts)) {
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
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_VERDICT, "hardware",
						     "hardware counters");
	const struct tally_overflow_probe *overflow = &facts->hardware_overflow;
	if (facts->hardware) {
		tally_finding_detail(finding, "no cycles, instructions or cache misses");
		refuse(finding, facts, TALLY_FINDING_MISSING,
		       &(struct tally_refusal){ .errno_code = facts->hardware, .hardware = true });
	} else if (!overflow->samples) {
		finding->state = TALLY_FINDING_LIMITED;
		tally_finding_detail(finding, "open, but don't count");
		if (overflow->count)
			tally_finding_detail(finding, "count, but can't be sampled");
		tally_finding_cause(finding, "see 'counter overflows' below");
	} else {
		tally_finding_detail(finding, "count, and sample at overflows");
	}
}

/* ---- who may open events ------------------------------------------------- */

static void finding_gate(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_PRIVILEGE,
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
	if (facts->seccomp > 0)
		tally_finding_detail(finding, "reaches the kernel, through a seccomp filter");
	else
		tally_finding_detail(finding, "reaches the kernel; no seccomp filter");
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
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_PRIVILEGE, "paranoid",
						     "paranoid level");
	bool privileged = tally_capabilities_monitor(&facts->capabilities);
	tally_finding_detail(finding, "kernel.perf_event_paranoid is %d%s", level,
			     privileged && level > -1 ? ", which doesn't bind CAP_PERFMON" : "");
	if (privileged || level < 0)
		return;
	bool closed_whole = level > 2 && facts->own;
	const char *what = closed[tally_min_i64(level, 2)];
	finding->state = TALLY_FINDING_LIMITED;
	if (closed_whole) {
		finding->state = TALLY_FINDING_MISSING;
		what = "everything, on this distribution's kernel";
	}
	tally_finding_cause(finding, "without CAP_PERFMON, this level closes %s", what);
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
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_PRIVILEGE, "capabilities",
						     "capabilities");
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
			"they are held in a user namespace, where they don't count for perf "
			"events");
	else
		tally_finding_cause(finding, "without CAP_PERFMON the paranoid level decides, "
					     "and other users' programs are closed");
	tally_cure_capability(finding, facts);
}

static void finding_container(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_PRIVILEGE, "container",
						     "container");
	tally_finding_detail(finding, "%s", tally_container_kind_text(facts->container));
	if (!facts->capabilities.initial_namespace && facts->container == TALLY_CONTAINER_NONE)
		tally_finding_detail(finding, "none, but in a user namespace of its own");
	if (facts->lockdown) {
		finding = findings_add(out, TALLY_FINDING_PRIVILEGE, "lockdown", "kernel lockdown");
		finding->state = TALLY_FINDING_MISSING;
		tally_finding_detail(finding, "confidentiality");
		tally_finding_cause(finding, "this mode forbids perf events to everybody");
		tally_finding_cure(finding, "boot with lockdown=integrity or without lockdown=");
	}
}

static bool not_tried(struct tally_finding *finding, const struct tally_machine_facts *facts)
{
	if (tally_gate_of(facts) == TALLY_GATE_KERNEL)
		return false;
	finding->state = TALLY_FINDING_MISSING;
	tally_finding_cause(finding, "not tried, since perf_event_open doesn't reach the kernel");
	return true;
}

static void finding_pmu(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_HARDWARE, "pmu",
						     "hardware counters");
	const char *name = facts->cpu.name[0] ? facts->cpu.name : facts->arch;
	const char *virtual = facts->cpu.hypervisor ? ", virtual" : "";
	const char *pmus = facts->hardware ? "none" : "there";
	if (facts->pmus[0])
		pmus = facts->pmus;
	struct tally_finding why;
	tally_finding_detail(finding, "%s%s: %s", name, virtual, pmus);
	if (!facts->hardware || not_tried(finding, facts))
		return;
	finding->state = TALLY_FINDING_MISSING;
	struct tally_refusal refusal = { .errno_code = facts->hardware, .hardware = true };
	if (tally_refusal_explain(&refusal, facts, &why)) {
		memcpy(finding->cause, why.cause, sizeof(finding->cause));
		memcpy(finding->cure, why.cure, sizeof(finding->cure));
	} else {
		tally_finding_cause(finding, "cycles can't be opened: %s",
				    strerror(facts->hardware));
		tally_cure_pmu(finding, facts);
	}
}

static void finding_overflow(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	const struct tally_overflow_probe *overflow = &facts->hardware_overflow;
	struct tally_finding *finding;
	if (facts->hardware)
		return;
	finding = findings_add(out, TALLY_FINDING_HARDWARE, "overflow", "counter overflows");
	if (overflow->samples) {
		tally_finding_detail(finding, "arrive");
		return;
	}
	finding->state = TALLY_FINDING_MISSING;
	tally_finding_cure(finding, "record by the clock: -e cpu-clock");
	if (overflow->open_errno > 0) {
		tally_finding_detail(finding, "sampling cycles can't be opened: %s",
				     strerror(overflow->open_errno));
		tally_finding_cause(finding, "the PMU has no interrupt that works here");
	} else if (overflow->map_errno) {
		tally_finding_detail(finding, "not tried: the ring can't be mapped (%s)",
				     strerror(overflow->map_errno));
		tally_finding_cause(finding, "see 'ring memory'");
	} else if (!overflow->running_ns || !overflow->count) {
		tally_finding_detail(finding, "the counter never counted");
		tally_finding_cause(
			finding, "all counters are taken, by pinned events or the NMI watchdog");
		if (overflow->running_ns)
			tally_finding_cause(finding,
					    "the hypervisor shows counters, but they stand still");
	} else {
		tally_finding_detail(finding, "none arrived in %llu cycles",
				     (unsigned long long)overflow->count);
		tally_finding_cause(finding,
				    "the counters count, but their interrupts are not delivered%s",
				    facts->cpu.hypervisor ? " by the hypervisor" : "");
	}
}

static void finding_clock(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	const struct tally_overflow_probe *clock = &facts->clock_overflow;
	if (facts->own || clock->open_errno)
		return;
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_HARDWARE, "clock-overflow",
						     "clock overflows");
	if (clock->samples) {
		tally_finding_detail(finding, "arrive");
		return;
	}
	finding->state = TALLY_FINDING_MISSING;
	if (clock->map_errno) {
		tally_finding_detail(finding, "the ring can't be mapped: %s",
				     strerror(clock->map_errno));
		tally_finding_cause(finding, "see 'ring memory'");
		return;
	}
	tally_finding_detail(finding, "none arrived in %llu ns", (unsigned long long)clock->count);
	tally_finding_cause(finding, "the kernel's timers don't reach perf events");
}

static void finding_watchdog(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	if (facts->sysctls.nmi_watchdog != 1 || facts->hardware)
		return;
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_HARDWARE, "nmi-watchdog",
						     "NMI watchdog");
	finding->state = TALLY_FINDING_LIMITED;
	tally_finding_detail(finding, "on");
	tally_finding_cause(finding,
			    "it holds one hardware counter on every CPU, so groups may lack one");
	tally_cure_sysctl(finding, facts, "kernel.nmi_watchdog", 0);
}

static void finding_breakpoint(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_HARDWARE, "breakpoints",
						     "breakpoint events");
	if (!facts->breakpoint) {
		tally_finding_detail(finding, "watch data and code addresses (-e mem:…)");
		return;
	}
	tally_finding_detail(finding, "none");
	if (not_tried(finding, facts))
		return;
	finding->state = TALLY_FINDING_MISSING;
	struct tally_finding why;
	struct tally_refusal refusal = { .errno_code = facts->breakpoint };
	bool privilege = facts->breakpoint == EACCES || facts->breakpoint == EPERM;
	if (privilege && tally_refusal_explain(&refusal, facts, &why)) {
		memcpy(finding->cause, why.cause, sizeof(finding->cause));
		memcpy(finding->cure, why.cure, sizeof(finding->cure));
	} else if (facts->breakpoint == ENOSPC) {
		tally_finding_cause(
			finding,
			"all debug registers are taken, by a debugger or another profiler");
		tally_finding_cure(finding, "end the debugger that watches this program");
	} else {
		tally_finding_cause(finding, "this CPU or hypervisor offers no debug registers: %s",
				    strerror(facts->breakpoint));
	}
}

static void finding_simulated(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	if (!facts->simulated)
		return;
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_HARDWARE, "simulated-pmu",
						     "simulated PMU");
	if (!facts->simulated[0]) {
		tally_finding_detail(
			finding,
			"--provider simulated counts and samples a command's instructions, "
			"branches and cache misses; " TALLY_SIMULATED_COST);
		return;
	}
	/* On a machine with hardware counters it is no limitation. */
	finding->state = facts->hardware ? TALLY_FINDING_LIMITED : TALLY_FINDING_OK;
	tally_finding_detail(finding, "none");
	tally_finding_cause(finding, "%s", facts->simulated);
}

static void finding_process(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	if (!facts->process)
		return;
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_HARDWARE, "process",
						     "process provider");
	if (!facts->process[0]) {
		tally_finding_detail(
			finding,
			"--provider process counts and samples a command without perf events");
		return;
	}
	/* Where the kernel's perf events work it is no limitation. */
	if (tally_machine_facts_refusal(facts))
		finding->state = TALLY_FINDING_MISSING;
	tally_finding_detail(finding, "none");
	tally_finding_cause(finding, "%s", facts->process);
}

static void findings_hardware(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	finding_pmu(facts, out);
	finding_overflow(facts, out);
	finding_clock(facts, out);
	finding_watchdog(facts, out);
	finding_breakpoint(facts, out);
	finding_simulated(facts, out);
	finding_process(facts, out);
}

/* kallsyms_show_value() in the kernel: CAP_SYSLOG, unless kptr_restrict is 2; everybody if it is 0
 * and the paranoid level at most 1. */
static void finding_kallsyms(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_KERNEL, "kallsyms",
						     "kernel symbols");
	int restriction = facts->sysctls.kptr_restrict, paranoid = facts->sysctls.paranoid;
	if (facts->kallsyms > 0) {
		tally_finding_detail(finding, "readable with addresses");
		return;
	}
	if (facts->kallsyms < 0) {
		finding->state = TALLY_FINDING_MISSING;
		tally_finding_detail(finding, "/proc/kallsyms can't be read");
		tally_finding_cause(
			finding, "the kernel was built without CONFIG_KALLSYMS, or /proc hides it");
		return;
	}
	finding->state = TALLY_FINDING_LIMITED;
	tally_finding_detail(finding, "addresses hidden: kernel functions have no names");
	if (restriction > 0)
		tally_finding_cause(finding, "kernel.kptr_restrict is %d, which hides them from %s",
				    restriction,
				    restriction > 1 ? "everybody" : "those without CAP_SYSLOG");
	else if (paranoid > 1)
		tally_finding_cause(
			finding,
			"kernel.perf_event_paranoid is %d, which hides them from those without "
			"CAP_SYSLOG",
			paranoid);
	else
		tally_finding_cause(finding, "they are hidden from those without CAP_SYSLOG");
	if (restriction > 0)
		tally_cure_sysctl(finding, facts, "kernel.kptr_restrict", 0);
	if (paranoid > 1)
		tally_cure_sysctl(finding, facts, "kernel.perf_event_paranoid", 1);
	if (restriction < 2 && !facts->container)
		tally_finding_cure(finding, "or run tally with sudo");
}

static void finding_tracefs(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_KERNEL, "tracefs",
						     "tracefs");
	if (tracefs_explain(finding, facts))
		finding->state = TALLY_FINDING_MISSING;
	if (facts->tracefs.path[0])
		tally_finding_detail(finding, "%s", facts->tracefs.path);
	else
		tally_finding_detail(finding, "not mounted%s",
				     finding->state ? "" : ", but tally may open it");
}

static void findings_kernel(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	finding_kallsyms(facts, out);
	finding_tracefs(facts, out);
}

static void finding_mlock(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	enum { COMFORTABLE_BYTES = 512 * 1024, PAGES_MAX = 1 << 20 };
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_LIMIT, "mlock",
						     "ring memory");
	struct tally_ring_budget budget = tally_ring_budget_make(
		&facts->sysctls, &facts->capabilities, &facts->limits, facts->online_cpus,
		facts->page_bytes);
	size_t ring_bytes = tally_machine_ring_pages(&budget, facts->online_cpus, PAGES_MAX) *
			    facts->page_bytes;
	if (budget.unlimited) {
		tally_finding_detail(finding, "unlimited");
		return;
	}
	tally_finding_detail(
		finding,
		"%llu KiB (%d KiB for each of %zu CPU%s, and %llu KiB of RLIMIT_MEMLOCK): "
		"a ring of %zu KiB per CPU",
		(unsigned long long)budget.bytes / 1024,
		(int)tally_max_i64(facts->sysctls.mlock_kb, 0), facts->online_cpus,
		tally_plural(facts->online_cpus),
		(unsigned long long)facts->limits.memlock_bytes / 1024, ring_bytes / 1024);
	if (ring_bytes >= COMFORTABLE_BYTES)
		return;
	if (ring_bytes) {
		finding->state = TALLY_FINDING_LIMITED;
		tally_finding_cause(finding, "small rings lose samples when events come fast");
	} else {
		finding->state = TALLY_FINDING_MISSING;
		tally_finding_cause(finding, "no ring fits, so nothing can be recorded");
	}
	tally_cure_memlock(finding, facts);
}

static void finding_descriptors(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	enum { KEPT = 16, COMFORTABLE_EVENTS = 16 };
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_LIMIT, "descriptors",
						     "descriptors");
	uint64_t most = facts->limits.descriptors_max;
	uint64_t events = tally_saturating_sub_u64(most, KEPT) / facts->online_cpus;
	if (most == TALLY_LIMIT_NONE) {
		tally_finding_detail(finding, "unlimited");
		return;
	}
	tally_finding_detail(finding, "up to %llu: %llu event%s on each of %zu CPU%s",
			     (unsigned long long)most, (unsigned long long)events,
			     tally_plural(events), facts->online_cpus,
			     tally_plural(facts->online_cpus));
	if (events >= COMFORTABLE_EVENTS)
		return;
	finding->state = events ? TALLY_FINDING_LIMITED : TALLY_FINDING_MISSING;
	tally_finding_cause(
		finding, "each event takes one for each CPU or thread; RLIMIT_NOFILE allows %llu",
		(unsigned long long)most);
	tally_cure_descriptors(finding, facts);
}

static void finding_sample_rate(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	enum { COMFORTABLE_HZ = 10000, DEFAULT_HZ = 100000 };
	int rate = facts->sysctls.max_sample_rate, percent = facts->sysctls.cpu_time_max_percent;
	if (rate == TALLY_SYSCTL_UNKNOWN)
		return;
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_LIMIT, "sample-rate",
						     "highest sampling rate");
	if (percent == TALLY_SYSCTL_UNKNOWN)
		tally_finding_detail(finding, "%d Hz", rate);
	else if (percent == 0 || percent == 100)
		tally_finding_detail(finding,
				     "%d Hz, never lowered (perf_cpu_time_max_percent is %d)", rate,
				     percent);
	else
		tally_finding_detail(finding,
				     "%d Hz, lowered when sampling takes more than %d %% of a CPU",
				     rate, percent);
	if (rate >= COMFORTABLE_HZ)
		return;
	finding->state = TALLY_FINDING_LIMITED;
	tally_finding_cause(
		finding,
		"it was set low, or the kernel lowered it because sampling interrupts took too "
		"long");
	tally_cure_sysctl(finding, facts, "kernel.perf_event_max_sample_rate", DEFAULT_HZ);
}

static void finding_stack(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	enum { DEFAULT_FRAMES = 127 };
	if (facts->sysctls.max_stack == TALLY_SYSCTL_UNKNOWN)
		return;
	struct tally_finding *finding = findings_add(out, TALLY_FINDING_LIMIT, "stack-depth",
						     "stack depth");
	tally_finding_detail(finding, "%d frames", facts->sysctls.max_stack);
	if (facts->sysctls.max_stack >= DEFAULT_FRAMES)
		return;
	finding->state = TALLY_FINDING_LIMITED;
	tally_finding_cause(finding, "deeper call chains are cut at their root");
	tally_cure_sysctl(finding, facts, "kernel.perf_event_max_stack", DEFAULT_FRAMES);
}

static void findings_limits(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	finding_mlock(facts, out);
	finding_descriptors(facts, out);
	finding_sample_rate(facts, out);
	finding_stack(facts, out);
}

void tally_findings_make(const struct tally_machine_facts *facts, struct tally_findings *out)
{
	out->count = 0;
	verdict_stat(facts, out);
	verdict_record(facts, out);
	verdict_commands(facts, out);
	verdict_system_wide(facts, out);
	verdict_tracepoints(facts, out);
	verdict_hardware(facts, out);
	finding_gate(facts, out);
	finding_paranoid(facts, out);
	finding_capabilities(facts, out);
	finding_container(facts, out);
	findings_hardware(facts, out);
	findings_kernel(facts, out);
	findings_limits(facts, out);
}
