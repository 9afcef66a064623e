#include "command/command.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	/* Text depends on the locale; numbers keep the C locale's format. */
	setlocale(LC_CTYPE, "");
	const char *name = argc > 1 ? argv[1] : "help";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("tally %s\n", TALLY_VERSION);
		return TALLY_EXIT_OK;
	}
	const struct tally_command *command = tally_command_find(name);
	if (!command)
		return TALLY_EXIT_USAGE;
	if (argc < 2) {
		command->run(command, 1, argv);
		return TALLY_EXIT_USAGE;
	}
	int status = command->run(command, argc - 1, argv + 1);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "tally %s: writing to standard output failed: %m\n", name);
		return status ? status : TALLY_EXIT_FAILURE;
	}
	return status;
}
