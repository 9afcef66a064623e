/* Steps of process_torture: processes begin and end in every way. */
#include "process_torture.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

static int any_status(uint64_t *random)
{
	return (int)(torture_random(random) % 100);
}

/* A core file of a process that dies on purpose would only be in the way. */
static void leave_no_core(void)
{
	const struct rlimit none = { 0 };
	setrlimit(RLIMIT_CORE, &none);
}

/* Ends the calling process in one of some ways, which `way` chooses.  torture_fork_step() knows what
 * its parent sees. */
enum { WAYS = 7, BY_QUICK_EXIT = 2 };
__attribute__((noreturn)) static void end(unsigned way, int status)
{
	if (way > 3)
		leave_no_core();
	switch (way) {
	case 0:
		_exit(status);
	case 1:
		_Exit(status);
	case BY_QUICK_EXIT:
		quick_exit(status);
	case 3:
		torture_exec(status);
	case 4:
		signal(SIGABRT, SIG_DFL);
		abort();
	case 5:
		raise(SIGKILL);
		break;
	default:
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
		break;
	}
	_exit(125);
}

static bool expect_end(pid_t pid, unsigned way, int status, const char *what)
{
	static const int signals[] = { SIGABRT, SIGKILL, SIGSEGV };
	if (way < 4)
		return torture_expect(pid, EXITS, status, what);
	return torture_expect(pid, IS_KILLED, signals[way - 4], what);
}

static pid_t fork_to_quick_exit(void)
{
	pthread_mutex_lock(&torture_exit_lock);
	pid_t pid = fork();
	if (pid)
		pthread_mutex_unlock(&torture_exit_lock);
	return pid;
}

static bool fork_step(uint64_t *random)
{
	unsigned way = (unsigned)(torture_random(random) % WAYS), work = 1000;
	int status = any_status(random);
	if (torture_random(random) % 2)
		work = 3000000;
	fflush(NULL);
	pid_t pid = way == BY_QUICK_EXIT ? fork_to_quick_exit() : fork();
	if (!pid) {
		if (!torture_work(work))
			_exit(124);
		end(way, status);
	}
	return expect_end(pid, way, status, "fork");
}

/* A child ends before its own children. */
static bool fork_tree_step(uint64_t *random)
{
	int status = any_status(random);
	pid_t pid = fork();
	if (!pid) {
		pid_t inner = fork();
		if (!inner) {
			if (!fork())
				_exit(!torture_work(100000));
			end(1, status);
		}
		bool is_well = torture_expect(inner, EXITS, status, "a child's child");
		_exit(is_well ? status : 124);
	}
	return torture_expect(pid, EXITS, status, "a child with children");
}

static bool vfork_step(uint64_t *random)
{
	int status = any_status(random);
	bool execs = torture_random(random) % 2;
	char number[12];
	snprintf(number, sizeof(number), "%d", status);
	const char *self = torture_self();
	pid_t pid = vfork();
	if (!pid) {
		if (execs)
			execl(self, self, "exit", number, (char *)NULL);
		_exit(execs ? 126 : status);
	}
	return torture_expect(pid, EXITS, status, "vfork");
}

/* The exec fails first, and the child goes on. */
static bool failed_exec_step(uint64_t *random)
{
	int status = any_status(random);
	pid_t pid = fork();
	if (!pid) {
		char *argv[] = { "none", NULL };
		execv("/no/such/program", argv);
		if (errno != ENOENT || !torture_work(1000000))
			_exit(124);
		execvp("no-such-program-at-all", argv);
		if (errno != ENOENT)
			_exit(123);
		torture_exec(status);
	}
	return torture_expect(pid, EXITS, status, "after an exec that failed");
}

