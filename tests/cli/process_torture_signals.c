/* Steps of process_torture: signals of the program's own, and calls that signals interrupt. */
#include "process_torture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { SLEEP_NS = 20 * NS_PER_MS };

/* --- the round's own timers -------------------------------------------------- */

static volatile sig_atomic_t real_ticks, profile_ticks;
static __thread volatile sig_atomic_t depth;

static void tick(int number)
{
	int saved = errno;
	volatile char room[256];
	room[0] = 1;
	depth++;
	if (number == SIGALRM)
		real_ticks++;
	else
		profile_ticks++;
	torture_sum(200);
	/* A call that sets errno.  It is no cancellation point: glibc 2.36 hangs in one if this handler has
	 * interrupted that of pthread_cancel(3), profiled or not. */
	if (fcntl(-1, F_GETFD))
		depth -= room[0];
	errno = saved;
}

void torture_own_timers(uint64_t *random)
{
	struct sigaction action = { .sa_handler = tick };
	unsigned chance = (unsigned)(torture_random(random) % 4);
	const struct itimerval often = { .it_interval = { .tv_usec = 1100 },
					 .it_value = { .tv_usec = 700 } };
	if (!chance)
		return;
	if (torture_random(random) % 2)
		action.sa_flags |= SA_RESTART;
	if (torture_random(random) % 2) {
		action.sa_flags |= SA_ONSTACK;
		const stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
		sigaltstack(&stack, NULL);
	}
	if (torture_random(random) % 2)
		sigfillset(&action.sa_mask);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGPROF, &action, NULL);
	torture.has_timers = true;
	if (chance & 1)
		setitimer(ITIMER_PROF, &often, NULL);
	if (chance & 2)
		setitimer(ITIMER_REAL, &often, NULL);
}

bool torture_own_timers_end(void)
{
	struct itimerval profile, real;
	static const struct itimerval none;
	if (!torture.has_timers)
		return true;
	getitimer(ITIMER_PROF, &profile);
	getitimer(ITIMER_REAL, &real);
	setitimer(ITIMER_PROF, &none, NULL);
	setitimer(ITIMER_REAL, &none, NULL);
	if (real.it_interval.tv_usec && real.it_interval.tv_usec != 1100)
		return torture_failed("ITIMER_REAL has another interval");
	if (!profile.it_interval.tv_usec && profile_ticks)
		return torture_failed("SIGPROF without a timer");
	if (depth)
		return torture_failed("a handler has not ended");
	return true;
}

/* --- calls that take their time ------------------------------------------------- */

/* Each sleeps for SLEEP_NS, and returns 0 if all is well, or −1 and errno. */
static int by_nanosleep(void)
{
	const struct timespec time = { .tv_nsec = SLEEP_NS };
	return nanosleep(&time, NULL);
}

static int by_clock_nanosleep(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_nsec += SLEEP_NS;
	time.tv_sec += time.tv_nsec / NS_PER_S;
	time.tv_nsec %= NS_PER_S;
	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
	return errno ? -1 : 0;
}

static int by_usleep(void)
{
	return usleep(SLEEP_NS / 1000);
}

static int by_poll(void)
{
	return poll(NULL, 0, SLEEP_NS / NS_PER_MS);
}

static int by_ppoll(void)
{
	const struct timespec time = { .tv_nsec = SLEEP_NS };
	sigset_t none;
	sigemptyset(&none);
	return ppoll(NULL, 0, &time, torture.has_timers ? NULL : &none);
}

static int by_select(void)
{
	struct timeval time = { .tv_usec = SLEEP_NS / 1000 };
	return select(0, NULL, NULL, NULL, &time);
}

static int by_pselect(void)
{
	const struct timespec time = { .tv_nsec = SLEEP_NS };
	return pselect(0, NULL, NULL, NULL, &time, NULL);
}

static int by_epoll(void)
{
	struct epoll_event event;
	int fd = epoll_create1(EPOLL_CLOEXEC), result = epoll_wait(fd, &event, 1, SLEEP_NS / NS_PER_MS);
	int saved = errno;
	close(fd);
	errno = saved;
	return result;
}

static int timed_out(int result)
{
	if (result == 0) {
		errno = 0;
		return -1;
	}
	return errno == ETIMEDOUT || errno == EAGAIN ? 0 : -1;
}

static struct timespec real_deadline(void)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += SLEEP_NS;
	time.tv_sec += time.tv_nsec / NS_PER_S;
	time.tv_nsec %= NS_PER_S;
	return time;
}

