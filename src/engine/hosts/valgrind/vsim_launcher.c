/* Starts the tool that lies beside it.  Valgrind's core runs the launcher again for each program
 * that a simulated one executes, with its own options, the program and its arguments.  It is a
 * separate program because the core takes the paths of launcher and libraries from two variables,
 * which it hides from the simulated program. */
#include "valgrind/vsim_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns the path of the program that this process ran before, if the process left it in the plan;
 * otherwise NULL. */
static const char *earlier_program(const char *plan_path)
{
	int fd = open(plan_path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	struct vsim_plan *plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				      0);
	if (plan == MAP_FAILED || lseek(fd, 0, SEEK_END) < (off_t)sizeof(*plan))
		return NULL;
	for (unsigned i = 0; i < VSIM_SELVES; i++) {
		if (__atomic_load_n(&plan->selves[i].pid, __ATOMIC_SEQ_CST) != getpid())
			continue;
		const char *path = strndup(plan->selves[i].path, sizeof(plan->selves[i].path));
		__atomic_store_n(&plan->selves[i].pid, 0, __ATOMIC_SEQ_CST);
		return path;
	}
	return NULL;
}

/* Replaces the program, the first argument that is no option, by the path left in the plan, if
 * any. */
static void name_program(char **argv)
{
	static const char option[] = "--plan=";
	const char *plan = NULL;
	for (argv++; *argv && !strncmp(*argv, "--", 2) && (*argv)[2]; argv++)
		if (!strncmp(*argv, option, sizeof(option) - 1))
			plan = *argv + sizeof(option) - 1;
	if (*argv && !strcmp(*argv, "--"))
		argv++;
	if (!plan || !*argv || strncmp(*argv, "/proc/", 6))
		return;
	const char *path = earlier_program(plan);
	if (path)
		*argv = (char *)(uintptr_t)path;
}

int main(int argc, char **argv)
{
	char self[PATH_MAX], tool[PATH_MAX + sizeof("/" VSIM_TOOL)];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0 || !argc) {
		fprintf(stderr, "tally: can't start the simulated PMU: /proc/self/exe: %s\n",
			strerror(errno));
		return 126;
	}
	self[length] = '\0';
	if (setenv("VALGRIND_LAUNCHER", self, 1))
		return 126;
	*strrchr(self, '/') = '\0';
	snprintf(tool, sizeof(tool), "%s/%s", self, VSIM_TOOL);
	if (setenv("VALGRIND_LIB", self, 1))
		return 126;
	argv[0] = tool;
	name_program(argv);
	execv(tool, argv);
	fprintf(stderr, "tally: can't start the simulated PMU: %s: %s\n", tool, strerror(errno));
	return 126;
}
