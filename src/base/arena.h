/* An arena: memory that is freed all at once.
 *
 * One arena per session or profile.  Not thread-safe: one owner at a time. */
#ifndef TALLY_BASE_ARENA_H
#define TALLY_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct tally_arena_block;

struct tally_arena {
	struct tally_arena_block *block;
};

#define TALLY_ARENA_INIT { NULL }

/* Returns the bytes that the arena takes from the heap. */
size_t tally_arena_bytes(const struct tally_arena *arena);

/* Returns zeroed memory aligned for any object, or NULL if out of memory.  It lives until the arena
 * is released. */
void *tally_arena_alloc(struct tally_arena *arena, size_t size_bytes);

/* Returns `count` zeroed items; NULL if out of memory or if the product overflows. */
void *tally_arena_array(struct tally_arena *arena, size_t count, size_t item_bytes);

/* Returns a copy of `length` bytes with a NUL behind it; NULL if out of memory. */
char *tally_arena_copy(struct tally_arena *arena, const char *text, size_t length);

char *tally_arena_string(struct tally_arena *arena, const char *text);

char *tally_arena_printf(struct tally_arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Frees everything; the arena may be used again. */
void tally_arena_release(struct tally_arena *arena);

#endif
