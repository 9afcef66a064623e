/* Writes causes and cures into findings.  In order: the gate between this process and the kernel, a
 * cure for each obstacle, and the explanation of a failed call's errno. */
#include "machine/machine_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_text(char *out, size_t size, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));

static void set_text(char *out, size_t size, const char *format, va_list args)
{
	vsnprintf(out, size, format, args);
}

void tally_finding_detail(struct tally_finding *finding, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	set_text(finding->detail, sizeof(finding->detail), format, args);
	va_end(args);
}

void tally_finding_cause(struct tally_finding *finding, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	set_text(finding->cause, sizeof(finding->cause), format, args);
	va_end(args);
}

void tally_finding_cure(struct tally_finding *finding, const char *format, ...)
{
	size_t length = strlen(finding->cure);
	va_list args;
	if (length && length < sizeof(finding->cure) - 1)
		finding->cure[length++] = '\n';
	va_start(args, format);
	set_text(finding->cure + length, sizeof(finding->cure) - length, format, args);
	va_end(args);
}

enum tally_gate tally_gate_of(const struct tally_machine_facts *facts)
{
	bool has_setting = facts->sysctls.paranoid != TALLY_SYSCTL_UNKNOWN;
	switch (facts->reach) {
	case TALLY_PROBE_NOT_TRIED:
	case EINVAL:
	case EFAULT:
		return TALLY_GATE_KERNEL;
	case TALLY_PROBE_KILLED:
		return TALLY_GATE_SECCOMP_KILLS;
	case ENOSYS:
		/* perf_event_open(2): the file of this setting exists if and only if the kernel has
		 * perf events. */
		if (!has_setting)
			return TALLY_GATE_NO_PERF_EVENTS;
		if (facts->seccomp > 0)
			return TALLY_GATE_SECCOMP;
		return TALLY_GATE_SANDBOX;
	case EPERM:
	case EACCES:
		/* Without a filter the kernel itself refused: by a distribution's stricter levels
		 * or a security module. */
		if (facts->seccomp > 0)
			return TALLY_GATE_SECCOMP;
		return TALLY_GATE_KERNEL;
	default:
		/* gVisor returns ENODEV */
		if (facts->seccomp > 0)
			return TALLY_GATE_SECCOMP;
		return TALLY_GATE_SANDBOX;
	}
}

/* Settings of the kernel are the host's: returns the words for it, "" outside of containers. */
static const char *on_host(const struct tally_machine_facts *facts)
{
	if (facts->container == TALLY_CONTAINER_NONE)
		return "";
	return "on the host: ";
}

void tally_cure_sysctl(struct tally_finding *finding, const struct tally_machine_facts *facts,
		       const char *setting, long value)
{
	tally_finding_cure(finding, "%ssudo sysctl %s=%ld", on_host(facts), setting, value);
}

void tally_cure_paranoid(struct tally_finding *finding, const struct tally_machine_facts *facts,
			 int level, const char *effect)
{
	tally_finding_cure(finding, "%ssudo sysctl kernel.perf_event_paranoid=%d  # %s",
			   on_host(facts), level, effect);
}

void tally_cure_capability(struct tally_finding *finding, const struct tally_machine_facts *facts)
{
	if (!facts->capabilities.initial_namespace) {
		tally_finding_cure(
			finding,
			"run outside the user namespace: its root has no power over perf events");
		return;
	}
	switch (facts->container) {
	case TALLY_CONTAINER_NONE:
		tally_finding_cure(
			finding,
			"sudo setcap cap_perfmon,cap_sys_ptrace,cap_syslog,cap_ipc_lock+ep "
			"\"$(command -v tally)\"  # for all who may execute it: docs/security.md");
		tally_finding_cure(finding, "or run tally with sudo");
		break;
	case TALLY_CONTAINER_DOCKER:
		tally_finding_cure(finding,
				   "docker run --cap-add PERFMON … "
				   "(before Docker 23 also --security-opt seccomp=unconfined)");
		break;
	case TALLY_CONTAINER_PODMAN:
		tally_finding_cure(
			finding,
			"sudo podman run --cap-add PERFMON --security-opt seccomp=unconfined …");
		break;
	case TALLY_CONTAINER_KUBERNETES:
		tally_finding_cure(
			finding,
			"in the container's spec: securityContext: "
			"{capabilities: {add: [PERFMON]}, seccompProfile: {type: Unconfined}}");
		break;
	case TALLY_CONTAINER_NSPAWN:
		tally_finding_cure(finding, "systemd-nspawn --capability=CAP_PERFMON "
					    "--system-call-filter=perf_event_open …");
		break;
	case TALLY_CONTAINER_LXC:
	case TALLY_CONTAINER_OTHER:
		tally_finding_cure(finding,
				   "start the container with CAP_PERFMON, "
				   "and with perf_event_open allowed in its seccomp filter");
		break;
	}
}

