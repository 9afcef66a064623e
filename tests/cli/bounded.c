/* Runs a command with limits, and writes what it took: bounded FILE SECONDS MEGABYTES COMMAND...
 *
 * FILE gets a line: the status of wait(2), microseconds of CPU time, KiB of resident memory.  The
 * limits are of CPU time and of address space; 0: none.  A small program, since the memory before
 * exec(2) counts as the command's. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void limit(int resource, unsigned long value)
{
	struct rlimit both = { value, value };
	if (value)
		setrlimit(resource, &both);
}

int main(int count, char **arguments)
{
	struct rusage usage;
	int status;
	if (count < 5)
		return 2;
	pid_t child = fork();
	if (!child) {
		limit(RLIMIT_CPU, strtoul(arguments[2], NULL, 10));
		limit(RLIMIT_AS, strtoul(arguments[3], NULL, 10) << 20);
		execvp(arguments[4], arguments + 4);
		_exit(127);
	}
	FILE *out = fopen(arguments[1], "w");
	if (child < 0 || !out || wait4(child, &status, 0, &usage) != child)
		return 2;
	long long cpu_us = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ll +
			   usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
	fprintf(out, "%d %lld %ld\n", status, cpu_us, usage.ru_maxrss);
	return fclose(out) ? 2 : 0;
}
