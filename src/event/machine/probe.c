/* Opens real events and closes them again.  The probe of overflows also maps a ring, and keeps the
 * CPU busy for at most 30 ms until samples arrive.  The last probes read files: /proc/kallsyms, and
 * the table of mounts for tracefs. */
#include "machine/machine.h"

#include "abi/abi.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const uint64_t user_only = TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;

static int open_event(struct tally_attr *attr, int pid, int cpu)
{
	attr->size = TALLY_ATTR_SIZE_VER1;
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, TALLY_FLAG_FD_CLOEXEC);
}

static int try_event(struct tally_attr attr, int pid, int cpu)
{
	int fd = open_event(&attr, pid, cpu);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static int reach_errno(void)
{
	errno = 0;
	long fd = syscall(SYS_perf_event_open, NULL, 0, -1, -1, ~0ul);
	if (fd >= 0)
		close((int)fd);
	return errno;
}

int tally_probe_reach(bool in_child)
{
	int status;
	if (!in_child)
		return reach_errno();
	pid_t child = fork();
	if (child < 0)
		return TALLY_PROBE_NOT_TRIED;
	if (!child)
		_exit(reach_errno() & 0xff);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return TALLY_PROBE_NOT_TRIED;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return TALLY_PROBE_KILLED;
}

int tally_probe_own(bool with_kernel)
{
	return try_event((struct tally_attr){ .type = TALLY_TYPE_SOFTWARE,
					      .config = TALLY_SW_TASK_CLOCK,
					      .flags = with_kernel ? 0 : user_only },
			 0, -1);
}

bool tally_probe_is_refusal(int answer)
{
	return answer == EPERM || answer == EACCES || answer == ENOSYS || answer == ENODEV ||
	       answer == TALLY_PROBE_KILLED;
}

int tally_probe_refusal(void)
{
	/* A filter may kill whoever calls: without one, no child is needed to find out. */
	if (prctl(PR_GET_SECCOMP) > 0 && tally_probe_reach(true) == TALLY_PROBE_KILLED)
		return TALLY_PROBE_KILLED;
	int code = tally_probe_own(false);
	if (tally_probe_is_refusal(code))
		return code;
	return 0;
}

int tally_probe_system_wide(int cpu)
{
	return try_event((struct tally_attr){ .type = TALLY_TYPE_SOFTWARE,
					      .config = TALLY_SW_CPU_CLOCK,
					      .flags = user_only },
			 -1, cpu);
}

int tally_probe_hardware(void)
{
	return try_event((struct tally_attr){ .type = TALLY_TYPE_HARDWARE,
					      .config = TALLY_HW_CPU_CYCLES,
					      .flags = user_only },
			 0, -1);
}

int tally_probe_breakpoint(void)
{
	uint64_t watched = 0;
	return try_event((struct tally_attr){ .type = TALLY_TYPE_BREAKPOINT,
					      .bp_type = TALLY_BREAKPOINT_W,
					      .config1 = (uintptr_t)&watched,
					      .config2 = sizeof(watched),
					      .flags = user_only | TALLY_ATTR_DISABLED },
			 0, -1);
}

int tally_probe_tracepoint(uint64_t id, bool raw)
{
	return try_event((struct tally_attr){ .type = TALLY_TYPE_TRACEPOINT,
					      .config = id,
					      .sample_period = 1,
					      .sample_type = raw ? TALLY_SAMPLE_RAW : 0,
					      .flags = TALLY_ATTR_DISABLED },
			 0, -1);
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t count_samples(const struct tally_user_page *page, size_t size)
{
	const char *data = (const char *)page + sysconf(_SC_PAGESIZE);
	/* pairs with the kernel's release */
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t samples = 0;
	for (uint64_t at = 0; at + sizeof(struct tally_record_header) <= head && at < size;) {
		struct tally_record_header header;
		memcpy(&header, data + at, sizeof(header));
		if (header.size < sizeof(header))
			break;
		samples += header.type == TALLY_RECORD_SAMPLE;
		at += header.size;
	}
	return samples;
}

/* Long enough for a hypervisor that delivers interrupts late, short enough to go unnoticed. */
static void stay_busy(const struct tally_user_page *page, size_t size)
{
	enum { BUSY_NS_MAX = 30 * 1000 * 1000, ENOUGH_SAMPLES = 3, STEPS = 20000 };
	uint64_t end = now_ns() + BUSY_NS_MAX;
	while (now_ns() < end && count_samples(page, size) < ENOUGH_SAMPLES)
		for (unsigned i = 0; i < STEPS; i++)
			__asm__ volatile(""); /* so that the compiler keeps the loop */
}

void tally_probe_overflow(bool hardware, struct tally_overflow_probe *out)
{
	enum { CYCLES_PERIOD = 100000, CLOCK_PERIOD_NS = 1000000 };
	struct tally_attr attr = {
		.type = TALLY_TYPE_SOFTWARE,
		.config = TALLY_SW_CPU_CLOCK,
		.sample_period = CLOCK_PERIOD_NS,
		.sample_type = TALLY_SAMPLE_IP,
		.read_format = TALLY_FORMAT_TOTAL_TIME_ENABLED | TALLY_FORMAT_TOTAL_TIME_RUNNING,
		.flags = user_only,
	};
	if (hardware) {
		attr.type = TALLY_TYPE_HARDWARE;
		attr.config = TALLY_HW_CPU_CYCLES;
		attr.sample_period = CYCLES_PERIOD;
	}
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t values[3] = { 0 };
	int fd = open_event(&attr, 0, -1);
	*out = (struct tally_overflow_probe){ 0 };
	if (fd < 0) {
		out->open_errno = errno;
		return;
	}
	struct tally_user_page *page = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE,
					    MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		out->map_errno = errno;
	} else {
		stay_busy(page, page_bytes);
		out->samples = count_samples(page, page_bytes);
		munmap(page, 2 * page_bytes);
	}
	if (read(fd, values, sizeof(values)) == (ssize_t)sizeof(values)) {
		out->count = values[0];
		out->running_ns = values[2];
	}
	close(fd);
}

/* The probes that read files: kernel symbols, tracefs. */

int tally_probe_kallsyms(void)
{
	char text[4096];
	int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t length = read(fd, text, sizeof(text));
	close(fd);
	/* x86's first symbols may be per-CPU offsets, which are zero for every user: one digit
	 * other than 0 is enough. */
	for (ssize_t i = 0; i < length;) {
		const char *line = text + i;
		while (i < length && text[i] != ' ' && text[i] != '\n')
			if (text[i++] != '0')
				return 1;
		const char *newline = memchr(line, '\n', (size_t)(text + length - line));
		if (!newline)
			break;
		i = newline + 1 - text;
	}
	if (length > 0)
		return 0;
	return -1;
}

static bool is_tracefs(const char *path)
{
	enum { TRACEFS = 0x74726163 }; /* linux/magic.h */
	struct statfs status;
	return !statfs(path, &status) && status.f_type == TRACEFS;
}

/* Finds a mount at another place than the usual two, in the table of mounts. */
static void find_mount(char *out, size_t size)
{
	char line[1024], path[512], type[64];
	bool found = false;
	FILE *mounts = fopen("/proc/self/mounts", "re");
	while (mounts && !found && fgets(line, sizeof(line), mounts))
		if (sscanf(line, "%*s %511s %63s", path, type) == 2 && !strcmp(type, "tracefs"))
			found = snprintf(out, size, "%s", path) < (int)size;
	if (mounts)
		fclose(mounts);
}

static bool kernel_has_tracefs(void)
{
	char line[128];
	bool found = false;
	FILE *types = fopen("/proc/filesystems", "re");
	while (types && !found && fgets(line, sizeof(line), types))
		found = strstr(line, "\ttracefs\n") != NULL;
	if (types)
		fclose(types);
	return found;
}

void tally_probe_tracefs(struct tally_tracefs_state *out)
{
	static const char *const usual[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	*out = (struct tally_tracefs_state){ .in_kernel = kernel_has_tracefs() };
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && !out->path[0]; i++)
		if (is_tracefs(usual[i]))
			snprintf(out->path, sizeof(out->path), "%s", usual[i]);
	if (!out->path[0])
		find_mount(out->path, sizeof(out->path));
	int directory = tally_tracefs_open(NULL);
	int64_t id = directory;
	if (directory >= 0)
		id = tally_tracefs_tracepoint_id(directory, "sched", "sched_switch");
	if (directory >= 0)
		close(directory);
	if (id < 0)
		out->read_errno = (int)-id;
	else
		out->id = (uint64_t)id;
}
