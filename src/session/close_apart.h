/* Closing many tracepoints, without anybody waiting for it.
 *
 * When the last event of a tracepoint is closed the kernel waits until no CPU is in its probe any
 * more, for each tracepoint by itself: some 40 ms, 25 s for syscalls:*, in which everything is said
 * and nothing is left to do.  So a child inherits the descriptors and outlives us: its end closes
 * them for good.  It holds nothing else: no terminal, no pipe that somebody may read to its end.
 */
#ifndef TALLY_SESSION_CLOSE_APART_H
#define TALLY_SESSION_CLOSE_APART_H

#include <stddef.h>

enum { TALLY_CLOSE_APART_MIN = 8 /* tracepoints: below it a process is not worth it */ };

/* Leaves a child behind that keeps these descriptors of perf events open.  It gives the way to what
 * is then to be closed here, too: who closes last has to wait, so the child ends only when the
 * returned descriptor is closed, which is the caller's to do behind the others.  -1 where there can
 * be no child. */
int tally_close_apart(const int *events, size_t count);

#endif
