/* process_crowd SECONDS THREADS: threads that open, read and close events of their own and of one
 * another, while they fork, execute programs and get overflow signals.  Fails if a read fails, or a
 * child does not end as it should. */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, PERIOD_NS = 500000, PAGE = 4096 };

static int thread_count;
static volatile int stop, events[THREADS_MAX], tids[THREADS_MAX];
static long reads, signals, children, failures;

static void fail(const char *what)
{
	perror(what);
	__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

static int open_event(int config, int task, unsigned long period, int inherits)
{
	struct perf_event_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = (unsigned long long)config;
	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID;
	attr.wakeup_events = 1;
	attr.inherit = inherits != 0;
	attr.exclude_kernel = 1;
	return (int)syscall(SYS_perf_event_open, &attr, task, -1, -1, 0);
}

static int reads_well(int fd)
{
	long value;
	return read(fd, &value, sizeof(value)) == sizeof(value);
}

static void on_overflow(int number, siginfo_t *info, void *context)
{
	int error = errno;
	(void)number, (void)context;
	__atomic_fetch_add(&signals, 1, __ATOMIC_RELAXED);
	if (!reads_well(info->si_fd))
		__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
	ioctl(info->si_fd, PERF_EVENT_IOC_REFRESH, 1);
	errno = error;
}

static void work(unsigned loops)
{
	for (volatile unsigned i = 0; i < loops; i++)
		;
}

static void expect_success(pid_t child)
{
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	__atomic_fetch_add(&children, 1, __ATOMIC_RELAXED);
	if (status) {
		fprintf(stderr, "a child ended with %x\n", (unsigned)status);
		__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
	}
}

static void fork_with_event(int executes)
{
	int fd = open_event(PERF_COUNT_SW_TASK_CLOCK, 0, 0, 1);
	if (fd < 0) {
		fail("an event for children");
		return;
	}
	pid_t child = fork();
	if (child == 0) {
		work(100000);
		if (executes)
			execl("/bin/true", "true", NULL);
		_exit(!reads_well(fd));
	}
	expect_success(child);
	if (!reads_well(fd))
		fail("an inherited event");
	close(fd);
}

static void read_another(unsigned *seed)
{
	int fd = events[(unsigned)rand_r(seed) % (unsigned)thread_count];
	if (!fd)
		return;
	if (!reads_well(fd))
		fail("another thread's event");
	__atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
}

static void open_another(unsigned *seed)
{
	int task = tids[(unsigned)rand_r(seed) % (unsigned)thread_count];
	int fd = task ? open_event(PERF_COUNT_SW_PAGE_FAULTS, task, 0, 0) : -1;
	if (task && fd < 0 && errno != ESRCH)
		fail("an event on another thread");
	if (fd < 0)
		return;
	if (!reads_well(fd))
		fail("an event on another thread");
	close(fd);
}

static void take_signals(int fd)
{
	struct f_owner_ex owner = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };
	if (mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		fail("a ring");
	fcntl(fd, F_SETFL, O_ASYNC);
	fcntl(fd, F_SETSIG, SIGRTMIN + 3);
	fcntl(fd, F_SETOWN_EX, &owner);
	ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);
}

static void *crowd(void *number)
{
	unsigned own = (unsigned)(uintptr_t)number, seed = own;
	int fd = open_event(PERF_COUNT_SW_TASK_CLOCK, 0, own % 2 ? PERIOD_NS : 0, 0);
	if (fd < 0) {
		fail("an event");
		return NULL;
	}
	tids[own] = (int)syscall(SYS_gettid);
	events[own] = fd;
	if (own % 2)
		take_signals(fd);
	while (!stop) {
		struct pollfd polled = { .fd = fd, .events = POLLIN };
		unsigned chance = (unsigned)rand_r(&seed) % 20;
		work(20000);
		read_another(&seed);
		if (chance == 0)
			open_another(&seed);
		else if (chance < 4)
			fork_with_event(chance == 1);
		else if (chance == 4)
			poll(&polled, 1, 1);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_overflow,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	pthread_t threads[THREADS_MAX];
	if (argc != 3 || (thread_count = atoi(argv[2])) < 1 || thread_count > THREADS_MAX)
		return 2;
	sigaction(SIGRTMIN + 3, &action, NULL);
	for (int i = 0; i < thread_count; i++)
		if (pthread_create(&threads[i], NULL, crowd, (void *)(uintptr_t)i))
			return 2;
	struct timespec left = { .tv_sec = atoi(argv[1]) };
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
	stop = 1;
	for (int i = 0; i < thread_count; i++)
		pthread_join(threads[i], NULL);
	printf("%ld reads, %ld signals, %ld children, %ld failures\n", reads, signals, children,
	       failures);
	return failures || !reads || !signals || !children;
}
