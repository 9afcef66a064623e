/* Prints a program's signals: actions, masks, which calls an alarm ends, and the time that is left
 * then.  Each run prints the same lines, so a profiler in the program that uses a signal of its own
 * must not change any.
 *
 *	own_signals                all that follows, but for the last
 *	own_signals actions|masks|waits|ends|mixed
 *	own_signals children PROGRAM WORD  executes `PROGRAM WORD` in several ways
 *	own_signals inherited      the mask and the action that the program inherited
 *	own_signals kernel         the same as the kernel tells it
 *	own_signals alarms N       N alarms must end N calls, while calls are sampled */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum {
	REAL_TIME = 61, /* the real-time signal that a profiler may use */
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	SHORT_MS = 60,  /* a timeout that passes, or the time until an alarm */
	LONG_MS = 30000 /* a timeout that doesn't pass */
};

extern char **environ;

static volatile sig_atomic_t handled, had_info;
static sigset_t seen_in_handler;
static sigjmp_buf jump;

static uint64_t now(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static struct timespec from_ms(int ms)
{
	return (struct timespec){ ms / 1000, ms % 1000 * (long)NS_PER_MS };
}

static struct timespec after_ms(clockid_t clock, int ms)
{
	uint64_t then = now(clock) + (uint64_t)ms * NS_PER_MS;
	return (struct timespec){ (time_t)(then / NS_PER_S), (long)(then % NS_PER_S) };
}

/* Uses CPU time, so that a sampling timer is armed when a wait begins. */
static void burn(void)
{
	uint64_t start = now(CLOCK_THREAD_CPUTIME_ID);
	while (now(CLOCK_THREAD_CPUTIME_ID) - start < 3 * NS_PER_MS)
		;
}

static const char *mask_text(const sigset_t *set)
{
	static char text[400];
	size_t used = 0;
	text[0] = '\0';
	for (int signal = 1, end; signal <= 64; signal = end + 1) {
		end = signal;
		if (sigismember(set, signal) != 1)
			continue;
		while (end < 64 && sigismember(set, end + 1) == 1)
			end++;
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %d", signal);
		if (end > signal)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "-%d", end);
	}
	return text;
}

static void print_mask(const char *what)
{
	sigset_t mask;
	sigemptyset(&mask);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	printf("mask %s:%s\n", what, mask_text(&mask));
}

static sigset_t set_of(int a, int b)
{
	sigset_t set;
	sigemptyset(&set);
	if (a)
		sigaddset(&set, a);
	if (b)
		sigaddset(&set, b);
	return set;
}

static sigset_t all_signals(void)
{
	sigset_t set;
	sigfillset(&set);
	return set;
}

static void handle(int signal)
{
	(void)signal;
	handled++;
	sigemptyset(&seen_in_handler);
	sigprocmask(SIG_BLOCK, NULL, &seen_in_handler);
}

static void handle_info(int signal, siginfo_t *info, void *context)
{
	handled++;
	had_info = info->si_signo == signal && info->si_pid == getpid() && context;
}

static void handle_jump(int signal)
{
	(void)signal;
	siglongjmp(jump, 1);
}

static void (*by_signal(int number, void (*handler)(int)))(int)
{
	return signal(number, handler);
}

static void install(int signal, void (*handler)(int), int flags, sigset_t mask)
{
	struct sigaction action = { .sa_flags = flags, .sa_mask = mask };
	action.sa_handler = handler;
	if (sigaction(signal, &action, NULL))
		printf("sigaction %d: %s\n", signal, strerror(errno));
}

static const char *handler_text(void (*handler)(int))
{
	if (handler == SIG_DFL)
		return "default";
	if (handler == SIG_IGN)
		return "ignored";
	if (handler == SIG_ERR)
		return "error";
	if (handler == SIG_HOLD)
		return "held";
	if (handler == handle)
		return "handle";
	if (handler == handle_jump)
		return "handle_jump";
	if (handler == (void (*)(int))(void (*)(void))handle_info)
		return "handle_info";
	return "another";
}

