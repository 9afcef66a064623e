/* Explains an errno of perf_event_open(2), or of mapping a ring, by cause and cure. */
#include "machine/cure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void privilege(struct tally_finding *out, const struct tally_machine_facts *facts, int level,
		      const char *forbidden)
{
	out->id = "paranoid";
	tally_finding_cause(out, "kernel.perf_event_paranoid is %d, which leaves %s to CAP_PERFMON",
			    facts->sysctls.paranoid, forbidden);
	tally_cure_privilege(out, facts, level);
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
		"the settings allow it, so a security module (SELinux, AppArmor, BPF) must refuse it");
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
			"no hardware counters: the hypervisor doesn't give this virtual machine any");
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
		"the rings are larger than the %llu KiB of locked memory that this user's rings may have",
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
			"another program holds the counters for itself (an exclusive or pinned event)");
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
