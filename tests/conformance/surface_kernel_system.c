/* The running kernel's features, tracepoints, PMUs and settings. */
#include "surface_kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static ssize_t read_text(int directory, const char *path, char *text, size_t size)
{
	int fd = openat(directory, path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : 0;
	for (ssize_t more = 1; more > 0 && (size_t)length < size - 1; length += more > 0 ? more : 0)
		if (fd < 0 || (more = read(fd, text + length, size - 1 - (size_t)length)) < 0)
			break;
	int code = -errno;
	if (fd < 0)
		return code;
	close(fd);
	text[length] = '\0';
	return length;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int code = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return code;
}

/* Opens tracefs in the same way as src/event/machine/tracefs.c: at its mount point, or as a mount of its
 * own that has no path and lasts as long as this process.  Returns a descriptor or -errno. */
int kernel_tracefs_open(void)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	enum { CONFIG_CREATE = 6, NO_SUID_DEV_EXEC_READ_ONLY = 15 };
	struct statfs fs;
	for (unsigned i = 0; i < 2; i++) {
		int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == TRACEFS_MAGIC)
			return kernel_private_descriptor(fd);
		if (fd >= 0)
			close(fd);
	}
	int context = (int)syscall(SYS_fsopen, "tracefs", 1);
	if (context < 0)
		return -errno;
	int mount = -1;
	if (syscall(SYS_fsconfig, context, CONFIG_CREATE, NULL, NULL, 0) == 0)
		mount = (int)syscall(SYS_fsmount, context, 1, NO_SUID_DEV_EXEC_READ_ONLY);
	int code = -errno;
	close(context);
	return mount < 0 ? code : kernel_private_descriptor(mount);
}

/* Makes the path "events/GROUP/NAME/FILE" from "group:name" or from one of the suite's own names:
 * the first that exists. */
static int tracepoint_path(struct kernel_surface *kernel, const char *name, const char *file,
			   char *path, size_t size)
{
	static const struct { const char *alias, *name; } aliases[] = {
		{ "hit", "syscalls:sys_enter_getppid" },
		{ "hit", "raw_syscalls:sys_enter" },
		{ "weighted", "sched:sched_stat_runtime" },
		{ "tasked", "sched:sched_wakeup" },
		{ NULL, NULL }
	};
	for (unsigned i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		const char *full = aliases[i].alias ? aliases[i].name : name;
		const char *colon = strchr(full, ':');
		if ((aliases[i].alias && strcmp(aliases[i].alias, name)) || !colon)
			continue;
		snprintf(path, size, "events/%.*s/%s/%s", (int)(colon - full), full, colon + 1,
			 file);
		if (faccessat(kernel->tracefs, path, R_OK, 0) == 0)
			return 0;
	}
	return -ENOENT;
}

long kernel_tracepoint(struct surface *surface, const char *name)
{
	struct kernel_surface *kernel = kernel_of(surface);
	char path[256], text[32];
	if (kernel->tracefs < 0 || tracepoint_path(kernel, name, "id", path, sizeof(path)) < 0)
		return -ENOENT;
	ssize_t length = read_text(kernel->tracefs, path, text, sizeof(text));
	return length < 0 ? length : atol(text);
}

const char *kernel_tracepoint_format(struct surface *surface, const char *name)
{
	enum { FORMAT_MAX = 64 << 10 };
	struct kernel_surface *kernel = kernel_of(surface);
	char path[256];
	if (kernel->tracefs < 0 || tracepoint_path(kernel, name, "format", path, sizeof(path)) < 0)
		return NULL;
	if (!kernel->format)
		kernel->format = malloc(FORMAT_MAX);
	if (!kernel->format || read_text(kernel->tracefs, path, kernel->format, FORMAT_MAX) < 0)
		return NULL;
	return kernel->format;
}

int kernel_pmu(struct surface *surface, const char *name)
{
	static const char *const own[] = { "cpu", "armv8_pmuv3", "armv8_pmuv3_0", "cpu_core" };
	char path[160], text[32];
	(void)surface;
	bool hardware = !strcmp(name, "hardware");
	for (unsigned i = 0; i < (hardware ? sizeof(own) / sizeof(own[0]) : 1); i++) {
		snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%.64s/type",
			 hardware ? own[i] : name);
		if (read_text(AT_FDCWD, path, text, sizeof(text)) > 0)
			return atoi(text);
	}
	return -ENOENT;
}

/* Reads "0::/path", a group below the mount point of cgroup 2: perf_event follows that if no
 * hierarchy of its own is mounted. */
