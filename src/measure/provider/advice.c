/* perf_event_open(2) reports all failures by an errno.  Which of its many meanings applies depends
 * on the attribute, the target, the settings and this process's privileges: so there is one
 * function per errno, in a table. */
#include "provider/provider.h"

#include "event/event.h"
#include "machine/machine.h"
#include "provider/simulated.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct refusal {
	const struct tally_event *event;
	const struct tally_attr *attr;
	int code; /* -errno */
	pid_t pid;
	int cpu;
	const char *command; /* NULL: the task existed before */
	struct tally_error *err;
};

static bool is_hardware(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE ||
	       attr->type == TALLY_TYPE_RAW;
}

/* Describes the target of the request. */
static const char *target(const struct refusal *r, char *text, size_t size)
{
	if (r->pid < 0)
		snprintf(text, size, "of every task on CPU %d", r->cpu);
	else if (r->command)
		snprintf(text, size, "of '%.48s'", r->command);
	else if (r->pid > 0)
		snprintf(text, size, "of task %d", (int)r->pid);
	else
		snprintf(text, size, "of this process");
	return text;
}

/* Returns the highest kernel.perf_event_paranoid at which the event opens without privilege. */
static int level_needed(const struct refusal *r)
{
	bool raw = r->attr->type == TALLY_TYPE_TRACEPOINT &&
		   r->attr->sample_type & TALLY_SAMPLE_RAW;
	if (raw && !(r->attr->flags & TALLY_ATTR_EXCLUDE_KERNEL))
		return -1;
	if (r->pid < 0)
		return 0;
	if (r->attr->flags & TALLY_ATTR_EXCLUDE_KERNEL)
		return 2;
	return 1;
}

static bool of_another_user(pid_t pid, uid_t *user)
{
	char path[32];
	struct stat owner;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (pid <= 0 || stat(path, &owner) < 0)
		return false;
	*user = owner.st_uid;
	return owner.st_uid != geteuid();
}

/* Names the owner as "root" or by number: names may come from the network, and an error message
 * must not wait for that. */
static void foreign(const struct refusal *r, uid_t user)
{
	char owner[32] = "root";
	if (user)
		snprintf(owner, sizeof(owner), "user %u", (unsigned)user);
	tally_error_set(r->err, r->code, "no permission to count '%s' of task %d: it belongs to %s",
			r->event->name, (int)r->pid, owner);
	tally_error_hint(
		r->err, "run tally as %s with CAP_PERFMON (old kernels: and CAP_SYS_PTRACE)",
		user ? "that user, as root, or" : "root, or");
}

/* Returns the event restricted to user mode, as one types it: "x" and "x:k" become "x:u", "x:pk"
 * becomes "x:pu". */
static const char *user_name(const char *name, char *text, size_t size)
{
	const char *colon = strrchr(name, ':');
	if (!colon || colon[1 + strspn(colon + 1, "ukhpPGHIeSDWR")]) {
		snprintf(text, size, "%s:u", name);
		return text;
	}
	size_t used = 0;
	for (const char *c = name; *c && used + 2 < size; c++)
		if (c < colon || !strchr("ukh", *c))
			text[used++] = *c;
	text[used++] = 'u';
	text[used] = '\0';
	return text;
}

static bool happens_in_kernel(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE && (attr->config == TALLY_SW_CONTEXT_SWITCHES ||
						     attr->config == TALLY_SW_CPU_MIGRATIONS ||
						     attr->config == TALLY_SW_CGROUP_SWITCHES);
}

static void contained(const struct refusal *r, const struct tally_capabilities *own)
{
	const char *reason = "root of this user namespace is not root of the machine";
	if (own->initial_namespace)
		reason = "security rules (seccomp, LSM) forbid it";
	tally_error_hint(
		r->err,
		"%s: in a container the sysctl is not enough; start it with --cap-add PERFMON "
		"--security-opt seccomp=unconfined, or run tally on the host",
		reason);
}

