/* `--control`: another program says when to measure, by lines in a FIFO or on a descriptor, as with
 * `perf … --control`.
 *
 *     enable | disable [EVENT]     all events, or the one of that name
 *     snapshot                     what a flight recorder has goes to the file
 *     stop                         the session ends as after Ctrl-C
 *     ping                         nothing, but for the answer
 *     evlist [-v|-g|-F]            the events, on standard error
 *
 * Lines end with '\n' or NUL.  Each is answered, when it has been done, with perf's five bytes:
 * "ack\n" and its NUL. "fifo:CTL[,ACK]": paths of FIFOs that exist already, since who sends the
 * commands must know when they are there.  They are opened for reading and writing, so that senders
 * may come and go.  "fd:CTL[,ACK]": descriptors that were inherited.
 */
#ifndef TALLY_SESSION_CONTROL_FIFO_H
#define TALLY_SESSION_CONTROL_FIFO_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum tally_control_verb {
	TALLY_CONTROL_ENABLE,
	TALLY_CONTROL_DISABLE,
	TALLY_CONTROL_SNAPSHOT,
	TALLY_CONTROL_STOP,
	TALLY_CONTROL_PING,
	TALLY_CONTROL_EVLIST,
	TALLY_CONTROL_UNKNOWN /* to be told: it has no answer, as with perf */
};

struct tally_control_command {
	enum tally_control_verb verb;
	const char *
		argument; /* the event's name, "-v", … or ""; of an unknown one the whole line; until the next call */
};

struct tally_control {
	int fd, ack_fd; /* −1: none, or closed by the other side for good */
	bool owns;      /* opened here */
	bool is_too_long;
	size_t length;  /* of the line that is not complete yet */
	char line[256];
};

#define TALLY_CONTROL_INIT { .fd = -1, .ack_fd = -1 }

/* -EINVAL with a message on what is not understood; -ENOENT and the like of the files. */
int tally_control_open(struct tally_control *control, const char *spec, struct tally_error *err);

/* Poll `control->fd` for POLLIN (poll(2) passes −1 by), then call this until it gives 0.  1: a
 * command was taken.  Never waits.  When the other side of a pipe has gone, fd becomes −1. */
int tally_control_next(struct tally_control *control, struct tally_control_command *out);

/* Answers a command, but an unknown one.  A reader who is away, or whose pipe is full, gets
 * none. */
void tally_control_acknowledge(struct tally_control *control,
			       const struct tally_control_command *command);

/* Closes what was opened here. */
void tally_control_release(struct tally_control *control);

#endif
