/* Steps of process_torture that need a process of their own: `run` returns whether all is well, or
 * ends the process with status 0 by itself. */
#include "process_torture.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { MANY = 4 };

static void *spin(void *argument)
{
	(void)argument;
	for (;;)
		torture_sum(100000);
	return NULL;
}

static bool start_spinning(unsigned count)
{
	pthread_t thread;
	while (count--)
		if (pthread_create(&thread, NULL, spin, NULL))
			return torture_failed("pthread_create");
	return true;
}

static void pause_for(long ns)
{
	const struct timespec moment = { .tv_nsec = ns };
	nanosleep(&moment, NULL);
}

/* A filter of the program's own, which kills for each call that it doesn't make itself. */
static bool own_filter(uint64_t *random)
{
	static const int allowed[] = { SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_brk,
				       SYS_munmap };
	enum { COUNT = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter filter[COUNT + 3];
	struct sock_fprog program = { .len = COUNT + 3, .filter = filter };
	torture_sum((unsigned)(torture_random(random) % 5000000));
	filter[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < COUNT; i++)
		filter[1 + i] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], (unsigned char)(COUNT - i), 0);
	filter[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	filter[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return torture_failed("PR_SET_NO_NEW_PRIVS");
	long result;
	if (torture_random(random) % 2)
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	else
		result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	if (result)
		return torture_failed("a seccomp filter");
	bool is_well = torture_work(30000000);
	_exit(!is_well);
}

static bool strict_filter(uint64_t *random)
{
	(void)random;
	torture_sum(1000000);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		return torture_failed("PR_SET_SECCOMP");
	bool is_well = torture_work(30000000);
	syscall(SYS_exit, !is_well);
	return false;
}

/* libc changes the user of all threads by a signal of its own. */
static bool all_threads_user(uint64_t *random)
{
	(void)random;
	if (!start_spinning(MANY))
		return false;
	for (unsigned i = 0; i < 50; i++)
		if (setresuid(getuid(), geteuid(), (uid_t)-1) || setresgid(getgid(), getegid(), (gid_t)-1))
			return torture_failed("setresuid");
	exit(0);
}

static void *exec_soon(void *argument)
{
	torture_sum(3000000);
	torture_exec((int)(intptr_t)argument);
}

static bool exec_from_thread(uint64_t *random)
{
	pid_t pid = fork();
	(void)random;
	if (!pid) {
		pthread_t thread;
		if (!start_spinning(MANY) || pthread_create(&thread, NULL, exec_soon, (void *)11))
			_exit(124);
		spin(NULL);
	}
	return torture_expect(pid, EXITS, 11, "exec by a thread");
}

static void *exit_later(void *argument)
{
	pause_for(5 * NS_PER_MS);
	torture_sum(3000000);
	if (argument)
		exit(0);
	return NULL;
}

/* The main thread ends before the process. */
static bool main_thread_ends(uint64_t *random)
{
	pthread_t thread;
	static bool exits = true;
	if (pthread_create(&thread, NULL, exit_later, torture_random(random) % 2 ? &exits : NULL))
		return torture_failed("pthread_create");
	torture_sum(1000000);
	pthread_exit(NULL);
}

static bool exit_beside_threads(uint64_t *random)
{
	if (!start_spinning(2 * MANY))
		return false;
	pause_for((long)(torture_random(random) % 4000000));
	exit(0);
}

static bool exit_by_thread(uint64_t *random)
{
	static bool exits = true;
	pthread_t thread;
	(void)random;
	if (!start_spinning(MANY) || pthread_create(&thread, NULL, exit_later, &exits))
		return false;
	spin(NULL);
	return false;
}

/* Many threads live at once, and more than there are slots and rings for. */
static void *wait_at(void *argument)
{
	torture_sum(10000);
	pthread_barrier_wait(argument);
	return NULL;
}

static bool many_threads(uint64_t *random)
{
	enum { COUNT = 1500 };
	static pthread_t threads[COUNT];
	pthread_barrier_t barrier;
	pthread_attr_t attr;
	unsigned count = 100 + (unsigned)(torture_random(random) % (COUNT - 100)), started = 0;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 16);
	struct rlimit limit;
	if (!getrlimit(RLIMIT_NPROC, &limit) && limit.rlim_cur < 4 * COUNT)
		count = 50;
	pthread_barrier_init(&barrier, NULL, count + 1);
	for (; started < count; started++) {
		errno = pthread_create(&threads[started], &attr, wait_at, &barrier);
		if (errno == EAGAIN)
			exit(0); /* a limit of this machine */
		if (errno)
			return torture_failed("thread %u", started);
	}
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < count; i++)
		if (pthread_join(threads[i], NULL))
			return torture_failed("pthread_join");
	return true;
}

static void *add_one(void *argument)
{
	__atomic_fetch_add((unsigned *)argument, 1, __ATOMIC_RELAXED);
	return argument;
}

