#include "base/suggest.h"
#include "base/terminal.h"
#include "command/command.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

static int unknown(const char *name)
{
	const char *nearest = NULL;
	unsigned best = 3;
	for (size_t i = 0; tally_commands[i]; i++) {
		unsigned distance = tally_edit_distance(name, tally_commands[i]->name);
		if (distance < best) {
			best = distance;
			nearest = tally_commands[i]->name;
		}
	}
	char clean[128];
	tally_terminal_clean(name, clean, sizeof(clean));
	fprintf(stderr, "tally: there is no command '%s'\n", clean);
	if (nearest)
		fprintf(stderr, "hint: did you mean 'tally %s'?\n", nearest);
	else
		fprintf(stderr, "hint: 'tally help' lists them\n");
	return TALLY_EXIT_USAGE;
}

static const struct tally_command *find(const char *name)
{
	for (size_t i = 0; tally_commands[i]; i++)
		if (!strcmp(tally_commands[i]->name, name))
			return tally_commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	/* Only what shows text to people may differ by locale; numbers stay the C locale's. */
	setlocale(LC_CTYPE, "");
	const char *name = argc > 1 ? argv[1] : "help";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("tally %s\n", TALLY_VERSION);
		return TALLY_EXIT_OK;
	}
	const struct tally_command *command = find(name);
	if (!command)
		return unknown(name);
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
