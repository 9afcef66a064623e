/* Memory of an engine: pieces of powers of two from one mapping, with a list of released ones for each
 * size.  Only the engine's own thread uses it, so there is no lock. */
#include "process/process_agent.h"

#include <string.h>

enum { SMALLEST = 5 /* 32 bytes */ };

static unsigned size_class(size_t size)
{
	unsigned class = SMALLEST;
	while ((size_t)1 << class < size)
		class ++;
	return class;
}

void *process_heap_allocate(struct process_heap *heap, size_t size)
{
	unsigned class = size_class(size);
	size_t bytes = (size_t)1 << class;
	if (class >= PROCESS_HEAP_LISTS)
		return NULL;
	void *memory = heap->released[class];
	if (memory) {
		memcpy(&heap->released[class], memory, sizeof(void *));
		return memset(memory, 0, bytes);
	}
	if (!heap->memory || bytes > heap->size - heap->used)
		return NULL;
	memory = heap->memory + heap->used;
	heap->used += bytes;
	return memset(memory, 0, bytes);
}

void process_heap_release(struct process_heap *heap, void *memory, size_t size)
{
	unsigned class = size_class(size);
	memcpy(memory, &heap->released[class], sizeof(void *));
	heap->released[class] = memory;
}