int kernel_cgroup(struct surface *surface)
{
	static const char *const places[] = { "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };
	char text[4096], path[4224];
	struct statfs fs;
	(void)surface;
	if (read_text(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return -EOPNOTSUPP;
	char *line = strncmp(text, "0::", 3) ? strstr(text, "\n0::") : text;
	for (unsigned i = 1; line && i < sizeof(places) / sizeof(places[0]); i++) {
		char *start = strchr(line, '/');
		if (statfs(places[i], &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
			continue;
		snprintf(path, sizeof(path), "%s%.*s", places[i], (int)strcspn(start, "\n"), start);
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return -EOPNOTSUPP;
}

int kernel_bpf_program(struct surface *surface, bool passes)
{
	(void)surface;
	struct bpf_insn instructions[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = passes },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_TRACEPOINT,
		.insn_cnt = 2,
		.insns = (uintptr_t)instructions,
		.license = (uintptr_t)"GPL",
	};
	long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

long kernel_sysctl(struct surface *surface, const char *name)
{
	char path[96], text[32];
	(void)surface;
	snprintf(path, sizeof(path), "/proc/sys/kernel/%.64s", name);
	ssize_t length = read_text(AT_FDCWD, path, text, sizeof(text));
	return length < 0 ? length : atol(text);
}

/* Saves the previous text, once, and writes. */
static int change_file(struct kernel_surface *kernel, const char *path, const char *text)
{
	struct arena *arena = kernel->arena;
	unsigned i = 0;
	while (i < arena->saved_count && strcmp(arena->saved[i].path, path))
		i++;
	if (i == SAVED_MAX)
		return -ENOSPC;
	if (i == arena->saved_count) {
		ssize_t length = read_text(AT_FDCWD, path, arena->saved[i].text,
					   sizeof(arena->saved[i].text));
		if (length < 0)
			return (int)length;
		snprintf(arena->saved[i].path, sizeof(arena->saved[i].path), "%s", path);
		arena->saved_count++;
	}
	return write_text(path, text);
}

void kernel_restore(struct kernel_surface *kernel)
{
	struct arena *arena = kernel->arena;
	for (unsigned i = 0; arena && i < arena->saved_count; i++)
		write_text(arena->saved[i].path, arena->saved[i].text);
}

int kernel_set_sysctl(struct surface *surface, const char *name, long value)
{
	char path[96], text[32];
	if (!(surface->features & SURFACE_MAY_SET_SYSCTLS))
		return -EPERM;
	snprintf(path, sizeof(path), "/proc/sys/kernel/%.64s", name);
	snprintf(text, sizeof(text), "%ld\n", value);
	return change_file(kernel_of(surface), path, text);
}

int kernel_set_online(struct surface *surface, int cpu, bool online)
{
	char path[96];
	if (!(surface->features & SURFACE_HOTPLUG))
		return -EPERM;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return change_file(kernel_of(surface), path, online ? "1\n" : "0\n");
}

static bool opens(struct kernel_surface *kernel, const struct tally_attr *attr, pid_t pid, int cpu)
{
	int fd = kernel->surface.ops->open(&kernel->surface, attr, pid, cpu, -1,
					   TALLY_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

unsigned kernel_features(struct kernel_surface *kernel)
{
	struct tally_attr attr = { .type = TALLY_TYPE_HARDWARE,
				   .size = sizeof(attr),
				   .flags = TALLY_ATTR_EXCLUDE_KERNEL };
	unsigned features = SURFACE_VFS;
	bool cycles = opens(kernel, &attr, 0, -1);
	attr.config = TALLY_HW_INSTRUCTIONS;
	if (cycles && opens(kernel, &attr, 0, -1)) {
		features |= SURFACE_HARDWARE | SURFACE_USER_COUNTERS;
#if defined(__aarch64__)
		features |= SURFACE_ARM_PMU |
			    (kernel_may_run_guests(&kernel->surface) ? SURFACE_VIRTUALISATION : 0);
#elif defined(__x86_64__)
		features |= SURFACE_X86_PMU;
#endif
	}
	attr.type = TALLY_TYPE_BREAKPOINT;
	attr.config = 0;
	attr.bp_type = TALLY_BREAKPOINT_W;
	attr.config1 = kernel_watched_address(&kernel->surface, TALLY_BREAKPOINT_W);
	attr.config2 = 4;
	if (opens(kernel, &attr, 0, -1))
		features |= SURFACE_BREAKPOINTS;
	if (kernel_tracepoint(&kernel->surface, "hit") > 0)
		features |= SURFACE_TRACEPOINTS;
	struct tally_attr dummy = { .type = TALLY_TYPE_SOFTWARE,
				    .size = sizeof(dummy),
				    .config = TALLY_SW_DUMMY };
	if (geteuid() == 0 && opens(kernel, &dummy, -1, 0))
		features |= SURFACE_PRIVILEGED;
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) > 1)
		features |= SURFACE_TWO_CPUS;
	int program = kernel_bpf_program(&kernel->surface, true);
	if (program >= 0) {
		features |= SURFACE_BPF;
		close(program);
	}
	return features;
}

/* Returns how many events of one kind a group takes.  The kernel checks a group against the
 * counters when it is opened; on arm64 only the group's enabled events.  On x86, instructions have
 * a fixed counter in addition and branches don't. */
unsigned kernel_hardware_counters(struct surface *surface)
{
	enum { COUNTERS_MAX = 64 };
	struct tally_attr attr = { .type = TALLY_TYPE_HARDWARE,
				   .size = sizeof(attr),
				   .config = TALLY_HW_INSTRUCTIONS,
				   .flags = TALLY_ATTR_EXCLUDE_KERNEL };
	if (surface->features & SURFACE_X86_PMU)
		attr.config = TALLY_HW_BRANCH_INSTRUCTIONS;
	int fds[COUNTERS_MAX];
	unsigned count = 0;
	while (count < COUNTERS_MAX &&
	       (fds[count] = surface->ops->open(surface, &attr, 0, -1, count ? fds[0] : -1,
						TALLY_FLAG_FD_CLOEXEC)) >= 0)
		count++;
	for (unsigned i = 0; i < count; i++)
		close(fds[i]);
	return count;
}
