/* vsim_workload WAY TIMES N: runs a loop of 2 × N instructions (and a few) TIMES times, in
 * different ways, and prints nothing.  The part of a count that TIMES and N add is known, whatever
 * libc adds:
 *
 *   loop, threads, forks, vforks, execs
 *             one after another, each in its thread, process, or program
 *   crowd     threads that all exist at the end
 *   deep      in a recursion TIMES deep
 *   failing   each after an exec that failed
 *   timer     once, while a timer sends signals
 *   segv, term, int, kill, abort
 *             once, then dies of that signal
 *   asleep    once, then sleeps forever
 *   renamed   once, under another name
 *   region    between the marks of tally/roi.h, and as often outside; the region includes a nop and
 *             what the compiler puts there
 *   turns     four threads pass TIMES turns around, by a condition that wakes all, and then compete
 *             for a mutex
 *   regions   like region, in two threads at a time */
#include "tally/roi.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned long loop_count;

__attribute__((noinline)) void known_loop(unsigned long n);
__attribute__((noinline)) void known_loop(unsigned long n)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
}

static void *thread(void *barrier)
{
	known_loop(loop_count);
	if (barrier)
		pthread_barrier_wait(barrier);
	return barrier;
}

static void threads(unsigned long times, pthread_barrier_t *barrier)
{
	pthread_t *all = calloc(times, sizeof(*all));
	for (unsigned long i = 0; i < times; i++)
		if (pthread_create(&all[i], NULL, thread, barrier))
			abort();
	for (unsigned long i = 0; i < times; i++)
		pthread_join(all[i], NULL);
	free(all);
}

static void crowd(unsigned long times)
{
	pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, NULL, (unsigned)times);
	threads(times, &barrier);
}

static void forks(unsigned long times)
{
	for (unsigned long i = 0; i < times; i++)
		if (!fork()) {
			known_loop(loop_count);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static void executed(char **argv, unsigned long times)
{
	char left[32], way[] = "execs";
	known_loop(loop_count);
	if (times <= 1)
		return;
	snprintf(left, sizeof(left), "%lu", times - 1);
	char *const arguments[] = { argv[0], way, left, argv[3], NULL };
	execv("/proc/self/exe", arguments);
	abort();
}

static void vforks(char **argv, unsigned long times)
{
	char one[] = "1", way[] = "loop";
	char *const arguments[] = { argv[0], way, one, argv[3], NULL };
	for (volatile unsigned long i = 0; i < times; i++) {
		if (!vfork()) {
			execv(argv[0], arguments);
			_exit(1);
		}
		wait(NULL);
	}
}

__attribute__((noinline)) static unsigned long deep(unsigned long times)
{
	if (times)
		return deep(times - 1) + 1;
	known_loop(loop_count);
	return 0;
}

static void failing(unsigned long times)
{
	char *const none[] = { NULL };
	for (unsigned long i = 0; i < times; i++) {
		execv("/nonexistent/program", none);
		known_loop(loop_count);
	}
}

/* The loop is in place, so that all instructions between the marks are known. */
static void *regions(void *unused)
{
	for (unsigned long i = 0; i < *(unsigned long *)unused; i++) {
		unsigned long n = loop_count, outside = loop_count;
		tally_roi_begin();
		__asm__ volatile("nop\n1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
		tally_roi_end();
		known_loop(outside);
	}
	return NULL;
}

static void two_regions(unsigned long times)
{
	pthread_t other;
	if (pthread_create(&other, NULL, regions, &times))
		abort();
	regions(&times);
	pthread_join(other, NULL);
}

/* --- threads that wait for one another --- */

struct round {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	pthread_barrier_t barrier;
	unsigned long turn, times, crowd;
};

struct player {
	struct round *round;
	unsigned long number;
};

static void *play(void *argument)
{
	const struct player *player = argument;
	struct round *round = player->round;
	for (unsigned long i = 0; i < round->times; i++) {
		pthread_mutex_lock(&round->mutex);
		while (round->turn % 4 != player->number)
			pthread_cond_wait(&round->changed, &round->mutex);
		round->turn++;
		pthread_cond_broadcast(&round->changed);
		pthread_mutex_unlock(&round->mutex);
	}
	pthread_barrier_wait(&round->barrier);
	for (unsigned long i = 0; i < loop_count; i++) {
		pthread_mutex_lock(&round->mutex);
		round->crowd++;
		pthread_mutex_unlock(&round->mutex);
	}
	return NULL;
}

static void turns(unsigned long times)
{
	struct round round = { .mutex = PTHREAD_MUTEX_INITIALIZER,
			       .changed = PTHREAD_COND_INITIALIZER,
			       .times = times };
	struct player players[4];
	pthread_t all[4];
	pthread_barrier_init(&round.barrier, NULL, 4);
	for (unsigned i = 0; i < 4; i++) {
		players[i] = (struct player){ &round, i };
		if (pthread_create(&all[i], NULL, play, &players[i]))
			abort();
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
	if (round.turn != 4 * times || round.crowd != 4 * loop_count)
		abort();
}

static volatile sig_atomic_t alarms;

static void on_alarm(int unused)
{
	(void)unused;
	alarms++;
}

static void timer(void)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	while (alarms < 20)
		known_loop(loop_count);
}

static void die(const char *way)
{
	known_loop(loop_count);
	if (!strcmp(way, "segv"))
		*(volatile int *)8 = 0;
	if (!strcmp(way, "abort"))
		abort();
	int number = SIGKILL;
	if (!strcmp(way, "term"))
		number = SIGTERM;
	else if (!strcmp(way, "int"))
		number = SIGINT;
	kill(getpid(), number);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	const char *way = argv[1];
	unsigned long times = strtoul(argv[2], NULL, 0);
	loop_count = strtoul(argv[3], NULL, 0);
	if (!strcmp(way, "loop"))
		for (unsigned long i = 0; i < times; i++)
			known_loop(loop_count);
	else if (!strcmp(way, "threads"))
		threads(times, NULL);
	else if (!strcmp(way, "crowd"))
		crowd(times);
	else if (!strcmp(way, "forks"))
		forks(times);
	else if (!strcmp(way, "vforks"))
		vforks(argv, times);
	else if (!strcmp(way, "execs"))
		executed(argv, times);
	else if (!strcmp(way, "deep"))
		return (int)(deep(times) & 1);
	else if (!strcmp(way, "failing"))
		failing(times);
	else if (!strcmp(way, "region"))
		regions(&times);
	else if (!strcmp(way, "turns"))
		turns(times);
	else if (!strcmp(way, "regions"))
		two_regions(times);
	else if (!strcmp(way, "timer"))
		timer();
	else if (!strcmp(way, "renamed") && !prctl(PR_SET_NAME, "other name"))
		known_loop(loop_count);
	else if (!strcmp(way, "asleep")) {
		known_loop(loop_count);
		for (;;)
			pause();
	} else
		die(way);
	return 0;
}
