/* A program for benchmarks to record.  It walks a tree of calls of depth DEPTH, and chooses one of
 * four functions at each step by a fixed pseudo-random sequence, so that a recording has many
 * distinct stacks of about that depth.
 *
 *     stacks SECONDS [DEPTH] [THREADS] */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LEAF_STEPS = 200 };

static int depth_max = 20;
static double seconds;

struct walk {
	uint64_t random, sum;
};

static uint64_t next(struct walk *walk)
{
	walk->random ^= walk->random << 13;
	walk->random ^= walk->random >> 7;
	walk->random ^= walk->random << 17;
	return walk->random;
}

static void step(struct walk *walk, int depth);

#define DEFINE_FUNCTION(name, salt) \
	__attribute__((noinline)) static void name(struct walk *walk, int depth) \
	{ \
		step(walk, depth - 1); \
		walk->sum += salt; \
	}
DEFINE_FUNCTION(north, 1)
DEFINE_FUNCTION(east, 2)
DEFINE_FUNCTION(south, 3)
DEFINE_FUNCTION(west, 4)

__attribute__((noinline)) static void leaf(struct walk *walk)
{
	for (int i = 0; i < LEAF_STEPS; i++)
		walk->sum += next(walk) & 1;
}

__attribute__((noinline)) static void step(struct walk *walk, int depth)
{
	static void (*const functions[])(struct walk *, int) = { north, east, south, west };
	if (depth <= 0)
		leaf(walk);
	else
		functions[next(walk) & 3](walk, depth);
	walk->sum++; /* prevents a tail call */
}

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *work(void *argument)
{
	struct walk walk = { .random = 88172645463325252ull + (uintptr_t)argument };
	double end = now_s() + seconds;
	do {
		for (int i = 0; i < 1000; i++)
			step(&walk, depth_max / 2 - (int)(next(&walk) % 3));
	} while (now_s() < end);
	return (void *)(uintptr_t)walk.sum;
}

int main(int argc, char **argv)
{
	seconds = argc > 1 ? atof(argv[1]) : 1;
	depth_max = argc > 2 ? atoi(argv[2]) : 20;
	int threads = argc > 3 ? atoi(argv[3]) : 1;
	pthread_t ids[64];
	if (threads < 1 || threads > 64)
		return 2;
	for (int i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, (void *)(uintptr_t)i))
			return 1;
	void *sum = work(NULL);
	for (int i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("%p\n", sum);
	return 0;
}
