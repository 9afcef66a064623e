/* truth.h: shared by the programs of known truth.
 *
 * A program spends CPU time in parts, measures each part with its thread's own CPU clock, and
 * prints the parts' shares when it ends: "half 50.02".  A part lasts tens of milliseconds, which is
 * many periods of a sampling clock.  So samples at even distances are nearly exact: the error at an
 * edge of a part is less than a sample. */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#if defined(__clang__)
#define TRUTH_FUNCTION __attribute__((noinline))
#else
#define TRUTH_FUNCTION __attribute__((noipa))
#endif

struct truth_part {
	const char *name;
	uint64_t ns;
};

static inline uint64_t truth_now_ns(void)
{
	struct timespec used;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Repeats a call for this many milliseconds of CPU time, and adds them to a part. */
#define TRUTH_SPEND(part, milliseconds, call) \
	do { \
		uint64_t truth_start = truth_now_ns(), truth_now = truth_start; \
		while (truth_now - truth_start < (milliseconds) * (uint64_t)1000000) { \
			call; \
			truth_now = truth_now_ns(); \
		} \
		(part)->ns += truth_now - truth_start; \
	} while (0)

/* Makes about 0.2 ms of arithmetic, without a call. */
static inline __attribute__((always_inline)) uint64_t truth_work(uint64_t value)
{
	for (unsigned i = 0; i < 200000; i++) {
		value = value * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(value));
	}
	return value;
}

/* Lets a recorder attach to the program: waits for a line (or the end) on standard input. */
static inline void truth_begin(void)
{
	if (!getenv("TRUTH_WAITS"))
		return;
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	while (getchar() != '\n' && !feof(stdin))
		;
}

static inline void truth_print(const struct truth_part *parts, unsigned count)
{
	uint64_t total_ns = 0;
	for (unsigned i = 0; i < count; i++)
		total_ns += parts[i].ns;
	for (unsigned i = 0; i < count; i++)
		printf("%s %.2f\n", parts[i].name, 100 * (double)parts[i].ns / (double)total_ns);
}

#endif
