/* Interns strings to small ids: equal strings have equal ids.  Zero-initialised is empty.  Not
 * thread-safe. */
#ifndef TALLY_BASE_STRINGS_H
#define TALLY_BASE_STRINGS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tally_buffer;

#define TALLY_STRING_NONE UINT32_MAX

struct tally_strings {
	struct tally_arena arena;
	const char **texts; /* by id */
	size_t count;
	size_t texts_capacity;
	uint32_t *slots; /* id + 1; 0: free */
	size_t slots_capacity;
	/* some call ran out of memory and returned TALLY_STRING_NONE, which many callers take as
	 * "no name" */
	bool failed;
};

/* Returns the id of `length` bytes (without NUL), which are added if they are new;
 * TALLY_STRING_NONE if out of memory. */
uint32_t tally_strings_add(struct tally_strings *strings, const char *text, size_t length);

uint32_t tally_strings_intern(struct tally_strings *strings, const char *text);

/* Interns the buffer's text and releases the buffer.  TALLY_STRING_NONE, and `failed` is set, when
 * memory was out for either. */
uint32_t tally_strings_intern_buffer(struct tally_strings *strings, struct tally_buffer *text);

/* Returns the text of an id of this table.  It lives as long as the table. */
static inline const char *tally_strings_text(const struct tally_strings *strings, uint32_t id)
{
	return id < strings->count ? strings->texts[id] : "";
}

void tally_strings_release(struct tally_strings *strings);

#endif
