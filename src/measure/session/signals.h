/* Delivers signals as readable data instead of by handlers: a child's end, and all signals whose
 * default action would end a session without its results.
 *
 * Signals end the session, except SIGUSR1 and SIGUSR2.  Not taken: SIGKILL, faults of the program,
 * SIGPIPE and SIGXFSZ, after which a write fails.
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
	/* The number by which the session's command is told, if a signal ends the session: SIGTERM
	 * for those that are about tally alone, as SIGXCPU. */
	int passed_on;
	bool from_terminal; /* sent to the whole foreground group, so it need not be passed on */
	/* It ends the session.  A child's end, SIGUSR1 and SIGUSR2 don't, nor one that was ignored
	 * before open and comes from the terminal (nohup, background job) or is about tally
	 * alone. */
	bool ends;
};

int tally_signals_open(struct tally_signals *signals, struct tally_error *err);

/* Gets the next signal without waiting.  Returns 1, or 0 when there is none. */
int tally_signals_next(struct tally_signals *signals, struct tally_signal *out);

void tally_signals_release(struct tally_signals *signals);

#endif
