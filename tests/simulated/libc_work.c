/* Calls libc functions that depend on the CPU: string functions with many lengths and alignments,
 * sorting, conversions of numbers.  All work is in work().  Buffers have fixed addresses, since
 * copies depend on the distance of the two. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SIZE = 3000,
	NUMBERS =
		60 /* above 256 bytes, qsort's copy on the stack depends on the stack's address */
};

static char from[SIZE], to[SIZE], text[200];
static int numbers[NUMBERS];
static volatile size_t sink;

void work(void);

static int by_size(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static size_t strings(size_t size)
{
	memset(from, 'a', size);
	from[size] = '\0';
	memcpy(to, from, size + 1);
	memmove(to + 1, to, size);
	size_t sum = strlen(from) + (size_t)(strchr(from, '\0') - from) +
		     (strrchr(to, 'a') != NULL);
	return sum + (memchr(to, 'b', size) != NULL) + (memcmp(from, to, size) != 0) +
	       (strcmp(from + size / 2, to) != 0);
}

__attribute__((noinline)) void work(void)
{
	size_t sum = 0;
	for (size_t size = 0; size < SIZE - 800; size += 1 + size / 3)
		sum += strings(size);
	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = i * 7919 % 211;
	qsort(numbers, NUMBERS, sizeof(*numbers), by_size);
	sum += (size_t)snprintf(text, sizeof(text), "%d %s %zu %8.3f %c %x", numbers[7], "text",
				sum, 3.14159, 'c', 77u);
	sink = sum + strtoul(text, NULL, 10);
}

int main(void)
{
	work();
	return 0;
}
