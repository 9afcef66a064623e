/* Spends half of its time below half(), 30 % below third(), and a fifth below fifth(); mix() is
 * inlined. */
#include <stdlib.h>

static volatile unsigned long sink;

static inline __attribute__((always_inline)) void mix(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink = sink * 3 + i;
}

/* Makes no frame: only a register holds its return address. */
__attribute__((noinline)) static void spin(unsigned long n)
{
	mix(n);
}

__attribute__((noinline)) static void half(unsigned long n)
{
	spin(5 * n);
	sink++;
}

__attribute__((noinline)) static void third(unsigned long n)
{
	mix(3 * n);
	sink++;
}

__attribute__((noinline)) static void fifth(unsigned long n)
{
	spin(2 * n);
	sink++;
}

__attribute__((noinline)) static void work(unsigned long n)
{
	half(n);
	third(n);
	fifth(n);
	sink++;
}

int main(int argc, char **argv)
{
	for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
		work(20000);
	return 0;
}
