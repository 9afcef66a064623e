/* A library whose constructor and whose function spend 100 ms of CPU each: see new_code.c.  With THREAD in
 * the environment, the constructor prints what it sees of tally's variables, and starts a thread that spends
 * the time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double used_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void spin(void)
{
	for (double until = used_s() + 0.1; used_s() < until;)
		for (volatile long i = 0; i < 1000000; i++)
			;
}

void spin_in_library(void);
void spin_in_library(void)
{
	spin();
}

static void *spin_in_thread(void *unused)
{
	(void)unused;
	for (volatile long i = 0; i < 50000000; i++)
		;
	return NULL;
}

__attribute__((constructor)) static void spin_in_constructor(void)
{
	pthread_t thread;
	if (!getenv("THREAD")) {
		spin();
		return;
	}
	printf("TALLY_PLAN %d LD_PRELOAD %d\n", !!getenv("TALLY_PLAN"), !!getenv("LD_PRELOAD"));
	if (!pthread_create(&thread, NULL, spin_in_thread, NULL))
		pthread_join(thread, NULL);
}
