/* Threads that sample themselves: the kernel sends each a signal for each of its samples, whose
 * handler reads them and counts them by function.  Every thread takes SAMPLES of them, then its
 * ring stops by itself. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tally/ring.h>

enum { THREADS = 2, SAMPLES = 200 };

struct sampled {
	struct tally_event_ring *ring;
	void (*work)(void);
	volatile unsigned in_work, elsewhere;
	volatile sig_atomic_t ended;
};

static struct sampled threads[THREADS];
static volatile uint64_t sink;

__attribute__((noinline)) static void add(void)
{
	for (uint64_t i = 0; i < 10000; i++)
		sink += i;
}

__attribute__((noinline)) static void multiply(void)
{
	for (uint64_t i = 0; i < 10000; i++)
		sink *= i;
}

static bool take(void *context, const struct tally_record *record)
{
	struct sampled *thread = context;
	if (record->header.type != TALLY_RECORD_SAMPLE)
		return true;
	/* Both functions are small: less than 128 bytes. */
	if (record->sample.ip - (uint64_t)(uintptr_t)thread->work < 128)
		thread->in_work++;
	else
		thread->elsewhere++;
	return true;
}

/* Runs on the sampled thread, so its ring has no other reader. */
static void handle(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	for (int i = 0; i < THREADS; i++) {
		enum tally_event_ring_reason reason;
		if (!threads[i].ring)
			continue;
		reason = tally_event_ring_reason(threads[i].ring, info);
		if (reason == TALLY_EVENT_RING_NONE)
			continue;
		tally_event_ring_each(threads[i].ring, take, &threads[i]);
		if (reason == TALLY_EVENT_RING_END)
			threads[i].ended = 1;
	}
}

static void *run(void *context)
{
	struct sampled *thread = context;
	struct tally_event_ring_options options = { .size = sizeof(options),
						    .period = 200000 /* ns */,
						    .disabled = true };
	char error[512];
	thread->ring = tally_event_ring_open("cpu-clock:u", &options, error, sizeof(error));
	if (!thread->ring) {
		fprintf(stderr, "self_signal: %s\n", error);
		return NULL;
	}
	if (tally_event_ring_signal(thread->ring, SIGRTMIN) < 0 ||
	    tally_event_ring_refresh(thread->ring, SAMPLES) < 0) {
		perror("self_signal");
		return NULL;
	}
	while (!thread->ended)
		thread->work();
	return thread;
}

int main(void)
{
	pthread_t ids[THREADS];
	struct sigaction action;
	int failed = 0;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = handle;
	action.sa_flags = SA_SIGINFO | SA_RESTART;
	if (sigaction(SIGRTMIN, &action, NULL) < 0) {
		perror("self_signal");
		return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		threads[i].work = i ? multiply : add;
		if (pthread_create(&ids[i], NULL, run, &threads[i])) {
			fprintf(stderr, "self_signal: a thread can't be started\n");
			return 1;
		}
	}
	for (int i = 0; i < THREADS; i++) {
		void *result = NULL;
		pthread_join(ids[i], &result);
		failed |= !result;
		if (result)
			printf("thread=%d work=%u elsewhere=%u\n", i, threads[i].in_work,
			       threads[i].elsewhere);
	}
	for (int i = 0; i < THREADS; i++)
		tally_event_ring_close(threads[i].ring);
	return failed;
}
