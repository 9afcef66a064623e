#include "base/huge.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { WORTH_BYTES = 4 << 20, PAGE_BYTES = 4096 };

void tally_huge_advise(void *memory, size_t size_bytes)
{
	if (size_bytes < WORTH_BYTES)
		return;
	uintptr_t start = ((uintptr_t)memory + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	uintptr_t end = ((uintptr_t)memory + size_bytes) & ~(uintptr_t)(PAGE_BYTES - 1);
	/* Pages of another size, or a kernel without huge ones: refused, and nothing is lost. */
	madvise((void *)start, end - start, MADV_HUGEPAGE);
}

void *tally_huge_calloc(size_t count, size_t item_bytes)
{
	/* Of this size it is mostly fresh from the kernel: zeroed, and not touched yet. */
	void *memory = calloc(count, item_bytes);
	if (memory)
		tally_huge_advise(memory, count * item_bytes);
	return memory;
}
