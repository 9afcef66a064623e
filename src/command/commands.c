/* The table of subcommands, in the order in which `tally help` lists them. */
#include "command/command.h"
#define COMMANDS(X) \
	X(stat) \
	X(record) \
	X(report) \
	X(script) \
	X(list) \
	X(doctor) \
	X(stat) \
	X(fold) \
	X(help)

#define DECLARE(name) extern const struct tally_command tally_command_##name;
COMMANDS(DECLARE)
#define LIST(name) &tally_command_##name,
const struct tally_command *const tally_commands[] = { COMMANDS(LIST) NULL };
