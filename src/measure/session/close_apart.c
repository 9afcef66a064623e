/* The child leaves the session and the working directory, blocks all signals, and closes all other
 * descriptors.  Then it reads a pipe until the caller closes the other end. */
#include "session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

/* Closes all descriptors except the events and `gate`. */
static void close_others(const int *events, size_t count, int gate)
{
	int most = gate;
	for (size_t i = 0; i < count; i++)
		most = events[i] > most ? events[i] : most;
	bool *keep = calloc((size_t)most + 1, sizeof(*keep));
	if (!keep)
		_exit(0);
	keep[gate] = true;
	for (size_t i = 0; i < count; i++)
		keep[events[i]] = true;
	for (int fd = 0; fd <= most; fd++)
		if (!keep[fd])
			close(fd);
	close_range((unsigned)most + 1, ~0u, 0);
	free(keep);
}

int tally_close_apart(const int *events, size_t count)
{
	sigset_t all;
	int ends[2];
	char none;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();
	if (pid) {
		close(ends[0]);
		if (pid > 0)
			return ends[1];
		close(ends[1]);
		return -1;
	}
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (chdir("/") < 0)
		_exit(0);
	close_others(events, count, ends[0]); /* also closes our copy of the gate's other end */
	while (read(ends[0], &none, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}