static void forbidden(const struct refusal *r)
{
	struct tally_capabilities own;
	struct tally_sysctls settings;
	char who[64], name[256];
	int needed = level_needed(r);
	uid_t user;
	tally_capabilities_read(&own);
	/* At any level: the settings would not help. */
	if (own.initial_namespace && !own.sys_ptrace && of_another_user(r->pid, &user)) {
		foreign(r, user);
		return;
	}
	tally_sysctls_read(&settings);
	int level = settings.paranoid;
	bool known = level != TALLY_SYSCTL_UNKNOWN;
	bool barred = known && level > needed &&
		      !(tally_capabilities_monitor(&own) && own.initial_namespace);

	if (barred)
		tally_error_set(
			r->err, r->code,
			"no permission to count '%s' %s: kernel.perf_event_paranoid is %d, and "
			"must be %d or less without privilege",
			r->event->name, target(r, who, sizeof(who)), level, needed);
	else
		tally_error_set(r->err, r->code, "no permission to count '%s' %s (%s)",
				r->event->name, target(r, who, sizeof(who)),
				tally_errno_text(r->code));
	if (barred && !own.initial_namespace && geteuid() == 0)
		contained(r, &own);
	else if (barred && needed == 1 && happens_in_kernel(r->attr))
		tally_error_hint(
			r->err,
			"it occurs only in the kernel; as root: sysctl "
			"kernel.perf_event_paranoid=%d",
			needed);
	else if (barred && needed == 1 && level <= 2)
		tally_error_hint(r->err, "count only user space (%s), or as root: sysctl "
					 "kernel.perf_event_paranoid=%d",
				 user_name(r->event->name, name, sizeof(name)), needed);
	else if (barred)
		tally_error_hint(
			r->err,
			"run tally as root, give it CAP_PERFMON (setcap cap_perfmon+ep), or as "
			"root: sysctl kernel.perf_event_paranoid=%d",
			needed);
	else if (of_another_user(r->pid, &user) && !own.sys_ptrace)
		tally_error_hint(r->err,
				 "task %d belongs to another user: run tally as that user or as "
				 "root",
				 (int)r->pid);
	else
		contained(r, &own);
}

static void not_there(const struct refusal *r)
{
	if (is_hardware(r->attr)) {
		tally_error_set(
			r->err, r->code,
			"'%s' can't be counted: this machine has no hardware counter for it",
			r->event->name);
		if (r->pid > 0 && r->attr->type != TALLY_TYPE_RAW && !*tally_simulated_lack())
			tally_error_hint(
				r->err,
				"virtual machines seldom offer counters; --provider simulated "
				"counts and samples a command's instructions, branches and misses "
				"(" TALLY_SIMULATED_COST "), cpu-clock and page-faults work "
				"everywhere ('tally list sw')");
		else
			tally_error_hint(
				r->err,
				"virtual machines seldom offer counters; software events work "
				"everywhere: task-clock, page-faults, and cpu-clock to sample "
				"('tally list sw')");
	} else if (r->attr->type == TALLY_TYPE_TRACEPOINT) {
		tally_error_set(r->err, r->code, "the kernel has no tracepoint '%s' (any more)",
				r->event->name);
		tally_error_hint(
			r->err,
			"'tally list tracepoint' lists them; a module may have been unloaded");
	} else {
		tally_error_set(r->err, r->code, "no PMU of this kernel counts '%s'",
				r->event->name);
		tally_error_hint(r->err, "'tally list' marks what this machine can't count");
	}
}

static void no_device(const struct refusal *r)
{
	tally_error_set(
		r->err, r->code,
		"'%s' can't be counted on CPU %d: the CPU is offline or the event's PMU isn't "
		"there",
		r->event->name, r->cpu);
	tally_error_hint(r->err, "/sys/devices/system/cpu/online lists the CPUs that run");
}

