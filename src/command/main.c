#include "base/environment.h"
#include "base/input_limits.h"
#include "base/lost_pages.h"
#include "command/command.h"
#include "command/command_end.h"

#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* If descriptors 0, 1 or 2 are closed, the next file that is opened would get their number, and
 * messages would be written into it.  They are held by descriptors that can't be read or written,
 * so losing an output is an error as before.  Commands that tally starts don't inherit them. */
static void hold_standard_descriptors(void)
{
	if (fcntl(STDIN_FILENO, F_GETFD) < 0)
		open("/dev/null", O_PATH | O_CLOEXEC);
	/* A folder: /dev/stdout can't be opened for writing either. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
			_exit(TALLY_EXIT_FAILURE);
}

/* Returns the exit status: output that standard output didn't take is a failure. */
static int finish(const char *name, int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "tally %s: writing to standard output failed: %m\n", name);
	return status ? status : TALLY_EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	hold_standard_descriptors();
	tally_environment_begin();
	/* Text depends on the locale; numbers keep the C locale's format. */
	setlocale(LC_CTYPE, "");
	const char *name = argc > 1 ? argv[1] : "help";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("tally %s\n", TALLY_VERSION);
		return finish(name, TALLY_EXIT_OK);
	}
	const struct tally_command *command = tally_command_find(name);
	if (!command)
		return TALLY_EXIT_USAGE;
	if (argc < 2) {
		command->run(command, 1, argv);
		return TALLY_EXIT_USAGE;
	}
	struct tally_error err = TALLY_ERROR_NONE;
	tally_lost_pages_survive();
	if (tally_input_limits_check(&err) < 0)
		return tally_command_fail(command, &err);
	int status = command->run(command, argc - 1, argv + 1);
	return finish(name, tally_command_end(command, status));
}