static void print_action(int signal)
{
	struct sigaction action;
	memset(&action, 0, sizeof(action));
	if (sigaction(signal, NULL, &action))
		printf("action %d: %s\n", signal, strerror(errno));
	else
		printf("action %d: %s, flags %x, mask%s\n", signal, handler_text(action.sa_handler),
		       (unsigned)action.sa_flags, mask_text(&action.sa_mask));
}

/* --- actions --------------------------------------------------------------------- */

static void try_actions(int signal)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK,
				    .sa_mask = set_of(SIGHUP, REAL_TIME) },
			 old;
	action.sa_sigaction = handle_info;
	install(signal, handle, 0, set_of(0, 0));
	print_action(signal);
	install(signal, handle, SA_RESTART | SA_NODEFER, all_signals());
	print_action(signal);
	memset(&old, 0, sizeof(old));
	sigaction(signal, &action, &old);
	printf("before: %s, flags %x, mask%s\n", handler_text(old.sa_handler),
	       (unsigned)old.sa_flags, mask_text(&old.sa_mask));
	print_action(signal);
	printf("signal: %s\n", handler_text(by_signal(signal, handle)));
	print_action(signal);
	siginterrupt(signal, 1);
	print_action(signal);
	printf("signal: %s\n", handler_text(by_signal(signal, handle_jump)));
	print_action(signal);
	siginterrupt(signal, 0);
	printf("sigset: %s\n", handler_text(sigset(signal, SIG_HOLD)));
	print_mask("held");
	printf("sigset: %s\n", handler_text(sigset(signal, handle)));
	print_mask("not held");
	print_action(signal);
	sigignore(signal);
	print_action(signal);
	sighold(signal);
	print_mask("held");
	sigrelse(signal);
	printf("sysv: %s\n", handler_text(sysv_signal(signal, handle)));
	print_action(signal);
	printf("signal: %s\n", handler_text(by_signal(signal, SIG_DFL)));
	print_action(signal);
}

static void actions(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO };
	for (int signal = 1; signal <= 65; signal++)
		print_action(signal);
	try_actions(SIGUSR1);
	try_actions(REAL_TIME);
	action.sa_sigaction = handle_info;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	printf("handled %d, information %d\n", (int)handled, (int)had_info);
	install(SIGUSR1, handle, (int)SA_RESETHAND, set_of(0, 0));
	raise(SIGUSR1);
	printf("handled %d\n", (int)handled);
	print_action(SIGUSR1);
	print_action(SIGKILL);
	install(SIGKILL, handle, 0, set_of(0, 0));
	install(0, handle, 0, set_of(0, 0));
	install(33, handle, 0, set_of(0, 0));
}

