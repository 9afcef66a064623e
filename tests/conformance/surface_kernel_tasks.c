/* Tasks of the running kernel: processes and threads, their shared memory, and waiting for one
 * another. */
#include "surface_kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

enum {
	STACK_READY = 256 << 10,
	STACK_SIZE = 1 << 20,
	MAPPING_POPULATED_MAX = 32 << 20,
	NOBODY = 65534
};

_Thread_local struct kernel_task kernel_task;

/* Grows the stack beyond a test's needs.  The return value keeps the compiler from removing the
 * array. */
static __attribute__((noinline)) int grow_stack(void)
{
	volatile char room[STACK_READY];
	for (size_t i = 0; i < sizeof(room); i += 1024)
		room[i] = 1;
	return room[STACK_READY / 2];
}

/* The line is "55d0…-55d1… r-xp …". */
static void populate_mapping(const char *line)
{
	unsigned long start, end;
	char access[5];
	if (sscanf(line, "%lx-%lx %4s", &start, &end, access) != 3 ||
	    end - start > MAPPING_POPULATED_MAX)
		return;
	if (access[0] == 'r')
		madvise((void *)start, end - start,
			access[1] == 'w' ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/* Touches all pages: after a fork, a private page is copied and a file page is found again, each
 * with a fault. */
static void populate(void)
{
	/* on the stack: threads would share a static buffer */
	char text[32 << 10];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	for (ssize_t more; length < sizeof(text) - 1 &&
	     (more = read(fd, text + length, sizeof(text) - 1 - length)) > 0;)
		length += (size_t)more;
	close(fd);
	text[length] = '\0';
	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		populate_mapping(line);
	}
}

void kernel_task_begin(struct kernel_surface *kernel)
{
	size_t size = FAULT_PAGES * kernel->surface.page_size;
	grow_stack();
	/* A region of its own: its pages are never merged to huge ones, nor present before
	 * fault(). */
	kernel_task.fault_region = mmap(NULL, size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	madvise(kernel_task.fault_region, size, MADV_NOHUGEPAGE);
	populate();
	/* Make lazy binding and the first reads happen before anything is counted. */
	kernel_fault(&kernel->surface, 1);
	kernel->surface.ops->now(&kernel->surface);
	syscall(SYS_gettid);
	populate();
}

int kernel_private_descriptor(int fd)
{
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, PRIVATE_DESCRIPTORS);
	if (moved < 0)
		return fd; /* the limit is lower: the descriptor stays where it is */
	close(fd);
	return moved;
}

/* Addresses that are free with 39 and 48 bits of address space, with and without ASan's shadow. */
static void *map_arena(int fd)
{
	static const uintptr_t places[] = { 0x200000000000, 0x1000000000, 0x40000000 };
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		void *address = mmap((void *)places[i], ARENA_SIZE, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_POPULATE, fd, 0);
		if (address != MAP_FAILED)
			return address;
	}
	return NULL;
}

int kernel_arena_make(struct kernel_surface *kernel)
{
	if (kernel->arena)
		return 0;
	int fd = memfd_create("tally-conformance", 0); /* stays open over exec() */
	if (fd < 0 || ftruncate(fd, ARENA_SIZE) < 0)
		return -errno;
	kernel->arena = map_arena(fd);
	if (!kernel->arena)
		return -ENOMEM;
	int moved = fcntl(fd, F_DUPFD, PRIVATE_DESCRIPTORS);
	if (moved >= 0)
		close(fd);
	kernel->arena_fd = moved < 0 ? fd : moved;
	kernel->arena->used = (sizeof(struct arena) + 63) & ~63u;
	kernel->arena->features = kernel->surface.features;
	kernel->arena->hardware_counters = kernel->surface.hardware_counters;
	const char *temporary = getenv("TMPDIR");
	snprintf(kernel->arena->directory, sizeof(kernel->arena->directory), "%.40s/tally-XXXXXX",
		 temporary ? temporary : "/tmp");
	if (!mkdtemp(kernel->arena->directory))
		return -errno;
	/* a task that dropped its privileges makes links there too */
	chmod(kernel->arena->directory, 01777);
	return 0;
}

void kernel_arena_drop(struct kernel_surface *kernel)
{
	if (!kernel->arena)
		return;
	DIR *directory = opendir(kernel->arena->directory);
	for (struct dirent *entry; directory && (entry = readdir(directory));)
		if (entry->d_type != DT_DIR)
			unlinkat(dirfd(directory), entry->d_name, 0);
	if (directory)
		closedir(directory);
	rmdir(kernel->arena->directory);
	munmap(kernel->arena, ARENA_SIZE);
	close(kernel->arena_fd);
	kernel->arena = NULL;
}

struct thread_start {
	struct kernel_surface *kernel;
	struct kernel_thread *thread;
	surface_body *body;
	void *argument;
};

static void *thread_main(void *start_)
{
	struct thread_start start = *(struct thread_start *)start_;
	kernel_task_begin(start.kernel);
	kernel_post(&start.kernel->surface, &start.thread->tid, (uint32_t)syscall(SYS_gettid));
	return (void *)(intptr_t)start.body(&start.kernel->surface, start.argument);
}

