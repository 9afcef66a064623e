/* A second thread for what one thread hands on in batches.
 *
 * The first fills batch tally_batch_pipe_next(), submits it and goes on with the next one; the
 * second works batches off in their order.  Who waits for the other is woken when half of the
 * batches are there for it: sleeping and waking for each one costs as much as some hundred samples
 * do.  All functions are for the first thread.
 */
#ifndef TALLY_PROFILE_BATCH_PIPE_H
#define TALLY_PROFILE_BATCH_PIPE_H

#include <pthread.h>
#include <stdbool.h>

enum { TALLY_PIPE_BATCHES = 8 };

struct tally_batch_pipe {
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work_there, work_done;
	unsigned submitted, done;
	unsigned enough;  /* the second thread sleeps until so many batches wait for it */
	/* the first one sleeps until no more than so many do; UINT_MAX: it does not sleep */
	unsigned awaited;
	bool is_running, is_asleep, stopping;
	int status; /* of the first batch that failed: those behind it are passed over */
	int (*work)(void *context, unsigned batch);
	void *context;
};

/* Starts the thread, which calls work(context, batch): 0 or -errno.  -errno when there is none to
 * be had. */
int tally_batch_pipe_start(struct tally_batch_pipe *pipe,
			   int (*work)(void *context, unsigned batch), void *context);

/* The batch that is to be filled. */
static inline unsigned tally_batch_pipe_next(const struct tally_batch_pipe *pipe)
{
	return pipe->submitted % TALLY_PIPE_BATCHES;
}

/* Hands that batch on, and waits until the next one is free.  0, or what a batch failed with. */
int tally_batch_pipe_submit(struct tally_batch_pipe *pipe);

/* Waits until the second thread has nothing to do.  0, or what a batch failed with. */
int tally_batch_pipe_drain(struct tally_batch_pipe *pipe);

/* Drains, and ends the thread.  A pipe that was not started is left alone. */
void tally_batch_pipe_stop(struct tally_batch_pipe *pipe);

#endif
