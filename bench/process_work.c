/* For bench/process_cost: `process_work THREADS` computes for some 140 ms of CPU in all, by calls that are
 * eight deep, and prints the CPU time that the process has used: user, system, both, in ms. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { MOST = 256, LEAVES = 2000, DEPTH = 8, CALLS = 250000 };

static __attribute__((noinline)) unsigned compute(unsigned depth, unsigned seed)
{
	if (depth)
		return compute(depth - 1, seed + 1) + 1;
	for (unsigned i = 0; i < LEAVES; i++)
		__asm__ volatile("" : "+r"(seed)); /* the loop stays a loop */
	return seed;
}

static void *work(void *argument)
{
	unsigned calls = *(unsigned *)argument, seed = 1;
	for (unsigned i = 0; i < calls; i++)
		seed = compute(DEPTH, seed);
	*(volatile unsigned *)&seed = seed;
	return NULL;
}

static double milliseconds(struct timeval time)
{
	return (double)time.tv_sec * 1000 + (double)time.tv_usec / 1000;
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	pthread_t threads[MOST];
	struct rusage used;
	if (!count || count > MOST)
		return 2;
	unsigned calls = CALLS / count;
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, &calls))
			return 1;
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	getrusage(RUSAGE_SELF, &used);
	double user = milliseconds(used.ru_utime), system = milliseconds(used.ru_stime);
	printf("%.3f %.3f %.3f\n", user, system, user + system);
	return 0;
}
