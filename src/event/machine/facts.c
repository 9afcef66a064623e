/* Reads settings, then tries what works.  Nothing more is tried if a filter kills processes that
 * call perf_event_open(2).  The quick variant only tests whether the call reaches the kernel. */
#include "machine/machine.h"

#include "base/extremes.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

/* PMUs that count in a core, by the names that the kernel's drivers give them. */
static bool is_core_pmu(const char *name)
{
	static const char *const beginnings[] = { "cpu_core", "cpu_atom", "cpu_lowpower", "armv",
						  "apple_",   "cpum_cf",  "riscv" };
	if (!strcmp(name, "cpu"))
		return true;
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

static void read_pmus(char *out, size_t size)
{
	struct dirent *entry;
	size_t length = 0;
	out[0] = 0;
	DIR *directory = opendir("/sys/bus/event_source/devices");
	while (directory && (entry = readdir(directory)))
		if (is_core_pmu(entry->d_name) && length + strlen(entry->d_name) + 2 < size)
			length += (size_t)snprintf(out + length, size - length, "%s%s",
						   length ? " " : "", entry->d_name);
	if (directory)
		closedir(directory);
}

static bool read_lockdown(void)
{
	char text[128];
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	bool locked = file && fgets(text, sizeof(text), file) && strstr(text, "[confidentiality]");
	if (file)
		fclose(file);
	return locked;
}

static void read_settings(struct tally_machine_facts *out)
{
	struct tally_container_marks marks;
	struct tally_proc_status status;
	struct utsname name = { 0 };
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	memset(out, 0, sizeof(*out));
	uname(&name);
	snprintf(out->kernel, sizeof(out->kernel), "%s", name.release);
	snprintf(out->arch, sizeof(out->arch), "%.31s", name.machine);
	out->user = geteuid();
	out->online_cpus = (size_t)tally_max_i64(online, 1);
	out->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	tally_sysctls_read(&out->sysctls);
	tally_capabilities_read(&out->capabilities);
	tally_limits_read(&out->limits);
	tally_container_marks_read(&marks);
	out->container = tally_container_kind_of(&marks);
	out->seccomp = prctl(PR_GET_SECCOMP); /* where /proc is hidden */
	if (!tally_proc_status(getpid(), &status) && status.seccomp >= 0)
		out->seccomp = status.seccomp;
	out->lockdown = read_lockdown();
	read_pmus(out->pmus, sizeof(out->pmus));
}

static void set_not_tried(struct tally_machine_facts *out)
{
	out->own = out->own_kernel = out->system_wide = out->hardware = TALLY_PROBE_NOT_TRIED;
	out->breakpoint = out->tracepoint = out->tracepoint_raw = TALLY_PROBE_NOT_TRIED;
	out->clock_overflow.open_errno = out->hardware_overflow.open_errno = TALLY_PROBE_NOT_TRIED;
	out->tracefs.read_errno = TALLY_PROBE_NOT_TRIED;
	out->kallsyms = -1;
}

static void read_probes(struct tally_machine_facts *out)
{
	struct tally_cpu_list online = { 0 };
	tally_cpu_list_read(TALLY_CPU_ONLINE, &online, NULL);
	out->own = tally_probe_own(false);
	out->own_kernel = tally_probe_own(true);
	out->system_wide = tally_probe_system_wide(online.count ? (int)online.cpus[0] : 0);
	out->hardware = tally_probe_hardware();
	out->breakpoint = tally_probe_breakpoint();
	if (!out->tracefs.read_errno) {
		out->tracepoint = tally_probe_tracepoint(out->tracefs.id, false);
		out->tracepoint_raw = tally_probe_tracepoint(out->tracefs.id, true);
	}
	if (!out->own)
		tally_probe_overflow(false, &out->clock_overflow);
	if (!out->hardware)
		tally_probe_overflow(true, &out->hardware_overflow);
	tally_cpu_list_release(&online);
}

int tally_machine_facts_refusal(const struct tally_machine_facts *facts)
{
	if (facts->reach == TALLY_PROBE_KILLED)
		return TALLY_PROBE_KILLED;
	if (tally_probe_is_refusal(facts->own))
		return facts->own;
	return 0;
}

const char *tally_machine_facts_provider(const struct tally_machine_facts *facts)
{
	if (!tally_machine_facts_refusal(facts))
		return "kernel";
	if (facts->process && !facts->process[0])
		return "process";
	return NULL;
}

void tally_machine_facts_read(struct tally_machine_facts *out)
{
	read_settings(out);
	set_not_tried(out);
	tally_cpu_model_read(&out->cpu);
	tally_probe_tracefs(&out->tracefs);
	out->kallsyms = tally_probe_kallsyms();
	out->reach = tally_probe_reach(true);
	if (out->reach != TALLY_PROBE_KILLED)
		read_probes(out);
}

void tally_machine_facts_read_quickly(struct tally_machine_facts *out)
{
	read_settings(out);
	set_not_tried(out);
	out->reach = tally_probe_reach(false);
}
