/* A unit in C: a function split into a hot and a cold part, and one inlined at several places. */
#include <stdio.h>
#include <stdlib.h>

static inline unsigned mix(unsigned value)
{
	value ^= value << 13;
	value ^= value >> 17;
	return value ^ value << 5;
}

static inline unsigned rounds(unsigned value, int count)
{
	for (int i = 0; i < count; i++)
		value = mix(value) + (unsigned)i;
	return value;
}

__attribute__((cold, noinline)) static void fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	exit(2);
}

__attribute__((noinline)) unsigned lines_plain(int count)
{
	if (count < 0)
		fail("too few");
	unsigned value = rounds(7, count);
	if (__builtin_expect(value == 12345, 0))
		fail("no luck");
	return value + rounds(value, 3);
}

int main(int argc, char **argv)
{
	(void)argv;
	return lines_plain(argc) & 1;
}
