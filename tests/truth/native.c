/* Calls and leaves as compilers make them.  One thread spends half of the CPU time, a second one
 * the rest.  Compiled with and without frame pointers, by several compilers, static, stripped, with
 * another C library. */
#include "truth.h"
#include <pthread.h>

enum { HALF, THIRD, FIFTH, PARTS };
enum { ROUNDS = 12 };

static struct truth_part parts[PARTS] = { { "half", 0 }, { "third", 0 }, { "fifth", 0 } };

/* A leaf that does not use the stack. */
TRUTH_FUNCTION uint64_t half(uint64_t value)
{
	return truth_work(value) + 1;
}

/* A leaf that moves the stack pointer by a size unknown to the compiler. */
TRUTH_FUNCTION uint64_t third(uint64_t value)
{
	volatile uint64_t room[8 + value % 8];
	room[value % 8] = truth_work(value);
	return room[value % 8] + 2;
}

TRUTH_FUNCTION uint64_t fifth(uint64_t value)
{
	volatile uint64_t room[64];
	room[value % 64] = truth_work(value);
	return room[value % 64] + 3;
}

TRUTH_FUNCTION uint64_t stage_of_half(uint64_t value)
{
	TRUTH_SPEND(&parts[HALF], 75, value = half(value));
	return value + 4;
}

TRUTH_FUNCTION uint64_t stage_of_rest(uint64_t value)
{
	TRUTH_SPEND(&parts[THIRD], 45, value = third(value));
	TRUTH_SPEND(&parts[FIFTH], 30, value = fifth(value));
	return value + 5;
}

TRUTH_FUNCTION uint64_t drive(uint64_t (*stage)(uint64_t), uint64_t value)
{
	for (int i = 0; i < ROUNDS; i++)
		value = stage(value);
	return value + 6;
}

static void *worker(void *argument)
{
	uint64_t *value = argument;
	*value = drive(stage_of_rest, *value);
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t value = (uint64_t)argc, rest = value;
	pthread_t thread;
	(void)argv;
	truth_begin();
	if (pthread_create(&thread, NULL, worker, &rest))
		return 1;
	/* one after the other: in parallel they would exchange parts of a sampling period */
	pthread_join(thread, NULL);
	value = drive(stage_of_half, value);
	truth_print(parts, PARTS);
	return value + rest == 42; /* keeps the compiler from removing the work */
}
