/* Where a program spends its time, said by the program itself: sorts words and counts them, in regions.
 *
 *     TALLY_REPORT=table ./regions
 *
 * prints the calls, times and events of each region when it exits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/region.h>

enum { WORDS = 20000, LENGTH = 8, ROUNDS = 20 };

static char words[WORDS][LENGTH];

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void make_words(unsigned *seed)
{
	TALLY_REGION("make"); /* ends with the function */
	for (size_t i = 0; i < WORDS; i++)
		for (size_t n = 0; n < LENGTH - 1; n++)
			words[i][n] = (char)('a' + rand_r(seed) % 6);
}

static size_t count_words(void)
{
	TALLY_REGION("count");
	size_t count = 1;

	tally_region_begin("sort"); /* inside "count" */
	qsort(words, WORDS, LENGTH, compare);
	tally_region_end("sort");

	for (size_t i = 1; i < WORDS; i++)
		count += strcmp(words[i - 1], words[i]) != 0;
	return count;
}

int main(void)
{
	struct tally_region_figures sort;
	unsigned seed = 1;
	size_t count = 0;

	for (int i = 0; i < ROUNDS; i++) {
		make_words(&seed);
		count += count_words();
	}
	printf("words=%zu\n", count);

	/* the figures can be read by the program, too */
	if (tally_region_read("sort", "wall", &sort, sizeof(sort)) < 0) {
		perror("regions");
		return 1;
	}
	printf("sorts=%llu\nmedian_ns=%llu\n", (unsigned long long)sort.calls,
	       (unsigned long long)sort.p50);
	return 0;
}
