/* Does work, and takes signals that interrupt it anywhere; the handlers do work too, one of them on
 * a stack of its own.  Runs for as many seconds of CPU time as the argument says. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned sink;

static int compare(const void *a, const void *b)
{
	return *(const unsigned *)a < *(const unsigned *)b
		       ? -1
		       : *(const unsigned *)a > *(const unsigned *)b;
}

__attribute__((noinline)) static void sort_some(unsigned seed)
{
	unsigned items[256];
	for (unsigned i = 0; i < 256; i++)
		items[i] = seed = seed * 1664525 + 1013904223;
	qsort(items, 256, sizeof(*items), compare);
	sink += items[seed % 256];
}

__attribute__((noinline)) static unsigned descend(unsigned depth, unsigned seed)
{
	char text[64];
	memset(text, (int)seed, sizeof(text));
	if (depth)
		seed = descend(depth - 1, seed + (unsigned char)text[depth % 64]) + 1;
	else
		sort_some(seed);
	return seed + (unsigned char)text[seed % 64];
}

static void handle(int number)
{
	for (unsigned i = 0; i < 8; i++)
		sink += descend((unsigned)number % 7, i);
}

int main(int argc, char **argv)
{
	static char own_stack[65536];
	double seconds = argc > 1 ? atof(argv[1]) : 0.2;
	stack_t stack = { .ss_sp = own_stack, .ss_size = sizeof(own_stack) };
	sigaltstack(&stack, NULL);
	struct sigaction action = { .sa_handler = handle };
	sigaction(SIGPROF, &action, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGALRM, &action, NULL);
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } },
			 seldom = { { 0, 20000 }, { 0, 20000 } };
	setitimer(ITIMER_PROF, &often, NULL);
	setitimer(ITIMER_REAL, &seldom, NULL);
	for (unsigned i = 0; (double)clock() / CLOCKS_PER_SEC < seconds; i++)
		sink += descend(i % 40, i);
	return 0;
}