/* The program uses the real-time signal itself. */
static void real_time_signals(void)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO, .sa_mask = set_of(SIGHUP, 0) };
	const struct itimerval alarm = { { 0, 0 }, { 3, 0 } }, none = { 0 };
	const struct timespec time = from_ms(LONG_MS);
	int status;
	pid_t child;
	handled = 0;
	action.sa_sigaction = handle_info;
	sigaction(REAL_TIME, &action, NULL);
	burn();
	kill(getpid(), REAL_TIME);
	printf("kill: handled %d, information %d\n", (int)handled, (int)had_info);
	sigqueue(getpid(), REAL_TIME, (union sigval){ .sival_int = 7 });
	printf("sigqueue: handled %d\n", (int)handled);
	install(REAL_TIME, handle, SA_RESTART | (int)SA_RESETHAND, set_of(SIGHUP, 0));
	child = fork();
	if (!child) {
		burn();
		kill(getppid(), REAL_TIME);
		_exit(0);
	}
	install(SIGALRM, handle, 0, set_of(0, 0));
	setitimer(ITIMER_REAL, &alarm, NULL);
	printf("nanosleep: %d", nanosleep(&time, NULL));
	printf(" %s, handled %d\n", strerror(errno), (int)handled);
	setitimer(ITIMER_REAL, &none, NULL);
	install(SIGALRM, SIG_DFL, 0, set_of(0, 0));
	while (waitpid(child, &status, 0) < 0)
		;
	print_action(REAL_TIME);
	install(REAL_TIME, SIG_IGN, 0, set_of(0, 0));
	kill(getpid(), REAL_TIME);
	install(REAL_TIME, SIG_DFL, 0, set_of(0, 0));
	child = fork();
	if (!child) {
		kill(getpid(), REAL_TIME);
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("default: ended by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* --- masks ------------------------------------------------------------------------ */

static void change(int how, sigset_t set, const char *what)
{
	sigset_t old = set_of(0, 0);
	int result = sigprocmask(how, &set, &old);
	printf("%s: %d, before%s\n", what, result, mask_text(&old));
	print_mask("after");
}

static void *in_thread(void *argument)
{
	print_mask(argument);
	return NULL;
}

static void run_thread(const pthread_attr_t *attributes, const char *what)
{
	pthread_t thread;
	pthread_create(&thread, attributes, in_thread, (void *)(uintptr_t)what);
	pthread_join(thread, NULL);
}

static void masks_of_threads(void)
{
	pthread_attr_t attributes;
	sigset_t all = all_signals(), told = set_of(0, 0);
	run_thread(NULL, "inherited by a thread");
	pthread_attr_init(&attributes);
	printf("setsigmask: %d\n", pthread_attr_setsigmask_np(&attributes, &all));
	printf("getsigmask: %d", pthread_attr_getsigmask_np(&attributes, &told));
	printf("%s\n", mask_text(&told));
	run_thread(&attributes, "given to a thread");
	all = set_of(REAL_TIME, 0);
	pthread_attr_setsigmask_np(&attributes, &all);
	run_thread(&attributes, "given to a thread");
	pthread_attr_destroy(&attributes);
}

static void masks_of_handlers(void)
{
	install(SIGUSR1, handle, 0, all_signals());
	raise(SIGUSR1);
	printf("in a handler:%s\n", mask_text(&seen_in_handler));
	print_mask("after a handler");
	install(SIGUSR1, handle, 0, set_of(0, 0));
	raise(SIGUSR1);
	printf("in a handler:%s\n", mask_text(&seen_in_handler));
	install(SIGUSR1, handle_jump, 0, all_signals());
	if (!sigsetjmp(jump, 1))
		raise(SIGUSR1);
	print_mask("after a jump");
	install(SIGUSR1, SIG_DFL, 0, set_of(0, 0));
}

static void takes(sigset_t set)
{
	siginfo_t info;
	struct timespec none = { 0, 0 }, soon = from_ms(SHORT_MS);
	sigset_t pending = set_of(0, 0);
	int signal = 0, fd = signalfd(-1, &set, SFD_NONBLOCK);
	struct signalfd_siginfo read_info;
	burn();
	sigpending(&pending);
	printf("pending:%s\n", mask_text(&pending));
	printf("sigtimedwait: %d", sigtimedwait(&set, &info, &none));
	printf(" %s\n", strerror(errno));
	burn();
	printf("sigtimedwait: %d", sigtimedwait(&set, &info, &soon));
	printf(" %s\n", strerror(errno));
	printf("signalfd: %d", (int)read(fd, &read_info, sizeof(read_info)));
	printf(" %s\n", strerror(errno));
	raise(SIGUSR2);
	sigpending(&pending);
	printf("pending:%s\n", mask_text(&pending));
	printf("signalfd: %d", read(fd, &read_info, sizeof(read_info)) == sizeof(read_info));
	printf(" %d\n", (int)read_info.ssi_signo);
	raise(SIGUSR2);
	printf("sigwaitinfo: %d\n", sigwaitinfo(&set, &info));
	raise(SIGUSR2);
	printf("sigwait: %d", sigwait(&set, &signal));
	printf(" %d\n", signal);
	close(fd);
}

static void masks(void)
{
	const uint64_t one = 1ull << (REAL_TIME - 1);
	sigset_t empty = set_of(0, 0), old;
	print_mask("at the start");
	change(SIG_BLOCK, set_of(REAL_TIME, 0), "block one");
	run_thread(NULL, "inherited by a thread");
	change(SIG_BLOCK, set_of(SIGUSR1, 0), "block another");
	change(SIG_UNBLOCK, set_of(REAL_TIME, 0), "unblock");
	printf("system call: %ld\n",
	       syscall(SYS_rt_sigprocmask, SIG_BLOCK, &one, NULL, sizeof(one)));
	print_mask("after a system call");
	change(SIG_BLOCK, all_signals(), "block all");
	burn();
	print_mask("later");
	masks_of_threads();
	takes(all_signals());
	change(SIG_SETMASK, set_of(REAL_TIME, SIGHUP), "set");
	change(SIG_SETMASK, empty, "set");
	masks_of_threads();
	masks_of_handlers();
	printf("sigprocmask: %d", sigprocmask(77, &empty, &old));
	printf(" %s\n", strerror(errno));
	printf("pthread_sigmask: %s\n", strerror(pthread_sigmask(77, &empty, &old)));
	change(SIG_BLOCK, set_of(REAL_TIME, SIGKILL), "block one");
	fflush(stdout);
	if (!fork()) {
		print_mask("in a child");
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
	change(SIG_SETMASK, empty, "set");
}

/* --- children ----------------------------------------------------------------------- */

static void inherited(void)
{
	print_mask("inherited");
	print_action(REAL_TIME);
}

static void kernel(void)
{
	char line[256];
	FILE *status = fopen("/proc/thread-self/status", "r");
	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6))
			printf("%s", line);
	if (status)
		fclose(status);
}

static void execute(char *program, char *word, const char *how)
{
	char *const arguments[] = { program, word, NULL };
	pid_t child;
	printf("%s\n", how);
	fflush(stdout);
	if (!strcmp(how, "posix_spawn")) {
		posix_spawn(&child, program, NULL, NULL, arguments, environ);
	} else if (!strcmp(how, "system")) {
		char command[4200];
		snprintf(command, sizeof(command), "exec '%s' %s", program, word);
		if (system(command))
			puts("failed");
		return;
	} else if (!strcmp(how, "vfork")) {
		child = vfork();
		if (!child) {
			execv(program, arguments);
			_exit(1);
		}
	} else {
		child = fork();
		if (!child) {
			execv("/nonexistent", arguments);
			execvp(program, arguments);
			_exit(1);
		}
	}
	waitpid(child, NULL, 0);
}

static void children(char *program, char *word)
{
	static const char *const ways[] = { "fork", "vfork", "posix_spawn", "system" };
	const sigset_t sets[] = { set_of(0, 0), set_of(SIGHUP, 0), all_signals() };
	for (unsigned i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		install(REAL_TIME, i == 1 ? SIG_IGN : SIG_DFL, 0, set_of(0, 0));
		pthread_sigmask(SIG_SETMASK, &sets[i], NULL);
		for (unsigned way = 0; way < sizeof(ways) / sizeof(ways[0]); way++)
			execute(program, word, ways[way]);
		print_mask("of the parent");
		print_action(REAL_TIME);
	}
}

/* --- waits -------------------------------------------------------------------------- */

static int sockets[2], queue, semaphores, epoll, listener;
static sem_t semaphore;

static void open_all(void)
{
	struct timeval timeout = { 0, SHORT_MS * 1000 };
	socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	listen(listener, 1);
	queue = msgget(IPC_PRIVATE, 0600);
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	epoll = epoll_create1(0);
	sem_init(&semaphore, 0, 0);
}

static void close_all(void)
{
	msgctl(queue, IPC_RMID, NULL);
	semctl(semaphores, 0, IPC_RMID);
}

static int in_error(int error)
{
	errno = error;
	return error ? -1 : 0;
}

/* `left`: of LONG_MS after an alarm, or of SHORT_MS after it has passed. */
static const char *left_text(struct timespec left)
{
	int ms = (int)(left.tv_sec * 1000 + left.tv_nsec / NS_PER_MS);
	if (ms == 0)
		return "nothing";
	if (ms <= LONG_MS - SHORT_MS / 2 && ms > LONG_MS / 2)
		return "most";
	return "something else";
}

enum wait {
	NANOSLEEP,
	NANOSLEEP_IN_PLACE,
	CLOCK_NANOSLEEP,
	CLOCK_NANOSLEEP_TAI,
	CLOCK_NANOSLEEP_UNTIL,
	REALTIME_UNTIL,
	USLEEP,
	SLEEP,
	THRD_SLEEP,
	POLL,
	PPOLL,
	PPOLL_MASK,
	SELECT,
	PSELECT,
	PSELECT_MASK,
	EPOLL_WAIT,
	EPOLL_PWAIT,
	EPOLL_PWAIT2,
	SIGTIMEDWAIT,
	SEM_TIMEDWAIT,
	SEM_CLOCKWAIT,
	SEMTIMEDOP,
	FUTEX,
	FUTEX_UNTIL,
	RECV,
	READ,
	RECVMSG,
	ACCEPT,
	TIMED_WAITS,
	PAUSE = TIMED_WAITS,
	SIGSUSPEND,
	SIGPAUSE,
	SIGWAITINFO,
	SEMOP,
	MSGRCV,
	SEM_WAIT,
	READ_PIPE,
	WAITPID,
	WAITS
};

static const char *const names[] = {
	"nanosleep",
	"nanosleep in place",
	"clock_nanosleep",
	"clock_nanosleep TAI",
	"clock_nanosleep until",
	"clock_nanosleep until REALTIME",
	"usleep",
	"sleep",
	"thrd_sleep",
	"poll",
	"ppoll",
	"ppoll with a mask",
	"select",
	"pselect",
	"pselect with a mask",
	"epoll_wait",
	"epoll_pwait with a mask",
	"epoll_pwait2",
	"sigtimedwait",
	"sem_timedwait",
	"sem_clockwait",
	"semtimedop",
	"futex",
	"futex until",
	"recv",
	"read",
	"recvmsg",
	"accept",
	"pause",
	"sigsuspend",
	"sigpause",
	"sigwaitinfo",
	"semop",
	"msgrcv",
	"sem_wait",
	"read of a pipe",
	"waitpid",
};

static int wait_for(enum wait wait, int ms, struct timespec *left)
{
	struct timespec time = from_ms(ms), end;
	struct timeval short_time = { ms / 1000, ms % 1000 * 1000 };
	struct sembuf take = { 0, -1, 0 };
	struct {
		long type;
		char text[8];
	} message;
	char byte;
	struct iovec piece = { &byte, 1 };
	struct msghdr header = { .msg_iov = &piece, .msg_iovlen = 1 };
	struct epoll_event event;
	const sigset_t empty = set_of(0, 0), other = set_of(REAL_TIME, 0);
	sigset_t most = all_signals();
	uint32_t word = 0;
	int result, pipes[2];
	sigdelset(&most, SIGALRM);
	*left = from_ms(0);
	switch (wait) {
	case NANOSLEEP:
		return nanosleep(&time, left);
	case NANOSLEEP_IN_PLACE:
		result = nanosleep(&time, &time);
		if (result)
			*left = time;
		return result;
	case CLOCK_NANOSLEEP:
		return in_error(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, left));
	case CLOCK_NANOSLEEP_TAI:
		return in_error(clock_nanosleep(CLOCK_TAI, 0, &time, left));
	case CLOCK_NANOSLEEP_UNTIL:
		end = after_ms(CLOCK_MONOTONIC, ms);
		return in_error(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, left));
	case REALTIME_UNTIL:
		end = after_ms(CLOCK_REALTIME, ms);
		return in_error(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, left));
	case USLEEP:
		return usleep((useconds_t)ms * 1000);
	case SLEEP:
		return (int)sleep((unsigned)(ms + 999) / 1000);
	case THRD_SLEEP:
		return thrd_sleep(&time, left);
	case POLL:
		return poll(NULL, 0, ms);
	case PPOLL:
		return ppoll(NULL, 0, &time, NULL);
	case PPOLL_MASK:
		return ppoll(NULL, 0, &time, &most);
	case SELECT:
		result = select(0, NULL, NULL, NULL, &short_time);
		*left = (struct timespec){ short_time.tv_sec, short_time.tv_usec * 1000 };
		return result;
	case PSELECT:
		return pselect(0, NULL, NULL, NULL, &time, NULL);
	case PSELECT_MASK:
		return pselect(0, NULL, NULL, NULL, &time, &most);
	case EPOLL_WAIT:
		return epoll_wait(epoll, &event, 1, ms);
	case EPOLL_PWAIT:
		return epoll_pwait(epoll, &event, 1, ms, &most);
	case EPOLL_PWAIT2:
		return epoll_pwait2(epoll, &event, 1, &time, NULL);
	case SIGTIMEDWAIT:
		return sigtimedwait(&other, NULL, &time);
	case SEM_TIMEDWAIT:
		end = after_ms(CLOCK_REALTIME, ms);
		return sem_timedwait(&semaphore, &end);
	case SEM_CLOCKWAIT:
		end = after_ms(CLOCK_MONOTONIC, ms);
		return sem_clockwait(&semaphore, CLOCK_MONOTONIC, &end);
	case SEMTIMEDOP:
		return semtimedop(semaphores, &take, 1, &time);
	case FUTEX:
		return (int)syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time);
	case FUTEX_UNTIL:
		end = after_ms(CLOCK_MONOTONIC, ms);
		return (int)syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &end, NULL, ~0u);
	case RECV:
		return (int)recv(sockets[0], &byte, 1, 0);
	case READ:
		return (int)read(sockets[0], &byte, 1);
	case RECVMSG:
		return (int)recvmsg(sockets[0], &header, 0);
	case ACCEPT:
		return accept(listener, NULL, NULL);
	case PAUSE:
		return pause();
	case SIGSUSPEND:
		return sigsuspend(&empty);
	case SIGPAUSE:
		return sigpause(REAL_TIME);
	case SIGWAITINFO:
		return sigwaitinfo(&other, NULL);
	case SEMOP:
		return semop(semaphores, &take, 1);
	case MSGRCV:
		return (int)msgrcv(queue, &message, sizeof(message.text), 0, 0);
	case SEM_WAIT:
		return sem_wait(&semaphore);
	case READ_PIPE:
		if (pipe(pipes))
			return -2;
		result = (int)read(pipes[0], &byte, 1);
		ms = errno;
		close(pipes[0]);
		close(pipes[1]);
		return in_error(ms);
	case WAITPID: {
		pid_t child = fork();
		if (!child)
			for (;;)
				pause();
		result = waitpid(child, NULL, 0);
		ms = errno;
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		return in_error(ms);
	}
	default:
		return -2;
	}
}

