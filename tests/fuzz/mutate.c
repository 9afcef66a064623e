#include "mutate.h"

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other,
				 size_t other_size, uint8_t *out, size_t size_max, unsigned seed);

uint64_t mutate_random(struct mutation *mutation, uint64_t below)
{
	mutation->random ^= mutation->random << 13;
	mutation->random ^= mutation->random >> 7;
	mutation->random ^= mutation->random << 17;
	return below ? (mutation->random * 0x2545f4914f6cdd1dull >> 16) % below : 0;
}

bool mutate_once_in(struct mutation *mutation, unsigned times)
{
	return mutate_random(mutation, times) == 0;
}

void *mutate_alloc(struct mutation *mutation, size_t size)
{
	void *memory = tally_arena_alloc(&mutation->arena, size ? size : 1);
	if (!memory)
		abort();
	return memory;
}

struct bytes mutate_copy(struct mutation *mutation, const void *at, size_t size)
{
	struct bytes copy = { mutate_alloc(mutation, size), size };
	if (size)
		memcpy(copy.at, at, size);
	return copy;
}

struct bytes mutate_join(struct mutation *mutation, struct bytes first, struct bytes second)
{
	struct bytes all = { mutate_alloc(mutation, first.size + second.size),
			     first.size + second.size };
	if (first.size)
		memcpy(all.at, first.at, first.size);
	if (second.size)
		memcpy(all.at + first.size, second.at, second.size);
	return all;
}

uint64_t mutate_get(const struct mutation *mutation, const uint8_t *at, unsigned width)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < width; i++)
		value |= (uint64_t)at[mutation->swap ? width - 1 - i : i] << 8 * i;
	return value;
}

