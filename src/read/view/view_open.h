/* Which recording a command reads, and parsing the arguments of commands that read one. */
#ifndef TALLY_VIEW_OPEN_H
#define TALLY_VIEW_OPEN_H

#include "command/command.h"

#include <stdbool.h>

/* Returns `given`; or "-" if standard input is a pipe or a file, as in perf; or "tally.data", or
 * "perf.data" if only that exists in the working directory. */
const char *tally_recording_path(const char *given);

/* A row of an option table: -i, the recording's path. */
#define TALLY_INPUT_OPTION(type, member) \
	{ 'i', "input", TALLY_ARGUMENT_REQUIRED, "FILE", \
	  "the recording (tally.data, else perf.data; - is standard input)", \
	  TALLY_TEXT(type, member) }

/* Parses options and at most one recording, in any order; stores the recording's name in `*input`
 * unless an option did. Returns false when the command must exit with `*status`, after the help or
 * an error was printed. */
bool tally_recording_arguments(const struct tally_command *command, int argc, char **argv,
			       void *request, const char **input, int *status);

#endif
