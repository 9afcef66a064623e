/* Threads that wait, and threads that wake them: it is known who woke whom, and how long each
 * waited.  The work before a wake-up runs on a CPU, so only these waits are long.
 *
 *     wakers ROUNDS   prints NAME and ns waited, by the clock, for each kind of wait */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { WORK_MS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, taken = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int is_set, ends[2], acks[2], rounds;
static pthread_barrier_t barrier;

static uint64_t now(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void work(void)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + WORK_MS * 1000000ull;
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

#define NOINLINE __attribute__((noinline))
#define END __asm__ volatile("") /* no tail call */

NOINLINE static void waits_for_signal(void)
{
	pthread_mutex_lock(&lock);
	while (!is_set)
		pthread_cond_wait(&wake, &lock);
	is_set = 0;
	pthread_mutex_unlock(&lock);
	END;
}

NOINLINE static void gives_signal(void)
{
	work();
	pthread_mutex_lock(&lock);
	is_set = 1;
	pthread_mutex_unlock(&lock);
	pthread_cond_signal(&wake);
	END;
}

NOINLINE static void waits_for_byte(void)
{
	char byte;
	if (read(ends[0], &byte, 1) != 1)
		abort();
	END;
}

NOINLINE static void writes_byte(void)
{
	work();
	if (write(ends[1], "x", 1) != 1)
		abort();
	END;
}

NOINLINE static void waits_for_lock(void)
{
	char byte;
	if (read(acks[0], &byte, 1) != 1) /* the other thread holds it now */
		abort();
	pthread_mutex_lock(&taken);
	pthread_mutex_unlock(&taken);
	END;
}

NOINLINE static void holds_lock(void)
{
	pthread_mutex_lock(&taken);
	if (write(acks[1], "x", 1) != 1)
		abort();
	work();
	pthread_mutex_unlock(&taken);
	END;
}

static const struct {
	const char *name;
	void (*waits)(void), (*wakes)(void);
} kinds[] = {
	{ "signal", waits_for_signal, gives_signal },
	{ "byte", waits_for_byte, writes_byte },
	{ "lock", waits_for_lock, holds_lock },
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static void *wakes(void *unused)
{
	pthread_setname_np(pthread_self(), "waker");
	for (int i = 0; i < KINDS * rounds; i++) {
		pthread_barrier_wait(&barrier);
		kinds[i / rounds].wakes();
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t waker;
	uint64_t waited[KINDS] = { 0 };
	rounds = argc > 1 ? atoi(argv[1]) : 5;
	if (pipe(ends) || pipe(acks) || pthread_barrier_init(&barrier, NULL, 2) ||
	    pthread_create(&waker, NULL, wakes, NULL))
		return 1;
	for (int i = 0; i < KINDS * rounds; i++) {
		pthread_barrier_wait(&barrier);
		uint64_t start = now(CLOCK_MONOTONIC), used = now(CLOCK_THREAD_CPUTIME_ID);
		kinds[i / rounds].waits();
		waited[i / rounds] += now(CLOCK_MONOTONIC) - start -
				      (now(CLOCK_THREAD_CPUTIME_ID) - used);
	}
	pthread_join(waker, NULL);
	for (int i = 0; i < KINDS; i++)
		printf("%s %" PRIu64 "\n", kinds[i].name, waited[i]);
	return 0;
}