static pid_t spawn_thread(struct kernel_surface *kernel, surface_body *body, void *argument)
{
	struct kernel_thread *thread = kernel->threads;
	while (thread < kernel->threads + THREADS_MAX && thread->handle)
		thread++;
	if (thread == kernel->threads + THREADS_MAX)
		return -EAGAIN;
	struct thread_start start = { kernel, thread, body, argument };
	thread->tid = 0;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	int code = pthread_create(&thread->handle, &attributes, thread_main, &start);
	pthread_attr_destroy(&attributes);
	if (code)
		return -code;
	kernel_wait_while(&kernel->surface, &thread->tid, 0);
	return (pid_t)thread->tid;
}

pid_t kernel_spawn(struct surface *surface, enum surface_task_kind kind, surface_body *body,
		   void *argument)
{
	struct kernel_surface *kernel = kernel_of(surface);
	if (kind == SURFACE_THREAD)
		return spawn_thread(kernel, body, argument);
	volatile uint32_t *settled = kernel_shared(surface, sizeof(*settled));
	if (!settled)
		return -ENOMEM;
	pid_t pid = fork();
	if (pid == 0) {
		memset(kernel->threads, 0, sizeof(kernel->threads));
		populate();
		kernel_post(surface, settled, 1);
		_exit(body(surface, argument));
	}
	if (pid < 0)
		return -errno;
	populate(); /* the fork write-protected our pages */
	/* An event that the caller opens now must not count the child's faults of populate(). */
	kernel_wait_while(surface, settled, 0);
	return pid;
}

/* pthread_join() returns before the kernel has removed the thread's events.  The tid disappears
 * after that. */
static void wait_until_gone(pid_t tid)
{
	struct timespec moment = { .tv_nsec = 50000 };
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		nanosleep(&moment, NULL);
}

int kernel_wait(struct surface *surface, pid_t task)
{
	struct kernel_surface *kernel = kernel_of(surface);
	for (struct kernel_thread *thread = kernel->threads; thread < kernel->threads + THREADS_MAX;
	     thread++) {
		if (!thread->handle || (pid_t)thread->tid != task)
			continue;
		void *result;
		int code = pthread_join(thread->handle, &result);
		wait_until_gone(task);
		thread->handle = 0;
		return code ? -code : (int)(intptr_t)result;
	}
	int status;
	while (waitpid(task, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int kernel_exec(struct surface *surface, const char *comm, surface_body *body, const void *argument,
		size_t size)
{
	struct kernel_surface *kernel = kernel_of(surface);
	char link[96], fd[16], address[24], offset[24], bytes[2 * 256 + 1];
	if (size > 256)
		return -E2BIG;
	/* comm becomes the last part of the executed path, so this makes a link with that name. */
	snprintf(link, sizeof(link), "%s/%.15s", kernel->arena->directory, comm);
	if (symlink("/proc/self/exe", link) < 0 && errno != EEXIST)
		return -errno;
	snprintf(fd, sizeof(fd), "%d", kernel->arena_fd);
	snprintf(address, sizeof(address), "%lx", (unsigned long)(uintptr_t)kernel->arena);
	snprintf(offset, sizeof(offset), "%lx",
		 (unsigned long)((uintptr_t)body - (uintptr_t)&surface_kernel));
	if (size == 0)
		snprintf(bytes, sizeof(bytes), "@%lx", (unsigned long)(uintptr_t)argument);
	for (size_t i = 0; i < size; i++)
		snprintf(bytes + 2 * i, 3, "%02x", ((const unsigned char *)argument)[i]);
	char *const argv[] = { (char *)comm, "--body", fd, address, offset, bytes, NULL };
	execv(link, argv);
	return -errno;
}

int kernel_drop_privileges(struct surface *surface)
{
	(void)surface;
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return -errno;
	/* A change of user makes /proc/self inaccessible to the process, as for set-user-ID
	 * programs. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return 0;
}

void kernel_wait_while(struct surface *surface, volatile uint32_t *word, uint32_t value)
{
	(void)surface;
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void kernel_post(struct surface *surface, volatile uint32_t *word, uint32_t value)
{
	(void)surface;
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

void *kernel_shared(struct surface *surface, size_t size)
{
	struct arena *arena = kernel_of(surface)->arena;
	uint32_t rounded = (uint32_t)(size + 63) & ~63u;
	uint32_t start = __atomic_fetch_add(&arena->used, rounded, __ATOMIC_RELAXED);
	return start + rounded > ARENA_SIZE ? NULL : (char *)arena + start;
}

int kernel_pin(struct surface *surface, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (cpu < 0 || i == cpu)
			CPU_SET(i, &set);
	(void)surface;
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	kernel_task.last_code[signal] = info->si_code;
	/* siginfo's perf_data follows si_addr; not every libc has a name for it. */
	memcpy((void *)&kernel_task.last_data[signal], (char *)&info->si_addr + sizeof(void *),
	       sizeof(unsigned long));
	kernel_task.signals[signal]++;
}

int kernel_watch_signal(struct surface *surface, int signal)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	(void)surface;
	if (signal < 1 || signal >= SIGNALS_MAX)
		return -EINVAL;
	kernel_task.signals[signal] = 0;
	return sigaction(signal, &action, NULL) < 0 ? -errno : 0;
}

unsigned kernel_signals(struct surface *surface, int signal, int *last_code, uint64_t *last_data)
{
	(void)surface;
	if (signal < 1 || signal >= SIGNALS_MAX)
		return 0;
	if (last_code)
		*last_code = kernel_task.last_code[signal];
	if (last_data)
		*last_data = kernel_task.last_data[signal];
	return kernel_task.signals[signal];
}
