/* Large memory in huge pages, if the kernel gives them to programs that ask (transparent_hugepage
 * "madvise" or "always").
 *
 * Random look-ups all over tens of megabytes wait more for page tables than for memory itself. */
#ifndef TALLY_BASE_HUGE_H
#define TALLY_BASE_HUGE_H

#include <stddef.h>

/* Requests huge pages for memory from malloc.  Does nothing for memory smaller than one huge
 * page. */
void tally_huge_advise(void *memory, size_t size_bytes);

/* malloc with that request before the memory is touched; free() frees it.  Returns NULL if out of
 * memory. */
void *tally_huge_alloc(size_t size_bytes);

/* The same, zeroed by writing.  In calloc's memory each page costs a fault when it is first read
 * and another when it is written; pages of a hash table suffer both. */
void *tally_huge_calloc(size_t count, size_t item_bytes);

/* realloc with that request: the first `used_bytes` of `memory` are kept.  Returns NULL if out of
 * memory, and `memory` stays valid. */
void *tally_huge_grow(void *memory, size_t used_bytes, size_t size_bytes);

#endif
