/* Closing many tracepoints, without anybody waiting for it.
 *
 * When the last event of a tracepoint is closed the kernel waits until no CPU is in its probe any more, for each
 * tracepoint by itself: syscalls:* takes 25 s, in which the recording is complete and nothing is left to do.  So a
 * child inherits the descriptors and outlives us: its end closes them for good.  It holds nothing else: no terminal, no
 * pipe that somebody may read to its end.
 */
#include "session/recorder_state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

enum { TRACEPOINTS_MIN = 8 }; /* some 40 ms each */

static bool takes_long(const struct tally_recorder *recorder)
{
	size_t count = 0;
	for (size_t i = 0; i + 1 < recorder->source_count; i++)
		count += recorder->sources[i].event->kind == TALLY_EVENT_TRACEPOINT;
	return count >= TRACEPOINTS_MIN && recorder->provider == tally_provider_kernel() && recorder->handles.count;
}

/* The kernel's handles are descriptors. */
static void close_others(const struct tally_recorder *recorder)
{
	int most = 0;
	for (size_t i = 0; i < recorder->handles.count; i++)
		if (recorder->handles.items[i].handle > most)
			most = recorder->handles.items[i].handle;
	bool *keep = calloc((size_t)most + 1, sizeof(*keep));
	if (!keep)
		_exit(0);
	for (size_t i = 0; i < recorder->handles.count; i++)
		keep[recorder->handles.items[i].handle] = true;
	for (int fd = 0; fd <= most; fd++)
		if (!keep[fd])
			close(fd);
	close_range((unsigned)most + 1, ~0u, 0);
}

void tally_recorder_close_apart(struct tally_recorder *recorder)
{
	sigset_t all;
	int ends[2];
	if (!recorder || !takes_long(recorder) || pipe2(ends, O_CLOEXEC) < 0)
		return;
	pid_t pid = fork();
	if (pid) { /* where there can be no child, we wait ourselves */
		tally_record_close(recorder);
		close(ends[0]);
		close(ends[1]);
		return;
	}
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (chdir("/") < 0)
		_exit(0);
	/* Rings first: a mapping keeps its event. */
	for (size_t i = 0; i < recorder->ring_count; i++) {
		tally_ring_close(&recorder->rings[i]);
		tally_ring_close(&recorder->side_rings[i]);
	}
	/* Not before ours are closed: who closes last has to wait. */
	char none;
	close(ends[1]);
	while (read(ends[0], &none, 1) < 0 && errno == EINTR)
		;
	close_others(recorder);
	_exit(0);
}
