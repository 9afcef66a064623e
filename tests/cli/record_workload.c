/* The workload of script.sh and report.sh:
 *
 *     record_workload spin|threads|signals|faults|recursion|escapes|clock [seconds]
 *
 * clock is mostly in the vdso.  Seconds are CPU time, so that other programs don't change the
 * number of samples. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long sum;
static double seconds = 0.15;
enum { ROUNDS = 10 }; /* rounds between readings of the clock, which take a system call */

/* With frame pointers, a stack lacks the function that calls libc: this function is to be that
 * one. */
__attribute__((noinline)) static double used(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) static void inner(void)
{
	for (unsigned i = 0; i < 100000; i++)
		sum += i;
}

__attribute__((noinline)) static void outer(void)
{
	inner();
	sum++;
}

__attribute__((noinline)) static void spin(double for_seconds)
{
	for (double end = used() + for_seconds; used() < end;)
		for (int i = 0; i < ROUNDS; i++)
			outer();
}

static void *thread(void *name)
{
	prctl(PR_SET_NAME, name);
	spin(seconds / 2);
	return NULL;
}

static void threads(void)
{
	static char names[][16] = { "alpha", "beta worker", "gamma" };
	pthread_t ids[3];
	for (unsigned i = 0; i < 3; i++)
		pthread_create(&ids[i], NULL, thread, names[i]);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(ids[i], NULL);
}

static void on_alarm(int number)
{
	(void)number;
	outer();
}

__attribute__((noinline)) static void signals(void)
{
	const struct itimerval each = { { 0, 5000 }, { 0, 5000 } };
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &each, NULL);
	spin(seconds);
}

static void faults(void)
{
	for (double end = used() + seconds; used() < end;) {
		const size_t size = 1 << 20;
		char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);
		for (size_t at = 0; at < size; at += 4096)
			memory[at] = 1;
		munmap(memory, size);
	}
}

static void ask_the_time(void)
{
	struct timespec time;
	for (double end = used() + seconds; used() < end;)
		for (unsigned i = 0; i < 1000; i++)
			clock_gettime(CLOCK_MONOTONIC, &time);
}

__attribute__((noinline)) static unsigned long recursion(unsigned depth)
{
	if (!depth)
		return inner(), sum;
	return recursion(depth - 1) + 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "spin";
	seconds = argc > 2 ? atof(argv[2]) : seconds;
	if (!strcmp(what, "threads")) {
		threads();
	} else if (!strcmp(what, "signals")) {
		signals();
	} else if (!strcmp(what, "faults")) {
		faults();
	} else if (!strcmp(what, "clock")) {
		ask_the_time();
	} else if (!strcmp(what, "recursion")) {
		for (double end = used() + seconds; used() < end;)
			for (int i = 0; i < ROUNDS; i++)
				recursion(50);
	} else {
		if (!strcmp(what, "escapes"))
			prctl(PR_SET_NAME, "\x1b[31mred\x1b[0m");
		/* the only call here: a compiler may give one of two calls no line */
		spin(seconds);
	}
	return 0;
}
