/* Waits in functions of known names, and prints how long each took, in ns by the clock. */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

__attribute__((noinline)) static void sleeps_long(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	__asm__ volatile("");
}

__attribute__((noinline)) static void sleeps_briefly(void)
{
	for (int i = 0; i < 20; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

__attribute__((noinline)) static void works(void)
{
	uint64_t end = now(CLOCK_THREAD_CPUTIME_ID) + 50000000;
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 10000; i++)
			;
}

static void *waits_for_ever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* Prints FUNCTION, how long it took, and how much of that on a CPU. */
static void take_time(const char *name, void (*function)(void))
{
	uint64_t start = now(CLOCK_MONOTONIC), used = now(CLOCK_THREAD_CPUTIME_ID);
	function();
	used = now(CLOCK_THREAD_CPUTIME_ID) - used;
	printf("%s %" PRIu64 " %" PRIu64 "\n", name, now(CLOCK_MONOTONIC) - start, used);
	fflush(stdout);
}

int main(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, waits_for_ever, NULL))
		return 1;
	take_time("sleeps_long", sleeps_long);
	take_time("sleeps_briefly", sleeps_briefly);
	take_time("works", works);
	return 0;
}