void mutate_put(const struct mutation *mutation, uint8_t *at, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		at[mutation->swap ? width - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

/* ---- bytes --------------------------------------------------------------- */

void mutate_number(struct mutation *mutation, struct bytes bytes)
{
	static const uint64_t limits[] = { 0,          1,          0x7f,           0x80,
					   0xff,       0x7fff,     0x8000,         0xffff,
					   0x7fffffff, 0x80000000, 0xffffffff,     1ull << 47,
					   1ull << 63, UINT64_MAX, UINT64_MAX - 1, INT64_MAX,
					   4096,       -4096ull };
	unsigned width = 1u << mutate_random(mutation, 4);
	while (width > bytes.size)
		width /= 2;
	if (!width)
		return;
	size_t at = mutate_random(mutation, bytes.size - width + 1);
	if (!mutate_once_in(mutation, 4))
		at -= at % width;
	uint8_t *place = bytes.at + at;
	uint64_t value = mutate_get(mutation, place, width);
	switch (mutate_random(mutation, 8)) {
	case 0:
		value = limits[mutate_random(mutation, sizeof(limits) / sizeof(*limits))];
		break;
	case 1:
		value = 1ull << mutate_random(mutation, 64);
		break;
	case 2:
		value ^= 1ull << mutate_random(mutation, 8 * width);
		break;
	case 3:
		value += mutate_random(mutation, 33) - 16;
		break;
	case 4:
		value = bytes.size + mutate_random(mutation, 17) - 8;
		break;
	case 5:
		value = mutate_random(mutation, 256);
		break;
	case 6:
		value *= mutate_random(mutation, 5);
		break;
	default:
		memmove(place, bytes.at + mutate_random(mutation, bytes.size - width + 1), width);
		return;
	}
	mutate_put(mutation, place, width, value);
}

struct bytes mutate_bytes(struct mutation *mutation, struct bytes bytes)
{
	if (bytes.size && !mutate_once_in(mutation, 3)) {
		struct bytes copy = mutate_copy(mutation, bytes.at, bytes.size);
		mutate_number(mutation, copy);
		return copy;
	}
	size_t room = bytes.size + bytes.size / 2 + 64;
	struct bytes grown = { mutate_alloc(mutation, room), bytes.size };
	if (bytes.size)
		memcpy(grown.at, bytes.at, bytes.size);
	grown.size = LLVMFuzzerMutate(grown.at, bytes.size, room);
	return grown;
}

/* ---- pieces -------------------------------------------------------------- */

enum { PIECES_MAX = 1 << 16 };

void pieces_insert(struct mutation *mutation, struct pieces *pieces, size_t at, struct piece piece)
{
	if (pieces->count == PIECES_MAX)
		return;
	if (pieces->count == pieces->capacity) {
		size_t capacity = pieces->capacity ? 2 * pieces->capacity : 64;
		struct piece *grown = mutate_alloc(mutation, capacity * sizeof(*grown));
		if (pieces->count)
			memcpy(grown, pieces->items, pieces->count * sizeof(*grown));
		pieces->items = grown;
		pieces->capacity = capacity;
	}
	memmove(pieces->items + at + 1, pieces->items + at,
		(pieces->count - at) * sizeof(*pieces->items));
	pieces->items[at] = piece;
	pieces->count++;
}

void pieces_add(struct mutation *mutation, struct pieces *pieces, struct piece piece)
{
	pieces_insert(mutation, pieces, pieces->count, piece);
}

static void remove_range(struct pieces *pieces, size_t first, size_t count)
{
	memmove(pieces->items + first, pieces->items + first + count,
		(pieces->count - first - count) * sizeof(*pieces->items));
	pieces->count -= count;
}

/* Repeats a piece up to 300 times.  In each copy one number is larger than in the one before, as in
 * a list that someone let grow. */
static void repeat_growing(struct mutation *mutation, struct pieces *pieces, size_t which)
{
	struct piece piece = pieces->items[which];
	size_t count = 1 + mutate_random(mutation, mutate_once_in(mutation, 4) ? 300 : 20);
	size_t words = piece.bytes.size / 8;
	size_t at = 8 * mutate_random(mutation, words), other = 8 * mutate_random(mutation, words);
	uint64_t step = 1ull << mutate_random(mutation, 21);
	for (size_t i = 0; i < count && piece.bytes.size * i < mutation->size_max; i++) {
		piece.bytes = mutate_copy(mutation, piece.bytes.at, piece.bytes.size);
		if (words) {
			mutate_put(mutation, piece.bytes.at + at, 8,
				   mutate_get(mutation, piece.bytes.at + at, 8) + step);
			if (other > 8)
				mutate_put(mutation, piece.bytes.at + other, 8,
					   mutate_get(mutation, piece.bytes.at + other, 8) - step);
		}
		pieces_insert(mutation, pieces, which, piece);
	}
}

/* Copies a number of one piece into another. */
static void carry_number(struct mutation *mutation, struct pieces *pieces)
{
	const struct piece *from = &pieces->items[mutate_random(mutation, pieces->count)];
	struct piece *to = &pieces->items[mutate_random(mutation, pieces->count)];
	unsigned width = mutate_once_in(mutation, 2) ? 8 : 4;
	if (from->bytes.size < width || to->bytes.size < width)
		return;
	to->bytes = mutate_copy(mutation, to->bytes.at, to->bytes.size);
	memmove(to->bytes.at + width * mutate_random(mutation, to->bytes.size / width),
		from->bytes.at + width * mutate_random(mutation, from->bytes.size / width), width);
}

void pieces_shuffle(struct mutation *mutation, struct pieces *pieces, const struct pieces *other)
{
	size_t count = pieces->count;
	if (other && other->count && (!count || mutate_once_in(mutation, 4))) {
		size_t first = mutate_random(mutation, other->count);
		size_t taken = 1 + mutate_random(mutation, mutate_once_in(mutation, 2) ? 1 : 16);
		size_t at = mutate_random(mutation, count + 1);
		for (size_t i = 0; i < taken && first + i < other->count; i++)
			pieces_insert(mutation, pieces, at + i, other->items[first + i]);
		return;
	}
	if (!count)
		return;
	size_t which = mutate_random(mutation, count), with = mutate_random(mutation, count);
	size_t length = 1 +
			mutate_random(mutation, mutate_once_in(mutation, 3) ? count - which : 1);
	struct piece piece = pieces->items[which];
	switch (mutate_random(mutation, 7)) {
	case 0:
		remove_range(pieces, which, length);
		break;
	case 1:
		for (size_t i = 0; i < length && i < 64; i++)
			pieces_insert(mutation, pieces, which + i, pieces->items[which + 2 * i]);
		break;
	case 2:
		pieces->items[which] = pieces->items[with];
		pieces->items[with] = piece;
		break;
	case 3:
		remove_range(pieces, which, 1);
		pieces_insert(mutation, pieces, mutate_random(mutation, count), piece);
		break;
	case 4:
		repeat_growing(mutation, pieces, which);
		break;
	case 5:
		pieces->items[which] = pieces->items[with];
		break;
	default:
		carry_number(mutation, pieces);
		break;
	}
}

struct bytes pieces_join(struct mutation *mutation, const struct pieces *pieces)
{
	size_t size = 0, at = 0;
	for (size_t i = 0; i < pieces->count; i++)
		size += pieces->items[i].bytes.size;
	struct bytes all = { mutate_alloc(mutation, size), size };
	for (size_t i = 0; i < pieces->count; at += pieces->items[i++].bytes.size)
		if (pieces->items[i].bytes.size)
			memcpy(all.at + at, pieces->items[i].bytes.at, pieces->items[i].bytes.size);
	return all;
}

/* ---- libFuzzer's functions ------------------------------------------------ */

struct bytes mutate_any(struct mutation *mutation, struct bytes input, struct bytes other)
{
	static struct bytes (*const kinds[])(struct mutation *, struct bytes, struct bytes) = {
		mutate_folder, mutate_recording, mutate_elf, mutate_jit_dump, mutate_lines,
	};
	struct bytes result = { 0 };
	mutation->swap = false;
	for (size_t i = 0; !result.size && i < sizeof(kinds) / sizeof(*kinds); i++)
		result = kinds[i](mutation, input, other);
	return result.size ? result : mutate_bytes(mutation, input);
}

static size_t mutate(struct bytes input, struct bytes other, uint8_t *out, size_t size_max,
		     unsigned seed)
{
	struct mutation mutation = { .random = seed * 0x9e3779b97f4a7c15ull + 1,
				     .size_max = size_max };
	struct bytes result = { 0 };
	/* A result that is too large would be cut, and lose its last pieces: try again. */
	for (unsigned tries = 0; tries < 4 && (!tries || result.size > size_max); tries++) {
		result = input;
		for (size_t turns = 1 + mutate_random(&mutation, 3); turns-- > 0;)
			result = mutate_any(&mutation, result, other);
	}
	size_t size = result.size < size_max ? result.size : size_max;
	if (size)
		memmove(out, result.at, size);
	tally_arena_release(&mutation.arena);
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t size_max, unsigned seed)
{
	/* The pieces are right where the format has checks; these are for the checks. */
	if (!size || seed % 16 == 0)
		return LLVMFuzzerMutate(bytes, size, size_max);
	return mutate((struct bytes){ bytes, size }, (struct bytes){ 0 }, bytes, size_max, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other,
				 size_t other_size, uint8_t *out, size_t size_max, unsigned seed)
{
	return mutate((struct bytes){ (uint8_t *)one, one_size },
		      (struct bytes){ (uint8_t *)other, other_size }, out, size_max, seed);
}