/* Suggests a level of kernel.perf_event_paranoid, or CAP_PERFMON. */
static void cure_privilege(struct tally_finding *finding, const struct tally_machine_facts *facts,
			   int level)
{
	tally_cure_sysctl(finding, facts, "kernel.perf_event_paranoid", level);
	tally_cure_capability(finding, facts);
}

static void cure_seccomp(struct tally_finding *finding, const struct tally_machine_facts *facts)
{
	switch (facts->container) {
	case TALLY_CONTAINER_DOCKER:
		tally_finding_cure(finding,
				   "docker run --security-opt seccomp=unconfined … "
				   "(from Docker 23 on, --cap-add PERFMON opens the filter too)");
		break;
	case TALLY_CONTAINER_PODMAN:
		tally_finding_cure(finding, "podman run --security-opt seccomp=unconfined …");
		break;
	case TALLY_CONTAINER_KUBERNETES:
		tally_finding_cure(finding,
				   "in the container's spec: "
				   "securityContext: {seccompProfile: {type: Unconfined}}");
		tally_finding_cure(
			finding, "or {type: Localhost} with a profile that allows perf_event_open");
		break;
	case TALLY_CONTAINER_NSPAWN:
		tally_finding_cure(finding,
				   "systemd-nspawn --system-call-filter=perf_event_open …");
		break;
	case TALLY_CONTAINER_NONE:
	case TALLY_CONTAINER_LXC:
	case TALLY_CONTAINER_OTHER:
		tally_finding_cure(
			finding,
			"allow perf_event_open in the filter of whatever started this process");
		tally_finding_cure(finding, "if that is a systemd unit: SystemCallFilter=@debug");
		break;
	}
}

void tally_cure_pmu(struct tally_finding *finding, const struct tally_machine_facts *facts)
{
	if (facts->cpu.hypervisor) {
		tally_finding_cure(finding,
				   "switch the virtual PMU on where the machine is defined "
				   "(QEMU: -cpu host,pmu=on; VMware: vpmc.enable = TRUE)");
		tally_finding_cure(finding,
				   "in a cloud, take a bare-metal or whole-socket instance type");
	}
	if (facts->simulated && !facts->simulated[0])
		tally_finding_cure(finding,
				   "have a command simulated: stat and record --provider simulated "
				   "(" TALLY_SIMULATED_COST ")");
	tally_finding_cure(
		finding,
		"use clocks and software events: -e task-clock,page-faults,context-switches");
}

void tally_cure_memlock(struct tally_finding *finding, const struct tally_machine_facts *facts)
{
	static const char *const options[] = {
		[TALLY_CONTAINER_DOCKER] = "docker run --ulimit memlock=-1 …",
		[TALLY_CONTAINER_PODMAN] = "podman run --ulimit memlock=-1 …",
		[TALLY_CONTAINER_OTHER] = NULL,
	};
	tally_finding_cure(finding, "ask for smaller rings (-m)");
	/* 2 MiB per CPU, and header pages */
	tally_cure_sysctl(finding, facts, "kernel.perf_event_mlock_kb", 2068);
	if (options[facts->container])
		tally_finding_cure(finding, "%s", options[facts->container]);
	else if (facts->limits.memlock_bytes >= facts->limits.memlock_bytes_max)
		tally_finding_cure(finding,
				   "sudo prlimit --pid $$ --memlock=unlimited, for this shell");
	else if (facts->limits.memlock_bytes_max == TALLY_LIMIT_NONE)
		tally_finding_cure(finding, "ulimit -l unlimited");
	else
		tally_finding_cure(finding, "ulimit -l hard");
}

