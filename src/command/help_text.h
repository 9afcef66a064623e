/* Prints a command's help to standard output: usage, options and details, at most as wide as the
 * terminal or 100 columns. */
#ifndef TALLY_COMMAND_HELP_TEXT_H
#define TALLY_COMMAND_HELP_TEXT_H

#include "command/command.h"

void tally_help_print(const struct tally_command *command);

#endif
