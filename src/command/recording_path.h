/* Which recording a command reads, and the walk over arguments of those that read one. */
#ifndef TALLY_COMMAND_RECORDING_PATH_H
#define TALLY_COMMAND_RECORDING_PATH_H

#include "base/error.h"
#include "command/command.h"

#include <stdbool.h>

/* `given`, or "-" where standard input is a pipe or a file (as perf has it), or tally.data in the
 * working directory, or perf.data where there is only that. */
const char *tally_recording_path(const char *given);

/* Takes an option by its id: 0 or more, or -errno with a message. */
typedef int tally_option_taker(void *request, int id, const char *value, struct tally_error *err);

/* Options, and one recording before, behind or between them, whose name goes to *input where no
 * option set that.  False: the command ends with *status; help was given, or what is wrong has been
 * told. */
bool tally_recording_arguments(const struct tally_command *command, int argc, char **argv,
			       tally_option_taker *take, void *request, const char **input,
			       int *status);

#endif
