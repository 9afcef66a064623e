/* System calls that only PROCESS_SIGNAL interrupted go on: what process_restart.c offers to other
 * files that replace functions of libc.
 *
 *	struct process_restart restart;
 *	process_restart_begin(&restart);
 *	do
 *		result = PROCESS_NEXT(msgrcv)(…);
 *	while (process_restart_again(&restart, result < 0 && errno == EINTR)); */
#ifndef TALLY_PROCESS_RESTART_H
#define TALLY_PROCESS_RESTART_H

#include "process/process_agent.h"
#include "process/process_signals.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One call of the program's. */
struct process_restart {
	int interruptions; /* by PROCESS_SIGNAL, at the last try */
	unsigned relayed;  /* handlers of the program's, at the first one */
	int error;         /* errno before the first one */
	bool resumes;      /* this is not the first try */
	uintptr_t outer;   /* the interrupted call in whose handler this one is made; 0: none */
};

/* Slow part of process_restart_again(). */
bool process_restart_resume(struct process_restart *restart);
void process_restart_end(struct process_restart *restart);
/* futex(2), for programs that call it by syscall(2), with its six arguments.  Returns its result, or
 * -errno. */
long process_restart_futex(const long *arguments);
/* For relay(): a handler of the program's begins.  If it interrupts a call that is about to be made
 * again, the call will end with EINTR. */
void process_restart_handler(void);
/* For the handler of PROCESS_SIGNAL: the timer that process_timer_kick() set has fired. */
void process_restart_kicked(struct process_thread *thread);

static inline void process_restart_begin(struct process_restart *restart)
{
	*restart = (struct process_restart){ .relayed = process_signals_relayed, .error = errno };
	if (process_own)
		restart->interruptions = process_own->interruptions;
}

/* After each try.  `interrupted`: the call ended with EINTR.  Returns true if it is to be made
 * again; otherwise errno is as the call left it. */
static inline bool process_restart_again(struct process_restart *restart, bool interrupted)
{
	if (interrupted && process_own)
		return process_restart_resume(restart);
	if (restart->resumes)
		process_restart_end(restart);
	return false;
}

#define PROCESS_RESTART(result, call) \
	do { \
		struct process_restart restart_; \
		process_restart_begin(&restart_); \
		do \
			(result) = (call); \
		while (process_restart_again(&restart_, (result) < 0 && errno == EINTR)); \
	} while (0)

/* Calls on sockets wait interruptibly if SO_RCVTIMEO or SO_SNDTIMEO is set. */
struct process_restart_socket {
	struct process_restart restart;
	int fd;
	enum { SOCKET_RECEIVES, SOCKET_SENDS, SOCKET_CONNECTS } use;
	uint64_t deadline_ns; /* of CLOCK_MONOTONIC; 0: not known yet */
};

/* Returns true if the call is to be made again.  If the time is over, errno is as after the call. */
bool process_restart_socket_again(struct process_restart_socket *socket);

#define PROCESS_RESTART_SOCKET(result, fd_, use_, call) \
	do { \
		struct process_restart_socket socket_ = { .fd = (fd_), .use = (use_) }; \
		process_restart_begin(&socket_.restart); \
		do \
			(result) = (call); \
		while ((result) < 0 && errno == EINTR && process_own && \
		       process_restart_socket_again(&socket_)); \
		if (socket_.restart.resumes) \
			process_restart_end(&socket_.restart); \
	} while (0)

/* Transfers of bytes that a signal ends early: write(2) to a pipe or socket, read(2) of /dev/zero.
 * Without the signal, they would have transferred all.
 *
 *	struct process_transfer transfer;
 *	process_transfer_begin(&transfer, fd, SOCKET_SENDS, size);
 *	do
 *		got = PROCESS_NEXT(write)(fd, bytes + transfer.done, size - transfer.done);
 *	while (process_transfer_again(&transfer, got));
 *	return process_transfer_end(&transfer, got); */
struct process_transfer {
	struct process_restart_socket socket;
	size_t size, done;
	bool waits_for_all;   /* MSG_WAITALL */
};

bool process_transfer_resume(struct process_transfer *transfer, ssize_t got);
ssize_t process_transfer_end(struct process_transfer *transfer, ssize_t got);

static inline void process_transfer_begin(struct process_transfer *transfer, int fd, int use,
					  size_t size)
{
	*transfer = (struct process_transfer){ .socket = { .fd = fd, .use = use }, .size = size };
	process_restart_begin(&transfer->socket.restart);
}

/* After each try.  Returns true if the rest is to be transferred, or the call to be made again. */
static inline bool process_transfer_again(struct process_transfer *transfer, ssize_t got)
{
	if (got > 0)
		transfer->done += (size_t)got;
	if (got == 0 || transfer->done == transfer->size || (got < 0 && errno != EINTR) || !process_own)
		return false;
	return process_transfer_resume(transfer, got);
}

#endif
