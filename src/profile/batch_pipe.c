#include "profile/batch_pipe.h"

#include "base/threads.h"

static void *work_off(void *argument)
{
	struct tally_batch_pipe *pipe = argument;
	pthread_mutex_lock(&pipe->lock);
	for (;;) {
		while (pipe->done == pipe->submitted && !pipe->stopping)
			pthread_cond_wait(&pipe->changed, &pipe->lock);
		if (pipe->done == pipe->submitted)
			break;
		unsigned batch = pipe->done % TALLY_PIPE_BATCHES;
		int status = pipe->status;
		pthread_mutex_unlock(&pipe->lock);
		if (!status)
			status = pipe->work(pipe->context, batch);
		pthread_mutex_lock(&pipe->lock);
		pipe->status = status;
		pipe->done++;
		pthread_cond_signal(&pipe->changed);
	}
	pthread_mutex_unlock(&pipe->lock);
	return NULL;
}

int tally_batch_pipe_start(struct tally_batch_pipe *pipe, int (*work)(void *context, unsigned batch), void *context)
{
	*pipe = (struct tally_batch_pipe){ .work = work, .context = context };
	pthread_mutex_init(&pipe->lock, NULL);
	pthread_cond_init(&pipe->changed, NULL);
	int result = tally_thread_start(&pipe->thread, work_off, pipe);
	pipe->is_running = !result;
	return result;
}

/* Waits until at most `left` batches are not done. */
static int wait_for(struct tally_batch_pipe *pipe, unsigned left)
{
	while (pipe->submitted - pipe->done > left)
		pthread_cond_wait(&pipe->changed, &pipe->lock);
	return pipe->status;
}

int tally_batch_pipe_submit(struct tally_batch_pipe *pipe)
{
	pthread_mutex_lock(&pipe->lock);
	pipe->submitted++;
	pthread_cond_signal(&pipe->changed);
	int status = wait_for(pipe, TALLY_PIPE_BATCHES - 1);
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
	pthread_cond_signal(&pipe->changed);
	pthread_mutex_unlock(&pipe->lock);
	pthread_join(pipe->thread, NULL);
	pthread_cond_destroy(&pipe->changed);
	pthread_mutex_destroy(&pipe->lock);
	pipe->is_running = false;
}