/* Timeouts pass: nothing of the program's interrupts the calls. */
static void waits(void)
{
	for (int wait = 0; wait < TIMED_WAITS; wait++) {
		struct timespec left;
		int ms = SHORT_MS, result;
		uint64_t start;
		if (wait == SLEEP)
			ms = 1000;
		burn();
		start = now(CLOCK_MONOTONIC);
		errno = 0;
		result = wait_for(wait, ms, &left);
		printf("%s: %d, %s, left %s, %s\n", names[wait], result, strerror(errno),
		       left_text(left),
		       now(CLOCK_MONOTONIC) - start >= (uint64_t)ms * NS_PER_MS ? "passed"
										: "too early");
	}
}

/* An alarm ends the calls. */
static void ends(int flags)
{
	const struct timeval forever = { 0, 0 };
	setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	install(SIGALRM, handle, flags, set_of(0, 0));
	for (int wait = 0; wait < WAITS; wait++) {
		/* on a busy machine, the first one may come before the wait */
		const struct itimerval alarm = { { 3, 0 }, { 0, SHORT_MS * 1000 } }, none = { 0 };
		struct timespec left;
		int result, error;
		bool restarts = wait == RECV || wait == READ || wait == RECVMSG || wait == ACCEPT ||
				wait == SEM_WAIT || wait == READ_PIPE || wait == WAITPID;
		if (restarts && flags & SA_RESTART)
			continue;
		burn();
		handled = 0;
		setitimer(ITIMER_REAL, &alarm, NULL);
		errno = 0;
		result = wait_for(wait, LONG_MS, &left);
		error = errno;
		setitimer(ITIMER_REAL, &none, NULL);
		printf("%s: %d, %s, left %s, handled %d", names[wait], result, strerror(error),
		       left_text(left), (int)handled);
		/* the kernel lifts a call's mask before the second of two handlers */
		if (wait != PPOLL_MASK && wait != PSELECT_MASK && wait != EPOLL_PWAIT)
			printf(", mask%s", mask_text(&seen_in_handler));
		puts("");
	}
	install(SIGALRM, SIG_DFL, 0, set_of(0, 0));
}

