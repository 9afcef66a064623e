/* Closes many tracepoints without making the user wait.
 *
 * When the last event of a tracepoint is closed, the kernel waits until no CPU runs its probe any
 * more.  It does so for each tracepoint, which takes some 40 ms each and 25 s for syscalls:*,
 * although all output is written.  So a child process inherits the descriptors and outlives us; its
 * end closes them for good.  The child holds nothing else: no terminal, and no pipe whose reader
 * waits for its end.
 */
#ifndef TALLY_SESSION_CLOSE_APART_H
#define TALLY_SESSION_CLOSE_APART_H

#include <stddef.h>

enum { TALLY_CLOSE_APART_MIN = 8 /* tracepoints; for fewer, a process is not worth it */ };

/* Forks a child that keeps these descriptors of perf events open, so that closing them here is
 * fast.  The last process to close them has to wait.  So the child ends only when the caller closes
 * the returned descriptor, which it does after closing the others.  Returns -1 when no child can be
 * made. */
int tally_close_apart(const int *events, size_t count);

#endif
