/* Reads /proc/sys and the resource limits, and computes how much memory rings may lock.  The budget
 * depends on the values read alone, and rounds them as the kernel does. */
#include "machine/machine.h"

#include "base/extremes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int tally_sysctl_read(const char *name)
{
	char path[128], text[32], *end;
	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return TALLY_SYSCTL_UNKNOWN;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[tally_max_i64(length, 0)] = 0;
	long value = strtol(text, &end, 10);
	if (end == text || value > INT_MAX || value < -INT_MAX)
		return TALLY_SYSCTL_UNKNOWN;
	return (int)value;
}

void tally_sysctls_read(struct tally_sysctls *out)
{
	*out = (struct tally_sysctls){
		.paranoid = tally_sysctl_read("kernel/perf_event_paranoid"),
		.mlock_kb = tally_sysctl_read("kernel/perf_event_mlock_kb"),
		.max_sample_rate = tally_sysctl_read("kernel/perf_event_max_sample_rate"),
		.max_stack = tally_sysctl_read("kernel/perf_event_max_stack"),
		.cpu_time_max_percent = tally_sysctl_read("kernel/perf_cpu_time_max_percent"),
		.kptr_restrict = tally_sysctl_read("kernel/kptr_restrict"),
		.ptrace_scope = tally_sysctl_read("kernel/yama/ptrace_scope"),
		.user_access = tally_sysctl_read("kernel/perf_user_access"),
		.nmi_watchdog = tally_sysctl_read("kernel/nmi_watchdog"),
	};
}

static uint64_t limit_value(rlim_t limit)
{
	if (limit == RLIM_INFINITY)
		return TALLY_LIMIT_NONE;
	return (uint64_t)limit;
}

void tally_limits_read(struct tally_limits *out)
{
	struct rlimit memlock = { 0, 0 }, files = { 0, 0 };
	getrlimit(RLIMIT_MEMLOCK, &memlock);
	getrlimit(RLIMIT_NOFILE, &files);
	*out = (struct tally_limits){
		.memlock_bytes = limit_value(memlock.rlim_cur),
		.memlock_bytes_max = limit_value(memlock.rlim_max),
		.descriptors = limit_value(files.rlim_cur),
		.descriptors_max = limit_value(files.rlim_max),
	};
}

uint64_t tally_limits_raise_descriptors(void)
{
	struct rlimit files;
	if (getrlimit(RLIMIT_NOFILE, &files))
		return 0;
	rlim_t before = files.rlim_cur;
	files.rlim_cur = files.rlim_max;
	if (before != files.rlim_max && setrlimit(RLIMIT_NOFILE, &files))
		files.rlim_cur = before;
	return limit_value(files.rlim_cur);
}

struct tally_ring_budget tally_ring_budget_make(const struct tally_sysctls *sysctls,
						const struct tally_capabilities *capabilities,
						const struct tally_limits *limits,
						size_t online_cpus, uint32_t page_bytes)
{
	bool capable = capabilities->initial_namespace && capabilities->ipc_lock;
	bool trusting = sysctls->paranoid != TALLY_SYSCTL_UNKNOWN && sysctls->paranoid <= -1;
	struct tally_ring_budget budget = { .page_bytes = page_bytes };
	uint64_t page_kb = tally_max_u64(page_bytes / 1024, 1);
	uint64_t pages = (uint64_t)tally_max_i64(sysctls->mlock_kb, 0) / page_kb;
	budget.unlimited = capable || trusting || limits->memlock_bytes == TALLY_LIMIT_NONE;
	/* Both are rounded down to pages separately, as in the kernel. */
	budget.bytes = pages * online_cpus * page_bytes;
	if (!budget.unlimited)
		budget.bytes += limits->memlock_bytes / page_bytes * page_bytes;
	return budget;
}

struct tally_ring_budget tally_machine_ring_budget(void)
{
	struct tally_sysctls sysctls;
	struct tally_capabilities capabilities;
	struct tally_limits limits;
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	tally_sysctls_read(&sysctls);
	tally_capabilities_read(&capabilities);
	tally_limits_read(&limits);
	return tally_ring_budget_make(&sysctls, &capabilities, &limits,
				      (size_t)tally_max_i64(online, 1),
				      (uint32_t)sysconf(_SC_PAGESIZE));
}

size_t tally_machine_ring_pages(const struct tally_ring_budget *budget, size_t rings,
				size_t pages_max)
{
	uint64_t room = budget->bytes / budget->page_bytes; /* pages of all rings */
	size_t pages = 1;
	if (!pages_max)
		return 0;
	if (!rings)
		rings = 1;
	while (pages <= pages_max / 2)
		pages *= 2;
	while (!budget->unlimited && pages && pages + 1 > room / rings)
		pages /= 2;
	return pages;
}

void tally_ring_budget_spend(struct tally_ring_budget *budget, size_t rings, size_t data_pages)
{
	uint64_t spent = (uint64_t)rings * (data_pages + 1) * budget->page_bytes;
	budget->bytes = tally_saturating_sub_u64(budget->bytes, spent);
}
