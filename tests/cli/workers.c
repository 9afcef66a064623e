/* A server: a master that waits, and workers that existed before the recorder.
 *
 *     workers MS   starts two workers, the second of which starts a third; prints "ready" and waits
 *                  until standard input ends; then each worker takes MS ms of CPU time in its own
 *                  function, and all end
 *     workers MS N prints "ready"; starts workers, four at a time, until standard input ends, and
 *                  then N more; each takes MS ms of CPU time and ends */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void spend(long ms)
{
	struct timespec used;
	do {
		for (volatile int i = 0; i < 10000; i++)
			;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < ms);
}

#define WORKER(name) \
	__attribute__((noinline)) static void name(long ms) \
	{ \
		spend(ms); \
		__asm__ volatile(""); /* no tail call */ \
	}
WORKER(first_works)
WORKER(second_works)
WORKER(third_works)

static void wait_for_work(int hold)
{
	char byte;
	while (read(hold, &byte, 1) > 0)
		;
}

/* The worker closes `ready` when it waits; the end of `hold` makes it work. */
static pid_t start(void (*work)(long), long ms, const int ready[2], const int hold[2],
		   void (*then)(long), int *status)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	pid_t own = then ? start(then, ms, ready, hold, NULL, status) : 0;
	close(hold[1]);
	close(ready[0]);
	close(ready[1]);
	wait_for_work(hold[0]);
	work(ms);
	_exit(own < 0 || (own && waitpid(own, status, 0) != own));
}

static int has_ended(int input)
{
	struct pollfd end = { .fd = input };
	return poll(&end, 1, 0) > 0;
}

static int churn(long ms, int count)
{
	int status = 0;
	puts("ready");
	fflush(stdout);
	for (int i = 0; count > 0; i++) {
		count -= has_ended(STDIN_FILENO);
		pid_t pid = fork();
		if (!pid) {
			first_works(ms);
			_exit(0);
		}
		if (pid < 0 || (i >= 4 && wait(&status) < 0) || status)
			return 1;
	}
	while (wait(&status) > 0)
		;
	return status != 0;
}

int main(int argc, char **argv)
{
	int ready[2], hold[2], status = 0;
	if (argc == 3)
		return churn(atol(argv[1]), atoi(argv[2]));
	if (argc != 2 || pipe(ready) || pipe(hold))
		return 2;
	long ms = atol(argv[1]);
	pid_t first = start(first_works, ms, ready, hold, NULL, &status);
	pid_t second = start(second_works, ms, ready, hold, third_works, &status);
	if (first < 0 || second < 0)
		return 1;
	close(ready[1]);
	wait_for_work(ready[0]);
	puts("ready");
	fflush(stdout);
	wait_for_work(STDIN_FILENO);
	close(hold[1]);
	return waitpid(first, &status, 0) != first || waitpid(second, &status, 0) != second;
}
