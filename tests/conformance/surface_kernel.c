/* The function table of the running kernel, and the process of a test.  surface_kernel.h lists the
 * parts. */
#include "surface_kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int kernel_open(struct surface *surface, const void *attr, pid_t pid, int cpu, int group,
		       unsigned long flags)
{
	(void)surface;
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group, flags);
	return fd < 0 ? -errno : (int)fd;
}

static ssize_t kernel_read(struct surface *surface, int fd, void *bytes, size_t size)
{
	(void)surface;
	ssize_t length = read(fd, bytes, size);
	return length < 0 ? -errno : length;
}

static long kernel_ioctl(struct surface *surface, int fd, unsigned long request, uintptr_t argument)
{
	(void)surface;
	int code = ioctl(fd, request, argument);
	return code < 0 ? -errno : code;
}

static void *kernel_mmap(struct surface *surface, int fd, size_t size, int protection, int flags,
			 uint64_t offset, int *error)
{
	(void)surface;
	void *address = mmap(NULL, size, protection, flags, fd, (off_t)offset);
	*error = address == MAP_FAILED ? -errno : 0;
	return address == MAP_FAILED ? NULL : address;
}

static int kernel_munmap(struct surface *surface, void *address, size_t size)
{
	(void)surface;
	return munmap(address, size) < 0 ? -errno : 0;
}

static int kernel_poll(struct surface *surface, struct pollfd *fds, unsigned count, int timeout_ms)
{
	(void)surface;
	int ready = poll(fds, count, timeout_ms);
	return ready < 0 ? -errno : ready;
}

static int kernel_fcntl(struct surface *surface, int fd, int command, long argument)
{
	(void)surface;
	int result = fcntl(fd, command, argument);
	return result < 0 ? -errno : result;
}

static int kernel_close(struct surface *surface, int fd)
{
	(void)surface;
	return close(fd) < 0 ? -errno : 0;
}

static int kernel_prctl(struct surface *surface, int option)
{
	(void)surface;
	int result = prctl(option, 0, 0, 0, 0);
	return result < 0 ? -errno : result;
}

static pid_t kernel_self(struct surface *surface)
{
	(void)surface;
	return (pid_t)syscall(SYS_gettid);
}

static pid_t kernel_process(struct surface *surface)
{
	(void)surface;
	return getpid();
}

static int kernel_this_cpu(struct surface *surface)
{
	(void)surface;
	return sched_getcpu();
}

