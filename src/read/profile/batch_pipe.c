/* The counters `submitted` and `done` make the queue: their difference is the number of waiting
 * batches.  Each thread notes how many batches it sleeps for, so the other one signals only when
 * that number is reached. */
#include "profile/profile_internal.h"

#include "base/threads.h"

#include <limits.h>

enum { HALF = TALLY_PIPE_BATCHES / 2 };

static unsigned waiting(const struct tally_batch_pipe *pipe)
{
	return pipe->submitted - pipe->done;
}

static void wait_for_work(struct tally_batch_pipe *pipe)
{
	if (waiting(pipe) || pipe->stopping)
		return;
	pipe->is_asleep = true;
	pipe->enough = HALF;
	while (waiting(pipe) < pipe->enough && !pipe->stopping)
		pthread_cond_wait(&pipe->work_there, &pipe->lock);
	pipe->is_asleep = false;
}

static void *work_off(void *argument)
{
	struct tally_batch_pipe *pipe = argument;
	pthread_mutex_lock(&pipe->lock);
	for (;;) {
		wait_for_work(pipe);
		if (!waiting(pipe))
			break;
		unsigned batch = pipe->done % TALLY_PIPE_BATCHES;
		int status = pipe->status;
		pthread_mutex_unlock(&pipe->lock);
		if (!status)
			status = pipe->work(pipe->context, batch);
		pthread_mutex_lock(&pipe->lock);
		pipe->status = status;
		pipe->done++;
		if (pipe->awaited != UINT_MAX && waiting(pipe) <= pipe->awaited)
			pthread_cond_signal(&pipe->work_done);
	}
	pthread_mutex_unlock(&pipe->lock);
	return NULL;
}

int tally_batch_pipe_start(struct tally_batch_pipe *pipe,
			   int (*work)(void *context, unsigned batch), void *context)
{
	*pipe = (struct tally_batch_pipe){ .work = work, .context = context, .awaited = UINT_MAX };
	pthread_mutex_init(&pipe->lock, NULL);
	pthread_cond_init(&pipe->work_there, NULL);
	pthread_cond_init(&pipe->work_done, NULL);
	int result = tally_thread_start(&pipe->thread, work_off, pipe);
	pipe->is_running = !result;
	return result;
}

static void wake(struct tally_batch_pipe *pipe, unsigned enough)
{
	pipe->enough = enough;
	if (pipe->is_asleep && (waiting(pipe) >= enough || pipe->stopping))
		pthread_cond_signal(&pipe->work_there);
}

/* Waits until at most `left` batches are unfinished. */
static int wait_for(struct tally_batch_pipe *pipe, unsigned left)
{
	if (waiting(pipe) > left)
		wake(pipe, 1);
	pipe->awaited = left;
	while (waiting(pipe) > left)
		pthread_cond_wait(&pipe->work_done, &pipe->lock);
	pipe->awaited = UINT_MAX;
	return pipe->status;
}

int tally_batch_pipe_submit(struct tally_batch_pipe *pipe)
{
	pthread_mutex_lock(&pipe->lock);
	pipe->submitted++;
	wake(pipe, HALF);
	int status = pipe->status;
	if (waiting(pipe) >= TALLY_PIPE_BATCHES)
		status = wait_for(pipe, HALF);
	pthread_mutex_unlock(&pipe->lock);
	return status;
}

int tally_batch_pipe_drain(struct tally_batch_pipe *pipe)
{
	pthread_mutex_lock(&pipe->lock);
	int status = wait_for(pipe, 0);
	pthread_mutex_unlock(&pipe->lock);
	return status;
}

void tally_batch_pipe_stop(struct tally_batch_pipe *pipe)
{
	if (!pipe->is_running)
		return;
	pthread_mutex_lock(&pipe->lock);
	pipe->stopping = true;
	wake(pipe, 1);
	pthread_mutex_unlock(&pipe->lock);
	pthread_join(pipe->thread, NULL);
	pthread_cond_destroy(&pipe->work_there);
	pthread_cond_destroy(&pipe->work_done);
	pthread_mutex_destroy(&pipe->lock);
	pipe->is_running = false;
}
