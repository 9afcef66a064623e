/* Many threads and many processes, whose work is known to the last system call.
 *
 *     crowd threads N CALLS [ROUNDS]
 *                             N threads beside the first, named "t0" and so on; prints "ready" and
 *                             waits until standard input ends; then each thread makes CALLS
 *                             getppid(2) calls, each followed by ROUNDS of a loop, and all end
 *     crowd storm N [PROGRAM…]
 *                             starts N processes, up to eight at a time, each of which executes the
 *                             next of the programs, or just ends
 *     crowd exit              ends */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct crowd {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	int is_awake;
	long calls, rounds;
};

static void *member(void *context)
{
	struct crowd *crowd = context;
	pthread_mutex_lock(&crowd->lock);
	while (!crowd->is_awake)
		pthread_cond_wait(&crowd->wake, &crowd->lock);
	pthread_mutex_unlock(&crowd->lock);
	for (long i = 0; i < crowd->calls; i++) {
		syscall(SYS_getppid);
		for (volatile long left = crowd->rounds; left > 0; left--)
			;
	}
	return NULL;
}

static int threads(int count, long calls, long rounds)
{
	struct crowd crowd = { .lock = PTHREAD_MUTEX_INITIALIZER,
			       .wake = PTHREAD_COND_INITIALIZER,
			       .calls = calls,
			       .rounds = rounds };
	pthread_t *ids = calloc((size_t)count, sizeof(*ids));
	pthread_attr_t small;
	char byte;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < count; i++)
		if (!ids || pthread_create(&ids[i], &small, member, &crowd))
			return 1;
	for (int i = 0; i < count; i++) {
		char name[16];
		snprintf(name, sizeof(name), "t%d", i);
		pthread_setname_np(ids[i], name);
	}
	puts("ready");
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	pthread_mutex_lock(&crowd.lock);
	crowd.is_awake = 1;
	pthread_cond_broadcast(&crowd.wake);
	pthread_mutex_unlock(&crowd.lock);
	for (int i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	return 0;
}

/* Waits until at most `left` of the processes are there.  Returns 0 if all that ended succeeded. */
static int wait_for(int *running, int left)
{
	int status = 0;
	while (*running > left && !status && wait(&status) > 0)
		--*running;
	return status || *running > left;
}

/* One at a time would wait for its turn twice each, on a loaded machine for minutes in all. */
static int storm(char *self, int count, char **programs, int program_count)
{
	enum { AT_ONCE = 8 };
	int running = 0;
	char *environment[] = { NULL };
	for (int i = 0; i < count; i++) {
		char *program = program_count ? programs[i % program_count] : self;
		char *arguments[] = { program, program_count ? NULL : (char[]){ "exit" }, NULL };
		pid_t pid;
		if (wait_for(&running, AT_ONCE - 1) ||
		    posix_spawn(&pid, program, NULL, NULL, arguments, environment))
			return 1;
		running++;
	}
	return wait_for(&running, 0);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "exit"))
		_exit(0);
	if (argc >= 3 && !strcmp(argv[1], "storm"))
		return storm(argv[0], atoi(argv[2]), argv + 3, argc - 3);
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "threads"))
		return threads(atoi(argv[2]), atol(argv[3]), argc == 5 ? atol(argv[4]) : 0);
	fputs("usage: crowd threads N CALLS [ROUNDS] | storm N [PROGRAM...] | exit\n", stderr);
	return 2;
}
