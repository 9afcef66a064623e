/* A library whose constructor and whose function spend 100 ms of CPU each: see new_code.c. */
#include <time.h>

static double used_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void spin(void)
{
	for (double until = used_s() + 0.1; used_s() < until;)
		for (volatile long i = 0; i < 1000000; i++)
			;
}

void spin_in_library(void);
void spin_in_library(void)
{
	spin();
}

__attribute__((constructor)) static void spin_in_constructor(void)
{
	spin();
}