static bool spawn_step(uint64_t *random)
{
	int status = any_status(random);
	char number[12];
	char *argv[] = { (char *)torture_self(), "exit", number, NULL };
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	snprintf(number, sizeof(number), "%d", status);
	sigemptyset(&none);
	if (posix_spawnattr_init(&attr) || posix_spawnattr_setsigmask(&attr, &none) ||
	    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK))
		return torture_failed("posix_spawnattr");
	errno = posix_spawnp(&pid, argv[0], NULL, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	if (errno)
		return torture_failed("posix_spawnp");
	if (!posix_spawn(&pid + 0, "/no/such/program", NULL, NULL, argv, environ))
		return torture_failed("posix_spawn of no program");
	return torture_expect(pid, EXITS, status, "posix_spawnp");
}

static bool shell_step(uint64_t *random)
{
	char command[64], text[64] = "";
	int status = any_status(random);
	snprintf(command, sizeof(command), "exit %d", status);
	int got = system(command);
	if (!WIFEXITED(got) || WEXITSTATUS(got) != status)
		return torture_failed("system: %x for %d", got, status);
	snprintf(command, sizeof(command), "echo it is %d; exit %d", status, status);
	FILE *pipe = popen(command, "re");
	if (!pipe)
		return torture_failed("popen");
	while (!fgets(text, sizeof(text), pipe) && errno == EINTR && torture.has_timers)
		clearerr(pipe);
	got = pclose(pipe);
	if (!WIFEXITED(got) || WEXITSTATUS(got) != status)
		return torture_failed("pclose: %x for %d", got, status);
	snprintf(command, sizeof(command), "it is %d\n", status);
	if (strcmp(text, command))
		return torture_failed("popen gave \"%s\"", text);
	return true;
}

static bool kill_step(uint64_t *random)
{
	static const int signals[] = { SIGKILL, SIGTERM, SIGHUP, SIGPIPE };
	int signal_number = signals[torture_random(random) % 4];
	const struct timespec moment = { .tv_nsec = (long)(torture_random(random) % 3000000) };
	/* Blocked, it waits for the child's default action: under nohup(1) SIGHUP is ignored until then. */
	sigset_t blocked, before;
	sigemptyset(&blocked);
	sigaddset(&blocked, signal_number);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	pid_t pid = fork();
	pthread_sigmask(SIG_SETMASK, pid ? &before : &blocked, NULL);
	if (!pid) {
		sigset_t none;
		sigemptyset(&none);
		signal(signal_number, SIG_DFL);
		sigprocmask(SIG_SETMASK, &none, NULL);
		for (;;)
			torture_sum(1000000);
	}
	nanosleep(&moment, NULL);
	kill(pid, signal_number);
	return torture_expect(pid, IS_KILLED, signal_number, "a killed child");
}

static bool stop_step(uint64_t *random)
{
	int status = any_status(random), got = 0;
	pid_t pid = fork(), seen;
	if (!pid) {
		raise(SIGSTOP);
		_exit(torture_work(500000) ? status : 124);
	}
	do
		seen = waitpid(pid, &got, WUNTRACED);
	while (seen < 0 && errno == EINTR && torture.has_timers);
	if (seen != pid || !WIFSTOPPED(got))
		return torture_failed("a child that stops: %x", got);
	kill(pid, SIGCONT);
	return torture_expect(pid, EXITS, status, "a child that stopped");
}

/* Descriptors are as the program left them: the first free one is the same before and after. */
static bool descriptors_step(uint64_t *random)
{
	(void)random;
	pid_t pid = fork();
	if (!pid) {
		closefrom(3);
		int fd = open("/", O_RDONLY | O_CLOEXEC);
		if (fd != 3)
			_exit(100 + fd % 20);
		if (!torture_work(3000000) || fcntl(4, F_GETFD) >= 0)
			_exit(124);
		torture_exec(7);
	}
	return torture_expect(pid, EXITS, 7, "a child that closes descriptors");
}

const struct torture_step torture_process_steps[] = {
	{ "fork", fork_step, 8 },
	{ "fork-tree", fork_tree_step, 3 },
	{ "vfork", vfork_step, 5 },
	{ "failed-exec", failed_exec_step, 2 },
	{ "spawn", spawn_step, 4 },
	{ "shell", shell_step, 3 },
	{ "kill", kill_step, 4 },
	{ "stop", stop_step, 2 },
	{ "descriptors", descriptors_step, 2 },
	{ 0 },
};