void tally_cure_descriptors(struct tally_finding *finding, const struct tally_machine_facts *facts)
{
	tally_finding_cure(finding, "ask for fewer events, CPUs or threads");
	if (facts->container == TALLY_CONTAINER_DOCKER ||
	    facts->container == TALLY_CONTAINER_PODMAN)
		tally_finding_cure(finding, "%s run --ulimit nofile=65536 …",
				   tally_container_kind_text(facts->container));
	else if (facts->limits.descriptors < facts->limits.descriptors_max)
		tally_finding_cure(finding, "ulimit -n hard");
	else
		tally_finding_cure(finding, "sudo prlimit --pid $$ --nofile=65536, for this shell");
}

bool tally_gate_explain(struct tally_finding *finding, const struct tally_machine_facts *facts)
{
	switch (tally_gate_of(facts)) {
	case TALLY_GATE_KERNEL:
		return false;
	case TALLY_GATE_SECCOMP:
		if (!finding->id)
			finding->id = "seccomp";
		tally_finding_cause(
			finding,
			"a seccomp filter refuses perf_event_open before the kernel sees it");
		cure_seccomp(finding, facts);
		return true;
	case TALLY_GATE_SECCOMP_KILLS:
		if (!finding->id)
			finding->id = "seccomp";
		tally_finding_cause(finding,
				    "a seccomp filter kills whoever calls perf_event_open");
		cure_seccomp(finding, facts);
		return true;
	case TALLY_GATE_NO_PERF_EVENTS:
		if (!finding->id)
			finding->id = "perf-events";
		tally_finding_cause(
			finding,
			"this kernel has no perf events: it was built without CONFIG_PERF_EVENTS, "
			"or is imitated by a sandbox such as gVisor");
		tally_finding_cure(
			finding,
			"use a kernel with CONFIG_PERF_EVENTS=y, as distributions ship it");
		return true;
	case TALLY_GATE_SANDBOX:
		if (!finding->id)
			finding->id = "perf-events";
		tally_finding_cause(
			finding, "perf_event_open is answered by something in front of the kernel: "
				 "an emulator (qemu-user) or a sandbox (gVisor)");
		tally_finding_cure(finding, "run natively, outside of the emulator or sandbox");
		return true;
	}
	return false;
}

/* Explains an errno of perf_event_open(2), or of mapping a ring, by cause and cure. */

static void privilege(struct tally_finding *out, const struct tally_machine_facts *facts, int level,
		      const char *forbidden)
{
	out->id = "paranoid";
	tally_finding_cause(out, "kernel.perf_event_paranoid is %d, which leaves %s to CAP_PERFMON",
			    facts->sysctls.paranoid, forbidden);
	cure_privilege(out, facts, level);
}

static void by_security_module(struct tally_finding *out, const struct tally_machine_facts *facts)
{
	out->id = "security-module";
	if (facts->lockdown) {
		tally_finding_cause(
			out,
			"the kernel is locked down (confidentiality), which forbids perf events");
		tally_finding_cure(out, "boot with lockdown=integrity or without lockdown=");
		return;
	}
	tally_finding_cause(
		out,
		"the settings allow it, so a security module (SELinux, AppArmor, BPF) must refuse "
		"it");
	tally_finding_cure(out, "see what it logged: sudo dmesg | grep -i -e avc -e denied");
}

