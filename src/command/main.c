#include "command/command.h"

#include "base/environment.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

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
	return finish(name, command->run(command, argc - 1, argv + 1));
}
