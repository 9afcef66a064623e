#include "command/command.h"

#include <stdio.h>
#include <string.h>

static int run(const struct tally_command *command, int argc, char **argv)
{
	(void)command;
	if (argc > 1)
		for (size_t i = 0; tally_commands[i]; i++)
			if (!strcmp(tally_commands[i]->name, argv[1])) {
				char *help[] = { argv[1], (char[]){ "--help" }, NULL };
				return tally_commands[i]->run(tally_commands[i], 2, help);
			}
	printf("tally counts, samples and traces what programs do, and shows where their time goes.\n\n"
	       "usage: tally COMMAND [options] …\n\n");
	for (size_t i = 0; tally_commands[i]; i++)
		printf("  %-12s %s\n", tally_commands[i]->name, tally_commands[i]->summary);
	printf("\n'tally COMMAND --help' tells more of each.\n");
	return TALLY_EXIT_OK;
}

const struct tally_command tally_command_help = {
	.name = "help",
	.summary = "this list, or the help of one command",
	.usage = "[command]",
	.run = run,
};
