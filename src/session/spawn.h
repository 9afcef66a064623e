/* Starting a command that waits until it is told to go.
 *
 * The child is forked at once and stops before exec(2), so that events can be opened on it; `go`
 * lets it on.  The child then writes what it has used so far (its share of our own fork) and calls
 * execvp(3); the socket between the two closes by itself when that succeeds, and carries errno when
 * it fails.  Signals and limits are those that the caller had when `prepare` was called, whatever
 * it changes for itself later.
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

/* Shells' statuses for a command that can't be run. */
enum { TALLY_EXIT_NOT_EXECUTABLE = 126, TALLY_EXIT_NOT_FOUND = 127 };

/* What to execute for `command`: itself, or what the provider starts in its place.  Then the
 * command is looked up here, so that one that isn't there is told of in the same words.  0 or
 * -errno. */
int tally_spawn_command(struct tally_provider *provider, char **command, char ***out,
			struct tally_error *err);

/* Forks.  `mask`: the signal mask that the command gets.  0 or -errno. */
int tally_spawn_prepare(struct tally_spawn *spawn, char **command, const sigset_t *mask,
			struct tally_error *err);

/* Lets the command start; returns once it did: 0, or -errno of exec with a message (the child is
 * reaped). */
int tally_spawn_go(struct tally_spawn *spawn, char **command, struct tally_error *err);

/* The exit status for what tally_spawn_go gave: 127 or 126. */
int tally_spawn_failure_status(int code);

/* The exit status for what wait4(2) gave: 128 + n for a signal. */
int tally_spawn_exit_status(int wait_status);

/* Ends a child that was never told to go, closes the socket.  A command that runs is left alone. */
void tally_spawn_release(struct tally_spawn *spawn);

#endif
