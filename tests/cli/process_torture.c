/* process_torture SECONDS [SEED]: does what programs do with threads, processes and signals, all at
 * once, and checks every result by itself.  It must end in the same way with and without tally.
 *
 * This process starts *rounds*, each a process of its own with its seed, and looks whether they end
 * well, in time, and leave no process behind.  A round has some threads, perhaps timers of its own
 * (setitimer(2), with and without SA_RESTART and alternate stacks), and each thread does steps by
 * chance.  Some steps need a process that has only one thread: each starts one ("alone").
 *
 *     process_torture round SEED       one round again
 *     process_torture alone NAME SEED  one of the steps that need a process of their own
 *     process_torture exit STATUS
 *
 * It writes failures to standard error, with their seeds, and exits with status 1 then. */
#include "process_torture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

extern char **environ;

enum { ROUND_LIMIT_S = 400, THREADS_MOST = 6, STEPS_MOST = 12 };

static char self[PATH_MAX];
static uint64_t seed;
struct torture torture;

/* --- for all steps -------------------------------------------------------- */

bool torture_failed(const char *format, ...)
{
	char text[512];
	int saved = errno, length;
	va_list list;
	va_start(list, format);
	length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	dprintf(STDERR_FILENO, "seed %llu: %.*s (errno %d)\n", (unsigned long long)seed, length, text,
		saved);
	return false;
}

uint64_t torture_random(uint64_t *state)
{
	uint64_t x = *state;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x;
}

/* Its result is known: (3^count − 1) / 2, modulo 2^64. */
uint64_t torture_sum(unsigned count)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < count; i++) {
		value = value * 3 + 1;
		__asm__ volatile("" : "+r"(value));
	}
	return value;
}

bool torture_work(unsigned count)
{
	uint64_t power = 1, base = 3, expected;
	__extension__ unsigned __int128 wide = 1, wide_base = 3;
	for (unsigned bits = count; bits; bits >>= 1) {
		if (bits & 1)
			wide *= wide_base;
		wide_base *= wide_base;
	}
	(void)power, (void)base;
	expected = (uint64_t)((wide - 1) / 2);
	errno = EDOM;
	uint64_t got = torture_sum(count);
	if (errno != EDOM)
		return torture_failed("errno changed to %d", errno);
	if (got != expected)
		return torture_failed("work of %u gives %llx", count, (unsigned long long)got);
	return true;
}

uint64_t torture_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

pid_t torture_wait(pid_t pid, int *status)
{
	pid_t got;
	do
		got = waitpid(pid, status, 0);
	while (got < 0 && errno == EINTR && torture.has_timers);
	return got;
}

bool torture_expect(pid_t pid, enum torture_end end, int value, const char *what)
{
	int status = -1;
	if (pid < 0)
		return torture_failed("%s: can't be started", what);
	if (torture_wait(pid, &status) != pid)
		return torture_failed("%s: lost", what);
	if (end == EXITS && WIFEXITED(status) && WEXITSTATUS(status) == value)
		return true;
	if (end == IS_KILLED && WIFSIGNALED(status) && WTERMSIG(status) == value)
		return true;
	return torture_failed("%s: wait status %x, wanted %s %d", what, status,
			      end == EXITS ? "exit" : "signal", value);
}

pid_t torture_spawn(const char *verb, const char *name, uint64_t value)
{
	char number[24];
	char *argv[] = { self, (char *)verb, (char *)name, number, NULL };
	pid_t pid;
	snprintf(number, sizeof(number), "%llu", (unsigned long long)value);
	if (!name) {
		argv[2] = number;
		argv[3] = NULL;
	}
	errno = posix_spawn(&pid, self, NULL, NULL, argv, environ);
	if (errno)
		return -1;
	return pid;
}

void torture_exec(int status)
{
	char number[12];
	snprintf(number, sizeof(number), "%d", status);
	execl(self, self, "exit", number, (char *)NULL);
	_exit(126);
}

const char *torture_self(void)
{
	return self;
}

/* --- a round -------------------------------------------------------------- */

static const struct torture_step *const lists[] = { torture_process_steps, torture_thread_steps,
						    torture_signal_steps, torture_alone_steps };
enum { LISTS = sizeof(lists) / sizeof(lists[0]) };

static bool alone(const struct torture_step *step, uint64_t *random)
{
	char what[64];
	snprintf(what, sizeof(what), "alone %s", step->name);
	return torture_expect(torture_spawn("alone", step->name, torture_random(random)), EXITS, 0,
			      what);
}

static bool do_step(uint64_t *random)
{
	unsigned total = 0;
	for (unsigned i = 0; i < LISTS; i++)
		for (const struct torture_step *step = lists[i]; step->name; step++)
			total += step->weight;
	unsigned at = (unsigned)(torture_random(random) % total);
	for (unsigned i = 0; i < LISTS; i++)
		for (const struct torture_step *step = lists[i]; step->name; step++) {
			if (at >= step->weight) {
				at -= step->weight;
				continue;
			}
			if (torture.is_told)
				dprintf(STDERR_FILENO, "%d: %s\n", torture_tid(), step->name);
			bool is_well = lists[i] == torture_alone_steps ? alone(step, random) :
									 step->run(random);
			if (!is_well)
				torture_failed("step %s", step->name);
			return is_well;
		}
	return true;
}

