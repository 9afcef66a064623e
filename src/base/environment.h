/* Whose environment this is: the one place that decides whether tally trusts it.
 *
 * The environment is untrusted if the person who wrote it lacks a right that tally has: file
 * capabilities or a set-user-ID bit gave it at exec, or root runs tally for another user (sudo).
 * Such an environment chooses no library, program, server, folder or setting: only how text looks
 * (docs/security.md).  Commands that tally starts for the caller get the caller's environment, and
 * none of the rights that tally gained.
 *
 * main() calls tally_environment_begin() first.  In a program that uses libtally nothing does, and
 * tally_environment() decides at each call.
 */
#ifndef TALLY_BASE_ENVIRONMENT_H
#define TALLY_BASE_ENVIRONMENT_H

#include <stdbool.h>

/* Replaces an untrusted environment, so that libraries see only harmless variables, the system's
 * PATH and root's HOME.  Call it once, before any other thread starts. */
void tally_environment_begin(void);

/* Returns the variable's value; NULL if it is not set, or if an untrusted environment sets it and
 * it is not harmless.  tally reads variables in no other way. */
const char *tally_environment(const char *name);

/* Returns the value in the caller's own environment, for commands that the caller names. */
const char *tally_environment_of_caller(const char *name);

/* Returns NULL if the environment is trusted, or else why not: the end of a sentence. */
const char *tally_environment_distrust(void);

/* In a child process, before it executes a program: drops capabilities and the user that tally
 * gained at exec.  Root stays root. */
void tally_environment_drop_rights(void);

/* The same for a command that the caller named, which gets the caller's environment. */
void tally_environment_give_back(void);

#endif
