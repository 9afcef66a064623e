/* Uses the C library's hand-written assembly functions, the vdso's clock, printing, and a
 * comparator that qsort calls. */
#include "truth.h"
#include <string.h>

enum { COPYING, SEARCHING, ASKING, PRINTING, SORTING, PARTS };
enum { ROUNDS = 12, BYTES = 64 << 10, NUMBERS = 2000 };

static struct truth_part parts[PARTS] = {
	{ "copying", 0 }, { "searching", 0 }, { "asking", 0 }, { "printing", 0 }, { "sorting", 0 }
};
static char from[BYTES], to[BYTES];

TRUTH_FUNCTION uint64_t copying(uint64_t value)
{
	for (int i = 0; i < 50; i++) {
		memcpy(to, from, BYTES - value % 2);
		memset(to, (int)(value % 100) + 1, BYTES - 1);
		memmove(to + 1, to, BYTES - 2);
	}
	return value + 1;
}

TRUTH_FUNCTION uint64_t searching(uint64_t value)
{
	for (int i = 0; i < 50; i++) {
		value += strlen(from + value % 2);
		value += (uint64_t)(strchr(from, 'z') != NULL) +
			 (uint64_t)(memchr(from, 'z', BYTES) != NULL);
		value += (uint64_t)(strcmp(from, from + 1) > 0);
	}
	return value;
}

TRUTH_FUNCTION uint64_t asking(uint64_t value)
{
	struct timespec now;
	for (int i = 0; i < 4000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		value += (uint64_t)now.tv_nsec;
	}
	return value;
}

TRUTH_FUNCTION uint64_t printing(uint64_t value)
{
	char text[200];
	for (int i = 0; i < 500; i++)
		value += (uint64_t)snprintf(text, sizeof(text), "%lu %s %.3f %x",
					    (unsigned long)value, "text", (double)i * 1.1, i);
	return value;
}

static int by_number(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
	return (one > other) - (one < other);
}

TRUTH_FUNCTION uint64_t sorting(uint64_t value)
{
	static uint64_t numbers[NUMBERS];
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = value = value * 6364136223846793005u + 1442695040888963407u;
	qsort(numbers, NUMBERS, sizeof(numbers[0]), by_number);
	return numbers[NUMBERS / 2];
}

int main(void)
{
	uint64_t value = 1;
	memset(from, 'a', BYTES - 1);
	for (int i = 0; i < ROUNDS; i++) {
		TRUTH_SPEND(&parts[COPYING], 45, value = copying(value));
		TRUTH_SPEND(&parts[SEARCHING], 30, value = searching(value));
		TRUTH_SPEND(&parts[ASKING], 30, value = asking(value));
		TRUTH_SPEND(&parts[PRINTING], 20, value = printing(value));
		TRUTH_SPEND(&parts[SORTING], 25, value = sorting(value));
	}
	truth_print(parts, PARTS);
	return value == 42; /* keeps the compiler from removing the work */
}