static void unsupported(const struct refusal *r)
{
	if (is_hardware(r->attr) && !tally_attr_precise(r->attr) && !r->attr->sample_period) {
		not_there(r);
		return;
	}
	if (r->attr->sample_type & TALLY_SAMPLE_BRANCH_STACK) {
		tally_error_set(r->err, r->code, "the PMU of '%s' has no branch stacks",
				r->event->name);
		tally_error_hint(
			r->err,
			"some CPUs record branches (Intel's LBR, AMD's since Zen 3, arm64's BRBE), "
			"of hardware events and seldom in virtual machines; --call-graph fp and "
			"dwarf work everywhere");
		return;
	}
	tally_error_set(r->err, r->code, "the PMU of '%s' doesn't support this request",
			r->event->name);
	if (tally_attr_precise(r->attr))
		tally_error_hint(r->err, "it can't place samples precisely: leave out ':p'");
	else if (r->attr->sample_period)
		tally_error_hint(
			r->err,
			"it has no interrupt and can't sample, only count: sample cpu-clock, or "
			"count it with 'tally stat'");
	else
		tally_error_hint(r->err, "'tally list' marks what this machine can't count");
}

static void invalid(const struct refusal *r)
{
	struct tally_sysctls settings;
	const struct tally_attr *attr = r->attr;
	const uint64_t exclusions = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL |
				    TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_EXCLUDE_HOST;
	tally_sysctls_read(&settings);
	tally_error_set(r->err, r->code, "the kernel rejects '%s' with these settings",
			r->event->name);
	if (attr->flags & TALLY_ATTR_FREQ && settings.max_sample_rate != TALLY_SYSCTL_UNKNOWN &&
	    attr->sample_period > (uint64_t)settings.max_sample_rate)
		tally_error_hint(
			r->err,
			"%llu samples a second are more than kernel.perf_event_max_sample_rate "
			"allows: -F %d, or raise it",
			(unsigned long long)attr->sample_period, settings.max_sample_rate);
	else if (tally_attr_precise(attr))
		tally_error_hint(r->err,
				 "this CPU may not offer it as a precise event: leave out ':p'");
	else if (attr->type >= TALLY_TYPE_MAX && attr->sample_period)
		tally_error_hint(r->err, "its PMU may only count, not sample: use 'tally stat'");
	else if (attr->type >= TALLY_TYPE_MAX && r->pid >= 0)
		tally_error_hint(r->err, "its PMU may count whole CPUs only: add -a");
	else if (attr->type >= TALLY_TYPE_MAX && attr->flags & exclusions)
		tally_error_hint(r->err,
				 "its PMU may not separate user mode from the kernel: leave out "
				 "the modifiers");
	else if (attr->type == TALLY_TYPE_BREAKPOINT)
		tally_error_hint(
			r->err,
			"this CPU can't watch that: x86 has no 'r' alone, and the address must be "
			"a multiple of the length");
	else if (r->event->group != TALLY_EVENT_NO_GROUP)
		tally_error_hint(
			r->err,
			"the group may not fit on the PMU: remove an event, or open it as a weak "
			"group ({…}:W)");
	else
		tally_error_hint(
			r->err,
			"this CPU may not know the event's number or a term, or the kernel may "
			"be too old");
}

static void busy(const struct refusal *r)
{
	struct tally_sysctls settings;
	tally_sysctls_read(&settings);
	tally_error_set(r->err, r->code, "the counter for '%s' is in use", r->event->name);
	if (settings.nmi_watchdog == 1)
		tally_error_hint(
			r->err,
			"the NMI watchdog holds one on every CPU; as root: sysctl "
			"kernel.nmi_watchdog=0");
	else
		tally_error_hint(r->err, "another profiler may run, or a virtual machine holds it");
}

static void no_descriptors(const struct refusal *r)
{
	tally_error_set(r->err, r->code,
			"no file descriptors left for '%s': each event takes one per CPU and task",
			r->event->name);
	if (r->code == -ENFILE)
		tally_error_hint(r->err, "the whole system is out of them: see fs.file-max");
	else
		tally_error_hint(
			r->err,
			"raise the limit (ulimit -n), or count fewer events, CPUs or tasks");
}

static void gone(const struct refusal *r)
{
	tally_error_set(r->err, r->code, "no task %d (any more) to count '%s' for",
			(int)r->pid, r->event->name);
}

static void no_space(const struct refusal *r)
{
	tally_error_set(r->err, r->code, "no breakpoint register is free for '%s'", r->event->name);
	tally_error_hint(
		r->err,
		"CPUs have few (x86: four); debuggers use them, and mem: events share them");
}

