/* Half of the CPU time in half(), 30 % in third(), a fifth in fifth(), each below functions that call
 * it; prints the shares as measured, and the milliseconds.  Built with and without frame pointers. */
#include "../truth/truth.h"

enum { HALF, THIRD, FIFTH, PARTS, ROUNDS = 10 };

static struct truth_part parts[PARTS] = { { "half", 0 }, { "third", 0 }, { "fifth", 0 } };

TRUTH_FUNCTION static uint64_t half(uint64_t value)
{
	return truth_work(value) + 1;
}

TRUTH_FUNCTION static uint64_t third(uint64_t value)
{
	volatile uint64_t room[8 + value % 8];
	room[value % 8] = truth_work(value);
	return room[value % 8] + 2;
}

TRUTH_FUNCTION static uint64_t fifth(uint64_t value)
{
	volatile uint64_t room[64];
	room[value % 64] = truth_work(value);
	return room[value % 64] + 3;
}

TRUTH_FUNCTION static uint64_t first_stage(uint64_t value)
{
	TRUTH_SPEND(&parts[HALF], 25, value = half(value));
	return value + 4;
}

TRUTH_FUNCTION static uint64_t second_stage(uint64_t value)
{
	TRUTH_SPEND(&parts[THIRD], 15, value = third(value));
	TRUTH_SPEND(&parts[FIFTH], 10, value = fifth(value));
	return value + 5;
}

int main(int argc, char **argv)
{
	uint64_t value = (uint64_t)argc, total_ns = 0;
	(void)argv;
	for (int i = 0; i < ROUNDS; i++)
		value = second_stage(first_stage(value));
	for (unsigned i = 0; i < PARTS; i++)
		total_ns += parts[i].ns;
	truth_print(parts, PARTS);
	printf("milliseconds %.1f\n", (double)total_ns / 1e6);
	return value == 42; /* keeps the compiler from removing the work */
}
