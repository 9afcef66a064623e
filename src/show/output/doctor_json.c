/* The findings as JSON, then the facts behind them: settings, capabilities, limits and probes.  A
 * fact that is unknown or was not tried is null. */
#include "output/output.h"

#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

enum { SCHEMA_VERSION = 1 };

static void put_lines(struct tally_json *json, const char *name, const char *text)
{
	tally_json_array(json, name);
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		char one[sizeof(((struct tally_finding *)0)->cure)];
		memcpy(one, line, length);
		one[length] = 0;
		tally_json_text(json, NULL, one);
		line += length + (line[length] == '\n');
	}
	tally_json_end(json);
}

static void put_finding(struct tally_json *json, const struct tally_finding *finding)
{
	tally_json_object(json, NULL);
	tally_json_text(json, "id", finding->id);
	tally_json_text(json, "group", tally_finding_group_text(finding->group));
	tally_json_text(json, "state", tally_finding_state_text(finding->state));
	tally_json_text(json, "title", finding->title);
	tally_json_text(json, "detail", finding->detail);
	tally_json_text_or_null(json, "cause", finding->cause);
	put_lines(json, "cure", finding->cure);
	tally_json_end(json);
}

static void put_setting(struct tally_json *json, const char *name, int value)
{
	if (value == TALLY_SYSCTL_UNKNOWN)
		tally_json_null(json, name);
	else
		tally_json_i64(json, name, value);
}

static void put_limit(struct tally_json *json, const char *name, uint64_t value)
{
	if (value == TALLY_LIMIT_NONE)
		tally_json_null(json, name);
	else
		tally_json_u64(json, name, value);
}

/* "ok", "EACCES", or null if it wasn't tried. */
static void put_probe(struct tally_json *json, const char *name, int result)
{
	if (result == TALLY_PROBE_NOT_TRIED)
		tally_json_null(json, name);
	else if (result == TALLY_PROBE_KILLED)
		tally_json_text(json, name, "killed");
	else if (result)
		tally_json_text(json, name, strerrorname_np(result));
	else
		tally_json_text(json, name, "ok");
}

static void put_overflow(struct tally_json *json, const char *name,
			 const struct tally_overflow_probe *probe)
{
	int map_errno = probe->map_errno;
	if (probe->open_errno)
		map_errno = TALLY_PROBE_NOT_TRIED;
	tally_json_object(json, name);
	put_probe(json, "open", probe->open_errno);
	put_probe(json, "map", map_errno);
	tally_json_u64(json, "count", probe->count);
	tally_json_u64(json, "running_ns", probe->running_ns);
	tally_json_u64(json, "samples", probe->samples);
	tally_json_end(json);
}

static void put_settings(struct tally_json *json, const struct tally_machine_facts *facts)
{
	const struct tally_sysctls *sysctls = &facts->sysctls;
	tally_json_object(json, "sysctl");
	put_setting(json, "perf_event_paranoid", sysctls->paranoid);
	put_setting(json, "perf_event_mlock_kb", sysctls->mlock_kb);
	put_setting(json, "perf_event_max_sample_rate", sysctls->max_sample_rate);
	put_setting(json, "perf_event_max_stack", sysctls->max_stack);
	put_setting(json, "perf_cpu_time_max_percent", sysctls->cpu_time_max_percent);
	put_setting(json, "perf_user_access", sysctls->user_access);
	put_setting(json, "kptr_restrict", sysctls->kptr_restrict);
	put_setting(json, "yama_ptrace_scope", sysctls->ptrace_scope);
	put_setting(json, "nmi_watchdog", sysctls->nmi_watchdog);
	tally_json_end(json);
	tally_json_object(json, "capabilities");
	tally_json_bool(json, "perfmon", facts->capabilities.perfmon);
	tally_json_bool(json, "sys_admin", facts->capabilities.sys_admin);
	tally_json_bool(json, "sys_ptrace", facts->capabilities.sys_ptrace);
	tally_json_bool(json, "syslog", facts->capabilities.syslog);
	tally_json_bool(json, "ipc_lock", facts->capabilities.ipc_lock);
	tally_json_bool(json, "initial_user_namespace", facts->capabilities.initial_namespace);
	tally_json_end(json);
	tally_json_object(json, "limits");
	put_limit(json, "memlock_bytes", facts->limits.memlock_bytes);
	put_limit(json, "memlock_bytes_max", facts->limits.memlock_bytes_max);
	put_limit(json, "descriptors", facts->limits.descriptors);
	put_limit(json, "descriptors_max", facts->limits.descriptors_max);
	tally_json_end(json);
}

