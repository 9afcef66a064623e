/* Starts the tool beside it: what Valgrind's core runs again for each program that a simulated one executes, with its
 * own options, the program and its arguments.  A program of its own, since the core takes the paths of launcher and
 * libraries from two variables, which it hides from the simulated program. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char self[PATH_MAX], tool[PATH_MAX + sizeof("/" VSIM_TOOL)];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0 || !argc) {
		fprintf(stderr, "tally: can't start the simulated PMU: /proc/self/exe: %s\n", strerror(errno));
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
	execv(tool, argv);
	fprintf(stderr, "tally: can't start the simulated PMU: %s: %s\n", tool, strerror(errno));
	return 126;
}