struct worker {
	pthread_t thread;
	uint64_t random;
	unsigned steps;
	bool is_well;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	worker->is_well = true;
	for (unsigned i = 0; i < worker->steps && worker->is_well; i++)
		worker->is_well = do_step(&worker->random);
	return NULL;
}

static int round_of(uint64_t random)
{
	struct worker workers[THREADS_MOST];
	unsigned count = 1 + (unsigned)(torture_random(&random) % THREADS_MOST);
	bool is_well = true;
	sigset_t ended;
	/* Otherwise a child's end may interrupt another thread's call, though SIGCHLD is ignored: if
	 * the thread that forked blocks it at that moment, the kernel doesn't drop it. */
	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	torture_own_timers(&random);
	for (unsigned i = 0; i < count; i++) {
		workers[i].random = torture_random(&random) | 1;
		workers[i].steps = 1 + (unsigned)(torture_random(&random) % STEPS_MOST);
		if (!i)
			continue;
		errno = pthread_create(&workers[i].thread, NULL, work, &workers[i]);
		if (errno)
			return !torture_failed("pthread_create");
	}
	work(&workers[0]);
	is_well = workers[0].is_well;
	for (unsigned i = 1; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		is_well &= workers[i].is_well;
	}
	return !torture_own_timers_end() || !is_well;
}

static int alone_of(const char *name, uint64_t random)
{
	for (const struct torture_step *step = torture_alone_steps; step->name; step++)
		if (!strcmp(step->name, name))
			return !step->run(&random);
	return 2;
}

/* --- all rounds ------------------------------------------------------------ */

/* Tells where a process's threads are. */
static void tell_hang(pid_t pid)
{
	char command[1024];
	snprintf(command, sizeof(command),
		 "for p in $(ps -eo pid=,pgid= | awk '$2 == %d { print $1 }'); do "
		 "tr '\\0' ' ' </proc/$p/cmdline; echo; for t in /proc/$p/task/*; do "
		 "echo $t $(cat $t/wchan) $(cat $t/syscall); grep -E 'State|Sig|Shd' $t/status; done; "
		 "if command -v gdb; then gdb -nx -batch -p $p -ex 'thread apply all bt 20'; fi; "
		 "done >&2",
		 (int)pid);
	if (system(command))
		fprintf(stderr, "no more is known\n");
}

static bool run_round(uint64_t number)
{
	uint64_t end = torture_now_ns() + ROUND_LIMIT_S * (uint64_t)NS_PER_S;
	int status = 0;
	pid_t pid = fork();
	if (!pid) {
		char text[24];
		setpgid(0, 0);
		snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
		execl(self, self, "round", text, (char *)NULL);
		_exit(126);
	}
	seed = number;
	if (pid < 0)
		return torture_failed("fork");
	setpgid(pid, pid);
	while (!waitpid(pid, &status, WNOHANG)) {
		const struct timespec moment = { .tv_nsec = 2000000 };
		nanosleep(&moment, NULL);
		if (torture_now_ns() < end)
			continue;
		torture_failed("a round hangs");
		tell_hang(pid);
		kill(-pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return false;
	}
	/* orphans end soon by themselves, or hang */
	while (!kill(-pid, 0)) {
		const struct timespec moment = { .tv_nsec = 2000000 };
		while (waitpid(-pid, NULL, WNOHANG) > 0)
			;
		nanosleep(&moment, NULL);
		if (torture_now_ns() < end)
			continue;
		torture_failed("a process is left");
		tell_hang(pid);
		kill(-pid, SIGKILL);
		return false;
	}
	if (status)
		return torture_failed("a round's wait status is %x", status);
	return true;
}

static uint64_t number_of(const char *text)
{
	return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		snprintf(self, sizeof(self), "%s", argv[0]);
	torture.is_told = getenv("TORTURE_TELLS") != NULL;
	if (argc == 3 && !strcmp(argv[1], "exit"))
		return atoi(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "round")) {
		seed = number_of(argv[2]);
		return round_of(seed * 2 + 1);
	}
	if (argc == 4 && !strcmp(argv[1], "alone")) {
		seed = number_of(argv[3]);
		return alone_of(argv[2], seed | 1);
	}
	if (argc < 2)
		return 2;
	uint64_t end = torture_now_ns() + number_of(argv[1]) * NS_PER_S, rounds = 0, bad = 0,
		 first = argc > 2 ? number_of(argv[2]) : 1;
	/* children of ended ones become ours: none may be left */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	do {
		bad += !run_round(first + rounds);
		rounds++;
	} while (torture_now_ns() < end && bad < 5);
	printf("%llu rounds, %llu failed\n", (unsigned long long)rounds, (unsigned long long)bad);
	return bad != 0;
}
