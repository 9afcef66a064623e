/* What a command says at its end: which inputs it refused, and which files changed under it. */
#ifndef TALLY_COMMAND_END_H
#define TALLY_COMMAND_END_H

struct tally_command;

/* Prints an error for each kind of input that was refused (base/input_limits.h), and for pages of
 * files that were lost (base/lost_pages.h).  Returns `status`, but TALLY_EXIT_FAILURE instead of
 * TALLY_EXIT_OK if there was any. */
int tally_command_end(const struct tally_command *command, int status);

#endif
