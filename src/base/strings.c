/* A hash table of ids with linear probing, an array of texts by id, and an arena that holds the
 * texts.  The table stores no hashes: when it grows, all texts are hashed again. */
#include "base/strings.h"

#include "base/buffer.h"
#include "base/extremes.h"
#include "base/map.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_bytes(const char *text, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325ull ^ length;
	while (length >= 8) {
		uint64_t word;
		memcpy(&word, text, 8);
		hash = tally_hash64(hash ^ word);
		text += 8;
		length -= 8;
	}
	uint64_t rest = 0;
	memcpy(&rest, text, length);
	return tally_hash64(hash ^ rest);
}

static uint32_t *find(const struct tally_strings *strings, uint32_t *slots, size_t capacity,
		      const char *text, size_t length)
{
	size_t at = hash_bytes(text, length) & (capacity - 1);
	for (; slots[at]; at = (at + 1) & (capacity - 1)) {
		const char *there = strings->texts[slots[at] - 1];
		if (!strncmp(there, text, length) && !there[length])
			break;
	}
	return &slots[at];
}

static int grow(struct tally_strings *strings)
{
	size_t capacity = tally_max_u64(strings->slots_capacity * 2, 256);
	uint32_t *slots = calloc(capacity, sizeof(*slots));
	if (!slots)
		return -1;
	for (uint32_t id = 0; id < strings->count; id++)
		*find(strings, slots, capacity, strings->texts[id],
		      strlen(strings->texts[id])) = id + 1;
	free(strings->slots);
	strings->slots = slots;
	strings->slots_capacity = capacity;
	return 0;
}

static uint32_t fail(struct tally_strings *strings)
{
	strings->failed = true;
	return TALLY_STRING_NONE;
}

uint32_t tally_strings_add(struct tally_strings *strings, const char *text, size_t length)
{
	if (strings->count * 2 >= strings->slots_capacity && grow(strings) < 0)
		return fail(strings);
	uint32_t *slot = find(strings, strings->slots, strings->slots_capacity, text, length);
	if (*slot)
		return *slot - 1;
	if (strings->count >= UINT32_MAX - 1)
		return fail(strings);
	if (strings->count == strings->texts_capacity &&
	    tally_vector_reserve_((void **)&strings->texts, &strings->texts_capacity,
				  strings->count + 1, sizeof(*strings->texts)) < 0)
		return fail(strings);
	const char *copy = tally_arena_copy(&strings->arena, text, length);
	if (!copy)
		return fail(strings);
	strings->texts[strings->count] = copy;
	*slot = (uint32_t)++strings->count;
	return *slot - 1;
}

uint32_t tally_strings_intern(struct tally_strings *strings, const char *text)
{
	return tally_strings_add(strings, text, strlen(text));
}

uint32_t tally_strings_intern_buffer(struct tally_strings *strings, struct tally_buffer *text)
{
	uint32_t id;
	if (text->failed)
		id = fail(strings);
	else
		id = tally_strings_intern(strings, tally_buffer_string(text));
	tally_buffer_release(text);
	return id;
}

void tally_strings_release(struct tally_strings *strings)
{
	tally_arena_release(&strings->arena);
	free(strings->texts);
	free(strings->slots);
	*strings = (struct tally_strings){ 0 };
}
