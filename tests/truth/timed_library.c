/* Preloaded into a program of another project: measures the CPU time of its library calls and, at
 * the end, prints their share of the process's: "deflate 62.10". */
#define _GNU_SOURCE
#include "truth.h"
#include <dlfcn.h>

static uint64_t deflate_ns;

int deflate(void *stream, int flush);

__attribute__((visibility("default"))) int deflate(void *stream, int flush)
{
	static int (*next)(void *, int);
	uint64_t start_ns;
	int result;
	if (!next)
		next = (int (*)(void *, int))dlsym(RTLD_NEXT, "deflate");
	start_ns = truth_now_ns();
	result = next(stream, flush);
	deflate_ns += truth_now_ns() - start_ns;
	return result;
}

__attribute__((destructor)) static void print(void)
{
	struct timespec used;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	printf("deflate %.2f\n",
	       100 * (double)deflate_ns / ((double)used.tv_sec * 1e9 + (double)used.tv_nsec));
}