static int by_sem_timedwait(void)
{
	sem_t semaphore;
	const struct timespec time = real_deadline();
	sem_init(&semaphore, 0, 0);
	return timed_out(sem_timedwait(&semaphore, &time));
}

static int by_condition(void)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	const struct timespec time = real_deadline();
	pthread_mutex_lock(&mutex);
	errno = pthread_cond_timedwait(&condition, &mutex, &time);
	pthread_mutex_unlock(&mutex);
	return timed_out(errno ? -1 : 0);
}

static int by_sigtimedwait(void)
{
	const struct timespec time = { .tv_nsec = SLEEP_NS };
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return timed_out(sigtimedwait(&set, NULL, &time) < 0 ? -1 : 0);
}

static int by_socket_timeout(void)
{
	const struct timeval time = { .tv_usec = SLEEP_NS / 1000 };
	int pair[2], result;
	char byte;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	result = timed_out(recv(pair[0], &byte, 1, 0) < 0 ? -1 : 0);
	int saved = errno;
	close(pair[0]);
	close(pair[1]);
	errno = saved;
	return result;
}

static int by_semop(void)
{
	const struct timespec time = { .tv_nsec = SLEEP_NS };
	struct sembuf wait = { .sem_op = -1 };
	int id = semget(IPC_PRIVATE, 1, 0600);
	if (id < 0) {
		by_nanosleep();
		return 0;
	}
	int result = timed_out(semtimedop(id, &wait, 1, &time)), saved = errno;
	semctl(id, 0, IPC_RMID);
	errno = saved;
	return result;
}

static const struct {
	const char *name;
	int (*sleep)(void);
	uint64_t early_ns; /* how much too early it may end, beyond EARLY_NS */
} sleeps[] = {
	{ "nanosleep", by_nanosleep },
	{ "clock_nanosleep", by_clock_nanosleep },
	{ "usleep", by_usleep },
	{ "poll", by_poll },
	{ "ppoll", by_ppoll },
	{ "select", by_select },
	{ "pselect", by_pselect },
	{ "epoll_wait", by_epoll },
	{ "sem_timedwait", by_sem_timedwait },
	{ "pthread_cond_timedwait", by_condition },
	{ "sigtimedwait", by_sigtimedwait },
	/* counted in the kernel's ticks, which lag behind the time for a moment when the machine's
	 * host has stopped the CPU */
	{ "recv with a timeout", by_socket_timeout, 8 * NS_PER_MS },
	{ "semtimedop", by_semop },
};

/* Work before brings the thread's clock to any phase of the sampling. */
static bool sleep_step(uint64_t *random)
{
	enum { COUNT = sizeof(sleeps) / sizeof(sleeps[0]), EARLY_NS = NS_PER_MS };
	unsigned which = (unsigned)(torture_random(random) % COUNT);
	torture_sum((unsigned)(torture_random(random) % 2000000));
	uint64_t start = torture_now_ns();
	int result = sleeps[which].sleep();
	uint64_t passed = torture_now_ns() - start;
	if (result < 0 && errno == EINTR && torture.has_timers)
		return true;
	if (result)
		return torture_failed("%s: %d", sleeps[which].name, result);
	if (passed + EARLY_NS + sleeps[which].early_ns < SLEEP_NS)
		return torture_failed("%s took %llu us", sleeps[which].name,
				      (unsigned long long)passed / 1000);
	return true;
}

/* Calls without a limit of time, which another process ends. */
static bool blocked_step(uint64_t *random)
{
	int pipes[2], other[2];
	char byte = 0;
	bool polls = torture_random(random) % 2;
	if (pipe(pipes) || pipe(other))
		return torture_failed("pipe");
	pid_t pid = fork();
	if (!pid) {
		const struct timespec moment = { .tv_nsec = 10 * NS_PER_MS };
		const sigset_t *none = NULL;
		while (nanosleep(&moment, NULL) && none)
			;
		_exit(write(pipes[1], "x", 1) != 1);
	}
	torture_sum((unsigned)(torture_random(random) % 2000000));
	ssize_t got;
	do {
		struct pollfd look = { .fd = pipes[0], .events = POLLIN };
		got = polls ? poll(&look, 1, -1) : 1;
		if (got == 1)
			got = read(pipes[0], &byte, 1);
	} while (got < 0 && errno == EINTR && torture.has_timers);
	int saved = errno;
	close(pipes[0]), close(pipes[1]), close(other[0]), close(other[1]);
	errno = saved;
	bool is_well = torture_expect(pid, EXITS, 0, "a writer");
	if (got != 1 || byte != 'x')
		return torture_failed("a read from a pipe: %zd", got);
	return is_well;
}

/* --- masks and waits -------------------------------------------------------------- */

