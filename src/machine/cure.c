#include "machine/cure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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
		return facts->seccomp > 0 ? TALLY_GATE_SECCOMP : TALLY_GATE_SANDBOX;
	case EPERM:
	case EACCES:
		/* Without a filter the kernel itself refused: by a distribution's stricter levels
		 * or a security module. */
		return facts->seccomp > 0 ? TALLY_GATE_SECCOMP : TALLY_GATE_KERNEL;
	default:
		/* gVisor returns ENODEV */
		return facts->seccomp > 0 ? TALLY_GATE_SECCOMP : TALLY_GATE_SANDBOX;
	}
}

void tally_cure_sysctl(struct tally_finding *finding, const struct tally_machine_facts *facts,
		       const char *setting, long value)
{
	bool host = facts->container != TALLY_CONTAINER_NONE;
	tally_finding_cure(finding, "%ssudo sysctl %s=%ld", host ? "on the host: " : "", setting,
			   value);
}

void tally_cure_paranoid(struct tally_finding *finding, const struct tally_machine_facts *facts,
			 int level, const char *effect)
{
	bool host = facts->container != TALLY_CONTAINER_NONE;
	tally_finding_cure(finding, "%ssudo sysctl kernel.perf_event_paranoid=%d  # %s",
			   host ? "on the host: " : "", level, effect);
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
			"sudo setcap cap_perfmon,cap_sys_ptrace,cap_syslog,cap_ipc_lock+ep \"$(command -v tally)\"");
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

void tally_cure_privilege(struct tally_finding *finding, const struct tally_machine_facts *facts,
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
	else if (facts->limits.memlock_bytes < facts->limits.memlock_bytes_max)
		tally_finding_cure(finding, "ulimit -l %s",
				   facts->limits.memlock_bytes_max == TALLY_LIMIT_NONE ? "unlimited"
										       : "hard");
	else
		tally_finding_cure(finding,
				   "sudo prlimit --pid $$ --memlock=unlimited, for this shell");
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
