/* A recursion of 3,000 calls: more stack than the kernel copies for a sample. */
#include "truth.h"

enum { SHALLOW, DEEP, PARTS };
enum { ROUNDS = 6, DEPTH = 3000 };

static struct truth_part parts[PARTS] = { { "shallow", 0 }, { "deep", 0 } };

TRUTH_FUNCTION uint64_t shallow(uint64_t value)
{
	return truth_work(value) + 1;
}

TRUTH_FUNCTION uint64_t deep(uint64_t value)
{
	return truth_work(value) + 2;
}

TRUTH_FUNCTION uint64_t descend(uint64_t value, int depth)
{
	volatile uint64_t room[4];
	room[value % 4] = value;
	if (depth)
		value = descend(value + 1, depth - 1);
	else
		TRUTH_SPEND(&parts[DEEP], 90, value = deep(value));
	return value + room[value % 4];
}

int main(void)
{
	uint64_t value = 1;
	for (int i = 0; i < ROUNDS; i++) {
		TRUTH_SPEND(&parts[SHALLOW], 60, value = shallow(value));
		value = descend(value, DEPTH);
	}
	truth_print(parts, PARTS);
	return value == 42; /* keeps the compiler from removing the work */
}
