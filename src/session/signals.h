/* Delivers the signals that end a session, and a child's end, as readable data instead of by
 * handlers.
 *
 * They are blocked from open to release; a command gets the original mask (`before`).  An ending
 * signal within 200 ms of another of the same number is dropped: timeout(1) signals its child and
 * then the child's group.
 */
#ifndef TALLY_SESSION_SIGNALS_H
#define TALLY_SESSION_SIGNALS_H

#include "base/error.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

struct tally_signals {
	int fd;
	sigset_t taken;            /* signals delivered here */
	sigset_t before;           /* the signal mask before open */
	bool ignored[65];          /* by number: it was ignored before open */
	/* by number: time of the last one that counted; CLOCK_MONOTONIC */
	uint64_t first_ns[65];
	struct sigaction child_before;
};

struct tally_signal {
	int number;
	bool from_terminal; /* sent to the whole foreground group, so it need not be passed on */
	/* from the terminal, and ignored since before open (nohup, background job): not for us */
	bool was_ignored;
};

int tally_signals_open(struct tally_signals *signals, struct tally_error *err);

/* Takes one more signal, instead of its default action: SIGUSR2. */
int tally_signals_add(struct tally_signals *signals, int number, struct tally_error *err);

/* Gets the next signal without waiting.  Returns 1, or 0 when there is none. */
int tally_signals_next(struct tally_signals *signals, struct tally_signal *out);

void tally_signals_release(struct tally_signals *signals);

#endif