static bool mask_step(uint64_t *random)
{
	sigset_t all, none, before, now;
	sigfillset(&all);
	sigemptyset(&none);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return torture_failed("pthread_sigmask");
	bool is_well = torture_work(500000 + (unsigned)(torture_random(random) % 5000000));
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	for (int i = 1; i < NSIG && is_well; i++) {
		/* libc's own signals, and those that can't be blocked, stay out */
		if (i == SIGKILL || i == SIGSTOP || (i >= 32 && i < SIGRTMIN))
			continue;
		if (!sigismember(&now, i))
			is_well = torture_failed("signal %d is not in the mask", i);
	}
	pthread_sigmask(SIG_SETMASK, &none, &now);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	for (int i = 1; i < NSIG && is_well; i++)
		if (sigismember(&now, i) == 1)
			is_well = torture_failed("signal %d is in the empty mask", i);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_well;
}

static bool wait_step(uint64_t *random)
{
	sigset_t all, before, usr1;
	siginfo_t info = { 0 };
	const struct timespec long_time = { .tv_sec = 20 };
	sigfillset(&all);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_kill(pthread_self(), SIGUSR1);
	torture_sum((unsigned)(torture_random(random) % 5000000));
	int got;
	/* the round's timers and ended children send signals, too */
	do
		got = sigtimedwait(&all, &info, &long_time);
	while (got == SIGALRM || got == SIGPROF || got == SIGCHLD);
	bool is_well = got == SIGUSR1;
	if (!is_well)
		torture_failed("sigtimedwait: %d", got);
	pthread_kill(pthread_self(), SIGUSR1);
	int fd = signalfd(-1, &usr1, SFD_CLOEXEC);
	struct signalfd_siginfo told = { 0 };
	if (is_well && (read(fd, &told, sizeof(told)) != sizeof(told) || told.ssi_signo != SIGUSR1))
		is_well = torture_failed("signalfd: %u", told.ssi_signo);
	close(fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_well;
}

/* Threads send signals to one another while they work. */
static void count_signal(int number)
{
	(void)number;
	depth += 0;
}

static void *work_long(void *argument)
{
	*(bool *)argument = torture_work(10000000);
	return NULL;
}

static bool storm_step(uint64_t *random)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = SA_RESTART };
	bool is_well = false;
	pthread_t thread;
	(void)random;
	sigaction(SIGWINCH, &action, NULL);
	if (pthread_create(&thread, NULL, work_long, &is_well))
		return torture_failed("pthread_create");
	for (unsigned i = 0; i < 2000; i++)
		pthread_kill(thread, SIGWINCH);
	pthread_join(thread, NULL);
	return is_well;
}

/* A handler leaves by a jump, again and again. */
static __thread sigjmp_buf place;
static void jump(int number)
{
	(void)number;
	siglongjmp(place, 1);
}

static bool jump_step(uint64_t *random)
{
	struct sigaction action = { .sa_handler = jump, .sa_flags = SA_NODEFER };
	volatile unsigned times = 0;
	unsigned most = 10 + (unsigned)(torture_random(random) % 100);
	sigaction(SIGURG, &action, NULL);
	sigsetjmp(place, 1);
	if (times++ < most) {
		torture_sum(50000);
		raise(SIGURG);
		return torture_failed("after a jump");
	}
	return true;
}

static bool own_timer_step(uint64_t *random)
{
	enum { SIGNAL_OFFSET = 5 };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + SIGNAL_OFFSET };
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = SA_RESTART };
	const struct itimerspec often = { .it_interval = { .tv_nsec = 500000 },
					  .it_value = { .tv_nsec = 1 } };
	struct itimerspec now = { 0 };
	timer_t timer;
	(void)random;
	/* it interrupts calls of all threads: only where they expect it */
	if (!torture.has_timers)
		return true;
	sigaction(SIGRTMIN + SIGNAL_OFFSET, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer))
		return torture_failed("timer_create");
	timer_settime(timer, 0, &often, NULL);
	bool is_well = torture_work(3000000);
	timer_gettime(timer, &now);
	timer_delete(timer);
	if (now.it_interval.tv_nsec != 500000)
		return torture_failed("timer_gettime");
	return is_well;
}

const struct torture_step torture_signal_steps[] = {
	{ "sleep", sleep_step, 20 },
	{ "blocked", blocked_step, 6 },
	{ "mask", mask_step, 4 },
	{ "wait", wait_step, 3 },
	{ "storm", storm_step, 3 },
	{ "jump", jump_step, 3 },
	{ "own-timer", own_timer_step, 3 },
	{ 0 },
};
