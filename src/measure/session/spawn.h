/* Starts a command that waits before exec until the caller lets it go.
 *
 * The child is forked at once and stops before exec(2), so that events can be opened on it;
 * tally_spawn_go() lets it continue.  The child then writes what it has used so far (its share of
 * our own fork) and calls execvp(3).  The socket between the two closes by itself when that
 * succeeds, and carries errno when it fails.  Signals and limits are those that the caller had when
 * it called tally_spawn_prepare(), even if the caller changes its own later.
 */
#ifndef TALLY_SESSION_SPAWN_H
#define TALLY_SESSION_SPAWN_H

#include "base/error.h"
#include "provider/provider.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

struct tally_spawn {
	pid_t pid; /* 0: none */
	int control_fd;
	struct rusage before; /* used by the child before exec */
};

#define TALLY_SPAWN_INIT { .control_fd = -1 }

/* A shell's exit statuses for a command that can't be executed. */
enum { TALLY_EXIT_NOT_EXECUTABLE = 126, TALLY_EXIT_NOT_FOUND = 127 };

/* Gets the arguments to execute for `command`: its own, or those of the provider's program that
 * runs it.  In the second case this looks the command up, so that a missing command gives the same
 * message.  Returns 0 or -errno. */
int tally_spawn_command(struct tally_provider *provider, char **command, char ***out,
			struct tally_error *err);

/* Forks.  `mask`: the signal mask for the command.  Returns 0 or -errno. */
int tally_spawn_prepare(struct tally_spawn *spawn, char **command, const sigset_t *mask,
			struct tally_error *err);

/* Lets the command start, and returns once it has.  Returns 0, or -errno of exec with a message
 * (the child is reaped). */
int tally_spawn_go(struct tally_spawn *spawn, char **command, struct tally_error *err);

/* Returns the exit status for a result of tally_spawn_go(): 127 or 126. */
int tally_spawn_failure_status(int code);

/* Returns the exit status for wait4(2)'s status: 128 + n for a signal. */
int tally_spawn_exit_status(int wait_status);

/* Ends a child that has not been told to go, and closes the socket.  A running command is left
 * alone. */
void tally_spawn_release(struct tally_spawn *spawn);

#endif
