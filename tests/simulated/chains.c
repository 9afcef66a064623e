/* Makes call chains that are known in advance.  Each function below has one caller (except
 * `descend`, which calls itself), and its name gives the path: a calls a_b, and a_b calls a_b_c.
 * It is compiled as distributions do, without frame pointers; prologues save registers, bodies
 * load, store and jump. */
#include <stdio.h>
#include <stdlib.h>

#define KEPT __attribute__((noinline, noclone, noipa))

static volatile long cells[64];
static volatile long sink;

/* Uses registers that must be saved, and stores to its own frame. */
static inline long work(long n)
{
	volatile long own[8];
	long a = n, b = n ^ 3, c = n + 7, d = ~n, e = n << 3, f = n - 11;
	for (long i = 0; i < n % 7 + 2; i++) {
		own[i & 7] = a + cells[i & 63];
		a += b ^ own[i & 7];
		b += c & d;
		c = e - f;
		if (a & 1)
			d += e;
		else
			cells[(i + 1) & 63] = f;
		e ^= a;
		f += b;
	}
	return a + b + c + d + e + f;
}

KEPT static long one_two_three_four(long n) { return work(n) * 3; }
KEPT static long one_two_three(long n)
{
	long kept = work(n);
	return one_two_three_four(n + 1) + kept;
}
KEPT static long one_two_leaf(long n) { return n * 5 + cells[n & 63]; }
KEPT static long one_two(long n)
{
	long kept = work(n);
	return one_two_three(n) + one_two_leaf(kept) + kept;
}
KEPT static long one_alloca(long n)
{
	volatile long *own = __builtin_alloca((size_t)(n % 5 + 1) * sizeof(long) * 8);
	for (long i = 0; i < n % 5 + 1; i++)
		own[i] = n + i;
	return own[n % 5] + work(n);
}
KEPT static long one(long n) { return one_two(n) + one_alloca(n); }

KEPT static long by_pointer(long n) { return work(n + 2); }
KEPT static long caller(long (*volatile function)(long), long n) { return function(n) + n; }

KEPT static long descend(long n) { return n ? descend(n - 1) * 2 + work(n) : work(3); }

int main(int argc, char **argv)
{
	long turns = argc > 1 ? atol(argv[1]) : 100, sum = 0;
	for (long i = 0; i < turns; i++) {
		sum += one(i);
		sum += caller(by_pointer, i);
		sum += descend(i % 24);
	}
	sink = sum;
	return 0;
}
