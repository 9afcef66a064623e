/* Strings interned to small ids: equal strings have equal ids.  Zero-initialised is empty.  Not
 * thread-safe. */
#ifndef TALLY_BASE_STRINGS_H
#define TALLY_BASE_STRINGS_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_STRING_NONE UINT32_MAX

struct tally_strings {
	struct tally_arena arena;
	const char **texts; /* by id */
	size_t count;
	size_t texts_capacity;
	uint32_t *slots; /* id + 1; 0 is free */
	size_t slots_capacity;
	bool failed; /* memory was out for one that is told as TALLY_STRING_NONE, which for many stands for "no name" */
};

/* The id of `length` bytes (no NUL inside), added when new; TALLY_STRING_NONE when memory is
 * out. */
uint32_t tally_strings_add(struct tally_strings *strings, const char *text, size_t length);

uint32_t tally_strings_intern(struct tally_strings *strings, const char *text);

/* The text of an id that tally_strings_add gave; lives as long as the table. */
static inline const char *tally_strings_text(const struct tally_strings *strings, uint32_t id)
{
	return id < strings->count ? strings->texts[id] : "";
}

void tally_strings_release(struct tally_strings *strings);

#endif