static void too_big(const struct refusal *r)
{
	tally_error_set(r->err, r->code,
			"'%s' doesn't fit into its group, or needs a newer kernel",
			r->event->name);
	tally_error_hint(r->err, "make the group smaller");
}

static void too_deep(const struct refusal *r)
{
	struct tally_sysctls settings;
	tally_sysctls_read(&settings);
	tally_error_set(r->err, r->code,
			"'%s' requests call chains of %u frames; the kernel's maximum is %d",
			r->event->name, r->attr->sample_max_stack, settings.max_stack);
	tally_error_hint(
		r->err,
		"as root: sysctl kernel.perf_event_max_stack=%u (while nothing is recorded)",
		r->attr->sample_max_stack);
}

static void no_perf_events(const struct refusal *r)
{
	tally_error_set(r->err, r->code,
			"this kernel has no perf events (perf_event_open is not implemented)");
	tally_error_hint(r->err,
			 "a sandbox (gVisor, seccomp) may hide them; run 'tally doctor'");
}

/* True if a filter or sandbox in front of the kernel has answered.  It uses errnos that the kernel
 * uses for its own reasons, so the settings explain nothing. */
static bool never_reached(const struct refusal *r)
{
	struct tally_refusal asked = { .errno_code = r->code };
	struct tally_finding finding;
	char who[64];
	if (!tally_machine_refusal(&asked, &finding) ||
	    (strcmp(finding.id, "seccomp") != 0 && strcmp(finding.id, "perf-events") != 0))
		return false;
	tally_error_set(r->err, r->code, "can't count '%s' %s: %s", r->event->name,
			target(r, who, sizeof(who)), finding.cause);
	tally_error_hint(r->err, "%.*s ('tally doctor' explains more)",
			 (int)strcspn(finding.cure, "\n"), finding.cure);
	return true;
}

/* If perf events are refused as a whole: tells what can be measured instead of a running task or a
 * CPU, and how a program can count itself. */
static void add_other_way(const struct refusal *r)
{
	char hint[sizeof(r->err->hint)];
	const char *way = "a command that tally starts can be measured all the same: tally record -- "
			  "COMMAND";
	if (!r->pid)
		way = "a program that 'tally run' starts can count itself all the same";
	if (!r->err || !tally_provider_substitute(0) || !tally_probe_refusal())
		return;
	memcpy(hint, r->err->hint, sizeof(hint));
	tally_error_hint(r->err, "%s; %s", hint, way);
}

void tally_provider_open_error(const struct tally_event *event, int errno_code, pid_t pid, int cpu,
			       const char *command, struct tally_error *err)
{
	static const struct {
		int number;
		void (*explain)(const struct refusal *refusal);
	} rows[] = {
		{ EACCES, forbidden },      { EPERM, forbidden },    { ENOENT, not_there },
		{ ENODEV, no_device },      { ENXIO, no_device },    { EOPNOTSUPP, unsupported },
		{ EINVAL, invalid },        { EBUSY, busy },         { EMFILE, no_descriptors },
		{ ENFILE, no_descriptors }, { ESRCH, gone },         { ENOSPC, no_space },
		{ E2BIG, too_big },         { EOVERFLOW, too_deep }, { ENOSYS, no_perf_events },
	};
	struct refusal refusal = {
		.event = event,
		.attr = &event->attr,
		.code = errno_code < 0 ? errno_code : -errno_code,
		.pid = pid,
		.cpu = cpu,
		.command = command,
		.err = err,
	};
	bool may_be_filter = refusal.code == -EACCES || refusal.code == -EPERM ||
			     refusal.code == -ENOSYS || refusal.code == -ENODEV;
	tally_error_set(err, refusal.code, "opening '%s' failed: %s", event->name,
			tally_errno_text(refusal.code));
	if (!may_be_filter || !never_reached(&refusal))
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (rows[i].number == -refusal.code)
				rows[i].explain(&refusal);
	if (may_be_filter && !command)
		add_other_way(&refusal);
}
