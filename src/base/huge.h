/* Large memory in huge pages, where the kernel gives them to who asks (transparent_hugepage
 * "madvise" or "always").
 *
 * What is looked up at random all over tens of megabytes waits for the tables of pages more than
 * for memory itself. */
#ifndef TALLY_BASE_HUGE_H
#define TALLY_BASE_HUGE_H

#include <stddef.h>

/* Asks for huge pages within memory that malloc gave; what is smaller than one is left as it is. */
void tally_huge_advise(void *memory, size_t size_bytes);

/* malloc's memory, asked for so before it is touched; free() frees it.  NULL when there is none. */
void *tally_huge_alloc(size_t size_bytes);

/* The same, zeroed: written to, not as calloc's, each of whose pages costs a fault when it is first
 * read and another one when it is written, as those of a hash table are. */
void *tally_huge_calloc(size_t count, size_t item_bytes);

/* realloc's: the first `used_bytes` of `memory` stay what they are.  NULL when there is none, and
 * `memory` stays. */
void *tally_huge_grow(void *memory, size_t used_bytes, size_t size_bytes);

#endif
