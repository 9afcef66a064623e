/* The environment for the next program: see process_environment.c.  All functions may be called in
 * a child of vfork(2): they change no memory but the caller's. */
#ifndef TALLY_PROCESS_ENVIRONMENT_H
#define TALLY_PROCESS_ENVIRONMENT_H

#include <stddef.h>

/* Returns the program's own environment. */
char **process_environment(void);
/* Returns the value of PATH, or NULL. */
const char *process_environment_path(void);

/* Returns how many bytes process_environment_lend() needs for this environment (NULL: empty).
 * Returns 0 if nothing is to be lent: the object has no plan, or the environment names one. */
size_t process_environment_room(char *const *envp);
/* Returns the environment with tally's variables, made in `room`, which is aligned for pointers.
 * It refers to the strings of `envp`. */
char **process_environment_lend(char *const *envp, void *room);

#endif