static bool by_privilege(const struct tally_refusal *refusal,
			 const struct tally_machine_facts *facts, struct tally_finding *out)
{
	int level = facts->sysctls.paranoid;
	bool privileged = tally_capabilities_monitor(&facts->capabilities);
	if (!privileged && refusal->system_wide && level > 0) {
		privilege(out, facts, 0, "whole CPUs");
	} else if (!privileged && refusal->tracepoint_data && level > -1) {
		privilege(out, facts, -1, "the data of tracepoints");
	} else if (!privileged && refusal->kernel_included && level > 1) {
		privilege(out, facts, 1, "the kernel's side of a program");
	} else if (!privileged && level > 2) {
		privilege(out, facts, 1, "perf events, on this distribution's kernel,");
	} else if (!privileged && refusal->other_task) {
		out->id = "other-task";
		tally_finding_cause(
			out,
			"the process is another user's, or has privileges that this one lacks");
		tally_finding_cure(out, "run tally as that user, or with sudo");
		tally_cure_capability(out, facts);
	} else {
		by_security_module(out, facts);
	}
	return true;
}

static bool by_hardware(const struct tally_refusal *refusal,
			const struct tally_machine_facts *facts, struct tally_finding *out)
{
	if (!refusal->hardware || facts->pmus[0])
		return false; /* there is a PMU, but it can't count this event */
	out->id = "pmu";
	if (facts->cpu.hypervisor)
		tally_finding_cause(
			out,
			"no hardware counters: the hypervisor doesn't give this virtual machine "
			"any");
	else
		tally_finding_cause(
			out, "no hardware counters: this kernel has no driver for this CPU's, "
			     "or a hypervisor hides them");
	tally_cure_pmu(out, facts);
	return true;
}

static bool by_mapping(int code, const struct tally_machine_facts *facts, struct tally_finding *out)
{
	struct tally_ring_budget budget = tally_ring_budget_make(
		&facts->sysctls, &facts->capabilities, &facts->limits, facts->online_cpus,
		facts->page_bytes);
	if (code != EPERM)
		return false;
	out->id = "mlock";
	tally_finding_cause(
		out,
		"the rings are larger than the %llu KiB of locked memory that this user's rings "
		"may have",
		(unsigned long long)budget.bytes / 1024);
	tally_cure_memlock(out, facts);
	return true;
}

bool tally_refusal_explain(const struct tally_refusal *refusal,
			   const struct tally_machine_facts *facts, struct tally_finding *out)
{
	int code = abs(refusal->errno_code);
	memset(out, 0, sizeof(*out));
	out->group = TALLY_FINDING_PRIVILEGE;
	out->state = TALLY_FINDING_MISSING;
	out->title = "perf_event_open";
	if (refusal->mapping)
		return by_mapping(code, facts, out);
	switch (code) {
	case EMFILE:
		out->id = "descriptors";
		tally_finding_cause(
			out,
			"out of descriptors: this process may have %llu, and each event takes one "
			"for each CPU or thread",
			(unsigned long long)facts->limits.descriptors);
		tally_cure_descriptors(out, facts);
		return true;
	case EBUSY:
		out->id = "busy";
		tally_finding_cause(
			out,
			"another program holds the counters for itself (an exclusive or pinned "
			"event)");
		tally_finding_cure(out, "end the other profiler, or wait for it");
		if (facts->sysctls.nmi_watchdog == 1)
			tally_cure_sysctl(out, facts, "kernel.nmi_watchdog", 0);
		return refusal->hardware;
	case EPERM:
	case EACCES:
		return tally_gate_explain(out, facts) || by_privilege(refusal, facts, out);
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		return tally_gate_explain(out, facts) || by_hardware(refusal, facts, out);
	default:
		return tally_gate_explain(out, facts);
	}
}

bool tally_machine_refusal(const struct tally_refusal *refusal, struct tally_finding *out)
{
	struct tally_machine_facts facts;
	tally_machine_facts_read_quickly(&facts);
	/* This reads all of /proc/cpuinfo, so only if the answer depends on it. */
	if (refusal->hardware)
		tally_cpu_model_read(&facts.cpu);
	return tally_refusal_explain(refusal, &facts, out);
}
