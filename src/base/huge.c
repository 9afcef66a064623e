/* Aligns allocations of 4 MiB or more to huge pages and advises the kernel before they are touched.
 * Smaller ones go straight to malloc(3) and realloc(3). */
#include "base/huge.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WORTH_BYTES = 4 << 20, PAGE_BYTES = 4096, HUGE_BYTES = 2 << 20 };

void tally_huge_advise(void *memory, size_t size_bytes)
{
	if (size_bytes < HUGE_BYTES)
		return;
	uintptr_t start = ((uintptr_t)memory + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)memory + size_bytes) & ~(uintptr_t)(PAGE_BYTES - 1);
	/* May fail (pages of another size, a kernel without huge pages), which does no harm. */
	madvise((void *)start, end - start, MADV_HUGEPAGE);
}

void *tally_huge_alloc(size_t size_bytes)
{
	void *memory;
	if (size_bytes < WORTH_BYTES)
		return malloc(size_bytes);
	if (posix_memalign(&memory, HUGE_BYTES, size_bytes))
		return NULL;
	tally_huge_advise(memory, size_bytes);
	return memory;
}

void *tally_huge_calloc(size_t count, size_t item_bytes)
{
	size_t size_bytes;
	if (__builtin_mul_overflow(count, item_bytes, &size_bytes))
		return NULL;
	void *memory = tally_huge_alloc(size_bytes);
	if (!memory)
		return NULL;
	return memset(memory, 0, size_bytes);
}

void *tally_huge_grow(void *memory, size_t used_bytes, size_t size_bytes)
{
	if (size_bytes < WORTH_BYTES)
		return realloc(memory, size_bytes);
	/* realloc would touch the new memory, or move huge pages to where they must be split,
	 * before the request could be made. */
	void *grown = tally_huge_alloc(size_bytes);
	if (!grown)
		return NULL;
	if (used_bytes)
		memcpy(grown, memory, used_bytes);
	free(memory);
	return grown;
}