static int kernel_cpus(struct surface *surface)
{
	(void)surface;
	return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void kernel_yield_to_signal(struct surface *surface)
{
	(void)surface;
	sched_yield(); /* signals are delivered on return from any system call */
}

static int kernel_set_comm(struct surface *surface, const char *comm)
{
	(void)surface;
	return prctl(PR_SET_NAME, comm, 0, 0, 0) < 0 ? -errno : 0;
}

static const char *kernel_mapped_path(struct surface *surface)
{
	return kernel_of(surface)->path;
}

static uint64_t kernel_now(struct surface *surface)
{
	(void)surface;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const struct surface_ops kernel_ops = {
	.name = "kernel",
	.open = kernel_open,
	.read = kernel_read,
	.ioctl = kernel_ioctl,
	.mmap = kernel_mmap,
	.munmap = kernel_munmap,
	.poll = kernel_poll,
	.fcntl = kernel_fcntl,
	.close = kernel_close,
	.prctl = kernel_prctl,
	.self = kernel_self,
	.process = kernel_process,
	.spawn = kernel_spawn,
	.wait = kernel_wait,
	.exec = kernel_exec,
	.drop_privileges = kernel_drop_privileges,
	.wait_while = kernel_wait_while,
	.post = kernel_post,
	.shared = kernel_shared,
	.pin = kernel_pin,
	.this_cpu = kernel_this_cpu,
	.cpus = kernel_cpus,
	.burn = kernel_burn,
	.loop = kernel_loop,
	.fault = kernel_fault,
	.fault_address = kernel_fault_address,
	.sleep = kernel_sleep,
	.yield_to_signal = kernel_yield_to_signal,
	.map_code = kernel_map_code,
	.mapped_path = kernel_mapped_path,
	.mapped_file = kernel_mapped_file,
	.set_comm = kernel_set_comm,
	.hit = kernel_hit,
	.touch = kernel_touch,
	.watched_address = kernel_watched_address,
	.make = kernel_make,
	.make_cgroup = kernel_make_cgroup,
	.make_ksymbol = kernel_make_ksymbol,
	.poke_text = kernel_poke_text,
	.now = kernel_now,
	.watch_signal = kernel_watch_signal,
	.signals = kernel_signals,
	.tracepoint = kernel_tracepoint,
	.tracepoint_format = kernel_tracepoint_format,
	.cgroup = kernel_cgroup,
	.cgroup_id = kernel_cgroup_id,
	.other_file = kernel_other_file,
	.bpf_program = kernel_bpf_program,
	.pmu = kernel_pmu,
	.sysctl = kernel_sysctl,
	.set_sysctl = kernel_set_sysctl,
	.set_online = kernel_set_online,
	.read_counter = kernel_read_counter,
	.counter_selector = kernel_counter_selector,
	.level = kernel_level,
	.run_guest = kernel_run_guest,
};

/* asm/perf_regs.h: PERF_REG_X86_IP, _SP; PERF_REG_ARM64_PC, _SP */
#if defined(__aarch64__)
enum { PERF_REGISTER_PC = 32, PERF_REGISTER_SP = 31, RAW_INSTRUCTIONS = 0x08 };
#else
enum { PERF_REGISTER_PC = 8, PERF_REGISTER_SP = 7, RAW_INSTRUCTIONS = 0xc0 };
#endif

static struct kernel_surface *surface_new(void)
{
	struct kernel_surface *kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		return NULL;
	kernel->surface.ops = &kernel_ops;
	kernel->surface.page_size = (size_t)sysconf(_SC_PAGESIZE);
	kernel->surface.pc_register = PERF_REGISTER_PC;
	kernel->surface.sp_register = PERF_REGISTER_SP;
	kernel->surface.raw_instructions = RAW_INSTRUCTIONS;
	kernel->arena_fd = -1;
	kernel->tracefs = kernel_tracefs_open();
	if (readlink("/proc/self/exe", kernel->path, sizeof(kernel->path) - 1) < 0)
		kernel->path[0] = '\0';
	return kernel;
}

struct surface *surface_kernel(void)
{
	struct kernel_surface *kernel = surface_new();
	if (!kernel)
		return NULL;
	kernel->surface.features = kernel_features(kernel);
	kernel->surface.hardware_counters = kernel->surface.features & SURFACE_HARDWARE
						    ? kernel_hardware_counters(&kernel->surface)
						    : 0;
	return &kernel->surface;
}

static void __attribute__((noreturn))
run_test(struct kernel_surface *kernel, surface_body *body, void *argument)
{
	struct rlimit limit = { DESCRIPTORS_MAX, DESCRIPTORS_MAX };
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	int code = kernel_arena_make(kernel);
	if (code == 0 && setrlimit(RLIMIT_NOFILE, &limit) < 0)
		code = -errno;
	if (code < 0) {
		dprintf(STDOUT_FILENO, "the test's process can't be set up: %s\n", strerror(-code));
		_exit(125);
	}
	kernel_task_begin(kernel);
	_exit(body(&kernel->surface, argument));
}

/* Prints where a process that took too long is blocked, for the report. */
static void tell_where(pid_t pid)
{
	static const char *const files[] = { "wchan", "syscall", "stack" };
	char path[64], text[1024];
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, files[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[length > 0 ? length : 0] = '\0';
		for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line;)
			dprintf(STDOUT_FILENO, "# %s: %s\n", files[i], line);
	}
}

/* Waits for the process to end.  After the time limit, kills it and returns -ETIMEDOUT. */
static int wait_limited(pid_t pid, unsigned timeout_s)
{
	int status, ready = 0, pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd >= 0) {
		struct pollfd ended = { .fd = pidfd, .events = POLLIN };
		while ((ready = poll(&ended, 1, (int)timeout_s * 1000)) < 0 && errno == EINTR)
			;
		/* A machine that was paused as a whole delays the test without its fault: wait a
		 * moment more. */
		if (ready == 0 && (ready = poll(&ended, 1, 2000)) == 0)
			tell_where(pid);
		close(pidfd);
		if (ready == 0)
			kill(-pid, SIGKILL);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	kill(-pid, SIGKILL); /* kill what the test left behind */
	if (pidfd >= 0 && ready == 0)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int surface_kernel_run(struct surface *surface, surface_body *body, void *argument,
		       unsigned timeout_s)
{
	struct kernel_surface *kernel = kernel_of(surface);
	int result = kernel_arena_make(kernel);
	if (result < 0)
		return result;
	pid_t pid = fork();
	if (pid == 0)
		run_test(kernel, body, argument);
	if (pid < 0) {
		result = -errno;
	} else {
		setpgid(pid, pid); /* the child does it too, whichever is first */
		result = wait_limited(pid, timeout_s);
	}
	kernel_restore(kernel);
	kernel_arena_drop(kernel);
	return result;
}

/* --body ARENA_FD ADDRESS OFFSET BYTES|@POINTER */
void surface_kernel_body(int argc, char **argv)
{
	if (argc != 6 || strcmp(argv[1], "--body"))
		return;
	struct kernel_surface *kernel = surface_new();
	if (!kernel)
		_exit(125);
	kernel->arena_fd = atoi(argv[2]);
	void *address = (void *)strtoul(argv[3], NULL, 16);
	kernel->arena = mmap(address, ARENA_SIZE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED_NOREPLACE, kernel->arena_fd, 0);
	if (kernel->arena != address)
		_exit(125);
	kernel->surface.features = kernel->arena->features;
	kernel->surface.hardware_counters = kernel->arena->hardware_counters;
	surface_body *body = (surface_body *)((uintptr_t)&surface_kernel +
					      strtoul(argv[4], NULL, 16));
	static char bytes[256] __attribute__((aligned(16)));
	void *argument = bytes;
	if (*argv[5] == '@')
		argument = (void *)strtoul(argv[5] + 1, NULL, 16);
	for (size_t i = 0; *argv[5] != '@' && argv[5][2 * i] && i < sizeof(bytes); i++) {
		char digits[3] = { argv[5][2 * i], argv[5][2 * i + 1], '\0' };
		bytes[i] = (char)strtoul(digits, NULL, 16);
	}
	kernel_task_begin(kernel);
	_exit(body(&kernel->surface, argument));
}
