/* A program for tests of lines and instructions: a hot loop with a branch, a division and an
 * inlined function. */
#include <stdio.h>
#include <stdlib.h>

unsigned crunch(unsigned *table, unsigned count, unsigned rounds);

static inline unsigned mix(unsigned hash, unsigned value)
{
	hash ^= value;
	hash *= 16777619u;
	return hash ^ hash >> 15; /* </script><b>not markup</b> */
}

__attribute__((noinline)) unsigned crunch(unsigned *table, unsigned count, unsigned rounds)
{
	unsigned sum = 0;
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned i = 0; i < count; i++) {
			if (table[i] & 1)
				table[i] = mix(table[i], sum);
			else
				table[i] = table[i] / (round | 3) + 12345;
			sum += mix(sum, table[i]);
		}
	return sum;
}

int main(int argc, char **argv)
{
	enum { COUNT = 4096 };
	unsigned *table = malloc(COUNT * sizeof(*table)),
		 rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20000;
	if (!table)
		return 1;
	for (unsigned i = 0; i < COUNT; i++)
		table[i] = i * 2654435761u;
	printf("%u\n", crunch(table, COUNT, rounds));
	free(table);
	return 0;
}