/* Restarted calls go on after a handler with SA_RESTART. */
static void *send_later(void *argument)
{
	const struct timespec time = from_ms(3 * SHORT_MS);
	(void)argument;
	nanosleep(&time, NULL);
	if (write(sockets[1], "x", 1) != 1)
		puts("write failed");
	sem_post(&semaphore);
	return NULL;
}

static void mixed(void)
{
	const struct itimerval alarm = { { 0, 0 }, { 0, SHORT_MS * 1000 } };
	pthread_t thread;
	sigset_t blocked = set_of(SIGALRM, 0);
	char byte = '-';
	install(SIGALRM, handle, SA_RESTART, set_of(0, 0));
	handled = 0;
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	pthread_create(&thread, NULL, send_later, NULL);
	pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
	burn();
	setitimer(ITIMER_REAL, &alarm, NULL);
	printf("read: %d", (int)read(sockets[0], &byte, 1));
	printf(" %c, handled %d\n", byte, (int)handled);
	printf("sem_wait: %d\n", sem_wait(&semaphore));
	pthread_join(thread, NULL);
	install(SIGALRM, SIG_DFL, 0, set_of(0, 0));
}

/* --- many alarms --------------------------------------------------------------------- */

static bool wait_for_alarm(unsigned way, const sigset_t *open)
{
	const struct timespec long_time = { 60, 0 };
	struct timespec left = { 0, 0 };
	switch (way % 3) {
	case 0:
		return sigsuspend(open) < 0 && errno == EINTR;
	case 1:
		return ppoll(NULL, 0, &long_time, open) < 0 && errno == EINTR;
	default:
		return pselect(0, NULL, NULL, NULL, &long_time, open) < 0 && errno == EINTR &&
		       !left.tv_sec;
	}
}

