/* RATE SECONDS [PROGRAM…]: starts the programs (/bin/true) in turn, without arguments, so many a second in all. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	char *only[] = { "/bin/true" }, **programs = argc > 3 ? argv + 3 : only;
	int program_count = argc > 3 ? argc - 3 : 1;
	double rate = argc > 2 ? atof(argv[1]) : 0, seconds = argc > 2 ? atof(argv[2]) : 0, start = now_s(), at;
	long count = 0;
	posix_spawn_file_actions_t silent;
	posix_spawn_file_actions_init(&silent);
	posix_spawn_file_actions_addopen(&silent, 1, "/dev/null", O_WRONLY, 0);
	while ((at = now_s() - start) < seconds) {
		pid_t pid;
		if ((double)count >= rate * at) {
			nanosleep(&(struct timespec){ 0, 500000 }, NULL);
			continue;
		}
		char *child[] = { programs[count % program_count], NULL };
		if (!posix_spawn(&pid, child[0], &silent, NULL, child, environ))
			waitpid(pid, NULL, 0);
		count++;
	}
	printf("%ld execs\n", count);
	return 0;
}