static bool short_threads(uint64_t *random)
{
	enum { COUNT = 10000 };
	static unsigned count;
	(void)random;
	for (unsigned i = 0; i < COUNT; i++) {
		pthread_t thread;
		void *result = NULL;
		errno = pthread_create(&thread, NULL, add_one, &count);
		if (!errno)
			errno = pthread_join(thread, &result);
		if (errno || result != &count)
			return torture_failed("short thread %u", i);
	}
	return count == COUNT;
}

/* The stack is full: the program's handler runs on its alternate stack, and jumps out. */
static sigjmp_buf place;
static void leave_by_jump(int number)
{
	(void)number;
	siglongjmp(place, 1);
}

__attribute__((noinline)) static uint64_t deeper(uint64_t level)
{
	volatile char room[512];
	room[level % 512] = (char)level;
	if (level == UINT64_MAX)
		return 0;
	torture_sum(200);
	return deeper(level + 1) + (uint64_t)room[level % 512];
}

static bool has_address_sanitizer(void)
{
	return dlsym(RTLD_DEFAULT, "__asan_init");
}

static bool stack_overflow(uint64_t *random)
{
	if (has_address_sanitizer()) /* the object's frames are several times as large */
		return true;
	struct sigaction action = { .sa_handler = leave_by_jump, .sa_flags = SA_ONSTACK };
	/* the size that programs took as enough for fifty years, or a larger one */
	size_t size = torture_random(random) % 2 ? 8192 : 1 << 16;
	const stack_t stack = { .ss_sp = malloc(size), .ss_size = size };
	static volatile unsigned times;
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigsetjmp(place, 1);
	if (times++ < 3)
		deeper(torture_random(random) % 10);
	return torture_work(3000000);
}

/* A handler on an alternate stack works for some time: samples come there, too. */
static volatile bool handler_was_well;
static void work_in_handler(int number)
{
	(void)number;
	handler_was_well = torture_work(10000000);
}

static bool alternate_stack(uint64_t *random)
{
	struct sigaction action = { .sa_handler = work_in_handler, .sa_flags = SA_ONSTACK };
	size_t size = 16384;
	(void)random;
	char *memory = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t stack = { .ss_sp = memory + 4096, .ss_size = size };
	mprotect(memory, 4096, PROT_NONE);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	return handler_was_well && torture_work(1000000);
}

/* Forks in a handler, where only some functions are safe. */
static volatile int handler_status;
static void fork_in_handler(int number)
{
	(void)number;
	pid_t pid = _Fork();
	if (!pid)
		_exit(9);
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	handler_status = WEXITSTATUS(status);
}

static bool fork_from_handler(uint64_t *random)
{
	struct sigaction action = { .sa_handler = fork_in_handler };
	sigaction(SIGUSR1, &action, NULL);
	for (unsigned i = 0; i < 20; i++) {
		torture_sum((unsigned)(torture_random(random) % 500000));
		handler_status = 0;
		raise(SIGUSR1);
		if (handler_status != 9)
			return torture_failed("fork in a handler: %d", handler_status);
	}
	return true;
}

static bool with_little_memory(uint64_t *random)
{
	(void)random;
	if (has_address_sanitizer()) /* it needs terabytes of addresses */
		return true;
	pid_t pid = fork();
	if (!pid) {
		const struct rlimit little = { .rlim_cur = 256 << 20, .rlim_max = 256 << 20 };
		setrlimit(RLIMIT_AS, &little);
		torture_exec(5);
	}
	return torture_expect(pid, EXITS, 5, "a program with little memory");
}

static bool with_few_descriptors(uint64_t *random)
{
	pid_t pid = fork();
	(void)random;
	if (!pid) {
		const struct rlimit few = { .rlim_cur = 4, .rlim_max = 4 };
		closefrom(3);
		setrlimit(RLIMIT_NOFILE, &few);
		torture_exec(6);
	}
	return torture_expect(pid, EXITS, 6, "a program with few descriptors");
}

const struct torture_step torture_alone_steps[] = {
	{ "own-filter", own_filter, 2 },
	{ "strict-filter", strict_filter, 1 },
	{ "all-threads-user", all_threads_user, 2 },
	{ "exec-from-thread", exec_from_thread, 3 },
	{ "main-thread-ends", main_thread_ends, 3 },
	{ "exit-beside-threads", exit_beside_threads, 3 },
	{ "exit-by-thread", exit_by_thread, 3 },
	{ "many-threads", many_threads, 1 },
	{ "10000-threads", short_threads, 1 },
	{ "stack-overflow", stack_overflow, 2 },
	{ "alternate-stack", alternate_stack, 2 },
	{ "fork-from-handler", fork_from_handler, 3 },
	{ "little-memory", with_little_memory, 1 },
	{ "few-descriptors", with_few_descriptors, 1 },
	{ 0 },
};
