/* `--control`: another program controls the session by lines in a FIFO or on a descriptor, as with
 * `perf … --control`.
 *
 *     enable | disable [EVENT]     all events, or the one of that name
 *     snapshot                     what a flight recorder has goes to the file
 *     stop                         the session ends as after Ctrl-C
 *     ping                         nothing except the answer
 *     evlist [-v|-g|-F]            the events, on standard error
 *
 * Lines end with '\n' or NUL.  Each command is answered once it is done, with perf's five bytes:
 * "ack\n" and a NUL.  "fifo:CTL[,ACK]" gives paths of existing FIFOs: the sender must know when
 * they are there, so it creates them.  They are opened for reading and writing, so that senders may
 * come and go.  "fd:CTL[,ACK]" gives inherited descriptors.
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
	TALLY_CONTROL_UNKNOWN /* report it; it gets no answer, as with perf */
};

struct tally_control_command {
	enum tally_control_verb verb;
	const char *
		argument; /* event's name, "-v", … or ""; unknown: the line; until the next call */
};

struct tally_control {
	int fd, ack_fd; /* −1: none, or the other side has closed it */
	bool owns;      /* the descriptors were opened here */
	bool is_too_long;
	size_t length;  /* of the incomplete line */
	char line[256];
};

#define TALLY_CONTROL_INIT { .fd = -1, .ack_fd = -1 }

/* Opens what `spec` names.  Returns 0; -EINVAL with a message for an invalid spec; -ENOENT and
 * other errors of the files. */
int tally_control_open(struct tally_control *control, const char *spec, struct tally_error *err);

/* Gets the next command.  Returns 1, or 0 when there is none; never waits.  Poll `control->fd` for
 * POLLIN (poll(2) ignores −1), then call this until it returns 0.  When the other side of a pipe
 * has gone, fd becomes −1. */
int tally_control_next(struct tally_control *control, struct tally_control_command *out);

/* Answers a command unless it is unknown.  Skips the answer without a reader, or if the pipe is
 * full. */
void tally_control_acknowledge(struct tally_control *control,
			       const struct tally_control_command *command);

/* Closes the descriptors that were opened here. */
void tally_control_release(struct tally_control *control);

#endif
