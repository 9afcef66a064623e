/* process_exec.c's function for process_shell.c. */
#ifndef TALLY_PROCESS_EXEC_H
#define TALLY_PROCESS_EXEC_H

#include <spawn.h>
#include <sys/types.h>

/* posix_spawn(3) of "/bin/sh" with the program's environment, so that the shell is counted. */
int process_exec_spawn_shell(pid_t *pid, const posix_spawn_file_actions_t *actions,
			     const posix_spawnattr_t *attributes, char *const *argv);

#endif
