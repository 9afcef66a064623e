/* The signals that end a session, and a child's end, as readable data instead of handlers.
 *
 * From open to release they are blocked; a command gets the mask as it was (`before`).  An ending
 * signal that follows one of its kind within 200 ms is the same: timeout(1) signals its child and
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
	sigset_t taken;            /* of them */
	sigset_t before;           /* the mask of who started us */
	bool ignored[65];          /* by number: was ignored then */
	/* by number: when the last that counted was taken; CLOCK_MONOTONIC */
	uint64_t first_ns[65];
	struct sigaction child_before;
};

struct tally_signal {
	int number;
	pid_t sender;
	bool from_terminal; /* the whole foreground group got it: it need not be passed on */
	/* from the terminal while ignored since before (nohup, background job): not for us */
	bool was_ignored;
};

int tally_signals_open(struct tally_signals *signals, struct tally_error *err);

/* Takes one more signal, which else would do what it does: SIGUSR2. */
int tally_signals_add(struct tally_signals *signals, int number, struct tally_error *err);

/* The next one without waiting: 1, or 0 when there is none. */
int tally_signals_next(struct tally_signals *signals, struct tally_signal *out);

void tally_signals_release(struct tally_signals *signals);

#endif
