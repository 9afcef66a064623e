/* What report.py records: functions that call each other in several ways, with frame pointers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

static volatile unsigned sink;

APART static unsigned spin(unsigned rounds)
{
	unsigned value = 1;
	for (unsigned i = 0; i < rounds; i++) {
		value = value * 3 + i;
		sink = value;
	}
	return value;
}

APART static unsigned leaf(unsigned rounds)
{
	unsigned value = spin(rounds);
	sink = value;
	return value + 1;
}

APART static unsigned descend(int depth, unsigned rounds)
{
	unsigned value = depth ? descend(depth - 1, rounds) : leaf(rounds);
	sink = value;
	return value + spin(rounds / 4);
}

APART static unsigned fill(unsigned bytes)
{
	char *room = malloc(bytes + 1);
	memset(room, 1, bytes);
	unsigned value = leaf(bytes) + (unsigned)room[3];
	free(room);
	return value;
}

int main(void)
{
	unsigned value = 0;
	for (int i = 0; i < 200; i++) {
		value += leaf(300000);
		value += descend(3, 200000);
		value += fill(500000);
	}
	printf("%u\n", value);
	return 0;
}
