#include "machine/sysctl.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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
	text[length > 0 ? length : 0] = 0;
	long value = strtol(text, &end, 10);
	return end == text || value > INT_MAX || value < -INT_MAX ? TALLY_SYSCTL_UNKNOWN
								  : (int)value;
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
