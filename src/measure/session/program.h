/* Looks for the program that a command names, like execvp(3). */
#ifndef TALLY_SESSION_PROGRAM_H
#define TALLY_SESSION_PROGRAM_H

#include <stdbool.h>

/* True if execvp(3) would find it with this PATH; NULL: the default one. */
bool tally_program_is_there(const char *path, const char *command);

#endif
