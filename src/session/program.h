/* The program that a command names, as execvp(3) finds it. */
#ifndef TALLY_SESSION_PROGRAM_H
#define TALLY_SESSION_PROGRAM_H

#include <stdbool.h>

/* True when execvp(3) would find it. */
bool tally_program_is_there(const char *command);

#endif
