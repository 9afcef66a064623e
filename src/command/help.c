/* The command `help`: lists the commands, or runs one of them with --help. */
#include "command/command.h"

#include <stdio.h>

static void list(void)
{
	printf("tally counts, samples and traces programs, and shows where their time goes.\n\n"
	       "usage: tally COMMAND [options] …\n\n");
	for (size_t i = 0; tally_commands[i]; i++)
		printf("  %-12s %s\n", tally_commands[i]->name, tally_commands[i]->summary);
	printf("\n'tally COMMAND --help' describes each.\n");
}

static int run(const struct tally_command *command, int argc, char **argv)
{
	struct tally_options options = TALLY_OPTIONS_INIT(command, argc, argv);
	if (!tally_options_parse(&options, NULL))
		return options.status;
	if (argc - options.index > 1)
		return tally_command_misuse(command, "one command at a time");
	if (argc == options.index) {
		list();
		return TALLY_EXIT_OK;
	}
	char *name = argv[options.index];
	const struct tally_command *other = tally_command_find(name);
	if (!other)
		return TALLY_EXIT_USAGE;
	char *help[] = { name, (char[]){ "--help" }, NULL };
	return other->run(other, 2, help);
}

const struct tally_command tally_command_help = {
	.name = "help",
	.summary = "this list, or the help of one command",
	.usage = "[COMMAND]",
	.rarely_reads_files = true,
	.run = run,
};
