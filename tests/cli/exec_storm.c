/* RATE SECONDS: starts /bin/true so many times a second. */
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
	char *child[] = { "true", NULL };
	double rate = argc > 2 ? atof(argv[1]) : 0, seconds = argc > 2 ? atof(argv[2]) : 0, start = now_s(), at;
	long count = 0;
	while ((at = now_s() - start) < seconds) {
		pid_t pid;
		if ((double)count >= rate * at) {
			nanosleep(&(struct timespec){ 0, 500000 }, NULL);
			continue;
		}
		if (!posix_spawn(&pid, "/bin/true", NULL, NULL, child, environ))
			waitpid(pid, NULL, 0);
		count++;
	}
	printf("%ld execs\n", count);
	return 0;
}
