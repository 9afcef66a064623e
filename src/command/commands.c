/* The table of subcommands, in the order in which `tally help` lists them. */
#include "command/command.h"

#include "base/suggest.h"
#include "base/terminal.h"

#include <stdio.h>
#include <string.h>

#define COMMANDS(X) \
	X(stat) \
	X(compare) \
	X(record) \
	X(report) \
	X(diff) \
	X(annotate) \
	X(top) \
	X(script) \
	X(list) \
	X(doctor) \
	X(fold) \
	X(flamegraph) \
	X(timeline) \
	X(export) \
	X(pack) \
	X(sim) \
	X(cache) \
	X(completion) \
	X(help)

#define DECLARE(name) extern const struct tally_command tally_command_##name;
COMMANDS(DECLARE)
#define LIST(name) &tally_command_##name,
const struct tally_command *const tally_commands[] = { COMMANDS(LIST) NULL };

static void complain(const char *name)
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
}

const struct tally_command *tally_command_find(const char *name)
{
	for (size_t i = 0; tally_commands[i]; i++)
		if (!strcmp(tally_commands[i]->name, name))
			return tally_commands[i];
	complain(name);
	return NULL;
}