static void put_ring_budget(struct tally_json *json, const struct tally_machine_facts *facts)
{
	struct tally_ring_budget budget = tally_ring_budget_make(
		&facts->sysctls, &facts->capabilities, &facts->limits, facts->online_cpus,
		facts->page_bytes);
	uint64_t bytes = budget.bytes;
	if (budget.unlimited)
		bytes = TALLY_LIMIT_NONE;
	put_limit(json, "ring_bytes", bytes);
}

static void put_facts(struct tally_json *json, const struct tally_machine_facts *facts)
{
	tally_json_object(json, "facts");
	tally_json_text(json, "kernel", facts->kernel);
	tally_json_text(json, "arch", facts->arch);
	tally_json_text(json, "cpu", facts->cpu.name);
	tally_json_text(json, "cpuid", facts->cpu.id);
	tally_json_bool(json, "hypervisor", facts->cpu.hypervisor);
	tally_json_text(json, "pmus", facts->pmus);
	tally_json_u64(json, "online_cpus", facts->online_cpus);
	tally_json_u64(json, "user", facts->user);
	tally_json_text(json, "container", tally_container_kind_text(facts->container));
	tally_json_i64(json, "seccomp", facts->seccomp);
	tally_json_bool(json, "lockdown", facts->lockdown);
	tally_json_text_or_null(json, "provider",
				tally_text_or(tally_machine_facts_provider(facts), ""));
	put_settings(json, facts);
	put_ring_budget(json, facts);
	tally_json_text_or_null(json, "tracefs", facts->tracefs.path);
	if (facts->kallsyms < 0)
		tally_json_null(json, "kallsyms_addresses");
	else
		tally_json_bool(json, "kallsyms_addresses", facts->kallsyms);
	tally_json_object(json, "probes");
	put_probe(json, "reach", facts->reach == EINVAL ? 0 : facts->reach);
	put_probe(json, "own", facts->own);
	put_probe(json, "own_kernel", facts->own_kernel);
	put_probe(json, "system_wide", facts->system_wide);
	put_probe(json, "hardware", facts->hardware);
	put_probe(json, "breakpoint", facts->breakpoint);
	put_probe(json, "tracefs_read", facts->tracefs.read_errno);
	put_probe(json, "tracepoint", facts->tracepoint);
	put_probe(json, "tracepoint_data", facts->tracepoint_raw);
	put_overflow(json, "clock_overflow", &facts->clock_overflow);
	put_overflow(json, "hardware_overflow", &facts->hardware_overflow);
	tally_json_end(json);
	tally_json_end(json);
}

void tally_doctor_json(const struct tally_machine_facts *facts,
		       const struct tally_findings *findings, struct tally_buffer *out)
{
	struct tally_json json = { .out = out, .indent = true };
	const struct tally_finding *stat = tally_findings_find(findings, "stat");
	tally_json_object(&json, NULL);
	tally_json_u64(&json, "version", SCHEMA_VERSION);
	tally_json_bool(&json, "works", stat && stat->state != TALLY_FINDING_MISSING);
	tally_json_array(&json, "findings");
	for (size_t i = 0; i < findings->count; i++)
		put_finding(&json, &findings->items[i]);
	tally_json_end(&json);
	put_facts(&json, facts);
	tally_json_end(&json);
}
