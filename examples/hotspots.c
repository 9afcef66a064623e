/* A program with known hot spots, for profiling.
 *
 * On each full second a thread wakes and runs, through a wrapper: an integer loop; a walk over a
 * 2000 × 4096 array column by column (each step in another cache line: hostile to caches); the same
 * row by row (friendly); and a recursion.  Without arguments it runs for ever; `hotspots N` runs N
 * rounds without waiting and ends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROWS = 2000, COLUMNS = 4096, LOOPS = 10000000, FIBONACCI = 32 };

static int array[ROWS][COLUMNS];
static volatile long sink;

__attribute__((noinline)) static void integer_loop(void)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < LOOPS; i++) {
		sum += i * i;
		__asm__ volatile("" : "+r"(sum)); /* so that the loop stays a loop */
	}
	sink = (long)sum;
}

__attribute__((noinline)) static void walk_columns(void)
{
	long sum = 0;
	for (int column = 0; column < COLUMNS; column++)
		for (int row = 0; row < ROWS; row++)
			sum += ((volatile int(*)[COLUMNS])array)[row][column];
	sink = sum;
}

__attribute__((noinline)) static void walk_rows(void)
{
	long sum = 0;
	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < COLUMNS; column++)
			sum += ((volatile int(*)[COLUMNS])array)[row][column];
	sink = sum;
}

__attribute__((noinline)) static long fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

/* The wrapper: it calls all the work. */
__attribute__((noinline)) static void run_round(void)
{
	integer_loop();
	walk_columns();
	walk_rows();
	sink = fibonacci(FIBONACCI);
}

static void sleep_to_full_second(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	struct timespec wake = { .tv_sec = now.tv_sec + 1 };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
}

static void *worker(void *argument)
{
	long rounds = *(long *)argument;
	for (long round = 0; rounds < 0 || round < rounds; round++) {
		if (rounds < 0)
			sleep_to_full_second();
		run_round();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : -1;
	pthread_t thread;
	for (int row = 0; row < ROWS; row++)
		array[row][row % COLUMNS] = row;
	if (pthread_create(&thread, NULL, worker, &rounds)) {
		perror("hotspots");
		return 1;
	}
	pthread_join(thread, NULL);
	return 0;
}