static void alarms(unsigned count)
{
	sigset_t blocked = set_of(SIGALRM, 0), open;
	unsigned seed = 1, ended = 0;
	pthread_sigmask(SIG_BLOCK, &blocked, &open);
	for (unsigned i = 0; i < count; i++) {
		struct itimerval alarm = { { 0, 0 }, { 0, 1 + rand_r(&seed) % 1500 } };
		if (!(i % 100))
			install(SIGALRM, handle, i % 200 ? SA_RESTART : 0, set_of(0, 0));
		for (volatile int spin = rand_r(&seed) % 200000; spin; spin--)
			;
		handled = 0;
		setitimer(ITIMER_REAL, &alarm, NULL);
		ended += wait_for_alarm(i, &open) && handled == 1;
	}
	printf("%u of %u\n", ended, count);
}

int main(int argc, char **argv)
{
	const char *what = "";
	if (argc > 1)
		what = argv[1];
	if (!strcmp(what, "inherited")) {
		inherited();
		return 0;
	}
	if (!strcmp(what, "kernel")) {
		kernel();
		return 0;
	}
	if (!strcmp(what, "children") && argc == 4) {
		children(argv[2], argv[3]);
		return 0;
	}
	if (!strcmp(what, "alarms") && argc == 3) {
		alarms((unsigned)atoi(argv[2]));
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_all();
	if (!*what || !strcmp(what, "actions")) {
		actions();
		real_time_signals();
	}
	if (!*what || !strcmp(what, "masks"))
		masks();
	if (!*what || !strcmp(what, "waits"))
		waits();
	if (!*what || !strcmp(what, "ends")) {
		ends(0);
		ends(SA_RESTART);
	}
	if (!*what || !strcmp(what, "mixed"))
		mixed();
	close_all();
	return 0;
}
