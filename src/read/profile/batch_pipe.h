/* A pipe of batches from one thread to a second one.
 *
 * The first thread fills batch tally_batch_pipe_next(), submits it and goes on with the next one.
 * The second thread works on the batches in order.  A thread that waits for the other is woken only
 * when half of the batches are ready for it: one sleep and wake-up costs as much as some hundred
 * samples.  Only the first thread calls these functions.
 */
#ifndef TALLY_PROFILE_BATCH_PIPE_H
#define TALLY_PROFILE_BATCH_PIPE_H

#include <pthread.h>
#include <stdbool.h>

enum { TALLY_PIPE_BATCHES = 8 };

struct tally_batch_pipe {
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t work_there, work_done;
	unsigned submitted, done;
	unsigned enough;  /* the second thread wakes when this many batches wait for it */
	/* the first thread wakes when no more than this many batches wait; UINT_MAX: it is not
	 * asleep */
	unsigned awaited;
	bool is_running, is_asleep, stopping;
	int status; /* of the first batch that failed; later batches are skipped */
	int (*work)(void *context, unsigned batch);
	void *context;
};

/* Starts the second thread, which calls work(context, batch) for each batch; `work` returns 0 or
 * -errno.  Returns 0, or -errno when no thread can be started. */
int tally_batch_pipe_start(struct tally_batch_pipe *pipe,
			   int (*work)(void *context, unsigned batch), void *context);

/* Returns the number of the batch to fill. */
static inline unsigned tally_batch_pipe_next(const struct tally_batch_pipe *pipe)
{
	return pipe->submitted % TALLY_PIPE_BATCHES;
}

/* Hands over the filled batch, and waits until the next one is free.  Returns 0, or the error of a
 * batch that failed. */
int tally_batch_pipe_submit(struct tally_batch_pipe *pipe);

/* Waits until the second thread has done all batches.  Returns 0, or the error of a batch that
 * failed. */
int tally_batch_pipe_drain(struct tally_batch_pipe *pipe);

/* Drains the pipe and ends the thread.  Does nothing if the pipe was not started. */
void tally_batch_pipe_stop(struct tally_batch_pipe *pipe);

#endif
