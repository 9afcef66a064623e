/* RATE SECONDS [PROGRAM…]: starts the programs (default /bin/true) by turns, without arguments,
 * RATE a second in total.  "+PROGRAM" starts a new copy each time; the copy is in the current
 * folder and is removed afterwards. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC),
	    out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	ssize_t got = 0;
	while (in >= 0 && out >= 0 && (got = sendfile(out, in, NULL, 1 << 20)) > 0)
		;
	int result = in < 0 || out < 0 || got < 0 ? -1 : 0;
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return result;
}

static void run(char *program, const posix_spawn_file_actions_t *silent, long number)
{
	char fresh[32] = "";
	if (*program == '+') {
		snprintf(fresh, sizeof(fresh), "./new%ld", number);
		if (copy(program + 1, fresh))
			perror(program + 1);
	}
	char *child[] = { fresh[0] ? fresh : program, NULL };
	pid_t pid;
	if (!posix_spawn(&pid, child[0], silent, NULL, child, environ))
		waitpid(pid, NULL, 0);
	if (fresh[0])
		unlink(fresh);
}

int main(int argc, char **argv)
{
	char *only[] = { "/bin/true" }, **programs = argc > 3 ? argv + 3 : only;
	int program_count = argc > 3 ? argc - 3 : 1;
	double rate = argc > 2 ? atof(argv[1]) : 0, seconds = argc > 2 ? atof(argv[2]) : 0,
	       start = now_s(), at;
	long count = 0;
	posix_spawn_file_actions_t silent;
	posix_spawn_file_actions_init(&silent);
	posix_spawn_file_actions_addopen(&silent, 1, "/dev/null", O_WRONLY, 0);
	while ((at = now_s() - start) < seconds) {
		if ((double)count >= rate * at) {
			nanosleep(&(struct timespec){ 0, 500000 }, NULL);
			continue;
		}
		run(programs[count % program_count], &silent, count);
		count++;
	}
	printf("%ld execs\n", count);
	return 0;
}
